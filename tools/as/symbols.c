/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit.h"

static uint64_t hash(struct view name)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < name.n; i++)
		h = (h ^ (unsigned char)name.at[i]) * 0x100000001b3;
	return h ^ h >> 29;
}

static void rehash(struct unit *u)
{
	u->bucket_count = u->bucket_count ? u->bucket_count * 4 : 4096;
	u->buckets = keep(u->bucket_count * sizeof *u->buckets);
	for (size_t i = 0; i < u->symbol_count; i++) {
		struct symbol *s = u->symbols[i], **bucket = &u->buckets[hash(s->name) & (u->bucket_count - 1)];

		s->next_in_bucket = *bucket;
		*bucket = s;
	}
}

struct symbol *find_symbol(struct unit *u, struct view name)
{
	struct symbol *s;

	if (!u->bucket_count)
		return NULL;
	s = u->buckets[hash(name) & (u->bucket_count - 1)];
	while (s && !same(s->name, name))
		s = s->next_in_bucket;
	return s;
}

struct symbol *symbol(struct unit *u, struct view name)
{
	struct symbol *s = find_symbol(u, name), **bucket;

	if (s)
		return s;
	if (u->symbol_count >= u->bucket_count)
		rehash(u);
	s = keep(sizeof *s);
	s->name = name;
	s->line = s->block = NONE;
	bucket = &u->buckets[hash(name) & (u->bucket_count - 1)];
	s->next_in_bucket = *bucket;
	*bucket = s;
	u->symbols = grow(u->symbols, &u->symbol_room, u->symbol_count + 1, sizeof *u->symbols);
	u->symbols[u->symbol_count++] = s;
	return s;
}

static bool in_symbol(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || (unsigned char)c >= 0x80 ||
	       (!first && ((c >= '0' && c <= '9') || c == '$'));
}

struct view symbol_prefix(struct view text)
{
	size_t n = 0;

	while (n < text.n && in_symbol(text.at[n], n == 0))
		n++;
	if (n == 1 && text.at[0] == '.')
		n = 0;
	return (struct view){text.at, n};
}

struct symbol *resolve(struct symbol *s)
{
	for (int i = 0; i < 16 && s->alias_of; i++)
		s = s->alias_of;
	return s;
}

struct function *function_of(struct symbol *s)
{
	return s->is_ifunc ? NULL : resolve(s)->function;
}
