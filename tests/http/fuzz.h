/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For libFuzzer. An input is a program that produces the bytes of a hostile peer; the exchange runs in a simulated
 * world. weft_simulate fails for a deadlock, a livelock, or a task that is left behind.
 *
 *   fuzz_NAME -runs=N DIRECTORY
 *
 * writes the program's own inputs into the directory, which must exist, and begins with them.
 */
#ifndef WEFT_TESTS_HTTP_FUZZ_H
#define WEFT_TESTS_HTTP_FUZZ_H

#include "../sched/check.h"

#include <signal.h>
#include <sys/socket.h>
#include <weft/io.h>

enum { FUZZ_MOST = 1 << 17, FUZZ_SEED_MOST = 100 };

static struct fuzz {
	unsigned char sent[FUZZ_MOST];
	size_t length;
	unsigned pieces; /* how the bytes are divided; 0: not at all */
} fuzz;

static inline void fuzz_add(const void *data, size_t length)
{
	if (length > FUZZ_MOST - fuzz.length)
		length = FUZZ_MOST - fuzz.length;
	if (length)
		memcpy(fuzz.sent + fuzz.length, data, length);
	fuzz.length += length;
}

/* A byte below the number of words adds a word. Any other byte adds itself. An empty word adds a zero byte. */
static inline void fuzz_add_word(const char *const *words, size_t count, unsigned char byte)
{
	size_t length = byte < count ? strlen(words[byte]) : 0;

	if (length)
		fuzz_add(words[byte], length);
	else
		fuzz_add(byte < count ? "" : (const char *)&byte, 1);
}

size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size, size_t most, unsigned random);

/* In two of three cases, replaces a byte after the first `first` bytes by the number of one of `count` words, or
 * inserts it; otherwise libFuzzer changes the input. */
static inline size_t fuzz_mutate_words(unsigned char *data, size_t size, size_t most, unsigned random, size_t first,
				       size_t count)
{
	size_t at = size > first ? first + random / 3 % (size - first + 1) : size;
	unsigned char word = (unsigned char)((random >> 16) % count);

	if (random % 3 == 0 || size < first || size == most)
		return LLVMFuzzerMutate(data, size, most);
	if (random % 3 == 1 && at < size) {
		data[at] = word;
		return size;
	}
	memmove(data + at + 1, data + at, size - at);
	data[at] = word;
	return size + 1;
}

/* Sends the bytes from `at` to `end`, divided into pieces. Returns false if the peer has closed the connection. */
static inline bool fuzz_send(int fd, size_t at, size_t end)
{
	while (at < end) {
		size_t n = fuzz.pieces ? 1 + (at * 7 + fuzz.pieces) % (fuzz.pieces * 3) : end;

		if (n > end - at)
			n = end - at;
		if (weft_write_all_until(fd, fuzz.sent + at, n, WEFT_NEVER) != (ssize_t)n)
			return false;
		at += n;
	}
	return true;
}

static inline void fuzz_simulate(weft_fn_t *exchange)
{
	const weft_rt_config_t timeless = {.turn_cost = WEFT_NEVER};
	void *result = NULL;

	CHECK(!weft_simulate(fuzz.pieces, &timeless, exchange, &fuzz, &result));
	CHECK(result == &fuzz);
}

/* Writes initial input number `index`. @return its length; 0: there are no more */
static size_t fuzz_seed(unsigned index, unsigned char data[FUZZ_SEED_MOST]);

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	unsigned char data[FUZZ_SEED_MOST];
	char path[1000];
	size_t length;
	FILE *file;

	signal(SIGPIPE, SIG_IGN);
	if (*argc < 2 || (*argv)[*argc - 1][0] == '-')
		return 0;
	for (unsigned i = 0; (length = fuzz_seed(i, data)) != 0; i++) {
		snprintf(path, sizeof path, "%s/seed-%u", (*argv)[*argc - 1], i);
		file = fopen(path, "w");
		if (!file)
			return 0; /* libFuzzer was called to repeat a single input */
		CHECK(fwrite(data, 1, length, file) == length && !fclose(file));
	}
	return 0;
}

#endif
