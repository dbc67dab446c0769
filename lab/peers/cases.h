/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code shared by the C++ peers: case=NAME chooses a program, and its name determines its number of operations. */
#ifndef LAB_PEERS_CASES_H
#define LAB_PEERS_CASES_H

#include "../impl/lab.h"

struct peer_case {
	const char *name;
	int64_t (*run)(int64_t n);
};

inline uint64_t peer_operations(const char *name, int64_t n)
{
	if (!strcmp(name, "countdown"))
		return static_cast<uint64_t>(2 * n + 1);
	if (!strcmp(name, "iterator"))
		return static_cast<uint64_t>(n + 1);
	if (!strcmp(name, "generator"))
		return (UINT64_C(1) << n) - 1;
	if (!strcmp(name, "c2"))
		return UINT64_C(1) << n;
	return static_cast<uint64_t>(n);
}

/* Runs a case of the list, or one of three cases that take or report more: c1(n, laps), c10m(n, live), memory(n). */
template <size_t N, class C1, class C10M, class Memory>
int peer_main(int argc, char **argv, const peer_case (&cases)[N], C1 c1, C10M c10m, Memory memory)
{
	int64_t n = lab_number(argc, argv, "n", 10), laps = lab_number(argc, argv, "laps", 1);

	if (lab_is(argc, argv, "case", "c1"))
		return lab_report(static_cast<uint64_t>(2 * n * laps), c1(n, laps));
	if (lab_is(argc, argv, "case", "c10m"))
		return lab_report(static_cast<uint64_t>(n), c10m(n, lab_number(argc, argv, "live", 10000)));
	if (lab_is(argc, argv, "case", "memory"))
		return memory(n);
	for (const peer_case &c : cases)
		if (lab_is(argc, argv, "case", c.name))
			return lab_report(peer_operations(c.name, n), c.run(n));
	lab_die("no such case");
	return 2;
}

#endif
