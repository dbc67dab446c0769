/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "made.hpp"
#include <weft/charcoal.h>

crowd made::making, made::ending;

void crowd::pass()
{
	if (++now > most)
		most = now;
	yield_now();
	now--;
}

made::made(int value) : value(value)
{
	making.pass();
}

made::~made()
{
	ending.pass();
}

made_further::made_further(int value) : made(value)
{
	making.pass();
}

made_further::~made_further()
{
	ending.pass();
}
