/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/saved_names.h>

/*
 * The section: a header, then six parts without gaps. All numbers are little-endian as on the
 * machines that inspect runs on; every index is checked once, when the section is decoded.
 */
struct header {
	char magic[8];
	uint32_t n_strings, string_bytes, n_dsos, n_locs, n_names, n_codes;
};

struct stored_dso {
	uint32_t kind, path, pid, build_id_size;
	uint8_t build_id[24];
	uint64_t ino; /* with maj and min: what tells files without a build-id apart; of a DSO_JIT
		       * its began_ns, … */
	uint32_t maj, min; /* … and the halves of its forked_ns */
};

struct stored_loc {
	uint64_t loc;
	uint32_t dso, first;
};

struct stored_name {
	uint32_t name, module, file, line, kind, reserved;
};

struct stored_code {
	uint64_t start_va, end_va, from_ns, until_ns;
	uint32_t pid, name;
};

static const char magic[8] = "INSPNAM1";

_Static_assert(sizeof(struct header) == 32 && sizeof(struct stored_dso) == 56 &&
		       sizeof(struct stored_loc) == 16 && sizeof(struct stored_name) == 24 &&
		       sizeof(struct stored_code) == 40,
	       "stored as they are");

struct saved_names {
	uint8_t *bytes;
	struct stored_dso *dsos;
	const struct stored_loc *locs;
	const struct stored_code *codes;
	uint32_t n_dsos, n_locs, n_names, n_codes;
	ARRAY(const char *) strings;
	ARRAY(struct saved_name) names;
	struct hashmap by_loc, by_path;
};

struct encoder {
	const struct profile *p;
	struct intern strings;
	ARRAY(struct stored_dso) dsos;
	ARRAY(uint32_t) dso_index; /* by dso id: index + 1, 0: not stored */
	ARRAY(struct stored_loc) locs;
	ARRAY(struct stored_name) names;
	ARRAY(struct stored_code) codes;
};

static void encoder_release(struct encoder *e)
{
	intern_release(&e->strings);
	array_release(&e->dsos);
	array_release(&e->dso_index);
	array_release(&e->locs);
	array_release(&e->names);
	array_release(&e->codes);
}

static int encode_dso(struct encoder *e, uint32_t id, uint32_t *ret)
{
	const struct dso *d = e->p->processes.dsos.dsos.v[id];
	struct stored_dso s = {.kind = d->kind,
			       .build_id_size = d->build_id_size,
			       .ino = d->ino,
			       .maj = d->maj,
			       .min = d->min};
	int err;

	if (e->dso_index.v[id]) {
		*ret = e->dso_index.v[id] - 1;
		return 0;
	}
	if (d->kind == DSO_JIT) {
		s.pid = d->pid;
		s.ino = d->began_ns;
		s.maj = (uint32_t)(d->forked_ns >> 32);
		s.min = (uint32_t)d->forked_ns;
	}
	memcpy(s.build_id, d->build_id, d->build_id_size);
	err = intern_puts(&e->strings, d->path, &s.path);
	if (!err)
		err = array_push(&e->dsos, s);
	if (err)
		return err;
	*ret = (uint32_t)e->dsos.n - 1;
	e->dso_index.v[id] = *ret + 1;
	return 0;
}

static int encode_name(struct encoder *e, const struct symbol_at *at)
{
	const struct symbol *s = &e->p->symbols.v[at->symbol];
	const struct intern *t = &e->p->strings;
	struct stored_name n = {.line = at->line, .kind = s->kind};
	int err = intern_puts(&e->strings, intern_str(t, s->name), &n.name);

	if (!err)
		err = intern_puts(&e->strings, intern_str(t, s->module), &n.module);
	if (!err)
		err = intern_puts(&e->strings, intern_str(t, at->file), &n.file);
	return err ? err : array_push(&e->names, n);
}

