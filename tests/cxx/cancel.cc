// SPDX-License-Identifier: MIT OR Apache-2.0
// pthread_exit and pthread_cancel unwind by force: through the coroutine's frames, then its parents', to the
// thread's end.
#include <atomic>
#include <pthread.h>

#include "check.h"

namespace
{

std::string trace;
std::atomic<bool> ready;

struct Noted {
	const char *name;
	~Noted()
	{
		trace += name;
	}
};

void *exits(void *)
{
	Noted noted{"exits "};

	weft_suspend(nullptr);
	pthread_exit(const_cast<char *>("done"));
}

void *waits(void *)
{
	Noted noted{"waits "};

	ready = true;
	for (;;)
		pause();
	return nullptr;
}

void *outer(void *inner)
{
	Noted noted{"outer "};
	weft_coro_t *k = weft_create(reinterpret_cast<weft_fn_t *>(inner), nullptr);

	while (!weft_returned(weft_resume(k, nullptr, WEFT_HANDLE_NONE)))
		;
	return nullptr;
}

void *thread(void *inner)
{
	Noted noted{"thread "};
	weft_coro_t *k = weft_create(outer, inner);

	weft_resume(k, nullptr, WEFT_HANDLE_NONE);
	trace += "not reached ";
	return nullptr;
}

void *nothing_to_destroy(void *inner)
{
	weft_coro_t *k = weft_create(reinterpret_cast<weft_fn_t *>(inner), nullptr);

	while (!weft_returned(weft_resume(k, nullptr, WEFT_HANDLE_NONE)))
		;
	return nullptr;
}

pthread_t start(weft_fn_t *inner, weft_fn_t *body = thread)
{
	pthread_t id;

	trace.clear();
	CHECK(pthread_create(&id, nullptr, body, reinterpret_cast<void *>(inner)) == 0);
	return id;
}

} // namespace

int main()
{
	void *result;
	pthread_t id = start(exits);

	CHECK(pthread_join(id, &result) == 0);
	CHECK(std::string(static_cast<char *>(result)) == "done");
	CHECK(trace == "exits outer thread ");
	passed("pthread_exit inside a coroutine inside a coroutine");

	id = start(waits);
	while (!ready)
		usleep(1000);
	CHECK(pthread_cancel(id) == 0);
	CHECK(pthread_join(id, &result) == 0 && result == PTHREAD_CANCELED);
	CHECK(trace == "waits outer thread ");
	passed("pthread_cancel of a thread that runs one");

	CHECK(pthread_join(start(exits, nothing_to_destroy), &result) == 0);
	CHECK(std::string(static_cast<char *>(result)) == "done" && trace == "exits ");
	passed("through a frame that resumes inline and has nothing to destroy");
	return 0;
}
