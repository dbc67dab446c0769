/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* shout.c: a server that answers in capitals, with a task for each connection; docs/tutorial/server.md. */
/* doc: begin program */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <weft/io.h>

static void close_it(int *fd)
{
	weft_close(*fd);
}

static void *shout(void *connection)
{
	int fd = (int)(intptr_t)connection;
	char text[512];
	ssize_t n;

	weft_defer(close_it, &fd);
	while ((n = weft_read(fd, text, sizeof text)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			text[i] = (char)toupper((unsigned char)text[i]);
		weft_write_all(fd, text, (size_t)n);
	}
	return NULL;
}

static void *serve(void *listener)
{
	int fd;

	WEFT_SCOPE(scope);
	while ((fd = weft_accept(*(int *)listener, NULL, NULL, 0)) >= 0)
		if (weft_scope_spawn(&scope, shout, (void *)(intptr_t)fd))
			weft_close(fd); /* no memory for a task */
	weft_task_fail(fd);
}

static void *run(void *unused)
{
	int listener = weft_listen("127.0.0.1", 0, 0, 0), fd;
	char port[8], answer[12];

	if (listener < 0)
		weft_task_fail(listener);
	weft_defer(close_it, &listener);
	snprintf(port, sizeof port, "%u", (unsigned short)weft_port(listener));
	WEFT_SCOPE(scope);
	if (weft_scope_spawn(&scope, serve, &listener))
		weft_task_fail(-ENOMEM);
	fd = weft_dial("127.0.0.1", port);
	weft_defer(close_it, &fd);
	if (weft_write_all(fd, "hello, weft\n", 12) != 12 || weft_read_all(fd, answer, 12) != 12)
		weft_task_fail(-EIO);
	printf("%.12s", answer);
	return unused; /* the end of the block cancels the server */
}

int main(void)
{
	int error = weft_rt_run(NULL, run, NULL, NULL);

	if (error)
		fprintf(stderr, "shout: %s\n", strerror(-error));
	return error != 0;
}
/* doc: end */
