# SPDX-License-Identifier: MIT OR Apache-2.0
#
# weft_for_processor(LIST PROCESSOR): keep of these sources those that the processor runs (src/arch/README.md). Linked stacks and
# activities exist on x86-64 only.
include_guard(GLOBAL)

function(weft_for_processor list processor)
	set(sources ${${list}})
	if(processor MATCHES "^(aarch64|arm64)")
		list(FILTER sources EXCLUDE REGEX "/x86_64[^/]*$|/src/activity/|/src/stack/(heap|linked|lookahead|mmu|mmu_probes|segmented)[.]c$")
	else()
		list(FILTER sources EXCLUDE REGEX "/aarch64[^/]*$")
	endif()
	set(${list} ${sources} PARENT_SCOPE)
endfunction()
