/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cases of mux.c: actions of HTTP/2 servers, and the client's results. A server reads the
 * preface, sends SETTINGS, and plays its script, whose commands are separated by semicolons:
 *
 *   bare                      no SETTINGS in front
 *   req N; data N; window?    waits until N requests have come; N bytes of bodies; a stream's WINDOW_UPDATE
 *   h ID FLAGS name=value …   HEADERS; FLAGS: e the end of the stream, h the end of the head, -
 *   c ID FLAGS name=value …   CONTINUATION
 *   d ID FLAGS N              DATA of N bytes
 *   f TYPE FLAGS ID HEX       any frame; TYPE and FLAGS in hexadecimal, HEX may be -
 *   set ID N; win ID N; rst ID CODE; goaway ID CODE
 *   x N COMMAND               N times the command
 *   raw HEX; sleep MS; close
 *
 * Later it only reads, and the case's later connections answer each request with 200 and five bytes, or by `then`. A
 * connection that begins with HTTP/1.1 is answered by that version. Requests are begun in their order. Results:
 * "200:5", status and bytes of the body; "103 200:5" after an interim response; "old 200:5" by HTTP/1.1; "200:5+77"
 * with a trailer; "200:5!reset" if the body fails; "again" if the server has refused it; as patterns of fnmatch.
 * `events`: what the server gets, each must occur: "rst 1 8", "goaway 11".
 */
#ifndef WEFT_TESTS_HTTP_MUX_CASES_H
#define WEFT_TESTS_HTTP_MUX_CASES_H

struct mux_case {
	const char *name, *script, *results;
	unsigned requests, connections; /* 0: 1 */
	const char *events, *method, *then;
	size_t body;	       /* bytes of the body that is sent */
	unsigned one : 1;      /* the client may have only one connection */
	unsigned lazy : 1;     /* the first request reads its body when the other requests have ended */
	unsigned hasty : 1;    /* all time limits are short */
	unsigned streamed : 1; /* the body is written in pieces */
	unsigned narrow : 1;   /* the server's sockets have small buffers */
	unsigned restless : 1; /* each connection ends by GOAWAY after a few requests */
};

#define OK(id) "h " #id " h :status=200; d " #id " e 5"
#define BAD(fields) "req 1; h 1 eh " fields, "bad", .events = "rst 1 1"

