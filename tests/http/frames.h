/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cases of frames.c: frames that a client sends, and the answers that RFC 9113 demands. Semicolons separate
 * commands; streams and codes are numbers.
 *
 *   bare                      first: neither the preface nor SETTINGS are sent
 *   h ID FLAGS NAME=VALUE …   HEADERS, of literal fields. FLAGS: e END_STREAM, h END_HEADERS, - none; %20 is a byte
 *   c ID FLAGS NAME=VALUE …   CONTINUATION
 *   get ID PATH; post ID PATH HEADERS of a whole request, or of one whose body follows
 *   d ID FLAGS BYTES          DATA
 *   f TYPE FLAGS ID HEX       any frame, all in hexadecimal digits except ID; - no payload
 *   raw HEX                   bytes
 *   set ID VALUE; win ID N; rst ID CODE; ping
 *   x TIMES COMMAND           the command so many times; `$` in it counts 1, 3, 5 …
 *   reset ID                  a request, and at once RST_STREAM
 *   sleep MS; half            a pause; shutdown(SHUT_WR)
 *
 * %{9} is "aaaaaaaaa", %[3] three fields, and %<be:3> the digits bebebe. Answers are separated by commas, in any order:
 * "200 1 6" (status, stream, bytes of the body), "rst 1 CODE", "goaway CODE", "closed" (without GOAWAY), "http1" (an
 * answer of that version). `~` in front: other answers are allowed. If the connection is to stay open, a ping and a
 * request are answered last, except with `!` in front.
 */
#ifndef WEFT_TESTS_HTTP_FRAMES_H
#define WEFT_TESTS_HTTP_FRAMES_H

struct frames_case {
	const char *name, *sends, *answers;
};

#define GET ":method=GET :scheme=http :path=/hello :authority=h"
#define POST ":method=POST :scheme=http :path=/length :authority=h"

