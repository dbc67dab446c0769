/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cases of client.c: a server's answers, and the results that a client must report by RFC 9110 and RFC 9112. If an
 * RFC allows several results, `or` is a second allowed result, unless weft/http_client.h promises a particular result
 * (design, 5).
 */
#ifndef WEFT_TESTS_HTTP_CLIENT_CASES_H
#define WEFT_TESTS_HTTP_CLIENT_CASES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <weft/http_client.h>

enum { ANSWERS = 5, PIECES = 4 };

/* Bytes, repeated `times` times. In the piece after the last, `data` is NULL. */
struct piece {
	const char *data;
	size_t length;
	unsigned times;
};

/* The server's next step, after an answer. */
enum action {
	STAY,  /* it reads the next request */
	CLOSE, /* it closes the connection */
	RESET, /* it resets the connection */
	HANG,  /* it does nothing until the client closes the connection */
};

struct answer {
	struct piece parts[PIECES];
	enum action action;
	bool early;	/* it does not read the request's body before the answer; but it reads the body after a 1xx
			 * answer, and the next answer follows */
	unsigned pause; /* milliseconds before each part */
};

/* Whether the next request uses the connection of the last answer. */
enum after {
	REUSED, /* the next request uses it */
	ENDED,	/* the next request does not use it */
	ANY,	/* not checked */
};

struct client_case {
	const char *name;
	int result, or ; /* a status, or a negative errno of weft_http_response or weft_http_response_read */
	enum after after;
	struct answer answers[ANSWERS]; /* "@PORT@" and "@OTHER@" stand for the ports of the two servers */
	const char *body;		/* the body that the client must get; NULL: not checked */
	size_t length;			/* of a long body; if set, `body` is not checked */
	const char *method, *target;	/* NULL: "GET", "/" */
	const char *sends;		/* a request body in memory */
	const char *fields;		/* "name: value|name: value": fields of the request */
	const char *field, *trailer;	/* "name: value": in the response */
	const char *wants, *lacks;	/* text that the last request must contain, and text that it must not contain */
	const char *lines;		/* the lines of all requests: "GET /|GET /a"; NULL: not checked */
	const char *informs;		/* 1xx statuses that are reported: "103 103" */
	unsigned connections;		/* the number that the server has seen; 0: not checked */
	unsigned flags;			/* flags for the client */
	uint64_t limit;			/* config.body */
	bool hasty;			/* the client's time limits are short */
	bool loops;			/* after the last answer, the first answer follows again */
};

#define B(text)                                                                                                        \
	{                                                                                                              \
		text, sizeof(text) - 1, 1                                                                              \
	}
#define R(times, text)                                                                                                 \
	{                                                                                                              \
		text, sizeof(text) - 1, times                                                                          \
	}
#define A(text, ...)                                                                                                   \
	{                                                                                                              \
		.parts = {B(text)}, __VA_ARGS__                                                                        \
	}
#define CASE(name_, result_, after_, text, ...)                                                                        \
	{                                                                                                              \
		.name = name_, .result = result_, .after = after_, .answers = {A(text)}, __VA_ARGS__                   \
	}
/* The server closes the connection after its answer. */
#define CLOSES(name_, result_, text, ...)                                                                              \
	{                                                                                                              \
		.name = name_, .result = result_, .after = ENDED, .answers = {A(text, .action = CLOSE)}, __VA_ARGS__   \
	}
#define RESETS(name_, result_, text, ...)                                                                              \
	{                                                                                                              \
		.name = name_, .result = result_, .after = ENDED, .answers = {A(text, .action = RESET)}, __VA_ARGS__   \
	}
#define HANGS(name_, text, ...)                                                                                        \
	{                                                                                                              \
		.name = name_, .result = -ETIMEDOUT, .after = ENDED, .answers = {A(text, .action = HANG)},             \
		.hasty = true, __VA_ARGS__                                                                             \
	}
/* Several answers. */
#define MANY(name_, result_, after_, ...)                                                                              \
	{                                                                                                              \
		.name = name_, .result = result_, .after = after_, __VA_ARGS__                                         \
	}

#define OK "HTTP/1.1 200 OK\r\n"
#define END "\r\n"
#define LENGTH(n) "Content-Length: " n "\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define HELLO OK LENGTH("5") END "hello"
#define CHUNKS(text) OK CHUNKED END text
#define BODY(text) .body = text
#define HELLO_BODY .body = "hello"
#define TO(status, location) "HTTP/1.1 " status " Moved\r\nContent-Length: 0\r\nLocation: " location "\r\n\r\n"

/* ---- framing ----------------------------------------------------------------------------------------------------- */

