/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Libraries of the distribution, as they are, called by 100 tasks of one worker: more must be inside at once than there
 * are workers, by far, and get what they get one after the other. (On a busy machine the first ends before the last
 * begins.) libraries AT [TASKS [WORKERS]]; which: -DWITH_PQ, -DWITH_REDIS, -DWITH_CURL.
 */
#define _GNU_SOURCE
#include "../sched/check.h"

#include <time.h>
#include <weft/io.h>

enum { MOST = 100, ROOM = 64 };

static const char *at;
static int tasks = MOST;
static unsigned inside, most_inside;
static void *connections[MOST];
static char answers[2][MOST][ROOM];

#if defined(WITH_PQ)
#include <libpq-fe.h>

static void *open_one(int i)
{
	PGconn *c = PQconnectdb(at);

	(void)i;
	if (PQstatus(c) != CONNECTION_OK)
		dprintf(2, "%s", PQerrorMessage(c));
	CHECK(PQstatus(c) == CONNECTION_OK);
	return c;
}

static void ask_one(void *c, int i, char *answer)
{
	char text[80];
	PGresult *r;

	snprintf(text, sizeof text, "select %d * %d, pg_sleep(0.02)", i, i);
	r = PQexec(c, text);
	CHECK(PQresultStatus(r) == PGRES_TUPLES_OK);
	snprintf(answer, ROOM, "%s", PQgetvalue(r, 0, 0));
	PQclear(r);
}

static void close_one(void *c)
{
	PQfinish(c);
}
#elif defined(WITH_REDIS)
#include <hiredis/hiredis.h>

static void *open_one(int i)
{
	redisContext *c = redisConnectUnix(at);

	(void)i;
	CHECK(c && !c->err);
	return c;
}

static void ask_one(void *c, int i, char *answer)
{
	redisReply *r = redisCommand(c, "SET key%d %d", i, i * i);

	CHECK(r && r->type == REDIS_REPLY_STATUS);
	freeReplyObject(r);
	r = redisCommand(c, "BLPOP none%d 0.02", i);
	CHECK(r && r->type == REDIS_REPLY_NIL);
	freeReplyObject(r);
	r = redisCommand(c, "GET key%d", i);
	CHECK(r && r->type == REDIS_REPLY_STRING);
	snprintf(answer, ROOM, "%s", r->str);
	freeReplyObject(r);
}

static void close_one(void *c)
{
	redisFree(c);
}
#else
#include <curl/curl.h>

static void *open_one(int i)
{
	CURL *c = curl_easy_init();

	(void)i;
	CHECK(c);
	return c;
}

static size_t keep(char *data, size_t one, size_t count, void *answer)
{
	snprintf(answer, ROOM, "%.*s", (int)count, data);
	return one * count;
}

static void ask_one(void *c, int i, char *answer)
{
	char text[200];

	snprintf(text, sizeof text, "%s/%d", at, i);
	curl_easy_setopt(c, CURLOPT_URL, text);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	CHECK(curl_easy_perform(c) == CURLE_OK);
}

static void close_one(void *c)
{
	curl_easy_cleanup(c);
}
#endif

static void *open_in_task(void *number)
{
	connections[(intptr_t)number] = open_one((int)(intptr_t)number);
	return NULL;
}

static void *ask_in_task(void *number)
{
	int i = (int)(intptr_t)number;
	unsigned now = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
	unsigned most = __atomic_load_n(&most_inside, __ATOMIC_RELAXED);

	while (most < now &&
	       !__atomic_compare_exchange_n(&most_inside, &most, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	ask_one(connections[i], i, answers[1][i]);
	__atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
	return NULL;
}

static double milliseconds(void)
{
	return (double)weft_now() / 1e6;
}

static void for_each(weft_fn_t *fn)
{
	intptr_t i;

	WEFT_SCOPE(scope);
	for (i = 0; i < tasks; i++)
		CHECK(weft_scope_spawn(&scope, fn, (void *)i) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
}

static void *all(void *pass)
{
	double begin;

	for_each(open_in_task);
	begin = milliseconds();
	for_each(ask_in_task);
	printf("%d at once, %s: %.1f ms\n", tasks, weft_io_backend(), milliseconds() - begin);
	return pass;
}

int main(int argc, char **argv)
{
	weft_rt_config_t config = {.workers = argc > 3 ? (unsigned)atoi(argv[3]) : 1};
	double begin;
	void *result;
	int i;

	CHECK(argc > 1);
	at = argv[1];
	tasks = argc > 2 ? atoi(argv[2]) : MOST;
	CHECK(weft_rt_run(&config, all, &config, &result) == 0 && result == &config);
	begin = milliseconds();
	for (i = 0; i < tasks; i++)
		ask_one(connections[i], i, answers[0][i]);
	printf("%d one by one: %.1f ms\n", tasks, milliseconds() - begin);
	for (i = 0; i < tasks; i++) {
		CHECK(answers[0][i][0] && !strcmp(answers[0][i], answers[1][i]));
		close_one(connections[i]);
	}
	if (most_inside <= config.workers || most_inside < (unsigned)tasks / 10) {
		printf("not ok - only %u of %d were inside the library at once\n", most_inside, tasks);
		return 1;
	}
	return 0;
}
