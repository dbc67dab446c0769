/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code that was written for threads, compiled with weft/posix.h: two tasks of one worker play ping-pong. */
#include <weft/posix.h>

#include <stdio.h>
#include <weft/sched.h>

/* doc: begin play */
static void *play(void *socket)
{
	int fd = *(int *)socket;
	char ball;

	while (read(fd, &ball, 1) == 1 && ball < 'z') {
		ball++;
		usleep(1000);
		if (write(fd, &ball, 1) != 1)
			break;
	}
	printf("%c\n", ball);
	close(fd);
	return NULL;
}
/* doc: end play */

static void *game(void *unused)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) || write(fds[0], "a", 1) != 1)
		weft_task_fail(-errno);
	WEFT_SCOPE(scope);
	if (weft_scope_spawn(&scope, play, &fds[0]) || weft_scope_spawn(&scope, play, &fds[1]))
		weft_scope_cancel(&scope, -ENOMEM);
	if (weft_scope_wait(&scope))
		weft_task_fail(-ENOMEM);
	return unused;
}

int main(void)
{
	weft_rt_config_t config = {.workers = 1};

	return weft_rt_run(&config, game, NULL, NULL) != 0;
}
