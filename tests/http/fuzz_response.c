/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * HTTP/1.1 responses that the client reads, for libFuzzer. An input is a program. Its first two bytes select the
 * client's request and the division of the bytes; each byte below the number of words adds a word of a response, and
 * any other byte is sent unchanged. END is the end of an answer: the server waits for another request.
 *
 * If nothing depends on which side is faster, the input runs again with all bytes of an answer in one piece: the result
 * of the first exchange must be the same.
 */
#include "fuzz.h"

#include <errno.h>
#include <weft/http_client.h>

static const char *const words[] = {
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 200 OK\r\n",
    "HTTP/1.1 204 No Content\r\n",
    "HTTP/1.1 304 Not Modified\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\n",
    "HTTP/1.1 101 Switching Protocols\r\n",
    "HTTP/1.1 302 Found\r\n",
    "HTTP/1.1 307 Temporary Redirect\r\n",
    "HTTP/1.1 404\r\n",
    "HTTP/2.0 200 OK\r\n",
    "\r\n",
    "\n",
    "\r",
    "",
    "Content-Length: 5\r\n",
    "Content-Length: 20000\r\n",
    "Content-Length: +1\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "5\r\nabcde\r\n",
    "1;x=\"y\"\r\na\r\n",
    "0\r\n\r\n",
    "0\r\nX-Sum: 1\r\nX-Sum: \r\n\r\n",
    "ffffffffffffffffff\r\n",
    "4000\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Location: /a?b#c\r\n",
    "Location: http://127.0.0.1:8080/\r\n",
    "Location: //h:99999/\r\n",
    "Location: ../%zz\r\n",
    "X: ",
    ":",
    " folded\r\n",
    "abcde",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "a: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\n",
};
enum { WORDS = sizeof words / sizeof *words, END = WORDS, ANSWERS = 16, BODY_MOST = 100000 };

/* The client's request: its method, and flags. */
enum { METHODS = 3, STREAMS = 4, EXPECTS = 8, FOLLOWS = 16, LIMITED = 32, SIPS = 64 };
static const char *const methods[METHODS + 1] = {"GET", "HEAD", "POST", "PUT"};

static unsigned mode;
static size_t ends[ANSWERS + 1]; /* the ends of the answers in fuzz.sent */
static unsigned answers;

/* ---- the server -------------------------------------------------------------------------------------------------- */

static struct server {
	int listener;
	unsigned answered;
} server;

/* Returns false if the client has closed the connection. */
static bool read_request(int fd)
{
	static const char end[] = "\r\n\r\n";
	unsigned matched = 0;
	char byte;

	while (matched < 4) {
		if (weft_read(fd, &byte, 1) <= 0)
			return false;
		matched = byte == end[matched] ? matched + 1 : byte == '\r';
	}
	return true;
}

static void *serve(void *connection)
{
	int fd = (int)(intptr_t)connection;
	unsigned i;

	while (server.answered < answers && read_request(fd) && (i = server.answered++) < answers &&
	       fuzz_send(fd, ends[i], ends[i + 1]))
		;
	weft_close(fd);
	return NULL;
}

static void *accept_all(void *unused)
{
	int fd;

	WEFT_SCOPE(scope);
	while ((fd = weft_accept(server.listener, NULL, NULL, 0)) >= 0)
		CHECK(!weft_scope_spawn(&scope, serve, (void *)(intptr_t)fd));
	return unused;
}

/* ---- the client -------------------------------------------------------------------------------------------------- */

/* The result of an exchange. */
static struct outcome {
	int status;
	ssize_t error; /* while reading the body; 0: none */
	size_t length, head_length;
	char body[BODY_MOST], head[BODY_MOST];
} outcomes[2], *outcome;

static void check_error(ssize_t error)
{
	CHECK(error == -ECONNRESET || error == -EBADMSG || error == -EMSGSIZE || error == -EFBIG || error == -ELOOP ||
	      error == -EPIPE || error == -ECONNREFUSED || error == -ETIMEDOUT || error == -ENOENT || error == -EINVAL);
}

static void check_text(weft_http_text_t text)
{
	for (size_t i = 0; i < text.length; i++)
		CHECK(text.data[i] != '\r' && text.data[i] != '\n' && text.data[i] != '\0');
}

static void note(struct outcome *o, weft_http_text_t text)
{
	check_text(text);
	CHECK(o->head_length + text.length + 1 <= sizeof o->head);
	if (text.length)
		memcpy(o->head + o->head_length, text.data, text.length);
	o->head_length += text.length;
	o->head[o->head_length++] = '\n';
}

static void note_fields(struct outcome *o, weft_http_request_t *r,
			bool (*at)(const weft_http_request_t *, unsigned, weft_http_text_t *, weft_http_text_t *))
{
	weft_http_text_t name, value;

	for (unsigned i = 0; at(r, i, &name, &value); i++) {
		CHECK(name.length);
		note(o, name);
		note(o, value);
	}
}

static bool has_body(const struct outcome *o)
{
	return methods[mode & METHODS][0] != 'H' && o->status != 204 && o->status != 304;
}

