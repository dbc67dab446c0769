/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random programs of coroutines and effects, run by Weft and by the abstract machine (machine.h) in step.
 *
 * A program is a list of numbers. The code in control uses the next numbers to choose among the operations that the
 * machine allows, applies the operation to the machine, executes it, and compares: did control arrive in the frame that
 * the machine predicts, with the predicted value or request, from the predicted coroutine, and are all states equal?
 * Any list is a program, so a failing program can be reduced by removing numbers. Each program runs in a child process;
 * the smallest program that still fails is printed as a trace.
 *
 *   differential [--operations N] [--seed N] [--program N] [--wrong RULE]
 *
 * --seed, or WEFT_SEED, replays a run, --program one of its programs with a trace; --wrong breaks a rule of the machine
 * (canary).
 */

#define _GNU_SOURCE /* program_invocation_short_name */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "effects.h"
#include "machine.h"

enum { MOST_NUMBERS = 6000, PROGRAMS_PER_CHILD = 500, SHRINK_RUNS = 1500, SHRINK_SECONDS = 30 };
enum { EXIT_DIFFERS = 3 };

/* Data that the child passes to the parent, also if it crashes. */
struct shared {
	uint64_t program, operations;
};

static struct shared *shared;
static struct machine m;
static struct set sets[SETS];
static bool tracing;

/* ---- the program: a list of numbers ----------------------------------------------------------------------- */

static struct {
	uint32_t number[MOST_NUMBERS];
	int count, used;
} program;

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static void make_program(uint64_t seed, uint64_t index)
{
	uint64_t state = mix(seed) ^ mix(~index);

	/* Most programs are short, because a short failing program is more useful. */
	program.count = 1 + (int)(mix(state) % (index % 8 ? 600 : MOST_NUMBERS));
	program.used = 0;
	for (int i = 0; i < program.count; i++)
		program.number[i] = (uint32_t)mix(state + 1 + (uint64_t)i);
}

static bool over(void)
{
	return program.used >= program.count;
}

static uint32_t number(void)
{
	return over() ? 0 : program.number[program.used++];
}

static int choose(int n)
{
	return (int)(number() % (uint32_t)n);
}

/* ---- trace output ---------------------------------------------------------------------------------------------- */

static const char *called(int k)
{
	static char names[4][16];
	static int next;
	char *name = names[next++ % 4];

	if (k == OUTSIDE)
		return "main";
	snprintf(name, sizeof names[0], "k%d", k);
	return name;
}

#define TRACE(...)                                                                                                     \
	do {                                                                                                           \
		shared->operations++;                                                                                  \
		if (tracing)                                                                                           \
			trace(__VA_ARGS__);                                                                            \
	} while (0)

static __attribute__((format(printf, 1, 2))) void trace(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "  %-5s ", called(machine_current(&m)));
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static _Noreturn __attribute__((format(printf, 1, 2))) void differs(const char *format, ...)
{
	va_list arguments;

	if (tracing) {
		fprintf(stderr, "  differs: ");
		va_start(arguments, format);
		vfprintf(stderr, format, arguments);
		va_end(arguments);
		fputc('\n', stderr);
	}
	_exit(EXIT_DIFFERS);
}

#define SAME(what, is, should)                                                                                         \
	do {                                                                                                           \
		uint64_t is_ = (uint64_t)(is), should_ = (uint64_t)(should);                                           \
		if (is_ != should_)                                                                                    \
			differs("%s is %#lx, should be %#lx", what, is_, should_);                                     \
	} while (0)

/* ---- the real coroutines, by the machine's numbers -------------------------------------------------------- */

static struct {
	weft_coro_t embedded;
	weft_coro_t *k;
	weft_ref_t ref;
} real[CONTINUATIONS];

static void *body(void *argument);

static weft_coro_t *real_of(int k)
{
	return k == OUTSIDE ? NULL : real[k].k;
}

static int number_of(const weft_coro_t *k)
{
	for (int i = 0; i < CONTINUATIONS; i++)
		if (m.k[i].state != GONE && real[i].k == k)
			return i;
	return OUTSIDE;
}

