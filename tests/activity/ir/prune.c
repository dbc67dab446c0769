/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* When a whole program is linked: twins that no activity reaches are dropped, and others call each other directly. */
// RUN: %fresh && %whole && %see=ALL && %see=NAMES
// RUN: %fresh -DPOINTS && %whole && %see=ALL && %see=POINTS
// RUN: %fresh -DHANDS && %whole && %see=ALL && %see=HANDS
#include <weft/activity.h>
#include <weft/charcoal.h>
int seen;
int (*volatile chosen)(int);

int by_plain_code(int n)
{
	while (n--)
		seen++;
	return n;
}

int by_twin(int n)
{
	while (n--)
		seen++;
	return n;
}

/* A pointer to it exists. */
int pointed(int n)
{
	while (n--)
		seen++;
	return n;
}

/* The runtime gets it, and calls it in an activity. */
void *handed(void *n)
{
	while (seen)
		seen++;
	return n;
}

int main(int argc, char **argv)
{
	activity_t a;

	(void)argv;
	chosen = pointed;
	by_plain_code(argc);
#ifdef HANDS
	weft_activity_run(NULL, handed, NULL, NULL);
#endif
	activate(&a, argc)
	{
		by_twin(argc);
#ifdef POINTS
		chosen(argc);
#endif
	}
	activity_wait(&a);
	return 0;
}

// ALL-NOT: @by_plain_code.yielding
// ALL-NOT: @main.yielding
// ALL: define internal {{.*}}@by_twin.yielding(
// ALL-NOT: @by_plain_code.yielding
// ALL-NOT: @main.yielding
// NAMES-NOT: @pointed.yielding
// NAMES-NOT: @handed.yielding
// NAMES: @pointed(
// NAMES-NOT: @pointed.yielding
// POINTS: define {{.*}}@pointed({{.*}} prefix {{.*}} ptrtoint (ptr @pointed.yielding
// POINTS: define internal {{.*}}@pointed.yielding(
// HANDS-NOT: @pointed.yielding
// HANDS: define {{.*}}@handed({{.*}} prefix {{.*}} ptrtoint (ptr @handed.yielding
// HANDS: define internal {{.*}}@handed.yielding(
