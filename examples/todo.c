/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * todo.c: a list of things to do, kept by SQLite, with a page that shows it and an interface that speaks JSON.
 *
 *   sudo apt-get install --no-install-recommends libsqlite3-dev
 *   ./weft run examples/todo.c -lsqlite3 -- [PORT [FILE]]	[8080 todo.db]; then open http://127.0.0.1:8080/
 *
 *   GET    /todos       [{"id": 1, "text": "buy bread", "done": false}, …]
 *   POST   /todos       {"text": "buy bread"}; 201 and the new item
 *   PATCH  /todos/1     {"done": true}; 200 and the changed item
 *   DELETE /todos/1     204
 *
 * SQLite blocks its thread, so each statement runs on a helper thread, and other requests are served meanwhile. It also
 * reads and writes the JSON. SIGINT and SIGTERM end the program.
 */
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/http.h>
#include <weft/sync.h>

enum { BODY_MOST = 4096, ID_MOST = 20 };

#define SECOND 1000000000ull

/* ---- statements -------------------------------------------------------------------------------------------------- */

#define SCHEMA                                                                                                         \
	"PRAGMA journal_mode = WAL;"                                                                                   \
	"CREATE TABLE IF NOT EXISTS todo (id INTEGER PRIMARY KEY, text TEXT NOT NULL, done INTEGER NOT NULL DEFAULT "  \
	"0)"
#define OBJECT "json_object('id', id, 'text', text, 'done', json(iif(done, 'true', 'false')))"
#define VALID_TEXT                                                                                                     \
	"CASE WHEN json_valid(?1) THEN json_type(?1, '$.text') = 'text'"                                               \
	" AND length(trim(json_extract(?1, '$.text'))) BETWEEN 1 AND 500 END"
#define VALID_DONE "CASE WHEN json_valid(?1) THEN json_type(?1, '$.done') IN ('true', 'false') END"

enum { LIST, FIND, ADD, CHECK_OFF, REMOVE, STATEMENTS };

/* ?1 is the request's body, ?2 the id. Each returns at most one row, of one column. */
static const char *const statements[STATEMENTS] = {
    [LIST] = "SELECT json_group_array(" OBJECT ") FROM (SELECT * FROM todo ORDER BY id)",
    [FIND] = "SELECT id FROM todo WHERE id = ?2",
    [ADD] = "INSERT INTO todo (text) SELECT trim(json_extract(?1, '$.text')) WHERE " VALID_TEXT " RETURNING " OBJECT,
    [CHECK_OFF] =
	"UPDATE todo SET done = json_extract(?1, '$.done') WHERE id = ?2 AND " VALID_DONE " RETURNING " OBJECT,
    [REMOVE] = "DELETE FROM todo WHERE id = ?2 RETURNING id",
};

static struct todo {
	sqlite3 *database;
	sqlite3_stmt *prepared[STATEMENTS];
	weft_mutex_t lock; /* because only one task at a time may use a prepared statement */
	weft_http_server_t *server;
	int listener;
	sigset_t signals;
} todo;

struct query {
	int statement;
	char body[BODY_MOST], id[ID_MOST];
	ssize_t length; /* bytes of the body */
	char *row;	/* the result, which the caller frees; NULL: there is none */
	int error;	/* code of SQLite */
};

/* On the thread's own stack, because SQLite needs more than a task may have. */
static void *step(void *query)
{
	struct query *q = query;
	sqlite3_stmt *s = todo.prepared[q->statement];
	int count = sqlite3_bind_parameter_count(s);

	if (count >= 1)
		sqlite3_bind_text(s, 1, q->body, (int)q->length, SQLITE_STATIC);
	if (count >= 2)
		sqlite3_bind_int64(s, 2, atoll(q->id));
	while ((q->error = sqlite3_step(s)) == SQLITE_ROW)
		if (!q->row)
			q->row = strdup((const char *)sqlite3_column_text(s, 0));
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return NULL;
}

/* doc: begin run_query */
static void unlock(weft_mutex_t *lock)
{
	weft_mutex_unlock(lock);
}

