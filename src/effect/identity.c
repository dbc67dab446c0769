/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Descriptions of effects. weft__declare fills in the objects that stand for effects, and groups the objects of equal
 * effects that have several addresses (weft/detail/identity.h says when that happens).
 *
 * All effects are in lists by a hash of their identity, which is compared together with name, place and size. White
 * space does not count in the hash, `_Bool` equals `bool`, and "a::b" is the same namespace as "a.b".
 *
 * Unloading an object must leave no address of it behind: weft__undeclare. The effects in the object leave their lists
 * and groups; default handlers in its code are removed from all effects; effects that stay get another description if
 * theirs is unloaded.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "effect/effect.h"
#include "internal/message.h"
#include "internal/signal_safe_lock.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

struct weft__group {
	const weft_effect_t *chosen; /* the address for a handler of all effects: the program's own if present */
	size_t members;
};

enum { LISTS = 256 };

static weft_effect_t *lists[LISTS];
static struct weft__records *all_records; /* the records of the program and the loaded shared objects */
/* Guards everything except reads of `group`, `members` and defaults. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
WEFT__LOCK_OF_FILE(mutex);

/* If a thread forks during another thread's dlopen or weft_set_default, the child must not inherit a lock that no
 * thread releases. */
__attribute__((constructor(104))) static void survive_fork(void)
{
	(void)pthread_atfork(lock, unlock, unlock);
}

/* ---- identity --------------------------------------------------------------------------------------------------- */

static inline bool is_part_of_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c & 0x80;
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t n)
{
	for (; n--; bytes++)
		hash = (hash ^ (unsigned char)*bytes) * 1099511628211u; /* FNV-1a */
	return hash;
}

/* Hash the words, and the characters between them except white space. */
static WEFT__COLD uint64_t hash_text(uint64_t hash, const char *text)
{
	bool after_word = false;
	size_t n;

	for (; *text; text += n) {
		for (n = 0; is_part_of_word(text[n]); n++)
			;
		if (n) {
			if (after_word)
				hash = hash_bytes(hash, " ", 1);
			hash = n == 5 && !memcmp(text, "_Bool", 5) ? hash_bytes(hash, "bool", 4)
								   : hash_bytes(hash, text, n);
			after_word = true;
			continue;
		}
		n = text[0] == ':' && text[1] == ':' ? 2 : 1;
		if (*text == ' ')
			continue;
		hash = hash_bytes(hash, n == 2 ? "." : text, 1);
		after_word = false;
	}
	return hash;
}

static bool is_of_family(const struct weft__declared *d)
{
	return d->index == WEFT__OF_FAMILY;
}

static uint64_t hash_of(const struct weft__declared *family, const struct weft__declared *d)
{
	uint64_t hash = hash_text(hash_text(14695981039346656037u, family->space), family->text);

	return hash_bytes(hash, (const char *)&d->index, sizeof d->index);
}

/* An effect that is declared in an unnamed namespace of C++ is local to that file. */
static bool is_of_one_file(const struct weft__declared *d)
{
	return strchr(d->space, '(') || strchr(d->space, '{');
}

bool weft_same_effect(const weft_effect_t *a, const weft_effect_t *b)
{
	return weft__same(a, b);
}

/* ---- declaring --------------------------------------------------------------------------------------------------- */

WEFT__LAST_WORDS(static, die_sizes_differ, (const struct weft__declared *d), d)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "effect \"");
	weft__line_text(&line, d->name);
	weft__line_text(&line, "\" is declared twice, as ");
	weft__line_text(&line, d->text);
	weft__line_text(&line,
			", with types of different size: give the types, or the effects, different names, or one "
			"of the effects a namespace by WEFT_NAMESPACE");
	weft__line_die(&line);
}

/* A loaded object: the program, or a shared object. */
struct object {
	const void *address; /* an address in the object */
	size_t before;	     /* the number of objects that the loader lists before it; the program is the first */
	struct dl_phdr_info info;
};

static bool contains(const struct dl_phdr_info *object, const void *address)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (uintptr_t)address - object->dlpi_addr - part->p_vaddr < part->p_memsz)
			return true;
	}
	return false;
}