/* Also of processes without a name: a report may find a map, and whose it is. */
static int encode_forks(struct encoder *e)
{
	const struct dso_table *t = &e->p->processes.dsos;
	int err = 0;

	for (uint32_t id = 0; id < t->dsos.n && !err; id++) {
		uint32_t stored;

		if (t->dsos.v[id]->kind == DSO_JIT && t->dsos.v[id]->forked_ns)
			err = encode_dso(e, id, &stored);
	}
	return err;
}

/* Frames without a name are left out: a report may know better, with debug files at hand. */
static int encode_frame(struct encoder *e, uint32_t frame)
{
	const struct profile *p = e->p;
	const struct frame *f = &p->frames.v[frame];
	struct stored_loc loc = {.loc = f->loc, .first = (uint32_t)e->names.n};
	uint32_t i = p->first.v[frame], end = p->first.v[frame + 1];
	int err;

	if (f->dso == DSO_ID_NAMED || f->dso == DSO_ID_UNKNOWN || f->dso == DSO_ID_CODE ||
	    i == end || p->symbols.v[p->at.v[end - 1].symbol].unknown)
		return 0;
	err = encode_dso(e, f->dso, &loc.dso);
	if (!err)
		err = array_push(&e->locs, loc);
	for (; i < end && !err; i++)
		err = encode_name(e, &p->at.v[i]);
	return err;
}

/* The kernel's codes come from records, which are in the file. */
static int encode_codes(struct encoder *e)
{
	int err = 0;

	for (size_t i = 0; i < e->p->codes.n && !err; i++) {
		const struct code *c = &e->p->codes.v[i];
		struct stored_code s = {.start_va = c->start_va,
					.end_va = c->end_va,
					.from_ns = c->from_ns,
					.until_ns = c->until_ns,
					.pid = c->pid};

		if (!c->pid)
			continue;
		err = intern_puts(&e->strings, intern_str(&e->p->strings, c->name), &s.name);
		if (!err)
			err = array_push(&e->codes, s);
	}
	return err;
}

static int encoder_write(const struct encoder *e, uint8_t **ret, size_t *ret_size)
{
	struct header h = {.n_strings = (uint32_t)e->strings.strings.n,
			   .n_dsos = (uint32_t)e->dsos.n,
			   .n_locs = (uint32_t)e->locs.n,
			   .n_names = (uint32_t)e->names.n,
			   .n_codes = (uint32_t)e->codes.n};
	size_t string_bytes = 0, size;
	uint8_t *out, *at;

	for (size_t i = 0; i < h.n_strings; i++)
		string_bytes += strlen(e->strings.strings.v[i].s) + 1;
	string_bytes = ALIGN_UP(string_bytes, 8);
	if (string_bytes > UINT32_MAX)
		return -E2BIG;
	h.string_bytes = (uint32_t)string_bytes;
	memcpy(h.magic, magic, sizeof(magic));
	size = sizeof(h) + h.n_dsos * sizeof(struct stored_dso) +
	       h.n_locs * sizeof(struct stored_loc) + h.n_names * sizeof(struct stored_name) +
	       h.n_codes * sizeof(struct stored_code) + string_bytes;
	out = at = calloc(1, size);
	if (!out)
		return -ENOMEM;
	at = mempcpy(at, &h, sizeof(h));
	if (h.n_dsos)
		at = mempcpy(at, e->dsos.v, h.n_dsos * sizeof(*e->dsos.v));
	if (h.n_locs)
		at = mempcpy(at, e->locs.v, h.n_locs * sizeof(*e->locs.v));
	if (h.n_names)
		at = mempcpy(at, e->names.v, h.n_names * sizeof(*e->names.v));
	if (h.n_codes)
		at = mempcpy(at, e->codes.v, h.n_codes * sizeof(*e->codes.v));
	for (size_t i = 0; i < h.n_strings; i++)
		at = (uint8_t *)stpcpy((char *)at, e->strings.strings.v[i].s) + 1;
	*ret = out;
	*ret_size = size;
	return 0;
}