static void read_body(struct outcome *o, weft_http_request_t *r)
{
	ssize_t n;

	do {
		n = weft_http_response_read(r, o->body + o->length,
					    mode & SIPS && o->length < 100 ? 1 : sizeof o->body - o->length);
		o->length += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	if (n)
		check_error(o->error = n);
	CHECK(o->length <= fuzz.length && o->length < sizeof o->body);
	if (!n && has_body(o) && weft_http_response_length(r) != WEFT_NEVER)
		CHECK(o->length == weft_http_response_length(r));
	if (!n)
		note_fields(o, r, weft_http_response_trailer_at);
}

static void send_body(weft_http_request_t *r)
{
	if (weft_http_request_write(r, "hello", 5) == 5)
		(void)weft_http_request_finish(r);
}

static bool has_request_body(void)
{
	return methods[mode & METHODS][0] == 'P';
}

static void ask(weft_http_client_t *client, struct outcome *o)
{
	weft_http_request_t *r;

	o->length = o->head_length = 0;
	o->error = 0;
	CHECK(!weft_http_request_open(client, methods[mode & METHODS], "http://127.0.0.1:8080/", &r));
	if (has_request_body() && mode & STREAMS)
		send_body(r);
	else if (has_request_body())
		CHECK(!weft_http_request_set_body(r, "hello", 5));
	o->status = weft_http_response(r);
	if (o->status > 0) {
		CHECK(o->status >= 200 && o->status < 1000);
		note_fields(o, r, weft_http_response_header_at);
		read_body(o, r);
	} else if (o->status != -EINPROGRESS) { /* the server answered, and stopped reading */
		check_error(o->status);
	}
	weft_http_request_close(r);
}

/* Makes two requests, so that the second may use the connection of the first. */
static void ask_twice(struct outcome *o)
{
	const weft_http_client_config_t config = {.flags = (mode & EXPECTS ? WEFT_HTTP_EXPECT : 0) |
							   (mode & FOLLOWS ? 0 : WEFT_HTTP_NO_REDIRECTS),
						  .header_bytes = 8000,
						  .body = mode & LIMITED ? 4 : BODY_MOST / 2};
	weft_http_client_stats_t stats;
	weft_http_client_t *client;
	char data[100];
	ssize_t n;

	CHECK(!weft_http_client_open(&client, &config));
	ask(client, o);
	n = weft_http_get(client, "http://127.0.0.1:8080/", data, sizeof data, NULL);
	if (n < 0)
		check_error(n);
	weft_http_client_stats(client, &stats);
	CHECK(stats.open == stats.idle && stats.idle <= 2);
	CHECK(!weft_http_client_close(client));
}

static void *exchange(void *pass)
{
	weft_scope_t scope;

	server = (struct server){.listener = weft_listen("127.0.0.1", 8080, 0, 0)};
	CHECK(server.listener >= 0);
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, accept_all, NULL));
	ask_twice(outcome);
	CHECK(!weft_close(server.listener));
	CHECK(!weft_scope_wait(&scope));
	return pass;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void run(unsigned number, unsigned pieces)
{
	outcome = &outcomes[number];
	fuzz.pieces = pieces;
	fuzz_simulate(exchange);
}

/* A read or a write may notice that the server resets the connection. Body data before an error may be lost. */
static void compare(const struct outcome *a, const struct outcome *b)
{
	CHECK(a->status == b->status);
	CHECK(a->error == b->error);
	CHECK(a->error || (a->length == b->length && !memcmp(a->body, b->body, a->length)));
	CHECK(a->head_length == b->head_length && !memcmp(a->head, b->head, a->head_length));
}

static void read_program(const unsigned char *data, size_t size)
{
	fuzz.length = 0;
	answers = 0;
	for (size_t i = 2; i < size; i++)
		if (data[i] == END && answers < ANSWERS - 1)
			ends[++answers] = fuzz.length;
		else
			fuzz_add_word(words, WORDS, data[i]);
	ends[++answers] = fuzz.length;
}

/* Each word as a field of a response with a length, and of a response in chunks; many times; before an answer. */
static size_t fuzz_seed(unsigned index, unsigned char data[FUZZ_SEED_MOST])
{
	unsigned char word = (unsigned char)(index % WORDS), kind = (unsigned char)(index / WORDS);
	const unsigned char length[] = {kind, (unsigned char)(index % 7), 0, word, 15, 11, 36, END, 0, 18, 11},
			    chunks[] = {16, (unsigned char)(index % 5), 0, word, 19, 11, 21, 24, END, 0, 18, 11},
			    first[] = {kind, 0, word, 0, 18, 11};

	if (kind < 4)
		return memcpy(data, length, sizeof length), sizeof length;
	if (kind == 4)
		return memcpy(data, chunks, sizeof chunks), sizeof chunks;
	if (kind == 5)
		return memcpy(data, first, sizeof first), sizeof first;
	memcpy(data, (unsigned char[]){0, 3, 0}, 3);
	memset(data + 3, word, 50);
	return kind == 6 ? 53 : 0;
}

size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned random)
{
	return fuzz_mutate_words(data, size, most, random, 2, WORDS + 1);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	if (size < 2)
		return 0;
	mode = data[0];
	read_program(data, size);
	run(0, data[1] % 16);
	if (has_request_body() || mode & FOLLOWS)
		return 0;
	run(1, 0);
	compare(&outcomes[0], &outcomes[1]);
	return 0;
}
