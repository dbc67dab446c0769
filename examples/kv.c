/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A replicated key-value store, and mistakes that such stores have: kv [BUG [SEEDS]].
 *
 * Three nodes keep one log of writes, each on its disk. One node leads in each term: term t belongs to node t % 3.
 *   VOTE    "promise to follow no node of an earlier term, and send your log": the candidate continues with the log
 *           of the latest term among a majority
 *   APPEND  "this is the log in my term": stored and synced, unless a later term was promised
 *   PUT, GET  from a client: answered by the leader when a majority has the log with it
 * The whole log is one value of Paxos; it is short enough to be sent at once.
 *
 * Nodes lose their power and are cut off from each other, as the seed decides. Each client writes to a key of its own
 * and reads it back: it must find the value that it wrote last. WEFT_SIMULATE repeats a run that failed. The mistakes:
 *   lost-write   written data is not synced
 *   split-brain  a leader that reaches no majority answers nevertheless
 *   wrong-reply  requests share the memory of their replies
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/sync.h>
#include <weft/sim.h>

#define MS 1000000ull

enum { NODES = 3, CLIENTS = 2, PUTS = 5, ENTRIES = 16, ROUNDS = 8, SLOT = 1024 };

static enum { NO_BUG, LOST_WRITE, SPLIT_BRAIN, WRONG_REPLY } bug;

struct entry {
	uint32_t id, key, value;
};

/* A node's state on its disk. There are two copies, written in turn, so that a torn write leaves the other copy. */
struct state {
	uint32_t number; /* the copy with the higher number is the later one */
	uint32_t promised, term, count;
	struct entry log[ENTRIES];
	uint32_t sum;
};

enum kind { VOTE = 1, APPEND, PUT, GET };

struct message {
	uint32_t kind, ok, promised;
	struct entry entry; /* from a client */
	struct state state;
};

static struct node {
	char name[8];
	uint32_t number;
	weft_task_t task;
	weft_mutex_t lock; /* protects the fields below */
	struct state state;
	bool leads;
	uint64_t heard; /* when a leader was heard last */
	struct message reply;
} nodes[NODES];

static bool wrong;
static unsigned took; /* duration in milliseconds of simulated time */

/* ---- the disk ---------------------------------------------------------------------------------------------------- */

static uint32_t sum_of(const struct state *s)
{
	const unsigned char *bytes = (const unsigned char *)s;
	uint32_t sum = 2166136261u;
	size_t i;

	for (i = 0; i < offsetof(struct state, sum); i++)
		sum = (sum ^ bytes[i]) * 16777619u;
	return sum;
}

/* Called under the lock. A node that cannot write must stop. */
static void keep(struct node *n)
{
	int fd = weft_open("state", O_CREAT | O_RDWR, 0600);
	struct state *s = &n->state;
	int64_t at, done;
	ssize_t part;

	s->number++;
	s->sum = sum_of(s);
	at = (int64_t)(s->number % 2) * SLOT;
	for (done = 0; done < (int64_t)sizeof *s; done += part) {
		part = weft_pwrite(fd, (char *)s + done, sizeof *s - (size_t)done, at + done);
		if (part <= 0)
			weft_task_fail((int)part);
	}
	if (bug != LOST_WRITE && weft_fsync(fd))
		weft_task_fail(-EIO);
	(void)weft_close(fd);
}

static void load_slot(struct node *n, int fd, int64_t at)
{
	struct state s;
	int64_t done;
	ssize_t part;

	for (done = 0; done < (int64_t)sizeof s; done += part) {
		part = weft_pread(fd, (char *)&s + done, sizeof s - (size_t)done, at + done);
		if (part <= 0)
			return;
	}
	if (s.sum == sum_of(&s) && s.number > n->state.number)
		n->state = s;
}

static void load(struct node *n)
{
	int fd = weft_open("state", O_RDONLY, 0);

	if (fd < 0)
		return;
	load_slot(n, fd, 0);
	load_slot(n, fd, SLOT);
	(void)weft_close(fd);
}

/* ---- requests to other nodes ------------------------------------------------------------------------------------- */

