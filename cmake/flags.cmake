# SPDX-License-Identifier: MIT OR Apache-2.0
#
# weft_warnings: for every source file of the project.
# weft_code: how the library is compiled. weft_definitions: its macros.
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
# Assembly files pass through the same compiler driver, which would complain about flags for C.
list(TRANSFORM weft_warnings REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:C>:\\1>")

# A call within the library goes straight to its target, without the dynamic symbol table. Each function is in a section
# of its own: a program linked with -Wl,--gc-sections has only the functions that it can reach.
set(weft_code $<$<COMPILE_LANGUAGE:C>:-fno-semantic-interposition>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^riscv")
	list(APPEND weft_code $<$<COMPILE_LANGUAGE:C>:-fasynchronous-unwind-tables>) # elsewhere compilers write them unasked
endif()
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

# weft_optional(NAME HEADER PACKAGE PURPOSE): declares the option WEFT_WITH_NAME. AUTO uses the header if it is installed, ON requires it,
# OFF builds without it. Sets WEFT_HAS_NAME. Only headers are used: the libraries are opened at run time, or are macros alone.
include(CheckIncludeFile)
function(weft_optional name header package purpose)
	set(WEFT_WITH_${name} AUTO CACHE STRING "${purpose}: ON, OFF or AUTO")
	set_property(CACHE WEFT_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
	# Checked by the compiler: a compiler for another C library does not find every installed header.
	if(NOT WEFT_FOUND_${name})
		unset(WEFT_FOUND_${name} CACHE)
	endif()
	check_include_file(${header} WEFT_FOUND_${name})
	set(has OFF)
	if(WEFT_WITH_${name} AND WEFT_FOUND_${name})
		set(has ON)
	elseif(WEFT_WITH_${name} AND NOT WEFT_WITH_${name} STREQUAL AUTO)
		message(FATAL_ERROR "WEFT_WITH_${name}=${WEFT_WITH_${name}}, but <${header}> is not installed: install it (Debian: ${package}), "
				    "or configure with -DWEFT_WITH_${name}=AUTO or OFF")
	endif()
	set(WEFT_HAS_${name} ${has} PARENT_SCOPE)
	message(STATUS "${purpose}: ${has}")
endfunction()

weft_optional(LIBURING liburing.h liburing-dev "io_uring, by liburing")
weft_optional(CARES ares.h libc-ares-dev "Names without a thread for each, by c-ares")
weft_optional(OPENSSL openssl/ssl.h libssl-dev "TLS, by OpenSSL 3")
weft_optional(NGHTTP2 nghttp2/nghttp2.h libnghttp2-dev "HTTP/2, by nghttp2")
weft_optional(VALGRIND valgrind/valgrind.h valgrind "Stacks that valgrind knows")
weft_optional(SDT sys/sdt.h systemtap-sdt-dev "Probes for perf and bpftrace")
if(WEFT_HAS_VALGRIND)
	list(APPEND weft_definitions WEFT_HAVE_VALGRIND)
endif()
# The sources find these headers themselves; tests compile them without CMake's definitions.
foreach(name LIBURING CARES OPENSSL NGHTTP2 SDT)
	if(NOT WEFT_HAS_${name})
		list(APPEND weft_definitions WEFT_WITHOUT_${name})
	endif()
endforeach()

# For library and programs alike: a sanitizer sees only code that was compiled with it.
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
