/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/report.h>

const char *report_symbol_name(const struct profile *p, uint32_t symbol)
{
	return symbol == SYMBOL_NONE ? "[no stack]"
				     : intern_str(&p->strings, p->symbols.v[symbol].name);
}

const char *report_symbol_module(const struct profile *p, uint32_t symbol)
{
	return symbol == SYMBOL_NONE ? "" : intern_str(&p->strings, p->symbols.v[symbol].module);
}

/* Numbers 0, 1, … for different keys of three parts; a class's first member stands for it. */
struct class_key {
	uint32_t a, b, c, member;
};

struct classes {
	ARRAY(struct class_key) keys;
	struct hashmap map;
	uint32_t *of; /* class by member */
};

static void classes_release(struct classes *c)
{
	array_release(&c->keys);
	hashmap_release(&c->map);
	free(c->of);
}

static int classes_add(struct classes *c, struct class_key key)
{
	uint64_t hash = hash_u64(((uint64_t)key.a << 32 | key.b) ^ hash_u64(key.c));
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&c->map, hash, at, i) {
		const struct class_key *known = &c->keys.v[i];

		if (known->a == key.a && known->b == key.b && known->c == key.c) {
			c->of[key.member] = i;
			return 0;
		}
	}
	c->of[key.member] = (uint32_t)c->keys.n;
	err = array_push(&c->keys, key);
	return err ? err : hashmap_insert(&c->map, hash, (uint32_t)c->keys.n - 1);
}

static int thread_classes(const struct profile *p, unsigned keys, struct classes *c)
{
	int err = 0;

	c->of = calloc(p->threads.n + 1, sizeof(*c->of));
	if (!c->of)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->threads.n && !err; i++) {
		const struct profile_thread *t = &p->threads.v[i];

		err = classes_add(c, (struct class_key){
					     .a = keys & REPORT_PID ? t->pid : 0,
					     .b = keys & REPORT_TID ? t->tid : 0,
					     .c = keys & REPORT_COMM ? t->comm : 0,
					     .member = i,
				     });
	}
	return err;
}

/* Symbol n (one past the last) stands for no stack. A name is never string 0. */
static int symbol_classes(const struct profile *p, unsigned keys, struct classes *c)
{
	uint32_t n = (uint32_t)p->symbols.n;
	int err = 0;

	c->of = calloc((size_t)n + 1, sizeof(*c->of));
	if (!c->of)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !err; i++) {
		const struct symbol *s = &p->symbols.v[i];
		bool as_dso = s->unknown && keys & REPORT_UNKNOWN_AS_DSO;

		err = classes_add(c, (struct class_key){
					     .a = keys & REPORT_SYMBOL && !as_dso ? s->name : 0,
					     .b = keys & REPORT_DSO || as_dso ? s->module : 0,
					     .c = as_dso,
					     .member = i,
				     });
	}
	return err ? err
		   : classes_add(c, (struct class_key){.c = keys & (REPORT_DSO | REPORT_SYMBOL) ? 2
												: 0,
						       .member = n});
}

/* A group's key within those of its thread. */
struct place {
	uint32_t symbol_class, file, line;
};

/* The groups while samples are added to them. */
struct grouping {
	const struct profile *p;
	struct report *report;
	bool by_line;
	struct classes threads, symbols;
	ARRAY(struct place) places; /* with by_line: symbol classes and their lines */
	struct hashmap place_map;
	struct hashmap map;   /* (thread class, symbol class or place) → row */
	ARRAY(uint64_t) keys; /* by row */
	ARRAY(size_t) seen;   /* by row: the last sample that was added to its total, from 1 */
};

static void grouping_release(struct grouping *g)
{
	classes_release(&g->threads);
	classes_release(&g->symbols);
	array_release(&g->places);
	hashmap_release(&g->place_map);
	hashmap_release(&g->map);
	array_release(&g->keys);
	array_release(&g->seen);
}

/* The number of a symbol's class, or with by_line of the class on that line. */
static int place_of(struct grouping *g, const struct symbol_at *at, uint32_t *ret)
{
	struct place p = {g->symbols.of[at->symbol], at->file, at->line};
	uint64_t hash;
	uint32_t slot, i;
	int err;

	if (!g->by_line) {
		*ret = p.symbol_class;
		return 0;
	}
	hash = hash_u64(((uint64_t)p.symbol_class << 32 | p.file) ^ hash_u64(p.line));
	hashmap_each_candidate(&g->place_map, hash, slot, i) {
		const struct place *known = &g->places.v[i];

		if (known->symbol_class == p.symbol_class && known->file == p.file &&
		    known->line == p.line) {
			*ret = i;
			return 0;
		}
	}
	*ret = (uint32_t)g->places.n;
	err = array_push(&g->places, p);
	return err ? err : hashmap_insert(&g->place_map, hash, *ret);
}

