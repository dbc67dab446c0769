/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * defer.c: scoped resources. A function that acquires a resource performs `defer` with the function that releases it.
 * The handler runs this function *after* the rest of the scope, because the handler is a recursive function that
 * resumes the body in the middle. So cleanups run in reverse order, and also when the scope is left by an exception.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin defer */
typedef void cleanup_fn_t(void *resource);

WEFT_EFFECT(void, defer, cleanup_fn_t *, cleanup, void *, resource);
WEFT_EXCEPTION(failure, const char *, doing, int, error);

static weft_request_t run_scope(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(defer, failure));

	if (weft_is(defer, r)) {
		cleanup_fn_t *cleanup = weft_args(defer, r)->cleanup;
		void *resource = weft_args(defer, r)->resource;

		r = run_scope(k); /* the rest of the scope, however it ends */
		cleanup(resource);
	}
	return r;
}
/* doc: end */

/* ---- resources that clean up after themselves ---- */

/* doc: begin resources */
static void close_file(void *file)
{
	puts("  close the file");
	fclose(file);
}

static void remove_directory(void *path)
{
	puts("  remove the directory");
	rmdir(path);
	free(path);
}

static void remove_file(void *path)
{
	puts("  remove the file");
	unlink(path);
	free(path);
}

static char *scoped_directory(void)
{
	char *path = strdup("/tmp/weft-defer-XXXXXX");

	if (!mkdtemp(path)) {
		free(path);
		failure("making a directory", errno);
	}
	defer(remove_directory, path);
	return path;
}

static FILE *scoped_file(const char *directory, const char *name)
{
	char *path = malloc(strlen(directory) + strlen(name) + 2);
	FILE *file;

	sprintf(path, "%s/%s", directory, name);
	defer(remove_file, path);
	file = fopen(path, "w+");
	if (!file)
		failure("opening a file", errno);
	defer(close_file, file);
	return file;
}
/* doc: end */

static char scratch[64]; /* for the check afterwards that nothing is left */

/* Writes a file and reads it back. The name decides whether this can succeed. */
static void *work(void *name)
{
	char *directory = scoped_directory();
	char line[32] = "";
	FILE *file;

	strcpy(scratch, directory);
	file = scoped_file(directory, name);
	fputs("woven through\n", file);
	rewind(file);
	if (!fgets(line, sizeof(line), file))
		failure("reading", errno);
	printf("  wrote and read: %s", line);
	return NULL;
}

static void try(char *name)
{
	weft_coro_t *k = must(weft_create(work, name));
	weft_request_t r;
	struct stat status;

	printf("scope with %s:\n", name);
	r = run_scope(k);
	if (weft_is(failure, r))
		printf("  failed: %s: %s\n", weft_args(failure, r)->doing, strerror(weft_args(failure, r)->error));
	printf("  left behind: %s\n", stat(scratch, &status) ? "nothing" : "a directory");
	weft_delete(k);
}

int main(void)
{
	weft_set_failure_hook(must_not_fail);
	try("notes.txt");
	try("no-such-directory/notes.txt");
}
