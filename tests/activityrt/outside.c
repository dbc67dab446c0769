/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls that only activities can make, made outside of activities, and waits during which no other activity could run:
 * the process ends with a message, or nothing happens.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/activity.h>
#include <weft/charcoal.h>
#include <weft/handler.h>

WEFT_EFFECT(void, unused, int, n);
static void unused_clause(void *state, int n)
{
	(void)state;
	(void)n;
}
WEFT_HANDLER(nobody, weft_tail(unused, unused_clause));
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
static void *waits_in_no_yield(void *x)
{
	no_yield
	{
		activity_sem_wait(&semaphore);
	}
	return x;
}
static void in_no_yield(void)
{
	weft_activity_run(NULL, waits_in_no_yield, NULL, NULL);
}
static void *waits_in_body(void *x)
{
	activity_sem_wait(&semaphore);
	return x;
}
static void *handles(void *x)
{
	return weft_run(&nobody, NULL, waits_in_body, x);
}
static void in_body(void)
{
	weft_activity_run(NULL, handles, NULL, NULL);
}
static void *activates_twice(void *x)
{
	for (int i = 0; i < 2; i++)
		activate(&activity)
		{
			activity_sem_wait(&semaphore);
		}
	return x;
}
static void in_use(void)
{
	weft_activity_run(NULL, activates_twice, NULL, NULL);
}
static void period(void)
{
	setenv("WEFT_ACTIVITY_PERIOD", "abc", 1);
	if (!weft_activity_run(NULL, nothing, NULL, NULL) && !weft_activity_run(NULL, nothing, NULL, NULL))
		abort();
}
static void negative_period(void)
{
	setenv("WEFT_ACTIVITY_PERIOD", "-5", 1);
	if (!weft_activity_run(NULL, nothing, NULL, NULL))
		abort();
}
static void form(void)
{
	setenv("WEFT_ACTIVITIES", "stackfull", 1);
	if (!weft_activity_run(NULL, nothing, NULL, NULL))
		abort();
}
static void stack_size(void)
{
	setenv("WEFT_ACTIVITY_STACK", "1K", 1);
	if (!weft_activity_run(NULL, nothing, NULL, NULL))
		abort();
}
static void nothing_to_improve(void)
{
	setenv("WEFT_ACTIVITIES", "profile", 1);
	if (!weft_activity_run(NULL, nothing, NULL, NULL))
		abort();
}
static int cancelled_main(void)
{
	activity_cancel(activity_self());
	yield_now();
	return 0;
}
static void first_is_cancelled(void)
{
	if (weft_activity_main(cancelled_main, 0, NULL) == 1)
		abort();
}
extern int weft__activity_main(int argc, char **argv);
static void no_main(void)
{
	weft__activity_main(0, NULL);
}
static int descends(int n)
{
	volatile char frame[1000];

	frame[n % 1000] = (char)n;
	yield_now();
	return n ? descends(n - 1) + frame[n % 1000] : 0;
}
static void *descends_far(void *x)
{
	return (char *)x + descends(100000000);
}
static void too_deep(void)
{
	setenv("WEFT_ACTIVITY_STACK", "128K:1M", 1);
	if (weft_activity_run(NULL, descends_far, NULL, NULL))
		abort();
}
/* Plain code overflows a stack that deep recursion has added. */
static NO_YIELD int descends_in_plain_code(int n)
{
	volatile char frame[1000];

	frame[n % 1000] = (char)n;
	return n ? descends_in_plain_code(n - 1) + frame[n % 1000] : 0;
}
static int descends_first(int n)
{
	volatile char frame[1000];

	frame[n % 1000] = (char)n;
	yield_now();
	return (n ? descends_first(n - 1) : descends_in_plain_code(100000000)) + frame[n % 1000];
}
static void *is_plain(void *x)
{
	return (char *)x + descends_first(300);
}
static void plain_overflow(void)
{
	setenv("WEFT_ACTIVITY_STACK", "128K:64M", 1);
	weft_activity_run(NULL, is_plain, NULL, NULL);
}
/* The main thread ends: so does the process, when the group's timer has. */
static void thread_exits(void)
{
	weft_activity_config_t config = {.period = 1000000000};

	if (!weft_activity_run(&config, nothing, NULL, NULL))
		pthread_exit(NULL);
}
static void *uses_stack(void *x)
{
	volatile char text[20000];

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)i;
	printf("%d", text[100]);
	return x;
}
static void small_stack(void)
{
	weft_activity_config_t config = {.stack_size = 4096};
	const char *form = getenv("WEFT_ACTIVITIES");

	if ((form && !strcmp(form, "stackful")) || !weft_activity_run(&config, uses_stack, NULL, NULL))
		_exit(0);
}
/* Harmless calls: the process ends with 0. */
static void others(void)
{
	void *message = NULL;

	yield_now();
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
	bool copied;	  /* stackful activities have no such stacks */
} attempts[] = {{activates, "activate outside of activities: define activity_main"},
		{activates_detached, "activate outside of activities: define activity_main"},
		{waits, "a wait outside of activities: define activity_main"},
		{takes, "a wait outside of activities: define activity_main"},
		{receives, "a wait outside of activities: define activity_main"},
		{sleeps, "a wait outside of activities: define activity_main"},
		{parks, "a wait outside of activities: define activity_main"},
		{sets_result, "weft_activity_set_result outside of activities: define activity_main"},
		{in_no_yield, "would have to wait inside no_yield"},
		{in_body, "a coroutine or weft_run of its own"},
		{in_use, " has not ended: wait for it before its handle is used again"},
		{period, "weft: WEFT_ACTIVITY_PERIOD=abc is ignored: say a number of nanoseconds, off or every\n"},
		{negative_period, "weft: WEFT_ACTIVITY_PERIOD=-5 is ignored: say a number"},
		{form, "weft: WEFT_ACTIVITIES=stackfull is ignored: say stackful, copied or profile\n"},
		{stack_size, "weft: WEFT_ACTIVITY_STACK=1K is ignored: say a size from 128K to 1G"},
		{nothing_to_improve, "no function was called often in yielding mode, and returned within 2 us\n", true},
		{first_is_cancelled, "the first activity could not run to its end: "},
		{no_main, "the program declares activity_main, and does not define it: define it"},
		{too_deep, "an activity ends with ENOMEM: its calls take more than ", true},
		{plain_overflow, "stack overflow in an activity: plain code that it calls has ", true},
		{thread_exits, NULL},
		{small_stack, NULL},
		{others, NULL}};

static int holds(const struct attempt *a)
{
	const char *form = getenv("WEFT_ACTIVITIES");
	char text[1000] = "";
	int out[2], status;
	pid_t child;

	if (a->copied && form && !strcmp(form, "stackful"))
		return 1;
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
	return WIFSIGNALED(status) && strstr(text, a->says);
}

int main(void)
{
	int failed = 0;

	activity_sem_init(&semaphore, 0);
	activity_mail_init(&mailbox, 2);
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		if (!holds(&attempts[i])) {
			printf("not ok - attempt %zu: %s\n", i, attempts[i].says ? attempts[i].says : "");
			failed = 1;
		}
	return failed;
}
