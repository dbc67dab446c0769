# SPDX-License-Identifier: MIT OR Apache-2.0
#
# weft_as: the assembler of instrumented code. The name of its directory selects the instrumentation:
# tools/as/README.md.
include_guard(GLOBAL)

file(GLOB weft_as_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/as/*.c)
add_executable(weft_as ${weft_as_sources})
target_compile_options(weft_as PRIVATE ${weft_warnings})
target_compile_definitions(weft_as PRIVATE _GNU_SOURCE)
set_target_properties(
	weft_as
	PROPERTIES OUTPUT_NAME weft-as
		   C_STANDARD 11
		   C_EXTENSIONS ON)
