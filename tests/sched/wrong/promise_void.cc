// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::promise<T>::set_value takes what a T can be made of */
#include <weft/sched.hpp>

void f(weft::promise<void> &p);
void f(weft::promise<void> &p)
{
	p.set_value(1);
}
