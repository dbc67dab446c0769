/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A child of fork has the activity that called fork, and no other activity. `forks raw`: the kernel's fork, of which
 * the library knows nothing: then the other activities continue in the child, and the test must fail. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/charcoal.h>

enum way { FORK, VFORK, RAW };
static volatile int others; /* steps of the other activities in this process */
static bool stop;
static activity_sem_t never;
static weft_activity_mail_t mail;
static int up[2], down[2];

static int fork_by(enum way way)
{
	int child;

	if (way == RAW) {
		no_yield
		{
			child = (int)syscall(SYS_fork);
			alarm(2); /* each waits for the other */
		}
		return child;
	}
	return way == VFORK ? vfork() : fork();
}

static void look_on(void)
{
	for (long i = 0; !stop; i++) {
		others++;
		if (i % 1000 == 0)
			yield_now();
	}
}

static void sleep_and_look(void)
{
	while (!stop) {
		usleep(100);
		others++;
	}
}

static void wait_and_look(void)
{
	activity_sem_wait(&never);
	others++;
}

static void receive_and_look(void)
{
	void *message;

	if (!weft_activity_receive(&mail, &message))
		others++;
}

static long count(void)
{
	long sum = 0;

	for (volatile int i = 0; i < 300000; i++)
		sum += i & 1;
	return sum;
}

/* Other activities waited when fork was called; the child makes them ready. */
static void let_others_go_on(void)
{
	activity_sem_post(&never);
	(void)weft_activity_try_send(&mail, "message");
	for (int i = 0; i < 100; i++)
		yield_now();
	usleep(2000);
	activity_sleep_ns(1000000);
}

static void make_own(void)
{
	int made = 0;
	activity_t own;
	activity_sem_t turn;

	activity_sem_init(&turn, 0);
	activate(&own)
	{
		activity_sem_wait(&turn);
		made++;
	}
	activity_sem_post(&turn);
	assert(!activity_wait(&own) && made == 1);
}

static void resolve(void)
{
	struct addrinfo want = {.ai_flags = AI_NUMERICHOST}, *got = NULL;

	assert(!getaddrinfo("127.0.0.1", NULL, &want, &got) && got);
	freeaddrinfo(got);
}

/* Returns 0, or the exit code that names the fault. */
static int be_child(activity_t *sleeper)
{
	int before = others;
	char answer;
	long sum = count();

	if (write(up[1], &sum, sizeof sum) != sizeof sum || read(down[0], &answer, 1) != 1)
		return 2;
	let_others_go_on();
	if (others != before)
		return 3;
	if (activity_wait(sleeper) != -ECANCELED)
		return 4;
	make_own();
	resolve();
	return others != before;
}

static void check_child(enum way way, activity_t *sleeper)
{
	long sum = 0;
	int status = 0, child = fork_by(way);

	assert(child >= 0);
	if (!child)
		_exit(be_child(sleeper));
	assert(read(up[0], &sum, sizeof sum) == sizeof sum && sum == 150000);
	assert(write(down[1], "x", 1) == 1);
	assert(waitpid(child, &status, 0) == child);
	if (status)
		printf("not ok - the child ended with %#x\n", status);
	assert(!status);
}

static void check_exec(enum way way)
{
	int status = -1, child = fork_by(way);

	assert(child >= 0);
	if (!child) {
		execl("/bin/sh", "sh", "-c", "exit 7", NULL);
		_exit(1);
	}
	assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* The child returns: its group ends, and then exit. */
static void check_return(enum way way)
{
	int status = -1, child = fork_by(way);

	assert(child >= 0);
	if (!child) {
		stop = true;
		exit(5);
	}
	assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void run(enum way way)
{
	activity_t looks, sleeps, waits, receives;

	stop = false;
	activity_sem_init(&never, 0);
	weft_activity_mail_init(&mail, 1, 0);
	assert(!pipe(up) && !pipe(down));
	activate(&looks)
	{
		look_on();
	}
	activate(&sleeps)
	{
		sleep_and_look();
	}
	activate(&waits)
	{
		wait_and_look();
	}
	activate(&receives)
	{
		receive_and_look();
	}
	usleep(1000); /* now there is a server, and all are where they wait */
	for (int i = 0; i < 3; i++) {
		check_child(way, &sleeps);
		check_exec(way);
		check_return(way);
	}
	if (way == FORK)
		no_yield_expr(check_exec(way)); /* vfork is itself there: fork_by must not return */
	stop = true;
	activity_sem_post(&never);
	weft_activity_mail_close(&mail);
	activity_wait(&looks);
	activity_wait(&sleeps);
	activity_wait(&waits);
	activity_wait(&receives);
	assert(activity_wait(&waits) == 0);
	for (int i = 0; i < 2; i++) {
		close(up[i]);
		close(down[i]);
	}
	weft_activity_mail_end(&mail);
}

int activity_main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "raw")) {
		run(RAW);
		return 0;
	}
	run(FORK);
	run(VFORK);
	return 0;
}
