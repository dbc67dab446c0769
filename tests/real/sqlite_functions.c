/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions that SQLite calls back:
 *   pause(x)            suspends the run; x
 *   run(sql)            runs a statement on the same connection; its first value
 *   below(n, sql)       the same, n frames of C further down
 *   fail(x, message)    an error if x is true, else x
 *   squares(x)          aggregate and window function: the sum of squares
 *   joined(x, …)        any number of arguments, joined to a text
 *   BACKWARDS, PAUSING  collations
 *   primes(most)        a table: the primes up to `most`
 */
#include "sqlite_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct session *session_of(sqlite3_context *context)
{
	return (struct session *)sqlite3_user_data(context);
}

static void f_pause(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	run_pause(session_of(context)->run);
	sqlite3_result_value(context, values[0]);
}

static void first_value(sqlite3_context *context, const char *sql)
{
	sqlite3 *db = session_of(context)->db;
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(db, sql ? sql : "", -1, &statement, NULL);

	if (!code && statement)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		sqlite3_result_value(context, sqlite3_column_value(statement, 0));
	else if (code && code != SQLITE_DONE)
		sqlite3_result_error(context, sqlite3_errmsg(db), -1);
	sqlite3_finalize(statement);
}

static void f_run(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	first_value(context, (const char *)sqlite3_value_text(values[0]));
}

static __attribute__((noinline)) int go_below(sqlite3_context *context, int n, const char *sql)
{
	volatile char frame[64 + 16 * (n % 8)];

	frame[0] = (char)n;
	if (n > 0)
		return go_below(context, n - 1, sql) + (frame[0] == (char)n);
	first_value(context, sql);
	return 0;
}

static void f_below(sqlite3_context *context, int count, sqlite3_value **values)
{
	int n = sqlite3_value_int(values[0]);

	(void)count;
	if (go_below(context, n, (const char *)sqlite3_value_text(values[1])) != n)
		sqlite3_result_error(context, "a frame was overwritten", -1);
}

static void f_fail(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	if (sqlite3_value_int(values[0]))
		sqlite3_result_error(context, (const char *)sqlite3_value_text(values[1]), -1);
	else
		sqlite3_result_value(context, values[0]);
}

static void f_joined(sqlite3_context *context, int count, sqlite3_value **values)
{
	sqlite3_str *text = sqlite3_str_new(NULL);

	for (int i = 0; i < count; i++) {
		int type = sqlite3_value_type(values[i]); /* before a conversion changes it */
		double number = sqlite3_value_double(values[i]);

		sqlite3_str_appendf(text, "%s%q:%5.2f:%d", i ? "," : "", sqlite3_value_text(values[i]), number, type);
	}
	sqlite3_result_text(context, sqlite3_str_finish(text), -1, sqlite3_free);
}

static void squares_add(sqlite3_context *context, sqlite3_value **values, int sign)
{
	double *sum = (double *)sqlite3_aggregate_context(context, sizeof(*sum)), x = sqlite3_value_double(values[0]);

	*sum += sign * x * x;
}

static void squares_step(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	squares_add(context, values, 1);
}

static void squares_inverse(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	squares_add(context, values, -1);
}

static void squares_value(sqlite3_context *context)
{
	double *sum = (double *)sqlite3_aggregate_context(context, sizeof(*sum));

	sqlite3_result_double(context, sum ? *sum : 0);
}

static int backwards(void *data, int a, const void *left, int b, const void *right)
{
	int order = memcmp(right, left, (size_t)(a < b ? a : b));

	(void)data;
	return order ? order : b - a;
}

static int pausing(void *data, int a, const void *left, int b, const void *right)
{
	run_pause(((struct session *)data)->run);
	return -backwards(NULL, a, left, b, right);
}

/* ---- primes(most) ---- */

struct primes_cursor {
	sqlite3_vtab_cursor base;
	int most, at;
};

