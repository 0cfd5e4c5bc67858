/* SPDX-License-Identifier: BSD-2-Clause */
#include "iterator.h"
#include "kernel_types.h"
#include "sampler.h"

#include <vitals.abi.h>

#include "vitals.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/bpf_tasks.h>
#include <inspect/procfs.h>
#include <linux/version.h>
#include <sys/uio.h>

enum { VITALS_MAX = 1 << 20 };

#define NEEDS_ITERATORS KERNEL_VERSION(5, 8, 0)

/* How much is asked of the kernel. */
enum extent {
	TIMES_ALONE,
	WITH_LOCKS,
	WITH_EXITS,     /* refusals from the ends of all calls */
	WITH_FUNCTIONS, /* … from the functions that refuse */
};

struct bpf_tasks {
	struct vitals *skeleton;
	struct bpf_link *iterator;
	bool has_locks;
	bool has_read; /* who slept already is known */
	enum extent extent;
};

/* What libbpf says is for its developers. */
static int say_nothing(enum libbpf_print_level level UNUSED, const char *format UNUSED,
		       va_list args UNUSED)
{
	return 0;
}

static const char *reason_of(int err)
{
	static const struct {
		int err;
		const char *text;
	} reasons[] = {
		{-EPERM, "needs BPF: root, or CAP_BPF and CAP_PERFMON"},
		{-EACCES, "needs BPF: the kernel's verifier or a security module refuses it"},
		{-ENOMEM, "needs BPF: memory is short (it is charged to this program's cgroup)"},
		{-ENOSYS, "needs BPF: this kernel has none"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].err == err)
			return reasons[i].text;
	return "needs BPF: this kernel lacks something that it uses";
}

/* Some kernels let nobody attach to their functions. Asked with a type that is no function: others
 * say so (EINVAL), and no second attempt to load everything is needed. */
static bool may_attach_functions(void)
{
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = BPF_TRACE_FEXIT,
		    .attach_btf_id = 1);
	int fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "asks", "GPL", code, ARRAY_SIZE(code), &o);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != EPERM;
}

static enum extent most_of(bool short_run)
{
	if (may_attach_functions())
		return WITH_FUNCTIONS;
	return short_run ? WITH_EXITS : WITH_LOCKS;
}

/* Where refusals are seen: programs on functions that this kernel has. */
static void choose_functions(struct vitals *s, bool wanted)
{
	const struct {
		struct bpf_program *program;
		const char *function;
	} all[] = {
		{s->progs.on_alloc_fd, "alloc_fd"},
		{s->progs.on_old_alloc_fd, "__alloc_fd"},
		{s->progs.on_alloc_file, "alloc_empty_file"},
		{s->progs.on_clone, "kernel_clone"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!wanted || bpf_program__set_attach_target(all[i].program, 0, all[i].function))
			bpf_program__set_autoload(all[i].program, false);
}

static bool attach_one(struct bpf_program *p, struct bpf_link **link)
{
	if (bpf_program__autoload(p))
		*link = bpf_program__attach(p);
	return *link != NULL;
}

/* All or none: a part would say 0 of the rest. */
static bool attach_refusals(struct vitals *s, enum extent extent)
{
	bool fds;

	if (extent == WITH_EXITS)
		return attach_one(s->progs.on_sys_exit, &s->links.on_sys_exit);
	fds = attach_one(s->progs.on_alloc_fd, &s->links.on_alloc_fd) ||
	      attach_one(s->progs.on_old_alloc_fd, &s->links.on_old_alloc_fd);

	return fds && attach_one(s->progs.on_alloc_file, &s->links.on_alloc_file) &&
	       attach_one(s->progs.on_clone, &s->links.on_clone);
}

static int load(struct bpf_tasks *b, const struct host *h, enum extent extent)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	__u64 pid_ns_inode;
	int err = probe_pid_namespace(h, &pid_ns_inode);

	if (err)
		return err;
	b->skeleton = KERNEL_TYPES_OPEN(vitals, &types);
	if (!b->skeleton)
		return -errno;
	b->skeleton->rodata->setup.pid_ns_inode = pid_ns_inode;
	bpf_program__set_autoload(b->skeleton->progs.on_switch, extent >= WITH_LOCKS);
	bpf_program__set_autoload(b->skeleton->progs.on_sys_exit, extent == WITH_EXITS);
	choose_functions(b->skeleton, extent == WITH_FUNCTIONS);
	err = vitals__load(b->skeleton);
	if (!err) {
		b->iterator = bpf_program__attach_iter(b->skeleton->progs.each_task, NULL);
		err = b->iterator ? 0 : -errno;
	}
	if (!err && extent >= WITH_LOCKS) {
		b->skeleton->links.on_switch = bpf_program__attach(b->skeleton->progs.on_switch);
		err = b->skeleton->links.on_switch ? 0 : -errno;
	}
	b->has_locks = extent >= WITH_LOCKS && !err;
	b->extent = extent;
	if (!err && extent >= WITH_EXITS && !attach_refusals(b->skeleton, extent))
		err = -EOPNOTSUPP;
	return err;
}

