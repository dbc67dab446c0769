/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a handler that waits for another event learns that its client has gone. A stream of HTTP/2 has an event for
 * that, because its connection's task receives meanwhile. No task receives on a connection of HTTP/1.1 while its
 * handler runs, so the handler polls the socket. Rejected: cancelling the handler, which may be in the middle of work
 * that should be finished, and in HTTP/1.1 would need a second task for each connection.
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