static const struct client_case framing_cases[] = {
    CASE("a length", 200, REUSED, HELLO, HELLO_BODY, .field = "Content-Length: 5", .lines = "GET /", .connections = 1),
    CASE("the length 0", 200, REUSED, OK LENGTH("0") END, BODY("")),
    CASE("a length with zeros", 200, REUSED, OK LENGTH("005") END "hello", HELLO_BODY),
    CASE("a length in lower case", 200, REUSED, OK "content-length:5\r\n\r\nhello", HELLO_BODY),
    CASE("a length in upper case", 200, REUSED, OK "CONTENT-LENGTH:   5  \r\n\r\nhello", HELLO_BODY),
    CASE("chunks", 200, REUSED, CHUNKS("5\r\nhello\r\n0\r\n\r\n"), HELLO_BODY),
    CASE("two chunks", 200, REUSED, CHUNKS("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), HELLO_BODY),
    CASE("many chunks", 200, REUSED, CHUNKS("1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n"), HELLO_BODY),
    CASE("no chunks", 200, REUSED, CHUNKS("0\r\n\r\n"), BODY("")),
    CASE("a chunk of hexadecimal size", 200, REUSED, CHUNKS("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"),
	 BODY("01234567890123456789")),
    CASE("a chunk size with zeros", 200, REUSED, CHUNKS("0005\r\nhello\r\n000\r\n\r\n"), HELLO_BODY),
    CASE("a chunk with an extension", 200, REUSED, CHUNKS("5;a=b\r\nhello\r\n0;c\r\n\r\n"), HELLO_BODY),
    CASE("a chunk with a quoted extension", 200, REUSED, CHUNKS("5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n"), HELLO_BODY),
    CASE("chunked in upper case", 200, REUSED, OK "Transfer-Encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	 HELLO_BODY),
    CASE("a trailer", 200, REUSED, CHUNKS("5\r\nhello\r\n0\r\nX-Sum: 12\r\n\r\n"), HELLO_BODY, .trailer = "X-Sum: 12"),
    CASE("two trailer fields", 200, REUSED, CHUNKS("5\r\nhello\r\n0\r\nA: 1\r\nX-Sum: 1 2\r\n\r\n"), HELLO_BODY,
	 .trailer = "X-Sum: 1 2"),
    CASE("a trailer and no body", 200, REUSED, CHUNKS("0\r\nX-Sum: 0\r\n\r\n"), BODY(""), .trailer = "X-Sum: 0"),
    CASE("a trailer that looks like a length", 200, REUSED, CHUNKS("5\r\nhello\r\n0\r\nX-Length: 7\r\n\r\n"),
	 HELLO_BODY, .trailer = "X-Length: 7"),
    CLOSES("until the connection closes", 200, OK END "hello", HELLO_BODY),
    CLOSES("nothing until the connection closes", 200, OK END, BODY("")),
    CLOSES("Connection: close and a length", 200, OK LENGTH("5") "Connection: close\r\n\r\nhello", HELLO_BODY),
    CASE("Connection: close, but it stays open", 200, ENDED, OK LENGTH("5") "Connection: close\r\n\r\nhello",
	 HELLO_BODY),
    CASE("Connection: Close among others", 200, ENDED, OK LENGTH("5") "Connection: x, Close\r\n\r\nhello", HELLO_BODY),
    CASE("Connection: close and chunks", 200, ENDED, OK CHUNKED "Connection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	 HELLO_BODY),
    CASE("Connection: keep-alive", 200, REUSED, OK LENGTH("5") "Connection: keep-alive\r\n\r\nhello", HELLO_BODY),
    CASE("Connection: upgrade, and no upgrade", 200, REUSED,
	 OK LENGTH("5") "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\nhello", HELLO_BODY),
    CASE("204", 204, REUSED, "HTTP/1.1 204 No Content\r\n\r\n", BODY("")),
    CASE("204 with the length 0", 204, REUSED, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", BODY("")),
    CASE("204 with a length and a body", 204, ENDED, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
	 BODY("")),
    CASE("204 with a length and no body", 204, ENDED, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", BODY("")),
    CASE("204 with chunks", 204, ENDED, "HTTP/1.1 204 No Content\r\n" CHUNKED "\r\n0\r\n\r\n", BODY("")),
    CASE("304", 304, REUSED, "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", BODY(""), .field = "ETag: \"a\""),
    CASE("304 with a length", 304, REUSED, "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n", BODY("")),
    CASE("HEAD with a length", 200, REUSED, OK LENGTH("500") END, BODY(""), .method = "HEAD"),
    CASE("HEAD with chunks", 200, REUSED, OK CHUNKED END, BODY(""), .method = "HEAD"),
    CASE("HEAD without a length", 200, REUSED, OK END, BODY(""), .method = "HEAD"),
    CASE("HEAD, 404", 404, REUSED, "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n", BODY(""), .method = "HEAD"),
    CASE("HEAD with a body all the same", 200, ENDED, HELLO, BODY(""), .method = "HEAD"),
    CASE("205 without a body", 205, REUSED, "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", BODY("")),
    CASE("404 with a body", 404, REUSED, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", BODY("gone")),
    CASE("500", 500, REUSED, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", BODY("")),
    CASE("599", 599, REUSED, "HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n", BODY("")),
    CASE("299", 299, REUSED, "HTTP/1.1 299 Fine\r\nContent-Length: 0\r\n\r\n", BODY("")),
    CASE("no reason", 200, REUSED, "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello", HELLO_BODY),
    CASE("no reason and no space", 200, REUSED, "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", HELLO_BODY,
	 .or = -EBADMSG),
    CASE("a reason of 8 bits", 200, REUSED, "HTTP/1.1 200 \303\204h\r\nContent-Length: 5\r\n\r\nhello", HELLO_BODY),
    CASE("a value of 8 bits", 200, REUSED, OK "X: \303\204h\r\n" LENGTH("5") END "hello", HELLO_BODY,
	 .field = "X: \303\204h"),
    CASE("an empty value", 200, REUSED, OK "X:\r\n" LENGTH("5") END "hello", HELLO_BODY, .field = "X: "),
    CASE("spaces around a value", 200, REUSED, OK "X: \t a b \t \r\n" LENGTH("5") END "hello", HELLO_BODY,
	 .field = "X: a b"),
    CASE("a value with a tab", 200, REUSED, OK "X: a\tb\r\n" LENGTH("5") END "hello", HELLO_BODY, .field = "X: a\tb"),
    CASE("of two fields the first", 200, REUSED, OK "X: 1\r\nX: 2\r\n" LENGTH("5") END "hello", .field = "X: 1"),
    CASE("POST", 200, REUSED, HELLO, HELLO_BODY, .method = "POST", .sends = "abc", .wants = "Content-Length: 3\r\n"),
    CASE("POST without a body", 200, REUSED, HELLO, .method = "POST", .wants = "Content-Length: 0\r\n"),
    CASE("PUT without a body", 200, REUSED, HELLO, .method = "PUT", .wants = "Content-Length: 0\r\n"),
    CASE("GET has no length", 200, REUSED, HELLO, .lacks = "Content-Length"),
    CASE("DELETE has no length", 200, REUSED, HELLO, .method = "DELETE", .lacks = "Content-Length"),
    CASE("a method of its own", 200, REUSED, HELLO, .method = "BREW", .lines = "BREW /"),
    CASE("fields are sent", 200, REUSED, HELLO, .fields = "Accept: */*|X-A: b",
	 .wants = "\r\nAccept: */*\r\nX-A: b\r\n"),
    CASE("Host is the URL's", 200, REUSED, HELLO, .wants = "\r\nHost: 127.0.0.1:"),
    CASE("Host is the caller's", 200, REUSED, HELLO, .fields = "Host: example", .wants = "\r\nHost: example\r\n",
	 .lacks = "127.0.0.1"),
    CASE("a target with a query", 200, REUSED, HELLO, .target = "/a/b?c=d&e", .lines = "GET /a/b?c=d&e"),
    CASE("a target without a path", 200, REUSED, HELLO, .target = "", .lines = "GET /"),
    CASE("a query without a path", 200, REUSED, HELLO, .target = "?a", .lines = "GET /?a"),
    CASE("a fragment is not sent", 200, REUSED, HELLO, .target = "/a#b", .lines = "GET /a"),
    MANY("a long body", 200, REUSED, .answers = {{.parts = {B(OK LENGTH("1000000") END), R(100000, "0123456789")}}},
	 .length = 1000000),
    MANY("a long body of one chunk", 200, REUSED,
	 .answers = {{.parts = {B(CHUNKS("f4240\r\n")), R(100000, "0123456789"), B("\r\n0\r\n\r\n")}}},
	 .length = 1000000),
    MANY("a long body of small chunks", 200, REUSED,
	 .answers = {{.parts = {B(CHUNKS("")), R(5000, "3\r\nabc\r\n"), B("0\r\n\r\n")}}}, .length = 15000),
    MANY("a long body until the connection closes", 200, ENDED,
	 .answers = {{.parts = {B(OK END), R(100000, "0123456789")}, .action = CLOSE}}, .length = 1000000),
};

/* ---- interim responses ------------------------------------------------------------------------------------------- */

#define HINT "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
#define GO_ON "HTTP/1.1 100 Continue\r\n\r\n"

static const struct client_case interim_cases[] = {
    CASE("100 that nobody asked for", 200, REUSED, GO_ON HELLO, HELLO_BODY, .informs = "100"),
    CASE("102 and 103", 200, REUSED, "HTTP/1.1 102 Processing\r\n\r\n" HINT HELLO, HELLO_BODY, .informs = "102 103"),
    CASE("fields of 103 are not those of 200", 200, REUSED, HINT HELLO, .informs = "103", .field = "!Link"),
    CASE("an unknown interim status", 200, REUSED, "HTTP/1.1 199 x\r\nA: b\r\n\r\n" HELLO, HELLO_BODY,
	 .informs = "199"),
    CASE("103 with a length", 200, REUSED, "HTTP/1.1 103 x\r\nContent-Length: 5\r\n\r\n" HELLO, HELLO_BODY),
    CASE("103 that says close", 200, REUSED, "HTTP/1.1 103 x\r\nConnection: close\r\n\r\n" HELLO, HELLO_BODY),
    CASE("101 that nobody asked for", -EBADMSG, ENDED,
	 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc"),
    CLOSES("an interim response alone", -ECONNRESET, HINT),
    HANGS("an interim response, then silence", HINT),
    MANY("20 interim responses", 200, REUSED, .answers = {{.parts = {R(20, HINT), B(HELLO)}}}, HELLO_BODY),
    MANY("endless interim responses", -EBADMSG, ENDED, .answers = {{.parts = {R(5000, HINT)}, .action = HANG}}),
    MANY("Expect, 100, a body", 200, REUSED, .answers = {{.parts = {B(GO_ON)}, .early = true}, A(HELLO)},
	 .method = "POST", .sends = "abc", .flags = WEFT_HTTP_EXPECT, HELLO_BODY, .lines = "POST /|abc"),
    MANY("Expect, and silence: the body is sent all the same", 200, REUSED, .answers = {A(HELLO)}, .method = "POST",
	 .sends = "abc", .flags = WEFT_HTTP_EXPECT, HELLO_BODY, .hasty = true),
    MANY("Expect, 417", 417, ENDED,
	 .answers = {A("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", .early = true)},
	 .method = "POST", .sends = "abc", .flags = WEFT_HTTP_EXPECT, .lacks = "abc"),
    MANY("Expect, 413 that closes", 413, ENDED,
	 .answers = {A("HTTP/1.1 413 x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", .early = true,
		       .action = CLOSE)},
	 .method = "POST", .sends = "abc", .flags = WEFT_HTTP_EXPECT, .lacks = "abc", BODY("no")),
    MANY("Expect is for bodies", 200, REUSED, .answers = {A(HELLO)}, .flags = WEFT_HTTP_EXPECT, .lacks = "Expect"),
};

/* ---- HTTP/1.0 and other versions --------------------------------------------------------------------------------- */

static const struct client_case version_cases[] = {
    CLOSES("HTTP/1.0", 200, "HTTP/1.0 200 OK\r\n\r\nhello", HELLO_BODY),
    CASE("HTTP/1.0 with a length", 200, ENDED, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", HELLO_BODY),
    CASE("HTTP/1.0 keep-alive", 200, REUSED,
	 "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", HELLO_BODY),
    CLOSES("HTTP/1.0 keep-alive without a length", 200, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello",
	   HELLO_BODY),
    CASE("HTTP/1.0 with chunks", -EBADMSG, ENDED, "HTTP/1.0 200 OK\r\n" CHUNKED "\r\n5\r\nhello\r\n0\r\n\r\n"),
    CASE("HTTP/1.0 HEAD", 200, ENDED, "HTTP/1.0 200 OK\r\n\r\n", .method = "HEAD", BODY("")),
    CASE("HTTP/2.0", -EBADMSG, ENDED, "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    CASE("HTTP/2", -EBADMSG, ENDED, "HTTP/2 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    CASE("HTTP/0.9", -EBADMSG, ENDED, "HTTP/0.9 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    CASE("HTTP/1.2", 200, ANY, "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello", .or = -EBADMSG),
    CASE("http/1.1", -EBADMSG, ENDED, "http/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    CASE("HTTP/1.", -EBADMSG, ENDED, "HTTP/1. 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    CASE("HTTP/11", -EBADMSG, ENDED, "HTTP/11 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    CASE("HTTP/1.10", -EBADMSG, ENDED, "HTTP/1.10 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    CLOSES("a page without a head", -EBADMSG, "<html>hello</html>"),
    CASE("ICY", -EBADMSG, ENDED, "ICY 200 OK\r\n\r\nhello"),
    CASE("RTSP", -EBADMSG, ENDED, "RTSP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    CASE("a request", -EBADMSG, ENDED, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE("SMTP", -EBADMSG, ENDED, "220 mail.example ESMTP\r\n"),
    CASE("TLS", -EBADMSG, ENDED, "\025\003\001\000\002\002\106"),
    CASE("NULs", -EBADMSG, ENDED, "\0\0\0\0\0\0\0\0"),
};

/* ---- malformed heads --------------------------------------------------------------------------------------------- */

static const struct client_case head_cases[] = {
    CASE("the status 99", -EBADMSG, ENDED, "HTTP/1.1 99 x\r\nContent-Length: 0\r\n\r\n"),
    CASE("the status 0", -EBADMSG, ENDED, "HTTP/1.1 000 x\r\nContent-Length: 0\r\n\r\n"),
    CASE("a status of four digits", -EBADMSG, ENDED, "HTTP/1.1 2000 x\r\nContent-Length: 0\r\n\r\n"),
    CASE("a status of two digits", -EBADMSG, ENDED, "HTTP/1.1 20 x\r\nContent-Length: 0\r\n\r\n"),
    CASE("a status of letters", -EBADMSG, ENDED, "HTTP/1.1 abc x\r\nContent-Length: 0\r\n\r\n"),
    CASE("a negative status", -EBADMSG, ENDED, "HTTP/1.1 -20 x\r\nContent-Length: 0\r\n\r\n"),
    CASE("two spaces before the status", -EBADMSG, ENDED, "HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", .or = 200),
    CASE("LF alone behind the status line", -EBADMSG, ENDED, "HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello"),
    CASE("LF alone behind a field", -EBADMSG, ENDED, OK "X: y\nContent-Length: 5\r\n\r\nhello"),
    CASE("LF alone behind the head", -EBADMSG, ENDED, OK "Content-Length: 5\r\n\nhello"),
    CASE("LF alone everywhere", -EBADMSG, ENDED, "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
    CASE("CR alone in a field", -EBADMSG, ENDED, OK "X: a\rContent-Length: 5\r\n\r\nhello"),
    CASE("CR alone behind the head", -EBADMSG, ENDED, OK LENGTH("5") "\rhello"),
    CASE("NUL in a value", -EBADMSG, ENDED, OK "X: a\0b\r\n" LENGTH("5") "\r\nhello"),
    CASE("a control character in a value", -EBADMSG, ENDED, OK "X: a\001b\r\n" LENGTH("5") "\r\nhello"),
    CASE("DEL in a value", -EBADMSG, ENDED, OK "X: a\177b\r\n" LENGTH("5") "\r\nhello"),
    CASE("NUL in a name", -EBADMSG, ENDED, OK "X\0: a\r\n" LENGTH("5") "\r\nhello"),
    CASE("a space in a name", -EBADMSG, ENDED, OK "X Y: a\r\n" LENGTH("5") "\r\nhello"),
    CASE("a space behind a name", -EBADMSG, ENDED, OK "Content-Length : 5\r\n\r\nhello"),
    CASE("no name", -EBADMSG, ENDED, OK ": a\r\n" LENGTH("5") "\r\nhello"),
    CASE("no colon", -EBADMSG, ENDED, OK "X\r\n" LENGTH("5") "\r\nhello"),
    CASE("a name of 8 bits", -EBADMSG, ENDED, OK "\303\204: a\r\n" LENGTH("5") "\r\nhello"),
    CASE("a folded line", -EBADMSG, ENDED, OK "X: a\r\n b\r\n" LENGTH("5") "\r\nhello"),
    CASE("a folded length", -EBADMSG, ENDED, OK "Content-Length:\r\n 5\r\n\r\nhello"),
    CASE("a first line that is folded", -EBADMSG, ENDED, OK " X: a\r\n" LENGTH("5") "\r\nhello"),
    CASE("two lengths", -EBADMSG, ENDED, OK LENGTH("5") LENGTH("6") "\r\nhello!"),
    CASE("two equal lengths", -EBADMSG, ENDED, OK LENGTH("5") LENGTH("5") "\r\nhello", .or = 200),
    CASE("a list of lengths", -EBADMSG, ENDED, OK LENGTH("5, 6") "\r\nhello!"),
    CASE("a list of equal lengths", -EBADMSG, ENDED, OK LENGTH("5, 5") "\r\nhello", .or = 200),
    CASE("an empty length", -EBADMSG, ENDED, OK LENGTH("") "\r\nhello"),
    CASE("a length with a sign", -EBADMSG, ENDED, OK LENGTH("+5") "\r\nhello"),
    CASE("a negative length", -EBADMSG, ENDED, OK LENGTH("-5") "\r\nhello"),
    CASE("a hexadecimal length", -EBADMSG, ENDED, OK LENGTH("0x5") "\r\nhello"),
    CASE("a length with a letter", -EBADMSG, ENDED, OK LENGTH("5a") "\r\nhello"),
    CASE("a length with a space", -EBADMSG, ENDED, OK LENGTH("1 5") "\r\nhello"),
    CASE("a length of 2^64", -EBADMSG, ENDED, OK LENGTH("18446744073709551616") "\r\nhello"),
    CASE("a length of 2^64 + 5", -EBADMSG, ENDED, OK LENGTH("18446744073709551621") "\r\nhello"),
    CASE("a length of 40 digits", -EBADMSG, ENDED, OK LENGTH("1000000000000000000000000000000000000005") "\r\nhello"),
    CASE("a length and chunks", -EBADMSG, ENDED, OK LENGTH("5") CHUNKED "\r\n5\r\nhello\r\n0\r\n\r\n"),
    CASE("chunks and a length", -EBADMSG, ENDED, OK CHUNKED LENGTH("5") "\r\n5\r\nhello\r\n0\r\n\r\n"),
    CASE("chunked twice", -EBADMSG, ENDED, OK CHUNKED CHUNKED "\r\n5\r\nhello\r\n0\r\n\r\n"),
    CASE("chunked, chunked", -EBADMSG, ENDED, OK "Transfer-Encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    CASE("gzip, chunked", -EBADMSG, ENDED, OK "Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    CLOSES("chunked, gzip", -EBADMSG, OK "Transfer-Encoding: chunked, gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    CLOSES("identity", -EBADMSG, OK "Transfer-Encoding: identity\r\n\r\nhello"),
    CLOSES("an unknown coding", -EBADMSG, OK "Transfer-Encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    CLOSES("an empty coding", -EBADMSG, OK "Transfer-Encoding:\r\n\r\nhello"),
    CASE("a coding with a space before its colon", -EBADMSG, ENDED,
	 OK "Transfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    MANY("a long field", 200, REUSED,
	 .answers = {{.parts = {B(OK "X: "), R(60000, "x"), B("\r\n" LENGTH("5") "\r\nhello")}}}, HELLO_BODY),
    MANY("a field that is too long", -EMSGSIZE, ENDED,
	 .answers = {{.parts = {B(OK "X: "), R(70000, "x"), B("\r\n" LENGTH("5") "\r\nhello")}}}),
    MANY("a name that is too long", -EMSGSIZE, ENDED,
	 .answers = {{.parts = {B(OK), R(70000, "x"), B(": a\r\n" LENGTH("5") "\r\nhello")}}}),
    MANY("an endless field", -EMSGSIZE, ENDED, .answers = {{.parts = {B(OK "X: "), R(1000000, "x")}}}),
    MANY("an endless reason", -EMSGSIZE, ENDED, .answers = {{.parts = {B("HTTP/1.1 200 "), R(1000000, "x")}}}),
    MANY("100 fields", 200, REUSED, .answers = {{.parts = {B(OK), R(99, "X: y\r\n"), B(LENGTH("5") "\r\nhello")}}},
	 HELLO_BODY),
    MANY("101 fields", -EMSGSIZE, ENDED,
	 .answers = {{.parts = {B(OK), R(100, "X: y\r\n"), B(LENGTH("5") "\r\nhello")}}}),
    MANY("endless fields", -EMSGSIZE, ENDED, .answers = {{.parts = {B(OK), R(100000, "X: y\r\n")}}}),
    CASE("CRLF before the status line", 200, REUSED, "\r\n" HELLO, .or = -EBADMSG),
};

/* ---- malformed chunks -------------------------------------------------------------------------------------------- */

static const struct client_case chunk_cases[] = {
    CASE("a chunk size of letters", -EBADMSG, ENDED, CHUNKS("xyz\r\nhello\r\n0\r\n\r\n")),
    CASE("a chunk size with a sign", -EBADMSG, ENDED, CHUNKS("+5\r\nhello\r\n0\r\n\r\n")),
    CASE("a negative chunk size", -EBADMSG, ENDED, CHUNKS("-5\r\nhello\r\n0\r\n\r\n")),
    CASE("a chunk size 0x5", -EBADMSG, ENDED, CHUNKS("0x5\r\nhello\r\n0\r\n\r\n")),
    CASE("an empty chunk size", -EBADMSG, ENDED, CHUNKS("\r\nhello\r\n0\r\n\r\n")),
    CASE("a space before a chunk size", -EBADMSG, ENDED, CHUNKS(" 5\r\nhello\r\n0\r\n\r\n")),
    CASE("a space behind a chunk size", -EBADMSG, ENDED, CHUNKS("5 \r\nhello\r\n0\r\n\r\n")),
    CASE("a chunk size of 2^64", -EBADMSG, ENDED, CHUNKS("10000000000000000\r\nhello\r\n0\r\n\r\n")),
    CASE("a chunk size of 2^64 + 5", -EBADMSG, ENDED, CHUNKS("10000000000000005\r\nhello\r\n0\r\n\r\n")),
    CASE("a chunk size of 30 digits", -EBADMSG, ENDED, CHUNKS("fffffffffffffffffffffffffffff5\r\nhello\r\n0\r\n\r\n")),
    CLOSES("a chunk of 2^63 bytes that ends early", -ECONNRESET, CHUNKS("8000000000000000\r\nhello")),
    CASE("LF alone behind a chunk size", -EBADMSG, ENDED, CHUNKS("5\nhello\r\n0\r\n\r\n")),
    CASE("LF alone behind a chunk", -EBADMSG, ENDED, CHUNKS("5\r\nhello\n0\r\n\r\n")),
    CASE("LF alone behind the last chunk", -EBADMSG, ENDED, CHUNKS("5\r\nhello\r\n0\n\r\n")),
    CASE("LF alone behind the trailer", -EBADMSG, ENDED, CHUNKS("5\r\nhello\r\n0\r\nA: b\n\r\n")),
    CASE("LF alone at the end", -EBADMSG, ENDED, CHUNKS("5\r\nhello\r\n0\r\n\n")),
    CASE("CR alone behind a chunk size", -EBADMSG, ENDED, CHUNKS("5\rhello\r\n0\r\n\r\n")),
    CASE("no CRLF behind a chunk", -EBADMSG, ENDED, CHUNKS("5\r\nhello0\r\n\r\n")),
    CASE("a chunk that is longer than its size", -EBADMSG, ENDED, CHUNKS("4\r\nhello\r\n0\r\n\r\n")),
    CASE("a chunk that is shorter than its size", -EBADMSG, ENDED, CHUNKS("6\r\nhello\r\n0\r\n\r\n")),
    CASE("LF in an extension", -EBADMSG, ENDED, CHUNKS("5;a\nb\r\nhello\r\n0\r\n\r\n")),
    CASE("NUL in an extension", -EBADMSG, ENDED, CHUNKS("5;a=\0\r\nhello\r\n0\r\n\r\n")),
    CASE("a malformed trailer", -EBADMSG, ENDED, CHUNKS("5\r\nhello\r\n0\r\nX Y: b\r\n\r\n")),
    CASE("a trailer with NUL", -EBADMSG, ENDED, CHUNKS("5\r\nhello\r\n0\r\nX: \0\r\n\r\n")),
    MANY("an extension that is too long", -EMSGSIZE, ENDED,
	 .answers = {{.parts = {B(CHUNKS("5;a=")), R(100000, "b"), B("\r\nhello\r\n0\r\n\r\n")}}}),
    MANY("endless extensions", -EMSGSIZE, ENDED,
	 .answers = {{.parts = {B(CHUNKS("")), R(100000, "1;ab=cd\r\nx\r\n")}}}),
    MANY("a trailer that is too long", -EMSGSIZE, ENDED,
	 .answers = {{.parts = {B(CHUNKS("0\r\nX: ")), R(70000, "x"), B("\r\n\r\n")}}}),
    MANY("an endless trailer", -EMSGSIZE, ENDED, .answers = {{.parts = {B(CHUNKS("0\r\n")), R(100000, "X: y\r\n")}}}),
};

/* ---- early ends -------------------------------------------------------------------------------------------------- */

static const struct client_case end_cases[] = {
    CLOSES("closed without an answer", -ECONNRESET, "", .connections = 1),
    CLOSES("closed in the status line", -ECONNRESET, "HTTP/1.1 20"),
    CLOSES("closed behind the status line", -ECONNRESET, OK),
    CLOSES("closed in a field", -ECONNRESET, OK "Content-Le"),
    CLOSES("closed before the end of the head", -ECONNRESET, OK LENGTH("5")),
    CLOSES("closed before the body", -ECONNRESET, OK LENGTH("5") END),
    CLOSES("closed in the body", -ECONNRESET, OK LENGTH("6") END "hello"),
    CLOSES("closed in a chunk size", -ECONNRESET, CHUNKS("5")),
    CLOSES("closed in a chunk", -ECONNRESET, CHUNKS("5\r\nhel")),
    CLOSES("closed behind a chunk", -ECONNRESET, CHUNKS("5\r\nhello\r\n")),
    CLOSES("closed behind the last chunk", -ECONNRESET, CHUNKS("5\r\nhello\r\n0\r\n")),
    CLOSES("closed in the trailer", -ECONNRESET, CHUNKS("5\r\nhello\r\n0\r\nX: y\r\n")),
    CLOSES("closed behind a whole answer", 200, HELLO, HELLO_BODY),
    CLOSES("closed without an answer, POST", -ECONNRESET, "", .method = "POST", .sends = "abc", .connections = 1),
    RESETS("reset without an answer", -ECONNRESET, ""),
    RESETS("reset in the head", -ECONNRESET, OK "Content-Le", .or = -EBADMSG),
    RESETS("reset in the body", -ECONNRESET, OK LENGTH("60") END "hello"),
    RESETS("reset in a chunk", -ECONNRESET, CHUNKS("5\r\nhel")),
    RESETS("reset in a body without a length", -ECONNRESET, OK END "hello"),
    HANGS("silence", ""),
    HANGS("silence in the head", OK "Content-Le"),
    HANGS("silence in the body", OK LENGTH("60") END "hello"),
    HANGS("silence in a chunk", CHUNKS("5\r\nhel")),
    HANGS("silence before the end of a body", OK END "hello"),
    MANY("slow, but in time", 200, REUSED,
	 .answers = {{.parts = {B(OK LENGTH("5") END "h"), B("e"), B("ll"), B("o")}, .pause = 40}}, HELLO_BODY,
	 .hasty = true),
    MANY("a body that is too long", -EFBIG, ANY, .answers = {A(HELLO)}, .limit = 4),
    MANY("chunks that are too long", -EFBIG, ANY, .answers = {A(CHUNKS("5\r\nhello\r\n0\r\n\r\n"))}, .limit = 4),
    MANY("a body as long as is allowed", 200, REUSED, .answers = {A(HELLO)}, .limit = 5, HELLO_BODY),
    MANY("an endless body", -EFBIG, ENDED, .answers = {{.parts = {B(OK END), R(100000, "0123456789")}}},
	 .limit = 10000),
    CASE("bytes behind the answer", 200, ENDED, HELLO "x", HELLO_BODY),
    CASE("a second answer", 200, ENDED, HELLO "HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n", HELLO_BODY),
    CASE("CRLF behind the answer", 200, ENDED, HELLO "\r\n", HELLO_BODY),
    CASE("bytes behind chunks", 200, ENDED, CHUNKS("5\r\nhello\r\n0\r\n\r\nx"), HELLO_BODY),
    CASE("bytes behind 204", 204, ENDED, "HTTP/1.1 204 x\r\n\r\nx", BODY("")),
    CASE("bytes behind 304", 304, ENDED, "HTTP/1.1 304 x\r\n\r\nx", BODY("")),
    CASE("an answer before the body was read", 200, ANY, HELLO, .method = "POST", .sends = "abc", HELLO_BODY),
};

/* ---- redirects --------------------------------------------------------------------------------------------------- */

static const struct client_case redirect_cases[] = {
    MANY("301", 200, REUSED, .answers = {A(TO("301", "/a")), A(HELLO)}, HELLO_BODY, .lines = "GET /|GET /a",
	 .connections = 1),
    MANY("302", 200, REUSED, .answers = {A(TO("302", "/a")), A(HELLO)}, HELLO_BODY, .lines = "GET /|GET /a"),
    MANY("303", 200, REUSED, .answers = {A(TO("303", "/a")), A(HELLO)}, HELLO_BODY, .lines = "GET /|GET /a"),
    MANY("307", 200, REUSED, .answers = {A(TO("307", "/a")), A(HELLO)}, HELLO_BODY, .lines = "GET /|GET /a"),
    MANY("308", 200, REUSED, .answers = {A(TO("308", "/a")), A(HELLO)}, HELLO_BODY, .lines = "GET /|GET /a"),
    CASE("300 is no redirect", 300, REUSED, TO("300", "/a"), .lines = "GET /"),
    CASE("304 is no redirect", 304, REUSED, TO("304", "/a"), .lines = "GET /"),
    CASE("305 is no redirect", 305, REUSED, TO("305", "/a"), .lines = "GET /"),
    CASE("201 with Location is no redirect", 201, REUSED, TO("201", "/a"), .lines = "GET /"),
    MANY("301 of POST becomes GET", 200, REUSED, .answers = {A(TO("301", "/a")), A(HELLO)}, .method = "POST",
	 .sends = "abc", .fields = "Content-Type: text/plain|X: y", .lines = "POST /|abc|GET /a",
	 .lacks = "Content-Type", .wants = "X: y"),
    MANY("302 of POST becomes GET", 200, REUSED, .answers = {A(TO("302", "/a")), A(HELLO)}, .method = "POST",
	 .sends = "abc", .lines = "POST /|abc|GET /a", .lacks = "Content-Length"),
    MANY("303 of POST becomes GET", 200, REUSED, .answers = {A(TO("303", "/a")), A(HELLO)}, .method = "POST",
	 .sends = "abc", .lines = "POST /|abc|GET /a"),
    MANY("303 of PUT becomes GET", 200, REUSED, .answers = {A(TO("303", "/a")), A(HELLO)}, .method = "PUT",
	 .sends = "abc", .lines = "PUT /|abc|GET /a"),
    MANY("303 of HEAD stays HEAD", 200, REUSED, .answers = {A(TO("303", "/a")), A(OK LENGTH("5") END)},
	 .method = "HEAD", .lines = "HEAD /|HEAD /a"),
    MANY("301 of PUT stays PUT", 200, REUSED, .answers = {A(TO("301", "/a")), A(HELLO)}, .method = "PUT",
	 .sends = "abc", .lines = "PUT /|abc|PUT /a|abc"),
    MANY("301 of HEAD stays HEAD", 200, REUSED, .answers = {A(TO("301", "/a")), A(OK LENGTH("5") END)},
	 .method = "HEAD", .lines = "HEAD /|HEAD /a"),
    MANY("307 keeps POST and its body", 200, REUSED, .answers = {A(TO("307", "/a")), A(HELLO)}, .method = "POST",
	 .sends = "abc", .fields = "Content-Type: text/plain", .lines = "POST /|abc|POST /a|abc",
	 .wants = "Content-Type: text/plain"),
    MANY("308 keeps POST and its body", 200, REUSED, .answers = {A(TO("308", "/a")), A(HELLO)}, .method = "POST",
	 .sends = "abc", .lines = "POST /|abc|POST /a|abc"),
    MANY("another origin", 200, REUSED, .answers = {A(TO("302", "http://127.0.0.1:@OTHER@/a")), A(HELLO)}, HELLO_BODY,
	 .lines = "GET /|GET /a", .connections = 2),
    MANY("another origin gets no credentials", 200, REUSED,
	 .answers = {A(TO("302", "http://127.0.0.1:@OTHER@/a")), A(HELLO)},
	 .fields = "Authorization: Basic x|Cookie: a=b|X: y", .lacks = "Basic", .wants = "X: y"),
    MANY("another origin gets no cookie", 200, REUSED, .answers = {A(TO("302", "//127.0.0.1:@OTHER@/a")), A(HELLO)},
	 .fields = "X: y|cOOKIE: a=b", .lacks = "a=b"),
    MANY("another origin has another Host", 200, REUSED,
	 .answers = {A(TO("302", "http://127.0.0.1:@OTHER@/a")), A(HELLO)}, .fields = "Host: secret", .lacks = "secret",
	 .wants = "Host: 127.0.0.1"),
    MANY("the same origin keeps credentials", 200, REUSED,
	 .answers = {A(TO("302", "http://127.0.0.1:@PORT@/a")), A(HELLO)}, .fields = "Authorization: Basic x",
	 .wants = "Authorization: Basic x"),
    MANY("another origin and back: no credentials", 200, REUSED,
	 .answers = {A(TO("302", "http://127.0.0.1:@OTHER@/a")), A(TO("302", "http://127.0.0.1:@PORT@/b")), A(HELLO)},
	 .fields = "Authorization: Basic x", .lacks = "Basic", .lines = "GET /|GET /a|GET /b"),
    MANY("relative", 200, REUSED, .answers = {A(TO("302", "../c?d")), A(HELLO)}, .target = "/a/b/x?y",
	 .lines = "GET /a/b/x?y|GET /a/c?d"),
    MANY("a query alone", 200, REUSED, .answers = {A(TO("302", "?z")), A(HELLO)}, .target = "/a/b?y",
	 .lines = "GET /a/b?y|GET /a/b?z"),
    MANY("an empty Location", 200, ANY, .answers = {A(TO("302", "")), A(HELLO)}, .lines = "GET /|GET /", .or = 302),
    MANY("a fragment", 200, REUSED, .answers = {A(TO("302", "/a#b")), A(HELLO)}, .lines = "GET /|GET /a"),
    MANY("dots", 200, REUSED, .answers = {A(TO("302", "/a/../../b/./c")), A(HELLO)}, .lines = "GET /|GET /b/c"),
    CASE("no Location", 302, REUSED, "HTTP/1.1 302 x\r\nContent-Length: 5\r\n\r\nhello", HELLO_BODY),
    CASE("Location of another scheme", 302, REUSED,
	 "HTTP/1.1 302 x\r\nContent-Length: 5\r\nLocation: ftp://h/\r\n\r\nhello", HELLO_BODY),
    CASE("Location of a file", 302, REUSED, TO("302", "file:///etc/passwd"), .lines = "GET /"),
    CASE("Location of a script", 302, REUSED, TO("302", "javascript:alert(1)"), .lines = "GET /"),
    CASE("Location with a space", 302, REUSED, TO("302", "/a b"), .lines = "GET /"),
    CASE("Location with 8 bits", 302, REUSED, TO("302", "/\303\204"), .lines = "GET /"),
    CASE("Location with a user", 302, REUSED, TO("302", "http://u:p@127.0.0.1:@OTHER@/"), .lines = "GET /"),
    CASE("Location without a host", 302, REUSED, TO("302", "http:///a"), .lines = "GET /"),
    CASE("Location of a Unix socket", 302, REUSED, TO("302", "http://./a"), .lines = "GET /"),
    MANY("a loop", -ELOOP, ANY,
	 .answers = {A(TO("302", "/a")), A(TO("302", "/b")), A(TO("302", "/c")), A(TO("302", "/d")), A(TO("302", "/"))},
	 .loops = true),
    MANY("a loop of one", -ELOOP, ANY, .answers = {A(TO("307", "/"))}, .loops = true),
    MANY("a loop between two origins", -ELOOP, ANY,
	 .answers = {A(TO("302", "http://127.0.0.1:@OTHER@/")), A(TO("302", "http://127.0.0.1:@PORT@/"))},
	 .loops = true),
    CASE("redirects are not followed", 302, REUSED, TO("302", "/a"), .flags = WEFT_HTTP_NO_REDIRECTS, .lines = "GET /"),
    MANY("a redirect with a body", 200, REUSED,
	 .answers = {A("HTTP/1.1 302 x\r\nLocation: /a\r\nContent-Length: 5\r\n\r\nhello"), A(HELLO)}, HELLO_BODY,
	 .connections = 1),
    MANY("a redirect with chunks", 200, REUSED,
	 .answers = {A("HTTP/1.1 302 x\r\nLocation: /a\r\n" CHUNKED "\r\n5\r\nHELLO\r\n0\r\n\r\n"), A(HELLO)},
	 HELLO_BODY, .connections = 1),
    MANY("a redirect with a long body", 200, REUSED,
	 .answers = {{.parts = {B("HTTP/1.1 302 x\r\nLocation: /a\r\nContent-Length: 1000000\r\n\r\n"),
				R(100000, "0123456789")}},
		     A(HELLO)},
	 HELLO_BODY, .connections = 2),
    MANY("a redirect that closes", 200, REUSED,
	 .answers = {A("HTTP/1.1 302 x\r\nLocation: /a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		       .action = CLOSE),
		     A(HELLO)},
	 HELLO_BODY, .connections = 2),
    MANY("a redirect with a malformed body", 200, ANY,
	 .answers = {A("HTTP/1.1 302 x\r\nLocation: /a\r\n" CHUNKED "\r\nxyz\r\n"), A(HELLO)}, HELLO_BODY,
	 .connections = 2),
    MANY("a redirect to a malformed answer", -EBADMSG, ENDED, .answers = {A(TO("302", "/a")), A("HTTP/9.9 x\r\n\r\n")}),
};

static const struct {
	const char *name;
	const struct client_case *cases;
	unsigned count;
} kinds[] = {
#define KIND(name)                                                                                                     \
	{                                                                                                              \
		#name, name##_cases, sizeof name##_cases / sizeof *name##_cases                                        \
	}
    KIND(framing), KIND(interim), KIND(version), KIND(head), KIND(chunk), KIND(end), KIND(redirect),
#undef KIND
};

#endif
