/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Receive buffers: pages that a silent connection returns. malloc would keep them resident between memory that is still
 * in use, so they come from blocks of their own, and all except the last few returned pages lose their memory
 * (MADV_DONTNEED). The addresses are kept for the next connections until the server is closed.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "http/exchange.h"

enum { BLOCK = 256, WARM = 64 };

struct page_block {
	struct page_block *next;
	char *memory;
};

/* Makes room in `free` for all pages; warm pages are at its end. With the lock held. */
static bool add_block(struct page_pool *p)
{
	struct page_block *b = malloc(sizeof *b);
	char **more = b ? realloc(p->free, (p->pages + BLOCK) * sizeof *more) : NULL;
	unsigned i;

	if (more)
		p->free = more;
	if (!more || (b->memory = mmap(NULL, BLOCK * IN_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				       0)) == MAP_FAILED) {
		free(b);
		return false;
	}
	b->next = p->blocks;
	p->blocks = b;
	for (i = 0; i < BLOCK; i++)
		p->free[p->count++] = b->memory + (size_t)i * IN_SIZE;
	p->pages += BLOCK;
	return true;
}

char *weft__http_take_page(weft_http_server_t *server)
{
	struct page_pool *p = &server->pool;
	char *page = NULL;

	pthread_mutex_lock(&p->lock);
	if (p->count || add_block(p)) {
		page = p->free[--p->count];
		p->warm -= p->warm > 0;
	}
	pthread_mutex_unlock(&p->lock);
	return page;
}

/* If WARM pages are already warm, the page that was returned first loses its memory: it is the lowest warm page in
 * `free`. */
void weft__http_give_page(weft_http_server_t *server, char *page)
{
	struct page_pool *p = &server->pool;

	if (!page)
		return;
	pthread_mutex_lock(&p->lock);
	p->free[p->count++] = page;
	if (p->warm < WARM)
		p->warm++;
	else
		madvise(p->free[p->count - 1 - WARM], IN_SIZE, MADV_DONTNEED);
	pthread_mutex_unlock(&p->lock);
}

void weft__http_free_pages(weft_http_server_t *server)
{
	struct page_pool *p = &server->pool;
	struct page_block *b, *next;

	for (b = p->blocks; b; b = next) {
		next = b->next;
		munmap(b->memory, BLOCK * IN_SIZE);
		free(b);
	}
	free(p->free);
	pthread_mutex_destroy(&p->lock);
}