static int compare_object(struct dl_phdr_info *info, size_t size, void *where)
{
	struct object *object = where;

	(void)size;
	if (!contains(info, object->address)) {
		object->before++;
		return 0;
	}
	object->info = *info;
	return 1;
}

/* Find the object that contains the address. Returns false if none does. */
static bool find_object(const void *address, struct object *object)
{
	*object = (struct object){.address = address};
	return dl_iterate_phdr(compare_object, object);
}

static bool is_in_program(const void *address)
{
	struct object object;

	return find_object(address, &object) && !object.before;
}

bool weft__is_unloaded_with(const void *place, const void *address)
{
	struct object object;

	return find_object(place, &object) && object.before && contains(&object.info, address);
}

/* Put both effects into a group. Without memory they stay different, and a perform of one of them under a handler of
 * the other is reported. */
static void join(weft_effect_t *member, weft_effect_t *effect)
{
	struct weft__group *group = member->group;

	if (!group) {
		group = malloc(sizeof *group);
		if (!group)
			return;
		*group = (struct weft__group){member, 1};
		__atomic_store_n(&member->group, group, __ATOMIC_RELEASE); /* group_of reads */
	}
	group->members++;
	if (!group->chosen || is_in_program(effect))
		group->chosen = effect;
	effect->default_handler = member->default_handler;
	__atomic_store_n(&effect->group, group, __ATOMIC_RELEASE);
	__atomic_or_fetch(&weft__unusual, WEFT__EFFECTS_DOUBLED, __ATOMIC_SEQ_CST);
}

static bool is_equal(const weft_effect_t *a, const weft_effect_t *b)
{
	return a->hash == b->hash && a->index == b->index && a->size == b->size && !strcmp(a->name, b->name) &&
	       (a->family == a) == (b->family == b);
}

static void enlist(weft_effect_t *effect)
{
	weft_effect_t **list = &lists[effect->hash % LISTS], *e = *list;

	while (e && !is_equal(e, effect))
		e = e->next;
	if (e)
		join(e, effect);
	effect->next = *list;
	*list = effect;
}

static void describe(const struct weft__declared *d, const struct weft__declared *family)
{
	weft_effect_t *effect = d->effect;

	if (effect->declared) {
		if (effect->size != d->size)
			die_sizes_differ(d);
		return;
	}
	effect->signature = is_of_family(d) ? "" : d->text;
	effect->family = d->family;
	effect->index = is_of_family(d) ? 0 : d->index;
	effect->size = d->size;
	effect->name = d->name;
	effect->declared = d;
	if (effect != d->family) {
		effect->sibling = d->family->members;
		__atomic_store_n(&d->family->members, effect, __ATOMIC_RELEASE); /* weft__known_as reads */
	}
	/* An effect of one file is in a list too, because its default handler may be unloaded. It equals no other
	 * effect. */
	effect->hash = is_of_one_file(d) ? (uintptr_t)effect : hash_of(family, d);
	enlist(effect);
}

/* The record that describes the family. The records come from the same declaration, but compilers reorder them. */
static const struct weft__declared *record_of(const weft_effect_t *effect, const struct weft__declared *first,
					      const struct weft__declared *end)
{
	const struct weft__declared *d = effect->declared;

	for (; !d && first < end; first++)
		if (first->effect == effect)
			d = first;
	return d;
}

WEFT__COLD void weft__declare(struct weft__records *records)
{
	const struct weft__declared *d, *family;

	lock();
	records->next = all_records;
	all_records = records;
	for (d = records->first; d < records->end; d++) {
		family = record_of(d->family, records->first, records->end);
		if (family)
			describe(d, family);
	}
	unlock();
}

/* ---- unloading --------------------------------------------------------------------------------------------------- */

static void leave_group(weft_effect_t *effect)
{
	struct weft__group *group = effect->group;
	const weft_effect_t *e;

	if (!--group->members) {
		free(group);
		return;
	}
	if (group->chosen != effect)
		return;
	for (e = lists[effect->hash % LISTS]; e && e->group != group; e = e->next)
		;
	group->chosen = e;
}

