/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of src/symbol share: the frames of one profile on their way to names. */
#ifndef NAMING_H
#define NAMING_H

#include "debuginfod.h"
#include <inspect/code_file.h>
#include <inspect/symbolize.h>

/* Symbols of a frame: naming.at[first] and the n - 1 after it; n 0: not named yet. */
struct frame_names {
	uint32_t first, n;
};

struct naming {
	struct profile *p;
	const struct symbolize_options *o;
	struct frame_names *names; /* by frame */
	bool *entry;               /* by frame: inside the function at the file's e_entry */
	ARRAY(struct symbol_at) at;
	struct strbuf text;  /* scratch for one name */
	unsigned file_notes; /* notes about files so far; above FILE_NOTES_MAX they are counted */
	struct debuginfod debuginfod;
};

#define FILE_NOTES_MAX 8
#define SYMBOL_NAME_MAX 16384 /* longer names are cut */

static inline const struct dso *naming_dso(const struct naming *w, uint32_t frame)
{
	return w->p->processes.dsos.dsos.v[w->p->frames.v[frame].dso];
}

/* Interns a symbol. 0 or -errno. */
int naming_symbol(struct naming *w, const char *name, size_t name_n, const char *module,
		  enum frame_kind kind, bool unknown, uint32_t *ret_symbol);
/* Adds a symbol to a frame: outermost first. */
int naming_add(struct naming *w, uint32_t frame, const struct symbol_at *at);
/* Gives a frame its one symbol. */
int naming_set(struct naming *w, uint32_t frame, uint32_t symbol);
/* "[label+0xloc]" for a frame of a file. */
int naming_set_unnamed(struct naming *w, uint32_t frame, uint64_t loc);

/* Adds a note about one file, or counts it when there are many. 0 or -ENOMEM. */
int naming_file_note(struct naming *w, const char *fmt, ...) PRINTF(2, 3);

/* Frames of files (and vdso images) with the same contents, sorted by dso, then loc. */
int naming_elf(struct naming *w, const uint32_t *frames, size_t n);
/* Kernel frames, sorted by address. */
int naming_kernel(struct naming *w, const uint32_t *frames, size_t n);
/* Frames in one process's anonymous code, sorted by address. */
int naming_jit(struct naming *w, const uint32_t *frames, size_t n);

/* Frames of code that lay somewhere for a time: named already, and demangled here. */
int naming_code(struct naming *w, const uint32_t *frames, size_t n);

/* Marks and counts the stacks that do not reach an entry point. */
int naming_mark_cut(struct naming *w);

#endif
