/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the parts of the SQLite engine share. */
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

/* Each statement of `sql` in turn; what it yields goes to the run. */
void run_sql(struct session *s, const char *sql);

/* Generate a statement of that kind and size, and run it. */
void run_deep(struct session *s, const char *kind, int n);

/* Functions, aggregates, collations and modules of our own. Not 0: failed. */
int add_functions(struct session *s);

#endif /* TESTS_REAL_SQLITE_ENGINE_H */
