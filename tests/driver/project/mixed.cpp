// SPDX-License-Identifier: MIT OR Apache-2.0
//
// C++ that calls C: mixed.c has the function, and a name that C++ would refuse.

extern "C" int seven(void);

int main()
{
	auto ask = [] { return seven(); };

	return ask();
}
