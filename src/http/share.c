/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Each thread's share of a server: counters that only this thread writes, and memory that it reuses. If all workers
 * wrote the same word, they would fetch it from each other's caches for each request.
 *
 * A share belongs to the thread that used it first. Threads that find no free share use the last share together.
 */
#include <stdlib.h>

#include "http/exchange.h"

/* Not inlined: a task may continue in a different thread after a wait, and compilers keep addresses of thread-local
 * variables. */
static __attribute__((noinline)) struct share *share_of(weft_http_server_t *server)
{
	static _Thread_local char thread __attribute__((tls_model("initial-exec")));
	struct share *s = server->shares, *last = s + SHARES - 1;
	void *owner, *me = &thread;

	for (; s < last; s++) {
		owner = atomic_load_explicit(&s->owner, memory_order_relaxed);
		if (!owner && atomic_compare_exchange_strong(&s->owner, &owner, me))
			return s;
		if (owner == me)
			return s;
	}
	return last;
}

static inline void add(struct share *s, _Atomic uint64_t *counter, uint64_t n)
{
	if (atomic_load_explicit(&s->owner, memory_order_relaxed))
		atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
				      memory_order_relaxed);
	else
		atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

void weft__http_received(weft_http_server_t *server, size_t n)
{
	struct share *s = share_of(server);

	add(s, &s->received, n);
}

void weft__http_sent(weft_http_server_t *server, size_t n)
{
	struct share *s = share_of(server);

	add(s, &s->sent, n);
}

void weft__http_answered(weft_http_server_t *server, int status)
{
	struct share *s = share_of(server);

	add(s, &s->statuses[status / 100], 1);
}

/* The shared share has no spare exchange. */
struct exchange *weft__http_take_spare(weft_http_server_t *server)
{
	struct share *s = share_of(server);
	struct exchange *e = s->spare;

	if (e) /* always NULL in the shared share, whose spare is never written */
		s->spare = NULL;
	return e;
}

bool weft__http_give_spare(weft_http_server_t *server, struct exchange *e)
{
	struct share *s = share_of(server);

	if (s->spare || !atomic_load_explicit(&s->owner, memory_order_relaxed))
		return false;
	s->spare = e;
	return true;
}

void weft__http_free_shares(weft_http_server_t *server)
{
	unsigned i;

	for (i = 0; i < SHARES; i++)
		free(server->shares[i].spare);
}

void weft__http_sum_shares(const weft_http_server_t *server, weft_http_stats_t *stats)
{
	const struct share *s = server->shares, *end = s + SHARES;
	unsigned i;

	for (; s < end; s++) {
		for (i = 0; i < 6; i++)
			stats->statuses[i] += atomic_load_explicit(&s->statuses[i], memory_order_relaxed);
		stats->received += atomic_load_explicit(&s->received, memory_order_relaxed);
		stats->sent += atomic_load_explicit(&s->sent, memory_order_relaxed);
	}
}
