# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The files that `cmake --install` copies. The result may be moved: each file finds the other files by relative paths.
#
# Components, for packages: weft-runtime, the shared libraries; weft-development, headers, static libraries, the CMake
# package and pkg-config (it needs weft-runtime); weft-tools, the command and the programs that it calls (it needs
# weft-development); weft-documentation.
include(CMakePackageConfigHelpers)

set(weft_share ${CMAKE_INSTALL_DATADIR}/weft)
set(weft_package ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME weft-development)
install(DIRECTORY include/weft/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.def")
install(DIRECTORY include/compat/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/compat FILES_MATCHING PATTERN "*.h")
set(weft_pc_packages weft weft-static weft-rt weft-rt-static weft-activity weft-activity-static weft-posix)
set(weft_optional_targets)
if(WEFT_HAS_HTTP)
	set(weft_optional_targets weft_http)
	list(APPEND weft_pc_packages weft-http)
endif()
install(
	TARGETS weft weft_shared weft_rt weft_rt_shared weft_activity weft_activity_shared weft_posix weft_headers weft_compat
		${weft_optional_targets}
	EXPORT weft
	LIBRARY COMPONENT weft-runtime NAMELINK_COMPONENT weft-development)

foreach(target IN LISTS weft_instrumented_http)
	install(FILES $<TARGET_FILE:${target}> DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
endforeach()

# The CMake package.
install(EXPORT weft NAMESPACE weft:: FILE weftTargets.cmake DESTINATION ${weft_package})
set(weft_package_libexec ${CMAKE_INSTALL_LIBEXECDIR}/weft)
configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake INSTALL_DESTINATION ${weft_package}
			      PATH_VARS weft_package_libexec)
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake cmake/stack.cmake
		cmake/target_activities.cmake DESTINATION ${weft_package})

# pkg-config: weft (the shared library, if it exists), weft-static; weft-rt, weft-rt-static: weft and tasks;
# weft-posix: interposes libc, to be linked beside one of these libraries; weft-activity, weft-activity-static: tasks
# and activities.
function(weft_relative_path from to result)
	cmake_path(RELATIVE_PATH to BASE_DIRECTORY "${from}" OUTPUT_VARIABLE relative)
	set(${result} "${relative}" PARENT_SCOPE)
endfunction()