static void unload(struct bpf_tasks *b)
{
	bpf_link__destroy(b->iterator);
	vitals__destroy(b->skeleton);
	*b = (struct bpf_tasks){0};
}

int bpf_tasks_open(const struct host *h, bool short_run, struct bpf_tasks **ret,
		   const char **ret_reason)
{
	enum extent extent;
	struct bpf_tasks *b;
	int err;

	*ret_reason = "needs BPF with the kernel's types (BTF), which this kernel has not";
	if (!h->has_btf)
		return -EOPNOTSUPP;
	*ret_reason = "needs BPF iterators, which are of Linux 5.8";
	if (h->kernel_version && h->kernel_version < NEEDS_ITERATORS)
		return -EOPNOTSUPP;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	libbpf_set_print(say_nothing);
	extent = most_of(short_run);
	err = load(b, h, extent);
	while (err && extent > TIMES_ALONE) {
		/* Less is more than nothing. */
		unload(b);
		*ret_reason = reason_of(err);
		extent -= extent == WITH_FUNCTIONS && !short_run ? 2 : 1;
		err = load(b, h, extent);
	}
	if (err) {
		unload(b);
		free(b);
		*ret_reason = reason_of(err);
		return err;
	}
	*ret = b;
	return 0;
}

void bpf_tasks_close(struct bpf_tasks *b)
{
	if (!b)
		return;
	unload(b);
	free(b);
}

/* --- reading ---------------------------------------------------------------------------------- */

struct filling {
	struct task_table *table;
	int waiting_fd;
};

/* A wait that goes on, by what it has lasted so far. */
static int add_wait(struct task_table *t, const struct vitals_record *r)
{
	for (size_t i = 0; i < t->locks.n; i++) {
		struct lock_wait *l = &t->locks.v[i];

		if (l->pid != r->pid || l->user_va != r->lock_va)
			continue;
		l->wait_ns += r->lock_wait_ns;
		l->waiters++;
		return 0;
	}
	return array_push(&t->locks, (struct lock_wait){r->pid, 1, r->lock_va, r->lock_wait_ns});
}

static bool memory_read(uint32_t pid, uint64_t user_va, void *ret, size_t n)
{
	struct iovec to = {ret, n};
	struct iovec from = {(void *)(uintptr_t)user_va, n};

	return process_vm_readv(proc_living((pid_t)pid), &to, 1, &from, 1, 0) == (ssize_t)n;
}

/* As is_descriptor() of vitals.bpf.c; also where it cannot be read. */
static bool is_descriptor(uint32_t pid, uint64_t user_va)
{
	uint64_t word = 0;

	if (!memory_read(pid, user_va, &word, sizeof(word)))
		return true;
	return word == user_va &&
	       memory_read(pid, user_va + VITALS_THREAD_NEXT, &word, sizeof(word)) &&
	       memory_read(pid, word + VITALS_THREAD_PREV, &word, sizeof(word)) && word == user_va;
}

static uint64_t rwlock_of(uint32_t pid, uint64_t user_va)
{
	static const unsigned words[] = {VITALS_RW_WAITED_WORDS};
	struct vitals_rwlock l;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (memory_read(pid, user_va - words[i], &l, sizeof(l)) &&
		    vitals_is_rwlock(&l, words[i]))
			return user_va - words[i];
	return 0;
}

/* The lock for which a thread slept already, by its process's memory, as lock_of() of vitals.bpf.c;
 * 0 it is none, also where that cannot be read. */
static uint64_t lock_of(const struct vitals_record *r)
{
	uint64_t at = r->lock_va;
	uint32_t word = 0;

	if (r->found == VITALS_LOCK_OR_JOIN)
		return is_descriptor(r->pid, at - VITALS_SELF_BEFORE) ? 0 : at;
	if (r->found == VITALS_RWLOCK_OR_POST)
		return memory_read(r->pid, at + VITALS_FLAG_OFFSET, &word, sizeof(word)) &&
				       (word ^ r->found_private) & VITALS_PRIVATE
			       ? at
			       : 0;
	if (r->found == VITALS_LOCK_OR_TIMED &&
	    memory_read(r->pid, at + VITALS_OWNER_OFFSET, &word, sizeof(word)) && word &&
	    word <= VITALS_PID_BITS)
		return at;
	return r->found == VITALS_LOCK_OR_TIMED || r->found == VITALS_RWLOCK_OR_TIMED
		       ? rwlock_of(r->pid, at)
		       : at;
}

