/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cases of raw.c. The expected answers are those of RFC 9110 and RFC 9112. If an RFC allows several answers, all
 * are listed, unless weft/http.h promises a particular answer (design, 6).
 */
#ifndef WEFT_TESTS_HTTP_CASES_H
#define WEFT_TESTS_HTTP_CASES_H

#include <stdbool.h>
#include <stddef.h>

enum { PIECES = 6, BODY_PIECES = 3 };

/* Bytes, repeated `times` times. In the piece after the last, `data` is NULL. */
struct piece {
	const char *data;
	size_t length;
	unsigned times;
};
#define B(text)                                                                                                        \
	{                                                                                                              \
		text, sizeof(text) - 1, 1                                                                              \
	}
#define R(times, text)                                                                                                 \
	{                                                                                                              \
		text, sizeof(text) - 1, times                                                                          \
	}

/* How a request is sent. */
enum how {
	WHOLE,	       /* by one write; on a second connection byte by byte, if it is short */
	BYTE_BY_BYTE,  /* one write for each byte */
	TRICKLE,       /* a byte each 50 ms */
	PAUSES,	       /* 20 ms between the pieces */
	AFTER_INTERIM, /* the second piece follows the first response */
	SPLIT,	       /* divided into two writes, at each position on a new connection; and in one write */
	WHOLE_ONLY,    /* by one write */
};

/* The state of the connection after the responses. */
enum then {
	OPEN,	/* it serves a further request */
	CLOSED, /* the last response says Connection: close, and the server closes it */
	EITHER, /* OPEN or CLOSED */
	IDLE,	/* the server closes it later, and sends no further byte */
	ANY,	/* not checked */
};

/* The client's last step. */
enum after {
	STAY,	     /* it waits for responses */
	HALF_CLOSE,  /* shutdown(SHUT_WR), then it waits for responses */
	RESET_AFTER, /* it receives at least `reads` bytes, and resets the connection */
	CLOSE_AFTER, /* like RESET_AFTER, but it closes the connection */
};

struct http_case {
	const char *name;
	/*
	 * The responses: statuses in order. "400|501": one of these two; 0: no response, the connection is closed.
	 * After a status: "?": this response may be missing; "*16": 16 times; "h": to HEAD; "o": to HTTP/1.0.
	 */
	const char *answers;
	enum then then;
	struct piece send[PIECES];
	struct piece body[BODY_PIECES]; /* the bodies of all responses with 2xx; none: not checked */
	const char *field;		/* "name: text": a field that at least one response has */
	enum how how;
	enum after after;
	size_t reads;
	/* The client sends more than a server must read before it closes the connection: a reset may overtake
	 * the response. */
	bool may_reset;
};
#define CASE(name_, answers_, then_, text, ...)                                                                        \
	{                                                                                                              \
		.name = name_, .answers = answers_, .then = then_, .send = {B(text)}, __VA_ARGS__                      \
	}
/* The variable arguments include `.send`. */
#define LONG(name_, answers_, then_, ...)                                                                              \
	{                                                                                                              \
		.name = name_, .answers = answers_, .then = then_, __VA_ARGS__                                         \
	}

#define H "Host: h\r\n"
#define END "\r\n"
#define REQUEST(line, fields) line " HTTP/1.1\r\nHost: h\r\n" fields "\r\n"
#define GET(target) REQUEST("GET " target, "")
#define GET_WITH(fields) REQUEST("GET /hello", fields)
#define POST(target, fields) REQUEST("POST " target, fields)
#define HELLO GET("/hello")
#define HELLO_BODY .body = {B("hello\n")}
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define LENGTH(n) "Content-Length: " n "\r\n"
#define X64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define X1024 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64 X64

/* ---- methods and routes ------------------------------------------------------------------------------------------ */

static const struct http_case method_cases[] = {
    CASE("GET", "200", OPEN, HELLO, HELLO_BODY, .field = "Content-Type: text/plain"),
    CASE("GET has a length", "200", OPEN, HELLO, .field = "Content-Length: 6"),
    CASE("HEAD", "200h", OPEN, REQUEST("HEAD /hello", ""), .field = "Content-Length: 6"),
    CASE("HEAD of chunks", "200h", OPEN, REQUEST("HEAD /chunks", "")),
    CASE("HEAD of a big body", "200h", OPEN, REQUEST("HEAD /big", "")),
    CASE("HEAD of no route", "404h", OPEN, REQUEST("HEAD /none", "")),
    CASE("HEAD, wrong method", "405h", OPEN, REQUEST("HEAD /echo", ""), .field = "Allow: POST"),
    CASE("HEAD, then GET", "200h 200", OPEN, REQUEST("HEAD /hello", "") HELLO, HELLO_BODY),
    CASE("OPTIONS of a route", "200|204", OPEN, REQUEST("OPTIONS /hello", ""), .field = "Allow: GET"),
    CASE("OPTIONS names HEAD", "200|204", OPEN, REQUEST("OPTIONS /hello", ""), .field = "Allow: HEAD"),
    CASE("OPTIONS of POST", "200|204", OPEN, REQUEST("OPTIONS /echo", ""), .field = "Allow: POST"),
    CASE("OPTIONS of the server", "200|204", OPEN, REQUEST("OPTIONS *", "")),
    CASE("OPTIONS of no route", "404", OPEN, REQUEST("OPTIONS /none", "")),
    CASE("OPTIONS with a body", "200|204", OPEN, REQUEST("OPTIONS /hello", LENGTH("3")) "abc"),
    CASE("POST to GET", "405", OPEN, POST("/hello", LENGTH("0")), .field = "Allow: GET"),
    CASE("GET of POST", "405", OPEN, GET("/echo"), .field = "Allow: POST"),
    CASE("PUT", "405", OPEN, REQUEST("PUT /hello", LENGTH("0")), .field = "Allow: GET"),
    CASE("DELETE", "405", OPEN, REQUEST("DELETE /hello", ""), .field = "Allow: HEAD"),
    CASE("PATCH", "405", OPEN, REQUEST("PATCH /hello", LENGTH("0")), .field = "Allow: GET"),
    CASE("TRACE", "405|501", EITHER, REQUEST("TRACE /hello", "")),
    CASE("PROPFIND", "405|501", EITHER, REQUEST("PROPFIND /hello", "")),
    CASE("unknown method", "501", EITHER, REQUEST("BREW /hello", "")),
    CASE("long unknown method", "501", EITHER, REQUEST("ABCDEFGHIJKLMNOPQRSTUVWXYZ /hello", "")),
    CASE("unknown method that begins as GET", "501", EITHER, REQUEST("GETS /hello", "")),
    CASE("method in lower case", "501", EITHER, REQUEST("get /hello", "")),
    CASE("method of token characters", "501", EITHER, REQUEST("!#$%&'*+-.^_`|~09 /hello", "")),
    CASE("method with a slash", "400", CLOSED, REQUEST("GE/T /hello", "")),
    CASE("method with a colon", "400", CLOSED, REQUEST("GET: /hello", "")),
    CASE("method with NUL", "400", CLOSED, REQUEST("GE\0T /hello", "")),
    CASE("method with 8 bits", "400", CLOSED, REQUEST("G\303\211T /hello", "")),
    CASE("CONNECT", "405|501", EITHER, "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n"),
    CASE("CONNECT, then bytes", "405|501", ANY, "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\nabc"),
    CASE("no route", "404", OPEN, GET("/none")),
    CASE("root", "404", OPEN, GET("/")),
    CASE("POST to no route", "404", OPEN, POST("/none", LENGTH("5")) "hello"),
    CASE("parameter", "200", OPEN, GET("/item/17"), .body = {B("17")}),
    CASE("parameter, decoded", "200", OPEN, GET("/item/a%20b"), .body = {B("a b")}),
    CASE("parameter without a value", "200|404", OPEN, GET("/item/")),
    CASE("parameter of two parts", "404", OPEN, GET("/item/a/b")),
    CASE("tail", "200", OPEN, GET("/rest/a/b/c"), .body = {B("a/b/c")}),
    CASE("query", "200", OPEN, GET("/query?a=1"), .body = {B("1")}),
    CASE("query, second", "200", OPEN, GET("/query?b=2&a=x+y%21"), .body = {B("x y!")}),
    CASE("query without the name", "404", OPEN, GET("/query?b=2")),
    CASE("no query", "404", OPEN, GET("/query")),
    CASE("query with question marks", "200", OPEN, GET("/query?a=b?c/d"), .body = {B("b?c/d")}),
    CASE("query with bad percent", "200|400", OPEN, GET("/query?a=%zz")),
    CASE("query with cut percent", "200|400", OPEN, GET("/query?a=%4")),
    CASE("query on a plain route", "200", OPEN, GET("/hello?x=1"), HELLO_BODY),
    CASE("pieces", "200", OPEN, GET("/chunks"), .body = {B("one\ntwo\nthree\n")}),
    CASE("big", "200", OPEN, GET("/big"), .body = {R(200000, "b")}),
    CASE("slow", "200", OPEN, GET("/slow"), .body = {B("slow\n")}),
    CASE("early hints", "103 200", OPEN, GET("/early"), .body = {B("early\n")}, .field = "Link: </style.css>"),
    CASE("handler without response", "500", EITHER, GET("/nothing")),
    CASE("events", "200", OPEN, GET("/event"), .body = {B("data: one\n\ndata: two\ndata: three\n\n")},
	 .field = "Content-Type: text/event-stream"),
    CASE("GET at each position", "200", OPEN, HELLO, HELLO_BODY, .how = SPLIT),
    CASE("POST at each position", "200", OPEN, POST("/echo", LENGTH("5")) "hello", .body = {B("hello")}, .how = SPLIT),
    CASE("chunks at each position", "200", OPEN, POST("/trailer", CHUNKED) "5;x=y\r\nhello\r\n0\r\nX-Sum: 12\r\n\r\n",
	 .body = {B("12")}, .how = SPLIT),
    CASE("two requests at each position", "200 200", OPEN, POST("/echo", CHUNKED) "1\r\na\r\n0\r\n\r\n" HELLO,
	 .body = {B("ahello\n")}, .how = SPLIT),
    CASE("bad request at each position", "400", CLOSED, "GET /hello HTTP/1.1\r\nHost : h\r\n\r\n", .how = SPLIT),
};