/* The answer overwrites the question. */
static bool ask(const char *host, struct message *m)
{
	uint64_t until = weft_now() + 20 * MS;
	int fd = weft_dial_until(host, "700", until);
	bool answered;

	if (fd < 0)
		return false;
	answered = weft_write_all_until(fd, m, sizeof *m, until) == sizeof *m &&
		   weft_read_all_until(fd, m, sizeof *m, until) == sizeof *m;
	(void)weft_close(fd);
	return answered;
}

struct question {
	const struct node *to;
	struct message message;
	bool answered;
};

static void *ask_one(void *q_)
{
	struct question *q = q_;

	q->answered = ask(q->to->name, &q->message);
	return NULL;
}

static int lacking; /* there was no memory for a task: the result of the run does not count */

static int begin(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	int error = weft_scope_spawn(scope, fn, argument);

	if (error && error != -ECANCELED)
		lacking = error;
	return error;
}

/* Asks both other nodes at once. Returns how many of the three nodes agree, including the asker. A leader that learns
 * of a later term stops leading. */
static int ask_others(struct node *n, const struct message *m, struct question q[NODES])
{
	int agree = 1;
	uint32_t i;

	WEFT_SCOPE(scope);
	for (i = 0; i < NODES; i++) {
		q[i] = (struct question){.to = &nodes[i], .message = *m};
		if (i != n->number)
			begin(&scope, ask_one, &q[i]);
	}
	(void)weft_scope_wait(&scope);
	for (i = 0; i < NODES; i++) {
		agree += q[i].answered && q[i].message.ok;
		if (q[i].answered && q[i].message.promised > m->state.promised)
			n->leads = false;
	}
	return agree;
}

static bool majority(struct node *n, const struct state *s)
{
	struct message m = {.kind = APPEND, .state = *s};
	struct question q[NODES];

	return ask_others(n, &m, q) > NODES / 2 || bug == SPLIT_BRAIN;
}

/* ---- a node ------------------------------------------------------------------------------------------------------ */

static bool is_later(const struct state *a, const struct state *b)
{
	return a->term > b->term || (a->term == b->term && a->count > b->count);
}

/* Called under the lock. */
static void take_log(struct state *to, const struct state *from)
{
	to->count = from->count;
	memcpy(to->log, from->log, sizeof to->log);
}

/* Starts a term of this node, later than all terms that it knows. */
static void run_for_leader(struct node *n)
{
	struct message m = {.kind = VOTE};
	struct question q[NODES];
	uint32_t i, term;

	weft_mutex_lock(&n->lock);
	term = n->state.promised + 1;
	while (term % NODES != n->number)
		term++;
	n->leads = false;
	n->state.promised = term;
	keep(n);
	m.state = n->state;
	weft_mutex_unlock(&n->lock);
	if (ask_others(n, &m, q) <= NODES / 2)
		return;
	weft_mutex_lock(&n->lock);
	if (n->state.promised == term) {
		for (i = 0; i < NODES; i++)
			if (q[i].answered && q[i].message.ok && is_later(&q[i].message.state, &n->state)) {
				n->state.term = q[i].message.state.term;
				take_log(&n->state, &q[i].message.state);
			}
		n->state.term = term;
		n->leads = true;
		keep(n);
	}
	weft_mutex_unlock(&n->lock);
}

static void *ticks(void *n_)
{
	struct node *n = n_;
	struct state s;

	for (;;) {
		weft_sleep((5 + weft_world_random() % 10) * MS);
		if (n->leads) {
			weft_mutex_lock(&n->lock);
			s = n->state;
			weft_mutex_unlock(&n->lock);
			(void)majority(n, &s);
		} else if (weft_now() - n->heard > (40 + weft_world_random() % 40) * MS) {
			run_for_leader(n);
			n->heard = weft_now();
		}
	}
	return NULL;
}

/* Called under the lock, like the handlers below. */
static void vote(struct node *n, struct message *m)
{
	m->ok = m->state.promised > n->state.promised;
	if (m->ok) {
		n->state.promised = m->state.promised;
		n->leads = false;
		keep(n);
	}
	m->promised = n->state.promised;
	m->state = n->state;
}

