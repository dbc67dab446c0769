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
	weft_skip(h2spec "nghttp2 is not here: apt-get install --no-install-recommends libnghttp2-dev")
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
