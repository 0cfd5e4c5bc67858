/* SPDX-License-Identifier: BSD-2-Clause */
#include "core.h"
#include "kernel_types.h"

#include <tasks.abi.h>

#include "tasks.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/explain.h>
#include <inspect/strbuf.h>
#include <inspect/task_state.h>
#include <linux/version.h>
#include <time.h>

/* A record for each task that may exist (kernel.pid_max). */
#define OUTPUT_BYTES_MAX ((size_t)4 << 30)
#define COPIES_SINCE KERNEL_VERSION(5, 18, 0)
#define READ_BYTES (256u << 10)

/* include/linux/sched.h */
enum {
	STATE_INTERRUPTIBLE = 0x1,
	STATE_UNINTERRUPTIBLE = 0x2,
	STATE_STOPPED = 0x4,
	STATE_TRACED = 0x8,
	STATE_EXIT_DEAD = 0x10,
	STATE_EXIT_ZOMBIE = 0x20,
	STATE_PARKED = 0x40,
	STATE_DEAD = 0x80,
	STATE_NOLOAD = 0x400,
	STATE_RTLOCK_WAIT = 0x1000,
	STATE_FROZEN = 0x8000,

	FLAG_IO_WORKER = 0x10,
	FLAG_USER_WORKER = 0x4000,
	FLAG_KTHREAD = 0x200000,
};

struct task_reader {
	struct tasks *skeleton;
	struct bpf_link *link, *stack_link; /* the second may be NULL */
	ARRAY(uint32_t) named;              /* what is in the map of that name */
	struct strbuf output, stack_output; /* the second is what copies point into */
};

/* fs/proc/array.c, get_task_state */
char task_state_letter(uint32_t bits)
{
	static const struct {
		uint32_t bit;
		char letter;
	} letters[] = {
		{STATE_EXIT_DEAD, 'X'},     {STATE_EXIT_ZOMBIE, 'Z'}, {STATE_DEAD, 'X'},
		{STATE_TRACED, 't'},        {STATE_STOPPED, 'T'},     {STATE_PARKED, 'P'},
		{STATE_RTLOCK_WAIT, 'D'},   {STATE_FROZEN, 'D'},      {STATE_UNINTERRUPTIBLE, 'D'},
		{STATE_INTERRUPTIBLE, 'S'},
	};

	if ((bits & STATE_UNINTERRUPTIBLE) && (bits & STATE_NOLOAD))
		return 'I';
	for (size_t i = 0; i < ARRAY_SIZE(letters); i++)
		if (bits & letters[i].bit)
			return letters[i].letter;
	return 'R';
}

int task_reader_new(const struct host *h, struct task_reader **ret, struct diag *d)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	CLEANUP(task_reader_freep) struct task_reader *r = NULL;
	int err = explain_bpf(h, d);

	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return diag_errno(d, -ENOMEM, "preparing to read tasks");
	libbpf_set_print(NULL); /* what libbpf says is for its developers */
	r->skeleton = KERNEL_TYPES_OPEN(tasks, &types);
	if (!r->skeleton)
		return explain_bpf_load(-errno, h, d);
	err = probe_pid_namespace(h, (__u64 *)&r->skeleton->rodata->setup.pid_ns_inode);
	if (!err && h->kernel_version < COPIES_SINCE)
		err = bpf_program__set_autoload(r->skeleton->progs.list_task_with_stack, false);
	if (!err)
		err = tasks__load(r->skeleton);
	if (err)
		return explain_bpf_load(err, h, d);
	r->link = bpf_program__attach_iter(r->skeleton->progs.list_task, NULL);
	if (!r->link)
		return explain_bpf_load(-errno, h, d);
	if (h->kernel_version >= COPIES_SINCE)
		r->stack_link =
			bpf_program__attach_iter(r->skeleton->progs.list_task_with_stack, NULL);
	*ret = TAKE_PTR(r);
	return 0;
}

void task_reader_free(struct task_reader *r)
{
	if (!r)
		return;
	bpf_link__destroy(r->link);
	bpf_link__destroy(r->stack_link);
	tasks__destroy(r->skeleton);
	array_release(&r->named);
	strbuf_release(&r->output);
	strbuf_release(&r->stack_output);
	free(r);
}

void task_states_release(task_states *s)
{
	array_release(s);
}

/* --- asking ----------------------------------------------------------------------------------- */

static int name_tasks(struct task_reader *r, const pid_t *ids, size_t n)
{
	int fd = bpf_map__fd(r->skeleton->maps.named), err = 0;
	uint8_t value = 1;

	for (size_t i = 0; i < r->named.n; i++)
		bpf_map_delete_elem(fd, &r->named.v[i]);
	r->named.n = 0;
	for (size_t i = 0; i < n && !err; i++) {
		uint32_t id = (uint32_t)ids[i];

		err = array_push(&r->named, id);
		if (!err && bpf_map_update_elem(fd, &id, &value, BPF_ANY) < 0)
			err = -errno;
	}
	return err;
}

