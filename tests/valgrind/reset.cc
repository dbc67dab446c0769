// SPDX-License-Identifier: MIT OR Apache-2.0
// A mistake: the frames of a coroutine are given up, and what lies above them; then its destructor looks at that.
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