static void append(struct node *n, struct message *m)
{
	m->ok = m->state.term >= n->state.promised;
	if (m->ok) {
		n->heard = weft_now();
		n->leads = false;
		if (n->state.promised != m->state.term || is_later(&m->state, &n->state)) {
			if (is_later(&m->state, &n->state))
				take_log(&n->state, &m->state);
			n->state.term = n->state.promised = m->state.term;
			keep(n);
		}
	}
	m->promised = n->state.promised;
}

static void put(struct node *n, const struct entry *e)
{
	uint32_t i;

	for (i = 0; i < n->state.count; i++)
		if (n->state.log[i].id == e->id)
			return; /* the client asks again */
	if (n->state.count == ENTRIES)
		weft_task_fail(-ENOSPC);
	n->state.log[n->state.count++] = *e;
	keep(n);
}

static void answer_client(struct node *n, struct message *m)
{
	struct state s;
	uint32_t i;

	m->ok = 0;
	if (!n->leads || n->state.promised != n->state.term)
		return;
	if (m->kind == PUT)
		put(n, &m->entry);
	s = n->state;
	weft_mutex_unlock(&n->lock);
	m->ok = majority(n, &s);
	for (i = 0; m->kind == GET && i < s.count; i++)
		if (s.log[i].key == m->entry.key)
			m->entry.value = s.log[i].value;
	weft_mutex_lock(&n->lock);
}

struct visit {
	struct node *node;
	int fd;
};

static void *serves(void *v_)
{
	struct visit v = *(struct visit *)v_;
	struct message own, *m = bug == WRONG_REPLY ? &v.node->reply : &own;

	free(v_);
	if (weft_read_all(v.fd, m, sizeof *m) == sizeof *m) {
		weft_mutex_lock(&v.node->lock);
		if (m->kind == VOTE)
			vote(v.node, m);
		else if (m->kind == APPEND)
			append(v.node, m);
		else
			answer_client(v.node, m);
		weft_mutex_unlock(&v.node->lock);
		(void)weft_write_all(v.fd, m, sizeof *m);
	}
	(void)weft_close(v.fd);
	return NULL;
}

