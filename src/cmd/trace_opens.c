/* SPDX-License-Identifier: BSD-2-Clause */
/* --opens: which files are opened, and what came of it. */
#include "trace.h"

#include "print_result.h"

#include <inspect/hashmap.h>
#include <inspect/intern.h>
#include <inspect/syscall_text.h>

enum { PATHS_MAX = 100000, OPENERS_MAX = 1000000, ERRORS_MAX = 4 };

struct opened {
	uint32_t path; /* in strings */
	uint32_t comm; /* of the last process that opened it, as the pids */
	int32_t pid, own_pid;
	uint64_t processes;
	uint64_t opens, failed, max_ns;
	struct {
		int number;
		uint64_t n;
	} errors[ERRORS_MAX]; /* further kinds count as the last */
};

struct opens {
	struct intern strings;
	struct hashmap by_path;
	ARRAY(struct opened) v;
	struct hashmap by_opener;
	ARRAY(uint64_t) openers; /* path and pid of each pair that there is */
	struct strbuf path;
	uint64_t dropped, lost; /* opens of further paths; calls */
};

static void opens_release(struct opens *o)
{
	intern_release(&o->strings);
	hashmap_release(&o->by_path);
	array_release(&o->v);
	hashmap_release(&o->by_opener);
	array_release(&o->openers);
	strbuf_release(&o->path);
}

static int find_opened(struct opens *o, struct opened **ret)
{
	struct opened new = {0};
	uint32_t at, i;
	int err = intern_puts(&o->strings, strbuf_str(&o->path), &new.path);

	if (err)
		return err;
	hashmap_each_candidate(&o->by_path, hash_u64(new.path), at, i)
		if (o->v.v[i].path == new.path) {
			*ret = &o->v.v[i];
			return 0;
		}
	*ret = NULL;
	if (o->v.n >= PATHS_MAX)
		return 0;
	err = array_push(&o->v, new);
	if (!err)
		err = hashmap_insert(&o->by_path, hash_u64(new.path), (uint32_t)o->v.n - 1);
	if (!err)
		*ret = &o->v.v[o->v.n - 1];
	return err;
}

static void add_error(struct opened *f, int number)
{
	size_t i = 0;

	while (i < ERRORS_MAX - 1 && f->errors[i].n && f->errors[i].number != number)
		i++;
	f->errors[i].number = number;
	f->errors[i].n++;
}

/* How many processes open a file is not known beyond OPENERS_MAX of all: at least so many. */
static int add_opener(struct opens *o, struct opened *f, const struct syscall_event *e)
{
	uint64_t pair = (uint64_t)f->path << 32 | (uint32_t)e->pid;
	uint32_t at, i;
	int err;

	f->pid = e->pid;
	f->own_pid = e->own_pid;
	hashmap_each_candidate(&o->by_opener, hash_u64(pair), at, i)
		if (o->openers.v[i] == pair)
			return 0;
	if (o->openers.n >= OPENERS_MAX)
		return 0;
	f->processes++;
	err = array_push(&o->openers, pair);
	return err ? err
		   : hashmap_insert(&o->by_opener, hash_u64(pair), (uint32_t)o->openers.n - 1);
}

static int add_open(void *ctx, const struct syscall_event *e, uint64_t lost)
{
	struct opens *o = ctx;
	struct opened *f;
	int err;

	o->lost = lost;
	if (e->end != SYSCALL_RETURNED)
		return 0;
	strbuf_clear(&o->path);
	if (!syscall_text_path(e, &o->path))
		strbuf_puts(&o->path, "?");
	if (o->path.failed)
		return -ENOMEM;
	err = find_opened(o, &f);
	if (err || !f) {
		o->dropped += !err;
		return err;
	}
	f->max_ns = MAX(f->max_ns, e->duration_ns);
	if (e->result < 0) {
		f->failed++;
		add_error(f, (int)-e->result);
	} else {
		f->opens++;
	}
	err = add_opener(o, f, e);
	if (err)
		return err;
	return intern_add(&o->strings, e->comm, strnlen(e->comm, sizeof(e->comm)), &f->comm);
}

static int nothing(void *ctx UNUSED)
{
	return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct opened *x = a, *y = b;
	uint64_t m = x->opens + x->failed, n = y->opens + y->failed;

	return m != n ? (m < n) - (m > n) : (x->path > y->path) - (x->path < y->path);
}

static const char *errors_text(const struct opened *f, struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	for (size_t i = 0; i < ERRORS_MAX && f->errors[i].n; i++) {
		const char *name = errno_name(f->errors[i].number);

		strbuf_printf(&text, "%s%s", i ? " " : "", name ? name : "?");
		if (f->errors[i].n != f->failed)
			strbuf_printf(&text, " %llu", (unsigned long long)f->errors[i].n);
	}
	return result_text(r, "%s", strbuf_str(&text));
}