static int group_of(struct grouping *g, uint32_t thread, const struct symbol_at *frame,
		    uint32_t *ret_row)
{
	uint32_t at, i, place = 0, row = (uint32_t)g->keys.n, symbol;
	uint64_t key, hash;
	int err = place_of(g, frame, &place);

	if (err)
		return err;
	key = (uint64_t)g->threads.of[thread] << 32 | place;
	hash = hash_u64(key);

	hashmap_each_candidate(&g->map, hash, at, i) {
		if (g->keys.v[i] == key) {
			*ret_row = i;
			return 0;
		}
	}
	symbol = g->symbols.keys.v[g->symbols.of[frame->symbol]].member;
	err = array_push(&g->report->rows,
			 (struct report_row){
				 .thread = g->threads.keys.v[g->threads.of[thread]].member,
				 .symbol = symbol == g->p->symbols.n ? SYMBOL_NONE : symbol,
				 .file = g->by_line ? frame->file : 0,
				 .line = g->by_line ? frame->line : 0,
			 });
	if (!err)
		err = array_push(&g->keys, key);
	if (!err)
		err = array_push(&g->seen, 0);
	if (!err)
		err = hashmap_insert(&g->map, hash, row);
	if (err)
		return err;
	*ret_row = row;
	return 0;
}

static int add_frame(struct grouping *g, size_t sample, const struct symbol_at *frame, bool is_leaf)
{
	const struct profile_row *from = &g->p->rows.v[sample];
	struct report_row *to;
	uint32_t row;
	int err = group_of(g, from->thread, frame, &row);

	if (err)
		return err;
	to = &g->report->rows.v[row];
	if (g->seen.v[row] != sample + 1) {
		g->seen.v[row] = sample + 1;
		to->total += from->weight;
		to->total_count += from->count;
	}
	if (is_leaf) {
		to->self += from->weight;
		to->self_count += from->count;
	}
	return 0;
}

static int add_sample(struct grouping *g, size_t sample, struct symbol_path *path)
{
	int err = profile_row_path(g->p, &g->p->rows.v[sample], path);
	size_t leaf;

	if (!err && !path->at.n)
		return add_frame(g, sample,
				 &(struct symbol_at){.symbol = (uint32_t)g->p->symbols.n}, true);
	leaf = path->at.n ? profile_path_leaf(g->p, path) : 0;
	for (size_t i = 0; i < path->at.n && !err; i++)
		err = add_frame(g, sample, &path->at.v[i], i == leaf);
	return err;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_self(const void *a, const void *b, void *context)
{
	const struct report_row *x = a, *y = b;
	const struct profile *p = context;
	const struct profile_thread *tx = &p->threads.v[x->thread], *ty = &p->threads.v[y->thread];
	int order = compare(x->self, y->self);

	if (!order)
		order = compare(x->total, y->total);
	if (!order)
		order = strcmp(report_symbol_name(p, x->symbol), report_symbol_name(p, y->symbol));
	if (!order)
		order = strcmp(report_symbol_module(p, x->symbol),
			       report_symbol_module(p, y->symbol));
	if (!order)
		order = strcmp(intern_str(&p->strings, x->file), intern_str(&p->strings, y->file));
	if (!order)
		order = compare(y->line, x->line);
	if (!order)
		order = strcmp(intern_str(&p->strings, tx->comm),
			       intern_str(&p->strings, ty->comm));
	if (!order)
		order = compare(ty->tid, tx->tid);
	return order ? order : compare(ty->pid, tx->pid);
}

int report_build(const struct profile *p, uint32_t event, unsigned keys, struct report *ret)
{
	CLEANUP(report_release) struct report report = {0};
	CLEANUP(grouping_release)
	struct grouping g = {.p = p, .report = &report, .by_line = keys & REPORT_SRCLINE};
	struct symbol_path path = {0};
	int err = thread_classes(p, keys, &g.threads);

	if (!err)
		err = symbol_classes(p, keys, &g.symbols);
	for (size_t i = 0; i < p->rows.n && !err; i++)
		if (p->rows.v[i].event == event)
			err = add_sample(&g, i, &path);
	array_release(&path.at);
	if (err)
		return err;
	profile_totals(p, event, &report.weight, &report.count);
	if (report.rows.n)
		qsort_r(report.rows.v, report.rows.n, sizeof(*report.rows.v), by_self, (void *)p);
	*ret = report;
	report = (struct report){0};
	return 0;
}

void report_release(struct report *r)
{
	array_release(&r->rows);
}
