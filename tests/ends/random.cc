// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Random trees of coroutines that own resources, ended at random: by returning, deletion, exits, exceptions, the end of
// the thread. The test lists the resources of each coroutine; each must be released once, innermost first, by its
// coroutine, before the code that ended the coroutine continues.
//   random [seed=N] [rounds=N] [copy | mmu | lookahead] [exit | exit-only] [canary=once|order]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <pthread.h>
#include <string>
#include <vector>
#include <weft/weft.h>

#include "frames.h"

WEFT_EFFECT(uint64_t, ask, uint64_t, what);
WEFT_EXCEPTION(fail, uint64_t, number, uint64_t, twice);

namespace
{

struct Coroutine {
	weft_coro_t *k = nullptr;
	Coroutine *resumer = nullptr; // while it runs
	bool answers = false;	      // does its resumer answer now?
	bool catches = false;	      // or catch an exception for it
	bool cxx = false;	      // may it have frames with destructors?
	std::vector<uint64_t> owned;
	uint64_t number = 0;
};

struct Thrown {
	Coroutine *target;
};

enum { RETURNED, LEFT, DELETED, THROWN, EXITED, WAYS };
uint64_t seed, state, given_back, names, ends[WAYS];
bool thread_exits, throws = true;
std::string canary;
int budget;
Coroutine root;
std::map<weft_coro_t *, Coroutine *> known;
std::vector<Coroutine *> parked, lost;
std::vector<weft_policy_t> policies = {WEFT_FIXED, WEFT_OVERCOMMIT, WEFT_COMMIT, WEFT_SEGMENTED, WEFT_HEAP};

[[noreturn]] void wrong(const char *what)
{
	std::fprintf(stderr, "not ok - seed=%llu: %s\n", static_cast<unsigned long long>(seed), what);
	std::abort();
}

uint64_t draw(uint64_t below)
{
	state += 0x9e3779b97f4a7c15;
	uint64_t z = state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % below;
}

Coroutine *current()
{
	weft_coro_t *k = weft_current();

	if (!k)
		return &root;
	auto found = known.find(k);
	if (found == known.end())
		wrong("an unknown coroutine runs");
	return found->second;
}

// No ended coroutine owns anything.
void check_ended()
{
	for (auto &entry : known)
		if (weft_state(entry.first) == WEFT_FINISHED && !entry.second->owned.empty())
			wrong("a coroutine ended and still owns something");
}

// Coroutines that were running in k, made there, and not released, have ended with it.
void check_lost()
{
	for (auto entry = known.begin(); entry != known.end();) {
		if (weft_id(entry->first) == entry->second->number) {
			entry++;
			continue;
		}
		if (!entry->second->owned.empty())
			wrong("a coroutine was lost and still owns something");
		lost.push_back(entry->second);
		entry = known.erase(entry);
	}
}

void remove(Coroutine *c)
{
	c->resumer = current();
	c->answers = c->catches = false;
	weft_delete(c->k);
	if (!c->owned.empty())
		wrong("a coroutine was deleted and still owns something");
	check_lost();
}

// ---- resources ------------------------------------------------------------------------------------------------------

void *short_lived(void *argument)
{
	char some[600];

	std::memset(some, 0xee, sizeof some);
	weft_suspend(some);
	return argument;
}

// Reuses the stacks of ended coroutines.
void churn()
{
	weft_coro_t *k = weft_create(short_lived, nullptr);

	weft_resume(k, nullptr, WEFT_HANDLE_NONE);
	weft_delete(k);
}

uint64_t expected_answer(Coroutine *c)
{
	for (; c->resumer; c = c->resumer)
		if (c->answers)
			return c->resumer->number;
	return 0;
}

// A resumer may stop answering after it has answered.
void check_answer(Coroutine *c)
{
	uint64_t answer = expected_answer(c);

	uint64_t name = names;

	if (answer && ask(name) != answer + name)
		wrong("a wrong answer");
}

uint64_t acquire()
{
	current()->owned.push_back(++names);
	return names;
}

void give_back(uint64_t name)
{
	Coroutine *c = current();

	if (c->owned.empty() || c->owned.back() != name)
		wrong("something is given back twice, in the wrong order, or by another coroutine");
	c->owned.pop_back();
	given_back++;
	if (canary == "order" && c->owned.size() > 2)
		std::swap(c->owned[0], c->owned[1]);
	switch (draw(6)) {
	case 0:
		check_answer(c);
		break;
	case 1:
		churn();
		break;
	}
}

void *acquire_c()
{
	return reinterpret_cast<void *>(acquire());
}

void give_back_c(void *name)
{
	give_back(reinterpret_cast<uintptr_t>(name));
}

struct Owner {
	uint64_t name = acquire();
	~Owner() noexcept(false)
	{
		give_back(name);
	}
};

// ---- bodies ---------------------------------------------------------------------------------------------------------

void run(void *depth);

void *start(void *argument)
{
	Coroutine *c = static_cast<Coroutine *>(argument);

	if (current() != c)
		wrong("not who it should be");
	run(nullptr);
	return c;
}

Coroutine *make(bool cxx)
{
	auto *c = new Coroutine;
	weft_attr_t attr{};

	c->cxx = cxx;
	attr.policy = policies[draw(policies.size())];
	attr.flags = (cxx ? WEFT_UNWIND : 0) | (draw(4) ? 0 : WEFT_SAVE_FPU) | (draw(4) ? 0 : WEFT_SAVE_EXCEPTIONS);
	c->k = weft_create_with(start, c, &attr);
	if (!c->k)
		wrong("no memory");
	c->number = weft_id(c->k);
	if (known.count(c->k))
		lost.push_back(known[c->k]);
	known[c->k] = c;
	return c;
}

// Its owner owns it like any other resource.
struct Holder {
	Coroutine *c;
	bool holds = true;
	~Holder() noexcept(false)
	{
		if (holds)
			remove(c);
	}
};

enum class After { again, done, lost };

After answer(Coroutine *c, weft_request_t r, bool may_park)
{
	if (weft_returned(r)) {
		check_ended();
		ends[RETURNED]++;
		return After::done;
	}
	if (weft_is(fail, r)) {
		check_ended();
		churn();
		if (weft_args(fail, r)->twice != 2 * weft_args(fail, r)->number)
			wrong("an exception's arguments were lost");
		ends[LEFT]++;
		return After::done;
	}
	if (may_park && policies[0] != WEFT_COPY && !draw(4)) {
		parked.push_back(c);
		return After::lost;
	}
	if (draw(3))
		return After::again;
	ends[DELETED]++;
	return After::done; // and is deleted while suspended
}

// Resumes the coroutine until it suspends or ends. A coroutine that only asks may be exiting to a point that catches
// here.
After once(Coroutine *c, Coroutine *me, bool may_park)
{
	weft_request_t r;

	c->resumer = me;
	c->answers = me->number && draw(2);
	do {
		r = c->answers ? weft_resume(c->k, nullptr, weft_handles(ask, fail))
			       : weft_resume(c->k, nullptr, WEFT_HANDLE_NONE);
		if (weft_is(ask, r))
			weft_reply(ask, r, me->number + weft_args(ask, r)->what);
	} while (weft_is(ask, r));
	return answer(c, r, may_park);
}

After once_catching(Coroutine *c, Coroutine *me, bool may_park)
{
	try {
		return once(c, me, may_park);
	} catch (Thrown &thrown) {
		if (thrown.target != c)
			throw;
	}
	check_ended();
	churn();
	ends[THROWN]++;
	return After::done;
}

// Returns false if the caller does not own the coroutine any more.
bool serve(Coroutine *c, Coroutine *me, bool may_park)
{
	After after;

	do {
		c->catches = draw(2);
		after = c->catches ? once_catching(c, me, may_park) : once(c, me, may_park);
	} while (after == After::again);
	return after == After::done;
}

void remove_c(void *c)
{
	remove(static_cast<Coroutine *>(c));
}

void serve_c(void *c)
{
	serve(static_cast<Coroutine *>(c), current(), false);
}

// `lost`: when this frame is lost, the coroutine ends with it.
void keep(Coroutine *c, Coroutine *me, bool lost)
{
	if (me->cxx && draw(2)) {
		Holder holder{c};

		if (!serve(c, me, true))
			holder.holds = false;
	} else if (lost && draw(2)) {
		if (serve(c, me, true))
			remove(c);
	} else {
		frame_holding(remove_c, c, serve_c, c);
	}
}

// Owns a coroutine that another frame left suspended.
void keep_parked(Coroutine *me)
{
	Coroutine *c;

	if (parked.empty())
		return;
	c = parked.back();
	parked.pop_back();
	if (draw(2))
		keep(c, me, false);
	else
		remove(c);
}

void throw_to_somebody(Coroutine *c)
{
	for (; c->resumer; c = c->resumer)
		if (c->catches && draw(2))
			throw Thrown{c};
}

void end_early(Coroutine *me)
{
	uint64_t end = draw(40);

	if (end < 15) {
		weft_suspend(nullptr);
	} else if (end < 20) {
		check_answer(me);
	} else if (end < 30) {
		if (expected_answer(me))
			fail(names, 2 * names);
	} else if (end < 38 && throws) {
		throw_to_somebody(me);
	} else if (end >= 38 && thread_exits) {
		ends[EXITED]++;
		pthread_exit(nullptr);
	}
}

void run(void *)
{
	Coroutine *me = current();

	for (uint64_t i = draw(3) + 1; i-- && --budget > 0;) {
		switch (draw(me->cxx ? 9 : 7)) {
		case 0:
			frame_plain(run, nullptr);
			break;
		case 1:
		case 2:
			frame_deferring(static_cast<int>(draw(FRAME_SHAPES)), acquire_c, give_back_c, run, nullptr);
			break;
		case 3:
		case 4:
			keep(make(draw(2)), me, true);
			break;
		case 5:
			keep_parked(me);
			break;
		case 6:
			if (me->number)
				end_early(me);
			break;
		default:
			Owner first, second;

			frame_plain(run, nullptr);
		}
	}
}

// ---- the whole ------------------------------------------------------------------------------------------------------

void *program(void *)
{
	root = Coroutine();
	root.cxx = true;
	state = seed;
	budget = 120;
	if (canary == "once" && names > 1000)
		names++;
	run(nullptr);
	return nullptr;
}

void check_round()
{
	root = Coroutine();
	root.cxx = true;
	while (!parked.empty()) {
		Coroutine *c = parked.back();

		parked.pop_back();
		remove(c);
	}
	check_ended();
	// An exception leaves finished coroutines behind that no destructor releases; an exit does not.
	if (throws)
		while (!known.empty()) {
			if (weft_state(known.begin()->first) != WEFT_FINISHED)
				wrong("a coroutine was forgotten");
			remove(known.begin()->second);
		}
	for (auto &entry : lost)
		delete entry;
	lost.clear();
	if (!known.empty())
		wrong("a coroutine is nobody's");
	if (names != given_back)
		wrong("not everything was given back");
}

} // namespace