/* Numbers that are the same in all pid namespaces are shown once, and one process is no number. */
static void show_columns(const struct opens *o, struct column *columns, size_t n)
{
	bool several = false, elsewhere = false;

	for (size_t i = 0; i < o->v.n; i++) {
		several |= o->v.v[i].processes > 1;
		elsewhere |= o->v.v[i].own_pid && o->v.v[i].own_pid != o->v.v[i].pid;
	}
	for (size_t i = 0; i < n; i++)
		if ((several && str_eq(columns[i].key, "processes")) ||
		    (elsewhere && str_eq(columns[i].key, "own_pid")))
			columns[i].flags = 0;
}

static void fill(struct opens *o, const struct trace_values *v, const struct streaming *s,
		 struct result *r)
{
	static const struct column all[] = {
		{"opens", "opens", CELL_COUNT, 0},
		{"failed", "failed", CELL_COUNT, 0},
		{"errors", "result", CELL_TEXT, 0},
		{"max_ns", "max", CELL_NS, 0},
		{"processes", "processes", CELL_COUNT, COLUMN_DATA_ONLY},
		{"pid", "pid", CELL_COUNT, 0},
		{"own_pid", "own_pid", CELL_COUNT, COLUMN_DATA_ONLY},
		{"comm", "by", CELL_TEXT, 0},
		{"path", "path", CELL_TEXT, COLUMN_CUT},
	};
	struct column *columns = arena_alloc(&r->arena, sizeof(all));
	uint64_t opens = 0, failed = 0;
	size_t section;

	if (!columns) {
		r->failed = true;
		return;
	}
	memcpy(columns, all, sizeof(all));
	show_columns(o, columns, ARRAY_SIZE(all));
	if (o->v.n)
		qsort(o->v.v, o->v.n, sizeof(*o->v.v), by_number);
	for (size_t i = 0; i < o->v.n; i++) {
		opens += o->v.v[i].opens;
		failed += o->v.v[i].failed;
	}
	result_fact(r, "elapsed_ns", "measured",
		    cell_u64(CELL_NS, s->end_ns - s->watched.start_ns));
	result_fact(r, "opens", "opens", cell_u64(CELL_COUNT, opens));
	result_fact(r, "failed", "failed", cell_u64(CELL_COUNT, failed));
	result_fact(r, "files", "files", cell_u64(CELL_COUNT, o->v.n));
	result_fact(r, "lost", "lost",
		    cell_u64(CELL_COUNT,
			     s->counts.lost_ring + s->counts.lost_memory + s->counts.recursions));
	if (o->dropped)
		result_note(r, "%llu opens of further paths than %d are not in the table",
			    (unsigned long long)o->dropped, PATHS_MAX);
	section = result_section(r, "files", "", columns, ARRAY_SIZE(all));
	r->sections.v[section].limit = v->top ? v->top : 30;
	r->sections.v[section].fits = !v->top;
	r->sections.v[section].more = "--all";
	for (size_t i = 0; i < o->v.n; i++) {
		const struct opened *f = &o->v.v[i];

		result_row(r, section,
			   (const struct cell[]){
				   cell_u64(CELL_COUNT, f->opens),
				   cell_u64(CELL_COUNT, f->failed),
				   cell_text(r, f->failed ? errors_text(f, r) : "ok"),
				   cell_u64(CELL_NS, f->max_ns),
				   cell_u64(CELL_COUNT, f->processes),
				   cell_u64(CELL_COUNT, (uint64_t)f->pid),
				   f->own_pid ? cell_u64(CELL_COUNT, (uint64_t)f->own_pid)
					      : cell_null(r, "not known"),
				   cell_text(r, intern_str(&o->strings, f->comm)),
				   cell_text(r, intern_str(&o->strings, f->path)),
			   });
	}
}

int trace_opens(const struct trace_stream_run *run, const struct streaming_config *config,
		struct streaming *s)
{
	CLEANUP(opens_release) struct opens o = {0};
	CLEANUP(result_release) struct result r;
	struct streaming_config c = *config;
	struct syscall_set only;
	int err = syscall_set_parse("open,openat,openat2,creat", &only, run->d);

	result_init(&r, "inspect.trace-opens/1");
	if (!err)
		err = intern_init(&o.strings);
	c.only = &only;
	c.event = add_open;
	c.idle = nothing;
	c.ctx = &o;
	c.stdout_taken = run->v->common.json || run->v->common.csv;
	if (!err)
		err = streaming_run(&c, run->notes, s, run->d);
	if (err)
		return diag_errno(run->d, err, "trace --opens");
	for (size_t i = 0; i < run->notes->n; i++)
		result_note(&r, "%s", run->notes->v[i]);
	fill(&o, run->v, s, &r);
	return print_result(&r, &run->v->common, run->v->all_rows, run->d);
}