static int primes_connect(sqlite3 *db, void *data, int count, const char *const *words, sqlite3_vtab **table,
			  char **error)
{
	(void)data, (void)count, (void)words, (void)error;
	*table = (sqlite3_vtab *)sqlite3_malloc(sizeof(**table));
	if (!*table)
		return SQLITE_NOMEM;
	memset(*table, 0, sizeof(**table));
	return sqlite3_declare_vtab(db, "CREATE TABLE x(value, most HIDDEN)");
}

static int primes_disconnect(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

static int primes_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	for (int i = 0; i < info->nConstraint; i++)
		if (info->aConstraint[i].iColumn == 1 && info->aConstraint[i].usable) {
			info->aConstraintUsage[i].argvIndex = 1;
			info->aConstraintUsage[i].omit = 1;
			info->estimatedCost = 100;
			return SQLITE_OK;
		}
	return SQLITE_CONSTRAINT;
}

static int primes_open(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
	(void)table;
	*cursor = (sqlite3_vtab_cursor *)sqlite3_malloc(sizeof(struct primes_cursor));
	return *cursor ? SQLITE_OK : SQLITE_NOMEM;
}

static int primes_close(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int primes_next(sqlite3_vtab_cursor *cursor)
{
	struct primes_cursor *c = (struct primes_cursor *)cursor;
	int divisor;

	do {
		c->at++;
		for (divisor = 2; divisor * divisor <= c->at && c->at % divisor; divisor++)
			;
	} while (divisor * divisor <= c->at);
	return SQLITE_OK;
}

static int primes_filter(sqlite3_vtab_cursor *cursor, int number, const char *name, int count, sqlite3_value **values)
{
	struct primes_cursor *c = (struct primes_cursor *)cursor;

	(void)number, (void)name;
	c->most = count ? sqlite3_value_int(values[0]) : 0;
	c->at = 1;
	return primes_next(cursor);
}

static int primes_eof(sqlite3_vtab_cursor *cursor)
{
	const struct primes_cursor *c = (const struct primes_cursor *)cursor;

	return c->at > c->most;
}

static int primes_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
	const struct primes_cursor *c = (const struct primes_cursor *)cursor;

	sqlite3_result_int(context, column ? c->most : c->at);
	return SQLITE_OK;
}

static int primes_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *row)
{
	*row = ((const struct primes_cursor *)cursor)->at;
	return SQLITE_OK;
}

static const sqlite3_module primes = {
    .xConnect = primes_connect,
    .xBestIndex = primes_best_index,
    .xDisconnect = primes_disconnect,
    .xOpen = primes_open,
    .xClose = primes_close,
    .xFilter = primes_filter,
    .xNext = primes_next,
    .xEof = primes_eof,
    .xColumn = primes_column,
    .xRowid = primes_rowid,
};

/* ---- all of them ---- */

static const struct {
	const char *name;
	int arguments;
	void (*function)(sqlite3_context *, int, sqlite3_value **);
} functions[] = {
    {"pause", 1, f_pause}, {"run", 1, f_run}, {"below", 2, f_below}, {"fail", 2, f_fail}, {"joined", -1, f_joined},
};

int add_functions(struct session *s)
{
	int code = 0;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]) && !code; i++)
		code = sqlite3_create_function(s->db, functions[i].name, functions[i].arguments, SQLITE_UTF8, s,
					       functions[i].function, NULL, NULL);
	if (!code)
		code = sqlite3_create_window_function(s->db, "squares", 1, SQLITE_UTF8, s, squares_step, squares_value,
						      squares_value, squares_inverse, NULL);
	if (!code)
		code = sqlite3_create_collation(s->db, "BACKWARDS", SQLITE_UTF8, s, backwards);
	if (!code)
		code = sqlite3_create_collation(s->db, "PAUSING", SQLITE_UTF8, s, pausing);
	return code ? code : sqlite3_create_module(s->db, "primes", &primes, s);
}
