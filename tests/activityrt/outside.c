/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What only activities can do, done where none runs: a line that says so ends the process, or nothing happens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/activity.h>
#include <weft/charcoal.h>

static activity_t activity;
static activity_sem_t semaphore;
static activity_mail_t mailbox;
static weft_activity_waker_t waker;

static void activates(void)
{
	activate(&activity)
	{
		exit(1);
	}
}
static void activates_detached(void)
{
	activate_detached()
	{
		exit(1);
	}
}
static void waits(void)
{
	activity_wait(&activity);
}
static void takes(void)
{
	activity_sem_wait(&semaphore);
}
static void receives(void)
{
	void *message;

	activity_receive(&mailbox, &message);
}
static void sleeps(void)
{
	activity_sleep_ns(1000);
}
static void parks(void)
{
	weft_activity_park(&waker);
}
static void sets_result(void)
{
	weft_activity_set_result(&activity);
}
static void *nothing(void *p)
{
	return p;
}
/* What is harmless: it ends the process with 0. */
static void others(void)
{
	void *message = NULL;

	yield();
	activity_cancel(&activity);
	weft_activity_wake(&waker);
	activity_sem_post(&semaphore);
	activity_sem_wait(&semaphore);
	if (activity_send(&mailbox, &mailbox) || activity_receive(&mailbox, &message) || message != &mailbox)
		exit(1);
	weft_activity_group_release(NULL);
	if (activity_self() || weft_activity_new() || weft_activity_group() || weft_activity_dump(2) != -EPERM ||
	    weft_activity_post(NULL, nothing, NULL) != -EINVAL || weft_activity_run(NULL, NULL, NULL, NULL) != -EINVAL)
		exit(1);
	exit(0);
}

static const struct attempt {
	void (*what)(void);
	const char *says; /* NULL: ends with 0 */
} attempts[] = {{activates, "activate outside of activities: "},
		{activates_detached, "activate outside of activities: "},
		{waits, "a wait outside of activities: "},
		{takes, "a wait outside of activities: "},
		{receives, "a wait outside of activities: "},
		{sleeps, "a wait outside of activities: "},
		{parks, "a wait outside of activities: "},
		{sets_result, "weft_activity_set_result outside of activities: "},
		{others, NULL}};

static int holds(const struct attempt *a)
{
	char text[1000] = "";
	int out[2], status;
	pid_t child;

	if (pipe(out))
		return 0;
	child = fork();
	if (child == 0) {
		dup2(out[1], 2);
		a->what();
		_exit(2);
	}
	close(out[1]);
	for (ssize_t at = 0, n; (n = read(out[0], text + at, sizeof text - 1 - at)) > 0;)
		at += n;
	close(out[0]);
	if (waitpid(child, &status, 0) != child)
		return 0;
	if (!a->says)
		return WIFEXITED(status) && WEXITSTATUS(status) == 0 && !*text;
	return WIFSIGNALED(status) && strstr(text, a->says) && strstr(text, "activity_main");
}

int main(void)
{
	int failed = 0;

	activity_sem_init(&semaphore, 0);
	activity_mail_init(&mailbox, 2);
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		if (!holds(&attempts[i])) {
			printf("not ok - attempt %zu\n", i);
			failed = 1;
		}
	return failed;
}
