/* SPDX-License-Identifier: BSD-2-Clause */
/* The index of DWARF compared with addr2line -fi: names, files and lines of whole chains. */
#ifndef ADDR2LINE_H
#define ADDR2LINE_H

#include "../../src/symbol/dwarf_index.h"
#include "scratch.h"

struct comparison {
	unsigned n;         /* addresses */
	unsigned inlined;   /* with more than one function */
	unsigned nameless;  /* no line for both; or padding, which bfd gives to the code before */
	unsigned linker;    /* names that are the linker's there, see below */
	unsigned different; /* the rest */
};

struct oracle_frame {
	const char *name, *file;
	unsigned line;
};

enum { CHAIN_SHOWN = 64 };

/* Innermost first, as addr2line prints them. */
struct oracle_chain {
	struct oracle_frame v[CHAIN_SHOWN];
	size_t n;
};

/* "name\nfile:line (discriminator 3)\n…" up to the next address. */
static inline void oracle_read(char **at, struct oracle_chain *ret)
{
	ret->n = 0;
	while (**at && strncmp(*at, "0x", 2) != 0 && ret->n < CHAIN_SHOWN) {
		struct oracle_frame *f = &ret->v[ret->n++];
		char *place, *colon;

		f->name = strsep(at, "\n");
		place = strsep(at, "\n");
		colon = strrchr(place, ':');
		f->line = (unsigned)strtoul(colon + 1, NULL, 10);
		*colon = '\0';
		f->file = place;
	}
}

static inline bool same_place(const struct oracle_frame *want, const struct source_frame *got)
{
	char file[4096];

	snprintf(file, sizeof(file), "%s%s%s", got->file && got->file[0] != '/' ? got->folder : "",
		 got->file && got->file[0] != '/' ? "/" : "", got->file ? got->file : "??");
	return want->line == got->line && (!got->line || str_eq(want->file, file));
}

/*
 * bfd (_bfd_dwarf2_find_nearest_line_with_alt) replaces the name of the innermost function by that
 * of the symbol at the address when DWARF gives it no linkage name, as g++ does for templates on
 * local types; and it remembers that. For an inlined function it is the name of another one, the
 * outermost. A line that belongs to no function gets it too, and llvm gives it to the outermost
 * function (as inspect does, outside of the index).
 */
static inline bool has_linker_name(const struct oracle_frame *want, const struct source_frame *got,
				   const struct elf_symbol *symbol, bool outermost)
{
	if (!symbol || !str_eq(want->name, symbol->name))
		return false;
	return outermost || !got->name || strncmp(got->name, "_Z", 2) != 0;
}

/* Equal functions share their code under several names: …C1Ev and …C2Ev, or folded instances. */
static inline bool is_alias(const char *nm, const char *name, const struct elf_symbol *symbol)
{
	char line[70];
	const char *at = nm;
	size_t n = strlen(name);

	snprintf(line, sizeof(line), "%016llx ",
		 (unsigned long long)(symbol ? symbol->elf_vaddr : 0));
	while ((at = strstr(at, line)) != NULL) {
		at += strlen(line) + 2;
		if (strncmp(at, name, n) == 0 && at[n] == '\n')
			return true;
	}
	return false;
}

static inline bool same_chain(const struct oracle_chain *want, const struct source_frames *got,
			      const struct elf_symbol *symbol, const char *nm, unsigned *ret_linker)
{
	if (want->n != got->v.n)
		return false;
	for (size_t i = 0; i < want->n; i++) {
		const struct source_frame *f = &got->v.v[got->v.n - 1 - i];
		bool outermost = i + 1 == want->n;

		if (!same_place(&want->v[i], f))
			return false;
		if (f->name && str_eq(want->v[i].name, f->name))
			continue;
		if (!has_linker_name(&want->v[i], f, symbol, outermost) &&
		    !(outermost && is_alias(nm, want->v[i].name, symbol)))
			return false;
		++*ret_linker;
	}
	return true;
}

static inline void show_difference(uint64_t address, const struct oracle_chain *want,
				   const struct source_frames *got)
{
	print_message("# %llx\n", (unsigned long long)address);
	for (size_t i = 0; i < want->n; i++)
		print_message("#   want %s %s:%u\n", want->v[i].name, want->v[i].file,
			      want->v[i].line);
	for (size_t i = got->v.n; i-- > 0;)
		print_message("#   got  %s %s:%u\n", got->v.v[i].name ? got->v.v[i].name : "-",
			      got->v.v[i].file ? got->v.v[i].file : "-", got->v.v[i].line);
}

static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* n random addresses of .text into the file `list`, one a line. */
static inline void list_random(const char *path, unsigned n, const char *list)
{
	char *text =
		shell("readelf -SW %s | sed -n 's/^ *\\[ *[0-9]*\\] \\.text  *PROGBITS //p'", path);
	unsigned long long start, size;
	uint64_t random = 88172645463325252ULL;
	FILE *file = fopen(list, "w");

	if (!file || sscanf(text, "%llx %*x %llx", &start, &size) != 2)
		abort();
	free(text);
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "0x%llx\n", start + next_random(&random) % size);
	fclose(file);
}

static inline struct comparison compare_chains(const char *addr2line, const char *path,
					       struct dwarf_index *x,
					       const struct elf_symbols *symbols, unsigned n)
{
	struct comparison c = {0};
	struct source_frames got = {0};
	struct oracle_chain want;
	char *text, *at, *nm = shell("nm %s", path);

	list_random(path, n, "addresses");
	text = at = shell("%s -afi -e %s < addresses", addr2line, path);
	while (*at) {
		uint64_t address = strtoull(strsep(&at, "\n"), NULL, 16);
		const struct elf_symbol *symbol;

		oracle_read(&at, &want);
		if (dwarf_index_find(x, address, &got))
			abort();
		c.n++;
		c.inlined += want.n > 1;
		symbol = elf_symbols_find(symbols, address);
		if (same_chain(&want, &got, symbol, nm, &c.linker))
			continue;
		if (want.n == 1 && (got.v.n ? !got.v.v[0].name && !symbol : !want.v[0].line))
			c.nameless++;
		else if (c.different++ < 5)
			show_difference(address, &want, &got);
	}
	array_release(&got.v);
	free(text);
	free(nm);
	return c;
}

#endif
