/* SPDX-License-Identifier: BSD-2-Clause */
#include "naming.h"
#include <inspect/clock.h>
#include <inspect/saved_names.h>
#include <stdarg.h>

int naming_symbol(struct naming *w, const char *name, size_t name_n, const char *module,
		  enum frame_kind kind, bool unknown, uint32_t *ret_symbol)
{
	struct symbol s = {.kind = kind, .unknown = unknown};
	int err = intern_add(&w->p->strings, name, MIN(name_n, (size_t)SYMBOL_NAME_MAX), &s.name);

	if (!err)
		err = intern_puts(&w->p->strings, module, &s.module);
	return err ? err : profile_symbol(w->p, &s, ret_symbol);
}

int naming_add(struct naming *w, uint32_t frame, const struct symbol_at *at)
{
	struct frame_names *names = &w->names[frame];
	int err = array_push(&w->at, *at);

	if (err)
		return err;
	if (!names->n++)
		names->first = (uint32_t)w->at.n - 1;
	return 0;
}

int naming_set(struct naming *w, uint32_t frame, uint32_t symbol)
{
	w->names[frame].n = 0;
	return naming_add(w, frame, &(struct symbol_at){.symbol = symbol});
}

int naming_set_unnamed(struct naming *w, uint32_t frame, uint64_t loc)
{
	const char *module = dso_short_name(naming_dso(w, frame));
	uint32_t symbol;
	int err;

	strbuf_clear(&w->text);
	if (module[0] == '[') /* "[vdso]" */
		strbuf_printf(&w->text, "%.*s+0x%llx]", (int)strlen(module) - 1, module,
			      (unsigned long long)loc);
	else
		strbuf_printf(&w->text, "[%s+0x%llx]", module, (unsigned long long)loc);
	if (w->text.failed)
		return -ENOMEM;
	err = naming_symbol(w, w->text.v, w->text.n, module, w->p->frames.v[frame].kind, true,
			    &symbol);
	return err ? err : naming_set(w, frame, symbol);
}

int naming_file_note(struct naming *w, const char *fmt, ...)
{
	CLEANUP(freep) char *text = NULL;
	va_list args;
	int n;

	if (w->file_notes++ >= FILE_NOTES_MAX)
		return 0;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return profile_note(w->p, "%s", text);
}

/* A frame that had its name from the start: text input, synthetic frames. */
static int name_given(struct naming *w, uint32_t frame)
{
	const struct frame *f = &w->p->frames.v[frame];
	struct symbol s = {
		.name = (uint32_t)f->loc, .module = (uint32_t)(f->loc >> 32), .kind = f->kind};
	const char *name = intern_str(&w->p->strings, s.name);
	uint32_t symbol;
	int err;

	/* Names that the text's writer made up for what he could not name. */
	s.unknown = str_eq(name, "[unknown]") ||
		    (s.module && name[0] == '[' &&
		     str_starts(name + 1, intern_str(&w->p->strings, s.module)));
	err = profile_symbol(w->p, &s, &symbol);
	return err ? err : naming_set(w, frame, symbol);
}

/* Names that came with the file; the frame stays unnamed when there are none. */
static int name_saved(struct naming *w, uint32_t frame)
{
	const struct saved_name *v = NULL;
	size_t n = w->o->saved ? saved_names_find(w->o->saved, naming_dso(w, frame),
						  w->p->frames.v[frame].loc, &v)
			       : 0;

	if (w->o->no_inline)
		n = MIN(n, (size_t)1);
	for (size_t i = 0; i < n; i++) {
		struct symbol_at at = {.line = v[i].line};
		int err = naming_symbol(w, v[i].name, strlen(v[i].name), v[i].module, v[i].kind,
					v[i].unknown, &at.symbol);

		if (!err)
			err = intern_puts(&w->p->strings, v[i].file, &at.file);
		if (!err)
			err = naming_add(w, frame, &at);
		if (err)
			return err;
	}
	return 0;
}

/* What is left after everything was tried. */
static int name_stand_in(struct naming *w, uint32_t frame)
{
	const struct dso *d = naming_dso(w, frame);
	const struct frame *f = &w->p->frames.v[frame];
	char text[64];
	uint32_t symbol;
	int err;

	if (d->kind == DSO_ELF || d->kind == DSO_VDSO)
		return naming_set_unnamed(w, frame, f->loc);
	snprintf(text, sizeof(text), "%s 0x%llx", dso_short_name(d), (unsigned long long)f->loc);
	err = naming_symbol(w, text, strlen(text), dso_short_name(d), f->kind, true, &symbol);
	return err ? err : naming_set(w, frame, symbol);
}

/* A frame to be named, with what it is sorted by. */
struct job {
	uint64_t loc;
	uint32_t group; /* the first dso with the same contents */
	uint32_t dso;
	uint32_t frame;
};

typedef ARRAY(struct job) jobs;

static int by_place(const void *a, const void *b)
{
	const struct job *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->dso != y->dso)
		return x->dso < y->dso ? -1 : 1;
	return x->loc < y->loc ? -1 : x->loc > y->loc;
}

