/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * crawler.c: fetches each page of a site that it can reach from the first one, four at a time, and waits for none
 * longer than two seconds. The site is a task of the same program. One page does not exist, and one never comes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/io.h>
#include <weft/sync.h>

#define MS 1000000ull

enum { AT_ONCE = 4, PATIENCE = 2000 /* milliseconds */, PAGES = 32, PATH = 32, TEXT = 1024 };

static void close_fd(int *fd)
{
	weft_close(*fd);
}

/* ---- the site ---------------------------------------------------------------------------------------------------- */

static const struct {
	const char *path, *text;
	uint64_t takes; /* milliseconds, to make it */
} site[] = {
    {"/", "<a href=\"/news\"> <a href=\"/people\"> <a href=\"/slow\"> <a href=\"/gone\"> <a href=\"/map\">", 0},
    {"/news", "<a href=\"/\"> <a href=\"/news/1\"> <a href=\"/news/2\"> <a href=\"/news/3\">", 10},
    {"/news/1", "<a href=\"/news\"> <a href=\"/people/ann\">", 30},
    {"/news/2", "<a href=\"/news\">", 20},
    {"/news/3", "<a href=\"/news\"> <a href=\"/gone\"> <a href=\"/slow\">", 5},
    {"/people", "<a href=\"/people/ann\"> <a href=\"/people/bob\">", 15},
    {"/people/ann", "<a href=\"/people/bob\">", 10},
    {"/people/bob", "<a href=\"/people/ann\">", 10},
    {"/map", "<a href=\"/\"> <a href=\"/news\"> <a href=\"/people\"> <a href=\"/map\">", 1},
    {"/slow", "", 3600000},
};

static void answer(int fd, const char *path)
{
	char text[TEXT];
	size_t i, count = sizeof site / sizeof *site;
	int length;

	for (i = 0; i < count && strcmp(site[i].path, path) != 0; i++)
		;
	if (i < count)
		weft_sleep(site[i].takes * MS);
	length = snprintf(text, sizeof text, "HTTP/1.0 %s\r\n\r\n%s", i < count ? "200 OK" : "404 Not Found",
			  i < count ? site[i].text : "");
	(void)weft_write_all(fd, text, (size_t)length);
}

/* Client and server of this program send requests whole, and short. */
static void *serve(void *argument)
{
	char request[TEXT], path[PATH];
	int fd = (int)(intptr_t)argument;
	size_t length = 0;
	ssize_t n = 1;

	weft_defer(close_fd, &fd);
	while (n > 0 && length < sizeof request - 1 &&
	       (length < 4 || memcmp(request + length - 4, "\r\n\r\n", 4) != 0)) {
		n = weft_read(fd, request + length, sizeof request - 1 - length);
		length += n > 0 ? (size_t)n : 0;
	}
	request[length] = '\0';
	if (sscanf(request, "GET %31s ", path) == 1)
		answer(fd, path);
	return NULL;
}

static void *serve_all(void *listener)
{
	int fd, error = 0;

	WEFT_SCOPE(scope);
	while (!error) {
		fd = weft_accept(*(int *)listener, NULL, NULL, 0);
		error = fd < 0 ? fd : weft_scope_spawn(&scope, serve, (void *)(intptr_t)fd);
		if (error && fd >= 0)
			weft_close(fd);
	}
	weft_task_fail(error);
}

/* ---- the crawler ------------------------------------------------------------------------------------------------- */

struct page {
	struct crawl *crawl;
	char path[PATH], text[TEXT];
	int status, links; /* of HTTP, or a negative errno */
};

struct crawl {
	char port[8];
	struct page pages[PAGES]; /* in the order in which they were found */
	int found, begun, active, most;
	weft_chan_t *fetched; /* of pages */
};

/* doc: begin fetch */
/* One deadline for all of it. */
static int fetch(struct page *p, uint64_t deadline)
{
	int fd = weft_dial_until("127.0.0.1", p->crawl->port, deadline), length;
	char request[PATH + 32];
	ssize_t n = 1, size = 0;

	if (fd < 0)
		return fd;
	weft_defer(close_fd, &fd);
	length = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", p->path);
	n = weft_write_all_until(fd, request, (size_t)length, deadline);
	while (n > 0) {
		n = weft_read_until(fd, p->text + size, sizeof p->text - 1 - (size_t)size, deadline);
		size += n > 0 ? n : 0;
	}
	return n < 0 ? (int)n : sscanf(p->text, "HTTP/1.0 %d", &p->status) == 1 ? p->status : -EPROTO;
}

