// SPDX-License-Identifier: MIT OR Apache-2.0
// What the tests of weft/sched.hpp share.
#ifndef WEFT_TESTS_SCHED_CHECK_HPP
#define WEFT_TESTS_SCHED_CHECK_HPP

#include <cstdio>
#include <cstdlib>
#include <system_error>

#define CHECK(condition)                                                                                               \
	((condition) ? (void)0                                                                                         \
		     : (std::printf("not ok - %s:%d: %s\n", __FILE__, __LINE__, #condition), std::fflush(stdout),      \
			std::abort()))

// The code of the error that the call throws, or 0 if it throws none.
template <typename F> int error_of(F &&f)
{
	try {
		f();
	} catch (const std::system_error &e) {
		return e.code().value();
	}
	return 0;
}

#endif
