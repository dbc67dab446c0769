// SPDX-License-Identifier: MIT OR Apache-2.0
//
// parser.cpp: a recursive parser whose caller asks for one character after the other, as if the parser were a stream.
// Ported from example/fiber/parser.cpp of Boost.Context: a new program with the structure of the original. It prints
// the same. docs/howto/port.md quotes it.
//
// Three changes:
//  1. A generator takes the place of the fiber, of the callback, and of the two variables that pass the character and
//     the end of the parser to main. The body does not name the context that continues next.
//  2. An exception of the parser leaves the loop's ++, and main catches it. Boost.Context ends the process if an
//     exception leaves a fiber.
//  3. The body ends by a return. A fiber of Boost.Context must return the fiber that continues next.
#include <cctype>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <weft/weft.hpp>

// doc: begin parser
//   sum     = product { ('+' | '-') product }
//   product = factor { ('*' | '/') factor }
//   factor  = digit | '(' sum ')'
class parser
{
      public:
	parser(std::istream &text, weft::yielder<char> yield) : text_(text), yield_(yield)
	{
		skip();
	}
	void sum()
	{
		product();
		while (next_ == '+' || next_ == '-') {
			accept();
			product();
		}
	}

      private:
	void product()
	{
		factor();
		while (next_ == '*' || next_ == '/') {
			accept();
			factor();
		}
	}
	void factor()
	{
		if (std::isdigit(next_)) {
			accept();
		} else {
			expect('(');
			sum();
			expect(')');
		}
	}
	void expect(char c)
	{
		if (next_ != c)
			throw std::runtime_error("parsing failed");
		accept();
	}
	void accept()
	{
		yield_(static_cast<char>(next_)); // to the loop in main, from any depth
		skip();
	}
	void skip()
	{
		do
			next_ = text_.get();
		while (std::isspace(next_));
	}

	std::istream &text_;
	weft::yielder<char> yield_;
	int next_ = 0;
};
// doc: end

// doc: begin main
int main(int argc, char **argv)
try {
	std::istringstream text(argc > 1 ? argv[1] : "1+1");
	weft::generator<char> parsed([&](weft::yielder<char> yield) { parser(text, yield).sum(); });

	for (char c : parsed)
		std::cout << "Parsed: " << c << '\n';
	std::cout << "main: done\n";
} catch (const std::exception &e) {
	std::cerr << "exception: " << e.what() << '\n';
	return 1;
}
// doc: end
