// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::on_send(channel, item, fn): fn takes a bool */
#include <weft/sched.hpp>

void f(weft::channel<int> &c);
void f(weft::channel<int> &c)
{
	weft::select(weft::on_send(c, 1, [] {}));
}
