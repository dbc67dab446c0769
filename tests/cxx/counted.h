// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef WEFT_TESTS_CXX_COUNTED_H
#define WEFT_TESTS_CXX_COUNTED_H

namespace
{

// The number of living objects: any that remain at the end were leaked.
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
