/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* boost: the lab's programs on Boost.Context's fiber (and, case=fcontext, on the switch under it). */
#include "../impl/lab.h"
#include "../impl/tree.h"
#include "cases.h"

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace ctx = boost::context;

namespace
{

constexpr std::size_t small_stack = 64 * 1024;

/* ---- micro ------------------------------------------------------------------------------------------------- */

int64_t resume_yield(int64_t n)
{
	int64_t in = 1, out = 0;
	ctx::fiber f{[&](ctx::fiber &&sink) {
		for (int64_t sum = 0;; sum += in) {
			out = sum;
			sink = std::move(sink).resume();
		}
		return std::move(sink);
	}};

	lab_start();
	for (int64_t i = 0; i <= n; i++)
		f = std::move(f).resume();
	lab_stop();
	return out;
}

LAB_NOINLINE int64_t one_deep(ctx::fiber &sink, int64_t &in, int64_t &out, int64_t sum)
{
	out = sum;
	sink = std::move(sink).resume();
	int64_t value = in;
	LAB_HIDE(value);
	return value;
}

int64_t yield_deep(int64_t n)
{
	int64_t in = 1, out = 0;
	ctx::fiber f{[&](ctx::fiber &&sink) {
		for (int64_t sum = 0;;)
			sum += one_deep(sink, in, out, sum);
		return std::move(sink);
	}};

	lab_start();
	for (int64_t i = 0; i <= n; i++)
		f = std::move(f).resume();
	lab_stop();
	return out;
}

void fcontext_body(ctx::detail::transfer_t t)
{
	for (intptr_t sum = 0;;) {
		t = ctx::detail::jump_fcontext(t.fctx, reinterpret_cast<void *>(sum));
		sum += reinterpret_cast<intptr_t>(t.data);
	}
}

int64_t fcontext_resume_yield(int64_t n)
{
	std::vector<char> stack(small_stack);
	ctx::detail::transfer_t t{ctx::detail::make_fcontext(stack.data() + stack.size(), stack.size(), fcontext_body),
				  nullptr};

	lab_start();
	for (int64_t i = 0; i <= n; i++)
		t = ctx::detail::jump_fcontext(t.fctx, reinterpret_cast<void *>(1));
	lab_stop();
	return reinterpret_cast<intptr_t>(t.data);
}

int64_t life_warm(int64_t n)
{
	ctx::pooled_fixedsize_stack pool{small_stack};
	int64_t done = 0;

	for (int64_t i = -100; i < n; i++) {
		if (i == 0)
			lab_start();
		ctx::fiber f{std::allocator_arg, pool, [&](ctx::fiber &&sink) {
				     done++;
				     return std::move(sink);
			     }};
		std::move(f).resume();
	}
	lab_stop();
	return done - 100;
}

/* ---- state --------------------------------------------------------------------------------------------------- */

struct request {
	bool put;
	int64_t value;
};

int64_t countdown(int64_t s)
{
	request *pending = nullptr;
	ctx::fiber f{[&](ctx::fiber &&sink) {
		auto perform = [&](request r) {
			pending = &r;
			sink = std::move(sink).resume();
			return r.value;
		};
		int64_t value;
		while ((value = perform({false, 0})) > 0)
			perform({true, value - 1});
		return std::move(sink);
	}};

	lab_start();
	for (f = std::move(f).resume(); f; f = std::move(f).resume()) {
		if (pending->put)
			s = pending->value;
		else
			pending->value = s;
	}
	lab_stop();
	return s;
}

int64_t perform(int64_t n)
{
	request *pending = nullptr;
	int64_t sum = 0;
	ctx::fiber f{[&](ctx::fiber &&sink) {
		int64_t local = 0;
		for (int64_t i = 0; i < n; i++) {
			request r{false, 0};
			pending = &r;
			sink = std::move(sink).resume();
			local += r.value;
		}
		sum = local;
		return std::move(sink);
	}};

	lab_start();
	for (f = std::move(f).resume(); f; f = std::move(f).resume())
		pending->value = 1;
	lab_stop();
	return sum;
}

/* ---- generators ------------------------------------------------------------------------------------------------ */

class generator
{
      public:
	class yielder
	{
	      public:
		yielder(ctx::fiber &&sink, generator &owner) : sink_{std::move(sink)}, owner_{owner}
		{
		}
		void operator()(int64_t value)
		{
			owner_.value_ = value;
			sink_ = std::move(sink_).resume();
		}
		ctx::fiber sink_;
		generator &owner_;
	};

	template <class F>
	explicit generator(F &&body)
	    : fiber_{std::allocator_arg, ctx::fixedsize_stack{small_stack}, [this, body](ctx::fiber &&sink) {
			     yielder yield{std::move(sink), *this};
			     body(yield);
			     return std::move(yield.sink_);
		     }}
	{
	}
	generator(const generator &) = delete;

	bool next(int64_t &value)
	{
		fiber_ = std::move(fiber_).resume();
		value = value_;
		return static_cast<bool>(fiber_);
	}

