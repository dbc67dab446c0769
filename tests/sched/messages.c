/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Messages that no other test makes (docs/reference/messages.txt names a test for each): a process per message, whose
 * standard error must end with a line that has these words.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "unit/child.h"
#include <fiber_switch.h>
#include <tl_queue.h>
#include <weft/io.h>
#include <weft/sched.h>
#include <weft/weft.h>

WEFT_EFFECT(int, get);
WEFT_EFFECT(int, other);

/* ---- coroutines and handlers ------------------------------------------------------------------------------------ */

static void *gets(void *argument)
{
	return (char *)argument + get();
}

static void *answers_another(void *state, weft_resumption_t *k)
{
	(void)state;
	return weft_continue(other, k, 1);
}

WEFT_HANDLER(mistaken, weft_general(get, answers_another));

static void continues_as_another(void)
{
	weft_run(&mistaken, NULL, gets, NULL);
}

static void makes_coroutine(void)
{
	weft_delete(weft_create(gets, NULL));
}

static void commit_by_nothing(void)
{
	setenv("WEFT_COMMIT", "uffd", 1);
	makes_coroutine();
}

static void mmu_by_nothing(void)
{
	setenv("WEFT_MMU", "off", 1);
	makes_coroutine();
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

static void *opens(void *argument)
{
	int fd = weft_open("/dev/null", O_RDONLY, 0);

	REQUIRE(fd >= 0 && !weft_close(fd));
	return argument;
}

static void back_end_of_another_system(void)
{
	setenv("WEFT_IO", "kqueue", 1);
	REQUIRE(!weft_rt_run(NULL, opens, NULL, NULL));
}

/* Fails once in all processes. */
static void *fails_once(void *failed)
{
	if (!__atomic_exchange_n((bool *)failed, true, __ATOMIC_RELAXED))
		weft_task_fail(-EIO);
	return failed;
}

static void passes_when_repeated(void)
{
	void *failed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const weft_rt_config_t two_jobs = {.jobs = 2}; /* a single job records its runs, and does not repeat them */

	REQUIRE(failed != MAP_FAILED);
	REQUIRE(weft_simulate_seeds(1, 10, &two_jobs, fails_once, failed, NULL) >= 0);
}

/* ---- other interfaces ------------------------------------------------------------------------------------------- */

static void huge_queue(void)
{
	tl_queue_t queue;

	tl_queue_init(&queue, 45);
}

static void *in_fiber(void *argument)
{
	fiber_t from;

	return fiber_switch(NULL, argument, &from);
}

static void switches_to_nothing(void)
{
	weft_resume(weft_create(in_fiber, NULL), NULL, WEFT_HANDLE_NONE);
}

static void returns_to_nothing(void)
{
	fiber_switch_return(NULL, NULL);
}

static const struct message {
	void (*make)(void);
	const char *line; /* in the last line */
	bool ends;
} messages[] = {
    {continues_as_another,
     "weft: resumption of effect \"get\" continued as \"other\": name the effect that the clause is for\n", true},
    {commit_by_nothing, "weft: WEFT_COMMIT=uffd is ignored: say signal or userfaultfd\n", false},
    {mmu_by_nothing, "weft: WEFT_MMU=off is ignored: say learn or signal\n", false},
    {back_end_of_another_system, "weft: WEFT_IO=kqueue: there is only epoll and io_uring; using ", false},
    {passes_when_repeated, " failed once, and passes when it is repeated: the program depends on more", false},
    {huge_queue, "weft: out of memory for a queue of tasks: start fewer tasks at once, or raise the limits", true},
    {switches_to_nothing, "weft: fiber_switch to NULL: there is no fiber; pass one that fiber_alloc returned\n", true},
    {returns_to_nothing, "weft: fiber_switch_return to NULL: there is no fiber; pass one that fiber_alloc returned\n",
     true},
};

static const char *last_line(char *text)
{
	size_t end = strlen(text);

	while (end > 1 && text[end - 2] != '\n')
		end--;
	return text + (end ? end - 1 : 0);
}

int main(void)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
		struct outcome o = in_child(messages[i].make);
		bool good =
		    strstr(last_line(o.text), messages[i].line) && (messages[i].ends ? o.signal == SIGABRT : !o.code);

		printf("%s - %s%s", good ? "ok" : "not ok", messages[i].line,
		       strchr(messages[i].line, '\n') ? "" : "\n");
		if (!good)
			printf("# it says: %s# it ends with %d, signal %d\n", o.text, o.code, o.signal);
		failed |= !good;
	}
	return failed;
}