/* Returns true if there is a row. */
static bool run_query(struct query *q, int statement)
{
	q->statement = statement;
	if (weft_mutex_lock(&todo.lock))
		return false;
	weft_defer(unlock, &todo.lock);
	weft_blocking
	{
		weft_ffi_on_system_stack(step, q);
	}
	return q->row;
}
/* doc: end run_query */

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void free_row(struct query *q)
{
	free(q->row);
}

/* Answers with the row, or with an error if there is none. */
static void reply(weft_http_t *http, struct query *q, int found, int missing)
{
	if (q->error != SQLITE_DONE)
		weft_http_reply(http, 500, NULL, NULL, 0);
	else if (!q->row)
		weft_http_reply(http, missing, NULL, NULL, 0);
	else if (found == 204)
		weft_http_reply(http, 204, NULL, NULL, 0);
	else
		weft_http_reply(http, found, "application/json", q->row, strlen(q->row));
}

/* Other content types are refused, because pages of other sites can send them without a preflight. Returns false if it
 * has answered with an error. */
static bool read_json(weft_http_t *http, struct query *q)
{
	weft_http_text_t type = weft_http_header(http, "Content-Type");

	if (type.length < 16 || strncasecmp(type.data, "application/json", 16) != 0) {
		weft_http_reply(http, 415, NULL, NULL, 0);
		return false;
	}
	q->length = weft_http_read_all(http, q->body, sizeof q->body);
	if (q->length == -EMSGSIZE)
		weft_http_reply(http, 413, NULL, NULL, 0);
	return q->length >= 0;
}

/* Reads the id from the path. Returns false if it is no number; then an error has been sent. */
static bool read_id(weft_http_t *http, struct query *q)
{
	weft_http_text_t id = weft_http_param(http, "id");

	snprintf(q->id, sizeof q->id, "%.*s", (int)id.length, id.data);
	if (id.length && id.length < 19 && strspn(q->id, "0123456789") == id.length)
		return true;
	weft_http_reply(http, 404, NULL, NULL, 0);
	return false;
}

static void list(weft_http_t *http, void *unused)
{
	struct query q = {.row = unused};

	weft_defer(free_row, &q);
	run_query(&q, LIST);
	reply(http, &q, 200, 500);
}

static void add(weft_http_t *http, void *unused)
{
	struct query q = {.row = unused};

	weft_defer(free_row, &q);
	if (!read_json(http, &q))
		return;
	run_query(&q, ADD);
	reply(http, &q, 201, 400);
}

static void check_off(weft_http_t *http, void *unused)
{
	struct query q = {.row = unused};

	weft_defer(free_row, &q);
	if (!read_id(http, &q) || !read_json(http, &q))
		return;
	if (run_query(&q, CHECK_OFF) || q.error != SQLITE_DONE)
		reply(http, &q, 200, 500);
	else if (run_query(&q, FIND)) /* the item exists, so the body was wrong */
		weft_http_reply(http, 400, NULL, NULL, 0);
	else
		reply(http, &q, 200, 404);
}

static void discard(weft_http_t *http, void *unused)
{
	struct query q = {.row = unused};

	weft_defer(free_row, &q);
	if (!read_id(http, &q))
		return;
	run_query(&q, REMOVE);
	reply(http, &q, 204, 404);
}

