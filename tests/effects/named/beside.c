/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Effects whose names C uses for other purposes, and effects that C++ declares in a namespace, with `bool`. */
#include <stdio.h>
#include <sys/socket.h>

#define WEFT_NAMESPACE net.sockets
#include <weft/weft.h>

#include "named.h"

WEFT_EFFECT_AS(net_send, int, send, int, file, bool, urgent);
WEFT_EXCEPTION_AS(net_fail, fail, int, error);
WEFT_FAMILY_AS(net_, socket, (int, bind, int, file), (void, listen));

static int on_send(void *sent, int file, bool urgent)
{
	*(int *)sent += file;
	return urgent ? 2 : 1;
}

static int on_bind(void *unused, int file)
{
	(void)unused;
	return file + 1;
}

static void on_listen(void *sent)
{
	*(int *)sent += 1000;
}

static void *on_fail(void *sent, int error)
{
	*(int *)sent += error;
	return sent;
}

WEFT_HANDLER(handler, weft_tail(net_send, on_send), weft_tail(net_bind, on_bind), weft_tail(net_listen, on_listen),
	     weft_abort(net_fail, on_fail));

static void *body(void *unused)
{
	int answers = net_send(1, true) + 10 * sends_in_cxx(20, false) + 100 * net_bind(4);

	net_listen();
	net_fail(answers * 10000);
	return unused;
}

int main(void)
{
	int sent = 0;

	weft_run(&handler, &sent, body, NULL);
	printf("%d\n", sent);
	return sent != 5121021;
}