static void delist(weft_effect_t *effect)
{
	weft_effect_t **link = &lists[effect->hash % LISTS];

	while (*link && *link != effect)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = effect->next;
	if (effect->group)
		leave_group(effect);
}

static void leave_family(weft_effect_t *effect)
{
	weft_effect_t **link = &effect->declared->family->members;

	while (*link && *link != effect)
		link = &(*link)->sibling;
	if (*link)
		__atomic_store_n(link, effect->sibling, __ATOMIC_RELEASE);
}

static const struct weft__declared *other_record_of(const weft_effect_t *effect)
{
	const struct weft__records *records = all_records;
	const struct weft__declared *d;

	for (; records; records = records->next)
		for (d = records->first; d < records->end; d++)
			if (d->effect == effect)
				return d;
	return NULL;
}

/* Called when the effect's object stays, but the record that describes it is being unloaded. */
static WEFT__COLD void redescribe(weft_effect_t *effect)
{
	const struct weft__declared *other = other_record_of(effect);

	if (other) {
		effect->signature = is_of_family(other) ? "" : other->text;
		effect->name = other->name;
		effect->declared = other;
		return;
	}
	delist(effect);
	leave_family(effect);
	effect->group = NULL;
	effect->declared = NULL;
	__atomic_store_n(&effect->default_handler, NULL, __ATOMIC_RELEASE);
}

/* Remove the default handlers whose code is in a shared object that is being unloaded. */
static void forget_defaults(const struct object *object)
{
	weft_effect_t *e;

	if (WEFT_CANARY(defaults_outlive_their_code))
		return;
	for (int i = 0; i < LISTS; i++)
		for (e = lists[i]; e; e = e->next)
			if (contains(&object->info, (void *)(uintptr_t)e->default_handler))
				__atomic_store_n(&e->default_handler, NULL, __ATOMIC_RELEASE);
}

static void forget_records(struct weft__records *records)
{
	struct weft__records **link = &all_records;

	while (*link && *link != records)
		link = &(*link)->next;
	if (*link)
		*link = records->next;
}

/* Called when a shared object is being unloaded, or the process ends. The effects in the object keep their
 * descriptions, because destructors may still perform them; the program's code stays until the end. */
WEFT__COLD void weft__undeclare(struct weft__records *records)
{
	const struct weft__declared *d;
	struct object object;
	bool is_unloaded;

	lock();
	is_unloaded = find_object(records, &object) && object.before;
	forget_records(records);
	for (d = records->first; d < records->end; d++) {
		if (d->effect->declared != d)
			continue;
		if (is_unloaded && !contains(&object.info, d->effect) && WEFT_NO_CANARY(descriptions_are_left_behind))
			redescribe(d->effect);
		else
			delist(d->effect);
	}
	if (is_unloaded)
		forget_defaults(&object);
	unlock();
	weft__forget_found_everywhere();
}

/* ---- default handlers -------------------------------------------------------------------------------------------- */

void weft__set_default(weft_effect_t *effect, void (*handler)(void))
{
	weft_effect_t *e;

	lock();
	__atomic_store_n(&effect->default_handler, handler, __ATOMIC_RELEASE);
	for (e = effect->group ? lists[effect->hash % LISTS] : NULL; e; e = e->next)
		if (e->group == effect->group)
			__atomic_store_n(&e->default_handler, handler, __ATOMIC_RELEASE);
	unlock();
}

/* ---- addresses that a handler knows ---------------------------------------------------------------------------- */

/* The effect that is equal to `effect` among the effects that a member of a handled set stands for; else NULL. */
static const weft_effect_t *within(const weft_effect_t *member, const weft_effect_t *effect)
{
	const weft_effect_t *e;

	if (weft__same(member, effect))
		return member;
	if (!weft__same(member, effect->family))
		return NULL;
	for (e = __atomic_load_n(&member->members, __ATOMIC_ACQUIRE); e && e->index != effect->index; e = e->sibling)
		;
	return e;
}

