// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Tasks in the initializer of a global object.
#include "check.hpp"

#include <weft/io.h>
#include <weft/sched.hpp>

namespace
{

const int result = weft::run([] {
	weft::scope scope;
	auto number = scope.spawn([] {
		weft::this_task::sleep_for(std::chrono::milliseconds(1));
		return 42;
	});
	int fds[2];
	char byte = 0;

	CHECK(weft_pipe(fds) == 0);
	CHECK(weft_write(fds[1], "x", 1) == 1 && weft_read(fds[0], &byte, 1) == 1);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return number.join() + (byte == 'x');
});

} // namespace

int main()
{
	CHECK(result == 43);
	return 0;
}
