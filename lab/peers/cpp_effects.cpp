/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cpp_effects: the lab's programs on cpp-effects, for ./weft lab --peer cpp-effects=DIR. case=NAME selects a program,
 * and form=NAME its handlers:
 *
 *   form=static    plain clauses; the performer names the handler's class
 *   form=plain     plain clauses; the library searches for a handler of the command's type
 *   form=general   clauses that take a resumption and resume it last (no_manage)
 */
#include "../impl/tree.h"
#include "cases.h"

#include <cpp-effects/clause-modifiers.h>
#include <cpp-effects/cpp-effects.h>
#include <optional>
#include <utility>

namespace eff = cpp_effects;

namespace
{

struct get : eff::command<int64_t> {
};

struct put : eff::command<> {
	int64_t value;
};

struct emit : eff::command<> {
	int64_t value;
};

struct unrelated : eff::command<> {
};

class by_plain final : public eff::flat_handler<void, eff::plain<get>, eff::plain<put>>
{
	int64_t &state;

	int64_t handle_command(get) final
	{
		return state;
	}

	void handle_command(put p) final
	{
		state = p.value;
	}

      public:
	explicit by_plain(int64_t &s) : state(s)
	{
	}
};

class by_general final : public eff::flat_handler<void, eff::no_manage<get>, eff::no_manage<put>>
{
	int64_t &state;

	void handle_command(get, eff::resumption<void(int64_t)> r) final
	{
		std::move(r).tail_resume(state);
	}

	void handle_command(put p, eff::resumption<void()> r) final
	{
		state = p.value;
		std::move(r).tail_resume();
	}

      public:
	explicit by_general(int64_t &s) : state(s)
	{
	}
};

class by_other final : public eff::flat_handler<void, eff::plain<unrelated>>
{
	void handle_command(unrelated) final
	{
	}
};

/* ---- get a state of 1, n times ------------------------------------------------------------------- */

template <typename H, typename Get> int64_t ask(int64_t n, Get &&ask_once)
{
	int64_t one = 1, sum = 0;

	eff::handle<H>(
	    [&] {
		    int64_t local = 0;
		    for (int64_t i = 0; i < n; i++)
			    local += ask_once();
		    sum = local;
	    },
	    one);
	return sum;
}

int64_t perform(const char *form, int64_t n)
{
	if (!strcmp(form, "static"))
		return ask<by_plain>(n, [] { return eff::static_invoke_command<by_plain>(get{}); });
	if (!strcmp(form, "plain"))
		return ask<by_plain>(n, [] { return eff::invoke_command(get{}); });
	return ask<by_general>(n, [] { return eff::invoke_command(get{}); });
}

/* ---- state under d handlers of another effect ------------------------------------------------------------ */

void descend(int64_t depth)
{
	if (depth > 0) {
		eff::handle<by_other>([=] { descend(depth - 1); });
		return;
	}
	lab_start();
	for (int64_t s; (s = eff::invoke_command(get{})) > 0;)
		eff::invoke_command(put{{}, s - 1});
	lab_stop();
}

int64_t state(const char *form, int64_t n, int64_t depth)
{
	if (strcmp(form, "general"))
		eff::handle<by_plain>([=] { descend(depth); }, n);
	else
		eff::handle<by_general>([=] { descend(depth); }, n);
	return n;
}

/* ---- iterator and generator -------------------------------------------------------------------------------- */

class summing final : public eff::flat_handler<void, eff::plain<emit>>
{
	int64_t &sum;

	void handle_command(emit e) final
	{
		sum += e.value;
	}

      public:
	explicit summing(int64_t &s) : sum(s)
	{
	}
};

int64_t iterator(int64_t n)
{
	int64_t sum = 0;

	lab_start();
	eff::handle<summing>(
	    [=] {
		    for (int64_t i = 0; i <= n; i++)
			    eff::invoke_command(emit{{}, i});
	    },
	    sum);
	lab_stop();
	return sum;
}

struct generated {
	int64_t value;
	std::optional<eff::resumption<void()>> rest;
};

class keeping final : public eff::flat_handler<void, emit>
{
	generated &next;

	void handle_command(emit e, eff::resumption<void()> r) final
	{
		next.value = e.value;
		next.rest.emplace(std::move(r));
	}

      public:
	explicit keeping(generated &g) : next(g)
	{
	}
};

void walk(const struct tree *tree)
{
	if (!tree)
		return;
	walk(tree->left);
	eff::invoke_command(emit{{}, tree->value});
	walk(tree->right);
}

int64_t generator(int64_t n)
{
	const struct tree *tree = tree_make(n);
	generated next{};
	int64_t sum = 0;

	lab_start();
	eff::handle<keeping>([=] { walk(tree); }, next);
	while (next.rest) {
		eff::resumption<void()> rest = std::move(*next.rest);
		sum += next.value;
		next.rest.reset();
		std::move(rest).resume();
	}
	lab_stop();
	return sum;
}

} // namespace

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), result;
	const char *form = lab_text(argc, argv, "form"), *name = lab_text(argc, argv, "case");

	if (!name || !form)
		lab_die("case=NAME form=static, plain or general");
	if (!strcmp(name, "state"))
		return lab_report(static_cast<uint64_t>(2 * n + 1), state(form, n, lab_number(argc, argv, "d", 0)));
	if (!strcmp(name, "perform")) {
		lab_start();
		result = perform(form, n);
		lab_stop();
		return lab_report(static_cast<uint64_t>(n), result);
	}
	return lab_report(peer_operations(name, n), strcmp(name, "generator") ? iterator(n) : generator(n));
}