/* Of a record with a wait: what it waits for. False: no lock. */
static bool find_lock(int waiting_fd, struct vitals_record *r)
{
	uint64_t lock_va = lock_of(r);
	struct vitals_waiting w;

	if (!lock_va)
		bpf_map_delete_elem(waiting_fd, &r->waiting_key);
	else if (lock_va != r->lock_va && !bpf_map_lookup_elem(waiting_fd, &r->waiting_key, &w)) {
		w.lock.user_va = lock_va;
		bpf_map_update_elem(waiting_fd, &r->waiting_key, &w, BPF_EXIST);
	}
	r->lock_va = lock_va;
	return lock_va != 0;
}

static int add_task(void *ctx, const void *element)
{
	struct vitals_record record = *(const struct vitals_record *)element, *r = &record;
	const struct filling *f = ctx;
	struct task_table *t = f->table;
	struct task_times one = {
		.pid = r->pid,
		.tid = r->tid,
		.run_ns = r->run_ns,
		.delay_ns = r->delay_ns,
		.start = r->start_ns,
		.fd_table = r->fd_table,
		.fd_limit = r->fd_limit,
		.uid = r->uid,
		.user_tasks = r->user_tasks,
		.user_limit = r->user_limit,
	};

	memcpy(one.comm, r->comm, sizeof(one.comm));
	one.comm[sizeof(one.comm) - 1] = '\0';
	if (r->lock_va && find_lock(f->waiting_fd, r) && add_wait(t, r))
		return -ENOMEM;
	return t->tasks.n < VITALS_MAX ? array_push(&t->tasks, one) : -E2BIG;
}

/* Waits that have ended. */
static int read_locks(const struct bpf_tasks *b, struct task_table *t)
{
	int fd = bpf_map__fd(b->skeleton->maps.waited), err = 0;
	struct vitals_lock lock, *last = NULL;

	for (unsigned i = 0; !err && i < VITALS_LOCKS_MAX; i++, last = &lock) {
		struct vitals_waited w;

		if (bpf_map_get_next_key(fd, last, &lock))
			break;
		if (!bpf_map_lookup_elem(fd, &lock, &w))
			err = array_push(&t->locks, (struct lock_wait){lock.pid, (uint32_t)w.times,
								       lock.user_va, w.ns});
	}
	t->has_locks = true;
	t->locks_dropped = b->skeleton->bss->shared.dropped;
	return err;
}

static int read_refusals(const struct bpf_tasks *b, struct task_table *t)
{
	int fd = bpf_map__fd(b->skeleton->maps.refused), err = 0;
	uint32_t pid, *last = NULL;

	for (unsigned i = 0; !err && i < VITALS_REFUSED_MAX; i++, last = &pid) {
		struct vitals_refused r;

		if (bpf_map_get_next_key(fd, last, &pid))
			break;
		if (!bpf_map_lookup_elem(fd, &pid, &r))
			err = array_push(&t->refusals,
					 (struct task_refusals){pid, r.emfile, r.enfile, r.eagain,
								r.user_eagain});
	}
	t->has_refusals = true;
	t->refusals_dropped = b->skeleton->bss->shared.refused_dropped;
	return err;
}

int bpf_tasks_read(void *ctx, struct task_table *ret)
{
	struct bpf_tasks *b = ctx;
	struct filling f = {ret, bpf_map__fd(b->skeleton->maps.waiting)};
	/* First, lest a wait that ends meanwhile count twice. */
	int err = b->has_locks ? read_locks(b, ret) : 0;

	b->skeleton->bss->shared.finds_waits = b->has_locks && !b->has_read;
	if (!err)
		err = probe_iterate_link(b->iterator, sizeof(struct vitals_record), add_task, &f);
	b->has_read = true;
	ret->source = "BPF task iterator (se.sum_exec_runtime, sched_info.run_delay)";
	ret->no_locks = "needs BPF programs at sched_switch, which could not be loaded";
	ret->no_refusals = b->extent == TIMES_ALONE
				   ? ret->no_locks
				   : "this kernel allows no BPF on its functions (fexit): without "
				     "--watch the ends of all calls tell it";
	ret->refusals_source = b->extent == WITH_EXITS ? "BPF on the ends of all system calls"
						       : "BPF on alloc_fd(), alloc_empty_file(), "
							 "kernel_clone()";
	return err || b->extent < WITH_EXITS ? err : read_refusals(b, ret);
}