/* Finds, among the effects that a member of a handled set stands for, one that corresponds to `effect`; else NULL. */
typedef const weft_effect_t *finder(const weft_effect_t *member, const weft_effect_t *effect);

static const weft_effect_t *in_table(const weft_handler_t *handler, const weft_effect_t *effect, finder *find)
{
	const weft_clause_t *clause = handler->clauses, *end = clause + handler->count;

	while (clause < end && !find(clause->effect, effect))
		clause++;
	return clause < end ? clause->effect : NULL;
}

/* Search the effects that k's resumer handles by name, not by handling all effects. */
static const weft_effect_t *among_handled(const weft_coro_t *k, const weft_effect_t *effect, finder *find)
{
	const weft_handler_t *handler = weft__handler_of(k->handled);
	const weft_effect_t *const *member, *e = NULL;

	if (handler)
		return in_table(handler, effect, find);
	if (k->handled == ~(uintptr_t)0)
		return NULL;
	if (!(k->handled & 1))
		return find((const weft_effect_t *)k->handled, effect);
	for (member = (const weft_effect_t *const *)(k->handled - 1); *member && !e; member++)
		e = find(*member, effect);
	return e;
}

bool weft__resumer_handles(const weft_coro_t *k, const weft_effect_t *effect)
{
	const weft_handler_t *handler = weft__handler_of(k->handled);

	if (handler && handler->label)
		return false;
	return k->handled == ~(uintptr_t)0 || among_handled(k, effect, within);
}

const weft_effect_t *weft__known_as(const weft_coro_t *k, const weft_effect_t *effect)
{
	const struct weft__group *group = weft__group_of(effect);
	const weft_effect_t *known;

	if (!group)
		return effect;
	known = k->handled == ~(uintptr_t)0 ? group->chosen : among_handled(k, effect, within);
	return known ? known : effect;
}

/* ---- mistakes --------------------------------------------------------------------------------------------------- */

static const weft_effect_t *namesake_within(const weft_effect_t *member, const weft_effect_t *effect)
{
	const weft_effect_t *e;

	if ((uintptr_t)member < 4096)
		return NULL;
	if (!strcmp(member->name, effect->name))
		return member;
	for (e = __atomic_load_n(&member->members, __ATOMIC_ACQUIRE); e && strcmp(e->name, effect->name);
	     e = e->sibling)
		;
	return e;
}

const weft_effect_t *weft__namesake(const weft_coro_t *k, const weft_effect_t *effect)
{
	const weft_effect_t *e = NULL;

	for (; k && k->parent && !e; k = k->parent)
		e = among_handled(k, effect, namesake_within);
	return e && !weft__same(e, effect) ? e : NULL;
}

/* Print the text of a family in symbols as it is declared: in the text, '|' stands for a comma between types, and ends
 * an effect. */
static void line_family(struct weft__line *line, const char *text)
{
	bool inside = false;

	for (; *text; text++) {
		char c[3] = {*text};

		inside = *text == '(' || (inside && *text != ')');
		if (*text == '|')
			c[0] = inside ? ',' : text[1] == '}' ? 0 : ';', c[1] = ' ';
		weft__line_text(line, c);
	}
}

/* "net" for "net." and "a::b" for "a::b::". */
static void line_space(struct weft__line *line, const char *space)
{
	size_t end = strlen(space);

	while (end && (space[end - 1] == '.' || space[end - 1] == ':'))
		end--;
	for (size_t i = 0; i < end; i++)
		weft__line_text(line, (char[]){space[i], 0});
}

/* Print "int get() of net.state{int get(); void put(int)}", or "int get() of net" for an effect without a family. */
WEFT__COLD void weft__line_declaration(struct weft__line *line, const weft_effect_t *effect)
{
	const struct weft__declared *family = effect->family->declared;

	weft__line_text(line, effect->signature);
	if (!family || (effect->family == effect && !*family->space))
		return;
	weft__line_text(line, " of ");
	if (effect->family == effect) {
		line_space(line, family->space);
		return;
	}
	weft__line_text(line, family->space);
	line_family(line, family->text);
}
