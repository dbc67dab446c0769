/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sections of objects, programs and archives, by name. Files come from anywhere: every offset is checked, and a file
 * that is not an ELF file for 64-bit little-endian machines has no sections.
 */
#include "launch.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file in memory, or a member of an archive. */
struct image {
	const char *data;
	size_t size;
};

struct table {
	const Elf64_Shdr *at, *names;
	size_t n;
};

static bool within(struct image f, uint64_t offset, uint64_t length)
{
	return offset <= f.size && length <= f.size - offset;
}

/* The sections of a file; none if it is not such an ELF file. More than 65 279 sections are counted in the first
 * section. */
static struct table sections_of(struct image f)
{
	const Elf64_Ehdr *e = (const void *)f.data;
	struct table t = {0};
	size_t names;

	if (f.size < sizeof *e || memcmp(f.data, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
	    e->e_ident[EI_DATA] != ELFDATA2LSB || e->e_shentsize != sizeof *t.at || e->e_shoff % 8 != 0 ||
	    !e->e_shoff || !within(f, e->e_shoff, sizeof *t.at))
		return t;
	t.at = (const void *)(f.data + e->e_shoff);
	t.n = e->e_shnum ? e->e_shnum : t.at->sh_size;
	names = e->e_shstrndx == SHN_XINDEX ? t.at->sh_link : e->e_shstrndx;
	if (t.n > f.size / sizeof *t.at || !within(f, e->e_shoff, t.n * sizeof *t.at) || names >= t.n)
		return (struct table){0};
	t.names = &t.at[names];
	return t;
}

/* The string at an offset in a table of strings; "" if there is no string. */
static const char *string_at(struct image f, const Elf64_Shdr *strings, uint64_t offset)
{
	const char *s = f.data + strings->sh_offset + offset;

	if (!within(f, strings->sh_offset, strings->sh_size) || offset >= strings->sh_size ||
	    !memchr(s, 0, strings->sh_size - offset))
		return "";
	return s;
}

static void search_elf(struct image f, const char *file, const char *section, section_fn *found, void *arg)
{
	struct table t = sections_of(f);

	for (const Elf64_Shdr *h = t.at; h < t.at + t.n; h++)
		if (h->sh_type == SHT_PROGBITS && within(f, h->sh_offset, h->sh_size) &&
		    strcmp(string_at(f, t.names, h->sh_name), section) == 0)
			found(arg, file, f.data + h->sh_offset, h->sh_size);
}

/* An archive's member begins with this, all of it text. */
struct member {
	char name[16], date[12], owner[6], group[6], mode[8], size[10], end[2];
};

#define ARCHIVE "!<arch>\n"

/* The name of a member: a long name is an offset into the table of names, where it ends with "/\n". */
static char *member_name(const char *archive, const struct member *m, struct image names)
{
	size_t offset = m->name[0] == '/' ? strtoul(m->name + 1, NULL, 10) : 0;

	if (m->name[0] != '/')
		return text("%s(%.*s)", archive, (int)strcspn(m->name, "/"), m->name);
	if (offset >= names.size || !memchr(names.data + offset, '/', names.size - offset))
		return text("%s(?)", archive);
	return text("%s(%.*s)", archive, (int)strcspn(names.data + offset, "/"), names.data + offset);
}

/* Members are aligned to 2 bytes only, so an ELF file in a member is copied before it is read. */
static void search_member(char *name, struct image f, const char *section, section_fn *found, void *arg)
{
	void *copy;

	if (f.size > SELFMAG && memcmp(f.data, ELFMAG, SELFMAG) == 0 && (copy = malloc(f.size))) {
		memcpy(copy, f.data, f.size);
		search_elf((struct image){copy, f.size}, name, section, found, arg);
		free(copy);
	}
	free(name);
}

static void search_archive(struct image f, const char *file, const char *section, section_fn *found, void *arg)
{
	size_t at = strlen(ARCHIVE);
	struct image names = {0};

	while (within(f, at, sizeof(struct member))) {
		const struct member *m = (const void *)(f.data + at);
		struct image one = {f.data + at + sizeof *m, strtoul(m->size, NULL, 10)};

		at += sizeof *m;
		if (!within(f, at, one.size))
			return;
		if (memcmp(m->name, "// ", 3) == 0)
			names = one;
		else if (memcmp(m->name, "/ ", 2) != 0)
			search_member(member_name(file, m, names), one, section, found, arg);
		at += one.size + one.size % 2;
	}
}

/* Maps a file; size 0 if that fails, or if the file is not a regular file. */
static struct image map(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct image f = {0};
	struct stat s;
	void *data;

	if (fd < 0)
		return f;
	if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size) {
		data = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data != MAP_FAILED)
			f = (struct image){data, (size_t)s.st_size};
	}
	close(fd);
	return f;
}

bool find_sections(const char *file, const char *section, section_fn *found, void *arg)
{
	struct image f = map(file);

	if (!f.size)
		return false;
	if (f.size > strlen(ARCHIVE) && memcmp(f.data, ARCHIVE, strlen(ARCHIVE)) == 0)
		search_archive(f, file, section, found, arg);
	else
		search_elf(f, file, section, found, arg);
	munmap((void *)f.data, f.size);
	return true;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Weft's own names depend on how much of the program is known, so they are left out. */
static void add_symbol(struct words *w, const Elf64_Sym *s, const char *name)
{
	if (ELF64_ST_BIND(s->st_info) != STB_LOCAL && s->st_shndx != SHN_UNDEF && !starts(name, "weft."))
		words_add(w, text("%d %d %s\n", ELF64_ST_BIND(s->st_info), ELF64_ST_VISIBILITY(s->st_other), name));
}

char *defined_symbols(const char *file)
{
	struct image f = map(file);
	struct table t = sections_of(f);
	struct words names = {0};
	char *all;

	if (!t.n)
		return NULL;
	for (const Elf64_Shdr *h = t.at; h < t.at + t.n; h++) {
		const Elf64_Sym *s = (const void *)(f.data + h->sh_offset);

		if (h->sh_type != SHT_SYMTAB || !within(f, h->sh_offset, h->sh_size) || h->sh_offset % 8 ||
		    h->sh_link >= t.n)
			continue;
		for (size_t i = 0; i < h->sh_size / sizeof *s; i++)
			add_symbol(&names, &s[i], string_at(f, &t.at[h->sh_link], s[i].st_name));
	}
	if (names.n)
		qsort(names.at, names.n, sizeof *names.at, by_text);
	all = join(&names);
	munmap((void *)f.data, f.size);
	return all;
}
