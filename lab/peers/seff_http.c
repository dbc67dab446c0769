/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * seff_http: the main function around libseff's own HTTP server, bench/http_server_bench/libscheff.c, takes part in
 * experiment B3, for ./weft lab --peer libseff=DIR --peer picohttpparser=DIR. It is compiled unchanged, except that its
 * main is renamed to seff_main, and answers with the body of the experiment. It listens itself, so the load generator
 * waits until it does.
 */
#define _GNU_SOURCE
#include "io_server.h"
#include "http_text.h"

extern const char *RESPONSE_TEXT;
int seff_main(int argc, char **argv);

static void start_load(int argc, char **argv, int port)
{
	char **its = io_load_arguments(argc, argv, port);
	pthread_t thread;
	pid_t child = fork();

	if (!child) {
		io_await_listener(port);
		io_become_load(argc, argv, its);
	}
	io_must(child > 0 && !pthread_create(&thread, NULL, io_end_with, (void *)(intptr_t)child),
		"the load generator");
}

int main(int argc, char **argv)
{
	char number[16], *its[] = {argv[0], (char *)"--port", number, NULL};
	int port = io_free_port();

	io_raise_limit();
	setenv("LIBSEFF_THREADS", "1", 1);
	RESPONSE_TEXT = http_body;
	start_load(argc, argv, port);
	snprintf(number, sizeof(number), "%d", port);
	if (!freopen("/dev/null", "w", stdout)) /* it prints its address */
		lab_die("/dev/null");
	return seff_main(3, its);
}
