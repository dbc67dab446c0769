# SPDX-License-Identifier: MIT OR Apache-2.0
#
# libweft-http: HTTP for tasks, if llhttp 9 is found: the system's own (Debian 13: libllhttp-dev), or the sources that
# `./weft test` fetches to build/packages/llhttp. Sets WEFT_HAS_HTTP; weft_llhttp_sources and weft_llhttp_include say
# which files are compiled.
set(WEFT_WITH_HTTP AUTO CACHE STRING "HTTP, by llhttp: ON, OFF or AUTO")
set_property(CACHE WEFT_WITH_HTTP PROPERTY STRINGS AUTO ON OFF)
set(WEFT_LLHTTP ${PROJECT_SOURCE_DIR}/build/packages/llhttp CACHE PATH "A directory with llhttp's include and src, if the system has none")

set(weft_llhttp_sources)
set(weft_llhttp_include)
set(weft_llhttp_library)
find_path(WEFT_LLHTTP_H llhttp.h)
find_library(WEFT_LLHTTP_LIBRARY llhttp)
if(EXISTS ${WEFT_LLHTTP}/src/llhttp.c)
	set(weft_llhttp_sources ${WEFT_LLHTTP}/src/llhttp.c ${WEFT_LLHTTP}/src/api.c ${WEFT_LLHTTP}/src/http.c)
	set(weft_llhttp_include ${WEFT_LLHTTP}/include)
elseif(WEFT_LLHTTP_H AND WEFT_LLHTTP_LIBRARY)
	set(weft_llhttp_include ${WEFT_LLHTTP_H})
	set(weft_llhttp_library ${WEFT_LLHTTP_LIBRARY})
endif()
set(WEFT_HAS_HTTP OFF)
if(WEFT_WITH_HTTP AND weft_llhttp_include)
	file(STRINGS ${weft_llhttp_include}/llhttp.h major REGEX "define LLHTTP_VERSION_MAJOR")
	if(major MATCHES "MAJOR (9|[1-9][0-9]+)")
		set(WEFT_HAS_HTTP ON)
	endif()
endif()
if(WEFT_WITH_HTTP AND NOT WEFT_HAS_HTTP AND NOT WEFT_WITH_HTTP STREQUAL AUTO)
	message(FATAL_ERROR "WEFT_WITH_HTTP=${WEFT_WITH_HTTP}, but llhttp 9 is not here: install libllhttp-dev (Debian 13), or let './weft run "
			    "examples/hello.c' fetch its sources by pip3, or set WEFT_LLHTTP to a directory with its include and src, or "
			    "configure with -DWEFT_WITH_HTTP=AUTO or OFF")
endif()
if(WEFT_HAS_HTTP OR NOT WEFT_WITH_HTTP)
	message(STATUS "HTTP, by llhttp: ${WEFT_HAS_HTTP}")
else()
	message(STATUS "HTTP, by llhttp: OFF, because llhttp 9 is not here: install libllhttp-dev (Debian 13), or let './weft run examples/hello.c' "
		       "fetch its sources, and configure again")
endif()
# The target for libraries that are built only if their dependencies are found. It always exists.
add_custom_target(weft_optional)
if(NOT WEFT_HAS_HTTP)
	return()
endif()

# Some 100 bytes are cleared for each request: gcc would use a string instruction, which begins slowly.
set(weft_http_code ${weft_code})
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|i.86")
	list(APPEND weft_http_code -mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign)
endif()

# llhttp is generated code. It is compiled without our warnings, and without checks of the stack: nothing waits inside of it.
set(weft_llhttp_objects)
if(weft_llhttp_sources)
	add_library(weft_llhttp_objects OBJECT ${weft_llhttp_sources})
	target_include_directories(weft_llhttp_objects PRIVATE ${weft_llhttp_include})
	target_compile_options(weft_llhttp_objects PRIVATE ${weft_http_code})
	set_target_properties(weft_llhttp_objects PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
	set(weft_llhttp_objects $<TARGET_OBJECTS:weft_llhttp_objects>)
endif()

# weft_add_http(TARGET FILE [KIND]) adds the library; with KIND it is compiled for linked stacks, by that instrumentation.
function(weft_add_http target file)
	add_library(${target} STATIC EXCLUDE_FROM_ALL ${weft_http_sources} ${weft_llhttp_objects})
	target_include_directories(${target} PRIVATE src)
	target_include_directories(${target} SYSTEM PRIVATE ${weft_llhttp_include})
	# A C++ handler's exception passes through this code, which must close a connection then.
	target_compile_options(${target} PRIVATE ${weft_warnings} ${weft_http_code} -fexceptions)
	set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file} POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden C_STANDARD 11
						   C_EXTENSIONS ON)
	target_link_libraries(${target} PUBLIC weft_rt ${weft_llhttp_library})
	if(ARGN)
		weft_instrument(${target} ${ARGN})
		# Inlined functions make the frames of waiting functions larger.
		target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-O2>)
	endif()
endfunction()

weft_add_http(weft_http weft-http)
set_target_properties(weft_http PROPERTIES EXPORT_NAME http EXCLUDE_FROM_ALL OFF)
add_library(weft::http ALIAS weft_http)
add_dependencies(weft_optional weft_http)
# A connection that waits inside of code without checks holds a system stack of some pages: on linked stacks it takes 12
# to 15 KB, and 2 to 5 with these. They are built when they are asked for, and installed if they have been built.
foreach(kind ${weft_instrumentations})
	weft_add_http(weft_http_${kind} weft-http-${kind} ${kind})
	list(APPEND weft_instrumented_http weft_http_${kind})
endforeach()
if(weft_instrumented_http)
	add_custom_target(weft_instrumented_http DEPENDS ${weft_instrumented_http})
endif()
