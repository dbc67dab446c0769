/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handlers that several test servers use, the task that serves a listener, and a certificate. */
#ifndef TESTS_HTTP_HANDLERS_H
#define TESTS_HTTP_HANDLERS_H

#include "../sched/check.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/http.h>

#define HANDLER __attribute__((unused)) static

HANDLER void hello(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_reply(http, 200, "text/plain", "hello\n", 6);
}

/* `ended`: an _Atomic int that receives the result of the last read, or NULL. */
HANDLER void echo(weft_http_t *http, void *ended)
{
	char data[3000];
	ssize_t n;

	while ((n = weft_http_read(http, data, sizeof data)) > 0)
		if (weft_http_write(http, data, (size_t)n) != n)
			return;
	if (ended)
		atomic_store((_Atomic int *)ended, (int)n);
	if (!n)
		weft_http_flush(http);
}

HANDLER void with_trailer(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_add_trailer(http, "X-Sum", "1");
	weft_http_write(http, "sum\n", 4);
}

HANDLER void ends_its_task(weft_http_t *http, void *context)
{
	(void)http;
	(void)context;
	weft_task_fail(-EIO);
}

/* Waits for an event that never happens, and adds one to a counter when its client has gone. */
HANDLER void waits_for_others(weft_http_t *http, void *gone)
{
	weft_event_t never = {0};
	weft_readiness_t ready;
	weft_case_t cases[] = {{.event = &never}, weft_http_gone(http, &ready)};

	CHECK(weft_select(cases, 2) == 1);
	atomic_fetch_add((_Atomic unsigned *)gone, 1);
}

/* Checks that its client is still connected after a while. */
HANDLER void is_waited_for(weft_http_t *http, void *context)
{
	weft_readiness_t ready;
	weft_case_t gone = weft_http_gone(http, &ready);

	CHECK(weft_select_until(&gone, 1, weft_now() + 20 * MS) == -ETIMEDOUT);
	hello(http, context);
}

/* Returns true if `counter` becomes `wanted` in time. */
HANDLER bool becomes(_Atomic unsigned *counter, unsigned wanted, uint64_t time)
{
	uint64_t until = weft_now() + time;

	while (atomic_load(counter) != wanted && weft_now() < until)
		weft_sleep(MS);
	return atomic_load(counter) == wanted;
}

struct served {
	weft_http_server_t *server;
	int listener;
	weft_http_tls_t *tls; /* NULL: plain connections */
};

HANDLER void *serves(void *served)
{
	const struct served *s = served;

	int error =
	    s->tls ? weft_http_serve_tls(s->server, s->listener, s->tls) : weft_http_serve(s->server, s->listener);

	CHECK(!error);
	return NULL;
}

/* Opens a certificate for 127.0.0.1, which the command openssl makes, and a client that trusts it. */
HANDLER void open_tls(weft_http_tls_t **server, weft_http_tls_t **client)
{
	char directory[] = "/tmp/weft-http-XXXXXX", command[400], certificate[64], key[64];

	CHECK(mkdtemp(directory));
	snprintf(certificate, sizeof certificate, "%s/certificate", directory);
	snprintf(key, sizeof key, "%s/key", directory);
	snprintf(command, sizeof command,
		 "openssl req -x509 -newkey ed25519 -nodes -days 3650 -subj /CN=h -addext subjectAltName=IP:127.0.0.1 "
		 "-keyout %s -out %s 2>/dev/null",
		 key, certificate);
	CHECK(!system(command));
	CHECK(!weft_http_tls_open(server, certificate, key, NULL));
	CHECK(!weft_http_tls_client_open(client, certificate, NULL));
	CHECK(!unlink(certificate) && !unlink(key) && !rmdir(directory));
}

#endif
