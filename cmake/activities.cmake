# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What clang loads to compile activities: for each LLVM of WEFT_LLVM_VERSIONS whose headers are there, weft_activities_VERSION is
# libweft-activities-VERSION.so. LLVM's interface for plugins changes with each version, so a plugin serves the clang of its own
# version only. Without any LLVM everything else is built all the same. Sets weft_activities_versions, the newest first.
include_guard(GLOBAL)

set(WEFT_LLVM_VERSIONS 22 21 20 19 CACHE STRING "LLVM versions whose clang shall compile activities, if they are installed")

# llvm_includes(VERSION OUT): where the headers are; empty if they are not.
function(weft_llvm_includes version out)
	find_program(WEFT_LLVM_CONFIG_${version} NAMES llvm-config-${version} llvm-config${version} PATHS /usr/lib/llvm-${version}/bin)
	mark_as_advanced(WEFT_LLVM_CONFIG_${version})
	set(${out} "" PARENT_SCOPE)
	if(NOT WEFT_LLVM_CONFIG_${version})
		return()
	endif()
	execute_process(COMMAND ${WEFT_LLVM_CONFIG_${version}} --includedir OUTPUT_VARIABLE includes OUTPUT_STRIP_TRAILING_WHITESPACE)
	# llvm-config comes without the headers, too.
	if(EXISTS ${includes}/llvm/Passes/PassBuilder.h)
		set(${out} ${includes} PARENT_SCOPE)
	endif()
endfunction()

# They run in the compiler: built with LLVM's own choices, and without what is asked for the library (debugging, sanitizers).
function(weft_compiler_plugin name version includes)
	add_library(${name} MODULE ${ARGN})
	execute_process(COMMAND ${WEFT_LLVM_CONFIG_${version}} --has-rtti OUTPUT_VARIABLE rtti OUTPUT_STRIP_TRAILING_WHITESPACE)
	target_include_directories(${name} SYSTEM PRIVATE ${includes})
	target_compile_options(${name} PRIVATE -Wall -Wextra -fno-exceptions -fvisibility-inlines-hidden -g0 -O1)
	if(NOT rtti STREQUAL YES)
		target_compile_options(${name} PRIVATE -fno-rtti)
	endif()
	if(WEFT_SANITIZE)
		target_compile_options(${name} PRIVATE -fno-sanitize=all)
		target_link_options(${name} PRIVATE -fno-sanitize=all)
	endif()
	set_target_properties(
		${name}
		PROPERTIES CXX_STANDARD 17
			   CXX_STANDARD_REQUIRED ON
			   CXX_EXTENSIONS ON
			   POSITION_INDEPENDENT_CODE ON
			   PREFIX lib
			   SUFFIX .so
			   LIBRARY_OUTPUT_DIRECTORY ${weft_libexec})
endfunction()

set(weft_activities_versions)
file(GLOB weft_activities_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/activities/*.cpp)
include(CheckLanguage)
foreach(version IN LISTS WEFT_LLVM_VERSIONS)
	weft_llvm_includes(${version} weft_includes)
	if(weft_includes)
		check_language(CXX)
	endif()
	if(weft_includes AND CMAKE_CXX_COMPILER)
		enable_language(CXX)
		weft_compiler_plugin(weft_activities_${version} ${version} ${weft_includes} ${weft_activities_sources})
		set_target_properties(weft_activities_${version} PROPERTIES OUTPUT_NAME weft-activities-${version})
		# What looks at the source's blocks needs clang's own headers, too.
		if(EXISTS ${weft_includes}/clang/Frontend/FrontendPluginRegistry.h)
			weft_compiler_plugin(weft_check_activities_${version} ${version} ${weft_includes}
					     ${PROJECT_SOURCE_DIR}/tools/activities/check/check.cpp)
			set_target_properties(weft_check_activities_${version} PROPERTIES OUTPUT_NAME weft-check-activities-${version})
			add_dependencies(weft_activities_${version} weft_check_activities_${version})
		endif()
		list(APPEND weft_activities_versions ${version})
	endif()
endforeach()
if(weft_activities_versions)
	list(JOIN weft_activities_versions ", " weft_names)
	message(STATUS "Activities: compiled by clang ${weft_names}")
elseif(WEFT_LLVM_VERSIONS)
	message(STATUS "Activities: no clang will compile them, because no LLVM of 19 to 22 is here with its headers (Debian: llvm-22-dev), "
		"or no C++ compiler; the rest is built")
endif()

include(cmake/target_activities.cmake)
