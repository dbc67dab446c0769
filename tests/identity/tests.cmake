# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Declarations of one effect are one effect, however they are linked, and two effects stay different, whatever their
# names.
weft_part(identity effect QUICK)

set(warn -Wall -Wextra)
set(cxx ${warn} -x c++ -std=c++14)
list(JOIN cxx " " cxx_flags)
weft_shared(weft gcc WEFT)
set(with SHARED weft.gcc LINK -ldl)

find_program(WEFT_LLD NAMES ld.lld-16 ld.lld)
foreach(compiler IN LISTS weft_compilers)
	# The performing code is in a shared object, linked with these flags: the program must handle its effects.
	foreach(how "" -Wl,-Bsymbolic -Wl,-Bsymbolic-functions -fvisibility=hidden "-Wl,-Bsymbolic -O2 -flto"
			"-O2 -Wl,--gc-sections -fdata-sections -Wl,-Bsymbolic")
		separate_arguments(flags UNIX_COMMAND "${how}")
		weft_named(name linked ${flags})
		weft_shared(performs.${name} ${compiler} SOURCES performs.c FLAGS ${warn} ${flags})
		weft_program(${name} ${compiler} SOURCES main.c handles.c FLAGS ${warn} -O1 -DEVERYTHING SHARED performs.${name}.${compiler} weft.gcc
			LINK -ldl)
		weft_test(${name}.${compiler} COMMAND @${name}.${compiler})
	endforeach()

	# The same code in two shared objects that know nothing of each other.
	weft_program(loads ${compiler} SOURCES loads.c FLAGS ${warn} ${with})
	foreach(how "" -fvisibility=hidden "-O2 -flto")
		separate_arguments(flags UNIX_COMMAND "${how}")
		weft_named(name loaded ${flags})
		foreach(which one other)
			weft_shared(${which}.${name} ${compiler} SOURCES performs.c handles.c FLAGS ${warn} -O1 ${flags} ${with})
		endforeach()
		weft_test(${name}.${compiler} COMMAND @loads.${compiler} @libone.${name}.${compiler}.so @libother.${name}.${compiler}.so)
	endforeach()

	# Plugins that are loaded and unloaded in any order. The library is in the program, or shared.
	set(plugins)
	foreach(plugin "1 -DNAME=alpha -DTYPE=int" "2 -DNAME=bravo -DTYPE=int" "3 -DNAME=alpha -DTYPE=long"
			"4 -DNAME=alpha -DTYPE=int ${cxx_flags}" "5 -DNAME=bravo -DTYPE=int ${cxx_flags}" "6 -DNAME=alpha -DTYPE=int -DSPACE=plug ${cxx_flags}"
			"7 -DNAME=alpha -DTYPE=int -DSPACE=plug" "8 -DNAME=alpha -DTYPE=long ${cxx_flags}" 9 10 11 12)
		separate_arguments(flags UNIX_COMMAND "${plugin}")
		list(POP_FRONT flags id)
		weft_object(object ${compiler} unloads_plugin.c ${warn} -O1 -fPIC -DID=${id} ${flags})
		weft_shared(plugin${id} ${compiler} OBJECTS ${object} LINK -lstdc++)
		list(APPEND plugins @libplugin${id}.${compiler}.so)
	endforeach()
	weft_program(unloads.static ${compiler} SOURCES unloads.c FLAGS ${warn} LINK -rdynamic -ldl)
	weft_program(unloads.shared ${compiler} SOURCES unloads.c FLAGS ${warn} -O2 ${with})
	foreach(kind static shared)
		weft_test(unloads.${kind}.${compiler} COMMAND @unloads.${kind}.${compiler} 1 ${plugins})
	endforeach()
	if(compiler STREQUAL gcc)
		foreach(canary unloading_forgets_nothing unloading_forgets_only_here defaults_outlive_their_code descriptions_are_left_behind)
			weft_program(${canary} gcc SOURCES unloads.c FLAGS ${warn} CANARY ${canary} LINK -rdynamic -ldl)
			set(seen FAILS SAYS "does not hold")
			if(canary STREQUAL descriptions_are_left_behind)
				set(seen ENDS 139) # it reads a name in the unloaded plugin
			endif()
			weft_test(canary.${canary} COMMAND @${canary}.gcc 1 ${plugins} ${seen})
		endforeach()
	endif()

	set(hows -O0 -O2 "-O2 -fPIC" "-O2 -fdata-sections -Wl,--gc-sections" "-O2 -flto")
	if(WEFT_LLD AND compiler STREQUAL "clang")
		list(APPEND hows "-O2 -Wl,--gc-sections -fuse-ld=lld")
	endif()
	foreach(how IN LISTS hows)
		separate_arguments(flags UNIX_COMMAND "${how}")
		weft_named(name ${flags})
		# Both in one program, with the performing code compiled as C++.
		weft_object(performs ${compiler} performs.c ${cxx} ${flags})
		weft_program(together${name} ${compiler} SOURCES main.c handles.c OBJECTS ${performs} FLAGS ${warn} ${flags} SHARED weft.gcc
			LINK -ldl -lstdc++)
		weft_test(together${name}.${compiler} COMMAND @together${name}.${compiler})
		# Namespaces of C++.
		weft_object(spaces ${compiler} spaces.c ${warn} ${flags})
		weft_program(spaces${name} ${compiler} SOURCES spaces.cc OBJECTS ${spaces} FLAGS ${warn} -std=c++14 ${flags} ${with})
		weft_test(spaces${name}.${compiler} COMMAND @spaces${name}.${compiler})
		# Two effects of one name.
		weft_object(other ${compiler} both.c ${warn} ${flags} -DOTHER)
		weft_program(both${name} ${compiler} SOURCES both.c OBJECTS ${other} FLAGS ${warn} ${flags} ${with})
		weft_test(both${name}.${compiler} COMMAND @both${name}.${compiler})
	endforeach()

	# An unhandled effect is reported with both declarations, in the form of the source.

	weft_program(mistaken.family ${compiler} SOURCES mistaken.c performs_get.c FLAGS ${warn} ${with})
	weft_program(mistaken.space ${compiler} SOURCES mistaken.c performs_get.c FLAGS ${warn} -DSPACE -O2 ${with})
	weft_program(mistaken.alone ${compiler} SOURCES alone.cc FLAGS ${warn} -std=c++14 ${with})
	set(begins "^weft: unhandled effect \"get\": int get..")
	set(performed "of state.int get... void put.int.. is performed, handled is int get..")
	weft_test(mistaken.family.${compiler} COMMAND @mistaken.family.${compiler} ENDS 134
		SAYS "${begins} ${performed} of state.int get... void put.long... declare both alike$")
	weft_test(mistaken.space.${compiler} COMMAND @mistaken.space.${compiler} ENDS 134
		SAYS "${begins} ${performed} of elsewhere.state.int get... void put.int... declare both alike$")
	weft_test(mistaken.alone.${compiler} COMMAND @mistaken.alone.${compiler} ENDS 134
		SAYS "${begins} of ours::inner is performed, handled is int get.. of net.sockets. declare both alike$")
