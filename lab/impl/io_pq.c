/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A hundred queries of 20 ms each by libpq, on one thread, to a PostgreSQL of this program's own in a new directory.
 *
 *   with Weft           a task for each, with blocking calls of libpq (PQexec): libweft-posix.so makes them suspend it
 *   LAB_RAW             libpq's non-blocking calls, in a hand-written loop around poll
 *
 * n: queries, and connections, which are made before the clock starts.
 */
#define _GNU_SOURCE
#include "lab.h"
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUERIES = 100, TRIES = 400 };

static PGconn *connections[QUERIES];
static char place[] = "/tmp/weft-lab-XXXXXX", where[128];
static int64_t n, sum;
static pid_t server;

/* ---- the server -------------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
	(void)status;
	(void)kind;
	(void)at;
	return remove(path);
}

static void end_server(void)
{
	if (server > 0) {
		kill(server, SIGQUIT);
		waitpid(server, NULL, 0);
	}
	nftw(place, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Returns the path of a program of the newest server, in the distribution's directories. */
static const char *find(const char *program)
{
	static char path[256];
	glob_t found;

	if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) || !found.gl_pathc)
		lab_cannot("PostgreSQL is missing: apt-get install --no-install-recommends postgresql");
	snprintf(path, sizeof(path), "%s/%s", found.gl_pathv[found.gl_pathc - 1], program);
	globfree(&found);
	if (access(path, X_OK))
		lab_cannot("%s is missing: apt-get install --no-install-recommends postgresql", path);
	return path;
}

/* PostgreSQL refuses to run as root. */
static const struct passwd *nobody(void)
{
	const struct passwd *user = geteuid() ? NULL : getpwnam("nobody");

	if (!geteuid() && !user)
		lab_cannot("PostgreSQL does not run as root, and there is no user nobody");
	return user;
}

static pid_t start(const char *program, char **arguments, const struct passwd *user)
{
	pid_t child = fork();

	if (child)
		return child;
	if (user && (setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid)))
		_exit(127);
	prctl(PR_SET_PDEATHSIG, SIGQUIT);
	if (chdir(place) || !freopen("log", "a", stdout) || !freopen("log", "a", stderr))
		_exit(127);
	execv(program, arguments);
	_exit(127);
}

static void start_server(void)
{
	char *making[] = {"initdb", "-D", "data", "-U", "weft", "-A", "trust", "-N", NULL};
	char *serving[] = {"postgres",
			   "-D",
			   "data",
			   "-c",
			   "listen_addresses=",
			   "-k",
			   place,
			   "-c",
			   "max_connections=120",
			   "-c",
			   "fsync=off",
			   "-c",
			   "shared_buffers=16MB",
			   NULL};
	const struct passwd *user = nobody();
	int status = 1;

	if (!mkdtemp(place) || (user && chown(place, user->pw_uid, user->pw_gid)))
		lab_die(place);
	atexit(end_server);
	waitpid(start(find("initdb"), making, user), &status, 0);
	if (status)
		lab_cannot("initdb cannot make a database here");
	server = start(find("postgres"), serving, user);
	snprintf(where, sizeof(where), "host=%s user=weft dbname=postgres", place);
	for (int i = 0; i < TRIES && PQping(where) != PQPING_OK; i++)
		usleep(20000);
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

static void open_connection(PGconn **c)
{
	*c = PQconnectdb(where);
	if (PQstatus(*c) != CONNECTION_OK)
		lab_die(PQerrorMessage(*c));
}

static const char *text_of(int64_t number)
{
	static char text[160];

	snprintf(text, sizeof(text), "select %d, pg_sleep(0.02)", (int)number);
	return text;
}

static void add_answer(PGresult *r)
{
	if (PQresultStatus(r) == PGRES_TUPLES_OK)
		sum += strtol(PQgetvalue(r, 0, 0), NULL, 10);
	PQclear(r);
}

#ifdef LAB_RAW
/* Returns true if the answer is complete. */
static bool take_answer(PGconn *c)
{
	PGresult *r;

	if (!PQconsumeInput(c))
		lab_die(PQerrorMessage(c));
	while (!PQisBusy(c)) {
		r = PQgetResult(c);
		if (!r)
			return true;
		add_answer(r);
	}
	return false;
}

static void ask_all(void)
{
	struct pollfd fds[QUERIES];
	int64_t open = n;

	for (int64_t i = 0; i < n; i++) {
		if (!PQsendQuery(connections[i], text_of(i)))
			lab_die(PQerrorMessage(connections[i]));
		fds[i] = (struct pollfd){PQsocket(connections[i]), POLLIN, 0};
	}
	while (open) {
		if (poll(fds, (nfds_t)n, -1) < 0)
			lab_die("poll");
		for (int64_t i = 0; i < n; i++)
			if (fds[i].revents && take_answer(connections[i])) {
				fds[i].fd = -1;
				open--;
			}
	}
}

static void run(void)
{
	for (int64_t i = 0; i < n; i++)
		open_connection(&connections[i]);
	lab_start();
	ask_all();
	lab_stop();
}
#else
#include <weft/sched.h>

static void *connects(void *number)
{
	open_connection(&connections[(intptr_t)number]);
	return NULL;
}

static void *asks(void *number)
{
	add_answer(PQexec(connections[(intptr_t)number], text_of((intptr_t)number)));
	return NULL;
}

static void at_once(weft_fn_t *fn)
{
	WEFT_SCOPE(scope);
	for (intptr_t i = 0; i < n; i++)
		if (weft_scope_spawn(&scope, fn, (void *)i))
			lab_die("spawn");
	weft_scope_wait(&scope);
}

static void *all(void *unused)
{
	at_once(connects);
	lab_start();
	at_once(asks);
	lab_stop();
	return unused;
}

static void run(void)
{
	weft_rt_config_t config = {.workers = 1};

	errno = -weft_rt_run(&config, all, NULL, NULL);
	if (errno)
		lab_die("the runtime");
}
#endif

int main(int argc, char **argv)
{
	n = lab_number(argc, argv, "n", QUERIES);
	if (n > QUERIES)
		lab_die("at most 100 queries");
	start_server();
	run();
	for (int64_t i = 0; i < n; i++)
		PQfinish(connections[i]);
	return lab_report(1, sum);
}
