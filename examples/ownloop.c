/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ownloop.c: a program with its own event loop. It polls a pipe and the descriptor of a runtime, whose tasks run in
 * between on the same thread: weft_rt_open in weft/sched.h.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weft/sync.h>

#define MS 1000000

/* Works on each line for a while. */
static void *worker(void *lines)
{
	char line[16];

	while (weft_chan_receive(lines, line) == 0) {
		weft_sleep(2 * MS);
		printf("a task had its time with \"%s\"\n", line);
	}
	return NULL;
}

/* The outside world: another thread writes to the pipe. */
static void *world(void *pipe)
{
	static const char *const lines[] = {"one", "two", "three"};
	char line[16] = {0};

	for (int i = 0; i < 3; i++) {
		snprintf(line, sizeof line, "%s", lines[i]);
		if (write(*(int *)pipe, line, sizeof line) != sizeof line)
			break;
		usleep(1000);
	}
	close(*(int *)pipe);
	return NULL;
}

/* doc: begin loop */
/* Runs until the pipe has ended, and then until the runtime has no task. */
static int loop(weft_rt_t *rt, weft_chan_t *lines, int input)
{
	struct pollfd fds[] = {{weft_rt_fd(rt), POLLIN, 0}, {input, POLLIN, 0}};
	char line[16];
	int error;

	while ((error = weft_rt_close(rt)) == -EBUSY) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			weft_rt_step(rt, 5 * MS);
		if (!fds[1].revents)
			continue;
		if (read(input, line, sizeof line) == sizeof line) {
			weft_chan_send(lines, line); /* the channel has no limit, so this thread never waits */
		} else {
			weft_chan_close(lines);
			fds[1].fd = -1;
		}
	}
	return error;
}
/* doc: end */

int main(void)
{
	weft_chan_t *lines = weft_chan_make(16, WEFT_UNBOUNDED);
	weft_rt_t *rt = NULL;
	pthread_t thread;
	int pipes[2];
	int error = lines ? weft_rt_open(NULL, &rt) : -ENOMEM;

	if (!error) {
		error = weft_rt_spawn(rt, worker, lines, NULL);
		if (error)
			weft_rt_close(rt);
	}
	if (!error && !pipe(pipes) && !pthread_create(&thread, NULL, world, &pipes[1])) {
		error = loop(rt, lines, pipes[0]);
		pthread_join(thread, NULL);
		close(pipes[0]);
	}
	weft_chan_free(lines);
	if (error)
		fprintf(stderr, "ownloop: %s\n", strerror(-error));
	return error != 0;
}
