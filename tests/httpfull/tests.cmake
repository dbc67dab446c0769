# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The web server behind nginx, and under a browser.
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
