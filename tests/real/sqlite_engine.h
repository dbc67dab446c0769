/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the parts of the SQLite engine. */
#ifndef TESTS_REAL_SQLITE_ENGINE_H
#define TESTS_REAL_SQLITE_ENGINE_H

#include "host.h"

#include <sqlite3.h>

struct session {
	struct run *run;
	sqlite3 *db;
	int quiet;
	unsigned authorized, updates;
	char denied[60];
};

/* Runs each statement of `sql` in turn, and writes its results to the run. */
void run_sql(struct session *s, const char *sql);

/* Generate a statement of that kind and size, and run it. */
void run_deep(struct session *s, const char *kind, int n);

/* Adds our functions, aggregates, collations and modules. Returns nonzero on failure. */
int add_functions(struct session *s);

#endif /* TESTS_REAL_SQLITE_ENGINE_H */
