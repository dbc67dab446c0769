/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A table of functions that have a twin, but no words in front of them that say where the twin is:
 *
 *   libc's functions that wait    libc_calls.c has their twins. A program's own function of such a name is not in
 *                                 the table.
 *   entries of the PLT            A program that is not position-independent may use such an address for a library's
 *                                 function. The twin is that function's.
 *   ifuncs                        Their address may be that of an entry of the PLT, too. The pass registers them.
 *
 * The first group makes the table, and it never changes: so readers need no lock. weft__activity_pointer and
 * weft__activity_resolve (x86_64.S) read it.
 *
 * An entry of the PLT that is used for a function is the value of a dynamic symbol that the program does not define.
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "activity/activity.h"

/* Bits 4 and up of a function's address say where the search begins. It ends at an empty entry. */
struct weft__twin {
	const void *function, *twin;
};
_Static_assert(sizeof(struct weft__twin) == 16, "see TWIN_BY_TABLE");

static struct weft__twin none;
struct weft__twin *weft__activity_twins = &none;
uint32_t weft__activity_twins_mask;

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* A loaded object's dynamic symbols. */
struct symbols {
	const ElfW(Sym) * first;
	const char *names;
	const uint32_t *hash, *gnu_hash;
};

static const ElfW(Phdr) * header(const struct dl_phdr_info *object, uint32_t type)
{
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == type)
			return &object->dlpi_phdr[i];
	return NULL;
}

/* Not all C libraries relocate the pointers in the dynamic section. */
static const void *at(const struct dl_phdr_info *object, const ElfW(Dyn) * d)
{
	uintptr_t p = d->d_un.d_ptr;

	return (const void *)(p < object->dlpi_addr ? p + object->dlpi_addr : p);
}

static bool symbols_of(const struct dl_phdr_info *object, struct symbols *s)
{
	const ElfW(Phdr) *dynamic = header(object, PT_DYNAMIC);
	const ElfW(Dyn) * d;

	*s = (struct symbols){0};
	if (!dynamic)
		return false;
	for (d = (const ElfW(Dyn) *)(object->dlpi_addr + dynamic->p_vaddr); d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_SYMTAB)
			s->first = at(object, d);
		else if (d->d_tag == DT_STRTAB)
			s->names = at(object, d);
		else if (d->d_tag == DT_HASH)
			s->hash = at(object, d);
		else if (d->d_tag == DT_GNU_HASH)
			s->gnu_hash = at(object, d);
	return s->first && s->names && (s->hash || s->gnu_hash);
}

/* The chains of the table end with an odd word. The last chain contains the last symbols. */
static uint32_t count_by_gnu_hash(const uint32_t *table)
{
	uint32_t buckets = table[0], unhashed = table[1], last = 0;
	const uint32_t *bucket = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
	const uint32_t *chain = bucket + buckets;

	for (uint32_t i = 0; i < buckets; i++)
		if (bucket[i] > last)
			last = bucket[i];
	if (last < unhashed)
		return unhashed;
	while (!(chain[last - unhashed] & 1))
		last++;
	return last + 1;
}

static uint32_t count(const struct symbols *s)
{
	return s->hash ? s->hash[1] : count_by_gnu_hash(s->gnu_hash);
}

/* ---- entries of the PLT ------------------------------------------------------------------------------------------ */

struct plt_entry {
	const char *name;
	const void *address;
	const void *function; /* the definition that the dynamic linker chose, or its resolver; NULL: not found */
	bool of_libc;
};

struct plt {
	struct plt_entry *entries;
	size_t count;
	bool no_memory;
};

static bool is_entry(const ElfW(Sym) * s)
{
	return s->st_shndx == SHN_UNDEF && s->st_value && ELF64_ST_TYPE(s->st_info) == STT_FUNC;
}

