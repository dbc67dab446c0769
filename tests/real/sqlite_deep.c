/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generated SQL: much deeper or longer than handwritten SQL. */
#include "sqlite_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* head, `open` n times, middle, `close` n times, tail. In `open` and `close`, each # is replaced by the level. */
static const struct nest {
	const char *kind, *head, *open, *middle, *close, *tail;
} nests[] = {
    {"parentheses", "SELECT ", "(", "1", ")", ""},
    {"sum", "SELECT 1", "+1", "", "", ""},
    {"right", "SELECT ", "1+(", "0", ")", ""},
    {"not", "SELECT ", "NOT ", "1", "", ""},
    {"minus", "SELECT ", "- ", "1", "", ""},
    {"concat", "SELECT length('a'", "||'a'", "", "", ")"},
    {"and", "SELECT count(*) FROM item WHERE id > 0", " AND id <> -#", "", "", ""},
    {"or", "SELECT count(*) FROM item WHERE id = 0", " OR id = #", "", "", ""},
    {"case", "SELECT ", "CASE WHEN 1=0 THEN 0 ELSE ", "7", " END", ""},
    {"function", "SELECT ", "abs(", "-5", ")", ""},
    {"own", "SELECT ", "pause(", "9", ")", ""},
    {"subquery", "SELECT ", "(SELECT ", "3", ")", ""},
    {"exists", "SELECT ", "EXISTS(SELECT 1 WHERE ", "1", ")", ""},
    {"from", "SELECT * FROM ", "(SELECT * FROM ", "(SELECT 4)", ")", ""},
    {"in", "SELECT 5 IN (-1", ",#", "", "", ")"},
    {"union", "SELECT 0", " UNION ALL SELECT #", "", "", ""},
    {"except", "SELECT 0", " EXCEPT SELECT #", "", "", ""},
    {"values", "INSERT INTO scratch VALUES (0)", ",(#)", "", "", ""},
    {"columns", "SELECT 0", ", # AS c#", "", "", ""},
    {"join", "SELECT count(*) FROM (SELECT 1) AS t", " JOIN (SELECT # AS x) AS t#", "", "", ""},
    {"with", "WITH c0 AS (SELECT 1 AS x)", ", c# AS (SELECT x + 1 AS x FROM c0)", " SELECT count(*) FROM c0", "", ""},
    {"json", "SELECT json_type('", "[", "1", "]", "', '$[0]')"},
    {"object", "SELECT length(json('", "{\"a\":", "1", "}", "'))"},
    {"bad", "SELECT ", "(", "1 +", ")", ""},
    {"run", "SELECT ", "run('SELECT 1 + ' || ", "'1'", ")", ""},
};

struct text {
	char *bytes;
	size_t length, room;
};

static void add(struct text *text, const char *template, int level)
{
	char number[12];
	size_t most = strlen(template) * sizeof(number) + 1;

	if (text->room - text->length < most) {
		text->room = 2 * text->room + most + 1000;
		text->bytes = (char *)realloc(text->bytes, text->room);
		if (!text->bytes)
			abort();
	}
	snprintf(number, sizeof(number), "%d", level);
	for (; *template; template ++) {
		const char *piece = *template == '#' ? number : template;
		size_t length = *template == '#' ? strlen(number) : 1;

		memcpy(text->bytes + text->length, piece, length);
		text->length += length;
	}
	text->bytes[text->length] = 0;
}

/* Views on views, and triggers that fire each other: N statements, and a statement that uses them all. */
static void chain(struct session *s, const char *kind, int n)
{
	char sql[300];

	for (int i = 1; i <= n; i++) {
		if (*kind == 'v') {
			snprintf(sql, sizeof(sql), "CREATE TEMP VIEW v%d AS SELECT x + 1 AS x FROM v%d", i, i - 1);
			if (i == 1)
				run_sql(s, "CREATE TEMP VIEW v0 AS SELECT 0 AS x");
		} else {
			snprintf(sql, sizeof(sql),
				 "CREATE TEMP TABLE c%d(x); CREATE TEMP TRIGGER g%d AFTER INSERT ON c%d BEGIN "
				 "INSERT INTO c%d VALUES (new.x + 1); END",
				 i, i, i, i - 1);
			if (i == 1)
				run_sql(s, "CREATE TEMP TABLE c0(x)");
		}
		run_sql(s, sql);
	}
	snprintf(sql, sizeof(sql), *kind == 'v' ? "SELECT x FROM v%d" : "INSERT INTO c%d VALUES (0); SELECT x FROM c0",
		 n);
	run_sql(s, sql);
}

void run_deep(struct session *s, const char *kind, int n)
{
	const struct nest *nest = nests, *end = nests + sizeof(nests) / sizeof(nests[0]);
	struct text text = {0};

	while (nest < end && strcmp(nest->kind, kind))
		nest++;
	if (nest == end) {
		chain(s, kind, n);
		return;
	}
	add(&text, nest->head, 0);
	for (int i = 1; i <= n; i++)
		add(&text, nest->open, i);
	add(&text, nest->middle, 0);
	for (int i = n; i >= 1; i--)
		add(&text, nest->close, i);
	add(&text, nest->tail, 0);
	run_sql(s, text.bytes);
	free(text.bytes);
}
