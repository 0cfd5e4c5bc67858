/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of locks are asked for while their process lives: a command's are gone with it. */
#include "trace_locks.h"

#include <inspect/lock_names.h>
#include <inspect/procfs.h>
#include <sys/uio.h>

enum { NAMES_MAX = 4096 };

struct known_lock {
	uint32_t pid, code; /* as in struct syscalls_key */
	uint64_t user_va;
	uint32_t object_code;
	uint64_t object_va;
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

static uint64_t hash_of(uint32_t pid, uint64_t user_va, uint32_t code)
{
	return hash_u64(user_va ^ (uint64_t)pid << 40 ^ (uint64_t)code << 24);
}

static const struct known_lock *find(const struct trace_locks *l, uint32_t pid, uint64_t user_va,
				     uint32_t code)
{
	uint32_t at, i;

	hashmap_each_candidate(&l->by_key, hash_of(pid, user_va, code), at, i)
		if (l->v.v[i].pid == pid && l->v.v[i].user_va == user_va && l->v.v[i].code == code)
			return &l->v.v[i];
	return NULL;
}

/* Of an array of them (struct futex_waitv, include/uapi/linux/futex.h). */
static bool read_first(uint32_t pid, uint64_t array_va, uint64_t *ret_va)
{
	struct {
		uint64_t value, user_va;
	} waiter;
	struct iovec to = {&waiter, sizeof(waiter)};
	struct iovec from = {(void *)(uintptr_t)array_va, sizeof(waiter)};

	if (process_vm_readv(proc_living((pid_t)pid), &to, 1, &from, 1, 0) != sizeof(waiter))
		return false;
	*ret_va = waiter.user_va;
	return true;
}

static int keep(struct trace_locks *l, const struct known_lock *lock, const char *name)
{
	struct known_lock known = *lock;
	int err;

	known.name = strdup(name);
	err = known.name ? array_push(&l->v, known) : -ENOMEM;
	if (err) {
		free(known.name);
		return err;
	}
	return hashmap_insert(&l->by_key, hash_of(known.pid, known.user_va, known.code),
			      (uint32_t)l->v.n - 1);
}

static int learn(struct trace_locks *l, uint32_t pid, uint64_t user_va, uint32_t code)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};
	struct known_lock known = {.pid = pid, .user_va = user_va, .code = code};
	uint32_t n = code & SYSCALLS_LOCKS;
	uint64_t first_va = user_va;
	int err;

	if (!pid || find(l, pid, user_va, code) || l->v.n >= NAMES_MAX ||
	    (code & SYSCALLS_LOCKS_UNREAD && !read_first(pid, user_va, &first_va)))
		return 0;
	err = lock_names_object(l->names, (pid_t)pid, first_va, &name, &known.object_va);
	/* Nothing to be learnt of a process that has ended. */
	if (err || str_starts(strbuf_str(&name), "0x"))
		return err == -ENOMEM ? err : 0;
	if (n > 1) {
		known.object_va = first_va;
		known.object_code = n;
		strbuf_printf(&name, " or %u more", n - 1);
	}
	if (name.failed)
		return -ENOMEM;
	err = keep(l, &known, strbuf_str(&name));
	if (err || find(l, pid, known.object_va, known.object_code))
		return err;
	known.user_va = known.object_va;
	known.code = known.object_code;
	return keep(l, &known, strbuf_str(&name));
}

int trace_locks_learn(struct trace_locks *l, struct syscall_counts *counts, bool by_lock)
{
	struct syscall_table t = {0};
	int err = by_lock ? syscall_counts_read(counts, &t) : syscall_counts_details(counts, &t);

	for (size_t i = 0; i < t.details.n && !err; i++)
		if (t.details.v[i].key.kind == SYSCALLS_LOCK)
			err = learn(l, t.details.v[i].key.id, t.details.v[i].key.value, 0);
	for (size_t i = 0; i < t.rows.n && !err; i++)
		if (t.rows.v[i].key.stack)
			err = learn(l, t.rows.v[i].key.pid, t.rows.v[i].key.inode,
				    t.rows.v[i].key.code);
	syscall_table_release(&t);
	return err;
}

int trace_locks_learn_rows(struct trace_locks *l, const struct syscall_table *t)
{
	int err = 0;

	for (size_t i = 0; i < t->rows.n && !err; i++)
		err = learn(l, t->rows.v[i].key.pid, t->rows.v[i].key.inode, 0);
	return err;
}

