/* SPDX-License-Identifier: BSD-2-Clause */
#include "dso.h"
#include "map_set.h"

struct process {
	uint32_t pid;
	struct map_set *maps; /* NULL: none known */
	uint32_t program;     /* dso of its executable: what it mapped first; 0 unknown */
	uint32_t jit;         /* dso of its executable memory without a file; 0 none yet */
	uint64_t began_ns;    /* the exec or fork it came with; 0: before the events */
	bool replaced;        /* by an exec: the next mapping is the first of the new program */
};

int process_table_init(struct process_table *t)
{
	return dso_table_init(&t->dsos);
}

void process_table_release(struct process_table *t)
{
	for (size_t i = 0; i < t->processes.n; i++) {
		map_set_drop(t->processes.v[i]->maps);
		free(t->processes.v[i]);
	}
	for (size_t i = 0; i < t->threads.n; i++) {
		free(t->threads.v[i]->comm);
		free(t->threads.v[i]);
	}
	array_release(&t->processes);
	array_release(&t->threads);
	hashmap_release(&t->by_pid);
	hashmap_release(&t->by_tid);
	dso_table_release(&t->dsos);
}

static struct process *find_process(const struct process_table *t, uint32_t pid)
{
	uint32_t at, i;

	hashmap_each_candidate(&t->by_pid, hash_u64(pid), at, i) {
		if (t->processes.v[i]->pid == pid)
			return t->processes.v[i];
	}
	return NULL;
}

static int get_process(struct process_table *t, uint32_t pid, struct process **ret)
{
	struct process *p = find_process(t, pid);
	int err;

	if (p) {
		*ret = p;
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pid = pid;
	err = array_push(&t->processes, p);
	if (err) {
		free(p);
		return err;
	}
	err = hashmap_insert(&t->by_pid, hash_u64(pid), (uint32_t)t->processes.n - 1);
	if (err) {
		t->processes.n--;
		free(p);
		return err;
	}
	*ret = p;
	return 0;
}

static struct thread *find_thread(const struct process_table *t, uint32_t tid)
{
	uint32_t at, i;

	hashmap_each_candidate(&t->by_tid, hash_u64(tid), at, i) {
		if (t->threads.v[i]->tid == tid)
			return t->threads.v[i];
	}
	return NULL;
}

static int get_thread(struct process_table *t, uint32_t pid, uint32_t tid, struct thread **ret)
{
	struct thread *thread = find_thread(t, tid);
	int err;

	if (thread) {
		thread->pid = pid;
		*ret = thread;
		return 0;
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return -ENOMEM;
	thread->pid = pid;
	thread->tid = tid;
	err = array_push(&t->threads, thread);
	if (err) {
		free(thread);
		return err;
	}
	err = hashmap_insert(&t->by_tid, hash_u64(tid), (uint32_t)t->threads.n - 1);
	if (err) {
		t->threads.n--;
		free(thread);
		return err;
	}
	*ret = thread;
	return 0;
}

static int set_comm(struct process_table *t, uint32_t pid, uint32_t tid, const char *comm)
{
	struct thread *thread;
	char *copy;
	int err = get_thread(t, pid, tid, &thread);

	if (err)
		return err;
	copy = strdup(comm);
	if (!copy)
		return -ENOMEM;
	free(thread->comm);
	thread->comm = copy;
	return 0;
}

/*
 * A program that copies its code to anonymous memory, to have it in huge pages, puts the copy where
 * the code was: it is still the same code. Only the executable's, which is never unmapped: where a
 * library was, anything may be mapped later.
 */
static bool is_moved_code(const struct process *p, const struct mapping *m)
{
	const struct mapping *was = p->program ? map_set_find(p->maps, m->start_va) : NULL;

	return was && was->dso == p->program && was->end_va >= m->end_va;
}

static int apply_mmap(struct process_table *t, const struct mmap_event *m)
{
	struct mapping map = {m->start_va, m->start_va + m->len_bytes, m->pgoff_bytes, 0};
	struct process *p;
	enum dso_kind kind;
	int err;

	if (m->kernel || !m->exec || map.end_va < map.start_va)
		return 0;
	err = get_process(t, m->pid, &p);
	if (!err)
		err = dso_table_add(&t->dsos, m, p->began_ns, &map.dso);
	if (err)
		return err;
	if (p->replaced) {
		map_set_drop(p->maps);
		p->maps = NULL;
		p->program = 0;
		p->replaced = false;
	}
	kind = t->dsos.dsos.v[map.dso]->kind;
	if (kind == DSO_JIT && is_moved_code(p, &map))
		return 0;
	if (kind == DSO_JIT)
		p->jit = map.dso;
	if (kind == DSO_ELF && !p->program)
		p->program = map.dso;
	return map_set_put(&p->maps, &map);
}

/* The pid is another program from now on. */
static void end_program(struct process_table *t, struct process *p, uint64_t time_ns)
{
	if (p->jit)
		t->dsos.dsos.v[p->jit]->ended_ns = time_ns;
	p->jit = 0;
	p->began_ns = time_ns;
}

static int apply_comm(struct process_table *t, const struct event *e)
{
	if (e->comm.exec) {
		struct process *p;
		int err = get_process(t, e->comm.pid, &p);

		if (err)
			return err;
		/* Samples in the rest of the exec still show the caller of it. */
		p->replaced = true;
		end_program(t, p, e->time_ns);
	}
	return set_comm(t, e->comm.pid, e->comm.tid, e->comm.comm);
}

static int apply_fork(struct process_table *t, const struct event *e)
{
	const struct thread *parent_thread = find_thread(t, e->task.ptid);
	struct process *child, *parent;
	int err;

	if (e->task.pid != e->task.ppid && !e->task.own_maps) {
		err = get_process(t, e->task.pid, &child);
		if (err)
			return err;
		parent = find_process(t, e->task.ppid);
		if (parent && parent != child) {
			map_set_drop(child->maps);
			child->maps = map_set_share(parent->maps);
			child->program = parent->program;
			child->replaced = false;
		}
		if (parent != child)
			end_program(t, child, e->time_ns);
	}
	if (!parent_thread || !parent_thread->comm || e->task.tid == e->task.ptid)
		return 0;
	return set_comm(t, e->task.pid, e->task.tid, parent_thread->comm);
}

int process_table_apply(struct process_table *t, const struct event *e)
{
	switch (e->type) {
	case EVENT_MMAP:
		return apply_mmap(t, &e->mmap);
	case EVENT_COMM:
		return apply_comm(t, e);
	case EVENT_FORK:
		return apply_fork(t, e);
	default:
		return 0; /* an EXIT changes nothing: the last samples of a task come after it */
	}
}

const struct mapping *process_table_find(struct process_table *t, uint32_t pid, uint64_t user_va)
{
	const struct process *p = find_process(t, pid);

	return p ? map_set_find(p->maps, user_va) : NULL;
}

const char *process_table_comm(struct process_table *t, uint32_t pid, uint32_t tid)
{
	const struct thread *thread = find_thread(t, tid);

	if ((!thread || !thread->comm) && pid != tid)
		thread = find_thread(t, pid);
	return thread && thread->comm ? thread->comm : "";
}
