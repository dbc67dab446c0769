/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Each request for memory, a thread or a descriptor is refused in turn: the k-th, for every k that there is, or all
 * from the k-th on; each in a process of its own. The program must end well, or with an error that the headers name.
 * It must not crash, hang, or lose memory. Linked with --wrap for each function that asks the system.
 *
 *   refuse all | one K WIDTH | workers
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* ---- refusing --------------------------------------------------------------------------------------------------- */

static struct {
	unsigned first, width;
	uint32_t count; /* atomic: requests so far */
	bool counting;	/* atomic */
	bool of_others; /* what this thread requests is not refused */
	pthread_t self;
	long blocks; /* atomic: of malloc, that live */
} refusing;

static bool refused(void)
{
	unsigned n;

	if (!__atomic_load_n(&refusing.counting, __ATOMIC_RELAXED) ||
	    (refusing.of_others && pthread_equal(pthread_self(), refusing.self)))
		return false;
	n = __atomic_fetch_add(&refusing.count, 1, __ATOMIC_RELAXED);
	return n >= refusing.first && n - refusing.first < refusing.width;
}

static void *counted(void *block)
{
	if (block)
		__atomic_fetch_add(&refusing.blocks, 1, __ATOMIC_RELAXED);
	return block;
}

#define WRAPPED(result, name, parameters, arguments, failed, error, keep)                                              \
	result __real_##name parameters;                                                                               \
	result __wrap_##name parameters;                                                                               \
	result __wrap_##name parameters                                                                                \
	{                                                                                                              \
		if (!refused())                                                                                        \
			return keep(__real_##name arguments);                                                          \
		errno = error;                                                                                         \
		return failed;                                                                                         \
	}

WRAPPED(void *, malloc, (size_t size), (size), NULL, ENOMEM, counted)
WRAPPED(void *, calloc, (size_t count, size_t size), (count, size), NULL, ENOMEM, counted)
WRAPPED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), NULL, ENOMEM, counted)
WRAPPED(void *, mmap, (void *at, size_t size, int access, int flags, int fd, off_t offset),
	(at, size, access, flags, fd, offset), MAP_FAILED, ENOMEM, )
WRAPPED(int, mprotect, (void *at, size_t size, int access), (at, size, access), -1, ENOMEM, )
WRAPPED(FILE *, open_memstream, (char **text, size_t *size), (text, size), NULL, ENOMEM, )
WRAPPED(int, timerfd_create, (int clock, int flags), (clock, flags), -1, EMFILE, )

/* Not by --wrap: the library has a __wrap_pthread_create for programs. */
typedef int create_t(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return refused() ? EAGAIN : ((create_t *)dlsym(RTLD_NEXT, "pthread_create"))(thread, attr, fn, arg);
}

void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size)
{
	if (refused()) {
		errno = ENOMEM;
		return NULL;
	}
	return block ? __real_realloc(block, size) : counted(__real_realloc(NULL, size));
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block)
{
	if (block)
		__atomic_fetch_sub(&refusing.blocks, 1, __ATOMIC_RELAXED);
	__real_free(block);
}

/* ---- a program that does a bit of everything -------------------------------------------------------------------- */

enum { ITEMS = 100, KB = 1024 };

static bool is_documented(int error)
{
	return !error || error == -ENOMEM || error == -EAGAIN || error == -ECANCELED || error == -EPIPE;
}

#define MAY_FAIL(expression)                                                                                           \
	do {                                                                                                           \
		int may_fail = (expression);                                                                           \
		CHECK(is_documented(may_fail));                                                                        \
		if (may_fail)                                                                                          \
			weft_task_fail(may_fail);                                                                      \
	} while (0)

static __attribute__((noinline)) size_t uses_stack(size_t bytes)
{
	volatile char frame[KB];

	memset((char *)frame, 1, sizeof frame);
	return bytes > KB ? uses_stack(bytes - KB) + (size_t)frame[3] : (size_t)frame[4];
}

static void *sends(void *chan)
{
	for (int i = 0; i < ITEMS; i++)
		MAY_FAIL(weft_chan_send(chan, &i));
	weft_chan_close(chan);
	return chan;
}

static void *receives(void *chan)
{
	weft_case_t c = {.chan = chan};
	int item, next = 0;

	c.receive = &item;
	for (;;) {
		if (next % 2)
			MAY_FAIL(weft_select(&c, 1));
		else
			c.status = weft_chan_receive(chan, &item);
		if (c.status == -EPIPE)
			return chan;
		CHECK(!c.status && item == next++);
	}
}