bool trace_lock_is_gil(const struct trace_locks *l, uint32_t pid, uint64_t user_va)
{
	const struct known_lock *known = l ? find(l, pid, user_va, 0) : NULL;

	return known && lock_name_is_gil(known->name);
}

const char *trace_lock_name(const struct trace_locks *l, struct result *r, uint32_t pid,
			    uint64_t user_va, uint32_t code)
{
	const struct known_lock *known = l ? find(l, pid, user_va, code) : NULL;
	unsigned n = code & SYSCALLS_LOCKS;

	if (!known && n)
		return result_text(r, "%u futexes", n);
	if (!known)
		return result_text(r, "0x%llx", (unsigned long long)user_va);
	return result_text(r, "%s", known->name);
}

uint64_t trace_lock_object(const struct trace_locks *l, uint32_t pid, uint64_t user_va)
{
	const struct known_lock *known = l ? find(l, pid, user_va, 0) : NULL;

	return known ? known->object_va : user_va;
}

/* --- objects ---------------------------------------------------------------------------------- */

/* What becomes of a lock's id. */
struct renamed {
	uint64_t from, to;
};

static int by_from(const void *a, const void *b)
{
	const struct renamed *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static void add_row(struct syscall_row *to, const struct syscall_row *from)
{
	to->calls += from->calls;
	to->errors += from->errors;
	to->total_ns += from->total_ns;
	to->bytes += from->bytes;
	to->io_calls += from->io_calls;
	histogram_merge(&to->h, &from->h);
	to->in_flight += from->in_flight;
	to->open_ns += from->open_ns;
	to->oldest_ns = MAX(to->oldest_ns, from->oldest_ns);
	to->from_before += from->from_before;
}

/* Of the object's words that one's id stands for all that was met first. */
static int add_up_rows(const struct trace_locks *l, struct syscall_table *t,
		       struct renamed *ret_ids)
{
	struct hashmap firsts = {0};
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < t->rows.n && !err; i++) {
		struct syscall_row *row = &t->rows.v[i], *first = NULL;
		struct syscalls_key *key = &row->key;
		const struct known_lock *known = find(l, key->pid, key->inode, key->code);
		uint64_t hash;
		uint32_t at, k;

		ret_ids[i] = (struct renamed){key->stack, key->stack};
		if (key->pid && known) {
			key->inode = known->object_va;
			key->code = known->object_code;
		}
		hash = hash_u64(key->inode ^ (uint64_t)key->pid << 40 ^ (uint64_t)key->code << 24 ^
				key->cgroup);
		hashmap_each_candidate(&firsts, hash, at, k) {
			const struct syscalls_key *have = &t->rows.v[k].key;

			if (have->pid == key->pid && have->inode == key->inode &&
			    have->code == key->code && have->cgroup == key->cgroup &&
			    have->device == key->device)
				first = &t->rows.v[k];
		}
		if (first) {
			ret_ids[i].to = first->key.stack;
			add_row(first, row);
			continue;
		}
		t->rows.v[n] = *row;
		err = hashmap_insert(&firsts, hash, (uint32_t)n++);
	}
	hashmap_release(&firsts);
	if (!err)
		t->rows.n = n;
	return err;
}

int trace_locks_merge(const struct trace_locks *l, const struct syscall_counts *counts,
		      struct syscall_table *t)
{
	size_t n = t->rows.n;
	CLEANUP(freep) struct renamed *ids = calloc(n + 1, sizeof(*ids));
	int err = ids ? lock_words_join(counts, t) : -ENOMEM;

	if (!err)
		err = add_up_rows(l, t, ids);

	if (err || t->rows.n == n)
		return err;
	qsort(ids, n, sizeof(*ids), by_from);
	for (size_t i = 0; i < t->details.n; i++) {
		struct syscalls_detail_key *key = &t->details.v[i].key;
		const struct renamed wanted = {.from = key->value}, *found = NULL;

		if (key->kind >= SYSCALLS_LOCK_TIMEOUT && key->kind <= SYSCALLS_LOCK_MOVED)
			found = bsearch(&wanted, ids, n, sizeof(*ids), by_from);
		if (found)
			key->value = found->to;
	}
	hashmap_release(&t->by_key);
	t->by_key = (struct hashmap){0};
	return 0;
}
