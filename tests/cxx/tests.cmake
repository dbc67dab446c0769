# SPDX-License-Identifier: MIT OR Apache-2.0
#
# C++: headers without warnings, exceptions, effects of C++ types, forced unwinding; weft.hpp, on several policies, and
# without exceptions and type information; programs that must not compile; and thread-local variables after migration.
weft_part(cxx cxx SLOW)

set(pedantic -Wall -Wextra -Wpedantic -Werror)
set(strict ${pedantic} -Wshadow -Wconversion)
set(includes ${weft_root}/include)

# headers(COMPILER DRIVER FILE STANDARD…)
function(cxx_headers compiler driver file)
	foreach(standard IN LISTS ARGN)
		foreach(how -I -isystem)
			weft_test(headers.${standard}${how}.${compiler}
				COMMAND ${driver} -std=${standard} ${strict} ${how} ${includes} -c ${weft_tests}/cxx/${file} -o /dev/null)
		endforeach()
	endforeach()
endfunction()

# program(NAME FLAG…): a program whose name tells how it is compiled. Sets `program`.
function(cxx_program name)
	weft_named(how ${name} ${ARGN})
	weft_program(${how} ${compiler} SOURCES ${name}.cc FLAGS ${pedantic} ${ARGN})
	weft_test(${how}.${compiler} COMMAND @${how}.${compiler} SECONDS 100)
	set(program ${how} PARENT_SCOPE)
endfunction()

foreach(compiler IN LISTS weft_compilers)
	set(driver ${weft_${compiler}_cxx})
	cxx_headers(${compiler} ${weft_${compiler}} headers.c c11 gnu11 c17)
	cxx_headers(${compiler} ${driver} headers.cc c++17 c++20 gnu++20)
	foreach(standard c11 c17 c++17 c++20)
		set(command ${weft_tests}/cxx/warned.py warned.c ${weft_${compiler}})
		if(standard MATCHES "c[+][+]")
			set(command ${weft_tests}/cxx/warned.py warned.cc ${driver})
		endif()
		list(APPEND command -std=${standard})
		weft_test(warned.${standard}.${compiler} COMMAND ${command} -Wall -Wextra -Wpedantic -I ${includes})
		if(compiler STREQUAL clang)
			weft_test(warned.${standard}.everything COMMAND ${command} -Weverything -isystem ${includes})
		endif()
	endforeach()
	# A header that permanently silences the user's warnings.
	weft_test(canary.warned.${compiler} COMMAND ${weft_tests}/cxx/warned.py warned.c ${weft_${compiler}} -std=c11 -Wall -Wextra -Wpedantic
		-I ${includes} -include ${weft_tests}/cxx/silences.h FAILS SAYS "only lines")
	foreach(name exceptions effects cancel)
		cxx_program(${name} -std=c++17 -O0)
		cxx_program(${name} -std=c++20 -O2)
		cxx_program(${name} -std=c++17 -O3 -flto)
	endforeach()
	foreach(how "-std=c++17;-O0" "-std=c++20;-O2")
		foreach(name coroutine generator handlers await)
			if(how MATCHES "c[+][+]17" AND name STREQUAL await)
				continue()
			endif()
			cxx_program(${name} -Wshadow -Wconversion ${how})
			weft_test(${program}.${compiler} COMMAND @${program}.${compiler} ON copy commit segmented heap SECONDS 100)
		endforeach()
		cxx_program(bare -fno-exceptions -fno-rtti ${how})
	endforeach()

	# Reports of mistakes where no exception can be thrown.
	weft_program(refused ${compiler} SOURCES refused.cc FLAGS ${pedantic} -std=c++17 -fno-exceptions)
	weft_test(refused.coroutine.${compiler} COMMAND @refused.${compiler} coroutine ENDS 134 SAYS "^weft: cannot make a coroutine: [^\n]+$")
	weft_test(refused.void.${compiler} COMMAND @refused.${compiler} void ENDS 134
		SAYS "^weft: a body that returns nothing has returned, and its handler answers something: add weft::on_return$")
	weft_test(refused.then.${compiler} COMMAND @refused.${compiler} then ENDS 134 SAYS "^weft: no memory for what weft::then was given: give it less")
	weft_test(refused.forward.${compiler} COMMAND @refused.${compiler} forward ENDS 134
		SAYS "^weft: effect .length. forwarded: its arguments were moved into the clause. perform it there instead$")

	# Clauses of weft::handle that do not fit.
	set(wrong ${weft_tests}/wrong.py)
	string(REGEX REPLACE "^gcc$" "g++" name ${compiler})
	string(REGEX REPLACE "^clang$" "clang++" name ${name})
	file(GLOB mistakes CONFIGURE_DEPENDS ${weft_tests}/cxx/wrong/*.cc)
	foreach(file IN LISTS mistakes)
		get_filename_component(mistake ${file} NAME_WE)
		weft_test(wrong.${mistake}.${compiler} COMMAND ${wrong} ${name} ${file} ${driver} -std=c++17 -Wall -Wextra)
	endforeach()
	weft_test(canary.wrong.${compiler} COMMAND ${wrong} ${name} ${weft_tests}/cxx/bare.cc ${driver} -std=c++17 FAILS SAYS "it compiles")

	# refused(WHAT REGEX)
	set(compile ${driver} -std=c++20 -I${includes} -fsyntax-only)
	weft_test(moved.${compiler} COMMAND ${compile} ${weft_tests}/cxx/refused/moved.cc)
	foreach(line "copied: (deleted function|implicitly-deleted copy constructor)" "result: no matching (function for call to|constructor for)"
			"answer: weft_on.op.[.]abort.fn.: Answer fn.params...., with what weft::handle returns"
			"reference: declare the operation's parameters as values, not as references" "element: no match[a-z ]* .*weft::yielder<int>")
		string(REGEX MATCH "^([a-z]+): (.*)$" all "${line}")
		weft_test(refused.${CMAKE_MATCH_1}.${compiler} COMMAND ${compile} ${weft_tests}/cxx/refused/${CMAKE_MATCH_1}.cc
			ENDS 1 SAYS "error: .*${CMAKE_MATCH_2}" ENV LC_ALL=C)
	endforeach()

	# Thread-local variables after migration, in an executable and in a shared object.
	foreach(level O0 O2 O3)
		weft_program(tls.${level} ${compiler} SOURCES tls.c tls_other.c tls_main.c FLAGS -${level})
		weft_shared(tls.${level} ${compiler} WEFT SOURCES tls.c tls_other.c FLAGS -${level})
		weft_program(tls.${level}.shared ${compiler} SOURCES tls_main.c FLAGS -${level} SHARED tls.${level}.${compiler})
		weft_test(tls.${level}.${compiler} COMMAND @tls.${level}.${compiler})
		weft_test(tls.${level}.shared.${compiler} COMMAND @tls.${level}.shared.${compiler})
	endforeach()
	# The compiler keeps addresses over a switch unless that is prevented.
	weft_test(canary.tls.${compiler} COMMAND @tls.O2.${compiler} SAYS "plain accesses [1-9]")
endforeach()
weft_test(canary.warning COMMAND gcc ${pedantic} -isystem ${includes} -c ${weft_tests}/cxx/bad.c -o /dev/null FAILS SAYS "unused variable")
