/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of locks are asked for while their process lives: a command's are gone with it. */
#include "trace.h"

#include <inspect/lock_names.h>

enum { NAMES_MAX = 4096 };

struct known_lock {
	uint32_t pid;
	uint64_t user_va;
	char *name;
};

struct trace_locks {
	struct lock_names *names;
	ARRAY(struct known_lock) v;
	struct hashmap by_key;
};

int trace_locks_new(struct trace_locks **ret)
{
	struct trace_locks *l = calloc(1, sizeof(*l));

	if (!l || lock_names_new(&l->names)) {
		free(l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

void trace_locks_free(struct trace_locks *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->v.n; i++)
		free(l->v.v[i].name);
	array_release(&l->v);
	hashmap_release(&l->by_key);
	lock_names_free(l->names);
	free(l);
}

static uint64_t hash_of(uint32_t pid, uint64_t user_va)
{
	return hash_u64(user_va ^ (uint64_t)pid << 40);
}

static const struct known_lock *find(const struct trace_locks *l, uint32_t pid, uint64_t user_va)
{
	uint32_t at, i;

	hashmap_each_candidate(&l->by_key, hash_of(pid, user_va), at, i)
		if (l->v.v[i].pid == pid && l->v.v[i].user_va == user_va)
			return &l->v.v[i];
	return NULL;
}

static int learn(struct trace_locks *l, uint32_t pid, uint64_t user_va)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};
	struct known_lock known = {.pid = pid, .user_va = user_va};
	int err;

	if (!pid || find(l, pid, user_va) || l->v.n >= NAMES_MAX)
		return 0;
	err = lock_names_text(l->names, (pid_t)pid, user_va, &name);
	if (str_ends(strbuf_str(&name), "+0x0"))
		name.v[name.n -= strlen("+0x0")] = 0;
	/* Nothing to be learnt of a process that has ended. */
	if (err || str_starts(strbuf_str(&name), "0x"))
		return err == -ENOMEM ? err : 0;
	if (strbuf_take(&name, &known.name))
		return -ENOMEM;
	err = array_push(&l->v, known);
	if (err) {
		free(known.name);
		return err;
	}
	return hashmap_insert(&l->by_key, hash_of(pid, user_va), (uint32_t)l->v.n - 1);
}

int trace_locks_learn(struct trace_locks *l, struct syscall_counts *counts, bool by_lock)
{
	struct syscall_table t = {0};
	int err = by_lock ? syscall_counts_read(counts, &t) : syscall_counts_details(counts, &t);

	for (size_t i = 0; i < t.details.n && !err; i++)
		if (t.details.v[i].key.kind == SYSCALLS_LOCK)
			err = learn(l, t.details.v[i].key.id, t.details.v[i].key.value);
	for (size_t i = 0; i < t.rows.n && !err; i++)
		if (t.rows.v[i].key.stack)
			err = learn(l, t.rows.v[i].key.pid, t.rows.v[i].key.inode);
	syscall_table_release(&t);
	return err;
}

int trace_locks_learn_rows(struct trace_locks *l, const struct syscall_table *t)
{
	int err = 0;

	for (size_t i = 0; i < t->rows.n && !err; i++)
		err = learn(l, t->rows.v[i].key.pid, t->rows.v[i].key.inode);
	return err;
}

bool trace_lock_is_gil(const struct trace_locks *l, uint32_t pid, uint64_t user_va)
{
	const struct known_lock *known = l ? find(l, pid, user_va) : NULL;

	return known && lock_name_is_gil(known->name);
}

const char *trace_lock_name(const struct trace_locks *l, struct result *r, uint32_t pid,
			    uint64_t user_va)
{
	const struct known_lock *known = l ? find(l, pid, user_va) : NULL;

	if (!known)
		return result_text(r, "0x%llx", (unsigned long long)user_va);
	return result_text(r, "%s%s", known->name,
			   trace_lock_is_gil(l, pid, user_va) ? " (GIL)" : "");
}