/* ---- versions ---------------------------------------------------------------------------------------------------- */

#define VERSION(text) "GET /hello " text "\r\nHost: h\r\n\r\n"

static const struct http_case version_cases[] = {
    CASE("HTTP/1.0", "200o", CLOSED, "GET /hello HTTP/1.0\r\n\r\n", HELLO_BODY),
    CASE("HTTP/1.0 with Host", "200o", CLOSED, VERSION("HTTP/1.0"), HELLO_BODY),
    CASE("HTTP/1.0 keeps alive", "200o", OPEN, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", HELLO_BODY,
	 .field = "Connection: keep-alive"),
    CASE("HTTP/1.0 Keep-Alive", "200o", OPEN, "GET /hello HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", HELLO_BODY),
    CASE("HTTP/1.0 closes", "200o", CLOSED, "GET /hello HTTP/1.0\r\nConnection: close\r\n\r\n", HELLO_BODY),
    CASE("HTTP/1.0 has no chunks", "200o", CLOSED, "GET /chunks HTTP/1.0\r\n\r\n", .body = {B("one\ntwo\nthree\n")}),
    CASE("HTTP/1.0 keep-alive has no chunks", "200o", CLOSED, "GET /chunks HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	 .body = {B("one\ntwo\nthree\n")}),
    CASE("HTTP/1.0 big", "200o", CLOSED, "GET /big HTTP/1.0\r\n\r\n", .body = {R(200000, "b")}),
    CASE("HTTP/1.0 has no trailer", "200o", CLOSED, "GET /sum HTTP/1.0\r\n\r\n", .body = {B("sum\n")}),
    CASE("HTTP/1.1 has a trailer", "200", OPEN, "GET /sum HTTP/1.1\r\nHost: h\r\n\r\n", .body = {B("sum\n")}),
    CASE("HTTP/1.0 has no interim response", "200o", CLOSED, "GET /early HTTP/1.0\r\n\r\n", .body = {B("early\n")}),
    CASE("HTTP/1.0 does not expect", "200o", CLOSED,
	 "POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", .body = {B("hello")}),
    CASE("HTTP/1.0 HEAD", "200ho", CLOSED, "HEAD /hello HTTP/1.0\r\n\r\n"),
    CASE("HTTP/1.0 POST", "200o", CLOSED, "POST /length HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", .body = {B("5")}),
    CASE("HTTP/1.0, then another request", "200o", CLOSED, "GET /hello HTTP/1.0\r\n\r\n" HELLO, HELLO_BODY),
    CASE("HTTP/1.0 keep-alive, then HTTP/1.1", "200o 200", OPEN,
	 "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" HELLO, .body = {B("hello\nhello\n")}),
    CASE("HTTP/1.1, then HTTP/1.0", "200 200o", CLOSED, HELLO "GET /hello HTTP/1.0\r\n\r\n"),
    CASE("HTTP/1.0 absolute", "200o", CLOSED, "GET http://h/hello HTTP/1.0\r\n\r\n", HELLO_BODY),
    CASE("HTTP/1.2", "200|505", EITHER, VERSION("HTTP/1.2")),
    CASE("HTTP/1.9", "200|505", EITHER, VERSION("HTTP/1.9")),
    CASE("HTTP/2.0", "505", CLOSED, VERSION("HTTP/2.0")),
    CASE("HTTP/2", "400|505", CLOSED, VERSION("HTTP/2")),
    CASE("HTTP/3.1", "505", CLOSED, VERSION("HTTP/3.1")),
    CASE("HTTP/0.9", "400|505", CLOSED, VERSION("HTTP/0.9")),
    CASE("HTTP/0.0", "400|505", CLOSED, VERSION("HTTP/0.0")),
    CASE("HTTP/9.9", "505", CLOSED, VERSION("HTTP/9.9")),
    CASE("no version", "400|505", CLOSED, "GET /hello\r\n\r\n"),
    CASE("no version, a space", "400|505", CLOSED, "GET /hello \r\n\r\n"),
    CASE("no version, fields", "400|505", CLOSED, "GET /hello\r\nHost: h\r\n\r\n"),
    CASE("only a method", "400", CLOSED, "GET\r\n\r\n"),
    CASE("no target", "400", CLOSED, "GET HTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE("HTTP/1", "400", CLOSED, VERSION("HTTP/1")),
    CASE("HTTP/1.", "400", CLOSED, VERSION("HTTP/1.")),
    CASE("HTTP/11", "400", CLOSED, VERSION("HTTP/11")),
    CASE("HTTP/1.10", "400", CLOSED, VERSION("HTTP/1.10")),
    CASE("HTTP/01.1", "400", CLOSED, VERSION("HTTP/01.1")),
    CASE("HTTP/1,1", "400", CLOSED, VERSION("HTTP/1,1")),
    CASE("HTTP/a.b", "400", CLOSED, VERSION("HTTP/a.b")),
    CASE("HTTP/ 1.1", "400", CLOSED, VERSION("HTTP/ 1.1")),
    CASE("HTTP /1.1", "400", CLOSED, VERSION("HTTP /1.1")),
    CASE("HTTP/-1.1", "400", CLOSED, VERSION("HTTP/-1.1")),
    CASE("http/1.1", "400", CLOSED, VERSION("http/1.1")),
    CASE("HTTPS/1.1", "400", CLOSED, VERSION("HTTPS/1.1")),
    CASE("HTP/1.1", "400", CLOSED, VERSION("HTP/1.1")),
    CASE("version with NUL", "400", CLOSED, VERSION("HTTP/1.1\0")),
    CASE("version and more", "400", CLOSED, VERSION("HTTP/1.1x")),
    CASE("version and words", "400", CLOSED, VERSION("HTTP/1.1 HTTP/1.1")),
    CASE("RTSP", "400|501|505", CLOSED, VERSION("RTSP/1.0")),
    CASE("ICE", "400|501|505", CLOSED, "SOURCE /hello ICE/1.0\r\nHost: h\r\n\r\n"),
    CASE("a wrong preface of HTTP/2", "400|501|505", CLOSED, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n\0\0\0\4\0\0\0\0\0"),
    CASE("TLS", "400", CLOSED, "\026\003\001\0\301\001\0\0\275\003\003abcdefgh\0\0\r\n\r\n"),
    CASE("SSH", "400|501", CLOSED, "SSH-2.0-OpenSSH_9.6\r\n"),
    CASE("NULs", "400", CLOSED, "\0\0\0\0\0\0\0\0"),
    CASE("a response", "400|501", CLOSED, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    CASE("8 bits", "400", CLOSED, "\377\376\375\374\r\n\r\n"),
    CASE("JSON", "400", CLOSED, "{\"method\": \"GET\"}\r\n\r\n"),
};

/* ---- targets ----------------------------------------------------------------------------------------------------- */

static const struct http_case target_cases[] = {
    CASE("absolute", "200", OPEN, GET("http://h/hello"), HELLO_BODY),
    CASE("absolute, scheme in upper case", "200", OPEN, GET("HTTP://h/hello"), HELLO_BODY),
    CASE("absolute with port", "200", OPEN, GET("http://h:80/hello"), HELLO_BODY),
    CASE("absolute, IPv6", "200", OPEN, GET("http://[::1]:80/hello"), HELLO_BODY),
    CASE("absolute, another Host", "200", OPEN, GET("http://other/hello"), HELLO_BODY),
    CASE("absolute without path", "404", OPEN, GET("http://h")),
    CASE("absolute with query only", "404", OPEN, GET("http://h?a=1")),
    CASE("absolute with query", "200", OPEN, GET("http://h/query?a=1"), .body = {B("1")}),
    CASE("absolute without Host", "400", EITHER, "GET http://h/hello HTTP/1.1\r\n\r\n"),
    CASE("absolute without authority", "400", EITHER, GET("http:///hello")),
    CASE("absolute with user", "200|400", EITHER, GET("http://u:p@h/hello")),
    CASE("absolute with bad host", "400", EITHER, GET("http://h<x>/hello")),
    CASE("absolute, https", "200|400|421", EITHER, GET("https://h/hello")),
    CASE("absolute, ftp", "400|404|421|501", EITHER, GET("ftp://h/hello")),
    CASE("absolute, dot segments", "200", OPEN, GET("http://h/a/../hello"), HELLO_BODY),
    CASE("OPTIONS, absolute without path", "200|204|404", EITHER, REQUEST("OPTIONS http://h", "")),
    CASE("authority to GET", "400", EITHER, GET("h:80")),
    CASE("asterisk to GET", "400|404|405", EITHER, GET("*")),
    CASE("asterisk and more", "400", EITHER, REQUEST("OPTIONS *x", "")),
    CASE("relative", "400", EITHER, GET("hello")),
    CASE("relative with a dot", "400", EITHER, GET("./hello")),
    CASE("only a query", "400", EITHER, GET("?a=1")),
    CASE("fragment", "400", EITHER, GET("/hello#x")),
    CASE("empty fragment", "400", EITHER, GET("/hello#")),
    CASE("fragment in query", "400", EITHER, GET("/hello?a#x")),
    CASE("space in target", "400", CLOSED, GET("/hel lo")),
    CASE("tab in target", "400", CLOSED, GET("/hel\tlo")),
    CASE("form feed in target", "400", CLOSED, GET("/hel\flo")),
    CASE("vertical tab in target", "400", CLOSED, GET("/hel\vlo")),
    CASE("control character in target", "400", CLOSED, GET("/he\001lo")),
    CASE("NUL in target", "400", CLOSED, GET("/he\0lo")),
    CASE("DEL in target", "400", CLOSED, GET("/he\177lo")),
    CASE("8 bits in target", "400|404", EITHER, GET("/h\303\251llo")),
    CASE("CR in target", "400", CLOSED, GET("/hel\rlo")),
    CASE("LF in target", "400", CLOSED, GET("/hel\nlo")),
    CASE("two spaces before target", "200|400", EITHER, REQUEST("GET  /hello", "")),
    CASE("two spaces behind target", "200|400", EITHER, REQUEST("GET /hello ", "")),
    CASE("tab before target", "200|400", EITHER, REQUEST("GET\t/hello", "")),
    CASE("tab behind target", "200|400", EITHER, "GET /hello\tHTTP/1.1\r\nHost: h\r\n\r\n"),
    CASE("space before method", "200|400", EITHER, " " HELLO),
    CASE("space behind version", "200|400", EITHER, VERSION("HTTP/1.1 ")),
    CASE("%00", "400|404", EITHER, GET("/hello%00")),
    CASE("%00 in a parameter", "200|400|404", EITHER, GET("/item/a%00b")),
    CASE("bad percent", "400|404", EITHER, GET("/hello%zz")),
    CASE("percent at the end", "400|404", EITHER, GET("/hello%")),
    CASE("cut percent", "400|404", EITHER, GET("/hello%4")),
    CASE("percent of a percent", "200", OPEN, GET("/item/%2541"), .body = {B("%41")}),
    CASE("encoded letters", "200", OPEN, GET("/%68ell%6F"), HELLO_BODY),
    CASE("encoded CRLF", "200|400|404", EITHER, GET("/item/a%0d%0ab")),
    CASE("encoded slash", "200|400|404", EITHER, GET("/item/a%2Fb")),
    CASE("encoded question mark", "200", OPEN, GET("/item/a%3Fb"), .body = {B("a?b")}),
    CASE("dot segments", "200", OPEN, GET("/a/../hello"), HELLO_BODY),
    CASE("dot", "200", OPEN, GET("/./hello"), HELLO_BODY),
    CASE("deep dot segments", "200", OPEN, GET("/a/b/./../../hello"), HELLO_BODY),
    CASE("dot segments in a tail", "200", OPEN, GET("/rest/a/../b"), .body = {B("b")}),
    CASE("dots that are no segments", "200", OPEN, GET("/rest/..a/b../..."), .body = {B("..a/b../...")}),
    CASE("dot segments above the root", "400|404", EITHER, GET("/../etc")),
    CASE("dot segments above the root, later", "400|404", EITHER, GET("/a/../../etc")),
    CASE("only dots", "400|404", EITHER, GET("/..")),
    CASE("encoded dot segments", "200", EITHER, GET("/a/%2e%2E/hello"), HELLO_BODY),
    CASE("encoded dot segments above the root", "400|404", EITHER, GET("/%2e%2e/etc")),
    CASE("dots with encoded slash", "400|404", EITHER, GET("/..%2fetc")),
    CASE("dots and backslash", "400|404", EITHER, GET("/..\\etc")),
    CASE("dot segments behind a question mark", "200", OPEN, GET("/query?a=/../x"), .body = {B("/../x")}),
    CASE("two slashes", "200|301|308|404", EITHER, GET("//hello")),
    CASE("two slashes like a host", "404", EITHER, GET("//h/none")),
    CASE("slash at the end", "200|301|308|404", EITHER, GET("/hello/")),
    LONG("long target", "404", OPEN, .send = {B("GET /"), R(8000, "a"), B(" HTTP/1.1\r\nHost: h\r\n\r\n")}),
    LONG("long query", "200", OPEN, .send = {B("GET /hello?"), R(8000, "a"), B(" HTTP/1.1\r\nHost: h\r\n\r\n")},
	 HELLO_BODY),
    LONG("too long target", "414", EITHER, .send = {B("GET /"), R(9000, "a"), B(" HTTP/1.1\r\nHost: h\r\n\r\n")}),
    LONG("too long query", "414", EITHER, .send = {B("GET /hello?"), R(30000, "a"), B(" HTTP/1.1\r\nHost: h\r\n\r\n")}),
    LONG("endless target", "414", CLOSED, .may_reset = true, .send = {B("GET /"), R(1000000, "a")}),
    LONG("endless method", "400|414|431|501", CLOSED, .may_reset = true, .send = {R(1000000, "A")}),
    LONG("many dot segments", "400|404", EITHER,
	 .send = {B("GET "), R(1000, "/.."), B("/etc HTTP/1.1\r\nHost: h\r\n\r\n")}),
    LONG("many segments and dots", "200", OPEN,
	 .send = {B("GET "), R(1000, "/a"), R(1000, "/.."), B("/hello HTTP/1.1\r\nHost: h\r\n\r\n")}, HELLO_BODY),
};

/* ---- header fields ----------------------------------------------------------------------------------------------- */

#define FIELDS(text) "GET /headers HTTP/1.1\r\n" text "\r\n"

static const struct http_case host_cases[] = {
    CASE("no Host", "400", EITHER, "GET /hello HTTP/1.1\r\n\r\n"),
    CASE("two Hosts", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    CASE("two equal Hosts", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    CASE("two Hosts in HTTP/1.0", "400o", CLOSED, "GET /hello HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
    CASE("two Hosts, apart", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: a\r\nX: y\r\nhOST: b\r\n\r\n"),
    CASE("empty Host", "200|400", EITHER, "GET /hello HTTP/1.1\r\nHost:\r\n\r\n"),
    CASE("Host in lower case", "200", OPEN, "GET /hello HTTP/1.1\r\nhost: h\r\n\r\n", HELLO_BODY),
    CASE("Host in upper case", "200", OPEN, "GET /hello HTTP/1.1\r\nHOST:h\r\n\r\n", HELLO_BODY),
    CASE("Host with port", "200", OPEN, "GET /hello HTTP/1.1\r\nHost: h.example:8080\r\n\r\n", HELLO_BODY),
    CASE("Host with empty port", "200", OPEN, "GET /hello HTTP/1.1\r\nHost: h:\r\n\r\n", HELLO_BODY),
    CASE("Host, IPv6", "200", OPEN, "GET /hello HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", HELLO_BODY),
    CASE("Host with percent", "200|400", EITHER, "GET /hello HTTP/1.1\r\nHost: a%20b\r\n\r\n"),
    CASE("Host with space", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n"),
    CASE("Host with slash", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: a/b\r\n\r\n"),
    CASE("Host with user", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: a@b\r\n\r\n"),
    CASE("Host, a URI", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: http://h/\r\n\r\n"),
    CASE("Host with question mark", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: a?b\r\n\r\n"),
    CASE("Host with comma", "200|400", EITHER, "GET /hello HTTP/1.1\r\nHost: a,b\r\n\r\n"),
    CASE("Host with bad port", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: h:80a\r\n\r\n"),
    CASE("Host with two ports", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: h:80:80\r\n\r\n"),
    CASE("Host with open bracket", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: [::1\r\n\r\n"),
    CASE("Host with 8 bits", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: h\303\251\r\n\r\n"),
    CASE("Host with control character", "400", EITHER, "GET /hello HTTP/1.1\r\nHost: h\001\r\n\r\n"),
};

static const struct http_case field_cases[] = {
    CASE("fields", "200", OPEN, FIELDS(H "X-A: b\r\n"), .body = {B("Host: h\nX-A: b\n")}),
    CASE("equal fields", "200", OPEN, FIELDS(H "X: 1\r\nX: 2\r\n"), .body = {B("Host: h\nX: 1\nX: 2\n")}),
    CASE("no space behind colon", "200", OPEN, FIELDS(H "X:b\r\n"), .body = {B("Host: h\nX: b\n")}),
    CASE("whitespace around a value", "200", OPEN, FIELDS(H "X: \t b c\t  \r\n"), .body = {B("Host: h\nX: b c\n")}),
    CASE("empty value", "200", OPEN, FIELDS(H "X:\r\n"), .body = {B("Host: h\nX: \n")}),
    CASE("value of whitespace", "200", OPEN, FIELDS(H "X: \t \r\n"), .body = {B("Host: h\nX: \n")}),
    CASE("tab in a value", "200", OPEN, FIELDS(H "X: a\tb\r\n"), .body = {B("Host: h\nX: a\tb\n")}),
    CASE("8 bits in a value", "200", OPEN, FIELDS(H "X: \303\251\r\n"), .body = {B("Host: h\nX: \303\251\n")}),
    CASE("colons in a value", "200", OPEN, FIELDS(H "X: :a:b\r\n"), .body = {B("Host: h\nX: :a:b\n")}),
    CASE("all token characters", "200", OPEN, FIELDS(H "!#$%&'*+-.^_`|~09aZ: b\r\n"),
	 .body = {B("Host: h\n!#$%&'*+-.^_`|~09aZ: b\n")}),
    CASE("space before colon", "400", CLOSED, FIELDS(H "X : b\r\n")),
    CASE("tab before colon", "400", CLOSED, FIELDS(H "X\t: b\r\n")),
    CASE("empty name", "400", CLOSED, FIELDS(H ": b\r\n")),
    CASE("no colon", "400", CLOSED, FIELDS(H "X\r\n")),
    CASE("space in a name", "400", CLOSED, FIELDS(H "X Y: b\r\n")),
    CASE("bracket in a name", "400", CLOSED, FIELDS(H "X(: b\r\n")),
    CASE("slash in a name", "400", CLOSED, FIELDS(H "X/Y: b\r\n")),
    CASE("quotes in a name", "400", CLOSED, FIELDS(H "\"X\": b\r\n")),
    CASE("8 bits in a name", "400", CLOSED, FIELDS(H "X\377: b\r\n")),
    CASE("NUL in a name", "400", CLOSED, FIELDS(H "X\0: b\r\n")),
    CASE("NUL in a value", "400", CLOSED, FIELDS(H "X: a\0b\r\n")),
    CASE("control character in a value", "200|400", EITHER, FIELDS(H "X: a\001b\r\n")),
    CASE("DEL in a value", "200|400", EITHER, FIELDS(H "X: a\177b\r\n")),
    CASE("folded line", "400", CLOSED, FIELDS(H "X: a\r\n b\r\n")),
    CASE("folded line by a tab", "400", CLOSED, FIELDS(H "X: a\r\n\tb\r\n")),
    CASE("folded line without text", "400", CLOSED, FIELDS(H "X: a\r\n \r\n")),
    CASE("folded empty value", "400", CLOSED, FIELDS(H "X:\r\n b\r\n")),
    CASE("folded Host", "400", CLOSED, FIELDS("Host:\r\n h\r\n")),
    CASE("space before the first field", "200|400", EITHER, FIELDS(" X: b\r\n" H)),
    CASE("space before Host", "400", CLOSED, FIELDS(" " H)),
    CASE("bare CR in a value", "400", CLOSED, FIELDS(H "X: a\rb\r\n")),
    CASE("bare CR behind a value", "400", CLOSED, FIELDS(H "X: a\r\r\n")),
    CASE("bare CR in a name", "400", CLOSED, FIELDS(H "X\rY: b\r\n")),
    CASE("bare CR as line end", "400", CLOSED, "GET /hello HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"),
    CASE("bare CR behind the request line", "400", CLOSED, "GET /hello HTTP/1.1\rHost: h\r\n\r\n"),
    CASE("bare CR as empty line", "400", CLOSED, "GET /hello HTTP/1.1\r\nHost: h\r\n\rX"),
    CASE("bare LF behind the request line", "400", CLOSED, "GET /hello HTTP/1.1\nHost: h\r\n\r\n"),
    CASE("bare LF behind a field", "400", CLOSED, "GET /hello HTTP/1.1\r\nHost: h\nX: y\r\n\r\n"),
    CASE("bare LF as empty line", "400", CLOSED, "GET /hello HTTP/1.1\r\nHost: h\r\n\n"),
    CASE("only bare LF", "400", CLOSED, "GET /hello HTTP/1.1\nHost: h\n\n"),
    CASE("bare LF hides a field", "400", CLOSED, FIELDS(H "X: a\nTransfer-Encoding: chunked\r\n")),
    CASE("LF CR", "400", CLOSED, "GET /hello HTTP/1.1\n\rHost: h\n\r\n\r"),
    CASE("empty line before a request", "200", OPEN, "\r\n" HELLO, HELLO_BODY),
    CASE("empty lines before a request", "200|400", EITHER, "\r\n\r\n\r\n" HELLO),
    CASE("bare LF before a request", "200|400", EITHER, "\n" HELLO),
    CASE("empty line between requests", "200 200", OPEN, HELLO "\r\n" HELLO, .body = {B("hello\nhello\n")}),
    CASE("empty line behind a body", "200 200", OPEN, POST("/length", LENGTH("1")) "x\r\n" HELLO,
	 .body = {B("1hello\n")}),
    LONG("many fields", "200", OPEN, .send = {B("GET /hello HTTP/1.1\r\n" H), R(99, "X: y\r\n"), B(END)}, HELLO_BODY),
    LONG("too many fields", "431", EITHER, .send = {B("GET /hello HTTP/1.1\r\n" H), R(100, "X: y\r\n"), B(END)}),
    LONG("far too many fields", "431", EITHER, .send = {B("GET /hello HTTP/1.1\r\n" H), R(9000, "X: y\r\n"), B(END)}),
    LONG("large field", "200", OPEN, .send = {B("GET /hello HTTP/1.1\r\n" H "X: "), R(15000, "y"), B("\r\n\r\n")},
	 HELLO_BODY),
    LONG("too large field", "431", EITHER,
	 .send = {B("GET /hello HTTP/1.1\r\n" H "X: "), R(20000, "y"), B("\r\n\r\n")}),
    LONG("too large name", "431", EITHER, .send = {B("GET /hello HTTP/1.1\r\n" H), R(20000, "y"), B(": x\r\n\r\n")}),
    LONG("too large fields", "431", EITHER,
	 .send = {B("GET /hello HTTP/1.1\r\n" H), R(50, "X: " X64 X64 X64 X64 X64 X64 "\r\n"), B(END)}),
    LONG("endless field", "431", CLOSED, .may_reset = true,
	 .send = {B("GET /hello HTTP/1.1\r\n" H "X: "), R(1000000, "y")}),
    LONG("endless fields", "431", CLOSED, .may_reset = true,
	 .send = {B("GET /hello HTTP/1.1\r\n" H), R(100000, "X: y\r\n")}),
    LONG("endless whitespace", "400|431", CLOSED, .may_reset = true,
	 .send = {B("GET /hello HTTP/1.1\r\n" H "X:"), R(1000000, " ")}),
};

static const struct http_case connection_cases[] = {
    CASE("Connection: close", "200", CLOSED, GET_WITH("Connection: close\r\n"), HELLO_BODY),
    CASE("Connection: Close", "200", CLOSED, GET_WITH("Connection: Close\r\n"), HELLO_BODY),
    CASE("Connection: keep-alive", "200", OPEN, GET_WITH("Connection: keep-alive\r\n"), HELLO_BODY),
    CASE("close in a list", "200", CLOSED, GET_WITH("Connection: foo, close\r\n")),
    CASE("close in a second field", "200", CLOSED, GET_WITH("Connection: foo\r\nConnection: close\r\n")),
    CASE("close and keep-alive", "200", CLOSED, GET_WITH("Connection: close, keep-alive\r\n")),
    CASE("keep-alive and close", "200", CLOSED, GET_WITH("Connection: keep-alive, close\r\n")),
    CASE("unknown option", "200", OPEN, GET_WITH("Connection: closed\r\n")),
    CASE("close to no route", "404", CLOSED, REQUEST("GET /none", "Connection: close\r\n")),
    CASE("close of chunks", "200", CLOSED, REQUEST("GET /chunks", "Connection: close\r\n"),
	 .body = {B("one\ntwo\nthree\n")}),
    CASE("close in the middle", "200 200", CLOSED, HELLO GET_WITH("Connection: close\r\n") HELLO HELLO,
	 .body = {B("hello\nhello\n")}),
    CASE("Upgrade: websocket", "200", OPEN,
	 GET_WITH("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
		  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
	 HELLO_BODY),
    CASE("Upgrade: h2c", "200", OPEN,
	 GET_WITH("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
	 HELLO_BODY),
    CASE("Upgrade, then a request", "200 200", OPEN, GET_WITH("Connection: Upgrade\r\nUpgrade: x\r\n") HELLO,
	 .body = {B("hello\nhello\n")}),
    CASE("Upgrade with a body", "200 200", OPEN,
	 POST("/length", "Connection: Upgrade\r\nUpgrade: x\r\n" LENGTH("5")) "hello" HELLO, .body = {B("5hello\n")}),
    CASE("Upgrade with chunks", "200 200", OPEN,
	 POST("/length", "Connection: Upgrade\r\nUpgrade: x\r\n" CHUNKED) "5\r\nhello\r\n0\r\n\r\n" HELLO,
	 .body = {B("5hello\n")}),
    CASE("Upgrade and close", "200", CLOSED, GET_WITH("Connection: Upgrade, close\r\nUpgrade: x\r\n")),
    LONG("2 requests", "200*2", OPEN, .send = {R(2, HELLO)}, .body = {R(2, "hello\n")}),
    LONG("16 requests", "200*16", OPEN, .send = {R(16, HELLO)}, .body = {R(16, "hello\n")}),
    LONG("100 requests", "200*100", OPEN, .send = {R(100, HELLO)}, .body = {R(100, "hello\n")}),
    LONG("100 requests with bodies", "200*100", OPEN, .send = {R(100, POST("/echo", LENGTH("5")) "hello")},
	 .body = {R(100, "hello")}),
    LONG("100 chunked requests", "200*100", OPEN, .send = {R(100, POST("/echo", CHUNKED) "2\r\nab\r\n0\r\n\r\n")},
	 .body = {R(100, "ab")}),
    LONG("3 big responses", "200*3", OPEN, .send = {R(3, GET("/big"))}, .body = {R(600000, "b")}),
    CASE("order", "200 200 200", OPEN, GET("/slow") HELLO GET("/item/1"), .body = {B("slow\nhello\n1")}),
    CASE("mixed", "200 404 405 200h 200", OPEN,
	 HELLO GET("/none") POST("/hello", LENGTH("3")) "abc" REQUEST("HEAD /hello", "") GET("/chunks"),
	 .body = {B("hello\none\ntwo\nthree\n")}),
    CASE("garbage behind a request", "200 400", CLOSED, HELLO "\001\002\003\r\n\r\n", HELLO_BODY),
    CASE("unknown method behind a request", "200 501", EITHER, HELLO REQUEST("BREW /x", ""), HELLO_BODY),
    CASE("bad request between requests", "200 400", CLOSED, HELLO "GET /hello HTTP/1.1\r\nX : y\r\n\r\n" HELLO,
	 HELLO_BODY),
    CASE("bad request behind a slow one", "200 400", CLOSED, GET("/slow") "\r\n\001\r\n\r\n", .body = {B("slow\n")}),
    CASE("bytes behind a body", "200 400|501", CLOSED, POST("/length", LENGTH("3")) "abcdef\r\n\r\n", .body = {B("3")}),
    LONG("requests with pauses", "200 200", OPEN, .send = {B(HELLO), B(HELLO)}, .how = PAUSES,
	 .body = {B("hello\nhello\n")}),
};

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

#define CL(value) POST("/length", "Content-Length:" value "\r\n") "hello"

static const struct http_case length_cases[] = {
    CASE("length", "200", OPEN, CL(" 5"), .body = {B("5")}),
    CASE("echo", "200", OPEN, POST("/echo", LENGTH("5")) "hello", .body = {B("hello")}),
    CASE("no length", "200|411", OPEN, POST("/length", ""), .body = {B("0")}),
    CASE("length 0", "200", OPEN, POST("/length", LENGTH("0")), .body = {B("0")}),
    CASE("length 00", "200", OPEN, POST("/length", LENGTH("00")), .body = {B("0")}),
    CASE("leading zeros", "200", OPEN, CL(" 0000000000000000000000005"), .body = {B("5")}),
    CASE("spaces around a length", "200", OPEN, CL("   5  "), .body = {B("5")}),
    CASE("length without whitespace", "200", OPEN, CL("5"), .body = {B("5")}),
    CASE("length in lower case", "200", OPEN, POST("/length", "content-length: 5\r\n") "hello", .body = {B("5")}),
    CASE("body of GET", "200", OPEN, GET_WITH(LENGTH("5")) "hello", HELLO_BODY),
    CASE("body with NUL", "200", OPEN, POST("/echo", LENGTH("5")) "\0\r\n\0x", .body = {B("\0\r\n\0x")}),
    CASE("body like a request", "200", OPEN, POST("/length", LENGTH("32")) HELLO, .body = {B("32")}),
    CASE("two equal lengths", "400", CLOSED, POST("/length", LENGTH("5") LENGTH("5")) "hello"),
    CASE("two lengths", "400", CLOSED, POST("/length", LENGTH("5") LENGTH("6")) "hello"),
    CASE("two lengths, apart", "400", CLOSED, POST("/length", LENGTH("6") "X: y\r\n" LENGTH("5")) "hello"),
    CASE("list of equal lengths", "400", CLOSED, CL(" 5, 5")),
    CASE("list of lengths", "400", CLOSED, CL(" 5, 6")),
    CASE("list with empty element", "400", CLOSED, CL(" 5,")),
    CASE("negative length", "400", CLOSED, CL(" -5")),
    CASE("negative zero", "400", CLOSED, CL(" -0")),
    CASE("length with plus", "400", CLOSED, CL(" +5")),
    CASE("hexadecimal length", "400", CLOSED, CL(" 0x5")),
    CASE("length with letter", "400", CLOSED, CL(" 5a")),
    CASE("length with point", "400", CLOSED, CL(" 5.0")),
    CASE("length with exponent", "400", CLOSED, CL(" 5e0")),
    CASE("length with underscore", "400", CLOSED, CL(" 1_0")),
    CASE("length with space", "400", CLOSED, CL(" 5 5")),
    CASE("length with NUL", "400", CLOSED, CL(" 5\0")),
    CASE("length with vertical tab", "400", CLOSED, CL("\v5")),
    CASE("length with form feed", "400", CLOSED, CL(" 5\f")),
    CASE("quoted length", "400", CLOSED, CL(" \"5\"")),
    CASE("empty length", "400", CLOSED, CL("")),
    CASE("length of whitespace", "400", CLOSED, CL("  ")),
    CASE("length 2^64", "400|413", CLOSED, CL(" 18446744073709551616")),
    CASE("length 2^64+5", "400|413", CLOSED, CL(" 18446744073709551621")),
    CASE("length 2^64-1", "400|413", CLOSED, CL(" 18446744073709551615")),
    CASE("length 2^63", "400|413", CLOSED, CL(" 9223372036854775808")),
    CASE("length 2^32", "413", CLOSED, CL(" 4294967296")),
    CASE("long length", "400|413", CLOSED, CL(" 99999999999999999999999999999999")),
    CASE("space before the colon of a length", "400", CLOSED, POST("/length", "Content-Length : 5\r\n") "hello"),
    CASE("folded length", "400", CLOSED, CL("\r\n 5")),
    LONG("body of the limit", "200", OPEN, .send = {B(POST("/length", LENGTH("1048576"))), R(1048576, "x")},
	 .body = {B("1048576")}),
    LONG("echo of a large body", "200", EITHER, .send = {B(POST("/echo", LENGTH("300000"))), R(300000, "x")},
	 .body = {R(300000, "x")}),
    LONG("body over the limit", "413", CLOSED, .may_reset = true,
	 .send = {B(POST("/length", LENGTH("1048577"))), R(1048577, "x")}),
    LONG("body over the limit, begun", "413", CLOSED, .send = {B(POST("/length", LENGTH("2000000"))), R(100000, "x")}),
    CASE("length over the limit, no body", "413", CLOSED, POST("/length", LENGTH("1048577"))),
    LONG("chunks of the limit", "200", OPEN,
	 .send = {B(POST("/length", CHUNKED)), R(1024, "400\r\n" X1024 "\r\n"), B("0\r\n\r\n")},
	 .body = {B("1048576")}),
    LONG("chunks over the limit", "413", CLOSED, .may_reset = true,
	 .send = {B(POST("/length", CHUNKED)), R(1024, "400\r\n" X1024 "\r\n"), B("1\r\nx\r\n0\r\n\r\n")}),
    LONG("one chunk over the limit", "413", CLOSED, .may_reset = true,
	 .send = {B(POST("/length", CHUNKED "X: y\r\n") "200000\r\n"), R(2097152, "x"), B("\r\n0\r\n\r\n")}),
    CASE("short body, half-close", "0|400|408", CLOSED, POST("/length", LENGTH("10")) "hello", .after = HALF_CLOSE),
    CASE("no body, half-close", "0|400|408", CLOSED, POST("/length", LENGTH("10")), .after = HALF_CLOSE),
    CASE("unread body, then a request", "200 200", OPEN, POST("/ignore", LENGTH("5")) "hello" HELLO,
	 .body = {B("ignored\nhello\n")}),
    CASE("unread chunks, then a request", "200 200", OPEN,
	 POST("/ignore", CHUNKED) "5\r\nhello\r\n0\r\nX: y\r\n\r\n" HELLO, .body = {B("ignored\nhello\n")}),
    CASE("unread body like a request", "200 200", OPEN, POST("/ignore", LENGTH("32")) HELLO HELLO,
	 .body = {B("ignored\nhello\n")}),
    LONG("large unread body, then a request", "200 200", OPEN,
	 .send = {B(POST("/ignore", LENGTH("100000"))), R(100000, "x"), B(HELLO)}, .body = {B("ignored\nhello\n")}),
    LONG("very large unread body", "200", EITHER, .may_reset = true,
	 .send = {B(POST("/ignore", LENGTH("1000000"))), R(1000000, "x")}, .body = {B("ignored\n")}),
    LONG("unread body, then close", "200", CLOSED,
	 .send = {B(POST("/ignore", "Connection: close\r\n" LENGTH("100000"))), R(100000, "x")},
	 .body = {B("ignored\n")}),
    LONG("unread body of HTTP/1.0", "200o", CLOSED,
	 .send = {B("POST /ignore HTTP/1.0\r\nContent-Length: 100000\r\n\r\n"), R(100000, "x")},
	 .body = {B("ignored\n")}),
    LONG("refused body", "417", CLOSED,
	 .send = {B(POST("/ignore", "Expect: tea\r\nConnection: close\r\n" LENGTH("100000"))), R(100000, "x")}),
    LONG("unread body in pieces", "200 200", OPEN,
	 .send = {B(POST("/ignore", LENGTH("10"))), B("hello"), B("hello"), B(HELLO)}, .how = PAUSES,
	 .body = {B("ignored\nhello\n")}),
    CASE("bad unread chunks", "200|400 0|400", ANY, POST("/ignore", CHUNKED) "zz\r\nhello\r\n0\r\n\r\n" HELLO,
	 .body = {B("ignored\n")}),
    CASE("body to no route, then a request", "404 200", OPEN, POST("/none", LENGTH("5")) "hello" HELLO, HELLO_BODY),
    CASE("body to a wrong method, then a request", "405 200", OPEN, POST("/hello", CHUNKED) "1\r\nx\r\n0\r\n\r\n" HELLO,
	 HELLO_BODY),
    LONG("expected, sent after 100", "100 200", OPEN,
	 .send = {B(POST("/echo", "Expect: 100-continue\r\n" LENGTH("5"))), B("hello")}, .how = AFTER_INTERIM,
	 .body = {B("hello")}),
    LONG("expected, after the status was set", "100 201", OPEN,
	 .send = {B(POST("/created", "Expect: 100-continue\r\n" LENGTH("5"))), B("hello")}, .how = AFTER_INTERIM,
	 .body = {B("created\n")}),
    LONG("expected chunks, sent after 100", "100 200", OPEN,
	 .send = {B(POST("/length", "Expect: 100-continue\r\n" CHUNKED)), B("5\r\nhello\r\n0\r\n\r\n")},
	 .how = AFTER_INTERIM, .body = {B("5")}),
    CASE("expected, sent at once", "100? 200", OPEN, POST("/echo", "Expect: 100-continue\r\n" LENGTH("5")) "hello",
	 .body = {B("hello")}),
    CASE("expected, in upper case", "100? 200", OPEN, POST("/echo", "Expect: 100-CONTINUE\r\n" LENGTH("5")) "hello",
	 .body = {B("hello")}),
    CASE("expected without a body", "100? 200", OPEN, POST("/length", "Expect: 100-continue\r\n" LENGTH("0")),
	 .body = {B("0")}),
    CASE("expected by GET", "200", OPEN, GET_WITH("Expect: 100-continue\r\n"), HELLO_BODY),
    CASE("expected, then a request", "100? 200 200", OPEN,
	 POST("/echo", "Expect: 100-continue\r\n" LENGTH("5")) "hello" HELLO, .body = {B("hellohello\n")}),
    CASE("expected in vain", "200", CLOSED, POST("/ignore", "Expect: 100-continue\r\n" LENGTH("5")),
	 .body = {B("ignored\n")}, .how = WHOLE_ONLY),
    CASE("expected from no route", "404|417", ANY, POST("/none", "Expect: 100-continue\r\n" LENGTH("5"))),
    CASE("expected over the limit", "413|417", ANY, POST("/echo", "Expect: 100-continue\r\n" LENGTH("2000000"))),
    CASE("unknown expectation", "417", EITHER, GET_WITH("Expect: tea\r\n")),
    CASE("unknown expectation of a body", "417", ANY, POST("/echo", "Expect: 200-ok\r\n" LENGTH("5")) "hello"),
};

#define TE(value) POST("/length", "Transfer-Encoding:" value "\r\n") "5\r\nhello\r\n0\r\n\r\n"

static const struct http_case coding_cases[] = {
    CASE("chunked", "200", OPEN, TE(" chunked"), .body = {B("5")}),
    CASE("CHUNKED", "200", OPEN, TE(" CHUNKED"), .body = {B("5")}),
    CASE("ChUnKeD", "200", OPEN, POST("/length", "tRANSFER-eNCODING:ChUnKeD \r\n") "5\r\nhello\r\n0\r\n\r\n",
	 .body = {B("5")}),
    CASE("spaces around chunked", "200", OPEN, TE("   chunked  "), .body = {B("5")}),
    CASE("chunked with length", "400", CLOSED, POST("/length", CHUNKED LENGTH("5")) "5\r\nhello\r\n0\r\n\r\n"),
    CASE("length with chunked", "400", CLOSED, POST("/length", LENGTH("5") CHUNKED) "5\r\nhello\r\n0\r\n\r\n"),
    CASE("chunked with length 0", "400", CLOSED, POST("/length", CHUNKED LENGTH("0")) "0\r\n\r\n" HELLO),
    CASE("chunked with bad length", "400", CLOSED, POST("/length", CHUNKED LENGTH("x")) "0\r\n\r\n"),
    CASE("chunked twice", "400", CLOSED, TE(" chunked, chunked")),
    CASE("chunked in two fields", "400", CLOSED, POST("/length", CHUNKED CHUNKED) "0\r\n\r\n"),
    CASE("gzip, chunked", "501", CLOSED, TE(" gzip, chunked")),
    CASE("gzip and chunked in two fields", "400|501", CLOSED,
	 POST("/length", "Transfer-Encoding: gzip\r\n" CHUNKED) "5\r\nhello\r\n0\r\n\r\n"),
    CASE("chunked, gzip", "400", CLOSED, TE(" chunked, gzip")),
    CASE("chunked, identity", "400|501", CLOSED, TE(" chunked, identity")),
    CASE("chunked and identity in two fields", "400|501", CLOSED,
	 POST("/length", CHUNKED "Transfer-Encoding: identity\r\n") "5\r\nhello\r\n0\r\n\r\n"),
    CASE("gzip", "400|501", CLOSED, TE(" gzip")),
    CASE("identity", "400|501", CLOSED, TE(" identity")),
    CASE("identity with length", "400|501", CLOSED,
	 POST("/length", "Transfer-Encoding: identity\r\n" LENGTH("5")) "hello"),
    CASE("unknown coding with length", "400|501", CLOSED,
	 POST("/length", "Transfer-Encoding: x\r\n" LENGTH("5")) "hello"),
    CASE("xchunked", "400|501", CLOSED, TE(" xchunked")),
    CASE("chunkedx", "400|501", CLOSED, TE(" chunkedx")),
    CASE("chunke", "400|501", CLOSED, TE(" chunke")),
    CASE("chun ked", "400|501", CLOSED, TE(" chun ked")),
    CASE("chunked in quotes", "400|501", CLOSED, TE(" \"chunked\"")),
    CASE("chunked with parameter", "400|501", CLOSED, TE(" chunked;q=1")),
    CASE("chunked with semicolon", "400|501", CLOSED, TE(" chunked;")),
    CASE("vertical tab before chunked", "400|501", CLOSED, TE("\vchunked")),
    CASE("vertical tab behind chunked", "400|501", CLOSED, TE(" chunked\v")),
    CASE("form feed before chunked", "400|501", CLOSED, TE(" \fchunked")),
    CASE("NUL behind chunked", "400|501", CLOSED, TE(" chunked\0")),
    CASE("8 bits before chunked", "400|501", CLOSED, TE(" \240chunked")),
    CASE("empty coding", "400|501", CLOSED, TE("")),
    CASE("comma before chunked", "200|400", EITHER, TE(" , chunked")),
    CASE("comma behind chunked", "200|400", EITHER, TE(" chunked,")),
    CASE("folded chunked", "400", CLOSED, TE("\r\n chunked")),
    CASE("space before the colon of a coding", "400", CLOSED,
	 POST("/length", "Transfer-Encoding : chunked\r\n") "5\r\nhello\r\n0\r\n\r\n"),
    CASE("bare CR before chunked", "400", CLOSED, TE(" \rchunked")),
    CASE("underscore in the name", "200", OPEN, POST("/length", "Transfer_Encoding: chunked\r\n" LENGTH("5")) "hello",
	 .body = {B("5")}),
    CASE("chunked in HTTP/1.0", "400o", CLOSED,
	 "POST /length HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    CASE("chunked and length in HTTP/1.0", "400o", CLOSED,
	 "POST /length HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello"),
    CASE("chunked GET", "200 200", OPEN, GET_WITH(CHUNKED) "5\r\nhello\r\n0\r\n\r\n" HELLO,
	 .body = {B("hello\nhello\n")}),
    CASE("TE: trailers", "200", OPEN, GET_WITH("TE: trailers\r\nConnection: TE\r\n"), HELLO_BODY),
};

/* Chunks of a faulty request. The server must notice the fault, and must not parse the bytes after it as a request. */
#define CHUNKS(text) POST("/length", CHUNKED) text
#define TRAILER(text) POST("/trailer", CHUNKED) "5\r\nhello\r\n0\r\n" text "\r\n"

static const struct http_case chunk_cases[] = {
    CASE("two chunks", "200", OPEN, CHUNKS("5\r\nhello\r\n1\r\nx\r\n0\r\n\r\n"), .body = {B("6")}),
    CASE("echo of chunks", "200", OPEN, POST("/echo", CHUNKED) "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
	 .body = {B("hello")}),
    CASE("no chunk", "200", OPEN, CHUNKS("0\r\n\r\n"), .body = {B("0")}),
    CASE("size in upper case", "200", OPEN, CHUNKS("A\r\n0123456789\r\n0\r\n\r\n"), .body = {B("10")}),
    CASE("size in lower case", "200", OPEN, CHUNKS("a\r\n0123456789\r\n0\r\n\r\n"), .body = {B("10")}),
    CASE("size with leading zeros", "200", OPEN, CHUNKS("0005\r\nhello\r\n0\r\n\r\n"), .body = {B("5")}),
    CASE("zeros as last size", "200", OPEN, CHUNKS("5\r\nhello\r\n0000\r\n\r\n"), .body = {B("5")}),
    CASE("chunk of line ends", "200", OPEN, POST("/echo", CHUNKED) "4\r\n\r\n\r\n\r\n0\r\n\r\n",
	 .body = {B("\r\n\r\n")}),
    CASE("extension", "200", OPEN, CHUNKS("5;a=b\r\nhello\r\n0\r\n\r\n"), .body = {B("5")}),
    CASE("extension without value", "200", OPEN, CHUNKS("5;a\r\nhello\r\n0;z\r\n\r\n"), .body = {B("5")}),
    CASE("extension in quotes", "200", OPEN, CHUNKS("5;a=\"b;c\"\r\nhello\r\n0\r\n\r\n"), .body = {B("5")}),
    CASE("extensions", "200", OPEN, CHUNKS("5;a=b;c=d\r\nhello\r\n0\r\n\r\n"), .body = {B("5")}),
    CASE("space before extension", "200|400", EITHER, CHUNKS("5 ;a=b\r\nhello\r\n0\r\n\r\n")),
    CASE("space behind size", "200|400", EITHER, CHUNKS("5 \r\nhello\r\n0\r\n\r\n")),
    CASE("bare LF in extension", "400", CLOSED, CHUNKS("5;a\nb\r\nhello\r\n0\r\n\r\n")),
    CASE("bare CR in extension", "400", CLOSED, CHUNKS("5;a\rb\r\nhello\r\n0\r\n\r\n")),
    CASE("NUL in extension", "400", CLOSED, CHUNKS("5;a\0b\r\nhello\r\n0\r\n\r\n")),
    LONG("long extension", "200|400|413|431", EITHER,
	 .send = {B(CHUNKS("5;")), R(20000, "a"), B("\r\nhello\r\n0\r\n\r\n")}),
    CASE("no size", "400", CLOSED, CHUNKS("\r\nhello\r\n0\r\n\r\n")),
    CASE("letter as size", "400", CLOSED, CHUNKS("g\r\nhello\r\n0\r\n\r\n")),
    CASE("letter behind size", "400", CLOSED, CHUNKS("5g\r\nhello\r\n0\r\n\r\n")),
    CASE("negative size", "400", CLOSED, CHUNKS("-5\r\nhello\r\n0\r\n\r\n")),
    CASE("size with plus", "400", CLOSED, CHUNKS("+5\r\nhello\r\n0\r\n\r\n")),
    CASE("size with 0x", "400", CLOSED, CHUNKS("0x5\r\nhello\r\n0\r\n\r\n")),
    CASE("size with point", "400", CLOSED, CHUNKS("5.0\r\nhello\r\n0\r\n\r\n")),
    CASE("size with underscore", "400", CLOSED, CHUNKS("1_0\r\nhello\r\n0\r\n\r\n")),
    CASE("space before size", "400", CLOSED, CHUNKS(" 5\r\nhello\r\n0\r\n\r\n")),
    CASE("size of 2^64", "400|413", CLOSED, CHUNKS("10000000000000000\r\nhello\r\n0\r\n\r\n")),
    CASE("size of 2^64+5", "400|413", CLOSED, CHUNKS("10000000000000005\r\nhello\r\n0\r\n\r\n")),
    CASE("size of 2^64-1", "400|408|413", CLOSED, CHUNKS("FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n"), .how = WHOLE_ONLY),
    CASE("size of 2^63-1", "400|408|413", CLOSED, CHUNKS("7FFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n"), .how = WHOLE_ONLY),
    CASE("size of 2^32", "400|408|413", CLOSED, CHUNKS("100000000\r\nhello\r\n0\r\n\r\n"), .how = WHOLE_ONLY),
    CASE("sizes whose sum is too large", "400|408|413", CLOSED, CHUNKS("5\r\nhello\r\nFFFFFFFFFFFFFFFB\r\nhello\r\n"),
	 .how = WHOLE_ONLY),
    LONG("endless size", "400|413|431", CLOSED, .send = {B(CHUNKS("")), R(100000, "f")}),
    CASE("bare LF behind size", "400", CLOSED, CHUNKS("5\nhello\r\n0\r\n\r\n")),
    CASE("bare CR behind size", "400", CLOSED, CHUNKS("5\rhello\r\n0\r\n\r\n")),
    CASE("no CRLF behind data", "400", CLOSED, CHUNKS("5\r\nhello0\r\n\r\n")),
    CASE("bare LF behind data", "400", CLOSED, CHUNKS("5\r\nhello\n0\r\n\r\n")),
    CASE("bare CR behind data", "400", CLOSED, CHUNKS("5\r\nhello\r0\r\n\r\n")),
    CASE("bytes behind data", "400", CLOSED, CHUNKS("5\r\nhelloXX0\r\n\r\n")),
    CASE("too few data", "400", CLOSED, CHUNKS("5\r\nhell\r\n0\r\n\r\n")),
    CASE("too many data", "400", CLOSED, CHUNKS("5\r\nhello!\r\n0\r\n\r\n")),
    CASE("bare LF behind last size", "400", CLOSED, CHUNKS("5\r\nhello\r\n0\n\r\n")),
    CASE("bare LF at the end", "400", CLOSED, CHUNKS("5\r\nhello\r\n0\r\n\n")),
    CASE("bytes behind last size", "400", CLOSED, CHUNKS("5\r\nhello\r\n0x\r\n\r\n")),
    CASE("cut data, half-close", "0|400|408", CLOSED, CHUNKS("5\r\nhel"), .after = HALF_CLOSE),
    CASE("cut size, half-close", "0|400|408", CLOSED, CHUNKS("5\r\nhello\r\n1"), .after = HALF_CLOSE),
    CASE("no last chunk, half-close", "0|400|408", CLOSED, CHUNKS("5\r\nhello\r\n"), .after = HALF_CLOSE),
    CASE("no end of trailer, half-close", "0|400|408", CLOSED, CHUNKS("5\r\nhello\r\n0\r\n"), .after = HALF_CLOSE),
    CASE("cut trailer, half-close", "0|400|408", CLOSED, CHUNKS("5\r\nhello\r\n0\r\nX: y"), .after = HALF_CLOSE),
    LONG("many small chunks", "200", OPEN, .send = {B(CHUNKS("")), R(5000, "1\r\nx\r\n"), B("0\r\n\r\n")},
	 .body = {B("5000")}),
    LONG("chunks with pauses", "200", OPEN, .send = {B(CHUNKS("")), B("5\r"), B("\nhel"), B("lo\r\n0\r"), B("\n\r\n")},
	 .how = PAUSES, .body = {B("5")}),
    CASE("trailer", "200", OPEN, TRAILER("X-Sum: 12\r\n"), .body = {B("12")}),
    CASE("trailers", "200", OPEN, TRAILER("A: b\r\nx-sum:\t12 \r\nC: d\r\n"), .body = {B("12")}),
    CASE("no trailer", "200", OPEN, TRAILER(""), .body = {B("none")}),
    CASE("no trailer, but a field", "200", OPEN, POST("/trailer", "X-Sum: 1\r\n" CHUNKED) "0\r\n\r\n",
	 .body = {B("none")}),
    CASE("trailer, then a request", "200 200", OPEN, TRAILER("X-Sum: 12\r\n") HELLO, .body = {B("12hello\n")}),
    CASE("trailer with Content-Length", "200|400", EITHER, TRAILER("Content-Length: 3\r\n")),
    CASE("trailer with Transfer-Encoding", "200|400", EITHER, TRAILER("Transfer-Encoding: chunked\r\n")),
    CASE("trailer with Host", "200|400", EITHER, TRAILER("Host: other\r\n")),
    CASE("trailer with space in name", "400", CLOSED, TRAILER("X Sum: 12\r\n")),
    CASE("trailer with space before colon", "400", CLOSED, TRAILER("X-Sum : 12\r\n")),
    CASE("trailer without colon", "400", CLOSED, TRAILER("X-Sum\r\n")),
    CASE("trailer with NUL", "400", CLOSED, TRAILER("X-Sum: 1\0\r\n")),
    CASE("folded trailer", "400", CLOSED, TRAILER("X-Sum: 1\r\n 2\r\n")),
    CASE("bare LF behind trailer", "400", CLOSED, TRAILER("X-Sum: 1\n")),
    CASE("bare CR in trailer", "400", CLOSED, TRAILER("X-Sum: 1\r2\r\n")),
    LONG("large trailer", "400|413|431", CLOSED, .send = {B(CHUNKS("0\r\nX: ")), R(100000, "x"), B("\r\n\r\n")}),
    LONG("many trailers", "400|413|431", CLOSED, .send = {B(CHUNKS("0\r\n")), R(1000, "X: y\r\n"), B("\r\n")}),
};

/* ---- times and ends ---------------------------------------------------------------------------------------------- */

static const struct http_case time_cases[] = {
    LONG("no byte", "", IDLE, .send = {B("")}, .how = WHOLE_ONLY),
    CASE("only an empty line", "0|408", CLOSED, "\r\n", .how = WHOLE_ONLY),
    CASE("idle after a response", "200", IDLE, HELLO, HELLO_BODY, .how = WHOLE_ONLY),
    CASE("idle after two responses", "200 200", IDLE, HELLO HELLO, .how = WHOLE_ONLY),
    CASE("slow method", "408", CLOSED, "GE", .how = WHOLE_ONLY),
    CASE("slow target", "408", CLOSED, "GET /hel", .how = WHOLE_ONLY),
    CASE("slow head", "408", CLOSED, "GET /hello HTTP/1.1\r\nHost: h\r\n", .how = WHOLE_ONLY),
    CASE("head without its last byte", "408", CLOSED, "GET /hello HTTP/1.1\r\nHost: h\r\n\r", .how = WHOLE_ONLY),
    CASE("head byte by byte, slowly", "408", CLOSED, HELLO, .how = TRICKLE),
    CASE("slow head behind a request", "200 408", CLOSED, HELLO "GET /hel", HELLO_BODY, .how = WHOLE_ONLY),
    CASE("slow body", "408", CLOSED, POST("/length", LENGTH("10")) "hello", .how = WHOLE_ONLY),
    CASE("no body", "408", CLOSED, POST("/length", LENGTH("10")), .how = WHOLE_ONLY),
    CASE("slow chunk", "408", CLOSED, CHUNKS("5\r\nhel"), .how = WHOLE_ONLY),
    CASE("slow trailer", "408", CLOSED, CHUNKS("5\r\nhello\r\n0\r\nX: "), .how = WHOLE_ONLY),
    CASE("slow unread body", "200", ANY, POST("/ignore", LENGTH("10")) "hello", .body = {B("ignored\n")},
	 .how = WHOLE_ONLY),
    LONG("body with pauses", "200", OPEN,
	 .send = {B(POST("/length", LENGTH("5"))), B("h"), B("e"), B("l"), B("l"), B("o")}, .how = PAUSES,
	 .body = {B("5")}),
    LONG("head with pauses", "200", OPEN,
	 .send = {B("GET /he"), B("llo HTTP"), B("/1.1\r"), B("\nHo"), B("st: h\r\n\r"), B("\n")}, .how = PAUSES,
	 HELLO_BODY),
};

static const struct http_case end_cases[] = {
    CASE("half-close behind a request", "200", CLOSED, HELLO, HELLO_BODY, .after = HALF_CLOSE),
    CASE("half-close behind a slow request", "200", CLOSED, GET("/slow"), .body = {B("slow\n")}, .after = HALF_CLOSE),
    CASE("half-close behind a big response", "200", CLOSED, GET("/big"), .body = {R(200000, "b")}, .after = HALF_CLOSE),
    CASE("half-close behind pieces", "200", CLOSED, GET("/chunks"), .body = {B("one\ntwo\nthree\n")},
	 .after = HALF_CLOSE),
    CASE("half-close behind a body", "200", CLOSED, POST("/echo", LENGTH("5")) "hello", .body = {B("hello")},
	 .after = HALF_CLOSE),
    CASE("half-close behind three requests", "200 200 200", CLOSED, HELLO GET("/slow") HELLO,
	 .body = {B("hello\nslow\nhello\n")}, .after = HALF_CLOSE),
    CASE("half-close behind HTTP/1.0", "200o", CLOSED, "GET /hello HTTP/1.0\r\n\r\n", HELLO_BODY, .after = HALF_CLOSE),
    CASE("half-close in a method", "0|400|501", CLOSED, "GE", .after = HALF_CLOSE),
    CASE("half-close in a head", "0|400", CLOSED, "GET /hello HTTP/1.1\r\nHos", .after = HALF_CLOSE),
    CASE("half-close in a second head", "200 0|400", CLOSED, HELLO "GET /hel", HELLO_BODY, .after = HALF_CLOSE),
    LONG("half-close without a byte", "", CLOSED, .send = {B("")}, .after = HALF_CLOSE),
    LONG("reset without a byte", "", ANY, .send = {B("")}, .after = RESET_AFTER),
    CASE("reset in a head", "", ANY, "GET /hello HTTP/1.1\r\nHos", .after = RESET_AFTER),
    CASE("reset in a body", "", ANY, POST("/length", LENGTH("10")) "hello", .after = RESET_AFTER),
    CASE("reset in an echo", "", ANY, POST("/echo", LENGTH("10")) "hello", .after = RESET_AFTER),
    CASE("reset in chunks", "", ANY, CHUNKS("5\r\nhel"), .after = RESET_AFTER),
    CASE("reset before a slow response", "", ANY, GET("/slow"), .after = RESET_AFTER),
    CASE("reset before a response", "", ANY, HELLO, .after = RESET_AFTER),
    LONG("reset in a stream", "", ANY, .send = {R(20, GET("/big"))}, .after = RESET_AFTER, .reads = 1000),
    LONG("reset of an unread stream", "", ANY, .send = {R(20, GET("/big"))}, .after = RESET_AFTER),
    CASE("reset behind a response", "", ANY, HELLO, .after = RESET_AFTER, .reads = 50),
    CASE("close in a head", "", ANY, "GET /hello HTTP/1.1\r\nHos", .after = CLOSE_AFTER),
    CASE("close in a body", "", ANY, POST("/length", LENGTH("10")) "hello", .after = CLOSE_AFTER),
    CASE("close before a slow response", "", ANY, GET("/slow"), .after = CLOSE_AFTER),
    LONG("close in a stream", "", ANY, .send = {R(20, GET("/big"))}, .after = CLOSE_AFTER, .reads = 1000),
};

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* raw.c creates the directory: "digits.txt" of 2020, "page.html" with "page.html.gz" beside it, "large" of 300 000
 * bytes, "sub/index.html", "empty", ".hidden", and symbolic links to "digits.txt", "/etc/passwd" and "..". */
#define FILE_GET(name, fields) REQUEST("GET /files/" name, fields)
#define DIGITS(fields) FILE_GET("digits.txt", fields)
#define MODIFIED "Wed, 01 Jan 2020 00:00:00 GMT"
#define RANGE(text) DIGITS("Range: " text "\r\n")
#define ALL_DIGITS .body = {B("0123456789")}

static const struct http_case file_cases[] = {
    CASE("file", "200", OPEN, DIGITS(""), ALL_DIGITS, .field = "Content-Type: text/plain"),
    CASE("file has a date", "200", OPEN, DIGITS(""), .field = "Last-Modified: " MODIFIED),
    CASE("file accepts ranges", "200", OPEN, DIGITS(""), .field = "Accept-Ranges: bytes"),
    CASE("large file", "200", OPEN, FILE_GET("large", ""), .body = {R(300000, "f")}),
    CASE("empty file", "200", OPEN, FILE_GET("empty", ""), .field = "Content-Length: 0"),
    CASE("HEAD of a file", "200h", OPEN, REQUEST("HEAD /files/digits.txt", ""), .field = "Content-Length: 10"),
    CASE("POST to a file", "405", OPEN, POST("/files/digits.txt", LENGTH("1")) "x", .field = "Allow: GET"),
    CASE("file, then a request", "200 200", OPEN, DIGITS("") HELLO),
    CASE("no such file", "404", OPEN, FILE_GET("none", "")),
    CASE("hidden file", "404", OPEN, FILE_GET(".hidden", "")),
    CASE("hidden file, encoded", "404", OPEN, FILE_GET("%2ehidden", "")),
    CASE("file in a file", "404", OPEN, FILE_GET("digits.txt/x", "")),
    CASE("index of a directory", "200", OPEN, FILE_GET("sub/", ""), .body = {B("index")}),
    CASE("directory without a slash", "301", OPEN, FILE_GET("sub", ""), .field = "Location: /files/sub/"),
    CASE("directory with a query", "301", OPEN, FILE_GET("sub?a=/b", ""), .field = "Location: /files/sub/?a=/b"),
    CASE("directory without an index", "404", OPEN, FILE_GET("", "")),
    CASE("link inside", "200", OPEN, FILE_GET("inside", ""), ALL_DIGITS),
    CASE("link outside", "403|404", OPEN, FILE_GET("outside", "")),
    CASE("link to the parent", "403|404", OPEN, FILE_GET("parent/", "")),
    CASE("file behind a link to the parent", "403|404", OPEN, FILE_GET("parent/secret", "")),
    CASE("file of the parent", "404", OPEN, FILE_GET("../secret", "")),
    CASE("file of the parent, encoded", "404", OPEN, FILE_GET("%2e%2e/secret", "")),
    CASE("file of the parent, slash encoded", "404", OPEN, FILE_GET("..%2fsecret", "")),
    CASE("absolute path", "404", OPEN, FILE_GET("/etc/passwd", "")),
    CASE("absolute path, encoded", "404", OPEN, FILE_GET("%2fetc/passwd", "")),
    CASE("plain page", "200", OPEN, FILE_GET("page.html", ""), .body = {B("plain page")},
	 .field = "Vary: Accept-Encoding"),
    CASE("encoded page", "200", OPEN, FILE_GET("page.html", "Accept-Encoding: br, gzip;q=0.5\r\n"),
	 .body = {B("gzipped page")}, .field = "Content-Encoding: gzip"),
    CASE("encoded page has its type", "200", OPEN, FILE_GET("page.html", "Accept-Encoding: gzip\r\n"),
	 .body = {B("gzipped page")}, .field = "Content-Type: text/html"),
    CASE("encoding that is refused", "200", OPEN, FILE_GET("page.html", "Accept-Encoding: gzip;q=0, br\r\n"),
	 .body = {B("plain page")}),
    CASE("encoding refused in digits", "200", OPEN, FILE_GET("page.html", "Accept-Encoding: gzip; q=0.000\r\n"),
	 .body = {B("plain page")}),
    CASE("encoding with a longer name", "200", OPEN, FILE_GET("page.html", "Accept-Encoding: gzipped\r\n"),
	 .body = {B("plain page")}),
    CASE("range", "206", OPEN, RANGE("bytes=2-4"), .body = {B("234")}, .field = "Content-Range: bytes 2-4/10"),
    CASE("range of one byte", "206", OPEN, RANGE("bytes=0-0"), .body = {B("0")}, .field = "Content-Length: 1"),
    CASE("range to the end", "206", OPEN, RANGE("bytes=7-"), .body = {B("789")}),
    CASE("range beyond the end", "206", OPEN, RANGE("bytes=7-99"), .body = {B("789")}),
    CASE("range from the end", "206", OPEN, RANGE("bytes=-3"), .body = {B("789")}),
    CASE("range from the end, too long", "206", OPEN, RANGE("bytes=-99"), ALL_DIGITS),
    CASE("range in upper case", "206", OPEN, RANGE("BYTES=1-1"), .body = {B("1")}),
    CASE("range behind the end", "416", OPEN, RANGE("bytes=10-"), .field = "Content-Range: bytes */10"),
    CASE("range of nothing", "416", OPEN, RANGE("bytes=-0")),
    CASE("range of an empty file", "416", OPEN, FILE_GET("empty", "Range: bytes=0-\r\n")),
    CASE("several ranges", "200|206", OPEN, RANGE("bytes=0-1,3-4")),
    CASE("range backwards", "200", OPEN, RANGE("bytes=4-2"), ALL_DIGITS),
    CASE("range of another unit", "200", OPEN, RANGE("lines=0-1"), ALL_DIGITS),
    CASE("range without numbers", "200", OPEN, RANGE("bytes=-"), ALL_DIGITS),
    CASE("range with letters", "200", OPEN, RANGE("bytes=0-1x"), ALL_DIGITS),
    CASE("range of 2^64", "200|206|416", OPEN, RANGE("bytes=18446744073709551616-")),
    CASE("HEAD ignores a range", "200h", OPEN, REQUEST("HEAD /files/digits.txt", "Range: bytes=2-4\r\n")),
    CASE("range if unchanged", "206", OPEN, DIGITS("Range: bytes=2-4\r\nIf-Range: " MODIFIED "\r\n"),
	 .body = {B("234")}),
    CASE("range if changed", "200", OPEN, DIGITS("Range: bytes=2-4\r\nIf-Range: Wed, 01 Jan 2020 00:00:01 GMT\r\n"),
	 ALL_DIGITS),
    CASE("range if another tag", "200", OPEN, DIGITS("Range: bytes=2-4\r\nIf-Range: \"x\"\r\n"), ALL_DIGITS),
    CASE("not modified", "304", OPEN, DIGITS("If-Modified-Since: " MODIFIED "\r\n")),
    CASE("not modified, by RFC 850", "304", OPEN, DIGITS("If-Modified-Since: Wednesday, 01-Jan-20 00:00:00 GMT\r\n")),
    CASE("not modified, by asctime", "304", OPEN, DIGITS("If-Modified-Since: Wed Jan  1 00:00:00 2020\r\n")),
    CASE("modified", "200", OPEN, DIGITS("If-Modified-Since: Tue, 31 Dec 2019 23:59:59 GMT\r\n"), ALL_DIGITS),
    CASE("modified since no date", "200", OPEN, DIGITS("If-Modified-Since: yesterday\r\n"), ALL_DIGITS),
    CASE("any tag", "304", OPEN, DIGITS("If-None-Match: *\r\n")),
    CASE("other tags", "200", OPEN, DIGITS("If-None-Match: \"a\", W/\"b\"\r\n"), ALL_DIGITS),
    CASE("a tag counts before a date", "200", OPEN,
	 DIGITS("If-None-Match: \"a\"\r\nIf-Modified-Since: " MODIFIED "\r\n"), ALL_DIGITS),
    CASE("must match, and does", "200", OPEN, DIGITS("If-Match: *\r\n"), ALL_DIGITS),
    CASE("must match, and does not", "412", OPEN, DIGITS("If-Match: \"a\"\r\n")),
    CASE("must be unmodified, and is", "200", OPEN, DIGITS("If-Unmodified-Since: " MODIFIED "\r\n"), ALL_DIGITS),
    CASE("must be unmodified, and is not", "412", OPEN,
	 DIGITS("If-Unmodified-Since: Tue, 31 Dec 2019 23:59:59 GMT\r\n")),
};

/* The kinds with time-outs are first, so that their cases overlap with all other cases. */
#define KIND(name, cases)                                                                                              \
	{                                                                                                              \
		name, cases, sizeof(cases) / sizeof *(cases)                                                           \
	}
static const struct {
	const char *name;
	const struct http_case *cases;
	unsigned count;
} kinds[] = {
    KIND("times", time_cases),
    KIND("ends", end_cases),
    KIND("methods and routes", method_cases),
    KIND("versions", version_cases),
    KIND("targets", target_cases),
    KIND("Host", host_cases),
    KIND("fields", field_cases),
    KIND("connections", connection_cases),
    KIND("lengths", length_cases),
    KIND("codings", coding_cases),
    KIND("chunks", chunk_cases),
    KIND("files", file_cases),
};

#endif