static void check_state(int i)
{
	static const weft_state_t states[] = {WEFT_DELETED, WEFT_SUSPENDED, WEFT_RUNNING, WEFT_FINISHED};

	if (!real[i].k)
		return;
	if (m.k[i].state == GONE) {
		SAME("a deleted coroutine's handle", weft_deref(real[i].ref), 0);
		return;
	}
	SAME("a state", weft_state(real[i].k), states[m.k[i].state]);
	SAME("validity", weft_coro_is_valid(real[i].k), true);
	SAME("a live coroutine's handle", weft_deref(real[i].ref), real[i].k);
}

static void check_states(void)
{
	for (int i = 0; i < CONTINUATIONS; i++)
		check_state(i);
	for (int i = 0; i < m.length; i++)
		SAME("a parent", weft_parent(real[m.chain[i].k].k), real_of(i ? m.chain[i - 1].k : OUTSIDE));
}

/* Control has returned to this frame, or started it: checks that this is predicted. */
static void arrive(uint64_t frame)
{
	SAME("the frame in control", frame, m.event.frame);
	SAME("the current coroutine", weft_current(), real_of(machine_current(&m)));
	if (frame % 16 == 0)
		check_states();
}

static void arrive_with(uint64_t frame, uint64_t value)
{
	arrive(frame);
	SAME("the kind of event", CONTINUED, m.event.kind);
	SAME("a value", value, m.event.value);
}

/* ---- operations: each returns after control has returned, or does nothing if the machine does not allow it ------- */

static bool is_usable(int k, enum state state)
{
	return m.k[k].state == state && m.k[k].orphan_of < 0;
}

static int choose_k(enum state state)
{
	int start = choose(CONTINUATIONS);

	for (int i = 0; i < CONTINUATIONS; i++)
		if (is_usable((start + i) % CONTINUATIONS, state))
			return (start + i) % CONTINUATIONS;
	return OUTSIDE;
}

static void adopt(int k, bool embedded)
{
	real[k].ref = weft_ref(real[k].k);
	SAME("embedded", real[k].k == &real[k].embedded, embedded);
}

static void op_new(void)
{
	weft_attr_t attr = {.name = "random"};
	int how = choose(4), k = choose_k(GONE);

	if (k == OUTSIDE || m.k[k].state != GONE)
		return;
	TRACE("newcont %s%s", called(k), how == 0 ? " (init)" : "");
	machine_newcont(&m, k);
	if (how == 1)
		attr.flags = WEFT_SAVE_FPU;
	if (how == 0 && weft_init(&real[k].embedded, body, &real[k], &attr))
		differs("weft_init failed");
	real[k].k = how == 0   ? &real[k].embedded
		    : how == 1 ? weft_create_with(body, &real[k], &attr)
			       : weft_create(body, &real[k]);
	if (!real[k].k)
		differs("weft_create failed: %s", strerror(errno));
	adopt(k, how == 0);
}

/* weft_init on an object in use: release and init. */
static void op_init_anew(void)
{
	int k = choose_k(SUSPENDED);

	if (k == OUTSIDE || real[k].k != &real[k].embedded)
		return;
	TRACE("init %s anew", called(k));
	machine_delete(&m, k);
	machine_newcont(&m, k);
	if (weft_init(real[k].k, body, &real[k], NULL))
		differs("weft_init failed");
	adopt(k, true);
}

static void delete(int k)
{
	TRACE("delete %s", called(k));
	machine_delete(&m, k);
	if (real[k].k == &real[k].embedded)
		weft_release(real[k].k);
	else
		weft_delete(real[k].k);
}

static void op_delete(void)
{
	int k = choose_k(choose(2) ? SUSPENDED : FINISHED);

	if (k != OUTSIDE)
		delete (k);
	check_states();
}

static void op_reset(void)
{
	int k = choose_k(choose(2) ? SUSPENDED : FINISHED);

	if (k == OUTSIDE)
		return;
	TRACE("reset %s", called(k));
	machine_reset(&m, k);
	weft_reset(real[k].k, body, &real[k]);
	check_states();
}