/* The program is the first object. Other objects have no such entries. */
static int entries_of_program(struct dl_phdr_info *program, size_t size, void *arg)
{
	struct plt *plt = arg;
	struct symbols s;
	uint32_t n = symbols_of(program, &s) ? count(&s) : 0, i;

	(void)size;
	for (i = 0; i < n; i++)
		plt->count += is_entry(&s.first[i]);
	if (!plt->count)
		return 1;
	plt->entries = calloc(plt->count, sizeof *plt->entries);
	plt->no_memory = !plt->entries;
	plt->count = 0;
	for (i = 0; plt->entries && i < n; i++)
		if (is_entry(&s.first[i]))
			plt->entries[plt->count++] =
			    (struct plt_entry){.name = s.names + s.first[i].st_name,
					       .address = (const void *)(program->dlpi_addr + s.first[i].st_value)};
	return 1;
}

static struct plt_entry *entry_at(const struct plt *plt, const void *address)
{
	for (size_t i = 0; i < plt->count; i++)
		if (plt->entries[i].address == address)
			return &plt->entries[i];
	return NULL;
}

/* True for libc, and for a library that interposes functions and calls libc's. */
static bool is_libc(const char *path)
{
	static const char *const names[] = {"libc.",	      "libc-",	      "libpthread", "ld-musl",
					    "libweft-posix.", "libclang_rt.", "libasan.",   "libtsan."};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool defines_function(const ElfW(Sym) * s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return s->st_shndx != SHN_UNDEF && ELF64_ST_BIND(s->st_info) != STB_LOCAL &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC);
}

static int find_definition(struct dl_phdr_info *object, size_t size, void *entry)
{
	struct plt_entry *e = entry;
	struct symbols s;
	uint32_t n = symbols_of(object, &s) ? count(&s) : 0, i;

	(void)size;
	for (i = 0; i < n; i++)
		if (defines_function(&s.first[i]) && !strcmp(s.names + s.first[i].st_name, e->name)) {
			e->function = (const void *)(object->dlpi_addr + s.first[i].st_value);
			e->of_libc = is_libc(object->dlpi_name);
			return 1;
		}
	return 0;
}

/* ---- which definition of libc's names the program has ------------------------------------------------------------ */

struct place {
	uintptr_t address;
	int objects; /* examined before */
	bool is_static, of_libc;
};

static bool lies_in(const struct dl_phdr_info *object, uintptr_t address)
{
	const ElfW(Phdr) *h = object->dlpi_phdr;

	for (int i = 0; i < object->dlpi_phnum; i++)
		if (h[i].p_type == PT_LOAD && address - object->dlpi_addr - h[i].p_vaddr < h[i].p_memsz)
			return true;
	return false;
}

static int find_place(struct dl_phdr_info *object, size_t size, void *place)
{
	struct place *p = place;

	(void)size;
	if (!p->objects++)
		p->is_static = !header(object, PT_INTERP);
	if (!lies_in(object, p->address))
		return 0;
	p->of_libc = is_libc(object->dlpi_name);
	return 1;
}

/* Does glibc's archive have a second name for this function? */
static bool has_alias(const char *name)
{
#ifdef __GLIBC__
	static const char *const names[] = {
	    "read",    "write", "readv",  "writev",  "pread",	  "pwrite",	     "recv", "recvfrom",
	    "recvmsg", "send",	"sendto", "sendmsg", "accept",	  "connect",	     "poll", "select",
	    "flock",   "wait",	"sleep",  "waitpid", "nanosleep", "clock_nanosleep", "open", "openat"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], name))
			return true;
#endif
	(void)name;
	return false;
}

/* In a program that is linked statically, only a second name distinguishes libc's function from the program's. */
static bool is_of_libc(const struct weft__waits *w)
{
	struct place p = {.address = (uintptr_t)w->chosen};

	for (size_t i = 0; i < sizeof w->known / sizeof *w->known; i++)
		if (w->chosen == w->known[i])
			return true;
	(void)dl_iterate_phdr(find_place, &p);
	return p.of_libc || (p.is_static && !has_alias(w->name));
}

/* ---- ifuncs ------------------------------------------------------------------------------------------------------ */

