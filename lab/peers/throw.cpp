/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* throw in C++: `n` times, a recursion `frames` deep is left by throw, and the exception is caught at its outermost
 * call. */
#include "../impl/lab.h"

namespace
{

struct fail {
	int64_t code;
};

LAB_NOINLINE int64_t descend(int64_t frames)
{
	if (frames <= 1)
		throw fail{frames};
	int64_t rest = descend(frames - 1);
	LAB_HIDE(rest);
	return rest + 1;
}

int64_t run(int64_t n, int64_t frames)
{
	int64_t caught = 0;

	for (int64_t i = 0; i < n; i++) {
		try {
			descend(frames);
		} catch (const fail &f) {
			caught += f.code;
		}
	}
	return caught;
}

} // namespace

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10);

	lab_start();
	int64_t caught = run(n, lab_number(argc, argv, "frames", 1));
	lab_stop();
	return lab_report(static_cast<uint64_t>(n), caught);
}
