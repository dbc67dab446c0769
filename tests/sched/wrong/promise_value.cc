// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::promise<T>::set_value takes what a T can be made of */
#include <weft/sched.hpp>

void f(weft::promise<int> &p);
void f(weft::promise<int> &p)
{
	p.set_value("one");
}
