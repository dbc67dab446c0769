/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reader.c: reading files as a family of effects. The code that counts words performs them; one handler answers from
 * the file system, another from a table in memory, as a test would. Errors are ordinary results.
 *
 * Use: reader [FILE]…; without arguments it reads the inputs in the directory of its source.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin family */
/* A file descriptor or a count of bytes; a negative value is an error: -ENOENT and so on. */
WEFT_FAMILY(files, (int, file_open, const char *, path), (ssize_t, file_read, int, file, char *, buffer, size_t, size),
	    (void, file_close, int, file));
/* doc: end */

/* doc: begin count */
struct counts {
	const char *path;
	long lines, words, bytes;
	int error;
};

static void count(struct counts *counts, const char *bytes, size_t length, bool *in_word)
{
	for (size_t i = 0; i < length; i++) {
		bool word = !isspace((unsigned char)bytes[i]);

		counts->lines += bytes[i] == '\n';
		counts->words += word && !*in_word;
		*in_word = word;
	}
	counts->bytes += (long)length;
}

static void *count_file(void *arg)
{
	struct counts *counts = arg;
	char buffer[64];
	bool in_word = false;
	ssize_t length;
	int file = file_open(counts->path);

	if (file < 0) {
		counts->error = file;
		return NULL;
	}
	while ((length = file_read(file, buffer, sizeof(buffer))) > 0)
		count(counts, buffer, (size_t)length, &in_word);
	counts->error = (int)length;
	file_close(file);
	return NULL;
}
/* doc: end */

/* doc: begin real */
static void with_real_files(weft_coro_t *k)
{
	weft_request_t r;

	weft_handle (r, k, files) {
		switch (weft_op(files, r)) {
		case weft_case(file_open): {
			int file = open(weft_args(file_open, r)->path, O_RDONLY | O_CLOEXEC);

			weft_reply(file_open, r, file < 0 ? -errno : file);
			break;
		}
		case weft_case(file_read): {
			ssize_t length = read(weft_args(file_read, r)->file, weft_args(file_read, r)->buffer,
					      weft_args(file_read, r)->size);

			weft_reply(file_read, r, length < 0 ? -errno : length);
			break;
		}
		case weft_case(file_close):
			close(weft_args(file_close, r)->file);
		}
	}
}
/* doc: end */

/* One file called "memory", from a slow device that delivers three bytes at a time. */
static void with_memory_file(weft_coro_t *k, const char *content)
{
	weft_request_t r;

	weft_handle (r, k, files) {
		switch (weft_op(files, r)) {
		case weft_case(file_open):
			weft_reply(file_open, r, strcmp(weft_args(file_open, r)->path, "memory") ? -ENOENT : 0);
			break;
		case weft_case(file_read): {
			size_t length = strnlen(content, 3);

			memcpy(weft_args(file_read, r)->buffer, content, length);
			content += length;
			weft_reply(file_read, r, (ssize_t)length);
		}
		}
	}
}

static void report(const char *path, const char *content)
{
	struct counts counts = {.path = path};
	weft_coro_t *k = must(weft_create(count_file, &counts));

	if (content)
		with_memory_file(k, content);
	else
		with_real_files(k);
	weft_delete(k);
	printf("%-12s ", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	if (counts.error)
		printf("%s\n", strerror(-counts.error));
	else
		printf("%ld lines, %ld words, %ld bytes\n", counts.lines, counts.words, counts.bytes);
}

static void report_beside_source(const char *name)
{
	const char *slash = strrchr(__FILE__, '/');
	char path[4096];

	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__, name);
	report(path, NULL);
}

int main(int argc, char **argv)
{
	weft_set_failure_hook(must_not_fail);
	for (int i = 1; i < argc; i++)
		report(argv[i], NULL);
	if (argc > 1)
		return 0;
	report_beside_source("input/poem.txt");
	report_beside_source("input/missing.txt");
	report_beside_source("input");
	report("memory", "warp and weft\n");
	report("disk", "");
}