static void *lives(void *n_)
{
	struct node *n = n_;
	struct visit *v;
	int listener, fd;

	n->lock = (weft_mutex_t){0};
	(void)weft_world_host(n->name);
	n->leads = false;
	n->state = (struct state){0};
	load(n);
	n->heard = weft_now();
	WEFT_SCOPE(scope);
	listener = weft_listen(NULL, 700, 0, 0);
	begin(&scope, ticks, n);
	while ((fd = weft_accept(listener, NULL, NULL, 0)) >= 0) {
		v = malloc(sizeof *v);
		if (!v)
			weft_task_fail(-ENOMEM);
		*v = (struct visit){n, fd};
		if (begin(&scope, serves, v))
			free(v);
	}
	return NULL;
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static int start(weft_scope_t *scope, struct node *n)
{
	return weft_scope_spawn_with(scope, &n->task, lives, n, NULL);
}

static void isolate(const struct node *n)
{
	uint32_t i;

	for (i = 0; i < NODES; i++)
		if (i != n->number)
			(void)weft_world_cut(n->name, nodes[i].name);
}

static void restart(weft_scope_t *scope, struct node *n)
{
	weft_task_cancel(&n->task);
	(void)weft_join(&n->task, NULL);
	(void)weft_world_crash(n->name);
	(void)start(scope, n);
}

static void restart_all(weft_scope_t *scope)
{
	uint32_t i;

	for (i = 0; i < NODES; i++)
		restart(scope, &nodes[i]);
}

/* Injects a power failure of one or all nodes, isolates a node, or ends all failures. */
static void *breaks(void *scope)
{
	struct node *n;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		weft_sleep(weft_world_random() % (200 * MS));
		n = &nodes[weft_world_random() % NODES];
		switch (weft_world_random() % 4) {
		case 0:
			restart(scope, n);
			break;
		case 1:
			restart_all(scope);
			break;
		case 2:
			isolate(n);
			break;
		default:
			(void)weft_world_mend(n->name, NULL);
		}
	}
	for (i = 0; i < NODES; i++)
		(void)weft_world_mend(nodes[i].name, NULL);
	return NULL;
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

/* Sends a request to the nodes in turn, until one answers it. */
static uint32_t request(enum kind kind, struct entry e)
{
	struct message m;
	uint32_t i;

	for (i = e.id;; i++) {
		m = (struct message){.kind = kind, .entry = e};
		if (ask(nodes[i % NODES].name, &m) && m.ok)
			break;
		weft_sleep(5 * MS);
	}
	if (m.kind == kind && m.entry.id == e.id && m.entry.key == e.key)
		return m.entry.value;
	fprintf(stderr, "client %u got the reply to request %u in place of %u\n", e.key, m.entry.id, e.id);
	wrong = true;
	return 0;
}

static void *client(void *key_)
{
	uint32_t key = (uint32_t)(uintptr_t)key_, value, found;

	(void)weft_world_host("clients");
	for (value = 1; value <= PUTS && !wrong; value++) {
		(void)request(PUT, (struct entry){key * 100 + 2 * value, key, value});
		weft_sleep(weft_world_random() % (100 * MS));
		found = wrong ? value : request(GET, (struct entry){key * 100 + 2 * value + 1, key, 0});
		if (!wrong && found != value) {
			fprintf(stderr, "client %u wrote %u and read %u\n", key, value, found);
			wrong = true;
		}
	}
	return NULL;
}

static void *world(void *unused)
{
	weft_scope_t store, clients;
	uintptr_t i;
	int error;

	wrong = false;
	lacking = 0;
	weft_scope_open(&store, WEFT_NEVER);
	for (i = 0; i < NODES; i++) {
		memset(&nodes[i], 0, sizeof nodes[i]);
		nodes[i].number = (uint32_t)i;
		snprintf(nodes[i].name, sizeof nodes[i].name, "node%d", (int)i);
		lacking = start(&store, &nodes[i]) ? -ENOMEM : lacking;
	}
	weft_scope_open(&clients, weft_now() + 60000 * MS);
	begin(&clients, breaks, &store);
	for (i = 0; i < CLIENTS; i++)
		begin(&clients, client, (void *)(i + 1));
	error = weft_scope_wait(&clients);
	took = (unsigned)(weft_now() / MS - 1000);
	weft_scope_cancel(&store, -ECANCELED);
	(void)weft_scope_wait(&store);
	if (lacking || error || wrong)
		weft_task_fail(lacking ? lacking
			       : error ? error
				       : -EBADMSG); /* -ETIMEDOUT: no progress, although there are no failures */
	return unused;
}

/* Runs the seeds in sequence, each in a process of its own, until one fails, which is expected if there is a
 * mistake. */
static int explore(const weft_rt_config_t *config, uint64_t seeds)
{
	int result;

	if (getenv("WEFT_SIMULATE")) /* repeats the run that failed */
		return -weft_rt_run(config, world, NULL, NULL);
	result = weft_simulate_seeds(0, seeds, config, world, NULL, NULL);
	printf("%s\n", result < 0 ? strerror(-result) : result ? "a seed fails" : "no seed fails");
	return result != (bug != NO_BUG);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"right", "lost-write", "split-brain", "wrong-reply"};
	const weft_rt_config_t config = {.task = {.stack_size = 64 << 10}};
	uint64_t seed;
	int i, error;

	for (i = 0; argc > 1 && i < 4; i++)
		if (!strcmp(argv[1], names[i])) {
			bug = i;
			return explore(&config, argc > 2 ? strtoull(argv[2], NULL, 10) : 1000);
		}
	for (seed = 0; seed < 5; seed++) {
		error = weft_simulate(seed, &config, world, NULL, NULL);
		if (error) {
			fprintf(stderr, "seed %d: %s\n", (int)seed, strerror(-error));
			return 1;
		}
		printf("seed %d: each client has read what it wrote, %u ms\n", (int)seed, took);
	}
	return 0;
}
