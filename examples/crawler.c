/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * crawler.c: fetches each page of a site that is reachable from the first one, four at a time, and waits for each page
 * two seconds at most.
 *
 *   ./weft run examples/crawler.c                          a site that is a task of the same program
 *   ./weft run examples/crawler.c -- http://host/path [N]  another site, N pages at a time
 *
 * One page of the program's own site does not exist, and one page never arrives. Links to other hosts are not followed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/http.h>
#include <weft/http_client.h>
#include <weft/sync.h>

#define MS 1000000ull

enum { AT_ONCE = 4, PATIENCE = 2000 /* milliseconds */, PAGES = 1000, URL = 500, TEXT = 1 << 18 };

/* ---- the program's own site -------------------------------------------------------------------------------------- */

static const struct {
	const char *path, *text;
	uint64_t takes; /* milliseconds that the server needs to make it */
} site[] = {
    {"/", "<a href=\"/news\"> <a href=\"people\"> <a href=\"/slow\"> <a href=\"/gone\"> <a href=\"/map\">", 0},
    {"/news", "<a href=\"/\"> <a href=\"/news/1\"> <a href=\"news/2\"> <a href=\"news/3#end\">", 10},
    {"/news/1", "<a href=\"../news\"> <a href=\"/people/ann\">", 30},
    {"/news/2", "<a href=\"/news\">", 20},
    {"/news/3", "<a href=\"/news\"> <a href=\"/gone\"> <a href=\"/slow\">", 5},
    {"/people", "<a href=\"/people/ann\"> <a href=\"/people/bob\">", 15},
    {"/people/ann", "<a href=\"./bob\"> <a href=\"http://elsewhere.example/\">", 10},
    {"/people/bob", "<a href=\"ann\">", 10},
    {"/map", "<a href=\"/\"> <a href=\"/news\"> <a href=\"/people\"> <a href=\"/map\">", 1},
    {"/slow", "", 3600000},
};

static void answer(weft_http_t *http, void *unused)
{
	weft_http_text_t path = weft_http_path(http);
	size_t i, count = sizeof site / sizeof *site;

	(void)unused;
	for (i = 0; i < count; i++)
		if (strlen(site[i].path) == path.length && !memcmp(site[i].path, path.data, path.length))
			break;
	if (i < count)
		weft_sleep(site[i].takes * MS);
	weft_http_reply(http, i < count ? 200 : 404, "text/html", i < count ? site[i].text : "",
			i < count ? strlen(site[i].text) : 0);
}

struct server {
	weft_http_server_t *server;
	int listener;
};

static void *serve(void *server)
{
	const struct server *s = server;
	int error = weft_http_serve(s->server, s->listener);

	if (error)
		weft_task_fail(error);
	return NULL;
}

static int open_server(struct server *s)
{
	int error = weft_http_open(&s->server, NULL);

	if (!error)
		error = weft_http_route(s->server, "GET /*path", answer, NULL);
	s->listener = error ? error : weft_listen("127.0.0.1", 0, 0, 0);
	return s->listener < 0 ? s->listener : 0;
}

static void close_server(struct server *s)
{
	if (s->server)
		weft_http_stop(s->server, weft_now()); /* no request waits for the slow page now */
	weft_http_close(s->server);
	weft_close(s->listener);
}

/* ---- the crawler ------------------------------------------------------------------------------------------------- */

struct page {
	struct crawl *crawl;
	char url[URL], *text;
	ssize_t size;
	int status, links; /* HTTP status, or a negative errno */
};

struct crawl {
	weft_http_client_t *client;
	const char *first;
	size_t origin;		  /* bytes of "http://host:port" in `first` */
	struct page pages[PAGES]; /* in the order in which they were found */
	int at_once, found, begun, active, most;
	weft_chan_t *fetched; /* fetched pages */
};

/* doc: begin fetch */
/* One deadline covers the whole fetch. */
static int fetch(struct page *p, uint64_t deadline)
{
	weft_http_request_t *r;
	int error = weft_http_request_open(p->crawl->client, "GET", p->url, &r);

	if (error)
		return error;
	weft_defer(weft_http_request_close, r);
	weft_http_request_set_deadline(r, deadline);
	p->status = weft_http_response(r);
	if (p->status > 0)
		p->size = weft_http_response_read_all(r, p->text, TEXT - 1);
	return p->size < 0 ? (int)p->size : p->status;
}

