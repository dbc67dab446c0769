// SPDX-License-Identifier: MIT OR Apache-2.0
// The order in which owned resources are released, for each way to end: the expected line, and the line that the test
// records.
#include <cstdio>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <string>
#include <weft/weft.h>

#include "frames.h"

WEFT_EFFECT(int, ask);
WEFT_EXCEPTION(fail, std::string, why, int, code);
WEFT_FAMILY(choices, (int, pick), (void, leave, std::string, why));

namespace
{

std::string trace;
int failures;
bool thread_exits; // this is no C++ exception, and is not counted

void note(const char *what)
{
	trace += what;
	trace += ' ';
}

void *nothing()
{
	static char name[] = "c-frame";

	return name;
}

void give_back(void *name)
{
	note(static_cast<char *>(name));
}

// No scope here ends in the ordinary way. A guard that commits unless an exception passes must detect that.
struct Noted {
	const char *name;
	int before = std::uncaught_exceptions();
	~Noted()
	{
		note(name);
		if (std::uncaught_exceptions() <= before && !thread_exits)
			trace += "uncaught:" + std::to_string(std::uncaught_exceptions()) + ' ';
	}
};

// While one coroutine is being unwound, a second coroutine is deleted.
struct Deletes {
	weft_coro_t *k;
	Noted noted;
	~Deletes()
	{
		weft_delete(k);
	}
};

struct Asks {
	~Asks()
	{
		trace += "asked:" + std::to_string(ask()) + ' ';
	}
};

weft_coro_t *make(weft_fn_t *fn, void *arg = nullptr, unsigned flags = WEFT_UNWIND)
{
	weft_attr_t attr{};

	attr.flags = flags;
	return weft_create_with(fn, arg, &attr);
}

weft_coro_t *start(weft_coro_t *k)
{
	weft_resume(k, nullptr, WEFT_HANDLE_NONE);
	return k;
}

void check(const char *what, const char *expected)
{
	bool good = trace == expected;

	std::printf("%sok - %s%s%s\n", good ? "" : "not ", what, good ? "" : ": ", good ? "" : trace.c_str());
	failures += !good;
	trace.clear();
}

// ---- the frames of one coroutine ------------------------------------------------------------------------------------

template <void (*end)(void *)> void *body(void *arg)
{
	Noted outer{"outer"};
	weft_defer(give_back, const_cast<char *>("deferred"));
	Noted inner{"inner"};

	frame_deferring(
	    FRAME_TWO, nothing, give_back,
	    [](void *argument) {
		    Noted innermost{"innermost"};

		    end(argument);
	    },
	    arg);
	return nullptr;
}
#define ALL "innermost c-frame c-frame inner deferred outer "

void suspends(void *)
{
	weft_suspend(nullptr);
}

void throws(void *)
{
	throw 42;
}

void fails(void *)
{
	fail(std::string(100, 'x'), 5);
}

void exits(void *)
{
	pthread_exit(nullptr);
}

void asks(void *)
{
	ask();
}

// ---- several coroutines ------------------------------------------------------------------------------------------

template <weft_fn_t *inner> void *resumes(void *)
{
	Noted noted{"resumer"};
	weft_coro_t *k = make(inner);

	weft_defer(weft_delete, k);
	weft_resume(k, nullptr, WEFT_HANDLE_NONE);
	weft_suspend(nullptr);
	return nullptr;
}

void *asks_late(void *)
{
	Asks late;

	weft_suspend(nullptr);
	return nullptr;
}

void *deletes_another(void *)
{
	Deletes another{start(make(body<suspends>)), {"another"}};

	weft_suspend(nullptr);
	return nullptr;
}

void *deletes(void *k)
{
	weft_delete(static_cast<weft_coro_t *>(k));
	note("deleted");
	return nullptr;
}

void *catches(void *)
{
	try {
		weft_suspend(nullptr);
	} catch (...) {
		note("caught");
		throw;
	}
	return nullptr;
}

// ---- handlers -------------------------------------------------------------------------------------------------------

void *on_leave(void *, std::string why)
{
	trace += "clause:" + std::to_string(why.size()) + ' ';
	return nullptr;
}

void *on_pick(void *, weft_resumption_t *k)
{
	note("drops");
	weft_drop(k);
	return nullptr;
}

void *on_pick_that_fails(void *, weft_resumption_t *)
{
	fail("", 1);
}

WEFT_HANDLER(leaving, weft_abort(leave, on_leave));
WEFT_HANDLER(dropping, weft_general(pick, on_pick));
WEFT_HANDLER(failing, weft_general(pick, on_pick_that_fails));

void leaves(void *)
{
	leave(std::string(70, 'y'));
}

void picks(void *)
{
	pick();
}

weft_attr_t unwinding()
{
	weft_attr_t attr{};

	attr.flags = WEFT_UNWIND;
	return attr;
}

void *runs_failing(void *arg)
{
	weft_attr_t attr = unwinding();

	return weft_run_with(&failing, nullptr, body<picks>, arg, &attr);
}

void *exits_from_thread(void *)
{
	Noted noted{"thread"};

	weft_resume(make(resumes<body<exits>>), nullptr, WEFT_HANDLE_NONE);
	return nullptr;
}

void one_coroutine()
{
	weft_coro_t *k = start(make(body<suspends>));
	weft_request_t r;

	weft_delete(k);
	check("deleted while suspended", ALL);
	k = start(make(body<suspends>));
	weft_reset(k, body<suspends>, nullptr);
	check("reset", ALL);
	start(k);
	weft_reset(k, body<fails>, nullptr);
	check("reset again", ALL);
	r = weft_resume(k, nullptr, weft_handles(fail));
	note(weft_args(fail, r)->why == std::string(100, 'x') && weft_args(fail, r)->code == 5 ? "kept" : "lost");
	check("left by an exception effect", ALL "kept ");
	weft_delete(k);
	k = make(body<throws>);
	try {
		start(k);
	} catch (int code) {
		note(code == 42 ? "42" : "?");
	}
	check("thrown through", ALL "42 ");
	weft_delete(k);
	weft_delete(start(make(catches)));
	check("through a catch (...) that rethrows", "caught ");
	weft_delete(start(make(deletes_another)));
	check("deleted by a destructor of a deleted one", ALL "another ");
}

void several_coroutines()
{
	weft_coro_t *k = start(make(resumes<body<suspends>>)), *deleter;
	weft_request_t r;

	weft_delete(k);
	check("one that holds a suspended one", ALL "resumer ");
	k = make(resumes<body<asks>>);
	r = weft_resume(k, nullptr, weft_handles(ask));
	note(weft_is(ask, r) ? "asked" : "?");
	weft_delete(k);
	check("suspended from below", "asked " ALL "resumer ");
	k = make(resumes<body<fails>>);
	r = weft_resume(k, nullptr, weft_handles(fail));
	note(weft_args(fail, r)->why == std::string(100, 'x') ? "kept" : "lost");
	weft_delete(k);
	check("left through two", ALL "resumer kept ");
	deleter = make(deletes, start(make(asks_late)));
	r = weft_resume(deleter, nullptr, weft_handles(ask));
	weft_reply(ask, r, 7);
	weft_resume(deleter, nullptr, weft_handles(ask));
	weft_delete(deleter);
	check("a destructor that asks around who deletes", "asked:7 deleted ");
}

void handlers()
{
	weft_attr_t attr = unwinding();
	weft_coro_t *k;

	weft_run_with(&leaving, nullptr, body<leaves>, nullptr, &attr);
	check("an abort clause", ALL "clause:70 ");
	weft_run_with(&dropping, nullptr, body<picks>, nullptr, &attr);
	check("dropped by a general clause", "drops " ALL);
	k = make(runs_failing);
	weft_resume(k, nullptr, weft_handles(fail));
	check("left by a general clause, past the run", ALL);
	weft_delete(k);
	k = make(runs_failing, nullptr, 0);
	weft_resume(k, nullptr, weft_handles(fail));
	check("the same where frames are not unwound", ALL);
	weft_delete(k);
}

} // namespace

int main()
{
	pthread_t thread;

	one_coroutine();
	several_coroutines();
#ifndef PLAIN_LIBRARY /* in weft_run, whose resume does not inform the program's sanitizer */
	handlers();
#else
	(void)handlers;
#endif
	note(std::uncaught_exceptions() ? "uncaught" : "none");
	check("no exception is left", "none ");
#if defined(C_FRAMES_UNWIND) && !WEFT__SANITIZED
	thread_exits = true;
	if (pthread_create(&thread, nullptr, exits_from_thread, nullptr) || pthread_join(thread, nullptr))
		return 1;
	check("a thread that exits", ALL "resumer thread ");
#else
	(void)thread;
	(void)exits_from_thread;
#endif
	return failures != 0;
}