static uint64_t payload_of(weft_request_t r)
{
	if (weft_is(ask, r))
		return weft_args(ask, r)->x;
	if (weft_is(exchange, r)) {
		SAME("a wide argument's end", weft_args(exchange, r)->x.word[5], ~weft_args(exchange, r)->x.word[0]);
		SAME("a double", weft_args(exchange, r)->y, (double)(uint32_t)weft_args(exchange, r)->x.word[0]);
		return weft_args(exchange, r)->x.word[0];
	}
	if (weft_is(notify, r))
		return weft_args(notify, r)->x;
	if (weft_is(get, r))
		return weft_args(get, r)->x;
	if (weft_is(put, r))
		return weft_args(put, r)->x;
	if (weft_is(guess, r))
		return weft_args(guess, r)->x;
	if (weft_is(fail, r))
		return weft_args(fail, r)->x;
	return (uint64_t)r.payload;
}

static int effect_of(weft_request_t r)
{
	static const weft_effect_t *const effects[] = {&weft_effect_ask, &weft_effect_exchange, &weft_effect_notify,
						       &weft_effect_get, &weft_effect_put,	&weft_effect_guess,
						       &weft_effect_fail};

	if (weft_returned(r))
		return RETURN;
	if (r.effect == &weft_suspended)
		return YIELDED;
	if (r.effect == &weft_failed)
		return LEFT; /* used for weft_exit below: nothing fails here */
	for (int i = 0; i < EFFECTS; i++)
		if (r.effect == effects[i])
			return i;
	differs("a request of no effect that was ever performed");
}

/* A handler may reply or not. */
static void maybe_reply(weft_request_t r, int from)
{
	struct continuation *performer = &m.k[m.k[from].held[m.k[from].holds - 1].k];
	uint64_t value = number();

	if (m.k[from].state != SUSPENDED || value % 4 == 0)
		return;
	if (weft_is(ask, r))
		weft_reply(ask, r, value);
	else if (weft_is(get, r))
		weft_reply(get, r, value);
	else if (weft_is(guess, r))
		weft_reply(guess, r, value);
	else if (weft_is(exchange, r))
		weft_reply(exchange, r, ((struct wide){{value, 0, 0, 0, 0, ~value}}));
	else
		return;
	TRACE("reply %#lx", value);
	performer->reply = value;
}

/* Sometimes a coroutine continues on another thread. */
static struct {
	pthread_t thread;
	bool running;
	sem_t call, done;
	weft_coro_t **k;
	void *value;
	weft_handles_t set;
	weft_request_t request;
} elsewhere;

static void *serve(void *unused)
{
	for (;;) {
		sem_wait(&elsewhere.call);
		elsewhere.request = weft_resume_any(elsewhere.k, elsewhere.value, elsewhere.set);
		sem_post(&elsewhere.done);
	}
	return unused;
}

static weft_request_t resume_elsewhere(weft_coro_t **k, uint64_t value, weft_handles_t set)
{
	if (!elsewhere.running) {
		sem_init(&elsewhere.call, 0, 0);
		sem_init(&elsewhere.done, 0, 0);
		elsewhere.running = pthread_create(&elsewhere.thread, NULL, serve, NULL) == 0;
	}
	elsewhere.k = k;
	elsewhere.value = (void *)value;
	elsewhere.set = set;
	sem_post(&elsewhere.call);
	while (sem_wait(&elsewhere.done) && errno == EINTR)
		;
	return elsewhere.request;
}

static void op_resume(uint64_t frame)
{
	int k = choose_k(SUSPENDED), set = choose(SETS), effect;
	uint64_t value = number();
	weft_request_t r;
	weft_coro_t *from;

	if (k == OUTSIDE)
		return;
	TRACE("resume %s, value %#lx, handling set %#x", called(k), value, sets[set].model & (BIT(EFFECTS) - 1));
	from = real[k].k;
	if (m.length == 0 && value % 1024 == 0) {
		machine_resume(&m, k, value, sets[set].model);
		r = resume_elsewhere(&from, value, sets[set].real);
	} else {
		machine_resume(&m, k, value, sets[set].model);
		r = weft_resume_any(&from, (void *)value, sets[set].real);
	}
	arrive(frame);
	SAME("the kind of event", REQUESTED, m.event.kind);
	SAME("the requesting coroutine", number_of(from), m.event.from);
	effect = effect_of(r);
	SAME("a request's effect", effect, m.event.effect);
	SAME("a request's payload", payload_of(r), m.event.payload);
	if (effect >= 0)
		maybe_reply(r, m.event.from);
}