int saved_names_encode(const struct profile *p, uint8_t **ret, size_t *ret_size_bytes)
{
	CLEANUP(encoder_release) struct encoder e = {.p = p};
	size_t n_dsos = p->processes.dsos.dsos.n;
	int err = intern_init(&e.strings);

	if (!err)
		err = array_reserve(&e.dso_index, n_dsos);
	if (err)
		return err;
	memset(e.dso_index.v, 0, n_dsos * sizeof(*e.dso_index.v));
	for (uint32_t i = 0; i < p->frames.n && !err; i++)
		err = encode_frame(&e, i);
	if (!err)
		err = encode_forks(&e);
	if (!err)
		err = encode_codes(&e);
	return err ? err : encoder_write(&e, ret, ret_size_bytes);
}

void saved_names_free(struct saved_names *s)
{
	if (!s)
		return;
	array_release(&s->strings);
	array_release(&s->names);
	hashmap_release(&s->by_loc);
	hashmap_release(&s->by_path);
	free(s->bytes);
	free(s);
}

static void saved_names_freep(struct saved_names **s)
{
	saved_names_free(*s);
}

static int decode_strings(struct saved_names *s, const char *text, const struct header *h)
{
	size_t at = 0;

	for (uint32_t i = 0; i < h->n_strings; i++) {
		const char *end =
			at < h->string_bytes ? memchr(text + at, 0, h->string_bytes - at) : NULL;
		int err;

		if (!end)
			return -EBADMSG;
		err = array_push(&s->strings, text + at);
		if (err)
			return err;
		at = (size_t)(end - text) + 1;
	}
	return 0;
}

static int decode_names(struct saved_names *s, const struct stored_name *v)
{
	for (uint32_t i = 0; i < s->n_names; i++) {
		int err;

		if (v[i].name >= s->strings.n || v[i].module >= s->strings.n ||
		    v[i].file >= s->strings.n || v[i].kind >= FRAME_KINDS || !v[i].name)
			return -EBADMSG;
		err = array_push(&s->names, (struct saved_name){.name = s->strings.v[v[i].name],
								.module = s->strings.v[v[i].module],
								.file = s->strings.v[v[i].file],
								.line = v[i].line,
								.kind = v[i].kind});
		if (err)
			return err;
	}
	return 0;
}

static int check_codes(const struct saved_names *s)
{
	for (uint32_t i = 0; i < s->n_codes; i++)
		if (s->codes[i].name >= s->strings.n || !s->codes[i].pid ||
		    s->codes[i].start_va >= s->codes[i].end_va)
			return -EBADMSG;
	return 0;
}

static uint64_t loc_hash(uint32_t dso, uint64_t loc)
{
	return hash_u64(loc ^ (uint64_t)dso << 48);
}

static int decode_locs(struct saved_names *s)
{
	int err = 0;

	for (uint32_t i = 0; i < s->n_dsos && !err; i++) {
		const struct stored_dso *d = &s->dsos[i];
		const char *path;

		if (d->path >= s->strings.n || d->build_id_size > BUILD_ID_MAX)
			return -EBADMSG;
		path = s->strings.v[d->path];
		err = hashmap_insert(&s->by_path, hash_bytes(path, strlen(path)), i);
	}
	for (uint32_t i = 0; i < s->n_locs && !err; i++) {
		const struct stored_loc *l = &s->locs[i];
		uint32_t end = i + 1 < s->n_locs ? s->locs[i + 1].first : s->n_names;

		if (l->dso >= s->n_dsos || l->first >= end || end > s->n_names)
			return -EBADMSG;
		err = hashmap_insert(&s->by_loc, loc_hash(l->dso, l->loc), i);
	}
	return err;
}

