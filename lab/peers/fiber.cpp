/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fiber: the lab's programs of tasks on Boost.Fiber, with its default scheduler: round robin on one thread. */
#include "../impl/lab.h"

#include <boost/fiber/all.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace fibers = boost::fibers;
using channel = fibers::unbuffered_channel<int64_t>;
using namespace std::chrono_literals;

namespace
{

struct run {
	int64_t n, ms, sleepers;
	int64_t result = 0, ops = 0;
};

/* A million stacks of the default size would exceed a machine's address space. */
fibers::pooled_fixedsize_stack stacks{16 * 1024};

template <typename F> fibers::fiber start(F &&f, fibers::launch how = fibers::launch::post)
{
	return fibers::fiber{how, std::allocator_arg, stacks, std::forward<F>(f)};
}

void join(std::vector<fibers::fiber> &all)
{
	for (auto &f : all)
		f.join();
}

template <typename F> void join_ten(F f)
{
	std::vector<fibers::fiber> ten;
	for (int i = 0; i < 10; i++)
		ten.push_back(start(f));
	join(ten);
}

/* ---- spawn and join, yield, channels ------------------------------------------------------------------------- */

void spawn_join(run &r)
{
	for (int64_t i = 0; i < r.n; i++)
		start([&] { r.result++; }).join();
	r.ops = r.n;
}

void yield(run &r)
{
	join_ten([&] {
		for (int64_t i = 0; i < r.n / 10; i++)
			boost::this_fiber::yield();
	});
	r.ops = r.result = r.n;
}

void hop(run &r)
{
	channel to, back;
	auto echo = start([&] {
		for (int64_t item; to.pop(item) == fibers::channel_op_status::success;)
			back.push(item);
	});
	for (int64_t i = 1; i <= r.n; i++) {
		to.push(i);
		r.result += back.value_pop();
	}
	to.close();
	echo.join();
	r.ops = 2 * r.n;
}

/* A part runs immediately, as far as it can, so that few parts are alive at a time. */
void skynet_part(int64_t first, int64_t count, int64_t &sum)
{
	if (count == 1) {
		sum = first;
		return;
	}
	std::vector<fibers::fiber> parts;
	int64_t sums[10];
	for (int64_t i = 0; i < 10; i++)
		parts.push_back(start([&, i] { skynet_part(first + i * (count / 10), count / 10, sums[i]); },
				      fibers::launch::dispatch));
	join(parts);
	sum = 0;
	for (int64_t part : sums)
		sum += part;
}

void skynet(run &r)
{
	skynet_part(0, r.n, r.result);
	r.ops = r.n;
}

void mutex(run &r)
{
	fibers::mutex lock;
	join_ten([&] {
		for (int64_t i = 0; i < r.n / 10; i++) {
			std::lock_guard<fibers::mutex> locked{lock};
			r.result++;
		}
	});
	r.ops = r.n;
}

/* ---- timers -------------------------------------------------------------------------------------------------- */

constexpr uint32_t naps = 16;

/* A pseudo-random share of `longest`, evenly distributed, the same in each program: Knuth's multiplier. */
std::chrono::nanoseconds drawn(uint32_t number, int64_t longest)
{
	return std::chrono::nanoseconds{static_cast<uint64_t>(number * 2654435761U) * longest >> 32};
}

void timers_fire(run &r)
{
	fibers::barrier here(r.n + 1), napped(r.n + 1);
	std::vector<fibers::fiber> all;
	for (int64_t i = 0; i < r.n; i++)
		all.push_back(start([&, i] {
			here.wait();
			for (uint32_t k = 0; k < naps; k++)
				boost::this_fiber::sleep_for(
				    drawn(static_cast<uint32_t>(i) * naps + k, r.ms * 1000000));
			r.result += naps;
			napped.wait();
		}));
	boost::this_fiber::yield();
	lab_start();
	here.wait();
	napped.wait();
	lab_stop();
	join(all);
	r.ops = r.result;
}

bool received(channel &c, int64_t &item)
{
	return c.pop_wait_for(item, 1h) == fibers::channel_op_status::success;
}

void timers_cancel(run &r)
{
	channel to, back;
	for (int64_t i = 0; i < r.sleepers; i++)
		start([] { boost::this_fiber::sleep_for(1h); }).detach();
	boost::this_fiber::yield();
	lab_start();
	auto echo = start([&] {
		for (int64_t item; received(to, item);)
			back.push(item);
	});
	for (int64_t i = 1, item; i <= r.n; i++) {
		to.push(i);
		if (received(back, item))
			r.result += item;
	}
	to.close();
	echo.join();
	lab_stop();
	r.ops = 2 * r.n;
}

/* `whole`: the whole case is timed; other cases start and stop the clock themselves. */
const struct {
	const char *name;
	void (*body)(run &r);
	bool whole;
} cases[] = {{"spawn_join", spawn_join, true},
	     {"yield", yield, true},
	     {"hop", hop, true},
	     {"skynet", skynet, true},
	     {"mutex", mutex, true},
	     {"timers_fire", timers_fire, false},
	     {"timers_cancel", timers_cancel, false}};

} // namespace

int main(int argc, char **argv)
{
	run r = {lab_number(argc, argv, "n", 1000), lab_number(argc, argv, "ms", 10),
		 lab_number(argc, argv, "sleepers", 10)};
	for (auto &c : cases) {
		if (!lab_is(argc, argv, "case", c.name))
			continue;
		if (c.whole)
			lab_start();
		c.body(r);
		if (c.whole)
			lab_stop();
		lab_report(r.ops, r.result);
		/* At the end, sleepers need not be woken. */
		fflush(stdout);
		_Exit(0);
	}
	lab_die("no such case");
}