static int read_all(struct task_reader *r, const struct bpf_link *link, struct strbuf *output)
{
	CLEANUP(closep) int fd = bpf_iter_create(bpf_link__fd(link));
	CLEANUP(freep) char *bytes = malloc(READ_BYTES);
	/* So that the scheduler's clock has just been read when the first task is looked at. */
	const struct timespec nap = {.tv_nsec = 1000};

	if (fd < 0)
		return -errno;
	if (!bytes)
		return -ENOMEM;
	strbuf_clear(output);
	r->skeleton->bss->shared.now_ns = 0;
	r->skeleton->bss->shared.sched_now = 0;
	nanosleep(&nap, NULL);
	for (;;) {
		ssize_t n = read(fd, bytes, READ_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		strbuf_add(output, bytes, (size_t)n);
		if (output->failed || output->n > OUTPUT_BYTES_MAX)
			return -ENOMEM;
	}
}

/* --- what it says ----------------------------------------------------------------------------- */

/* Waits since, by the scheduler's clock. */
static uint64_t time_since(uint64_t sched_now, uint64_t then)
{
	if (!sched_now || !then)
		return TASK_STATE_TIME_UNKNOWN;
	return sched_now > then ? sched_now - then : 0;
}

static void convert(const struct tasks_record *r, uint64_t sched_now, struct task_state *ret)
{
	*ret = (struct task_state){
		.pid = (pid_t)r->pid,
		.tid = (pid_t)r->tid,
		.own_tid = (pid_t)r->own_tid,
		.state = task_state_letter(r->state),
		.frozen = r->frozen,
		.is_kernel = r->flags & (FLAG_KTHREAD | FLAG_IO_WORKER | FLAG_USER_WORKER),
		.is_32_bit = r->is_32_bit,
		.calls_32_bit = r->calls_32_bit,
		.stamp = r->exec_start,
		.syscall_nr = r->syscall_nr,
		.n_kernel = r->n_kernel,
	};
	ret->on_cpu = r->on_cpu && ret->state != 'Z' && ret->state != 'X';
	ret->since_ns = ret->on_cpu ? 0
				    : time_since(sched_now,
						 ret->state == 'R' ? r->queued_at : r->ran_until);
	memcpy(ret->comm, r->comm, sizeof(ret->comm));
	ret->comm[sizeof(ret->comm) - 1] = 0;
	memcpy(ret->args, r->args, sizeof(ret->args));
	memcpy(ret->kernel, r->kernel, r->n_kernel * sizeof(*ret->kernel));
	if (ret->on_cpu)
		ret->syscall_nr = -1; /* what is saved is of an earlier entry into the kernel */
	if (!r->has_regs || ret->on_cpu)
		return;
	ret->user.pc = r->pc;
	ret->user.exact = 1;
	for (unsigned i = 0; i < UNWIND_REGS; i++)
		unwind_set(&ret->user, i, r->regs[i]);
#if defined(__aarch64__)
	ret->user.known = 0xffcf; /* slots 4 and 5 stand for nothing there */
#endif
}

_Static_assert((int)TASK_STATE_KERNEL_FRAMES == TASKS_KERNEL_FRAMES, "copied as a whole");
_Static_assert((int)TASK_STATE_ARGS == TASKS_ARGS, "copied as a whole");

bool task_reader_copies(const struct task_reader *r)
{
	return r->stack_link;
}

/* One record at an offset of the output; its size, or 0 when it is none. */
static size_t parse_record(const struct strbuf *output, size_t at, uint64_t sched_now,
			   struct task_state *ret)
{
	struct tasks_record record;
	size_t kernel_bytes, stack_bytes;

	memcpy(&record, output->v + at, TASKS_HEAD_BYTES);
	kernel_bytes = record.n_kernel * 8u;
	stack_bytes = record.stack_pages * (size_t)TASKS_PAGE_BYTES;
	if (kernel_bytes > sizeof(record.kernel) || record.stack_pages > TASKS_STACK_PAGES ||
	    record.size_bytes != TASKS_HEAD_BYTES + kernel_bytes + stack_bytes ||
	    record.size_bytes > output->n - at)
		return 0;
	memcpy(&record, output->v + at, TASKS_HEAD_BYTES + kernel_bytes);
	convert(&record, sched_now, ret);
	if (stack_bytes) {
		ret->copy = (const uint8_t *)output->v + at + TASKS_HEAD_BYTES + kernel_bytes;
		ret->copy_bytes = stack_bytes;
		ret->copy_va = record.regs[UNWIND_SLOT_SP] & ~(uint64_t)(TASKS_PAGE_BYTES - 1);
	}
	return record.size_bytes;
}

int task_reader_read(struct task_reader *r, const struct task_selection *which, task_states *ret)
{
	const pid_t *ids = which->n_pids ? which->pids : which->tids;
	size_t n_ids = which->n_pids ? which->n_pids : which->n_tids;
	struct tasks_shared *shared = &r->skeleton->bss->shared;
	bool copies = which->with_stacks && r->stack_link;
	struct strbuf *output = copies ? &r->stack_output : &r->output;
	int err;

	shared->filter = which->n_pids   ? TASKS_PROCESSES
			 : which->n_tids ? TASKS_THREADS
					 : TASKS_ALL;
	err = name_tasks(r, ids, n_ids);
	if (!err)
		err = read_all(r, copies ? r->stack_link : r->link, output);
	ret->n = 0;
	for (size_t at = 0, n; !err && at + TASKS_HEAD_BYTES <= output->n; at += n) {
		struct task_state task;

		n = parse_record(output, at, shared->sched_now, &task);
		err = n ? array_push(ret, task) : -EBADMSG;
	}
	return err;
}