int saved_names_decode(const uint8_t *v, size_t size_bytes, struct saved_names **ret)
{
	CLEANUP(saved_names_freep) struct saved_names *s = calloc(1, sizeof(*s));
	struct header h;
	uint64_t need;
	uint8_t *at;
	int err;

	if (!s)
		return -ENOMEM;
	if (size_bytes < sizeof(h))
		return -EBADMSG;
	memcpy(&h, v, sizeof(h));
	need = sizeof(h) + (uint64_t)h.n_dsos * sizeof(struct stored_dso) +
	       (uint64_t)h.n_locs * sizeof(struct stored_loc) +
	       (uint64_t)h.n_names * sizeof(struct stored_name) +
	       (uint64_t)h.n_codes * sizeof(struct stored_code) + h.string_bytes;
	if (memcmp(h.magic, magic, sizeof(magic)) || need != size_bytes || !h.n_strings)
		return -EBADMSG;
	/* A copy of our own is aligned, and outlives the file. */
	s->bytes = malloc(size_bytes);
	if (!s->bytes)
		return -ENOMEM;
	memcpy(s->bytes, v, size_bytes);
	at = s->bytes + sizeof(h);
	s->n_dsos = h.n_dsos;
	s->n_locs = h.n_locs;
	s->n_names = h.n_names;
	s->dsos = (struct stored_dso *)at;
	s->locs = (const struct stored_loc *)(s->dsos + h.n_dsos);
	at += (size_t)h.n_dsos * sizeof(*s->dsos) + (size_t)h.n_locs * sizeof(*s->locs);
	s->n_codes = h.n_codes;
	s->codes =
		(const struct stored_code *)(at + (size_t)h.n_names * sizeof(struct stored_name));
	err = decode_strings(s, (const char *)(s->codes + h.n_codes), &h);
	if (!err)
		err = decode_names(s, (const struct stored_name *)at);
	if (!err)
		err = decode_locs(s);
	if (!err)
		err = check_codes(s);
	if (err)
		return err;
	*ret = TAKE_PTR(s);
	return 0;
}

static bool same_dso(const struct saved_names *s, const struct stored_dso *stored,
		     const struct dso *d)
{
	if (stored->kind != d->kind || !str_eq(s->strings.v[stored->path], d->path))
		return false;
	if (d->kind == DSO_JIT)
		return stored->pid == d->pid && stored->ino == d->began_ns;
	/* Both come from the same recording: where its records name an inode, that decides; the
	 * build-id was read later, and is listed by path alone. */
	if (stored->ino || d->ino)
		return stored->ino == d->ino && stored->maj == d->maj && stored->min == d->min;
	return stored->build_id_size == d->build_id_size &&
	       memcmp(stored->build_id, d->build_id, d->build_id_size) == 0;
}

static size_t find_in_dso(const struct saved_names *s, uint32_t dso, uint64_t loc,
			  const struct saved_name **ret)
{
	uint32_t at, i;

	hashmap_each_candidate(&s->by_loc, loc_hash(dso, loc), at, i) {
		const struct stored_loc *l = &s->locs[i];

		if (l->loc != loc || l->dso != dso)
			continue;
		*ret = &s->names.v[l->first];
		return (i + 1 < s->n_locs ? s->locs[i + 1].first : s->n_names) - l->first;
	}
	return 0;
}

size_t saved_names_find(const struct saved_names *s, const struct dso *d, uint64_t loc,
			const struct saved_name **ret)
{
	uint32_t at, i;

	hashmap_each_candidate(&s->by_path, hash_bytes(d->path, strlen(d->path)), at, i) {
		size_t n = same_dso(s, &s->dsos[i], d) ? find_in_dso(s, i, loc, ret) : 0;

		if (n)
			return n;
	}
	return 0;
}

uint64_t saved_names_forked_ns(const struct saved_names *s, const struct dso *d)
{
	uint32_t at, i;

	hashmap_each_candidate(&s->by_path, hash_bytes(d->path, strlen(d->path)), at, i)
		if (same_dso(s, &s->dsos[i], d))
			return (uint64_t)s->dsos[i].maj << 32 | s->dsos[i].min;
	return 0;
}

size_t saved_names_codes(const struct saved_names *s)
{
	return s->n_codes;
}

struct saved_code saved_names_code(const struct saved_names *s, size_t i)
{
	const struct stored_code *c = &s->codes[i];

	return (struct saved_code){c->start_va, c->end_va, c->from_ns,
				   c->until_ns, c->pid,    s->strings.v[c->name]};
}