/* By dso: the first dso of the same build-id, so that each file is read once. */
static int group_dsos(const struct dso_table *t, uint32_t **ret)
{
	struct hashmap map = {0};
	uint32_t *group = calloc(t->dsos.n, sizeof(*group));
	int err = group ? 0 : -ENOMEM;

	for (uint32_t d = 0; d < t->dsos.n && !err; d++) {
		const struct dso *dso = t->dsos.v[d];
		uint64_t hash = hash_bytes(dso->build_id, dso->build_id_size);
		uint32_t at, i;

		group[d] = d;
		if (dso->kind != DSO_ELF || !dso->build_id_size)
			continue;
		hashmap_each_candidate(&map, hash, at, i) {
			const struct dso *known = t->dsos.v[i];

			if (known->build_id_size == dso->build_id_size &&
			    memcmp(known->build_id, dso->build_id, dso->build_id_size) == 0)
				break;
		}
		if (i != HASHMAP_NONE)
			group[d] = i;
		else
			err = hashmap_insert(&map, hash, d);
	}
	hashmap_release(&map);
	if (err) {
		free(group);
		return err;
	}
	*ret = group;
	return 0;
}

/* Names what needs no look-up and lists the rest. */
static int collect_jobs(struct naming *w, jobs *out)
{
	CLEANUP(freep) uint32_t *group = NULL;
	int err = group_dsos(&w->p->processes.dsos, &group);

	for (uint32_t i = 0; i < w->p->frames.n && !err; i++) {
		const struct frame *f = &w->p->frames.v[i];

		if (f->dso == DSO_ID_NAMED)
			err = name_given(w, i);
		else if (!w->o->no_demangle) /* saved names are demangled ones */
			err = name_saved(w, i);
		if (!err && !w->names[i].n)
			err = array_push(out, (struct job){f->loc, group[f->dso], f->dso, i});
	}
	return err;
}

typedef int name_frames_fn(struct naming *w, const uint32_t *frames, size_t n);

static name_frames_fn *const name_frames[] = {
	[DSO_KERNEL] = naming_kernel, [DSO_ELF] = naming_elf,   [DSO_VDSO] = naming_elf,
	[DSO_JIT] = naming_jit,       [DSO_CODE] = naming_code,
};

static int run_jobs(struct naming *w, const jobs *list)
{
	CLEANUP(freep) uint32_t *frames = calloc(list->n ? list->n : 1, sizeof(*frames));
	int err = frames ? 0 : -ENOMEM;

	for (size_t i = 0, j; i < list->n && !err; i = j) {
		enum dso_kind kind = naming_dso(w, list->v[i].frame)->kind;

		for (j = i; j < list->n && list->v[j].group == list->v[i].group; j++)
			frames[j] = list->v[j].frame;
		if (name_frames[kind])
			err = name_frames[kind](w, frames + i, j - i);
	}
	for (size_t i = 0; i < list->n && !err; i++) {
		uint32_t frame = list->v[i].frame;

		if (!w->names[frame].n && w->o->no_demangle)
			err = name_saved(w, frame);
		if (!err && !w->names[frame].n)
			err = name_stand_in(w, frame);
	}
	return err;
}

/* The result in order of frames. */
static int lay_out(struct naming *w)
{
	struct profile *p = w->p;
	int err = array_reserve(&p->first, p->frames.n + 1);

	if (!err)
		err = array_reserve(&p->at, w->at.n);
	if (err)
		return err;
	p->at.n = 0;
	for (size_t i = 0; i < p->frames.n; i++) {
		const struct frame_names *names = &w->names[i];

		p->first.v[i] = (uint32_t)p->at.n;
		for (uint32_t k = 0; k < names->n && !err; k++)
			err = array_push(&p->at, w->at.v[names->first + k]);
	}
	p->first.v[p->frames.n] = (uint32_t)p->at.n;
	p->first.n = p->frames.n + 1;
	return err;
}

/* What was asked from the network, and what came of it. */
static int note_debuginfod(struct naming *w)
{
	const struct debuginfod *d = &w->debuginfod;
	char spent[32];

	if (d->no_library)
		return profile_note(w->p, "DEBUGINFOD_URLS is set, but libdebuginfod.so.1 is not "
					  "installed: debug files were not asked for");
	if (!d->asked)
		return 0;
	return profile_note(w->p,
			    "debuginfod: asked for %u debug file%s, found %u, in %s%s (--offline "
			    "leaves it out)",
			    d->asked, d->asked == 1 ? "" : "s", d->found,
			    duration_format(d->spent_ns, spent, sizeof(spent)),
			    d->no_answer ? "; given up, it took too long" : "");
}

static int name_all(struct naming *w)
{
	jobs list = {0};
	int err = collect_jobs(w, &list);

	if (!err && list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_place);
	if (!err)
		err = run_jobs(w, &list);
	array_release(&list);
	if (!err && w->file_notes > FILE_NOTES_MAX)
		err = profile_note(w->p, "%u more files could not be used for names",
				   w->file_notes - FILE_NOTES_MAX);
	if (!err)
		err = note_debuginfod(w);
	if (!err)
		err = lay_out(w);
	return err ? err : naming_mark_cut(w);
}

int symbolize_profile(struct profile *p, const struct symbolize_options *o)
{
	struct naming w = {.p = p, .o = o};
	int err = -ENOMEM;

	w.names = calloc(p->frames.n ? p->frames.n : 1, sizeof(*w.names));
	w.entry = calloc(p->frames.n ? p->frames.n : 1, sizeof(*w.entry));
	if (w.names && w.entry)
		err = name_all(&w);
	free(w.names);
	free(w.entry);
	array_release(&w.at);
	strbuf_release(&w.text);
	debuginfod_release(&w.debuginfod);
	return err;
}
