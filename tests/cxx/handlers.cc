// SPDX-License-Identifier: MIT OR Apache-2.0
// weft::handle: clauses of every kind as lambdas, answers, resumptions that are kept, dropped, moved, used twice, taken
// to other threads; exceptions out of clauses and bodies, into bodies; what is left behind: nothing.
#include <csignal>
#include <cerrno>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "check.h"
#include "counted.h"

typedef std::unique_ptr<int> box;

WEFT_FAMILY(state, (int64_t, get), (void, put, int64_t, value));
WEFT_EXCEPTION(give_up, std::string, why);
WEFT_EFFECT(box, exchange, box, mine);
WEFT_EFFECT(std::string, ask, const std::string &, what);
WEFT_EFFECT(std::string, demand, std::string, what);
WEFT_EFFECT(void, rest);
WEFT_EFFECT(bool, flip);
WEFT_EFFECT(int, choose, int, many);

namespace
{

size_t live()
{
	size_t sum = 0;

	for (int policy = WEFT_FIXED; policy < WEFT_POLICY_COUNT; policy++) {
		weft_stack_stats_t stats;

		weft_stack_stats(static_cast<weft_policy_t>(policy), &stats);
		sum += stats.live;
	}
	return sum;
}

void tails()
{
	int64_t s = 100;
	int steps = weft::handle(
	    [] {
		    int n = 0;

		    for (; get() > 0; n++)
			    put(get() - 1);
		    return n;
	    },
	    weft_on(get).tail([&] { return s; }), weft_on(put).tail([&](int64_t value) { s = value; }));

	CHECK(steps == 100 && s == 0);

	// Each effect of a family has a clause. Further clauses do not matter.
	CHECK(weft::handle([] { return get() + 1; }, weft_all_of(state), weft_on(get).tail([] { return 4; }),
			   weft_on(put).tail([](int64_t) {}), weft_on(put).general([](auto k, int64_t) {
				   k.drop();
				   return int64_t(0);
			   }),
			   weft_on_exception(give_up).abort([](std::string) { return 0; })) == 5);

	// A clause performs for the next enclosing handler, in a lambda that owns a value.
	int64_t sum =
	    weft::handle([] { return weft::handle([] { return get(); }, weft_on(get).tail([] { return get() + 1; })); },
			 weft_on(get).tail([b = std::make_unique<int>(41)] { return *b; }));
	CHECK(sum == 42);
	passed("tail clauses, inside of each other");
}

void thens()
{
	int asked = 0;
	auto digits = [&asked](int digit) {
		return weft::then(++asked, [digit](std::string answer) { return answer + std::to_string(digit); });
	};
	auto chosen = [](int a, int b, int c) { return std::to_string(choose(a) + choose(b) + choose(c)); };

	CHECK(weft::handle([&] { return chosen(7, 8, 9); }, weft_on(choose).tail(digits)) == "6987");

	// A run inside has its own deferred functions; an abort clause's answer also goes through them.
	std::string nested = weft::handle(
	    [&] {
		    choose(1);
		    std::string inner = weft::handle([&] { return chosen(2, 3, 4); }, weft_on(choose).tail(digits));
		    choose(5);
		    give_up(inner);
		    return inner;
	    },
	    weft_on(choose).tail(digits), weft_on_exception(give_up).abort([](std::string why) { return why; }));
	CHECK(nested == "1843251"); // 5 + 6 + 7

	// No value for the answer, and no result of the operation.
	int rests = 0;
	weft::handle([] { rest(), rest(); },
		     weft_on(rest).tail([&rests] { return weft::then([&rests] { rests += 10; }); }));
	CHECK(rests == 20);

	// A value that owns memory passes from function to function.
	box b = weft::handle([] { return exchange(std::make_unique<int>(1)); }, weft_on(exchange).tail([](box mine) {
		return weft::then(std::move(mine), [](box answer) {
			++*answer;
			return answer;
		});
	}));
	CHECK(*b == 2);
	passed("functions that tail clauses leave for the answer");
}

void thens_and_exceptions()
{
	auto throws = [](int n) { return weft::then(n, [n](int) -> int { throw n; }); };
	auto passes = [](bool fails) {
		return [fails] {
			int sum = choose(1) + choose(2) + choose(3);

			return fails ? throw std::runtime_error("body") : sum;
		};
	};
	int after = 0;
	auto counts = [&after](int n) { return weft::then(n, [&after](int answer) { return after++, answer; }); };

	for (int i = 0; i < 1000; i++) {
		try {
			weft::handle(passes(false), weft_on(choose).tail(throws));
			CHECK(false);
		} catch (int n) {
			CHECK(n == 3);
		}
		// The deferred functions of the run that an exception left are not called by the run in whose clause it
		// was.
		int sum = weft::handle([] { return choose(1) + (rest(), choose(5)); }, weft_on(choose).tail(counts),
				       weft_on(rest).general([&](weft::resumption<void, int> k) {
					       try {
						       weft::handle(passes(true), weft_on(choose).tail(throws));
						       CHECK(false);
					       } catch (const std::runtime_error &) {
					       }
					       return k.resume();
				       }));
		CHECK(sum == 6);
	}
	CHECK(after == 2000);
	passed("exceptions pass what tail clauses left");
}

void answers()
{
	CHECK(weft::handle([] { return 5; }) == 5);
	CHECK(weft::handle([] { return 5; }, weft::on_return([](int n) { return std::to_string(n); })) == "5");
	CHECK(weft::handle([] {}, weft::on_return([] { return 6; })) == 6);
	weft::handle([] {});
	CHECK(*weft::handle([] { return std::make_unique<int>(7); }) == 7);
	CHECK(weft::handle<double>([] { return 1; }) == 1.0);

	std::string why = weft::handle([]() -> std::string { give_up("a reason that needs some memory of its own"); },
				       weft_on_exception(give_up).abort([](std::string text) { return text; }));
	CHECK(why == "a reason that needs some memory of its own");
	int length = weft::handle<int>([]() -> std::string { return demand("me, with a name of some length"); },
				       weft::on_return([](const std::string &s) { return static_cast<int>(s.size()); }),
				       weft_on(demand).abort(
					   [](const std::string &what) { return what.size() == 30 ? -1 : -2; }));
	CHECK(length == -1);
	passed("answers: the body's, the return clause's, an abort clause's");
}

void generals()
{
	box b = weft::handle([] { return exchange(std::make_unique<int>(1)); },
			     weft_on(exchange).general([](weft::resumption<box, box> k, box mine) {
				     ++*mine;
				     CHECK(k);
				     box answer = k.resume(std::move(mine));
				     CHECK(!k);
				     ++*answer;
				     return answer;
			     }));
	CHECK(*b == 3);

	int loops = weft::handle(
	    [] {
		    int n = 0;

		    for (; n < 100000; n++)
			    rest();
		    return n;
	    },
	    weft_on(rest).general([](auto k) { return k.tail_resume(); }));
	CHECK(loops == 100000);

	int sometimes = weft::handle(
	    [] {
		    int n = 0;

		    for (; n < 10; n++)
			    put(n);
		    return n;
	    },
	    weft_on(put).general([](weft::resumption<void, int> k, int64_t value) -> weft::decision<int> {
		    if (value == 5)
			    return 55;
		    return k.tail_resume();
	    }));
	CHECK(sometimes == 55);

	std::string text;
	weft::handle(
	    [&text] {
		    text += ask("a");
		    text += ask("b");
	    },
	    weft_on(ask).general([](auto k, const std::string &what) -> weft::decision<void> {
		    if (what == "b")
			    return {};
		    return k.tail_resume("answer to " + what);
	    }));
	CHECK(text == "answer to a");
	passed("general clauses: resume, resume last, answer, or one of these");
}

// In place as a rule, and by the general clause of the same operation when it takes longer.
void both_kinds()
{
	int asked = 0;
	std::string text =
	    weft::handle([] { return ask("short") + ask("long"); }, weft_on(ask).tail([](const std::string &what) {
		    return what == "short" ? std::string("s") : weft_escalate(ask, what);
	    }),
			 weft_on(ask).general([&asked](auto k, const std::string &) {
				 asked++;
				 return k.tail_resume("l");
			 }));

	CHECK(text == "sl" && asked == 1);
	passed("a tail clause that hands over to a general one");
}

// The abort clause runs after the frames that held the argument are destroyed.
void hands_over_to_abort()
{
	std::string text =
	    weft::handle<std::string>([] { return demand(std::string(200, 'a')); },
				      weft_on(demand).tail([](const std::string &what) {
					      return weft_escalate(demand, what + std::string(100, 'b'));
				      }),
				      weft_on(demand).abort([](const std::string &what) { return what + "c"; }));

	CHECK(text == std::string(200, 'a') + std::string(100, 'b') + "c");
	passed("a tail clause that hands over to an abort clause");
}

// The body catches the exception that resume_throwing throws, or the caller catches it.
void thrown_into(bool copied)
{
	const std::string text = "a text that needs some memory of its own";
	auto waits = [] {
		Counted outside;

		try {
			Counted inside;

			return static_cast<int>(get());
		} catch (const std::runtime_error &e) {
			return static_cast<int>(std::string(e.what()).size());
		}
	};

	for (int i = 0; i < 100; i++) {
		int n = weft::handle(waits, weft_on(get).general([&](auto k) {
			return 1000 + k.resume_throwing(std::runtime_error(text));
		}));
		CHECK(n == 1040 && alive == 0);
		// Not caught there: it leaves resume_throwing and propagates from there.
		try {
			weft::handle(waits, weft_on(get).general([&](auto k) -> int {
				Counted in_clause;

				try {
					return k.resume_throwing(std::make_exception_ptr(text));
				} catch (const std::string &thrown) {
					CHECK(thrown == text && alive == 1 && !k);
					throw;
				}
			}));
			CHECK(false);
		} catch (const std::string &thrown) {
			CHECK(thrown == text);
		}
		CHECK(alive == 0 && std::uncaught_exceptions() == 0 && !std::current_exception());
		// Through a coroutine inside the body, which suspends with it.
		n = weft::handle([&] { return weft::handle(waits, weft_on(rest).tail([] {})); },
				 weft_on(get).general(
				     [&](auto k) { return k.resume_throwing(std::runtime_error(text)); }));
		CHECK(n == 40 && alive == 0);
		// An exception effect, whose argument has a destructor.
		n = weft::handle(waits, weft_on(get).general([&](auto k) { return k.resume_throwing(give_up, text); }),
				 weft_on_exception(give_up).abort(
				     [](const std::string &why) { return static_cast<int>(why.size()); }));
		CHECK(n == 40 && alive == 0);
		// Kept for later.
		weft::resumption<int64_t, int> kept;
		CHECK(weft::handle(waits, weft_on(get).general([&](auto k) {
			      kept = std::move(k);
			      return 0;
		      })) == 0);
		CHECK(alive == 2 && kept.resume_throwing(std::runtime_error(text)) == 40 && !kept && alive == 0);
	}
	if (!copied) { // A result that is an object.
		box b = weft::handle(
		    [] {
			    try {
				    return exchange(std::make_unique<int>(1));
			    } catch (int n) {
				    return std::make_unique<int>(n);
			    }
		    },
		    weft_on(exchange).general([](auto k, box mine) { return k.resume_throwing(*mine + 1); }));
		CHECK(*b == 2);
	}
	passed("exceptions that are thrown where the body waits");
}

void many_throws()
{
	int n = weft::handle(
	    [] {
		    int sum = 0;

		    for (int i = 0; i < 3; i++)
			    try {
				    sum = sum * 10 + choose(1);
			    } catch (int thrown) {
				    sum = sum * 10 + thrown;
			    }
		    return sum;
	    },
	    weft_on(choose).multi([](auto k, int) { return k.resume(1) + k.resume_throwing(2); }));
	CHECK(n == 8 * 166 + 4);
	n = weft::handle([] { return choose(1); }, weft_on(choose).multi([](auto k, int) {
		return k.resume_throwing(give_up, "one") * 10 + k.resume_throwing(give_up, "three");
	}),
			 weft_on_exception(give_up).abort(
			     [](const std::string &why) { return static_cast<int>(why.size()); }));
	CHECK(n == 35);
	passed("exceptions that are thrown where copies of a body wait");
}

void kept()
{
	std::deque<weft::resumption<void, void>> ready;
	std::string trace;

	for (char name : {'a', 'b', 'c'})
		weft::handle(
		    [&trace, name] {
			    for (int i = 0; i < 3; i++) {
				    trace += name;
				    rest();
			    }
		    },
		    weft_on(rest).general([&ready](auto k) { ready.push_back(std::move(k)); }),
		    weft::on_return([&trace, counted = Counted()] { trace += '.'; }));
	CHECK(alive == 3);
	while (!ready.empty()) {
		weft::resumption<void, void> k = std::move(ready.front());

		ready.pop_front();
		k.resume();
	}
	CHECK(trace == "abcabcabc...");
	CHECK(alive == 0);

	// Dropped by destruction and by assignment.
	weft::resumption<void, int> one, other;
	for (auto *to : {&one, &other})
		CHECK(weft::handle(
			  [counted = Counted()] {
				  rest();
				  return 1;
			  },
			  weft_on(rest).general([to](weft::resumption<void, int> k) {
				  *to = std::move(k);
				  CHECK(!k && *to);
				  return 2;
			  })) == 2);
	CHECK(alive == 2);
	other = std::move(one);
	CHECK(alive == 1 && other.resume() == 1 && !other && alive == 0);
	passed("resumptions outlive their handlers, which outlive them; what is let go ends");
}

void dropped()
{
	int answer = weft::handle(
	    [] {
		    Counted counted;

		    return static_cast<int>(get());
	    },
	    weft_on(get).general([](auto k) {
		    CHECK(alive == 1);
		    k.drop();
		    CHECK(!k && alive == 0);
		    return 9;
	    }));

	CHECK(answer == 9);

	// Left by an abort clause, two handlers and a coroutine further out.
	std::string why = weft::handle(
	    []() -> std::string {
		    Counted counted;
		    weft::coroutine inner([] {
			    Counted another;

			    weft::handle(
				[] {
					std::vector<Counted> more(3);

					give_up("because " + std::to_string(alive));
				},
				weft_on(get).tail([] { return 1; }));
		    });

		    inner.resume();
		    return "not reached";
	    },
	    weft_on_exception(give_up).abort([](const std::string &text) {
		    CHECK(alive == 0);
		    return text;
	    }));
	CHECK(why == "because 5" && alive == 0);

	// Dropped without a decision: an answer without the rest of the body.
	CHECK(weft::handle(
		  [] {
			  Counted counted;

			  return static_cast<int>(get());
		  },
		  weft_on(get).general([](auto) { return 8; })) == 8 &&
	      alive == 0);
	passed("what is dropped, left by an abort, or not resumed, is unwound");
}

void on_other_threads()
{
	weft::resumption<void, int> k;
	int answer = 0;

	weft::handle(
	    [] {
		    for (int i = 0; i < 3; i++)
			    rest();
		    return 3;
	    },
	    weft_on(rest).general([&k](auto now) {
		    k = std::move(now);
		    return 0;
	    }));
	while (k)
		std::thread([&] {
			weft::resumption<void, int> mine = std::move(k);

			answer = mine.resume();
		}).join();
	CHECK(answer == 3);
	passed("resumed by other threads");
}

void many_times()
{
	int sum = weft::handle([] { return flip() * 4 + flip() * 2 + flip(); },
			       weft_on(flip).multi([](auto k) { return k.resume(true) + k.resume(false); }));
	std::vector<int> all;

	CHECK(sum == 28);
	weft::handle(
	    [] {
		    int a = choose(3), b = choose(3);

		    return a == b ? -1 : a * 10 + b;
	    },
	    weft::on_return([&all](int n) { all.push_back(n); }),
	    weft_on(choose).multi([](weft::multi_resumption<int, void> k, int many) {
		    for (int i = 0; i < many; i++)
			    k.resume(i);
	    }));
	CHECK(all == (std::vector<int>{-1, 1, 2, 10, -1, 12, 20, 21, -1}));

	weft::multi_resumption<bool, int> later;
	CHECK(weft::handle([] { return flip() ? 1 : 2; }, weft_on(flip).multi([&later](auto k) {
		      later = std::move(k);
		      return 0;
	      })) == 0);
	CHECK(later.resume(true) == 1 && later.resume(false) == 2 && later.resume(true) == 1);
	later.drop();
	CHECK(!later);
	passed("multi clauses: in the clause, and kept");
}

void exceptions()
{
	std::string trace;

	// Out of the body, through the handler.
	try {
		weft::handle([]() -> int { throw std::runtime_error("body"); }, weft_on(get).tail([] { return 1; }));
		CHECK(false);
	} catch (const std::runtime_error &error) {
		trace += error.what();
	}
	// Out of a tail clause, into the body.
	CHECK(weft::handle(
		  [] {
			  try {
				  return get();
			  } catch (const std::runtime_error &) {
				  return int64_t{-1};
			  }
		  },
		  weft_on(get).tail([]() -> int64_t { throw std::runtime_error("tail"); })) == -1);
	// Out of a general clause, past a body that it has not decided about, and past a body that it has resumed.
	for (bool resumed : {false, true})
		try {
			weft::handle([counted = Counted()] { return static_cast<int>(get()); },
				     weft_on(get).general([resumed](auto k) -> int {
					     if (resumed)
						     k.resume(1);
					     throw std::runtime_error(" general");
				     }));
			CHECK(false);
		} catch (const std::runtime_error &error) {
			trace += error.what();
		}
	// Out of an abort and a return clause.
	try {
		weft::handle([]() -> int { give_up(" abort"); },
			     weft_on_exception(give_up).abort([](std::string why) -> int { throw why; }));
		CHECK(false);
	} catch (const std::string &why) {
		trace += why;
	}
	try {
		weft::handle([] { return 1; }, weft::on_return([](int) -> int { throw std::string(" return"); }));
		CHECK(false);
	} catch (const std::string &why) {
		trace += why;
	}
	// Out of the rest of the body, through a resume: caught in the clause, and not.
	CHECK(weft::handle(
		  []() -> int {
			  rest();
			  throw 3;
		  },
		  weft_on(rest).general([](auto k) {
			  try {
				  return k.resume();
			  } catch (int error) {
				  return error;
			  }
		  })) == 3);
	weft::resumption<void, int> k;
	weft::handle(
	    []() -> int {
		    rest();
		    throw 4;
	    },
	    weft_on(rest).general([&k](auto now) {
		    k = std::move(now);
		    return 0;
	    }));
	try {
		k.resume();
		CHECK(false);
	} catch (int error) {
		CHECK(error == 4 && !k);
	}
	CHECK(trace == "body general general abort return" && alive == 0);
	passed("exceptions out of bodies and clauses, into bodies, through resumptions");
}

void no_memory()
{
	weft_attr_t bad{};

	bad.policy = WEFT_POLICY_COUNT;
	CHECK(weft::handle_with(
		  bad, [] { return 1; }, weft::on_failure([](int error) { return -error; })) == -EINVAL);
	try {
		weft::handle_with(bad, [] { return 1; });
		CHECK(false);
	} catch (const std::system_error &error) {
		CHECK(error.code().value() == EINVAL);
	}
	passed("where there is no coroutine: the failure clause, or an exception");
}

void attributes()
{
	weft_attr_t attr{};

	attr.name = "named";
	CHECK(weft::handle_with(attr, [] { return std::string(weft_name(weft_current())); }) == "named");

	// Clauses are values.
	auto constant = weft_on(get).tail([] { return 4; });
	CHECK(weft::handle([] { return get(); }, constant) == 4 &&
	      weft::handle([] { return get() + 1; }, constant) == 5);
	passed("attributes; clauses used twice");
}

template <typename Program> void reports(const char *what, const char *text, Program program)
{
	std::string errors;

	CHECK(apart(program, errors) == 1000 + SIGABRT);
	CHECK(errors.find(text) != std::string::npos);
	passed(what);
}

void misuse()
{
	reports("resumed twice: reported", "resumed, dropped or moved from", [] {
		weft::handle([] { return get(); }, weft_on(get).general([](auto k) {
			k.resume(1);
			return k.resume(2);
		}));
	});
	reports("resumed last, after it was moved: reported", "it is for the clause that got it", [] {
		weft::handle([] { rest(); }, weft_on(rest).general([](auto k) {
			auto moved = std::move(k);

			return moved.tail_resume();
		}));
	});
	reports("a handler is called by the type of its body",
#ifdef __clang__
		"handler \"weft::handle of (lambda at ",
#else
		"handler \"weft::handle of {anonymous}::misuse()::<lambda()>::<lambda()>\", effect \"weft_suspended\"",
#endif
		[] { weft::handle([] { weft::suspend(); }, weft_on(rest).tail([] {})); });
	reports("an object sent to a copied stack: reported", "is not trivially copyable", [] {
		weft_attr_t copied{};

		copied.policy = WEFT_COPY;
		weft::handle_with(
		    copied, [] { ask("you"); },
		    weft_on(ask).general([](auto k, const std::string &) { k.resume("me"); }));
	});
}

} // namespace

int main()
{
	bool copied = weft_default_policy() == WEFT_COPY;

	tails();
	thens();
	thens_and_exceptions();
	answers();
	if (!copied) { // their results are objects
		generals();
		both_kinds();
		hands_over_to_abort();
	}
	thrown_into(copied);
	kept();
	dropped();
	on_other_threads();
	if (!WEFT__SANITIZED) // sanitizers do not support copied stacks
		many_times(), many_throws();
	exceptions();
	no_memory();
	attributes();
	CHECK(live() == 0 && alive == 0);
	passed("nothing is left");
	if (!WEFT__SANITIZED)
		misuse();
	return 0;
}