static void show(weft_http_t *http, void *unused)
{
	static const char page[] =
	    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\n"
	    "<title>To do</title>\n"
	    "<style>body{font:16px/1.5 sans-serif;max-width:30em;margin:2em auto;padding:0 1em}"
	    "ul{list-style:none;padding:0}li{display:flex;gap:.5em;align-items:center;padding:.2em 0}"
	    "li span{flex:1;overflow-wrap:anywhere}.done span{text-decoration:line-through;color:#666}"
	    "form{display:flex;gap:.5em}input[name=text]{flex:1;font:inherit}button{font:inherit}</style>\n"
	    "<h1>To do</h1><form><input name=text aria-label='What' required maxlength=500 autofocus>"
	    "<button>Add</button></form><ul></ul><p role=status></p>\n"
	    "<script>\n"
	    "const list = document.querySelector('ul'), form = document.querySelector('form');\n"
	    "async function ask(method, path, body) {\n"
	    "  const r = await fetch('/todos' + path, {method, body: body && JSON.stringify(body),\n"
	    "    headers: body ? {'Content-Type': 'application/json'} : {}});\n"
	    "  document.querySelector('p').textContent = r.ok ? '' : `${method}: ${r.status} ${r.statusText}`;\n"
	    "  return r.status == 200 || r.status == 201 ? r.json() : null;\n"
	    "}\n"
	    "function entry(todo) {\n"
	    "  const li = document.createElement('li'), box = document.createElement('input'),\n"
	    "    text = document.createElement('span'), remove = document.createElement('button');\n"
	    "  box.type = 'checkbox'; box.checked = todo.done; text.textContent = todo.text;\n"
	    "  box.ariaLabel = todo.text; remove.textContent = 'Delete';\n"
	    "  li.className = todo.done ? 'done' : '';\n"
	    "  box.onchange = async () => { await ask('PATCH', '/' + todo.id, {done: box.checked}); show(); };\n"
	    "  remove.onclick = async () => { await ask('DELETE', '/' + todo.id); show(); };\n"
	    "  li.append(box, text, remove);\n"
	    "  return li;\n"
	    "}\n"
	    "async function show() { list.replaceChildren(...(await ask('GET', '') ?? []).map(entry)); }\n"
	    "form.onsubmit = async e => {\n"
	    "  e.preventDefault(); await ask('POST', '', {text: form.text.value}); form.reset(); show();\n"
	    "};\n"
	    "show();\n"
	    "</script>\n";

	(void)unused;
	weft_http_reply(http, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static bool open_database(const char *file)
{
	bool ok = sqlite3_open(file, &todo.database) == SQLITE_OK &&
		  sqlite3_exec(todo.database, SCHEMA, NULL, NULL, NULL) == SQLITE_OK;

	sqlite3_busy_timeout(todo.database, 2000);
	for (int i = 0; ok && i < STATEMENTS; i++)
		ok = sqlite3_prepare_v2(todo.database, statements[i], -1, &todo.prepared[i], NULL) == SQLITE_OK;
	if (!ok)
		fprintf(stderr, "todo: %s: %s\n", file, sqlite3_errmsg(todo.database));
	return ok;
}

static void close_database(void)
{
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(todo.prepared[i]);
	sqlite3_close(todo.database);
}

static int add_routes(void)
{
	static const struct {
		const char *pattern;
		weft_http_handler_t *handler;
	} routes[] = {{"GET /", show},
		      {"GET /todos", list},
		      {"POST /todos", add},
		      {"PATCH /todos/:id", check_off},
		      {"DELETE /todos/:id", discard}};
	int error = 0;

	for (size_t i = 0; !error && i < sizeof routes / sizeof *routes; i++)
		error = weft_http_route(todo.server, routes[i].pattern, routes[i].handler, NULL);
	return error;
}

static void *serve(void *unused)
{
	int error = weft_http_serve(todo.server, todo.listener);

	if (error)
		weft_task_fail(error);
	return unused;
}

static void *run(void *port)
{
	int error = weft_http_open(&todo.server, NULL);

	if (!error)
		error = add_routes();
	todo.listener = error ? error : weft_listen("127.0.0.1", (unsigned)atoi(port), 0, 0);
	if (todo.listener < 0) {
		fprintf(stderr, "todo: port %s: %s\n", (char *)port, strerror(-todo.listener));
		weft_task_fail(todo.listener);
	}
	printf("http://127.0.0.1:%d/\n", weft_port(todo.listener));
	fflush(stdout);
	WEFT_SCOPE(scope);
	error = weft_scope_spawn(&scope, serve, NULL);
	if (!error)
		weft_sigwait(&todo.signals, NULL);
	weft_http_stop(todo.server, weft_now() + 5 * SECOND);
	weft_scope_wait(&scope);
	weft_http_close(todo.server);
	weft_close(todo.listener);
	return NULL;
}

int main(int argc, char **argv)
{
	int error;

	sigemptyset(&todo.signals);
	sigaddset(&todo.signals, SIGINT);
	sigaddset(&todo.signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &todo.signals, NULL);
	if (!open_database(argc > 2 ? argv[2] : "todo.db"))
		return 1;
	error = weft_rt_run(NULL, run, argc > 1 ? argv[1] : "8080", NULL);
	close_database();
	return error != 0;
}
