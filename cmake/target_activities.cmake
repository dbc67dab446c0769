# SPDX-License-Identifier: MIT OR Apache-2.0
#
# weft_target_activities(TARGET)
#
# TARGET's C and C++ sources are compiled as `weft cc --activities` does: functions may yield, <weft/activity.h> works.
# The compiler must be clang 19 to 22, and Weft have been built with LLVM's headers of that version. An executable is
# linked with weft::activity (or weft::activity_shared if it has a shared library of Weft) unless it already links
# either library.
#
# The global property weft_libexec says where the plugins are; the including file sets it.

# At the end of the directory, when the target's libraries are known: two copies of Weft in a program know nothing of each other.
function(weft_link_activities target)
	get_target_property(libraries ${target} LINK_LIBRARIES)
	get_target_property(type ${target} TYPE)
	set(library weft::activity)
	foreach(each ${libraries})
		if(each MATCHES "^(weft::|weft_)activity(_shared)?$")
			return()
		elseif(each MATCHES "^(weft::)?(weft|rt|weft_rt)_shared$")
			set(library weft::activity_shared)
		endif()
	endforeach()
	if(NOT type STREQUAL EXECUTABLE)
		set(library weft::headers)
	endif()
	target_link_libraries(${target} PRIVATE ${library})
endfunction()

# The plugin for a language's compiler, as an option.
function(weft_activities_option language out)
	set(${out} "" PARENT_SCOPE)
	get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
	if(NOT language IN_LIST languages)
		return()
	endif()
	set(compiler "${CMAKE_${language}_COMPILER_ID}")
	string(REGEX MATCH "^[0-9]+" version "${CMAKE_${language}_COMPILER_VERSION}")
	get_property(libexec GLOBAL PROPERTY weft_libexec)
	set(plugin ${libexec}/libweft-activities-${version}.so)
	if(NOT compiler STREQUAL Clang OR NOT version MATCHES "^(19|2[0-2])$")
		message(
			FATAL_ERROR
				"weft_target_activities: the ${language} compiler is ${compiler} ${version}, and activities need clang 19 to 22: "
				"cmake -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 "
				"(Debian: apt-get install --no-install-recommends clang-22)")
	endif()
	if(NOT EXISTS ${plugin} AND NOT TARGET weft_activities_${version})
		message(FATAL_ERROR "weft_target_activities: there is no ${plugin}: "
				    "this Weft was built without LLVM ${version}'s headers (Debian: llvm-${version}-dev)")
	endif()
	if(TARGET weft_activities_${version})
		add_dependencies(${target} weft_activities_${version})
	endif()
	# A clang that is to report on a pass keeps lines for its errors, without -g, too. There is no such remark.
	set(options "$<$<COMPILE_LANGUAGE:${language}>:-fpass-plugin=${plugin}>" "$<$<COMPILE_LANGUAGE:${language}>:-Rpass=weft-activities>")
	set(check ${libexec}/libweft-check-activities-${version}.so)
	if(EXISTS ${check} OR TARGET weft_check_activities_${version})
		list(APPEND options "$<$<COMPILE_LANGUAGE:${language}>:-fplugin=${check}>")
	endif()
	set(${out} ${options} PARENT_SCOPE)
endfunction()

function(weft_target_activities target)
	if(NOT TARGET ${target})
		message(FATAL_ERROR "weft_target_activities: there is no target '${target}'")
	endif()
	if(ARGN)
		message(FATAL_ERROR "weft_target_activities: unknown argument '${ARGN}'")
	endif()
	foreach(language C CXX)
		weft_activities_option(${language} option)
		target_compile_options(${target} PRIVATE ${option})
	endforeach()
	cmake_language(EVAL CODE "cmake_language(DEFER CALL weft_link_activities [[${target}]])")
endfunction()
