/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fork while another thread is handling a fault, or restoring Weft's handler: in the child that thread does not exist,
 * so it never finishes. Each scenario is a process, which stops the other thread in a system call.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "scenario.h"

enum { KB = 1024, IN_NO_CALL = 0, IN_MEMORY, IN_SIGACTION };

static atomic_int stops_in, stopped;
static _Thread_local bool is_other;

static void perhaps_stop(int where)
{
	if (!is_other || atomic_load(&stops_in) != where)
		return;
	atomic_store(&stopped, 1);
	for (;;)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
}

int madvise(void *start, size_t bytes, int advice)
{
	perhaps_stop(IN_MEMORY);
	return (int)syscall(SYS_madvise, start, bytes, advice);
}

int mprotect(void *start, size_t bytes, int protection)
{
	perhaps_stop(IN_MEMORY);
	return (int)syscall(SYS_mprotect, start, bytes, protection);
}

extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old);

int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	if (action)
		perhaps_stop(IN_SIGACTION);
	return __sigaction(number, action, old);
}

static weft_coro_t *waiting;

static void *waits(void *argument)
{
	weft_suspend(NULL);
	use_stack(150 * KB);
	return argument;
}

static void resume_to_the_end(weft_coro_t *k)
{
	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
}

static void grow(void)
{
	resume_to_the_end(make_on(WEFT_COMMIT, 256 * KB, uses_stack, (void *)(150ul * KB)));
	weft_stack_trim();
}

/* Runs in another thread, which stops in such a call. */
static void stop_in(int where, void *(*run)(void *))
{
	pthread_t thread;

	atomic_store(&stops_in, where);
	REQUIRE(!pthread_create(&thread, NULL, run, NULL));
	while (!atomic_load(&stopped))
		nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void in_child_of_fork(void (*run)(void))
{
	pid_t child = fork();
	int status;

	REQUIRE(child >= 0);
	if (!child) {
		alarm(5);
		run();
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* ---- a stack is being opened ------------------------------------------------------------------------------- */

static char *below_its_frames(void)
{
	char *at = (char *)waiting - 100 * KB;

	REQUIRE(weft_on_stack(waiting, at));
	return at;
}

static void *writes(void *nothing)
{
	is_other = true;
	*(volatile char *)below_its_frames() = 1;
	return nothing;
}

static void resumes_it(void)
{
	resume_to_the_end(waiting);
	grow();
}

static void writes_there(void)
{
	*(volatile char *)below_its_frames() = 2;
	*(volatile char *)(below_its_frames() + 20 * KB) = 2;
	resumes_it();
}

static void stop_while_opening(void)
{
	waiting = make_on(WEFT_COMMIT, 256 * KB, waits, NULL);
	resume(waiting);
	stop_in(IN_MEMORY, writes);
}

static void opening_and_resumed(void)
{
	stop_while_opening();
	in_child_of_fork(resumes_it);
}

static void opening_and_written_to(void)
{
	stop_while_opening();
	in_child_of_fork(writes_there);
}

static void forks_again(void)
{
	in_child_of_fork(writes_there);
	writes_there();
}

static void opening_and_two_forks(void)
{
	stop_while_opening();
	in_child_of_fork(forks_again);
}

/* ---- the handler is being restored ------------------------------------------------------------------------------- */

static void of_the_program(int number)
{
	(void)number;
	_exit(CHILD_FAILED);
}

static void replace_handler(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = of_the_program;
	action.sa_flags = SA_ONSTACK;
	REQUIRE(!sigaction(SIGSEGV, &action, NULL));
}

static void *grows_as_other(void *nothing)
{
	is_other = true;
	grow();
	return nothing;
}

static void grows_twice(void)
{
	grow();
	replace_handler();
	grow();
}

static void putting_back(void)
{
	grow();
	replace_handler();
	stop_in(IN_SIGACTION, grows_as_other);
	in_child_of_fork(grows_twice);
}

/* ---- thread-local memory ----------------------------------------------------------------------------------------- */

static void *returns(void *argument)
{
	return argument;
}

/* Its thread-local memory is in a stack too large for the C library to keep. */
static pthread_t begin_large_thread(void *(*run)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;

	REQUIRE(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, 128ul << 20));
	REQUIRE(!pthread_create(&thread, &attr, run, NULL));
	return thread;
}

static void *keeps_one_at_hand(void *argument)
{
	for (int i = 0; i < 2; i++)
		resume_to_the_end(weft_create(returns, NULL));
	atomic_store(&stopped, 1);
	for (;;)
		nanosleep(&(struct timespec){1, 0}, NULL);
	return argument;
}

static void looks_at_hands(void)
{
	for (int i = 0; i < 2; i++)
		REQUIRE(!pthread_join(begin_large_thread(returns), NULL));
	REQUIRE(stats_of(WEFT_DEFAULT_POLICY).cached > 0);
	weft_set_budget(1);
	REQUIRE(!weft_create_with(returns, NULL, &(weft_attr_t){.policy = WEFT_COMMIT, .stack_size = 1024 * KB}));
}

static void lost_hand(void)
{
	grow();
	begin_large_thread(keeps_one_at_hand);
	while (!atomic_load(&stopped))
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	resume_to_the_end(weft_create(returns, NULL));
	in_child_of_fork(looks_at_hands);
}

static const struct scenario scenarios[] = {
    {"a stack is being opened, the child resumes its coroutine", opening_and_resumed, 0, NULL},
    {"a stack is being opened, the child writes to it", opening_and_written_to, 0, NULL},
    {"a stack is being opened, the child forks", opening_and_two_forks, 0, NULL},
    {"the handler of faults is being put back", putting_back, 0, NULL},
    {"another thread has a stack at hand", lost_hand, 0, NULL},
};

int main(int count, char **arguments)
{
	return run_scenarios(scenarios, sizeof scenarios / sizeof *scenarios, count, arguments);
}
