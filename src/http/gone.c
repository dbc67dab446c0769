/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a handler that waits for something else learns that its client has gone. A stream of HTTP/2 has an event for
 * that, because its connection's task receives meanwhile. Nobody receives on a connection of HTTP/1.1 while its handler
 * runs, so the handler asks the socket. Rejected: to cancel the handler, which may be in the middle of work that should
 * be finished, and which nobody could cancel in HTTP/1.1 without a second task for each connection.
 */
#define _GNU_SOURCE
#include "http/exchange.h"

weft_case_t weft_http_gone(weft_http_t *http, weft_readiness_t *ready)
{
	weft_event_t *event = weft__h2_gone(http);

	if (event)
		return (weft_case_t){.event = event};
	*ready = weft_readiness(http->stream.fd, POLLRDHUP);
	return (weft_case_t){.ready = ready};
}
