/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends requests by the client, for same.py. Each line of the input is a request:
 *
 *   METHOD URL HOW LENGTH    HOW: none, memory, length, chunked: how its body of LENGTH bytes is sent
 *
 * The output for it has lines: "status N" or "error N", "version N", "field NAME: VALUE", "trailer NAME: VALUE", and
 * "body LENGTH CRC32". Byte number i of a body is i * 7 + LENGTH. The argument is a file of authorities, for https.
 */
#include "../sched/check.h"

#include <weft/http_client.h>

static uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		crc ^= data[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return crc;
}

static int send_pieces(weft_http_request_t *r, const char *data, size_t length)
{
	for (size_t at = 0, piece; at < length; at += piece) {
		piece = 1 + at * 3 % 5000;
		piece = piece < length - at ? piece : length - at;
		if (weft_http_request_write(r, data + at, piece) != (ssize_t)piece)
			return 0; /* the response has the reason */
	}
	return weft_http_request_finish(r);
}

static int ask(weft_http_request_t *r, const char *how, const char *body, size_t length)
{
	int error = 0;

	if (!strcmp(how, "memory"))
		error = weft_http_request_set_body(r, body, length);
	else if (!strcmp(how, "length"))
		error = weft_http_request_set_length(r, length);
	if (!error && (!strcmp(how, "length") || !strcmp(how, "chunked")))
		error = send_pieces(r, body, length);
	return error ? error : weft_http_response(r);
}

static void report(weft_http_request_t *r, int status)
{
	unsigned char data[3000];
	weft_http_text_t name, value;
	uint32_t crc = UINT32_MAX;
	size_t length = 0;
	ssize_t n = status;

	printf("%s %d\n", status < 0 ? "error" : "status", status);
	printf("version %u\n", weft_http_response_version(r));
	for (unsigned i = 0; weft_http_response_header_at(r, i, &name, &value); i++)
		printf("field %.*s: %.*s\n", (int)name.length, name.data, (int)value.length, value.data);
	while (n > 0 && (n = weft_http_response_read(r, data, sizeof data)) > 0) {
		crc = crc_of(crc, data, (size_t)n);
		length += (size_t)n;
	}
	for (unsigned i = 0; weft_http_response_trailer_at(r, i, &name, &value); i++)
		printf("trailer %.*s: %.*s\n", (int)name.length, name.data, (int)value.length, value.data);
	if (n < 0)
		printf("error %zd\n", n);
	printf("body %zu %08x\n", length, ~crc);
	fflush(stdout);
}

static void *run(void *authorities)
{
	weft_http_client_config_t config = {.flags = WEFT_HTTP_NO_REDIRECTS};
	char line[1000], method[20], url[600], how[20], *body;
	weft_http_client_t *client;
	weft_http_request_t *r;
	size_t length;

	CHECK(!authorities || !weft_http_tls_client_open(&config.tls, authorities, NULL));
	CHECK(!weft_http_client_open(&client, &config));
	while (fgets(line, sizeof line, stdin)) {
		CHECK(sscanf(line, "%19s %599s %19s %zu", method, url, how, &length) == 4);
		body = malloc(length + 1);
		for (size_t i = 0; i < length; i++)
			body[i] = (char)(i * 7 + length);
		CHECK(!weft_http_request_open(client, method, url, &r));
		report(r, ask(r, how, body, length));
		weft_http_request_close(r);
		free(body);
	}
	CHECK(!weft_http_client_close(client));
	weft_http_tls_close(config.tls);
	return NULL;
}

int main(int argc, char **argv)
{
	CHECK(!weft_rt_run(NULL, run, argc > 1 ? argv[1] : NULL, NULL));
	return 0;
}
