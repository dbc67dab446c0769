# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The tools for instrumented code: weft-launch, which runs compilers, and a directory for each kind of instrumentation
# with an `as` in it, which compilers find by -B. The assembler knows its kind by that directory.
set(weft_libexec ${PROJECT_BINARY_DIR}/libexec/weft)
set(weft_instrumentations segmented mmu lookahead)

file(GLOB weft_launch_sources CONFIGURE_DEPENDS tools/driver/launch/*.c)
add_executable(weft_launch ${weft_launch_sources})
target_compile_definitions(weft_launch PRIVATE _GNU_SOURCE)
target_compile_options(weft_launch PRIVATE ${weft_warnings})
set_target_properties(
	weft_launch
	PROPERTIES OUTPUT_NAME weft-launch
		   RUNTIME_OUTPUT_DIRECTORY ${weft_libexec}
		   C_STANDARD 11
		   C_EXTENSIONS ON)

# These tools run beside the compiler, so a sanitizer for the library is not applied to them.
set(weft_tools weft_launch weft_as)
set_target_properties(weft_as PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${weft_libexec})
if(WEFT_SANITIZE)
	foreach(tool ${weft_tools})
		target_compile_options(${tool} PRIVATE -fno-sanitize=all)
		target_link_options(${tool} PRIVATE -fno-sanitize=all)
	endforeach()
endif()

foreach(kind ${weft_instrumentations})
	file(MAKE_DIRECTORY ${weft_libexec}/${kind})
	file(CREATE_LINK ../weft-as ${weft_libexec}/${kind}/as SYMBOLIC)
endforeach()
add_custom_target(weft_instrumentation DEPENDS ${weft_tools})

# For weft_target_stack in projects that build Weft as a part of themselves.
set_property(GLOBAL PROPERTY weft_libexec ${weft_libexec})
file(STRINGS ${PROJECT_SOURCE_DIR}/include/weft/detail/policies.def weft_policy_names REGEX "^WEFT__POLICY")
list(TRANSFORM weft_policy_names REPLACE "^[^,]*, ([a-z]+), .*" "\\1")
set_property(GLOBAL PROPERTY weft_policy_names ${weft_policy_names})
include(cmake/stack.cmake)
