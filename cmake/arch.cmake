# SPDX-License-Identifier: MIT OR Apache-2.0
#
# weft_for_processor(LIST PROCESSOR): removes the sources that the processor does not run (docs/reference/architectures.md).
# Linked stacks and activities exist on x86-64 only.
include_guard(GLOBAL)

function(weft_for_processor list processor)
	set(sources ${${list}})
	set(own x86_64)
	if(processor MATCHES "^(aarch64|arm64)")
		set(own aarch64)
	elseif(processor MATCHES "^riscv64")
		set(own riscv64)
	endif()
	set(others x86_64 aarch64 riscv64)
	list(REMOVE_ITEM others ${own})
	foreach(other IN LISTS others)
		list(FILTER sources EXCLUDE REGEX "/src/arch/${other}[^/]*$")
	endforeach()
	if(NOT own STREQUAL x86_64)
		list(FILTER sources EXCLUDE REGEX "/src/activity/|/src/stack/(heap|linked|lookahead|mmu|mmu_probes|segmented)[.]c$")
	endif()
	set(${list} ${sources} PARENT_SCOPE)
endfunction()
