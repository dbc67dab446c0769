// SPDX-License-Identifier: MIT OR Apache-2.0
// A mistake: the coroutine's frames are given up, and with them what lies above them; then the destructor looks at that.
#include <memory>

#include <weft/weft.hpp>

int main()
{
	weft::coroutine<> k([p = std::make_unique<int>(1)] {
		weft::suspend();
		*p = 2;
	});

	k.resume();
	weft_reset(
	    k.get(), [](void *p) { return p; }, nullptr);
}
