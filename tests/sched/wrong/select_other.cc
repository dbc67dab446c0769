// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::select takes what weft::on_receive, on_send, after and otherwise return */
#include <weft/sched.hpp>

void f(weft::channel<int> &c);
void f(weft::channel<int> &c)
{
	weft::select(c);
}
