/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * copy.c: copies a file in parts, at most four at once, each by a task. If one part fails, the other tasks are
 * cancelled. Under `weft simulate` the disk is simulated, and some reads and writes are short.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weft/io.h>
#include <weft/sync.h>

enum { PARTS = 16, PART = 20000, AT_ONCE = 4 };

struct copy {
	int from, to;
	weft_sem_t free;      /* counts the tasks that may begin */
	unsigned now;	      /* atomic: parts in progress */
	unsigned long copied; /* atomic: bytes */
};

struct part {
	struct copy *copy;
	int64_t at, end;
};

static void close_fd(int *fd)
{
	weft_close(*fd);
}

static void part_ends(struct copy **copy)
{
	__atomic_fetch_sub(&(*copy)->now, 1, __ATOMIC_RELAXED);
	weft_sem_give(&(*copy)->free, 1);
}

static unsigned char byte_at(int64_t place)
{
	return (unsigned char)((uint64_t)place * 2654435761u >> 13);
}

/* A write may be shorter than requested. */
static void write_at(int fd, const unsigned char *text, ssize_t size, int64_t at)
{
	ssize_t n, done = 0;

	while (done < size) {
		n = weft_pwrite(fd, text + done, (size_t)(size - done), at + done);
		if (n <= 0)
			weft_task_fail(n ? (int)n : -EIO);
		done += n;
	}
}

static void *copy_part(void *argument)
{
	struct part *p = argument;
	struct copy *c = p->copy;
	unsigned char text[1024];
	unsigned now = __atomic_add_fetch(&c->now, 1, __ATOMIC_RELAXED);
	int64_t at, left;
	ssize_t n;

	weft_defer(part_ends, &c);
	if (now > AT_ONCE)
		weft_task_fail(-EPROTO);
	for (at = p->at; at < p->end; at += n) {
		left = p->end - at;
		n = weft_pread(c->from, text, left < (int64_t)sizeof text ? (size_t)left : sizeof text, at);
		if (n <= 0)
			weft_task_fail(n ? (int)n : -EIO);
		write_at(c->to, text, n, at);
		__atomic_fetch_add(&c->copied, (unsigned long)n, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void copy_all(struct copy *c)
{
	struct part parts[PARTS];
	int i, error = 0;

	weft_sem_give(&c->free, AT_ONCE);
	WEFT_SCOPE(scope);
	for (i = 0; i < PARTS && !error; i++) {
		parts[i] = (struct part){c, (int64_t)i * PART, (int64_t)(i + 1) * PART};
		error = weft_sem_take(&c->free);
		if (!error)
			error = weft_scope_spawn(&scope, copy_part, &parts[i]);
	}
	if (error)
		weft_scope_cancel(&scope, error);
	error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
}

/* The file is unlinked at once, so nothing is left of it when the program ends. */
static int open_file(const char *what)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/tmp/weft-copy-%d-%s", (int)getpid(), what);
	fd = weft_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		weft_task_fail(fd);
	unlink(path);
	return fd;
}

static void fill(int fd)
{
	unsigned char text[500];
	int64_t at;
	size_t i;

	for (at = 0; at < (int64_t)PARTS * PART; at += (int64_t)sizeof text) {
		for (i = 0; i < sizeof text; i++)
			text[i] = byte_at(at + (int64_t)i);
		write_at(fd, text, sizeof text, at);
	}
}

static void compare(int fd)
{
	unsigned char text[500];
	int64_t at = 0;
	ssize_t n, i;

	while ((n = weft_pread(fd, text, sizeof text, at)) > 0)
		for (i = 0; i < n; i++, at++)
			if (text[i] != byte_at(at))
				weft_task_fail(-EBADMSG);
	if (n < 0 || at != (int64_t)PARTS * PART)
		weft_task_fail(n < 0 ? (int)n : -EBADMSG);
}

static void *run(void *argument)
{
	struct copy *c = argument;

	c->from = open_file("from");
	weft_defer(close_fd, &c->from);
	c->to = open_file("to");
	weft_defer(close_fd, &c->to);
	fill(c->from);
	copy_all(c);
	compare(c->to);
	return NULL;
}

int main(void)
{
	struct copy c = {0};
	int error = weft_rt_run(NULL, run, &c, NULL);

	if (error) {
		fprintf(stderr, "copy: %s\n", strerror(-error));
		return 1;
	}
	printf("%lu bytes copied in %d parts, at most %d at once\n", c.copied, PARTS, AT_ONCE);
}
