# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The example's proxy and chat server under good, slow and hostile peers. A soak of half an hour: iosoak/soak.gcc 1800 2, with WEFT_IO.
weft_part(iosoak io)

weft_program(soak gcc SOURCES soak.c proxy.c chat.c)
weft_test(soak.epoll COMMAND @soak.gcc 24 2 ENV WEFT_IO=epoll SECONDS 150)
if(EXISTS /usr/include/liburing.h)
	weft_test(soak.io_uring COMMAND @soak.gcc 24 2 ENV WEFT_IO=io_uring SECONDS 150)
endif()
foreach(canary_and_says "a_byte_is_wrong byte_at" "a_descriptor_stays settled_descriptors")
	separate_arguments(words UNIX_COMMAND ${canary_and_says})
	list(GET words 0 canary)
	list(GET words 1 says)
	weft_program(${canary} gcc SOURCES soak.c proxy.c chat.c FLAGS -DWEFT_CANARY_${canary})
	weft_test(canary.${canary} COMMAND @${canary}.gcc 6 1 FAILS SAYS "not ok - .*${says}" SECONDS 120)
endforeach()
