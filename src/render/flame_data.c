/* SPDX-License-Identifier: BSD-2-Clause */
#include "flame.h"
#include <inspect/json_out.h>
#include <inspect/term.h>

/* The names that the trees use, numbered: the most used first, for they get the short numbers. */
struct names {
	ARRAY(uint32_t) symbols;       /* by number */
	uint32_t *of_symbol, *of_comm; /* number; before numbering: uses */
};

static void names_release(struct names *names)
{
	array_release(&names->symbols);
	free(names->of_symbol);
	free(names->of_comm);
}

static uint32_t *slot(const struct names *names, uint32_t symbol)
{
	return symbol & FLAME_COMM ? &names->of_comm[symbol & ~FLAME_COMM]
				   : &names->of_symbol[symbol];
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Counts the uses of each symbol and lists them in the order of the trees. */
static int collect_names(const struct flame_trees *trees, struct names *names)
{
	for (size_t t = 0; t < trees->n; t++) {
		const struct flame_tree *tree = &trees->tree[t];

		for (size_t i = 1; i < tree->nodes.n; i++) {
			uint32_t symbol = tree->nodes.v[i].symbol;

			if (!(*slot(names, symbol))++ && array_push(&names->symbols, symbol))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Equally used ones stay in the order of the trees: ids may depend on the order of the samples. */
static int number_names(struct names *names)
{
	size_t n = names->symbols.n;
	CLEANUP(freep) uint64_t *order = calloc(n + 1, sizeof(*order));
	CLEANUP(freep) uint32_t *listed = calloc(n + 1, sizeof(*listed));

	if (!order || !listed)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		listed[i] = names->symbols.v[i];
		order[i] = (uint64_t)(UINT32_MAX - *slot(names, listed[i])) << 32 | i;
	}
	qsort(order, n, sizeof(*order), compare_u64);
	for (size_t i = 0; i < n; i++) {
		names->symbols.v[i] = listed[(uint32_t)order[i]];
		*slot(names, names->symbols.v[i]) = (uint32_t)i;
	}
	return 0;
}

static int names_init(const struct flame_trees *trees, struct names *names)
{
	const struct profile *p = trees->p;
	int err;

	names->of_symbol = calloc(p->symbols.n + 1, sizeof(*names->of_symbol));
	names->of_comm = calloc(p->strings.strings.n + 1, sizeof(*names->of_comm));
	if (!names->of_symbol || !names->of_comm)
		return -ENOMEM;
	err = collect_names(trees, names);
	return err ? err : number_names(names);
}

/* How the weights of a tree are written. */
struct weights {
	uint64_t scale;      /* divides them all */
	uint64_t per_sample; /* the same for every sample, or 0: the samples are written too */
};

static uint64_t own_count(const struct flame_tree *t, size_t i)
{
	uint64_t count = t->nodes.v[i].count;

	for (uint32_t c = t->nodes.v[i].first_child; c != UINT32_MAX;
	     c = t->nodes.v[c].next_sibling)
		count -= MIN(count, t->nodes.v[c].count);
	return count;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static struct weights weights_of(const struct flame_tree *t)
{
	struct weights w = {0, 0};
	bool same = true;

	for (size_t i = 0; i < t->nodes.n; i++) {
		uint64_t self = t->nodes.v[i].self, count = own_count(t, i);

		w.scale = common_divisor(w.scale, self);
		if (!self && !count)
			continue;
		if (!w.per_sample && count)
			w.per_sample = self / count;
		same = same && count && w.per_sample && self / count == w.per_sample &&
		       self % count == 0;
	}
	w.scale = MAX(w.scale, 1);
	w.per_sample = same ? w.per_sample : 0;
	return w;
}

static void put_number(FILE *out, uint64_t v)
{
	for (; v >= 32; v >>= 5)
		putc_unlocked((int)(v & 31) + 32 + 63, out);
	putc_unlocked((int)v + 63, out);
}

static void put_own(const struct flame_tree *t, size_t i, const struct weights *w, FILE *out)
{
	put_number(out, t->nodes.v[i].self / w->scale);
	if (!w->per_sample)
		put_number(out, own_count(t, i));
}

static void put_tree(const struct flame_tree *t, const struct names *names, FILE *out)
{
	const struct flame_node *v = t->nodes.v;
	struct weights w = weights_of(t);

	put_own(t, 0, &w, out);
	for (size_t i = 1; i < t->nodes.n; i++) {
		uint32_t up = v[i - 1].depth + 1 - v[i].depth;
		bool own = v[i].self || own_count(t, i);

		put_number(out, (uint64_t)*slot(names, v[i].symbol) << 2 | (up ? 2 : 0) | own);
		if (up)
			put_number(out, up);
		if (own)
			put_own(t, i, &w, out);
	}
}

static void put_string(struct json_out *j, const char *s, size_t n, int *ret_err)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	term_escape(&text, s, n);
	if (text.failed)
		*ret_err = -ENOMEM;
	json_string_n(j, strbuf_str(&text), text.n);
}

static int put_names(const struct profile *p, const struct names *names, struct json_out *j)
{
	CLEANUP(strbuf_release) struct strbuf text = {0}, kinds = {0}, shades = {0};
	int err = 0;

	json_key(j, "names");
	json_array(j);
	for (size_t i = 0; i < names->symbols.n; i++) {
		uint32_t symbol = names->symbols.v[i];

		strbuf_clear(&text);
		flame_symbol_text(p, symbol, &text);
		json_string_n(j, strbuf_str(&text), text.n);
		strbuf_putc(&kinds, flame_kinds[flame_symbol_kind(p, symbol)].letter);
		strbuf_putc(&shades, (char)('0' + flame_symbol_shade(p, symbol)));
		err = text.failed ? -ENOMEM : err;
	}
	json_end_array(j);
	json_key(j, "kinds");
	json_string(j, strbuf_str(&kinds));
	json_key(j, "shades");
	json_string(j, strbuf_str(&shades));
	return kinds.failed || shades.failed ? -ENOMEM : err;
}

/* Modules repeat, so that names refer to them by position; 0 is none. */
static int put_modules(const struct profile *p, const struct names *names, struct json_out *j)
{
	CLEANUP(freep) uint32_t *position = calloc(p->strings.strings.n + 1, sizeof(*position));
	uint32_t n = 0;
	int err = 0;

	if (!position)
		return -ENOMEM;
	json_key(j, "modules");
	json_array(j);
	json_string(j, "");
	for (size_t i = 0; i < names->symbols.n; i++) {
		uint32_t module = flame_symbol_module(p, names->symbols.v[i]);
		const struct intern_string *s = &p->strings.strings.v[module];

		if (!module || position[module])
			continue;
		position[module] = ++n;
		put_string(j, s->s, s->n, &err);
	}
	json_end_array(j);
	json_key(j, "module");
	json_array(j);
	for (size_t i = 0; i < names->symbols.n; i++)
		json_u64(j, position[flame_symbol_module(p, names->symbols.v[i])]);
	json_end_array(j);
	return err;
}

/* A path's last two parts: "ptr/mod.rs". */
static const char *path_end(const char *path)
{
	const char *at = path + strlen(path);

	for (int slashes = 0; at > path; at--)
		if (at[-1] == '/' && ++slashes == 2)
			break;
	return at;
}

static struct symbol_place place_of(const struct symbol_place *places, uint32_t symbol)
{
	return symbol & FLAME_COMM ? (struct symbol_place){0} : places[symbol];
}

/* Where a name's samples were mostly taken: positions in `files`, 0 is none, and lines. Without
 * debug information nothing is written. */
static int put_places(const struct profile *p, const struct names *names,
		      const struct symbol_place *places, struct json_out *j)
{
	CLEANUP(freep) uint32_t *position = calloc(p->strings.strings.n + 1, sizeof(*position));
	uint32_t n = 0;
	int err = 0;

	if (!position)
		return -ENOMEM;
	for (size_t i = 0; i < names->symbols.n; i++) {
		struct symbol_place place = place_of(places, names->symbols.v[i]);
		const char *end;

		if (!place.file || position[place.file])
			continue;
		if (!n++) {
			json_key(j, "files");
			json_array(j);
			json_string(j, "");
		}
		position[place.file] = n;
		end = path_end(intern_str(&p->strings, place.file));
		put_string(j, end, strlen(end), &err);
	}
	if (!n)
		return err;
	json_end_array(j);
	json_key(j, "lines");
	json_array(j);
	for (size_t i = 0; i < names->symbols.n; i++) {
		struct symbol_place place = place_of(places, names->symbols.v[i]);

		json_u64(j, position[place.file]);
		json_u64(j, place.line);
	}
	json_end_array(j);
	return err;
}

static int put_event(const struct flame_trees *trees, size_t at, struct json_out *j)
{
	CLEANUP(strbuf_release) struct strbuf subtitle = {0};
	const struct flame_tree *t = &trees->tree[at];
	const struct profile *p = trees->p;
	uint32_t event = trees->event[at];
	const struct profile_event *e = event < p->events.n ? &p->events.v[event] : NULL;
	struct weights w = weights_of(t);
	int err = 0;

	flame_subtitle(p, event, &subtitle);
	json_object(j);
	json_key(j, "name");
	put_string(j, e ? e->name : "", e ? strlen(e->name) : 0, &err);
	json_key(j, "unit");
	put_string(j, e ? e->unit : "", e ? strlen(e->unit) : 0, &err);
	json_key(j, "subtitle");
	json_string(j, strbuf_str(&subtitle));
	json_key(j, "nodes");
	json_u64(j, t->nodes.n);
	json_key(j, "scale");
	json_u64(j, w.scale);
	json_key(j, "per_sample");
	json_u64(j, w.per_sample);
	json_end_object(j);
	return subtitle.failed ? -ENOMEM : err;
}

static int put_json(const struct flame_trees *trees, const struct flame_options *o,
		    const struct names *names, struct json_out *j)
{
	CLEANUP(freep) struct symbol_place *places = NULL;
	int err = profile_places(trees->p, &places);

	if (err)
		return err;
	json_object(j);
	json_key(j, "icicle");
	json_bool(j, o->icicle);
	json_key(j, "reverse");
	json_bool(j, o->reverse);
	json_key(j, "events");
	json_array(j);
	for (size_t i = 0; i < trees->n && !err; i++)
		err = put_event(trees, i, j);
	json_end_array(j);
	if (!err)
		err = put_modules(trees->p, names, j);
	if (!err)
		err = put_names(trees->p, names, j);
	if (!err)
		err = put_places(trees->p, names, places, j);
	json_end_object(j);
	return err;
}

int flame_data_write(const struct flame_trees *trees, const struct flame_options *o, FILE *out)
{
	struct names names = {0};
	struct json_out j;
	int err = names_init(trees, &names);

	if (!err) {
		/* json_out lets nothing through that would end the section or the element. */
		json_init(&j, out, true);
		fputs("<script type=\"application/json\"><![CDATA[", out);
		err = put_json(trees, o, &names, &j);
		fputs("]]></script>\n", out);
	}
	for (size_t i = 0; i < trees->n && !err; i++) {
		fputs("<script type=\"text/plain\">", out);
		put_tree(&trees->tree[i], &names, out);
		fputs("</script>\n", out);
	}
	names_release(&names);
	return err;
}
