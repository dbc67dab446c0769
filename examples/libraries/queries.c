/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A hundred queries that each take 20 ms, by unmodified libpq, on one thread. queries CONNECTION
 *
 *   ./weft run --posix examples/libraries/queries.c -I/usr/include/postgresql -lpq -- "host=/tmp dbname=postgres"
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/sched.h>

enum { QUERIES = 100 };

static const char *where;
static PGconn *connections[QUERIES];
static int sum;

/* doc: begin query */
static void *connect_to_it(void *number)
{
	PGconn **c = &connections[(long)number];

	*c = PQconnectdb(where);
	if (PQstatus(*c) != CONNECTION_OK) {
		fprintf(stderr, "%s", PQerrorMessage(*c));
		weft_task_fail(-ECONNREFUSED);
	}
	return NULL;
}

static void *query(void *number)
{
	const char *const values[] = {(char[16]){0}};
	PGresult *r;

	snprintf((char *)values[0], 16, "%ld", (long)number);
	r = PQexecParams(connections[(long)number], "select $1::int, pg_sleep(0.02)", 1, NULL, values, NULL, NULL, 0);
	if (PQresultStatus(r) == PGRES_TUPLES_OK)
		sum += atoi(PQgetvalue(r, 0, 0));
	PQclear(r);
	return NULL;
}
/* doc: end query */

/* doc: begin all */
static void at_once(weft_fn_t *fn)
{
	long i;

	WEFT_SCOPE(scope);
	for (i = 0; i < QUERIES; i++)
		if (weft_scope_spawn(&scope, fn, (void *)i))
			weft_scope_cancel(&scope, -ENOMEM);
	if (weft_scope_wait(&scope))
		weft_task_fail(-ECONNREFUSED);
}

static void *all(void *unused)
{
	uint64_t begin;

	at_once(connect_to_it);
	begin = weft_now();
	at_once(query);
	printf("sum %d, after %d ms\n", sum, (int)((weft_now() - begin) / 1000000));
	return unused;
}
/* doc: end all */

int main(int argc, char **argv)
{
	weft_rt_config_t config = {.workers = 1};
	int i, error;

	where = argc > 1 ? argv[1] : "";
	error = weft_rt_run(&config, all, NULL, NULL);
	for (i = 0; i < QUERIES; i++)
		PQfinish(connections[i]);
	return error != 0;
}
