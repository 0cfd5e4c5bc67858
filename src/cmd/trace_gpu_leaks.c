/* SPDX-License-Identifier: BSD-2-Clause */
/* --leaks: what was allocated and not freed, by the call and the stack that made it. */
#include "trace_gpu.h"

enum { LEAKS_SHOWN = 25 };

/* Objects of one call, process and stack. */
struct leak {
	const char *what, *who; /* what: as the label of its waits */
	uint32_t pid;
	uint64_t stack_id;
	uint64_t count, bytes;
	bool has_bytes;
};

struct leaks {
	const struct gpu_run *run;
	struct result *r;
	ARRAY(struct leak) v;
	uint64_t n; /* objects */
};

static int more_first(const void *a, const void *b)
{
	const struct leak *x = a, *y = b;

	if (x->bytes != y->bytes)
		return (x->bytes < y->bytes) - (x->bytes > y->bytes);
	return (x->count < y->count) - (x->count > y->count);
}

static int add_object(void *ctx, const struct gpu_object *one)
{
	CLEANUP(strbuf_release) struct strbuf what = {0}, who = {0};
	struct leaks *l = ctx;
	size_t k = 0;

	gpu_call_put(&l->run->calls, &one->key, &what);
	strbuf_printf(&who, "%u ", one->pid);
	strbuf_add(&who, one->key.comm, strnlen(one->key.comm, sizeof(one->key.comm)));
	while (k < l->v.n &&
	       (l->v.v[k].stack_id != one->stack_id || !str_eq(l->v.v[k].what, strbuf_str(&what)) ||
		!str_eq(l->v.v[k].who, strbuf_str(&who))))
		k++;
	if (k == l->v.n &&
	    array_push(&l->v, (struct leak){.what = result_text(l->r, "%s", strbuf_str(&what)),
					    .who = result_text(l->r, "%s", strbuf_str(&who)),
					    .pid = one->pid,
					    .stack_id = one->stack_id}))
		return -ENOMEM;
	l->v.v[k].count++;
	l->v.v[k].bytes += one->has_length ? one->length_bytes : 0;
	l->v.v[k].has_bytes |= one->has_length;
	l->n++;
	return 0;
}

/* Where the calls that made it were counted; NULL: unknown. */
static const struct wait_site *site_of(const struct waits *w, const struct leak *leak)
{
	for (size_t i = 0; i < w->sites.n; i++) {
		const struct wait_site *s = &w->sites.v[i];

		if (s->stack_id == leak->stack_id && s->pid == leak->pid &&
		    str_eq(w->labels.v[s->label].text, leak->what))
			return s;
	}
	return NULL;
}

static int put_leak(const struct leaks *l, const struct offcpu_view *view, size_t section, size_t i,
		    struct symbol_path *path)
{
	const struct leak *leak = &l->v.v[i];
	const struct wait_site *site = site_of(view->waits, leak);

	result_row(l->r, section,
		   (const struct cell[]){
			   cell_u64(CELL_COUNT, i + 1),
			   cell_text(l->r, leak->what),
			   cell_text(l->r, leak->who),
			   cell_u64(CELL_COUNT, leak->count),
			   leak->has_bytes ? cell_u64(CELL_BYTES, leak->bytes)
					   : cell_null(l->r, "the call does not say how many"),
			   site ? cell_text(l->r, trace_caller_of(view->recording->profile, site,
								  NULL, path))
				: cell_null(l->r, "its stack was lost"),
		   });
	return l->r->failed ? -ENOMEM : 0;
}

static int put_leaks(const struct leaks *l, const struct offcpu_view *view)
{
	static const struct column columns[] = {
		{"leak", "#", CELL_COUNT, 0},
		{"call", "made by", CELL_TEXT, COLUMN_CUT},
		{"process", "process", CELL_TEXT, 0},
		{"objects", "not freed", CELL_COUNT, 0},
		{"bytes", "bytes", CELL_BYTES, 0},
		{"caller", "called by", CELL_TEXT, COLUMN_CUT},
	};
	size_t section = result_section(l->r, "leaks", "", columns, ARRAY_SIZE(columns));
	struct symbol_path path = {0};
	int err = 0;

	for (size_t i = 0; i < l->v.n && !err; i++)
		err = put_leak(l, view, section, i, &path);
	if (!err && !l->r->failed) {
		l->r->sections.v[section].limit = l->run->v->top ? l->run->v->top : LEAKS_SHOWN;
		l->r->sections.v[section].more = "--all";
	}
	for (size_t i = 0; i < l->v.n && i < view->stacks && !err; i++) {
		const struct wait_site *site = site_of(view->waits, &l->v.v[i]);

		if (site)
			err = offcpu_put_stack(l->r, view, site->stack, i + 1, l->v.v[i].what,
					       &path);
	}
	array_release(&path.at);
	return err ? err : l->r->failed ? -ENOMEM : 0;
}

int gpu_leaks(const struct gpu_run *run, const struct recording *rec, struct result *r)
{
	const struct offcpu_view view = trace_stacks_view(run->v, rec);
	const struct gpu_objects *o = run->objects;
	struct leaks l = {.run = run, .r = r};
	int err = gpu_objects_each(o, add_object, &l);

	if (l.v.n)
		qsort(l.v.v, l.v.n, sizeof(*l.v.v), more_first);
	result_fact(r, "allocated", "allocated", cell_u64(CELL_COUNT, gpu_objects_made(o)));
	result_fact(r, "not_freed", "not freed", cell_u64(CELL_COUNT, l.n));
	if (gpu_objects_dropped(o))
		result_note(r, "%llu more objects found no room here",
			    (unsigned long long)gpu_objects_dropped(o));
	if (!err)
		err = put_leaks(&l, &view);
	array_release(&l.v);
	return err;
}
