// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Tasks from C++: the headers compile without a warning, and destructors run in a task that is cancelled.
#include <cstdio>
#include <string>
#include <weft/sync.h>

namespace
{
int ended;

struct guard {
	std::string text = std::string(100, 'x');
	~guard()
	{
		++ended;
	}
};

void *child(void *unused)
{
	guard guards[2];

	(void)guards;
	weft_sleep(1000000000000000ull);
	return unused;
}

void *first(void *chan)
{
	weft_task_attr_t attr{};
	weft_mutex_t mutex{};
	int item = 7;

	attr.coro.flags = WEFT_UNWIND;
	{
		WEFT_SCOPE(scope);
		if (weft_scope_spawn_with(&scope, nullptr, child, nullptr, &attr))
			return nullptr;
		weft_sleep(1000000);
	}
	if (weft_mutex_lock(&mutex) || weft_mutex_unlock(&mutex) ||
	    weft_chan_send(static_cast<weft_chan_t *>(chan), &item))
		return nullptr;
	return chan;
}
} // namespace

int main()
{
	weft_chan_t *chan = weft_chan_make(sizeof(int), 1);
	void *result = nullptr;
	bool right = chan && weft_rt_run(nullptr, first, chan, &result) == 0 && result == chan && ended == 2;

	std::printf("%s - tasks in C++\n", right ? "ok" : "not ok");
	weft_chan_free(chan);
	return !right;
}
