/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs a program's main, which is compiled under the name fuzz_main, as an activity beside noise: activities which
 * check that their own data stay the same while the other activities run, and which overwrite the bytes that they used
 * on the hot stack. Without the pass (FUZZ_PLAIN) fuzz_main is called, and no more.
 *
 *   WEFT_FUZZ_NOISE=N     the number of activities of noise; default 2
 *   WEFT_FUZZ_COPIES=N    the number of activities that run fuzz_main; default 1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned long fuzz_turns; /* changes whenever noise has run: programs see switches by it */
int fuzz_main(int argc, char **argv, char **environment);

#ifdef FUZZ_PLAIN
int main(int argc, char **argv, char **environment)
{
	return fuzz_main(argc, argv, environment);
}
#else
#include <weft/activity.h>

struct command {
	int argc;
	char **argv, **environment;
	int status;
};

static int running;
static unsigned bad;

/* Leave other values in all vector registers, in their upper halves, too. */
static void scribble_vectors(unsigned char byte)
{
	if (!__builtin_cpu_supports("avx"))
		return;
	if (byte & 1)
		__asm__ volatile("vzeroall");
	else
		__asm__ volatile(".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n"
				 "vcmpps $15, %%ymm\\n, %%ymm\\n, %%ymm\\n\n"
				 ".endr" ::);
	__asm__ volatile("" ::
			     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
			       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* Plain code: leaves its bytes on the hot stack. */
static __attribute__((noinline)) WEFT_NO_YIELD void scribble(unsigned char byte, unsigned bytes)
{
	volatile unsigned char area[bytes];

	for (unsigned i = 0; i < bytes; i += 1 + i / 64)
		area[i] = byte;
	scribble_vectors(byte);
}

static __attribute__((noinline)) void know(unsigned *const *p, unsigned seed)
{
	for (unsigned i = 0; i < 4; i++) {
		fuzz_turns++;
		weft_activity_give_way();
		bad += **p != seed;
	}
}

/* A few frames whose sizes differ from the program's; their contents must stay. */
static __attribute__((noinline)) unsigned frames(unsigned depth, unsigned seed)
{
	unsigned own[3] = {seed, seed * 3, seed * 5}, shared = seed, *at = &shared;
	unsigned below;

	scribble((unsigned char)seed, depth % 5 ? 100 : 3000);
	know(&at, seed);
	if (!depth || !running)
		return seed;
	weft_activity_give_way();
	below = frames(depth - 1, seed * 7 + 1);
	weft_activity_give_way();
	bad += own[0] != seed || own[1] != seed * 3 || own[2] != seed * 5 || shared != seed;
	return own[depth % 3] ^ below;
}

static void noise(unsigned number)
{
	unsigned rounds = 0, first[16] = {0};

	while (running) {
		unsigned depth = (number * 5 + rounds) % 16, sum = frames(depth, depth);

		if (running && first[depth] && first[depth] != sum)
			bad++;
		if (running)
			first[depth] = sum;
		rounds++;
	}
}

static unsigned setting(const char *name, unsigned otherwise)
{
	const char *said = getenv(name);

	return said ? (unsigned)atoi(said) : otherwise;
}

static void *first(void *argument)
{
	struct command *c = argument;
	unsigned copies = setting("WEFT_FUZZ_COPIES", 1), noises = setting("WEFT_FUZZ_NOISE", 2);
	weft_activity_t others[noises + 1], programs[copies + 1];

	running = 1;
	for (unsigned i = 0; i < noises; i++)
		weft_activate(&others[i], i) noise(i);
	for (unsigned i = 0; i < copies; i++)
		weft_activate(&programs[i]) c->status |= fuzz_main(c->argc, c->argv, c->environment);
	for (unsigned i = 0; i < copies; i++)
		weft_activity_wait(&programs[i]);
	running = 0;
	for (unsigned i = 0; i < noises; i++)
		weft_activity_wait(&others[i]);
	return NULL;
}

int main(int argc, char **argv, char **environment)
{
	struct command c = {argc, argv, environment, 0};
	weft_activity_config_t config = {.stack_size = 8 << 20};
	int error = weft_activity_run(&config, first, &c, NULL);

	fflush(stdout);
	if (error)
		fprintf(stderr, "the activities could not run: %s\n", strerror(-error));
	if (bad)
		fprintf(stderr, "the noise has found %u values changed\n", bad);
	return error || bad ? 99 : c.status;
}
#endif
