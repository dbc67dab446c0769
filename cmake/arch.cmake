# SPDX-License-Identifier: MIT OR Apache-2.0
#
# weft_for_processor(LIST PROCESSOR): keep of these sources those that the processor runs (src/arch/README.md). Linked stacks and
# activities exist on x86-64 only.
include_guard(GLOBAL)

function(weft_for_processor list processor)
	set(sources ${${list}})
	set(linked "/src/activity/|/src/stack/(heap|linked|lookahead|mmu|mmu_probes|segmented)[.]c$")
	if(processor MATCHES "^(aarch64|arm64)")
		set(others "x86_64|riscv64|${linked}")
	elseif(processor MATCHES "^riscv64")
		set(others "x86_64|aarch64|${linked}")
	else()
		set(others "aarch64|riscv64")
	endif()
	string(REGEX REPLACE "(x86_64|aarch64|riscv64)" "/src/arch/\\1[^/]*$" others "${others}")
	list(FILTER sources EXCLUDE REGEX "${others}")
	set(${list} ${sources} PARENT_SCOPE)
endfunction()