static uint64_t default_guess(uint64_t x)
{
	return 3 * x + 1;
}

/* Perform an effect, by search or, if `at`, at the handler. */
static uint64_t perform(int effect, weft_coro_t *at, uint64_t x)
{
	struct wide wide = {{x, 1, 2, 3, 4, ~x}};

	switch (effect) {
	case ASK:
		return at ? weft_perform_at(ask, at, x) : ask(x);
	case EXCHANGE:
		wide =
		    at ? weft_perform_at(exchange, at, wide, (double)(uint32_t)x) : exchange(wide, (double)(uint32_t)x);
		return wide.word[0];
	case NOTIFY:
		at ? weft_perform_at(notify, at, x) : notify(x);
		return 0;
	case GET:
		return at ? weft_perform_at(get, at, x) : get(x);
	case PUT:
		at ? weft_perform_at(put, at, x) : put(x);
		return 0;
	case GUESS:
		return at ? weft_perform_at(guess, at, x) : guess(x);
	}
	abort();
}

static weft_coro_t *located(int effect)
{
	switch (effect) {
	case ASK:
		return weft_locate(ask);
	case EXCHANGE:
		return weft_locate(exchange);
	case NOTIFY:
		return weft_locate(notify);
	case GET:
		return weft_locate(get);
	case PUT:
		return weft_locate(put);
	case GUESS:
		return weft_locate(guess);
	default:
		return weft_locate(fail);
	}
}

static void op_perform(uint64_t frame)
{
	int effect = choose(EFFECTS - 1), place = machine_handler(&m, effect);
	bool directly = choose(4) == 0;
	uint64_t x = number();
	weft_coro_t *at = place == NO_HANDLER ? NULL : real[m.chain[place].k].k;

	if (!m.wrong)
		SAME("the handler found", located(effect), at);
	if (place == NO_HANDLER) {
		if (effect == GUESS)
			SAME("the default handler's answer", guess(x), default_guess(x));
		return;
	}
	TRACE("perform %d(%#lx)%s, to %s", effect, x, directly ? " directly" : "", called(m.chain[place].k));
	machine_split(&m, place, effect, x, effect);
	x = perform(effect, directly ? at : NULL, x);
	arrive_with(frame, x);
}

static void op_throw(void)
{
	int place = machine_handler(&m, FAIL);
	uint64_t x = number();

	if (place == NO_HANDLER)
		return;
	TRACE("throw %#lx, to %s", x, called(m.chain[place].k));
	machine_leave(&m, place, FAIL, x);
	fail(x);
}

static void op_yield(uint64_t frame)
{
	int place = m.length ? choose(m.length) : -1;
	uint64_t value = number();
	void *got;

	if (place < 0)
		return;
	TRACE("yield %s, %#lx", called(m.chain[place].k), value);
	machine_split(&m, place, YIELDED, value, YIELDED);
	if (place == m.length)
		got = weft_yield(real[m.chain[place].k].k, &weft_suspended, (void *)value);
	else
		got = weft_ffi_yield(real[m.chain[place].k].k, &weft_suspended, (void *)value);
	arrive_with(frame, (uint64_t)got);
}

static void leave(int place, uint64_t value)
{
	weft_coro_t *k = real[m.chain[place].k].k;

	TRACE("exit %s, %#lx", called(m.chain[place].k), value);
	machine_leave(&m, place, LEFT, value);
	weft_exit(k, &weft_failed, (void *)value);
}

