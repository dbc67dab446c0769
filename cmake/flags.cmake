# SPDX-License-Identifier: MIT OR Apache-2.0
#
# weft_warnings: for every source of ours.
# weft_code: how the library is compiled. weft_definitions: what it is told.
set(weft_warnings
    -Wall
    -Wextra
    -Wshadow
    -Wstrict-prototypes
    -Wmissing-prototypes
    -Wold-style-definition
    -Wpointer-arith
    -Wundef
    -Wvla
    -Wwrite-strings)
# Assembly files pass through the same compiler driver, which would complain about flags that mean C.
list(TRANSFORM weft_warnings REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:C>:\\1>")

# A call within the library goes straight to its target; the dynamic symbol table does not come into it. Each function
# is in a section of its own: a program linked with -Wl,--gc-sections has only those that it can reach.
set(weft_code $<$<COMPILE_LANGUAGE:C>:-fno-semantic-interposition>)
list(APPEND weft_code $<$<COMPILE_LANGUAGE:C>:-ffunction-sections> $<$<COMPILE_LANGUAGE:C>:-fdata-sections>)
if(WEFT_LTO)
	# "Fat": the objects also serve programs that link without it, or with another compiler.
	if(CMAKE_C_COMPILER_ID STREQUAL GNU)
		list(APPEND weft_code $<$<COMPILE_LANGUAGE:C>:-flto> $<$<COMPILE_LANGUAGE:C>:-ffat-lto-objects>)
	else()
		message(FATAL_ERROR "WEFT_LTO needs gcc: clang 16 cannot make objects that also link without it")
	endif()
endif()

set(weft_definitions)
foreach(build WEFT_INJECT_FAULTS WEFT_TINY)
	if(${build})
		list(APPEND weft_definitions ${build})
	endif()
endforeach()

# Valgrind's header is only macros: with it the library tells valgrind which memory is a stack, at no cost elsewhere.
find_path(VALGRIND_INCLUDE_DIR valgrind/valgrind.h)
mark_as_advanced(VALGRIND_INCLUDE_DIR)
if(VALGRIND_INCLUDE_DIR)
	list(APPEND weft_definitions WEFT_HAVE_VALGRIND)
endif()

# Of liburing only the header: the library is looked for at run time (src/io/uring.c).
find_path(LIBURING_INCLUDE_DIR liburing.h)
mark_as_advanced(LIBURING_INCLUDE_DIR)
if(LIBURING_INCLUDE_DIR)
	list(APPEND weft_definitions WEFT_HAVE_LIBURING)
endif()

# Library and programs alike: a sanitizer sees only what it was compiled into.
if(WEFT_SANITIZE)
	add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
	add_link_options(-fsanitize=${WEFT_SANITIZE})
	if(WEFT_SANITIZE MATCHES undefined)
		add_compile_options(-fno-sanitize-recover=undefined)
	endif()
endif()

# The presets set flags for C++ too; a build without tests and examples has no use for them.
set(weft_not_used "${CMAKE_CXX_FLAGS_RELEASE}${CMAKE_CXX_FLAGS_DEBUG}")

get_property(weft_many_configurations GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT weft_many_configurations)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