static void free_chan(weft_chan_t *chan)
{
	CHECK(weft_chan_free(chan) == 0);
}

static weft_chan_t *make_chan(size_t capacity)
{
	weft_chan_t *chan = weft_chan_make(sizeof(int), capacity);

	MAY_FAIL(chan ? 0 : -ENOMEM);
	return chan;
}

static void *talks(void *capacity)
{
	weft_chan_t *chan = make_chan((size_t)capacity);

	weft_defer(free_chan, chan);
	WEFT_SCOPE(scope);
	MAY_FAIL(weft_scope_spawn(&scope, receives, chan));
	MAY_FAIL(weft_scope_spawn(&scope, sends, chan));
	MAY_FAIL(weft_scope_wait(&scope));
	return capacity;
}

static void *works(void *argument)
{
	int before = 7;

	CHECK(weft_task_set_local(1, argument) == 0);
	uses_stack(40 * KB);
	weft_sleep(10000);
	weft_blocking
	{
		CHECK(weft_task_local(1) == argument && before == 7);
	}
	weft_task_yield();
	CHECK(weft_task_local(1) == argument);
	return argument;
}

static void *naps(void *argument)
{
	weft_sleep(argument ? SECOND : 1000);
	return argument;
}

static void *waits(void *event)
{
	MAY_FAIL(weft_event_wait(event));
	return event;
}

static void *with_policies(void *argument)
{
	static const weft_policy_t policies[] = {WEFT_FIXED, WEFT_OVERCOMMIT, WEFT_COMMIT, WEFT_COPY, WEFT_COMMIT};
	weft_task_attr_t attr;
	weft_task_t t[5];
	void *result;
	int error;

	WEFT_SCOPE(scope);
	for (unsigned i = 0; i < 5; i++) {
		attr = (weft_task_attr_t){.coro = {.policy = policies[i]}, .worker = i % 3, .flags = i % 4};
		MAY_FAIL(weft_scope_spawn_with(&scope, &t[i], works, &t[i], &attr));
	}
	for (unsigned i = 0; i < 5; i++) {
		error = weft_join(&t[i], &result);
		CHECK(is_documented(error) && (error || result == &t[i]));
	}
	MAY_FAIL(weft_scope_wait(&scope));
	return argument;
}

static void *has_a_deadline(void *argument)
{
	int error;

	WEFT_SCOPE_UNTIL(scope, weft_now() + MS);
	error = weft_scope_spawn(&scope, naps, argument);
	if (error != -ECANCELED) /* it has passed already */
		MAY_FAIL(error);
	error = weft_scope_wait(&scope);
	CHECK(error == -ETIMEDOUT || error == -ENOMEM || weft_task_is_cancelled());
	return argument;
}

/* Its stack is to grow while tasks of its scope live, which refer to it. */
static void *grows_with_tasks(void *argument)
{
	weft_event_t grown = {0};

	WEFT_SCOPE(scope);
	MAY_FAIL(weft_scope_spawn(&scope, waits, &grown));
	MAY_FAIL(weft_scope_spawn(&scope, waits, &grown));
	weft_task_yield();
	uses_stack(60 * KB);
	weft_event_set(&grown);
	MAY_FAIL(weft_scope_wait(&scope));
	return argument;
}

static void dump(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC), error;

	CHECK(fd >= 0);
	error = weft_dump(fd);
	CHECK(!error || error == -ENOMEM);
	close(fd);
}

static void *everything(void *argument)
{
	weft_task_attr_t commit = {.coro = {.policy = WEFT_COMMIT, .stack_size = 256 * KB}};
	int error;

	error = weft_spawn_detached(naps, NULL, NULL);
	CHECK(is_documented(error));
	WEFT_SCOPE(scope);
	MAY_FAIL(weft_scope_spawn(&scope, talks, (void *)0));
	MAY_FAIL(weft_scope_spawn(&scope, talks, (void *)3));
	MAY_FAIL(weft_scope_spawn(&scope, talks, (void *)WEFT_UNBOUNDED));
	MAY_FAIL(weft_scope_spawn(&scope, with_policies, NULL));
	MAY_FAIL(weft_scope_spawn_with(&scope, NULL, grows_with_tasks, NULL, &commit));
	MAY_FAIL(weft_scope_spawn(&scope, has_a_deadline, argument));
	dump();
	MAY_FAIL(weft_scope_wait(&scope));
	return argument;
}