int main(int argc, char **argv)
{
	uint64_t first = 1, rounds = 1000;

	for (int i = 1; i < argc; i++) {
		std::string word = argv[i];

		if (word.rfind("seed=", 0) == 0)
			first = std::stoull(word.substr(5));
		else if (word.rfind("rounds=", 0) == 0)
			rounds = std::stoull(word.substr(7));
		else if (word.rfind("canary=", 0) == 0)
			canary = word.substr(7);
		else if (word == "exit")
			thread_exits = true;
		else if (word == "exit-only")
			throws = false;
		else if (word == "copy")
			policies = {WEFT_COPY};
		else if (word == "mmu") // for code compiled for it
			policies[3] = WEFT_MMU, policies.pop_back();
		else if (word == "lookahead")
			policies[3] = WEFT_LOOKAHEAD;
		else
			return std::fprintf(stderr, "unknown word %s\n", argv[i]), 2;
	}
	// The sanitizers' runtimes support neither stacks that code uses only until it returns, nor faults in their own
	// code.
	if (WEFT__SANITIZED)
		policies.resize(WEFT__TSAN ? 2 : 3);
	while (weft_policy_unavailable(policies.back())) // of a different architecture
		policies.pop_back();
	for (seed = first; seed < first + rounds; seed++) {
		pthread_t thread;

		if (pthread_create(&thread, nullptr, program, nullptr) || pthread_join(thread, nullptr))
			wrong("no thread");
		check_round();
	}
	std::printf("ok - %llu rounds, %llu things given back; %llu coroutines returned, %llu were left, %llu deleted, "
		    "%llu thrown through, %llu threads exited\n",
		    static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(names),
		    static_cast<unsigned long long>(ends[RETURNED]), static_cast<unsigned long long>(ends[LEFT]),
		    static_cast<unsigned long long>(ends[DELETED]), static_cast<unsigned long long>(ends[THROWN]),
		    static_cast<unsigned long long>(ends[EXITED]));
	for (int way = 0; way < WAYS; way++)
		if (!ends[way] && !(way == EXITED && !thread_exits) && !(way == THROWN && !throws))
			return std::printf("not ok - not every end was tried\n"), 1;
	return 0;
}
