// SPDX-License-Identifier: MIT OR Apache-2.0
//
// ranges.cpp: generators of C++. One generator walks a tree by plain recursion, one permutes, and one merges two
// generators; each is a range for a loop, or for std::ranges.
#include <exception>
#include <weft/weft.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// doc: begin tree
struct tree {
	std::string word;
	std::unique_ptr<tree> left, right;
};

static void walk(const tree *t, weft::yielder<const std::string &> yield)
{
	if (!t)
		return;
	walk(t->left.get(), yield);
	yield(t->word);
	walk(t->right.get(), yield);
}

static weft::generator<const std::string &> words(const tree &t)
{
	return weft::generator<const std::string &>([&t](auto yield) { walk(&t, yield); });
}
// doc: end

static void insert(std::unique_ptr<tree> &t, std::string_view word)
{
	if (!t)
		t = std::make_unique<tree>(tree{std::string(word), nullptr, nullptr});
	else
		insert(word < t->word ? t->left : t->right, word);
}

// doc: begin merge
// Merges the values of two sorted generators. The body of the new generator owns both, as captures.
static weft::generator<std::string> merge(weft::generator<std::string> a, weft::generator<std::string> b)
{
	return weft::generator<std::string>([a = std::move(a), b = std::move(b)](auto yield) mutable {
		auto i = a.begin(), j = b.begin();

		for (; i != a.end() && j != b.end();)
			if (*j < *i) {
				yield(std::move(*j));
				++j;
			} else {
				yield(std::move(*i));
				++i;
			}
		yield.from(std::move(a)); // the remaining values, without passing through this generator
		yield.from(std::move(b));
	});
}
// doc: end

static weft::generator<std::string> sorted(std::vector<std::string> all)
{
	std::sort(all.begin(), all.end());
	return weft::generator<std::string>([all = std::move(all)](auto yield) { yield.from(all); });
}

static void permute(std::string &text, std::size_t from, weft::yielder<std::string> yield)
{
	if (from == text.size())
		yield(text);
	for (std::size_t i = from; i < text.size(); i++) {
		std::swap(text[from], text[i]);
		permute(text, from + 1, yield);
		std::swap(text[from], text[i]);
	}
}

int main()
try {
	std::unique_ptr<tree> t;
	int n = 0;

	for (std::string_view word : {"the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"})
		insert(t, word);
	for (const std::string &word : words(*t))
		std::cout << word << (++n < 9 ? ' ' : '\n');

	for (const std::string &word : merge(sorted({"pear", "apple", "fig"}), sorted({"plum", "banana", "date"})))
		std::cout << word << '\n';

	weft::generator<std::string> permutations([](auto yield) {
		std::string text = "abcdefgh";

		permute(text, 0, yield);
	});
	for (const std::string &p : permutations)
		if (++n > 9 + 40000 || p == "bcdaefgh") { // the loop ends here, and no more permutations are made
			std::cout << p << " is permutation " << n - 9 << '\n';
			break;
		}
} catch (const std::exception &e) {
	std::cerr << e.what() << '\n';
	return 1;
}
