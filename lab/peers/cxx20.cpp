/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cxx20: the lab's programs on C++20's stackless coroutines, with the generator that the library lacks until C++23:
 * `co_yield value` and `co_yield` of another generator, which then yields in place of its caller. A resume goes
 * directly to the innermost generator, at any depth.
 */
#include "../impl/lab.h"
#include "../impl/tree.h"
#include "cases.h"

#include <coroutine>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace
{

class generator
{
      public:
	struct promise_type;
	using handle = std::coroutine_handle<promise_type>;

	struct promise_type {
		promise_type *root = this; /* the generator that the consumer holds */
		handle leaf, parent;	   /* root: `leaf` runs next; others: `parent` waits */
		int64_t value = 0;

		struct end {
			bool await_ready() noexcept
			{
				return false;
			}
			std::coroutine_handle<> await_suspend(handle self) noexcept
			{
				promise_type &p = self.promise();
				if (p.root == &p)
					return std::noop_coroutine();
				p.root->leaf = p.parent;
				return p.parent;
			}
			void await_resume() noexcept
			{
			}
		};
		struct nested {
			handle inner;
			bool await_ready() noexcept
			{
				return false;
			}
			std::coroutine_handle<> await_suspend(handle self) noexcept
			{
				promise_type &p = inner.promise();
				p.root = self.promise().root;
				p.parent = self;
				p.root->leaf = inner;
				return inner;
			}
			void await_resume() noexcept
			{
				inner.destroy();
			}
		};

		generator get_return_object()
		{
			leaf = handle::from_promise(*this);
			return generator{leaf};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		end final_suspend() noexcept
		{
			return {};
		}
		std::suspend_always yield_value(int64_t v) noexcept
		{
			root->value = v;
			return {};
		}
		nested yield_value(generator &&inner) noexcept
		{
			return {std::exchange(inner.h_, nullptr)};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};

	generator() = default;
	generator(generator &&other) noexcept : h_{std::exchange(other.h_, nullptr)}
	{
	}
	generator &operator=(generator &&other) noexcept
	{
		std::swap(h_, other.h_);
		return *this;
	}
	~generator()
	{
		if (h_)
			h_.destroy();
	}
	bool next(int64_t &value)
	{
		promise_type &p = h_.promise();
		p.leaf.resume();
		value = p.value;
		return !h_.done();
	}
	explicit operator bool() const
	{
		return static_cast<bool>(h_);
	}

      private:
	explicit generator(handle h) : h_{h}
	{
	}
	handle h_{};
};

int64_t drain(generator g)
{
	int64_t sum = 0, value;

	while (g.next(value))
		sum += value;
	return sum;
}

/* ---- micro --------------------------------------------------------------------------------------------------- */

generator adder(int64_t &in)
{
	for (int64_t sum = 0;; sum += in)
		co_yield sum;
}

int64_t resume_yield(int64_t n)
{
	int64_t in = 1, out = 0;
	generator g = adder(in);

	/* The compiler must not see that the coroutine is used only here, because it would inline it. */
	auto *p = &g;
	LAB_HIDE(p);
	lab_start();
	for (int64_t i = 0; i <= n; i++)
		p->next(out);
	lab_stop();
	return out;
}

generator once(int64_t &done)
{
	done++;
	co_return;
}

int64_t life_warm(int64_t n)
{
	int64_t done = 0, value;

	for (int64_t i = -100; i < n; i++) {
		if (i == 0)
			lab_start();
		generator g = once(done);
		auto *p = &g;
		LAB_HIDE(p);
		p->next(value);
	}
	lab_stop();
	return done - 100;
}

/* ---- state ------------------------------------------------------------------------------------------------------ */

/* A task whose co_await of a request suspends it to its handler. */
struct task {
	struct request {
		bool put;
		int64_t value;
	};
	struct promise_type {
		request *pending = nullptr;

		task get_return_object()
		{
			return task{std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
	struct perform {
		request r;
		bool await_ready() noexcept
		{
			return false;
		}
		void await_suspend(std::coroutine_handle<promise_type> self) noexcept
		{
			self.promise().pending = &r;
		}
		int64_t await_resume() noexcept
		{
			return r.value;
		}
	};

	explicit task(std::coroutine_handle<promise_type> h) : h_{h}
	{
	}
	task(const task &) = delete;
	~task()
	{
		h_.destroy();
	}
	request *next()
	{
		h_.resume();
		return h_.done() ? nullptr : h_.promise().pending;
	}
	std::coroutine_handle<promise_type> h_;
};

task count_down()
{
	int64_t s;

	while ((s = co_await task::perform{{false, 0}}) > 0)
		co_await task::perform{{true, s - 1}};
}

int64_t countdown(int64_t s)
{
	lab_start();
	task t = count_down();
	auto *p = &t;
	LAB_HIDE(p);
	while (auto *r = p->next()) {
		if (r->put)
			s = r->value;
		else
			r->value = s;
	}
	lab_stop();
	return s;
}

task ask(int64_t n, int64_t &sum)
{
	int64_t local = 0;

	for (int64_t i = 0; i < n; i++)
		local += co_await task::perform{{false, 0}};
	sum = local;
}

int64_t perform(int64_t n)
{
	int64_t sum = 0;
	task t = ask(n, sum);
	auto *p = &t;

	LAB_HIDE(p);
	lab_start();
	while (auto *r = p->next())
		r->value = 1;
	lab_stop();
	return sum;
}

/* ---- generators -------------------------------------------------------------------------------------------------- */

generator numbers(int64_t n)
{
	for (int64_t i = 0; i <= n; i++)
		co_yield i;
}

int64_t iterator(int64_t n)
{
	lab_start();
	int64_t sum = drain(numbers(n));
	lab_stop();
	return sum;
}

generator walk(const tree *t)
{
	if (t->left)
		co_yield walk(t->left);
	co_yield t->value;
	if (t->right)
		co_yield walk(t->right);
}

int64_t tree_generator(int64_t n)
{
	const tree *t = tree_make(n);

	lab_start();
	int64_t sum = drain(walk(t));
	lab_stop();
	return sum;
}

generator count_walk(const tree *t)
{
	if (t->left)
		co_yield count_walk(t->left);
	co_yield 1;
	if (t->right)
		co_yield count_walk(t->right);
}

int64_t recursive(int64_t n)
{
	int64_t height = 1;

	while ((INT64_C(1) << height) - 1 < n)
		height++;
	const tree *t = tree_make(height);
	lab_start();
	int64_t sum = drain(count_walk(t));
	lab_stop();
	return sum;
}

generator leaves(int64_t node, int64_t depth)
{
	if (depth == 0) {
		co_yield node;
	} else {
		co_yield leaves(2 * node, depth - 1);
		co_yield leaves(2 * node + 1, depth - 1);
	}
}

int64_t c2(int64_t n)
{
	lab_start();
	int64_t sum = drain(leaves(0, n));
	lab_stop();
	return sum;
}

/* ---- C1, C3 ------------------------------------------------------------------------------------------------------ */

generator summer(int64_t n, int64_t &in, int64_t &sum)
{
	int64_t local = 0;

	for (int64_t i = 0; i < n; i++) {
		co_yield i;
		local += in;
	}
	sum = local;
}

int64_t c1(int64_t n)
{
	int64_t ina = 0, inb = 0, suma = 0, sumb = 0, a = 0, b = 0;
	generator ga = summer(n, ina, suma), gb = summer(n, inb, sumb);
	bool more;

	do {
		ina = a;
		more = ga.next(a);
		inb = b;
		more &= gb.next(b);
	} while (more);
	return suma + sumb;
}

int64_t c1_laps(int64_t n, int64_t laps)
{
	int64_t sum = 0;

	lab_start();
	for (int64_t i = 0; i < laps; i++)
		sum = c1(n);
	lab_stop();
	return sum;
}

generator count_up()
{
	for (int64_t i = 2;; i++)
		co_yield i;
}

generator filter(generator &source, int64_t prime)
{
	for (int64_t i; source.next(i);)
		if (i % prime != 0)
			co_yield i;
}

int64_t c3(int64_t n)
{
	int64_t prime = 0;

	lab_start();
	{
		std::vector<std::unique_ptr<generator>> chain;
		chain.push_back(std::make_unique<generator>(count_up()));
		for (int64_t found = 0; found < n; found++) {
			generator &source = *chain.back();
			source.next(prime);
			chain.push_back(std::make_unique<generator>(filter(source, prime)));
		}
	}
	lab_stop();
	return prime;
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

/* The data that a stackful coroutine has on its stack is in this coroutine's frame. */
generator toucher(int64_t &sum)
{
	char buffer[32 * 1024];
	char *bytes = buffer;

	memset(bytes, 1, sizeof(buffer));
	LAB_KEEP(bytes);
	co_yield 0;
	LAB_KEEP(bytes);
	sum += bytes[0] + bytes[sizeof(buffer) - 1];
}

int64_t c10m(int64_t n, int64_t live)
{
	std::vector<generator> slots(static_cast<std::size_t>(live));
	int64_t sum = 0, value;

	lab_start();
	for (int64_t i = 0; i < n; i++) {
		generator &slot = slots[static_cast<std::size_t>(i % live)];
		if (slot)
			slot.next(value);
		slot = toucher(sum);
		slot.next(value);
	}
	for (generator &slot : slots)
		if (slot)
			slot.next(value);
	lab_stop();
	return sum / 2;
}

generator waiter(int64_t &started)
{
	started++;
	co_yield 0;
}

int memory(int64_t n)
{
	std::vector<generator> all(static_cast<std::size_t>(n));
	int64_t started = 0, value;
	uint64_t resident = lab_resident(), tables = lab_page_tables();

	lab_start();
	for (generator &g : all) {
		g = waiter(started);
		g.next(value);
	}
	lab_stop();
	return lab_report_memory(static_cast<uint64_t>(n), resident, tables, started);
}

const peer_case cases[] = {
    {"resume_yield", resume_yield},
    {"life_warm", life_warm},
    {"countdown", countdown},
    {"perform", perform},
    {"iterator", iterator},
    {"generator", tree_generator},
    {"recursive", recursive},
    {"c2", c2},
    {"c3", c3},
};

} // namespace

int main(int argc, char **argv)
{
	return peer_main(argc, argv, cases, c1_laps, c10m, memory);
}
