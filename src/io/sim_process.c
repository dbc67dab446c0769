/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Child processes of the simulated world: functions of the program, each run by a task of its own.
 *
 * A process holds one end of a pipe, and closes it when it ends; weft_waitpid waits at the other end, as it does at a
 * descriptor of a real process. Killing a process cancels the scope that its function runs in. Its tasks know it by an
 * index, which tasks inherit from the task that starts them; index 0 is the host's own program.
 */
#define _GNU_SOURCE
#include "io/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "internal/libc.h"

/* A name that weft_spawn_process knows. */
struct weft__program {
	struct weft__program *next;
	weft_world_main_t *main;
	weft_fn_t *keeper; /* weft__world_keep of the object that registered the name */
	char name[];
};

struct weft__process {
	struct weft__process *next; /* in the world's list, until it has been waited for */
	struct weft__world *world;
	weft_world_main_t *main;
	pid_t number;
	unsigned host; /* also its parent's host */
	uint16_t index, parent;
	int status, signal; /* signal: the signal that killed it; 0: none */
	struct weft__sent *sent;
	struct weft__sent *end;	    /* a SIGCHLD for its parent */
	weft_scope_t *scope;	    /* the scope of its function; NULL: the function has not begun, or has ended */
	struct weft__node *lives;   /* the end of the pipe that it holds; NULL: it has ended */
	struct weft__node *watched; /* the other end */
	int fds[3];
	char **argv; /* allocated behind this struct, with the strings */
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

static struct weft__program **program_named(struct weft__world *world, const char *name)
{
	struct weft__program **at = &world->programs;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

int weft__world_program(const char *name, weft_world_main_t *main, weft_fn_t *keeper)
{
	struct weft__world *world = weft__world();
	struct weft__program **at, *p;

	if (!world)
		return weft__simulated() ? -ENOMEM : -EPERM;
	if (!name || !*name)
		return -EINVAL;
	at = program_named(world, name);
	p = *at;
	if (p && !main) {
		*at = p->next;
		free(p);
	}
	if (!main)
		return 0;
	if (!p) {
		p = malloc(sizeof *p + strlen(name) + 1);
		if (!p)
			return -ENOMEM;
		strcpy(p->name, name);
		p->next = NULL;
		*at = p;
	}
	p->main = main;
	p->keeper = keeper;
	return 0;
}

/* ---- the beginning of a process ---------------------------------------------------------------------------------- */

/* Copies the arguments, too. */
static struct weft__process *make(char *const argv[])
{
	size_t count, bytes = 0, i;
	struct weft__process *p;
	char *text;

	for (count = 0; argv[count]; count++)
		bytes += strlen(argv[count]) + 1;
	p = calloc(1, sizeof *p + (count + 1) * sizeof *p->argv + bytes);
	if (!p)
		return NULL;
	p->argv = (char **)(p + 1);
	text = (char *)(p->argv + count + 1);
	for (i = 0; i < count; i++) {
		p->argv[i] = text;
		text = stpcpy(text, argv[i]) + 1;
	}
	return p;
}

/* Copies descriptors of the world, because a real process has copies. 0 or a negative errno. */
static int copy_descriptors(struct weft__world *world, struct weft__process *p, const int fds[3])
{
	struct weft__node *node;
	int i;

	for (i = 0; i < 3; i++)
		p->fds[i] = -1;
	for (i = 0; fds && i < 3; i++) {
		node = weft__node_of(world, fds[i]);
		if (fds[i] >= WEFT__SIM_BASE && !node)
			return -EBADF;
		if (node)
			node->references++;
		p->fds[i] = node ? weft__node_describe(world, node) : fds[i];
		if (node && p->fds[i] < 0)
			return p->fds[i];
	}
	return 0;
}

static void close_descriptors(struct weft__process *p)
{
	int i;

	for (i = 0; i < 3; i++)
		if (p->fds[i] >= WEFT__SIM_BASE)
			(void)weft__sim_close(p->fds[i]);
}

/* Opens a pipe whose ends have no numbers. */
static int open_ends(struct weft__world *world, struct weft__process *p)
{
	int fds[2], error = weft__sim_pipe(fds);

	if (error)
		return error;
	p->watched = weft__node_of(world, fds[0]);
	p->lives = weft__node_of(world, fds[1]);
	p->watched->references++, p->watched->descriptors++;
	p->lives->references++, p->lives->descriptors++;
	(void)weft__sim_close(fds[0]);
	(void)weft__sim_close(fds[1]);
	return 0;
}

static void unmake(struct weft__process *p)
{
	if (p->lives)
		weft__node_release(p->world, p->lives);
	if (p->watched)
		weft__node_release(p->world, p->watched);
	weft__sim_forget(&p->sent);
	weft__sim_forget(&p->end);
	free(p);
}

static struct weft__process *with_index(struct weft__world *world, uint16_t index)
{
	struct weft__process *p = world->processes;

