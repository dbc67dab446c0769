// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::on_receive(channel, fn): fn takes a std::optional of the channel's items */
#include <weft/sched.hpp>

void f(weft::channel<int> &c);
void f(weft::channel<int> &c)
{
	weft::select(weft::on_receive(c, [](int) {}));
}