      private:
	int64_t value_ = 0;
	ctx::fiber fiber_;
};

int64_t drain(generator &g)
{
	int64_t sum = 0, value;

	while (g.next(value))
		sum += value;
	return sum;
}

int64_t iterator(int64_t n)
{
	lab_start();
	generator g{[n](generator::yielder &yield) {
		for (int64_t i = 0; i <= n; i++)
			yield(i);
	}};
	int64_t sum = drain(g);
	lab_stop();
	return sum;
}

void walk(generator::yielder &yield, const tree *t)
{
	if (!t)
		return;
	walk(yield, t->left);
	yield(t->value);
	walk(yield, t->right);
}

int64_t tree_generator(int64_t n)
{
	const tree *t = tree_make(n);

	lab_start();
	generator g{[t](generator::yielder &yield) { walk(yield, t); }};
	int64_t sum = drain(g);
	lab_stop();
	return sum;
}

void count_walk(generator::yielder &yield, const tree *t)
{
	if (!t)
		return;
	count_walk(yield, t->left);
	yield(1);
	count_walk(yield, t->right);
}

int64_t recursive(int64_t n)
{
	int64_t height = 1;

	while ((INT64_C(1) << height) - 1 < n)
		height++;
	const tree *t = tree_make(height);
	generator g{[t](generator::yielder &yield) { count_walk(yield, t); }};
	lab_start();
	int64_t sum = drain(g);
	lab_stop();
	return sum;
}

void leaves(generator::yielder &yield, int64_t node, int64_t depth)
{
	if (depth == 0) {
		yield(node);
		return;
	}
	leaves(yield, 2 * node, depth - 1);
	leaves(yield, 2 * node + 1, depth - 1);
}

int64_t c2(int64_t n)
{
	lab_start();
	generator g{[n](generator::yielder &yield) { leaves(yield, 0, n); }};
	int64_t sum = drain(g);
	lab_stop();
	return sum;
}

/* ---- C1, C3 ------------------------------------------------------------------------------------------------------ */

struct summer {
	int64_t n, in = 0, out = 0, sum = 0;

	ctx::fiber start()
	{
		return ctx::fiber{std::allocator_arg, ctx::fixedsize_stack{small_stack}, [this](ctx::fiber &&sink) {
					  int64_t local = 0;
					  for (int64_t i = 0; i < n; i++) {
						  out = i;
						  sink = std::move(sink).resume();
						  local += in;
					  }
					  sum = local;
					  return std::move(sink);
				  }};
	}
};

int64_t c1(int64_t n)
{
	summer a{n}, b{n};
	ctx::fiber fa = a.start(), fb = b.start();

	do {
		a.in = a.out;
		fa = std::move(fa).resume();
		b.in = b.out;
		fb = std::move(fb).resume();
	} while (fa && fb);
	return a.sum + b.sum;
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

int64_t c3(int64_t n)
{
	int64_t prime = 0;

	lab_start();
	{
		std::vector<std::unique_ptr<generator>> chain;
		chain.push_back(std::make_unique<generator>([](generator::yielder &yield) {
			for (int64_t i = 2;; i++)
				yield(i);
		}));
		for (int64_t found = 0; found < n; found++) {
			generator *source = chain.back().get();
			source->next(prime);
			chain.push_back(std::make_unique<generator>([source, prime](generator::yielder &yield) {
				for (int64_t i; source->next(i);)
					if (i % prime != 0)
						yield(i);
			}));
		}
		/* Destruction unwinds each fiber by an exception: a filter's user is destroyed before the filter's
		 * source. */
		while (!chain.empty())
			chain.pop_back();
	}
	lab_stop();
	return prime;
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

int64_t c10m(int64_t n, int64_t live)
{
	constexpr std::size_t touched = 32 * 1024;
	ctx::pooled_fixedsize_stack pool{small_stack};
	std::vector<ctx::fiber> fibers(static_cast<std::size_t>(live));
	int64_t sum = 0;
	auto start = [&] {
		ctx::fiber f{std::allocator_arg, pool, [&](ctx::fiber &&sink) {
				     char buffer[touched];
				     char *bytes = buffer;
				     memset(bytes, 1, touched);
				     LAB_KEEP(bytes);
				     sink = std::move(sink).resume();
				     LAB_KEEP(bytes);
				     sum += bytes[0] + bytes[touched - 1];
				     return std::move(sink);
			     }};
		return std::move(f).resume();
	};

	lab_start();
	for (int64_t i = 0; i < n; i++) {
		ctx::fiber &slot = fibers[static_cast<std::size_t>(i % live)];
		if (slot)
			slot = std::move(slot).resume();
		slot = start();
	}
	for (ctx::fiber &f : fibers)
		if (f)
			f = std::move(f).resume();
	lab_stop();
	return sum / 2;
}

int memory(int64_t n)
{
	std::vector<ctx::fiber> fibers(static_cast<std::size_t>(n));
	int64_t started = 0;
	uint64_t resident = lab_resident(), tables = lab_page_tables();

	lab_start();
	for (ctx::fiber &f : fibers) {
		f = ctx::fiber{std::allocator_arg, ctx::fixedsize_stack{small_stack}, [&](ctx::fiber &&sink) {
				       started++;
				       sink = std::move(sink).resume();
				       return std::move(sink);
			       }};
		f = std::move(f).resume();
	}
	lab_stop();
	lab_report_memory(static_cast<uint64_t>(n), resident, tables, started);
	fflush(stdout);
	_Exit(0); /* unwinding all fibers is not the experiment */
}

const peer_case cases[] = {
    {"resume_yield", resume_yield},
    {"fcontext", fcontext_resume_yield},
    {"yield_deep", yield_deep},
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