static const struct frames_case frames_cases[] = {
    /* Requests. */
    {"a request", "get 1 /hello", "200 1 6"},
    {"two requests", "get 1 /hello; get 3 /none", "200 1 6, 404 3 14"},
    {"streams may be skipped", "get 5 /hello; get 77 /hello", "200 5 6, 200 77 6"},
    {"a body", "post 1 /length; d 1 - 100; d 1 e 23", "200 1 3"},
    {"an empty body", "post 1 /length; d 1 e 0", "200 1 1"},
    {"echo", "post 1 /echo; d 1 - 10; d 1 - 20; d 1 e 5", "200 1 35"},
    {"a trailer", "post 1 /trailer; d 1 - 10; h 1 eh x-sum=77", "200 1 2"},
    {"HEAD", "h 1 eh :method=HEAD :scheme=http :path=/hello :authority=h", "200 1 0"},
    {"103", "get 1 /early", "103 1, 200 1 6"},
    {"100", "h 1 h " POST " expect=100-continue; sleep 150; d 1 e 4", "100 1, 200 1 1"},
    {"unknown expectation", "h 1 eh " GET " expect=x", "417 1 23"},
    {"no handler's answer", "get 1 /nothing", "500 1 26"},
    {"a handler ends its task", "get 1 /fail; get 3 /hello", "rst 1 2, 200 3 6"},
    {"unknown method", "h 1 eh :method=BREW :scheme=http :path=/hello :authority=h", "501 1 20"},
    {"CONNECT", "h 1 eh :method=CONNECT :authority=h:1", "501 1 20"},
    {"a method without a route", "h 1 eh :method=PUT :scheme=http :path=/hello :authority=h", "405 1 23"},
    {"OPTIONS *", "h 1 eh :method=OPTIONS :scheme=http :path=* :authority=h", "204 1 0"},
    {"a path that leads out", "get 1 /../x", "400 1 16"},
    {"cookies are joined", "h 1 eh :method=GET :scheme=http :path=/cookie :authority=h cookie=a=1 x=y cookie=b=2",
     "200 1 8"},
    {"an authority of odd bytes", "h 1 eh :method=GET :scheme=http :path=/hello :authority=h%2fx", "rst 1 1"},
    {"Host alone", "h 1 eh :method=GET :scheme=http :path=/hello host=h", "200 1 6"},
    {"Host as the authority", "h 1 eh " GET " host=H", "200 1 6"},
    {"Host unlike the authority", "h 1 eh " GET " host=i", "400 1 16"},
    {"a response larger than the window", "set 4 1000; get 1 /big; win 1 300000; win 0 300000", "200 1 200000"},
    {"a window of one byte, then more", "set 4 1; get 1 /hello; sleep 5; win 1 1; sleep 5; win 1 10", "!200 1 6"},
    {"a window that a setting opens", "set 4 0; get 1 /hello; sleep 5; set 4 100", "200 1 6"},
    {"a trailer in the response", "get 1 /sum", "trailer 1, 200 1 4"},
    {"a body that no one reads", "post 1 /ignore; d 1 - 100", "200 1 8, rst 1 0"},
    {"a body that no one reads, whole", "post 1 /ignore; d 1 e 100", "~200 1 8"},

    /* Heads that are malformed: RFC 9113 §8.1.1. */
    {"no method", "h 1 eh :scheme=http :path=/hello :authority=h", "rst 1 1"},
    {"no path", "h 1 eh :method=GET :scheme=http :authority=h", "rst 1 1"},
    {"no scheme", "h 1 eh :method=GET :path=/hello :authority=h", "rst 1 1"},
    {"no authority", "h 1 eh :method=GET :scheme=http :path=/hello", "rst 1 1"},
    {"an empty path", "h 1 eh :method=GET :scheme=http :path= :authority=h", "rst 1 1"},
    {"two methods", "h 1 eh :method=GET " GET, "rst 1 1"},
    {"two paths", "h 1 eh :path=/hello " GET, "rst 1 1"},
    {"two schemes", "h 1 eh :scheme=http " GET, "rst 1 1"},
    {"two authorities", "h 1 eh :authority=h " GET, "rst 1 1"},
    {"unknown pseudo field", "h 1 eh " GET " :x=1", "rst 1 1"},
    {"a status", "h 1 eh " GET " :status=200", "rst 1 1"},
    {"pseudo field behind others", "h 1 eh :method=GET :scheme=http a=b :path=/hello :authority=h", "rst 1 1"},
    {"upper case", "h 1 eh " GET " Accept=x", "rst 1 1"},
    {"a space in a name", "h 1 eh " GET " a%20b=x", "rst 1 1"},
    {"CR LF in a value", "h 1 eh " GET " a=x%0d%0ay:%20z", "rst 1 1"},
    {"NUL in a value", "h 1 eh " GET " a=x%00", "rst 1 1"},
    {"connection", "h 1 eh " GET " connection=close", "rst 1 1"},
    {"keep-alive", "h 1 eh " GET " keep-alive=1", "rst 1 1"},
    {"proxy-connection", "h 1 eh " GET " proxy-connection=close", "rst 1 1"},
    {"transfer-encoding", "h 1 eh " GET " transfer-encoding=chunked", "rst 1 1"},
    {"upgrade", "h 1 eh " GET " upgrade=h2c", "rst 1 1"},
    {"te", "h 1 eh " GET " te=gzip", "rst 1 1"},
    {"te: trailers", "h 1 eh " GET " te=trailers", "200 1 6"},
    {"a pseudo field in a trailer", "post 1 /length; d 1 - 1; h 1 eh :path=/x", "rst 1 1"},
    {"a trailer that does not end the stream", "post 1 /length; d 1 - 1; h 1 h a=b", "rst 1 1"},
    {"a length that is too small", "h 1 h " POST " content-length=3; d 1 e 4", "rst 1 1"},
    {"a length that is too large", "h 1 h " POST " content-length=5; d 1 e 4", "rst 1 1"},
    {"two lengths", "h 1 h " POST " content-length=4 content-length=4; d 1 e 4", "rst 1 1"},
    {"no number as a length", "h 1 h " POST " content-length=4x; d 1 e 4", "rst 1 1"},
    {"a length without a body", "h 1 eh " POST " content-length=4", "rst 1 1"},
    {"bytes that are no fields", "f 1 5 1 ff", "goaway 9"},
    {"an index that is not there", "f 1 5 1 fe", "goaway 9"},
    {"a table that is too large", "f 1 5 1 3fe1ff03", "goaway 9"},

    /* Limits. */
    {"a target over the limit", "get 1 /%{9000}", "414 1 17"},
    {"a field over the limit", "h 1 e " GET " a=%{9000}; c 1 h b=%{9000}", "431 1 36"},
    {"too many fields", "h 1 eh " GET " %[101]", "431 1 36"},
    {"a body over the limit", "h 1 h " POST " content-length=2000000", "413 1 22, rst 1 0"},
    {"a field that is used again and again",
     "f 1 1 1 8286844101684001787fb916%<61:3000>; x 7 f 9 0 1 %<be:3000>; f 9 4 1 -", "431 1 36"},
    {"a list that is used again and again", "f 1 5 1 8286844101684001787fb916%<61:3000>%<be:9000>", "431 1 36"},

    /* Frames where they must not be. */
    {"no preface", "bare; raw 000000040000000000", "http1, closed"},
    {"a preface without SETTINGS", "bare; raw 505249202a20485454502f322e300d0a0d0a534d0d0a0d0a; ping", "goaway 1"},
    {"DATA of stream 0", "d 0 e 1", "goaway 1"},
    {"DATA of an idle stream", "d 1 e 1", "goaway 1"},
    {"HEADERS of stream 0", "h 0 eh " GET, "goaway 1"},
    {"HEADERS of an even stream", "h 2 eh " GET, "goaway 1"},
    {"a smaller stream", "get 5 /slow; get 3 /hello", "goaway 1"},
    {"a stream again", "get 1 /hello; sleep 150; get 1 /hello", "200 1 6, goaway 5"},
    {"DATA behind the end", "get 1 /slow; d 1 e 1", "~goaway 5"},
    {"HEADERS behind the end", "get 1 /slow; h 1 eh a=b", "~goaway 5"},
    {"DATA of a closed stream", "get 1 /hello; sleep 150; d 1 e 1", "200 1 6, goaway 5"},
    {"DATA behind a reset", "post 1 /length; rst 1 8; d 1 e 1", "goaway 5"},
    {"DATA behind a reset of the server", "h 1 h " GET " connection=close; sleep 150; d 1 e 1", "rst 1 1"},
    {"a reset of an idle stream", "rst 1 8", "goaway 1"},
    {"a reset of stream 0", "rst 0 8", "goaway 1"},
    {"a reset of three bytes", "post 1 /length; f 3 0 1 000008", "goaway 6"},
    {"CONTINUATION alone", "c 1 h a=b", "goaway 1"},
    {"CONTINUATION of another stream", "h 1 e " GET "; c 3 h a=b", "goaway 1"},
    {"a frame between HEADERS and CONTINUATION", "h 1 e " GET "; ping; c 1 h a=b", "goaway 1"},
    {"HEADERS and CONTINUATION", "h 1 e " GET "; c 1 - a=b; c 1 h", "200 1 6"},
    {"a flood of CONTINUATION", "h 1 e " GET "; x 2000 c 1 -", "goaway 11"},
    {"padding", "f 1 d 1 03828684410168000000; post 3 /length; f 0 9 3 024142430000", "404 1 14, 200 3 1"},
    {"padding that is too long", "f 1 d 1 ff8286", "goaway 1"},
    {"a frame that is too large", "f 0 0 1 %<00:16385>", "goaway 6"},
    {"unknown frame", "f 77 ff 9 00112233; get 1 /hello", "200 1 6"},
    {"PUSH_PROMISE", "f 5 4 1 0000000282", "goaway 1"},
    {"PRIORITY", "f 2 0 1 0000000010; get 1 /hello; f 2 0 99 0000000110", "200 1 6"},
    {"PRIORITY of stream 0", "f 2 0 0 0000000110", "goaway 1"},
    {"a stream that depends on itself", "f 2 0 1 0000000110", "goaway 1"},
    {"PRIORITY of four bytes", "post 1 /length; f 2 0 1 00000001", "goaway 6"},

    /* Settings, windows, pings. */
    {"SETTINGS of a stream", "f 4 0 1 -", "goaway 1"},
    {"SETTINGS of five bytes", "f 4 0 0 0000000000", "goaway 6"},
    {"an answer to SETTINGS with bytes", "f 4 1 0 000000000000", "goaway 6"},
    {"ENABLE_PUSH 2", "set 2 2", "goaway 1"},
    {"a window over the limit", "set 4 2147483648", "goaway 3"},
    {"frames that are too small", "set 5 100", "goaway 1"},
    {"frames that are too large", "set 5 16777216", "goaway 1"},
    {"unknown setting", "set 4660 5; get 1 /hello", "200 1 6"},
    {"a flood of SETTINGS", "x 5000 set 3 5", "goaway 11"},
    {"a flood of PING", "x 5000 f 6 0 0 0000000000000000", "goaway 11"},
    {"a flood of PRIORITY", "x 5000 f 2 0 1 0000000010", "goaway 11"},
    {"a flood of unknown frames", "x 5000 f 77 0 0 -", "goaway 11"},
    {"a flood of empty DATA", "post 1 /length; x 5000 d 1 - 0", "goaway 11"},
    {"rapid reset", "x 3000 reset $", "~goaway 11"},
    {"streams that the server resets", "x 3000 h $ eh " GET " te=x", "~goaway 11"},
    {"PING of seven bytes", "f 6 0 0 00000000000000", "goaway 6"},
    {"PING of a stream", "f 6 0 1 0000000000000000", "goaway 1"},
    {"a window of 0", "post 1 /length; win 1 0", "goaway 1"},
    {"a window of 0 for the connection", "win 0 0", "goaway 1"},
    {"a window that overflows", "post 1 /length; win 1 2147483647", "rst 1 3"},
    {"the connection's window overflows", "win 0 2147483647", "goaway 3"},
    {"a window of an idle stream", "win 1 1", "goaway 1"},
    {"a window of three bytes", "f 8 0 0 000001", "goaway 6"},
    {"more than the window", "h 1 h :method=GET :scheme=http :path=/hold :authority=h; x 5 d 1 - 16384", "rst 1 3"},
    {"more streams than the limit", "x 101 post $ /length", "!rst 201 7"},
    {"GOAWAY", "get 1 /slow; f 7 0 0 0000000000000000", "200 1 5, closed"},

    /* Late: by a server with little patience. */
    {"late: the preface", "bare; raw 505249", "http1, closed"},
    {"late: SETTINGS", "bare; raw 505249202a20485454502f322e300d0a0d0a534d0d0a0d0a", "goaway 11"},
    {"late: CONTINUATION", "h 1 e " GET, "goaway 11"},
    {"late: half of HEADERS", "raw 000020010500000001828684", "goaway 11"},
    {"late: a body", "post 1 /length; d 1 - 5", "408 1 20, rst 1 0, goaway 0"},
    {"late: idle", "get 1 /hello", "200 1 6, goaway 0"},
    {"late: a window that never opens", "set 4 0; get 1 /hello", "rst 1 8, goaway 0"},
    {"late: a large response that no one takes", "get 1 /big", "rst 1 2, goaway 0"},
    {"late: the client closes its side", "get 1 /hello; sleep 50; half", "200 1 6, closed"},
};

#endif
