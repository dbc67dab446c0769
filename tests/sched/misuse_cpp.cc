// SPDX-License-Identifier: MIT OR Apache-2.0
// Uses that sched.hpp forbids: they throw an exception, or end with a line if they must not throw. misuse_cpp [unlock]
#include "check.hpp"

#include <cstring>
#include <weft/sched.hpp>

namespace
{

void handles()
{
	weft::task<int> outlives, none;

	CHECK(error_of([&] { none.join(); }) == EINVAL);
	none.cancel();
	{
		weft::scope scope;
		auto t = scope.spawn([] { return 3; });

		CHECK(t.join() == 3);
		CHECK(error_of([&] { t.join(); }) == EINVAL);
		outlives = scope.spawn([] { return 4; });
		scope.wait();
		CHECK(error_of([&] { scope.start([] {}); }) == EINVAL);
		CHECK(error_of([&] { (void)scope.spawn([] { return 5; }); }) == EINVAL);
		scope.wait();
		memset(scope.get(), 0xa5, sizeof *scope.get());
		scope.get()->closed = 1;
	}
	CHECK(outlives.join() == 4);
}

void locks()
{
	weft::mutex mutex;

	mutex.lock();
	CHECK(error_of([&] { mutex.lock(); }) == EDEADLK);
	CHECK(!mutex.try_lock());
	mutex.unlock();
}

void outside()
{
	weft::scope scope;

	CHECK(error_of([&] { scope.start([] {}); }) == EPERM);
	CHECK(error_of([] { weft::run(weft_rt_config_t{}, [] {}); }) == 0);
	locks();
}

} // namespace

int main(int argc, char **)
{
	outside();
	weft::run([] {
		handles();
		locks();
	});
	if (argc > 1)
		weft::mutex().unlock();
	return 0;
}