static void *fetch_page(void *argument)
{
	struct page *p = argument;

	p->status = fetch(p, weft_now() + PATIENCE * MS);
	if (p->status < 0 && p->status != -ETIMEDOUT)
		weft_task_fail(p->status);
	(void)weft_chan_send(p->crawl->fetched, &p);
	return NULL;
}
/* doc: end */

static void find(struct crawl *c, const char *path, size_t length)
{
	int i;

	for (i = 0; i < c->found; i++)
		if (strlen(c->pages[i].path) == length && !memcmp(c->pages[i].path, path, length))
			return;
	if (c->found == PAGES || length >= PATH)
		weft_task_fail(-EMSGSIZE);
	c->pages[c->found].crawl = c;
	memcpy(c->pages[c->found].path, path, length); /* the rest is zeros */
	c->found++;
}

static void follow_links(struct crawl *c, struct page *p)
{
	const char *at = p->text, *end;

	while ((at = strstr(at, "href=\"")) && (end = strchr(at += 6, '"'))) {
		find(c, at, (size_t)(end - at));
		p->links++;
	}
}

/* doc: begin crawl */
/* Only this task knows which pages there are: the others get one to fill in, and give it back through the channel. */
static int crawl(struct crawl *c)
{
	struct page *p;
	int error = 0;

	WEFT_SCOPE(scope);
	find(c, "/", 1);
	while (!error && (c->active || c->begun < c->found)) {
		if (c->begun < c->found && c->active < AT_ONCE) {
			error = weft_scope_spawn(&scope, fetch_page, &c->pages[c->begun++]);
			c->active++;
		} else {
			error = weft_chan_receive(c->fetched, &p);
			c->active--;
			if (!error)
				follow_links(c, p);
		}
		if (c->active > c->most)
			c->most = c->active;
	}
	if (error)
		weft_scope_cancel(&scope, error);
	return weft_scope_wait(&scope);
}
/* doc: end */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct page *)a)->path, ((const struct page *)b)->path);
}

static void report(struct crawl *c)
{
	int i;

	qsort(c->pages, (size_t)c->found, sizeof *c->pages, by_path);
	printf("%d pages, %d at a time\n", c->found, c->most);
	for (i = 0; i < c->found; i++)
		if (c->pages[i].status < 0)
			printf("    %-12s out of time\n", c->pages[i].path);
		else
			printf("    %-12s %d, %d links\n", c->pages[i].path, c->pages[i].status, c->pages[i].links);
}

static void free_channel(weft_chan_t **channel)
{
	weft_chan_free(*channel);
}

static void *run(void *argument)
{
	struct crawl *c = argument;
	int error, listener = weft_listen("127.0.0.1", 0, 0, 0);

	if (listener < 0)
		weft_task_fail(listener);
	weft_defer(close_fd, &listener);
	snprintf(c->port, sizeof c->port, "%d", weft_port(listener));
	c->fetched = weft_chan_make(sizeof(struct page *), AT_ONCE);
	if (!c->fetched)
		weft_task_fail(-ENOMEM);
	weft_defer(free_channel, &c->fetched);
	WEFT_SCOPE(scope);
	error = weft_scope_spawn(&scope, serve_all, &listener);
	if (!error)
		error = crawl(c);
	/* The site waits for connections, and in vain for the page that nobody waits for any more. */
	weft_scope_cancel(&scope, error ? error : -ECANCELED);
	error = weft_scope_wait(&scope);
	if (error != -ECANCELED)
		weft_task_fail(error);
	report(c);
	return NULL;
}

int main(void)
{
	static struct crawl c;
	int error = weft_rt_run(NULL, run, &c, NULL);

	if (error)
		fprintf(stderr, "crawler: %s\n", strerror(-error));
	return error != 0;
}