/* A file that was compiled with the pass has such a record for each of its ifuncs. Its constructor links them into
 * the list. */
struct weft__ifunc {
	struct weft__ifunc *next;
	const void *address;
	const void *(*resolver)(void);
};

static struct weft__ifunc *ifuncs;

WEFT_API void weft__activity_ifunc(struct weft__ifunc *ifunc);

void weft__activity_ifunc(struct weft__ifunc *ifunc)
{
	ifunc->next = ifuncs;
	ifuncs = ifunc;
}

/* Returns the target of an entry of the PLT: [endbr64] [bnd] jmp *distance(%rip). NULL: it is other code. */
static const void *leads_to(const unsigned char *code)
{
	const void *target;
	int32_t distance;

	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		code += 4;
	if (*code == 0xf2)
		code++;
	if (code[0] != 0xff || code[1] != 0x25)
		return NULL;
	memcpy(&distance, code + 2, sizeof distance);
	memcpy(&target, code + 6 + distance, sizeof target);
	return target;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

enum { SIZE = 1024 };

static bool make_table(size_t most)
{
	size_t size = SIZE;
	struct weft__twin *table;

	while (size < 4 * most)
		size *= 2;
	table = calloc(size + most + 1, sizeof *table); /* a search does not continue at index 0 */
	if (!table)
		return false;
	weft__activity_twins = table;
	weft__activity_twins_mask = (uint32_t)(sizeof *table * (size - 1));
	return true;
}

static void add(const void *function, const void *twin)
{
	struct weft__twin *t = weft__activity_twins;

	t += ((uintptr_t)function & weft__activity_twins_mask) / sizeof *t;
	while (t->function && t->function != function)
		t++;
	*t = (struct weft__twin){function, twin};
}

static void add_waits(const struct plt *plt)
{
	const struct weft__waits *w;

	for (w = weft__waits; w->twin; w++) {
		const void *chosen = (const void *)(uintptr_t)w->chosen, *twin = (const void *)(uintptr_t)w->twin;
		const struct plt_entry *e = entry_at(plt, chosen);

		if (!chosen || (e ? !e->of_libc : !is_of_libc(w)))
			continue;
		add(chosen, twin);
		if (e)
			add(e->function, twin);
	}
}

static void add_entries(const struct plt *plt)
{
	for (size_t i = 0; i < plt->count; i++) {
		const struct plt_entry *e = &plt->entries[i];
		const void *twin = weft__activity_twin(e->function);

		if (twin != e->function)
			add(e->address, twin);
	}
}

/* Another definition may have replaced the ifunc. */
static void add_ifuncs(const struct plt *plt)
{
	struct weft__ifunc *f;

	for (f = ifuncs; f; f = f->next) {
		const struct plt_entry *e = entry_at(plt, f->address);
		const void *version = f->resolver(), *twin = weft__activity_twin(version);

		if (twin != version &&
		    (e ? e->function == (const void *)(uintptr_t)f->resolver : leads_to(f->address) == version))
			add(f->address, twin);
	}
}

static size_t most_twins(const struct plt *plt)
{
	size_t most = plt->count;
	const struct weft__waits *w;
	struct weft__ifunc *f;

	for (w = weft__waits; w->twin; w++)
		most += 2; /* an entry of the PLT, and the function */
	for (f = ifuncs; f; f = f->next)
		most++;
	return most;
}

static void begin(void)
{
	struct plt plt = {0};
	size_t i;

	weft__activity_measure();
	(void)dl_iterate_phdr(entries_of_program, &plt);
	if (plt.no_memory)
		return;
	for (i = 0; i < plt.count; i++)
		(void)dl_iterate_phdr(find_definition, &plt.entries[i]);
	if (make_table(most_twins(&plt))) {
		add_entries(&plt);
		add_waits(&plt);
		add_ifuncs(&plt);
	}
	free(plt.entries);
}

bool weft__twins_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, begin);
	return weft__activity_twins != &none;
}
