/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The standard library at large: streams, formats, regular expressions (which recurse), algorithms, containers. */
#include "engine.h"

#include <algorithm>
#include <chrono>
#include <complex>
#include <deque>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iterator>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

void formats(std::ostream &out)
{
	std::ostringstream text;

	for (double v : {0.0, -1.5, 3.14159265358979, 1e-10, 6.02e23, -1e300}) {
		text << v << ' ' << std::fixed << std::setprecision(3) << v << ' ' << std::scientific << v << ' '
		     << std::hexfloat << v << std::defaultfloat << std::setprecision(6) << '\n';
	}
	for (long v : {0L, 1L, -1L, 255L, 123456789L})
		text << std::setw(12) << std::setfill('*') << v << '|' << std::left << std::setw(12) << v << '|'
		     << std::internal << std::setw(12) << v << '|' << std::right << std::hex << std::showbase << v
		     << std::dec << ' ' << std::oct << v << std::dec << std::noshowbase << '\n';
	text << std::boolalpha << true << ' ' << std::quoted("a \"b\"") << ' ' << std::complex<double>(1, -2) << ' '
	     << static_cast<long double>(1) / 3 << '\n';
	out << text.str();
}

void parsing(std::ostream &out)
{
	std::istringstream text("12 0x1f 3.5e2 word true 99999999999999999999 x");
	int i = 0;
	unsigned h = 0;
	double d = 0;
	std::string word;
	bool flag = false;
	long long big = 0;

	text >> i >> std::hex >> h >> std::dec >> d >> word >> std::boolalpha >> flag;
	out << i << ' ' << h << ' ' << d << ' ' << word << ' ' << flag << ' ';
	text >> big;
	out << big << ' ' << text.fail() << '\n';
	text.clear();
	text.exceptions(std::ios::failbit);
	try {
		text >> i;
	} catch (const std::ios_base::failure &e) {
		out << "failure, fail " << text.fail() << '\n';
	}
}

void files(struct run *run, std::ostream &out)
{
	std::string name = std::string(run->directory) + "/text", line;
	std::ofstream file(name);
	size_t lines = 0, bytes = 0;

	for (int i = 0; i < 3000; i++)
		file << i << ' ' << std::sqrt(static_cast<double>(i)) << '\n';
	file.close();
	std::ifstream back(name);
	while (std::getline(back, line)) {
		lines++;
		bytes += line.size();
	}
	out << lines << ' ' << bytes << ' ' << std::ifstream("/no/such/file").is_open() << '\n';
	back.clear();
	back.seekg(0);
	double sum = std::accumulate(std::istream_iterator<double>(back), std::istream_iterator<double>(), 0.0);
	out << std::setprecision(10) << sum << std::setprecision(6) << '\n';
}

void expressions(struct run *run, std::ostream &out)
{
	const std::string text = "On 2024-03-01, anna@example.org paid 12.50; on 2024-04-15 bob.b@mail.net paid 7.";
	const std::regex date(R"((\d{4})-(\d\d)-(\d\d))"), mail(R"([\w.]+@(?:\w+\.)+\w+)", std::regex::icase);

	for (std::sregex_iterator i(text.begin(), text.end(), date), end; i != end; ++i) {
		run_pause(run);
		out << i->str(0) << ' ' << (*i)[3] << ' ' << i->position() << '\n';
	}
	out << std::regex_replace(text, mail, "<$&>") << '\n';
	/* The matcher calls itself for every character. */
	for (size_t n : {10u, 500u, 5000u}) {
		std::string subject(n, 'a');
		std::smatch match;

		out << n << ' ' << std::regex_match(subject, match, std::regex("(a|b)*")) << ' '
		    << std::regex_match(subject + "c", std::regex("(?:a|b)+")) << '\n';
	}
	for (const char *bad : {"(", "[", "*", "a{2,1}", "\\"}) {
		try {
			std::regex never(bad);

			out << bad << " is fine\n";
		} catch (const std::regex_error &e) {
			out << bad << ' ' << e.code() << '\n';
		}
	}
}

void algorithms(struct run *run, std::ostream &out)
{
	std::mt19937 engine(42);
	std::vector<std::pair<int, std::string>> items;
	std::function<bool(int, int)> by_digits = [&](int a, int b) {
		if (a % 97 == 0)
			run_pause(run);
		return a % 100 < b % 100 || (a % 100 == b % 100 && a < b);
	};

	for (int i = 0; i < 2000; i++)
		items.emplace_back(static_cast<int>(engine() % 10000), std::to_string(i));
	std::sort(items.begin(), items.end(),
		  [&](const auto &a, const auto &b) { return by_digits(a.first, b.first); });
	std::stable_sort(items.begin(), items.end(),
			 [](const auto &a, const auto &b) { return a.second.size() < b.second.size(); });
	std::partial_sort(items.begin(), items.begin() + 50, items.end());
	std::nth_element(items.begin() + 50, items.begin() + 700, items.end());
	out << items[0].first << ' ' << items[49].second << ' ' << items[700].first << '\n';
	std::map<std::string, std::vector<int>> groups;
	for (const auto &item : items)
		groups[item.second.substr(0, 1)].push_back(item.first);
	for (const auto &[key, values] : groups)
		out << key << ':' << values.size() << ':' << *std::max_element(values.begin(), values.end()) << ' ';
	std::string letters = "abcdefg";
	int permutations = 0;
	do
		permutations++;
	while (std::next_permutation(letters.begin(), letters.end()));
	std::unordered_map<int, std::list<int>> buckets;
	for (int i = 0; i < 5000; i++)
		buckets[i * i % 101].push_front(i);
	std::multiset<size_t> sizes;
	for (const auto &bucket : buckets)
		sizes.insert(bucket.second.size());
	std::deque<double> queue(100, 1.5);
	std::partial_sum(queue.begin(), queue.end(), queue.begin());
	std::normal_distribution<double> normal;
	double sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += normal(engine);
	out << permutations << ' ' << *sizes.begin() << ' ' << sizes.size() << ' ' << queue.back() << ' ' << std::fixed
	    << sum << std::defaultfloat << '\n';
}

void run_streams(struct run *run, std::ostream &out)
{
	formats(out);
	parsing(out);
	files(run, out);
	expressions(run, out);
	algorithms(run, out);
}

} // namespace

const part streams_part = {"streams", run_streams};
