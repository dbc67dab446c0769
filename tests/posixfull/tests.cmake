# SPDX-License-Identifier: MIT OR Apache-2.0
#
# tests/posix on every policy, under sanitizers, with tasks that move at every step, by clang; and libraries of the distribution as
# they are, with servers that the tests start: 100 tasks of one worker, all inside the library at once.
weft_part(posixfull io)

# posixfull(LIBRARY [ON POLICY…])
function(posixfull library)
	weft_program(posix ${library} SOURCES ../posix/posix.c)
	foreach(back_end IN LISTS posix_back_ends)
		weft_test(posix.${back_end}.${library} COMMAND @posix.${library} 8 ENV WEFT_IO=${back_end} SECONDS 120 ${ARGN})
	endforeach()
endfunction()

posixfull(gcc ON ${weft_policies})
posixfull(gcc-migrate)
posixfull(gcc-tiny)
foreach(compiler IN LISTS weft_compilers)
	if(NOT compiler STREQUAL gcc)
		posixfull(${compiler})
	endif()
	weft_sanitizer_works(works ${compiler} address,undefined)
	if(works)
		posixfull(${compiler}-asan)
	endif()
endforeach()

# On linked stacks these calls, and libraries, run on system stacks, which a task keeps while it waits.
weft_linked(posix segmented gcc SOURCES ../posix/posix.c FLAGS -O1)
weft_test(linked COMMAND @posix.segmented.gcc 8 ON segmented:1K)

# library(NAME HEADER SERVER LINK PACKAGE [FLAG…]): without libweft-posix.so they go one by one, which the test must see.
function(library name header server link package)
	find_path(weft_${name}_h ${header} PATH_SUFFIXES postgresql)
	if(NOT weft_${name}_h)
		weft_skip(${name} "${header} is missing: apt-get install --no-install-recommends ${package}")
		return()
	endif()
	string(TOUPPER ${name} kind)
	weft_program(${name} gcc SOURCES libraries.c FLAGS -DWITH_${kind} -isystem ${weft_${name}_h} LINK ${link})
	foreach(back_end IN LISTS posix_back_ends)
		weft_test(${name}.${back_end} COMMAND ${weft_tests}/posixfull/with_server ${server} @${name}.gcc 100 1 ENV WEFT_IO=${back_end}
			  POSIX_SO=${posix_so} NEEDS ${posix_so} SECONDS 120)
	endforeach()
	weft_test(${name}.workers COMMAND ${weft_tests}/posixfull/with_server ${server} @${name}.gcc 30 8 ENV POSIX_SO=${posix_so} NEEDS ${posix_so}
		  SECONDS 120)
	weft_test(canary.${name} COMMAND ${weft_tests}/posixfull/with_server ${server} @${name}.gcc 3 1 ENDS 1|77 SAYS "only 1 of 3|is missing")
endfunction()
library(pq libpq-fe.h postgres -lpq libpq-dev)
library(redis hiredis/hiredis.h redis -lhiredis libhiredis-dev)
library(curl curl/curl.h http -lcurl libcurl4-openssl-dev)

# The examples of docs/howto/concurrent-library.md, as a new user tries them.
if(weft_pq_h)
	weft_test(queries COMMAND ${weft_tests}/posixfull/with_server postgres ${weft_tests}/posixfull/try_queries SAYS "sum 4950, after" ENDS 0|77
		  SECONDS 120 NEEDS ${weft_cc})
endif()
weft_test(ping COMMAND ${weft_root}/weft run ${weft_root}/examples/libraries/ping.c SAYS "z.z" NEEDS ${weft_cc})
# A program without tasks gets a message; a program that cannot be preloaded is refused; a script runs.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/posixfull/without.c "int main(void) { return 3; }\n")
weft_test(useless COMMAND ${weft_root}/weft run --posix ${CMAKE_CURRENT_BINARY_DIR}/posixfull/without.c ENDS 3 SAYS "has no tasks of Weft" NEEDS
	  ${weft_cc})
# A program with tasks that links nothing of the shared object.
set(unlinked ${CMAKE_CURRENT_BINARY_DIR}/posixfull/unlinked)
weft_test(unlinked COMMAND sh -c "\"$@\" && exec \"${weft_root}/weft\" run --posix \"$0\"" ${unlinked} ${link} ${archive} -pthread -o ${unlinked}
	  SAYS "was linked without weft-posix" NEEDS ${archive} ${weft_cc})
weft_program(static gcc SOURCES ${CMAKE_CURRENT_BINARY_DIR}/posixfull/without.c LINK -static BARE)
weft_test(static COMMAND ${weft_root}/weft run --posix @static.gcc ENDS 2 SAYS "is linked statically")