	while (p && p->index != index)
		p = p->next;
	return p;
}

/* An index is unique among the processes that have not been waited for. 0 or a negative errno. */
static int give_index(struct weft__world *world, struct weft__process *p)
{
	unsigned number = world->process_number;

	p->index = (uint16_t)(number % UINT16_MAX + 1);
	if (with_index(world, p->index))
		return -EAGAIN;
	p->number = WEFT__SIM_PROCESS + (pid_t)number;
	world->process_number++;
	return 0;
}

pid_t weft__sim_spawn(char *const argv[], const int fds[3])
{
	struct weft__world *world = weft__world();
	struct weft__program *program = world ? *program_named(world, argv[0]) : NULL;
	struct weft__process *p;
	int error;

	if (!program)
		return 0;
	p = make(argv);
	if (!p)
		return -ENOMEM;
	p->world = world;
	p->main = program->main;
	p->status = W_EXITCODE(0, SIGABRT); /* if its function does not return */
	p->host = weft__world_here();
	p->parent = weft__task()->process;
	p->end = calloc(1, sizeof *p->end);
	error = copy_descriptors(world, p, fds);
	if (!error)
		error = p->end ? open_ends(world, p) : -ENOMEM;
	if (!error)
		error = give_index(world, p);
	if (!error)
		error = weft_rt_spawn(world->rt, program->keeper, p, NULL);
	if (error) {
		close_descriptors(p);
		unmake(p);
		return error;
	}
	p->next = world->processes;
	world->processes = p;
	return p->number;
}

/* ---- the tasks of a process -------------------------------------------------------------------------------------- */

bool weft__process_begins(struct weft__process *p, weft_scope_t *scope)
{
	weft__task()->process = p->index;
	p->scope = scope;
	return !p->signal;
}

void weft__process_run(struct weft__process *p, weft_world_main_t **main, char *const **argv, const int **fds)
{
	*main = p->main;
	*argv = p->argv;
	*fds = p->fds;
}

void weft__process_exits(struct weft__process *p, int status)
{
	p->status = W_EXITCODE(status & 255, 0);
}

static void tell_parent(struct weft__process *p)
{
	struct weft__sent *end = p->end;
	siginfo_t *info = &end->info;

	if (!weft__sim_blocks(SIGCHLD))
		return;
	info->si_signo = SIGCHLD;
	info->si_pid = p->number;
	info->si_code = WIFEXITED(p->status) ? CLD_EXITED : CLD_KILLED;
	info->si_status = WIFEXITED(p->status) ? WEXITSTATUS(p->status) : WTERMSIG(p->status);
	p->end = NULL;
	weft__sim_send(p->world, p->host, p->parent, end);
}

void weft__process_ends(struct weft__process *p)
{
	p->scope = NULL;
	if (p->signal && WEFT_NO_CANARY(killed_processes_exit))
		p->status = W_EXITCODE(0, p->signal);
	close_descriptors(p);
	weft__node_release(p->world, p->lives);
	p->lives = NULL;
	tell_parent(p);
}

struct weft__sent **weft__sim_sent(struct weft__world *world, unsigned host, uint16_t process)
{
	struct weft__process *p;

	if (!process)
		return &world->hosts[host]->sent;
	p = with_index(world, process);
	return p && p->lives ? &p->sent : NULL;
}

pid_t weft__sim_process_here(struct weft__world *world)
{
	uint16_t process = weft__task()->process;
	struct weft__process *p = process ? with_index(world, process) : NULL;

	return p ? p->number : 0;
}

/* ---- the parent of a process ------------------------------------------------------------------------------------- */

static struct weft__process **find(struct weft__world *world, pid_t number)
{
	struct weft__process **at = &world->processes;

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

int weft__sim_process_fd(pid_t number)
{
	struct weft__world *world = weft__world();
	struct weft__process *p = world ? *find(world, number) : NULL;

	if (!p)
		return -ECHILD;
	p->watched->references++;
	return weft__node_describe(world, p->watched);
}

int weft__sim_process_status(pid_t number, int *status)
{
	struct weft__world *world = weft__world();
	struct weft__process **at = world ? find(world, number) : NULL, *p = at ? *at : NULL;

	/* Another waiter has reaped it meanwhile, or its end has not arrived. */
	if (!p || p->lives)
		return -ECHILD;
	if (status)
		*status = p->status;
	*at = p->next;
	unmake(p);
	return number;
}

static void kill_one(struct weft__process *p, int signal)
{
	if (!p->lives || p->signal)
		return;
	p->signal = signal;
	if (p->scope)
		weft__cancel_scope(p->scope, -ECANCELED);
}

static bool is_ignored(int signal)
{
	return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT;
}

static bool stops(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

int weft_world_kill(pid_t number, int signal)
{
	struct weft__world *world = weft__world();
	struct weft__process *p;

	if (!world)
		return weft__simulated() ? -ENOMEM : -EPERM;
	if (signal < 0 || signal > WEFT__SIGNALS_MOST || stops(signal))
		return -EINVAL;
	p = *find(world, number);
	if (!p)
		return -ESRCH;
	if (!signal || !p->lives)
		return 0;
	if (signal != SIGKILL && weft__sim_blocks(signal))
		return weft__sim_send_new(world, p->host, p->index, signal);
	if (!is_ignored(signal))
		kill_one(p, signal);
	return 0;
}

void weft__sim_processes_crash(struct weft__world *world, unsigned host)
{
	struct weft__process *p;

	for (p = world->processes; p; p = p->next)
		if (p->host == host)
			kill_one(p, SIGKILL);
}

/* The world ends. All tasks have ended, and nodes are freed after this. */
void weft__sim_processes_free(struct weft__world *world)
{
	struct weft__process *p;
	struct weft__program *program;

	while ((p = world->processes)) {
		world->processes = p->next;
		weft__sim_forget(&p->sent);
		weft__sim_forget(&p->end);
		free(p);
	}
	while ((program = world->programs)) {
		world->programs = program->next;
		free(program);
	}
}
