/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * SQLite as an engine of the host. A script is SQL; each statement is written with its rows, or its error. Lines that
 * begin with a dot, between statements, are ours:
 *   .open FILE          close the database and open that file in the run's directory, or :memory:
 *   .deep KIND N        a generated statement, N deep or N long: see sqlite_deep.c
 *   .damage FILE AT N   overwrite N bytes of a file
 *   .quiet, .loud       write only how many rows there were; write them
 *   .progress N         pause every N instructions of the virtual machine (0: never)
 *   .deny TABLE         let the authorizer refuse that table (-: none)
 * Functions, collations and tables of our own: sqlite_functions.c. Connections use no mutex, so that they may be
 * suspended and continue in another thread.
 */
#include "sqlite_engine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char engine_name[] = "sqlite";

void engine_start(void)
{
	if (sqlite3_initialize())
		abort();
}

/* ---- statements ---- */

static void write_value(struct run *run, sqlite3_stmt *statement, int column)
{
	switch (sqlite3_column_type(statement, column)) {
	case SQLITE_NULL:
		run_write(run, "NULL", 4);
		break;
	case SQLITE_BLOB:
		run_printf(run, "blob(%d)", sqlite3_column_bytes(statement, column));
		break;
	default:
		run_write(run, (const char *)sqlite3_column_text(statement, column),
			  (size_t)sqlite3_column_bytes(statement, column));
	}
}

static void write_row(struct run *run, sqlite3_stmt *statement)
{
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		if (i)
			run_write(run, "|", 1);
		write_value(run, statement, i);
	}
	run_write(run, "\n", 1);
}

static int execute(struct session *s, sqlite3_stmt *statement)
{
	int code, rows = 0;

	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		rows++;
		if (!s->quiet)
			write_row(s->run, statement);
	}
	if (s->quiet)
		run_printf(s->run, "%d rows\n", rows);
	return code;
}

static void write_error(struct session *s, int code)
{
	run_printf(s->run, "error %d/%d: %.300s\n", code, sqlite3_extended_errcode(s->db), sqlite3_errmsg(s->db));
}

void run_sql(struct session *s, const char *sql)
{
	sqlite3_stmt *statement;
	const char *rest;
	int code;

	for (; *sql; sql = rest) {
		code = sqlite3_prepare_v2(s->db, sql, -1, &statement, &rest);
		if (code) {
			write_error(s, code);
			return;
		}
		if (!statement)
			continue;
		code = execute(s, statement);
		if (code != SQLITE_DONE)
			write_error(s, code);
		sqlite3_finalize(statement);
	}
}

/* ---- lines of our own ---- */

static void path_in(const struct session *s, char *path, size_t size, const char *name)
{
	if (*name == ':')
		snprintf(path, size, "%s", name);
	else
		snprintf(path, size, "%s/%s", s->run->directory, name);
}

static int on_progress(void *data)
{
	struct session *s = (struct session *)data;

	run_pause(s->run);
	return 0;
}

static int authorize(void *data, int action, const char *a, const char *b, const char *c, const char *d)
{
	struct session *s = (struct session *)data;

	(void)b, (void)c, (void)d;
	s->authorized++;
	return action == SQLITE_READ && a && !strcmp(a, s->denied) ? SQLITE_DENY : SQLITE_OK;
}

static void on_update(void *data, int action, const char *database, const char *table, sqlite3_int64 row)
{
	struct session *s = (struct session *)data;

	(void)database, (void)table;
	s->updates = s->updates * 31 + (unsigned)action + (unsigned)row;
}

static void close_database(struct session *s)
{
	int code = sqlite3_close(s->db);

	if (code)
		run_printf(s->run, "close: %d\n", code);
	s->db = NULL;
}

static void open_database(struct session *s, const char *name)
{
	char path[500];
	int code;

	if (s->db)
		close_database(s);
	path_in(s, path, sizeof(path), name);
	code = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (code || add_functions(s)) {
		run_printf(s->run, "open: %d\n", code);
		s->run->failed = 1;
		return;
	}
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_set_authorizer(s->db, authorize, s);
	(void)sqlite3_update_hook(s->db, on_update, s);
}

static void damage(struct session *s, const char *name, long at, int length)
{
	char path[500];
	FILE *file;

	path_in(s, path, sizeof(path), name);
	file = fopen(path, "r+b");
	if (!file || fseek(file, at, SEEK_SET)) {
		run_printf(s->run, "no file\n");
		return;
	}
	for (int i = 0; i < length; i++)
		fputc(i * 73 + 11, file);
	fclose(file);
}

static void command(struct session *s, const char *line)
{
	char word[40] = "", name[60] = "";
	int a = 0, b = 0;

	sscanf(line, ".%39s %59s %d %d", word, name, &a, &b);
	if (!strcmp(word, "open"))
		open_database(s, name);
	else if (!strcmp(word, "deep"))
		run_deep(s, name, a);
	else if (!strcmp(word, "damage"))
		damage(s, name, a, b);
	else if (!strcmp(word, "quiet") || !strcmp(word, "loud"))
		s->quiet = *word == 'q';
	else if (!strcmp(word, "progress"))
		sqlite3_progress_handler(s->db, atoi(name), atoi(name) ? on_progress : NULL, s);
	else if (!strcmp(word, "deny"))
		snprintf(s->denied, sizeof(s->denied), "%s", name);
	else {
		run_printf(s->run, "unknown command %s\n", line);
		s->run->failed = 1;
	}
}

/* ---- scripts ---- */

static char *read_script(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = NULL;
	size_t length = 0, room = 0;
	ssize_t got;

	if (!file)
		return NULL;
	got = getdelim(&text, &room, 0, file);
	length = got > 0 ? (size_t)got : 0;
	fclose(file);
	if (text)
		text[length] = 0;
	return text;
}

/* Runs the statements, which end with a semicolon as the last character of a line (and must be complete, for
 * triggers). */
static void run_text(struct session *s, char *text)
{
	char *begin = text, *line = text, *end;

	for (; line && *line && !s->run->failed; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = 0;
		if (line == begin && (*line == '.' || !*line || !strncmp(line, "--", 2))) {
			if (*line == '.') {
				run_printf(s->run, "%s\n", line);
				command(s, line);
			}
			begin = end;
		} else if (sqlite3_complete(begin)) {
			run_printf(s->run, "> %.100s\n", begin);
			run_sql(s, begin);
			begin = end;
		} else if (end) {
			end[-1] = '\n';
		}
	}
}

void engine_run(struct run *run)
{
	struct session s = {.run = run, .denied = "-"};
	char *text = read_script(run->script);

	if (!text) {
		run_printf(run, "cannot read the script\n");
		run->failed = 1;
		return;
	}
	open_database(&s, ":memory:");
	run_text(&s, text);
	run_printf(run, "%u authorized, updates %u\n", s.authorized, s.updates);
	close_database(&s);
	free(text);
}
