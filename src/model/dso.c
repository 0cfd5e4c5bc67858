/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/process.h>

#define DELETED_SUFFIX " (deleted)"

static void dso_free(struct dso *d)
{
	if (!d)
		return;
	closep(&d->fd);
	free(d->path);
	free(d);
}

static void dso_freep(struct dso **d)
{
	dso_free(*d);
}

/* Memory that holds code but is no file: what a JIT compiler maps, and how the kernel names it. */
static bool is_anonymous(const char *path)
{
	static const char *const prefixes[] = {
		"//anon",    "[heap]",         "[stack",      "[anon", "/memfd:",
		"/dev/zero", "/anon_hugepage", "anon_inode:", "/SYSV",
	};

	if (!*path)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts(path, prefixes[i]))
			return true;
	return false;
}

static enum dso_kind kind_of(const struct mmap_event *m)
{
	if (m->kernel)
		return DSO_KERNEL;
	if (str_eq(m->path, "[vdso]"))
		return DSO_VDSO;
	if (str_eq(m->path, "[vsyscall]"))
		return DSO_UNKNOWN;
	return is_anonymous(m->path) ? DSO_JIT : DSO_ELF;
}

static int push(struct dso_table *t, struct dso *d, uint64_t hash)
{
	int err;

	d->id = (uint32_t)t->dsos.n;
	err = array_push(&t->dsos, d);
	if (err)
		return err;
	err = hashmap_insert(&t->map, hash, d->id);
	if (err)
		t->dsos.n--;
	return err;
}

static int add_plain(struct dso_table *t, enum dso_kind kind, const char *path, uint32_t pid,
		     uint64_t hash, uint32_t *ret)
{
	CLEANUP(dso_freep) struct dso *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->kind = kind;
	d->fd = -1;
	d->pid = pid;
	d->path = strdup(path);
	if (!d->path)
		return -ENOMEM;
	err = push(t, d, hash);
	if (err)
		return err;
	*ret = d->id;
	d = NULL;
	return 0;
}

int dso_table_init(struct dso_table *t)
{
	static const struct {
		enum dso_kind kind;
		const char *path;
	} fixed[] = {
		{DSO_NAMED, ""},
		{DSO_UNKNOWN, "[unmapped]"},
		{DSO_KERNEL, "[kernel]"},
		{DSO_CODE, "[code]"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		uint32_t id;
		int err = add_plain(t, fixed[i].kind, fixed[i].path, 0, hash_u64(i), &id);

		if (err)
			return err;
	}
	return 0;
}

void dso_table_release(struct dso_table *t)
{
	for (size_t i = 0; i < t->dsos.n; i++)
		dso_free(t->dsos.v[i]);
	array_release(&t->dsos);
	hashmap_release(&t->map);
}

static int add_jit(struct dso_table *t, uint32_t pid, uint64_t began_ns, uint32_t *ret_dso)
{
	uint64_t hash = hash_u64(began_ns ^ hash_u64(((uint64_t)DSO_JIT << 32) | pid));
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&t->map, hash, at, i) {
		const struct dso *d = t->dsos.v[i];

		if (d->kind == DSO_JIT && d->pid == pid && d->began_ns == began_ns) {
			*ret_dso = i;
			return 0;
		}
	}
	err = add_plain(t, DSO_JIT, "[jit]", pid, hash, ret_dso);
	if (!err)
		t->dsos.v[*ret_dso]->began_ns = began_ns;
	return err;
}

/* Equal path is given. What identifies the content decides: build-ids when both records have one,
 * inodes when both have one (the build-id of such a dso was read later); a file known by one and a
 * file known by the other are kept apart, which costs a second look-up and never a wrong name. */
static bool same_file(const struct dso *d, const struct mmap_event *m)
{
	if (m->build_id_size)
		return !d->ino && d->build_id_size == m->build_id_size &&
		       memcmp(d->build_id, m->build_id, m->build_id_size) == 0;
	if (d->build_id_size && !d->ino)
		return false;
	return d->maj == m->maj && d->min == m->min && d->ino == m->ino &&
	       d->ino_generation == m->ino_generation;
}

static void fill(struct dso *d, const struct mmap_event *m)
{
	d->maj = m->maj;
	d->min = m->min;
	d->ino = m->ino;
	d->ino_generation = m->ino_generation;
	d->start_va = m->start_va;
	d->end_va = m->start_va + m->len_bytes;
	d->build_id_size = (uint8_t)MIN(m->build_id_size, (size_t)BUILD_ID_MAX);
	if (d->build_id_size)
		memcpy(d->build_id, m->build_id, d->build_id_size);
}

int dso_table_add(struct dso_table *t, const struct mmap_event *m, uint64_t began_ns,
		  uint32_t *ret_dso)
{
	enum dso_kind kind = kind_of(m);
	size_t n = strlen(m->path);
	bool deleted = str_ends(m->path, DELETED_SUFFIX);
	CLEANUP(freep) char *path = NULL;
	uint32_t at, i;
	uint64_t hash;
	int err;

	if (kind == DSO_JIT)
		return add_jit(t, m->pid, began_ns, ret_dso);
	if (kind == DSO_KERNEL || kind == DSO_UNKNOWN) {
		*ret_dso = kind == DSO_KERNEL ? DSO_ID_KERNEL : DSO_ID_UNKNOWN;
		return 0;
	}
	if (deleted)
		n -= strlen(DELETED_SUFFIX);
	path = strndup(m->path, n);
	if (!path)
		return -ENOMEM;
	hash = hash_bytes(path, n);
	hashmap_each_candidate(&t->map, hash, at, i) {
		const struct dso *d = t->dsos.v[i];

		if (d->kind == kind && str_eq(d->path, path) &&
		    (kind == DSO_VDSO || same_file(d, m))) {
			t->dsos.v[i]->deleted |= deleted;
			*ret_dso = i;
			return 0;
		}
	}
	err = add_plain(t, kind, path, m->pid, hash, &i);
	if (err)
		return err;
	fill(t->dsos.v[i], m);
	t->dsos.v[i]->deleted = deleted;
	*ret_dso = i;
	return 0;
}

int dso_table_set_build_id(struct dso_table *t, const char *path, const uint8_t *id, size_t size)
{
	if (!size || size > BUILD_ID_MAX)
		return -EINVAL;
	for (size_t i = 0; i < t->dsos.n; i++) {
		struct dso *d = t->dsos.v[i];

		if (d->kind != DSO_ELF || d->build_id_size || d->ino == INODE_UNKNOWN ||
		    !str_eq(d->path, path))
			continue;
		memcpy(d->build_id, id, size);
		d->build_id_size = (uint8_t)size;
	}
	return 0;
}

const char *dso_short_name(const struct dso *d)
{
	const char *slash = strrchr(d->path, '/');

	return slash && slash[1] ? slash + 1 : d->path;
}
