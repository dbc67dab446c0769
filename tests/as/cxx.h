/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inline code of both units of cxx.cc: the linker keeps one copy of each function, possibly the uninstrumented copy. */
#ifndef TESTS_AS_CXX_H
#define TESTS_AS_CXX_H

#include <stdexcept>
#include <string>
#include <vector>

template <typename T> __attribute__((noinline)) T twice(T x)
{
	volatile char frame[300];

	frame[0] = 1;
	return x + x + T(frame[0]) - T(1);
}

inline __attribute__((noinline)) int throws_if(int x)
{
	if (x > 3)
		throw std::out_of_range("more than three");
	return x;
}

struct base {
	virtual ~base()
	{
	}
	virtual int f(int x)
	{
		return twice(x);
	}
	long pad = 1;
};

struct other {
	virtual ~other()
	{
	}
	virtual int g(int x) = 0;
	long pad = 2;
};

struct derived : base, other {
	std::string text = "a string that is too long for the small buffer";
	int f(int x) override
	{
		return base::f(x) + 1;
	}
	int g(int x) override;
};

int second_unit(int x);

#endif