static void *fetch_page(void *argument)
{
	struct page *p = argument;

	p->text = calloc(1, TEXT);
	p->status = p->text ? fetch(p, weft_now() + PATIENCE * MS) : -ENOMEM;
	(void)weft_chan_send(p->crawl->fetched, &p);
	return NULL;
}
/* doc: end */

static bool is_of_site(const struct crawl *c, const char *url)
{
	return !strncmp(url, c->first, c->origin) && url[c->origin] == '/';
}

static void find(struct crawl *c, const char *url)
{
	int i;

	for (i = 0; i < c->found; i++)
		if (!strcmp(c->pages[i].url, url))
			return;
	if (c->found == PAGES || !is_of_site(c, url))
		return;
	c->pages[c->found].crawl = c;
	strcpy(c->pages[c->found++].url, url);
}

static void follow_links(struct crawl *c, struct page *p)
{
	char *at = p->text, *end, url[URL];

	while (p->size > 0 && (at = strstr(at, "href=\"")) && (end = strchr(at += 6, '"'))) {
		*end = '\0';
		if (weft_http_resolve_url(p->url, at, url, sizeof url) > 0)
			find(c, url);
		p->links++;
		at = end + 1;
	}
	free(p->text);
	p->text = NULL;
}

/* doc: begin crawl */
/* Only this task knows the list of pages. Each other task gets a page to fill in, and returns it through the
 * channel. */
static int crawl(struct crawl *c)
{
	struct page *p;
	int error = 0;

	WEFT_SCOPE(scope);
	find(c, c->first);
	while (!error && (c->active || c->begun < c->found)) {
		if (c->begun < c->found && c->active < c->at_once) {
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

static int by_url(const void *a, const void *b)
{
	return strcmp(((const struct page *)a)->url, ((const struct page *)b)->url);
}

static void report(struct crawl *c)
{
	int i;

	qsort(c->pages, (size_t)c->found, sizeof *c->pages, by_url);
	printf("%d pages, %d at a time\n", c->found, c->most);
	for (i = 0; i < c->found; i++) {
		const struct page *p = &c->pages[i];

		if (p->status == -ETIMEDOUT)
			printf("    %-12s out of time\n", p->url + c->origin);
		else if (p->status < 0)
			printf("    %-12s %s\n", p->url + c->origin, strerror(-p->status));
		else
			printf("    %-12s %d, %zd bytes, %d links\n", p->url + c->origin, p->status, p->size, p->links);
	}
}

static void free_channel(weft_chan_t **channel)
{
	weft_chan_free(*channel);
}

static void close_client(weft_http_client_t **client)
{
	weft_http_client_close(*client);
}

static int crawl_from(struct crawl *c, const char *first)
{
	char url[URL];
	int error = (int)weft_http_resolve_url(first, "", url, sizeof url);

	if (error < 0)
		return error;
	c->first = url;
	c->origin = strcspn(strstr(url, "//") + 2, "/") + (size_t)(strstr(url, "//") + 2 - url);
	error = weft_http_client_open(&c->client, NULL);
	if (error)
		return error;
	weft_defer(close_client, &c->client);
	c->fetched = weft_chan_make(sizeof(struct page *), (size_t)c->at_once);
	if (!c->fetched)
		return -ENOMEM;
	weft_defer(free_channel, &c->fetched);
	error = crawl(c);
	if (!error)
		report(c);
	return error;
}

static int crawl_own_site(struct crawl *c)
{
	struct server s = {.listener = -1};
	char url[40];
	int error = open_server(&s);

	WEFT_SCOPE(scope);
	weft_defer(close_server, &s);
	if (!error)
		error = weft_scope_spawn(&scope, serve, &s);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/", weft_port(s.listener));
	return error ? error : crawl_from(c, url);
}

static void *run(void *argument)
{
	struct crawl *c = argument;
	int error = c->first ? crawl_from(c, c->first) : crawl_own_site(c);

	if (error)
		weft_task_fail(error);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct crawl c = {.at_once = AT_ONCE};
	int error;

	c.first = argc > 1 ? argv[1] : NULL;
	if (argc > 2 && atoi(argv[2]) > 0)
		c.at_once = atoi(argv[2]);
	error = weft_rt_run(NULL, run, &c, NULL);
	if (error)
		fprintf(stderr, "crawler: %s\n", strerror(-error));
	return error != 0;
}
