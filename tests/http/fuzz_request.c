/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * HTTP/1.1 requests for libFuzzer. An input is a program: a byte below the number of words adds a word of a request,
 * and any other byte is sent unchanged. Responses must begin like a response.
 */
#include "fuzz_server.h"

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
    "", /* a zero byte */
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

/* Each word alone, and as a field of a request that has a body and is followed by a second request. */
static size_t fuzz_seed(unsigned index, unsigned char data[FUZZ_SEED_MOST])
{
	const unsigned char alone[] = {(unsigned char)index, (unsigned char)index, 6},
			    field[] = {(unsigned char)index, 2, (unsigned char)(index - WORDS), 10, 6, 28, 0};

	if (index < WORDS) {
		memcpy(data, alone, sizeof alone);
		return sizeof alone;
	}
	memcpy(data, field, sizeof field);
	return index < 2 * WORDS ? sizeof field : 0;
}

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned random)
{
	return fuzz_mutate_words(data, size, most, random, 1, WORDS);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	fuzz.length = 0;
	fuzz.pieces = size ? data[0] % 16 : 0;
	for (size_t i = 1; i < size; i++)
		fuzz_add_word(words, WORDS, data[i]);
	fuzz_simulate(exchange);
	/* After a preface the server speaks HTTP/2, and its first frame is SETTINGS. */
	CHECK(!answer.length || (answer.length > 12 && !memcmp(answer.data, "HTTP/1.1 ", 9)) ||
	      (answer.length >= 9 && answer.data[3] == 4));
	return 0;
}
