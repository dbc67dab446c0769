// SPDX-License-Identifier: MIT OR Apache-2.0
//
// quotes.cpp: several shops are asked for a price at the same time; a shop that fails reports an error, and a shop that
// is too slow is skipped. Then orders arrive over a channel, and a promise delivers their sum. See
// docs/reference/tasks.md, "In C++".
#include <weft/sched.hpp>

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

struct shop {
	std::string name;
	int price; // 0: sold out; negative: the shop never answers
};

struct sold_out : std::runtime_error {
	using std::runtime_error::runtime_error;
};

// doc: begin ask
static std::unique_ptr<int> ask(const shop &s)
{
	weft::this_task::yield();
	if (s.price < 0)
		weft::this_task::sleep_for(1h);
	if (!s.price)
		throw sold_out("sold out");
	return std::make_unique<int>(s.price);
}

static void compare(const std::vector<shop> &shops)
{
	weft::scope scope(200ms);
	std::vector<weft::task<std::unique_ptr<int>>> answers;

	for (const shop &s : shops)
		answers.push_back(scope.spawn([&s] { return ask(s); }));
	for (size_t i = 0; i < shops.size(); i++)
		try {
			std::cout << shops[i].name << ": ";
			std::cout << *answers[i].join() << '\n';
		} catch (const sold_out &e) {
			std::cout << e.what() << '\n';
		} catch (const std::system_error &e) {
			if (e.code().value() != ETIMEDOUT)
				throw;
			std::cout << "no answer in time\n";
		}
}
// doc: end

// doc: begin select
static int sum_of(weft::channel<int> &orders)
{
	bool open = true;
	int sum = 0;

	while (open)
		weft::select(weft::on_receive(orders,
					      [&](std::optional<int> order) {
						      if (order)
							      sum += *order;
						      else
							      open = false;
					      }),
			     weft::after(1min, [&] { open = false; }));
	return sum;
}

static void order()
{
	weft::channel<int> orders;
	weft::promise<int> promise;
	weft::future<int> sum = promise.get_future();
	weft::scope scope;

	scope.start([&orders, p = std::move(promise)]() mutable { p.set_value(sum_of(orders)); });
	for (int i = 1; i <= 10; i++)
		orders.send(i);
	orders.close();
	std::cout << "ordered: " << sum.get() << '\n';
	scope.wait();
}
// doc: end

int main()
{
	try {
		weft::run([] {
			compare({{"north", 12}, {"east", 0}, {"south", 9}, {"west", -1}});
			order();
		});
	} catch (const std::exception &e) {
		std::cerr << "quotes: " << e.what() << '\n';
		return 1;
	}
	return 0;
}