static void op_switch(uint64_t frame)
{
	int k = choose_k(SUSPENDED);
	uint64_t value = number();
	weft_coro_t *self = weft_current(), *who = self;
	void *got;

	if (!m.length || k == OUTSIDE)
		return;
	TRACE("switch to %s, %#lx", called(k), value);
	machine_switch(&m, k, value);
	got = value & 1 ? weft_switch(real[k].k, (void *)value) : weft_switch_from(&who, real[k].k, (void *)value);
	if (who != self || who != weft_current())
		differs("another coroutine goes on after a switch");
	arrive_with(frame, (uint64_t)got);
}

/* ---- a frame ---------------------------------------------------------------------------------------------------- */

static uint64_t run_frame(void);

static void op_call(uint64_t frame)
{
	struct continuation *c = &m.k[machine_current(&m)];
	uint64_t value;

	if (c->depth == FRAMES)
		return;
	TRACE("call");
	machine_call(&m);
	value = run_frame();
	arrive_with(frame, value);
}

static uint64_t leave_frame(void)
{
	uint64_t value = number();

	TRACE("return %#lx", value);
	machine_return(&m, value);
	return value;
}

static bool may_return(void)
{
	return m.length || m.k[OUTSIDE].depth > 1;
}

/* One operation; true if the frame should return. */
static bool operate(uint64_t frame)
{
	switch (choose(32)) {
	case 0 ... 2:
		op_new();
		break;
	case 3 ... 11:
		op_resume(frame);
		break;
	case 12 ... 18:
		op_perform(frame);
		break;
	case 19 ... 21:
		op_yield(frame);
		break;
	case 22:
	case 23:
		op_switch(frame);
		break;
	case 24:
		op_throw();
		break;
	case 25:
		if (m.length) {
			int place = choose(m.length);

			leave(place, number());
		}
		break;
	case 26:
		op_delete();
		break;
	case 27:
		op_reset();
		break;
	case 28:
	case 29:
		op_call(frame);
		break;
	case 30:
		op_init_anew();
		break;
	default:
		return may_return();
	}
	return false;
}

static uint64_t run_frame(void)
{
	uint64_t frame = m.event.frame;
	double live = (double)frame;
	volatile uint64_t local[5] = {frame, ~frame, frame * 3, frame ^ 0x5555, frame + 1};

	arrive(frame);
	while (!over() && !operate(frame)) {
		SAME("a local variable", local[0] ^ ~local[1], 0);
		SAME("a local variable", local[2] - 3 * frame, 0);
		SAME("a floating-point variable", live, frame);
	}
	SAME("a local variable", local[4] - (local[3] ^ 0x5555), 1);
	if (over() && !may_return())
		return 0;
	if (over() && m.length && program.count % 2)
		leave(0, 0);
	return leave_frame();
}

