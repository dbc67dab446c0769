# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The plugins that clang loads to compile activities: for each LLVM of WEFT_LLVM_VERSIONS whose headers are there,
# weft_activities_VERSION is libweft-activities-VERSION.so. LLVM's interface for plugins changes with each version, so a
# plugin serves the clang of its own version only. Without any LLVM all other targets are still built. Sets
# weft_activities_versions, the newest first.
include_guard(GLOBAL)

set(WEFT_LLVM_VERSIONS 22 21 20 19 CACHE STRING "LLVM versions whose clang shall compile activities, if they are installed")

# llvm_includes(VERSION OUT): the directory of the headers; empty if there is none.
function(weft_llvm_includes version out)
	find_program(WEFT_LLVM_CONFIG_${version} NAMES llvm-config-${version} llvm-config${version} PATHS /usr/lib/llvm-${version}/bin)
	mark_as_advanced(WEFT_LLVM_CONFIG_${version})
	set(${out} "" PARENT_SCOPE)
	# `weft` unpacks the headers there if no package is installed.
	set(unpacked ${PROJECT_SOURCE_DIR}/build/packages/llvm-${version}/usr/lib/llvm-${version})
	if(EXISTS ${unpacked}/include/llvm/Passes/PassBuilder.h)
		set(${out} ${unpacked}/include PARENT_SCOPE)
		return()
	endif()
	if(NOT WEFT_LLVM_CONFIG_${version})
		return()
	endif()
	execute_process(COMMAND ${WEFT_LLVM_CONFIG_${version}} --includedir OUTPUT_VARIABLE includes OUTPUT_STRIP_TRAILING_WHITESPACE)
	# llvm-config may be installed without the headers.
	if(EXISTS ${includes}/llvm/Passes/PassBuilder.h)
		set(${out} ${includes} PARENT_SCOPE)
	endif()
endfunction()

# Plugins run in the compiler, so they are built with LLVM's own options, and without the options for the library
# (debugging, sanitizers).
function(weft_compiler_plugin name version includes)
	add_library(${name} MODULE ${ARGN})
	set(rtti YES)
	if(EXISTS ${includes}/../lib/cmake/llvm/LLVMConfig.cmake)
		file(STRINGS ${includes}/../lib/cmake/llvm/LLVMConfig.cmake rtti REGEX "^set\\(LLVM_ENABLE_RTTI (ON|YES|TRUE|1)")
	elseif(WEFT_LLVM_CONFIG_${version})
		execute_process(COMMAND ${WEFT_LLVM_CONFIG_${version}} --has-rtti OUTPUT_VARIABLE rtti OUTPUT_STRIP_TRAILING_WHITESPACE)
	endif()
	target_include_directories(${name} SYSTEM PRIVATE ${includes})
	target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
	target_compile_options(${name} PRIVATE -Wall -Wextra -fno-exceptions -fvisibility-inlines-hidden -g0 -O1)
	if(NOT rtti OR rtti STREQUAL NO)
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

set(WEFT_WITH_LLVM AUTO CACHE STRING "The plugin that compiles activities, for clang, by LLVM's headers: ON, OFF or AUTO")
set_property(CACHE WEFT_WITH_LLVM PROPERTY STRINGS AUTO ON OFF)
set(weft_versions ${WEFT_LLVM_VERSIONS})
if(NOT WEFT_WITH_LLVM)
	set(weft_versions)
endif()
set(weft_activities_versions)
file(GLOB weft_activities_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/activities/*.cpp)
include(CheckLanguage)
foreach(version IN LISTS weft_versions)
	weft_llvm_includes(${version} weft_includes)
	if(weft_includes)
		check_language(CXX)
	endif()
	if(weft_includes AND CMAKE_CXX_COMPILER)
		enable_language(CXX)
		weft_compiler_plugin(weft_activities_${version} ${version} ${weft_includes} ${weft_activities_sources})
		set_target_properties(weft_activities_${version} PROPERTIES OUTPUT_NAME weft-activities-${version})
		# The plugin that checks the source's blocks needs clang's own headers, too.
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
elseif(WEFT_WITH_LLVM AND NOT WEFT_WITH_LLVM STREQUAL AUTO)
	message(FATAL_ERROR "WEFT_WITH_LLVM=${WEFT_WITH_LLVM}, but no LLVM of ${WEFT_LLVM_VERSIONS} is installed with its headers, or no C++ compiler: "
			    "install them (Debian: llvm-22-dev libclang-22-dev g++), or configure with -DWEFT_WITH_LLVM=AUTO or OFF")
elseif(weft_versions)
	message(STATUS "Activities: no clang will compile them, because no LLVM of 19 to 22 is here with its headers (Debian: llvm-22-dev), "
		"or no C++ compiler; the rest is built")
endif()

include(cmake/target_activities.cmake)
