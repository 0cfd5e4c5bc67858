/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"

#include <inspect/code_file.h>

struct entry {
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t build_id_size;      /* 0: of one dso alone */
	struct unwind_table *table; /* NULL: err says why */
	int err;
};

struct unwind_tables {
	int cache_fd;            /* -1: none */
	uint64_t code_bytes_max; /* of what is built here; 0: any */
	ARRAY(struct entry) entries;
	struct hashmap by_build_id;
	ARRAY(uint32_t) by_dso; /* entry + 1; 0: not asked for yet */
};

int unwind_tables_new(bool use_disk_cache, struct unwind_tables **ret)
{
	struct unwind_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cache_fd = use_disk_cache ? unwind_cache_open() : -1;
	*ret = t;
	return 0;
}

void unwind_tables_free(struct unwind_tables *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->entries.n; i++)
		unwind_table_free(t->entries.v[i].table);
	array_release(&t->entries);
	array_release(&t->by_dso);
	hashmap_release(&t->by_build_id);
	closep(&t->cache_fd);
	free(t);
}

void unwind_tables_leave_large(struct unwind_tables *t, uint64_t code_bytes)
{
	t->code_bytes_max = code_bytes;
}

static bool find_by_build_id(const struct unwind_tables *t, const struct dso *d, uint32_t *ret)
{
	uint64_t hash = hash_bytes(d->build_id, d->build_id_size);
	uint32_t at, i;

	if (!d->build_id_size)
		return false;
	hashmap_each_candidate(&t->by_build_id, hash, at, i) {
		const struct entry *e = &t->entries.v[i];

		if (e->build_id_size == d->build_id_size &&
		    memcmp(e->build_id, d->build_id, d->build_id_size) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Files whose rows take longer to read than to make are not kept. */
enum { CACHED_ROWS_MIN = 4096 };

static int build(struct unwind_tables *t, const struct dso *d, bool local_host,
		 struct unwind_table **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL, *after = NULL;
	bool cached = t->cache_fd >= 0 && d->build_id_size && d->kind == DSO_ELF;
	int err;

	if (d->kind != DSO_ELF && d->kind != DSO_VDSO)
		return -ENOENT;
	if (cached && !unwind_cache_load(t->cache_fd, d->build_id, d->build_id_size, ret))
		return 0;
	if (t->code_bytes_max && d->end_va - d->start_va > t->code_bytes_max)
		return -EAGAIN;
	err = code_file_open(d, local_host, &f);
	if (!err)
		err = unwind_table_build(f, ret);
	/* One that was written anew meanwhile may have given rows of both. */
	if (!err && d->build_id_size && code_file_open(d, local_host, &after)) {
		unwind_table_free(*ret);
		*ret = NULL;
		err = -ESTALE;
	}
	if (!err && cached && (*ret)->rows.n >= CACHED_ROWS_MIN)
		unwind_cache_store(t->cache_fd, d->build_id, d->build_id_size, *ret);
	return err;
}

static int add(struct unwind_tables *t, const struct dso *d, bool local_host, uint32_t *ret)
{
	struct entry e = {.build_id_size = d->build_id_size};
	int err;

	memcpy(e.build_id, d->build_id, d->build_id_size);
	e.err = build(t, d, local_host, &e.table);
	if (e.err == -ENOMEM || e.err == -EAGAIN)
		return e.err;
	err = array_push(&t->entries, e);
	if (err) {
		unwind_table_free(e.table);
		return err;
	}
	*ret = (uint32_t)t->entries.n - 1;
	/* One process's view of a file may fail where another's does not. */
	if (e.err || !e.build_id_size)
		return 0;
	return hashmap_insert(&t->by_build_id, hash_bytes(e.build_id, e.build_id_size), *ret);
}

int unwind_tables_get(struct unwind_tables *t, const struct dso *d, bool local_host,
		      const struct unwind_table **ret)
{
	uint32_t entry;
	int err = 0;

	while (t->by_dso.n <= d->id)
		if (array_push(&t->by_dso, 0))
			return -ENOMEM;
	if (t->by_dso.v[d->id])
		entry = t->by_dso.v[d->id] - 1;
	else if (!find_by_build_id(t, d, &entry))
		err = add(t, d, local_host, &entry);
	if (err)
		return err;
	t->by_dso.v[d->id] = entry + 1;
	if (!t->entries.v[entry].table)
		return t->entries.v[entry].err;
	*ret = t->entries.v[entry].table;
	return 0;
}