endforeach()

# The performing code was compiled with a different declaration.
weft_program(otherwise gcc SOURCES main.c handles.c FLAGS -O1 -DPUT_TAKES_LONG SHARED performs.linked.gcc weft.gcc LINK -ldl)
weft_test(canary.declaration COMMAND @otherwise.gcc ENDS 134 SAYS "declare both alike$")

# A type of two sizes.
weft_shared(mixed.sizes gcc SOURCES mixed.c FLAGS ${warn} -DLIBRARY -DMORE ${with})
weft_program(mixed.sizes gcc SOURCES mixed.c FLAGS ${warn} SHARED mixed.sizes.gcc weft.gcc)
weft_test(mixed.sizes COMMAND @mixed.sizes.gcc ENDS 134
	SAYS "^weft: effect \"measure\" is declared twice, as int measure.point_t., with types of different size: give the types")

# A fork while another thread is inside dlopen, or uses Weft for the first time.
weft_shared(loaded gcc SOURCES performs.c FLAGS ${warn} ${with})
foreach(compiler IN LISTS weft_compilers)
	weft_program(forks ${compiler} SOURCES forks.c FLAGS ${warn} -O1 ${with})
	weft_test(forks.${compiler} COMMAND @forks.${compiler} @libloaded.gcc.so ON overcommit fixed commit copy)
endforeach()
weft_program(asks-loader gcc SOURCES forks.c FLAGS -O1 CANARY asks_loader LINK -ldl)
weft_test(canary.forks COMMAND @asks-loader.gcc libm.so.6 FAILS SAYS "beside dlopen: status e")