static int run_threads(void)
{
	weft_rt_config_t config = {.workers = 2, .dump_signal = SIGUSR1, .stuck_after = 100 * SECOND};
	void *result = NULL;
	int error;

	weft_stack_trim(); /* so that stacks grow, on whichever worker */
	error = weft_rt_run(&config, everything, &config, &result);

	CHECK(is_documented(error) && (error || result == &config));
	return error;
}

static int run_loop(void)
{
	weft_rt_t *rt;
	int error = weft_rt_open(NULL, &rt);

	CHECK(is_documented(error) || error == -EMFILE);
	if (error)
		return error;
	error = weft_rt_spawn(rt, everything, &rt, NULL);
	CHECK(is_documented(error));
	while (weft_rt_close(rt) == -EBUSY)
		weft_rt_step(rt, MS);
	return error;
}

static int run_simulated(void)
{
	void *result = NULL;
	int error = weft_simulate(3, NULL, everything, &result, &result);

	CHECK(is_documented(error) && (error || result == &result));
	return error;
}

static int program(void)
{
	int threads = run_threads(), loop = run_loop(), simulated = run_simulated();

	return threads ? threads : loop ? loop : simulated;
}

/* ---- in a process of its own ------------------------------------------------------------------------------------ */

/* None that a sanitizer ends with. */
enum { WENT_WELL = 40, SAID_SO, NO_MORE };

/* What the first run leaves is kept for the next; a second leaves nothing more. */
static int refuse(unsigned first, unsigned width)
{
	long blocks;
	int error;

	alarm(30);
	refusing.first = first;
	refusing.width = width;
	__atomic_store_n(&refusing.counting, true, __ATOMIC_RELAXED);
	error = program();
	__atomic_store_n(&refusing.counting, false, __ATOMIC_RELAXED);
	if (__atomic_load_n(&refusing.count, __ATOMIC_RELAXED) <= first)
		return NO_MORE;
	CHECK(program() == 0);
	blocks = __atomic_load_n(&refusing.blocks, __ATOMIC_RELAXED);
	refusing.first = first;
	refusing.count = 0;
	__atomic_store_n(&refusing.counting, true, __ATOMIC_RELAXED);
	(void)program();
	__atomic_store_n(&refusing.counting, false, __ATOMIC_RELAXED);
	CHECK(__atomic_load_n(&refusing.blocks, __ATOMIC_RELAXED) <= blocks);
	return error ? SAID_SO : WENT_WELL;
}

static int all(unsigned width)
{
	unsigned k, fine = 0, said = 0;
	int status;
	pid_t child;

	for (k = 0;; k++) {
		fflush(NULL);
		child = fork();
		if (!child)
			exit(refuse(k, width));
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == NO_MORE)
			break;
		if (!WIFEXITED(status) || (WEXITSTATUS(status) != WENT_WELL && WEXITSTATUS(status) != SAID_SO)) {
			printf("not ok - request %u, %u in a row: %s %d; to repeat it: refuse one %u %u\n", k, width,
			       WIFSIGNALED(status) ? "signal" : "code",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), k, width);
			return 1;
		}
		fine += WEXITSTATUS(status) == WENT_WELL;
		said += WEXITSTATUS(status) == SAID_SO;
	}
	printf("%s - %u requests, each with %u in a row refused: %u went well, %u said so\n",
	       k > 50 && said > 10 ? "ok" : "not ok", k, width, fine, said);
	return 0;
}

static void *grows(void *unused)
{
	uses_stack(100 * KB);
	return unused;
}

/* Workers get nothing: then none begins, rather than run tasks whose stacks could not grow. */
static int refuse_workers(void)
{
	weft_rt_config_t config = {.workers = 2};

	config.task = (weft_attr_t){.policy = WEFT_COMMIT, .stack_size = 256 * KB};
	refusing.of_others = true;
	refusing.self = pthread_self();
	refusing.width = 1000000;
	refusing.counting = true;
	CHECK(weft_rt_run(&config, grows, NULL, NULL) == -ENOMEM);
	printf("ok - no worker begins without what stacks need of a thread\n");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "workers"))
		return refuse_workers();
	if (argc > 3)
		return refuse((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	return all(1) | all(3) | all(1000000);
}