set(weft_pc_dir ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
weft_relative_path(${weft_pc_dir} ${CMAKE_INSTALL_FULL_LIBDIR} weft_pc_to_lib)
weft_relative_path(${weft_pc_dir} ${CMAKE_INSTALL_FULL_INCLUDEDIR} weft_pc_to_include)
weft_relative_path(${weft_pc_dir} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/weft weft_pc_to_libexec)
foreach(package IN LISTS weft_pc_packages)
	string(REPLACE -static "" library ${package})
	set(weft_pc_library -l${library})
	set(weft_pc_requires)
	if(package MATCHES static)
		set(weft_pc_library -l:lib${library}.a)
	endif()
	if(package STREQUAL weft-posix)
		set(weft_pc_library "-Wl,-u,weft__posix_begin -Wl,--push-state,--no-as-needed -lweft-posix -Wl,--pop-state")
	elseif(package STREQUAL weft-http) # only static: it uses the static libraries
		set(weft_pc_library -l:libweft-http.a)
		set(weft_pc_requires weft-rt-static)
	elseif(package MATCHES rt)
		string(REPLACE -rt "" weft_pc_requires ${package})
	elseif(package MATCHES activity)
		string(REPLACE -activity -rt weft_pc_requires ${package})
	endif()
	configure_file(cmake/weft.pc.in ${package}.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
configure_file(cmake/weft-compat.pc.in weft-compat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft-compat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# weft-segmented, weft-mmu, weft-lookahead: the flags for such code.
foreach(kind ${weft_instrumentations})
	configure_file(cmake/weft-instrumented.pc.in weft-${kind}.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/weft-${kind}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME weft-tools)
# weft-activities-VERSION: the flags for that clang to compile activities.
foreach(version IN LISTS weft_activities_versions)
	configure_file(cmake/weft-activities.pc.in weft-activities-${version}.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/weft-activities-${version}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
	install(TARGETS weft_activities_${version} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/weft)
	if(TARGET weft_check_activities_${version})
		install(TARGETS weft_check_activities_${version} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/weft)
	endif()
endforeach()

# The tools for instrumented code. Each kind has an `as` in a directory, which compilers find by -B.
install(TARGETS weft_launch weft_as RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/weft)
foreach(kind ${weft_instrumentations})
	install(DIRECTORY ${weft_libexec}/${kind} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/weft)
endforeach()

# weft_install_link(TARGET PATH COMPONENT): a symbolic link, which the manifest lists so that `uninstall` removes it.
function(weft_install_link target path component)
	install(
		CODE "set(link \${CMAKE_INSTALL_PREFIX}/${path})
file(CREATE_LINK ${target} \"\$ENV{DESTDIR}\${link}\" SYMBOLIC)
list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${link})"
		COMPONENT ${component})
endfunction()

# The command: the same script, with the installed paths of its parts.
weft_relative_path(${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/weft weft_bin_to_share)
weft_relative_path(${CMAKE_INSTALL_FULL_DATADIR}/weft ${CMAKE_INSTALL_FULL_LIBDIR} weft_share_to_lib)
weft_relative_path(${CMAKE_INSTALL_FULL_DATADIR}/weft ${CMAKE_INSTALL_FULL_INCLUDEDIR} weft_share_to_include)
weft_relative_path(${CMAKE_INSTALL_FULL_DATADIR}/weft ${CMAKE_INSTALL_FULL_LIBEXECDIR}/weft weft_share_to_libexec)
file(READ weft weft_command)
string(REPLACE "installed_share=''" "installed_share='${weft_bin_to_share}'" weft_command "${weft_command}")
file(WRITE ${PROJECT_BINARY_DIR}/command/weft "${weft_command}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS weft)
file(CONFIGURE OUTPUT command/layout.bash CONTENT [[# SPDX-License-Identifier: MIT OR Apache-2.0
# The paths of the parts, relative to this file; written by the installation.
layout_lib='@weft_share_to_lib@'
layout_include='@weft_share_to_include@'
layout_libexec='@weft_share_to_libexec@'
layout_version='@PROJECT_VERSION@'
]] @ONLY)
install(PROGRAMS ${PROJECT_BINARY_DIR}/command/weft TYPE BIN)
install(FILES ${PROJECT_BINARY_DIR}/command/layout.bash DESTINATION ${weft_share})
install(DIRECTORY tools/driver DESTINATION ${weft_share} PATTERN launch EXCLUDE PATTERN completion EXCLUDE)
install(FILES tools/driver/completion/weft DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES tools/driver/completion/_weft DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES tools/gdb/weft.py DESTINATION ${weft_share}/gdb)
# Aliases of one word, for builds that need CC and CXX to be one word.
foreach(alias weft-cc weft-c++)
	weft_install_link(weft ${CMAKE_INSTALL_BINDIR}/${alias} weft-tools)
endforeach()

# Documents, in places where their links resolve.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME weft-documentation)
install(FILES LICENSE-MIT LICENSE-APACHE README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md TYPE DOC)
install(DIRECTORY docs examples TYPE DOC)
if(weft_llhttp_sources)
	# libweft-http.a contains it.
	install(FILES ${WEFT_LLHTTP}/LICENSE-MIT TYPE DOC RENAME LICENSE-MIT-llhttp)
endif()
weft_relative_path(${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR} weft_doc_to_include)
weft_install_link(${weft_doc_to_include} ${CMAKE_INSTALL_DOCDIR}/include weft-documentation)

# Man pages, made from the headers and from the command's help. They need Python.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
	file(GLOB weft_documented CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/weft/*.h)
	set(weft_man ${PROJECT_BINARY_DIR}/man)
	add_custom_command(
		OUTPUT ${weft_man}/man1/weft.1
		COMMAND ${CMAKE_COMMAND} -E rm -rf ${weft_man}
		COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/reference man ${weft_man}
		DEPENDS ${weft_documented} tools/reference tools/driver/help.bash
		COMMENT "Making man pages"
		VERBATIM)
	add_custom_target(weft_man ALL DEPENDS ${weft_man}/man1/weft.1)
	install(DIRECTORY ${weft_man}/ DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
else()
	message(STATUS "No man pages will be installed: they are made by Python 3, which is missing.")
endif()

# The dynamic linker finds a library outside the packages' directories only after ldconfig, or not at all. Packages
# (DESTDIR) handle this.
install(CODE "if(\"\$ENV{DESTDIR}\" STREQUAL \"\")
	cmake_path(APPEND where \${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_LIBDIR})
	message(STATUS \"For programs that use libweft.so: run ldconfig (as root) if it knows \${where}, \"
		\"else link them with -Wl,-rpath,\${where}. libweft.a needs nothing.\")
endif()" COMPONENT weft-runtime)

# `cmake --build DIR --target uninstall` removes what the last `cmake --install` of that directory installed.
set(weft_uninstall uninstall)
if(TARGET uninstall OR NOT PROJECT_IS_TOP_LEVEL)
	set(weft_uninstall weft_uninstall)
endif()
add_custom_target(
	${weft_uninstall}
	COMMAND ${CMAKE_COMMAND} -D MANIFEST=${CMAKE_BINARY_DIR}/install_manifest -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake
	COMMENT "Removing what was installed"
	VERBATIM)
