// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef WEFT_TESTS_CXX_COUNTED_H
#define WEFT_TESTS_CXX_COUNTED_H

namespace
{

// How many there are: what is left when everything has ended was lost.
int alive;

struct Counted {
	Counted() noexcept
	{
		alive++;
	}
	Counted(const Counted &) noexcept
	{
		alive++;
	}
	Counted(Counted &&) noexcept
	{
		alive++;
	}
	~Counted()
	{
		alive--;
	}
};

} // namespace

#endif