static void *body(void *argument)
{
	SAME("the argument", argument, &real[machine_current(&m)]);
	SAME("the kind of event", STARTED, m.event.kind);
	return (void *)run_frame();
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static bool delete_any(void)
{
	for (int k = 0; k < CONTINUATIONS; k++)
		if (is_usable(k, SUSPENDED) || is_usable(k, FINISHED)) {
			delete (k);
			return true;
		}
	return false;
}

static void run_program(void)
{
	weft_stack_stats_t stats;

	memset(real, 0, sizeof real);
	machine_start(&m);
	run_frame();
	check_states();
	/* Deleting a coroutine may finish other coroutines. */
	while (delete_any())
		;
	check_states();
	weft_stack_stats(WEFT_DEFAULT_POLICY, &stats);
	SAME("the number of stacks in use after all were deleted", stats.live, 0);
}

/* Runs a function in a child; returns how it ended: 0, EXIT_DIFFERS, or 128 + signal. */
static int in_child(void (*run)(const uint64_t *), const uint64_t *argument, unsigned seconds)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		alarm(seconds);
		run(argument);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("differential: fork");
		exit(2);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run_some(const uint64_t *range) /* seed, first, last */
{
	for (uint64_t i = range[1]; i < range[2]; i++) {
		shared->program = i;
		make_program(range[0], i);
		run_program();
	}
}

static void run_this(const uint64_t *unused)
{
	(void)unused;
	program.used = 0;
	if (!tracing && !freopen("/dev/null", "w", stderr))
		_exit(0);
	run_program();
}

/* ---- reducing a failing program ---------------------------------------------------------------------------------- */

static void cut(int start, int count)
{
	memmove(program.number + start, program.number + start + count,
		(size_t)(program.count - start - count) * sizeof *program.number);
	program.count -= count;
}

static void shrink(void)
{
	static uint32_t saved[MOST_NUMBERS];
	time_t end = time(NULL) + SHRINK_SECONDS;
	int runs = 0, saved_count;

	for (int size = program.count / 2; size > 0;) {
		bool better = false;

		for (int start = 0; start + size <= program.count && runs < SHRINK_RUNS && time(NULL) < end; runs++) {
			memcpy(saved, program.number, sizeof saved);
			saved_count = program.count;
			cut(start, size);
			if (in_child(run_this, NULL, 2)) {
				better = true;
				continue;
			}
			memcpy(program.number, saved, sizeof saved);
			program.count = saved_count;
			start += size;
		}
		if (!better || size > 1)
			size = size > 1 ? size / 2 : 0;
	}
}

static void explain(uint64_t seed, uint64_t index, int status)
{
	fprintf(stderr, "seed %lu, program %lu: %s %d\n", seed, index, status > 128 ? "died by signal" : "exit code",
		status > 128 ? status - 128 : status);
	fprintf(stderr, "replay: WEFT_STACK=%s %s --seed %lu --program %lu\n", weft_policy_name(weft_default_policy()),
		program_invocation_short_name, seed, index);
	make_program(seed, index);
	if (!in_child(run_this, NULL, 10)) {
		fprintf(stderr, "fails only after the programs before it\n");
		return;
	}
	shrink();
	fprintf(stderr, "smallest failing program found, %d numbers:\n", program.count);
	tracing = true;
	status = in_child(run_this, NULL, 10);
	fprintf(stderr, "  ended with %d\n", status);
}

struct options {
	uint64_t operations, seed, program;
	bool one;
};

static uint64_t number_argument(char **arguments, int *i)
{
	if (!arguments[*i + 1]) {
		fprintf(stderr, "differential: %s needs a number\n", arguments[*i]);
		exit(2);
	}
	return strtoull(arguments[++*i], NULL, 0);
}

static struct options parse(char **arguments)
{
	const char *seed = getenv("WEFT_SEED");
	struct options o = {.operations = 1000000,
			    .seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32};

	for (int i = 1; arguments[i]; i++) {
		if (!strcmp(arguments[i], "--operations"))
			o.operations = number_argument(arguments, &i);
		else if (!strcmp(arguments[i], "--seed"))
			o.seed = number_argument(arguments, &i);
		else if (!strcmp(arguments[i], "--wrong"))
			m.wrong = (int)number_argument(arguments, &i);
		else if (!strcmp(arguments[i], "--program"))
			o.program = number_argument(arguments, &i), o.one = true;
		else {
			fprintf(stderr, "differential: unknown option %s\n", arguments[i]);
			exit(2);
		}
	}
	return o;
}

static int run_one(const struct options *o)
{
	tracing = true;
	make_program(o->seed, o->program);
	return in_child(run_this, NULL, 60) ? 1 : 0;
}

int main(int count, char **arguments)
{
	struct options o = parse(arguments);

	(void)count;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	make_sets(sets);
	weft_set_default(guess, default_guess);
	if (o.one)
		return run_one(&o);
	fprintf(stderr, "seed %lu, %s\n", o.seed, weft_policy_name(weft_default_policy()));
	for (uint64_t first = 0; shared->operations < o.operations; first += PROGRAMS_PER_CHILD) {
		uint64_t range[] = {o.seed, first, first + PROGRAMS_PER_CHILD};
		int status = in_child(run_some, range, 60);

		if (status) {
			explain(o.seed, shared->program, status);
			return 1;
		}
		/* Operations that are counted but not done would make this loop infinite. */
		if (first > 100 * o.operations) {
			fprintf(stderr, "programs do nothing\n");
			return 1;
		}
	}
	printf("%lu operations agree with the machine (seed %lu)\n", shared->operations, o.seed);
	return 0;
}
