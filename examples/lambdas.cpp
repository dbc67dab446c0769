// SPDX-License-Identifier: MIT OR Apache-2.0
//
// lambdas.cpp: handlers of C++. The same parser runs under handlers that read text and treat errors in different ways;
// tasks are scheduled by a clause that keeps resumptions; a search tries all ways.
#include <exception>
#include <weft/weft.hpp>

#include <deque>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

// doc: begin effects
WEFT_FAMILY(input, (char, peek), (void, advance));
WEFT_EXCEPTION(syntax_error, std::string, why);
WEFT_EFFECT(void, pause_here);
WEFT_EFFECT(int, choose, int, many);
// doc: end

// doc: begin parser
// expression = term {"+" term}; term = factor {"*" factor}; factor = number | "(" expression ")"
static long expression();

static long factor()
{
	long value = 0;

	if (peek() == '(') {
		advance();
		value = expression();
		if (peek() != ')')
			syntax_error("a ) is missing");
		advance();
		return value;
	}
	if (peek() < '0' || peek() > '9')
		syntax_error("a number is missing");
	for (; peek() >= '0' && peek() <= '9'; advance())
		value = value * 10 + (peek() - '0');
	return value;
}

static long term()
{
	long value = factor();

	for (; peek() == '*'; value *= factor())
		advance();
	return value;
}

static long expression()
{
	long value = term();

	for (; peek() == '+'; value += term())
		advance();
	return value;
}
// doc: end

// doc: begin evaluate
// Tail clauses are plain calls. The abort clause answers when the parser, however deep it was, has been unwound.
static std::string evaluate(const std::string &text)
{
	std::size_t at = 0;

	return weft::handle<std::string>([] { return expression(); }, weft_all_of(input),
					 weft_on(peek).tail([&] { return at < text.size() ? text[at] : '\0'; }),
					 weft_on(advance).tail([&] { at++; }),
					 weft_on_exception(syntax_error).abort([&](const std::string &why) {
						 return why + " at " + std::to_string(at);
					 }),
					 weft::on_return([](long value) { return std::to_string(value); }));
}
// doc: end

// doc: begin feed
// Gives the parser its text in pieces: when it needs more text, a general clause keeps its resumption.
class feeder
{
      public:
	feeder()
	{
		weft::handle([] { return expression(); },
			     weft_on(peek).general([this](auto k) { waiting_ = std::move(k); }),
			     weft_on(advance).tail([this] { next_.reset(); }),
			     weft::on_return([this](long value) { result_ = value; }));
	}
	void feed(char c)
	{
		next_ = c;
		while (next_ && waiting_) // it may look at the same byte more than once
			std::exchange(waiting_, {}).resume(c);
	}
	std::optional<long> result() const
	{
		return result_;
	}

      private:
	weft::resumption<char, void> waiting_;
	std::optional<char> next_;
	std::optional<long> result_;
};
// doc: end

// doc: begin scheduler
// Round robin. A task that pauses is a resumption in a queue.
class scheduler
{
      public:
	template <typename Task> void spawn(Task task)
	{
		weft::handle(std::move(task),
			     weft_on(pause_here).general([this](auto k) { ready_.push_back(std::move(k)); }));
	}
	void run()
	{
		while (!ready_.empty()) {
			weft::resumption<void, void> next = std::move(ready_.front());

			ready_.pop_front();
			next.resume();
		}
	}

      private:
	std::deque<weft::resumption<void, void>> ready_;
};
// doc: end

// doc: begin search
// All ways to pay an amount: the multi clause continues the same computation once for each coin.
static int ways_to_pay(int amount)
{
	static constexpr int coins[] = {50, 20, 10, 5};

	return weft::handle(
	    [amount] {
		    for (int left = amount, smallest = 0; left;) {
			    int i = smallest + choose(4 - smallest);

			    if (coins[i] > left)
				    return 0;
			    left -= coins[i];
			    smallest = i;
		    }
		    return 1;
	    },
	    weft_on(choose).multi([](auto k, int many) {
		    int sum = 0;

		    for (int i = 0; i < many; i++)
			    sum += k.resume(i);
		    return sum;
	    }));
}
// doc: end

int main()
try {
	for (const char *text : {"1+2*3", "(1+2)*3", "2*(3+4)*5", "2*(3+", "(1"})
		std::cout << text << " = " << evaluate(text) << '\n';

	feeder pieces;
	for (char c : std::string("(1+20)*2;"))
		pieces.feed(c);
	std::cout << "piece by piece: " << pieces.result().value_or(-1) << '\n';

	scheduler tasks;
	for (char name : {'a', 'b', 'c'})
		tasks.spawn([name] {
			for (int i = 0; i < 3; i++) {
				std::cout << name << i << ' ';
				pause_here();
			}
		});
	tasks.run();
	std::cout << "\nways to pay 100: " << ways_to_pay(100) << '\n';
} catch (const std::exception &e) {
	std::cerr << e.what() << '\n';
	return 1;
}