static const struct mux_case mux_cases[] = {
    /* Responses. */
    {"a response", "req 1; " OK(1), "200:5"},
    {"no body", "req 1; h 1 eh :status=204", "204:0"},
    {"HEAD", "req 1; h 1 eh :status=200 content-length=7", "200:0", .method = "HEAD"},
    {"304 with a length", "req 1; h 1 eh :status=304 content-length=7", "304:0"},
    {"CONTINUATION", "req 1; h 1 - :status=200; c 1 - a=b; c 1 h c=d; d 1 e 3", "200:3"},
    {"1xx", "req 1; h 1 h :status=103 link=x; h 1 h :status=102; " OK(1), "103 102 200:5"},
    {"a trailer", "req 1; h 1 h :status=200; d 1 - 5; h 1 eh x-sum=77", "200:5+77"},
    {"a trailer without a body", "req 1; h 1 h :status=200; h 1 eh x-sum=7", "200:0+7"},
    {"in the other order", "req 2; h 3 h :status=201; d 3 e 2; h 1 h :status=202; d 1 e 1", "202:1, 201:2", 2},
    {"interleaved", "req 2; h 1 h :status=200; h 3 h :status=201; x 9 d 3 - 10; x 9 d 1 - 7; d 3 e 0; d 1 e 1",
     "200:64, 201:90", 2},
    {"padding", "req 1; f 1 c 1 0388000000; f 0 9 1 024142430000", "200:3"},
    {"unknown frames", "req 1; f 77 ff 9 00112233; f c 0 0 -; " OK(1), "200:5"},
    {"PING", "req 1; f 6 0 0 0000000000000007; " OK(1), "200:5", .events = "pong"},
    {"PRIORITY", "req 1; f 2 0 1 0000000010; " OK(1), "200:5"},
    {"a body is sent", "req 1; data 10; " OK(1), "200:5", .method = "PUT", .body = 10},
    {"a body larger than the window", "req 1; data 65535; win 1 100000; win 0 100000; data 100000; " OK(1), "200:5",
     .method = "PUT", .body = 100000},
    {"a window that a setting opens", "set 4 10; req 1; sleep 5; set 4 100; data 100; " OK(1), "200:5", .method = "PUT",
     .body = 100},
    {"a body in pieces", "req 1; data 60000; " OK(1), "200:5", .method = "POST", .body = 60000, .streamed = 1},
    {"a redirect", "req 1; h 1 h :status=302 location=/next; d 1 e 2; req 2; " OK(3), "200:5"},
    {"an answer to half of a request", "req 1; h 1 h :status=413; d 1 e 2; rst 1 0", "413:2", .method = "POST",
     .body = 1000000, .streamed = 1},
    {"an answer that leaves the request open", "req 1; h 1 h :status=413; d 1 e 2", "413:2", .method = "POST",
     .body = 1000000, .events = "rst 1 8"},

    /* Second attempts. */
    {"refused, then answered", "req 1; rst 1 7; req 2; " OK(3), "200:5"},
    {"refused, POST", "req 1; rst 1 7; req 2; data 20; " OK(3), "200:5", .method = "POST", .body = 10},
    {"refused, a streamed body", "req 1; rst 1 7", "again", .method = "POST", .body = 10, .streamed = 1},
    {"refused twice", "req 1; rst 1 7; req 2; rst 3 7; req 3; " OK(5), "again"},
    {"GOAWAY below the request", "req 1; goaway 0 0", "200:5", .connections = 2, .method = "POST", .body = 3},
    {"GOAWAY in the middle", "req 3; goaway 3 0; " OK(1) "; h 3 h :status=201; d 3 e 1", "200:5, 201:1, 200:5", 3, 2},
    {"GOAWAY before HEADERS could be sent",
     "set 4 99999999; win 0 99999999; sleep 60; goaway 1 0; data 12000000; " OK(1), "200:5, 200:5", 2, 2,
     .method = "PUT", .body = 12000000, .narrow = 1},
    {"GOAWAY twice", "req 2; goaway 2147483647 0; goaway 1 0; " OK(1), "200:5, 200:5", 2, 2},
    {"GOAWAY, and the end", "req 2; goaway 1 0; close", "reset, 200:5", 2, 2},
    {"GOAWAY with an error", "req 1; goaway 1 2; close", "reset"},
    {"GOAWAY to the second attempt", "req 1; goaway 0 0", "again", .connections = 2, .then = "req 1; goaway 0 0"},
    {"refused, then GOAWAY", "req 1; rst 1 7; req 2; goaway 1 0", "again"},
    {"HTTP/1.1 is required", "req 1; rst 1 13", "old 200:5", .connections = 2},
    {"HTTP/1.1 is required, PUT", "req 1; rst 1 13", "old 200:5", .connections = 2, .method = "PUT", .body = 10},
    {"HTTP/1.1 is required, POST", "req 1; rst 1 13", "reset", .method = "POST", .body = 10},
    {"HTTP/1.1 is required, a streamed body", "req 1; rst 1 13", "reset", .method = "PUT", .body = 10, .streamed = 1},
    {"HTTP/1.1 is required after 1xx", "req 1; h 1 h :status=103; rst 1 13", "103 reset"},
    {"HTTP/1.1 is required in a body", "req 1; h 1 h :status=200; d 1 - 5; rst 1 13", "200:5!reset"},
    {"HTTP/1.1 is required by the second attempt", "req 1; rst 1 7; req 2; rst 3 13", "old 200:5", .connections = 2},
    {"HTTP/1.1 is required of one of two", "req 2; rst 1 13; " OK(3), "old 200:5, 200:5", 2, 2},
    {"HTTP/1.1 is required of two", "req 2; rst 1 13; rst 3 13", "old 200:5, old 200:5", 2, 3},
    {"HTTP/1.1 is required by a connection", "req 1; goaway 0 13", "old 200:5", .connections = 2, .method = "POST",
     .body = 3},
    {"the end before an answer", "req 1; close", "reset"},
    {"the end, with two requests", "req 2; close", "reset, 200:5", 2, 2},
    {"the end, with two that may not be repeated", "req 2; close", "reset, reset", 2, 1, .method = "POST"},
    {"a reset before an answer", "req 1; rst 1 2", "reset"},
    {"a reset of the second", "req 2; rst 3 2; " OK(1), "200:5, reset", 2},

    /* Connections and streams that end in the middle. */
    {"a reset in the body", "req 1; h 1 h :status=200; d 1 - 5; rst 1 2", "200:5!reset"},
    {"the end in the body", "req 1; h 1 h :status=200; d 1 - 5; close", "200:5!reset"},
    {"the end in a frame", "req 1; h 1 h :status=200; d 1 - 5; raw 000100; close", "200:5!reset"},
    {"the end in a head", "req 1; h 1 - :status=200; close", "reset"},
    {"a complete response, and the end", "req 2; " OK(1) "; close", "200:5, 200:5", 2, 2},

    /* Connections. */
    {"one stream at a time", "set 3 1; req 1; sleep 20; " OK(1) "; req 2; " OK(3), "200:5, 200:5", 2, .one = 1},
    {"one stream at a time, two connections", "set 3 1; req 1; sleep 20; " OK(1), "200:5, 200:5", 2, 2},
    {"two streams, then more", "set 3 2; req 2; set 3 9; req 4; " OK(1) "; " OK(3) "; " OK(5) "; " OK(7),
     "200:5, 200:5, 200:5, 200:5", 4, .one = 1},

    /* Windows. */
    {"more than the window", "req 2; h 1 h :status=200; x 17 d 1 - 16384; " OK(3), "200:*!bad, 200:5", 2,
     .events = "rst 1 3", .lazy = 1},
    {"a full window holds up no other", "req 2; h 1 h :status=200; x 16 d 1 - 16384; " OK(3) "; window?; d 1 e 1",
     "200:262145, 200:5", 2, .lazy = 1},
    {"a window of the stream that overflows", "req 1; x 2 win 1 2147483647", "bad", .method = "PUT", .body = 100000,
     .events = "rst 1 3"},
    {"a window of 0", "req 1; win 1 0", "bad", .method = "PUT", .body = 100000},

    /* Responses that are malformed: RFC 9113 §8.1.1. */
    {"no status", BAD("a=b")},
    {"two statuses", BAD(":status=200 :status=200")},
    {"a status behind a field", BAD("a=b :status=200")},
    {"a status of two digits", BAD(":status=20")},
    {"a status that is no number", BAD(":status=2x0")},
    {"101", BAD(":status=101")},
    {"a pseudo field of requests", BAD(":status=200 :path=/")},
    {"upper case", BAD(":status=200 Server=x")},
    {"CR LF in a value", BAD(":status=200 a=b%0d%0ac:%20d")},
    {"connection", BAD(":status=200 connection=close")},
    {"transfer-encoding", BAD(":status=200 transfer-encoding=chunked")},
    {"two lengths", BAD(":status=200 content-length=1 content-length=2")},
    {"a length and no body", BAD(":status=200 content-length=1")},
    {"an interim response at the end", BAD(":status=103")},
    {"a longer body", "req 1; h 1 h :status=200 content-length=3; d 1 e 5", "200:*!bad", .events = "rst 1 1"},
    {"a shorter body", "req 1; h 1 h :status=200 content-length=9; d 1 e 5", "200:5!bad", .events = "rst 1 1"},
    {"a body before its head", "req 1; d 1 e 5", "bad", .events = "goaway 1"},
    {"a trailer in the middle", "req 1; h 1 h :status=200; d 1 - 5; h 1 h x=y", "200:5!bad", .events = "rst 1 1"},
    {"one is malformed, and others are not", "req 3; " OK(1) "; h 3 eh a=b; " OK(5), "200:5, bad, 200:5", 3},

    /* Limits. */
    {"a field over the limit", "req 1; h 1 - :status=200; x 5 c 1 - a=%{16000}; c 1 h b=c", "large",
     .events = "rst 1 8"},
    {"too many fields", "req 1; h 1 eh :status=200 %[101]", "large", .events = "rst 1 8"},
    {"a field that is used again and again", "req 1; f 1 5 1 884001787fb916%<61:3000>%<be:9000>", "large",
     .events = "rst 1 8"},
    {"a trailer over the limit", "req 1; h 1 h :status=200; d 1 - 5; h 1 e a=%{16000}; x 4 c 1 - a=%{16000}; c 1 h b=c",
     "200:5!large", .events = "rst 1 8"},
    {"large interim responses", "req 1; x 9 h 1 h :status=103 a=%{9000}", "103*large", .events = "rst 1 8"},
    {"too many interim responses", "req 1; x 200 h 1 h :status=103", "103*bad"},
    {"a limit of one ends no other", "req 2; h 1 eh :status=200 %[101]; " OK(3), "large, 200:5", 2},

    /* Attacks. */
    {"a flood of CONTINUATION", "req 1; h 1 - :status=200; x 500 c 1 -", "bad", .events = "goaway 11"},
    {"CONTINUATION-flood, and the end", "req 1; h 1 - :status=200; x 500 c 1 -; close", "bad"},
    {"a flood of SETTINGS", "req 1; x 3000 set 3 5", "bad", .events = "goaway 11"},
    {"a flood of PING", "req 1; x 3000 f 6 0 0 0000000000000000", "bad", .events = "goaway 11"},
    {"a flood of PRIORITY", "req 1; x 3000 f 2 0 1 0000000010", "bad", .events = "goaway 11"},
    {"a flood of unknown frames", "req 1; x 3000 f 77 0 0 -", "bad", .events = "goaway 11"},
    {"a flood of empty DATA", "req 1; h 1 h :status=200; x 3000 d 1 - 0", "*bad", .events = "goaway 11"},
    {"a flood of GOAWAY", "req 1; x 3000 goaway 1 0", "bad", .events = "goaway 11"},
    {"a flood of resets", "req 2; rst 1 8; x 3000 rst 1 8", "reset, bad", 2, .events = "goaway 11"},
    {"PUSH_PROMISE", "req 1; f 5 4 1 0000000282", "bad", .events = "goaway 1"},
    {"HEADERS of a new stream", "req 1; h 2 eh :status=200", "bad", .events = "goaway 1"},
    {"HEADERS of an idle stream", "req 1; h 3 eh :status=200", "bad", .events = "goaway 1"},
    {"DATA of stream 0", "req 1; d 0 e 1", "bad", .events = "goaway 1"},
    {"DATA of an idle stream", "req 1; d 3 e 1", "bad", .events = "goaway 1"},
    {"a reset of an idle stream", "req 1; rst 3 8", "bad", .events = "goaway 1"},
    {"a frame that is too large", "req 1; f 0 0 1 %<00:16385>", "bad", .events = "goaway 6"},
    {"fields that cannot be decoded", "req 1; f 1 5 1 ff", "bad", .events = "goaway 9"},
    {"a connection's window that overflows", "req 1; win 0 2147483647", "bad", .events = "goaway 3"},
    {"SETTINGS of five bytes", "req 1; f 4 0 0 0000000000", "bad", .events = "goaway 6"},
    {"ENABLE_PUSH", "req 1; set 2 2", "bad", .events = "goaway 1"},
    {"a frame between HEADERS and CONTINUATION", "req 1; h 1 - :status=200; f 6 0 0 0000000000000000", "bad",
     .events = "goaway 1"},
    {"no SETTINGS in front", "bare; f 6 0 0 0000000000000000", "bad"},
    {"an answer of HTTP/1.1", "bare; raw 485454502f312e3120323030204f4b0d0a0d0a", "bad"},
    {"an end in place of SETTINGS", "bare; close", "reset"},

    /* Late answers. */
    {"late: SETTINGS", "bare", "late", .hasty = 1},
    {"late: an answer", "req 1", "late", .events = "rst 1 8", .hasty = 1},
    {"late: half of a head", "req 1; h 1 - :status=200", "late", .hasty = 1},
    {"late: a body", "req 1; h 1 h :status=200; d 1 - 5", "200:5!late", .events = "rst 1 8", .hasty = 1},
    {"late: a window that never opens", "req 1", "late", .method = "PUT", .body = 100000, .events = "rst 1 8",
     .hasty = 1},
    {"late: no stream at all", "set 3 0", "late", .hasty = 1},
    {"late: PING and no answer", "req 1; x 20 f 6 0 0 0000000000000000", "late", .hasty = 1},
    {"late: hand-over of the reader's role", "req 2; " OK(1) "; sleep 50; " OK(3), "200:5, 200:5", 2, .hasty = 1},
    {"late: one, and others are not", "req 2; " OK(3), "late, 200:5", 2, .events = "rst 1 8", .hasty = 1},
};

#endif
