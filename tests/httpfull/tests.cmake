# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The web server behind nginx, under a browser, and under h2spec.
weft_part(httpfull http)

if(NOT WEFT_HAS_HTTP OR NOT WEFT_HAS_OPENSSL)
	weft_skip(clients "llhttp or OpenSSL is not here")
	return()
endif()
set(link)
if(weft_llhttp_library)
	set(link LINK ${weft_llhttp_library})
endif()
weft_program(tool gcc SOURCES ${weft_root}/examples/httpd.c ${weft_http_sources} ${weft_llhttp_sources} FLAGS -isystem ${weft_llhttp_include}
	     -fexceptions ${link})
foreach(client nginx browser)
	weft_test(${client} COMMAND ${Python3_EXECUTABLE} ${weft_tests}/http/clients.py @tool.gcc ${client} SECONDS 180)
endforeach()

if(NOT WEFT_HAS_NGHTTP2)
	weft_skip(http2 "nghttp2 is not here: apt-get install --no-install-recommends libnghttp2-dev")
	return()
endif()
set(serve SOURCES ${weft_tests}/http/serve.c ${weft_http_sources} ${weft_llhttp_sources} FLAGS -isystem ${weft_llhttp_include} -fexceptions ${link})
weft_program(serve gcc ${serve})
weft_program(h2_forgets_closed gcc ${serve} CANARY h2_forgets_closed)
foreach(kind plain tls)
	weft_test(h2spec.${kind} COMMAND ${Python3_EXECUTABLE} ${weft_tests}/httpfull/h2spec.py @serve.gcc ${kind} SECONDS 120)
endforeach()
weft_test(canary.h2_forgets_closed COMMAND ${Python3_EXECUTABLE} ${weft_tests}/httpfull/h2spec.py @h2_forgets_closed.gcc plain http2/5.1.1
	  FAILS SAYS "not ok - http2/5.1.1 Sends stream identifier that is numerically smaller than previous: GOAWAY")

# libFuzzer, with inputs drawn anew from the same random numbers. tests/http/fuzz.h defines the inputs.
execute_process(COMMAND ${weft_clang} -print-libgcc-file-name -rtlib=compiler-rt OUTPUT_VARIABLE fuzzer)
string(REGEX REPLACE "builtins(-[a-z0-9_]+)?[.]a.*" "fuzzer\\1.a" fuzzer "${fuzzer}")
weft_sanitizer_works(works clang address,undefined)
if(NOT works OR NOT EXISTS "${fuzzer}")
	weft_skip(fuzz "clang has no libFuzzer: apt-get install --no-install-recommends clang-16 libclang-rt-16-dev")
	return()
endif()
function(httpfull_fuzz_program program name)
	weft_program(${program} clang-asan SOURCES ${weft_tests}/http/fuzz_${name}.c ${weft_http_sources} ${weft_llhttp_sources}
		     FLAGS -isystem ${weft_llhttp_include} -fexceptions -fsanitize=fuzzer-no-link LINK ${weft_llhttp_library} -fsanitize=fuzzer ${ARGN})
endfunction()
set(names request frames response)
set(canaries http_leaves_root h2_body_has_two_owners http_client_has_room)
foreach(name canary IN ZIP_LISTS names canaries)
	httpfull_fuzz_program(fuzz_${name} ${name})
	weft_test(fuzz.${name} COMMAND ${weft_tests}/httpfull/fuzz @fuzz_${name}.clang-asan 3000 SECONDS 120)
	httpfull_fuzz_program(${canary} ${name} CANARY ${canary})
	weft_test(canary.${canary} COMMAND ${weft_tests}/httpfull/fuzz @${canary}.clang-asan 3000 FAILS SAYS "not ok - .*AddressSanitizer" SECONDS 120)
endforeach()
