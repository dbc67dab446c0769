# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The HTTP server against a client of its own, which sends bytes and knows the RFCs' answers: on both back ends, and in the simulated
# world under many seeds.
weft_part(http http QUICK)

if(NOT WEFT_HAS_HTTP)
	weft_skip(raw "llhttp is not here: ./weft test fetches it by pip3 (Debian: python3-pip)")
	return()
endif()
if(weft_llhttp_library)
	set(link LINK ${weft_llhttp_library})
endif()
set(flags -isystem ${weft_llhttp_include} -fexceptions)
weft_program(raw gcc SOURCES raw.c ${weft_http_sources} ${weft_llhttp_sources} FLAGS ${flags} ${link})
foreach(io epoll io_uring)
	weft_test(raw.${io} COMMAND @raw.gcc ENV WEFT_IO=${io} SECONDS 60)
endforeach()
weft_test(raw.simulated COMMAND @raw.gcc simulated 20 SECONDS 120)
weft_sanitizer_works(works gcc thread)
if(works)
	weft_program(raw gcc-tsan SOURCES raw.c ${weft_http_sources} ${weft_llhttp_sources} FLAGS ${flags} ${link})
	weft_test(raw.tsan COMMAND @raw.gcc-tsan SECONDS 120)
endif()
weft_sanitizer_works(works gcc address,undefined)
if(works)
	weft_program(raw gcc-asan SOURCES raw.c ${weft_http_sources} ${weft_llhttp_sources} FLAGS ${flags} ${link})
	weft_test(raw.asan COMMAND @raw.gcc-asan SECONDS 120)
	weft_test(raw.asan.simulated COMMAND @raw.gcc-asan simulated 3 SECONDS 120)
endif()

# Bugs of the server.
foreach(canary http_status_ends_waiting http_chunks_for_all)
	weft_program(${canary} gcc SOURCES raw.c ${weft_http_sources} ${weft_llhttp_sources} FLAGS ${flags} ${link} CANARY ${canary})
	weft_test(canary.${canary} COMMAND @${canary}.gcc FAILS SAYS "not ok - ")
endforeach()
weft_program(http_closes_at_once gcc SOURCES raw.c ${weft_http_sources} ${weft_llhttp_sources} FLAGS ${flags} ${link} CANARY http_closes_at_once)
weft_test(canary.http_closes_at_once COMMAND @http_closes_at_once.gcc simulated 20 FAILS SAYS "not ok - ")
