/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requests of HTTP/1.1 for libFuzzer. An input is a program: each byte below the number of words adds a word of a
 * request, others are sent as they are. Responses must begin as responses do.
 */
#include "fuzz.h"

static const char *const words[] = {
    "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\n",
    "POST /x?a=1%20b HTTP/1.1\r\nHost: h\r\n",
    "HEAD /%2e%2e/y HTTP/1.0\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
    "PUT http://h/z HTTP/1.1\r\nHost: h\r\n",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "Content-Length: 5\r\n",
    "Content-Length: 20000\r\n",
    "Content-Length: +1\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "5\r\nabcde\r\n",
    "1;x=\"y\"\r\na\r\n",
    "0\r\n\r\n",
    "0\r\nX-Sum: 1\r\n\r\n",
    "ffffffffffffffffff\r\n",
    "Expect: 100-continue\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Upgrade: h2c\r\nConnection: Upgrade\r\n",
    "Host: h\r\n",
    "X: ",
    " folded\r\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abcde",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
    "HTTP/1.1 200 OK\r\n",
};
enum { WORDS = sizeof words / sizeof *words };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	size_t i, length;

	fuzz.length = 0;
	fuzz.pieces = size ? data[0] % 16 : 0;
	for (i = 1; i < size; i++)
		if (data[i] < WORDS) {
			length = strlen(words[data[i]]);
			fuzz_add(words[data[i]], length ? length : 1);
		} else {
			fuzz_add(&data[i], 1);
		}
	fuzz_run();
	/* A preface begins HTTP/2, whose first frame is SETTINGS. */
	CHECK(!fuzz.got_length || (fuzz.got_length > 12 && !memcmp(fuzz.got, "HTTP/1.1 ", 9)) ||
	      (fuzz.got_length >= 9 && fuzz.got[3] == 4));
	return 0;
}
