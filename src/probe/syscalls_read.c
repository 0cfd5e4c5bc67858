/* SPDX-License-Identifier: BSD-2-Clause */
/* From the program's maps and its iterator to a table. */
#include "syscalls.h"

#include "iterator.h"

#include "syscalls.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>
#include <sys/stat.h>

enum { KEYS_MAX = 1 << 20 }; /* more than any of the maps has */

/* --- rows ------------------------------------------------------------------------------------- */

/* The rows of all CPUs into the first of them. */
static void sum_cpus(struct syscall_counts *c)
{
	struct syscalls_row *sum = &c->by_cpu[0];

	for (uint32_t cpu = 1; cpu < c->n_possible; cpu++) {
		const struct syscalls_row *one = &c->by_cpu[cpu];

		sum->calls += one->calls;
		sum->errors += one->errors;
		sum->total_ns += one->total_ns;
		sum->bytes += one->bytes;
		sum->io += one->io;
		sum->max = MAX(sum->max, one->max);
		for (size_t i = 0; i < LOG_LINEAR_SLOTS; i++)
			sum->slots[i] += one->slots[i];
	}
}

static int read_call_rows(struct syscall_counts *c, struct syscall_table *t)
{
	int owners = bpf_map__fd(c->skeleton->maps.row_owners);
	int rows = bpf_map__fd(c->skeleton->maps.rows);
	int err = 0;

	for (uint32_t i = 0; i <= c->setup.rows_mask && !err; i++) {
		struct syscalls_key key = {.fd = -1};
		struct syscall_row *row = &t->rest;

		if (i && bpf_map_lookup_elem(owners, &i, &key.code))
			continue;
		if (bpf_map_lookup_elem(rows, &i, c->by_cpu))
			return -errno;
		sum_cpus(c);
		/* Row 0 is that of calls without a row: no call has its key. */
		if (!i) {
			key.code = UINT32_MAX;
			t->has_rest = c->by_cpu->calls != 0;
		} else if (c->by_cpu->calls) {
			row = syscall_table_row(t, &key);
		}
		if (!row)
			return -ENOMEM;
		if (c->by_cpu->calls)
			err = row_reader_take(&c->reader, &key, c->by_cpu, row);
	}
	return err;
}

/* --- details and losses ----------------------------------------------------------------------- */

int syscall_counts_details(struct syscall_counts *c, struct syscall_table *t)
{
	struct syscalls_detail_key key, *before = NULL;
	int fd = bpf_map__fd(c->skeleton->maps.details), err = 0;

	for (size_t i = 0; i < KEYS_MAX && !err; i++) {
		struct syscall_detail d;

		if (bpf_map_get_next_key(fd, before, &key))
			return errno == ENOENT ? 0 : -errno;
		before = &key;
		d.key = key;
		if (!bpf_map_lookup_elem(fd, &key, &d.v))
			err = array_push(&t->details, d);
	}
	return err;
}

static int read_counts(struct syscall_counts *c, struct syscall_table *t)
{
	const struct probe_sum all[] = {
		{SYSCALLS_UNMATCHED_EXIT, &t->losses.exits_without_enter},
		{SYSCALLS_UNMATCHED_ENTER, &t->losses.enters_without_exit},
		{SYSCALLS_KEYS_FULL, &t->losses.keys_dropped_calls},
		{SYSCALLS_DETAILS_FULL, &t->losses.details_dropped},
		{SYSCALLS_FILES_FULL, &t->losses.file_names_dropped},
		{SYSCALLS_STATES_FULL, &t->losses.threads_dropped},
		{SYSCALLS_ENDED_THREADS, &t->ended_threads},
		{SYSCALLS_ENDED_NS, &t->threads_ns},
		{SYSCALLS_STARTED_THREADS, &t->started_threads},
		{SYSCALLS_FROM_BEFORE, &t->from_before},
	};
	CLEANUP(freep) struct stack_losses *stacks = calloc(c->n_possible, sizeof(*stacks));
	uint32_t zero = 0;

	if (!stacks)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(c->skeleton->maps.stacks_lost), &zero, stacks))
		return -errno;
	t->losses.stacks_dropped = 0;
	for (uint32_t cpu = 0; cpu < c->n_possible; cpu++)
		t->losses.stacks_dropped += stacks[cpu].full + stacks[cpu].unsent;
	t->losses.missed_by_recursion = probe_core_missed(&c->core);
	return probe_core_sums(&c->core, "counts", all, ARRAY_SIZE(all));
}

/* --- threads ---------------------------------------------------------------------------------- */

/* A wait that goes on, as those that have ended; it is none of their number yet. */
static int add_waiter(const struct syscalls_thread *from, struct syscall_table *t)
{
	const struct syscall_detail waiter = {
		.key = {.kind = SYSCALLS_LOCK_WAITER,
			.id = from->tid,
			.value = from->key.stack,
			.stack = from->stack},
		.v = {.sum = from->in_call_ns, .max = from->in_call_ns},
	};

	return array_push(&t->details, waiter);
}

struct thread_adder {
	struct syscall_table *table;
	bool by_lock;
	uint64_t elapsed_ns;
};

static int add_thread(void *ctx, const void *element)
{
	const struct thread_adder *to = ctx;
	struct syscalls_thread then = *(const struct syscalls_thread *)element;
	const struct syscalls_thread *from = &then;
	struct syscall_table *t = to->table;
	struct syscall_thread thread = {
		.pid = from->pid,
		.tid = from->tid,
		.own_tid = from->own_tid,
		.in_call = from->in_call,
		.code = from->code,
	};
	struct syscall_row *row;

	then.watched_ns = MIN(then.watched_ns, to->elapsed_ns);
	thread.watched_ns = then.watched_ns;
	then.in_call_ns = MIN(then.in_call_ns, to->elapsed_ns);
	thread.in_call_ns = from->in_call_ns;
	memcpy(thread.comm, from->comm, sizeof(from->comm));
	t->threads_ns += from->watched_ns;
	if (array_push(&t->threads, thread))
		return -ENOMEM;
	if (!from->in_call)
		return 0;
	row = syscall_table_row(t, &from->key);
	if (!row)
		return -ENOMEM;
	if (!row->pid) {
		row->pid = from->pid;
		row->own_tid = from->own_tid;
		row->own_pid = from->own_pid;
		row->fd = from->key.fd;
		memcpy(row->comm, from->comm, sizeof(from->comm));
	}
	row->in_flight++;
	row->from_before += from->from_before;
	row->open_ns += from->in_call_ns;
	row->oldest_ns = MAX(row->oldest_ns, from->in_call_ns);
	return to->by_lock ? add_waiter(from, t) : 0;
}

int syscall_counts_read(struct syscall_counts *c, struct syscall_table *ret)
{
	struct thread_adder adder = {.table = ret, .by_lock = c->setup.by & SYSCALLS_BY_LOCK};
	int err = read_counts(c, ret);

	ret->elapsed_ns = (c->stopped_ns ? c->stopped_ns : clock_now_ns()) - c->started_ns;
	if (!err)
		err = read_call_rows(c, ret);
	if (!err && c->setup.by != SYSCALLS_BY_CALL)
		err = row_reader_map(&c->reader, bpf_map__fd(c->skeleton->maps.keyed_rows), ret);
	if (!err && c->setup.details)
		err = syscall_counts_details(c, ret);
	for (size_t i = 0; i < ret->rows.n && c->setup.of_bytes; i++)
		ret->rows.v[i].h.sum = ret->rows.v[i].bytes;
	adder.elapsed_ns = ret->elapsed_ns;
	return err ? err
		   : probe_iterate(c->skeleton->progs.collect, sizeof(struct syscalls_thread),
				   add_thread, &adder);
}

/* --- names of files --------------------------------------------------------------------------- */

/* From the root down. A part that fills its room was longer. */
static void put_path(const struct syscalls_file *file, struct strbuf *out)
{
	uint32_t n = MIN(file->parts, (uint32_t)SYSCALLS_NAME_PARTS);

	if (file->parts > SYSCALLS_NAME_PARTS)
		strbuf_puts(out, "/…");
	for (uint32_t i = n; i-- > 0;) {
		size_t bytes = strnlen(file->part[i], SYSCALLS_NAME_BYTES);

		strbuf_putc(out, '/');
		strbuf_add(out, file->part[i], bytes);
		if (bytes == SYSCALLS_NAME_BYTES - 1)
			strbuf_puts(out, "…");
	}
	if (!n)
		strbuf_putc(out, '/');
}

void syscall_counts_file(const struct syscall_counts *c, const struct syscalls_file_key *key,
			 struct strbuf *out)
{
	struct syscalls_file file;

	if (!key->inode || bpf_map_lookup_elem(bpf_map__fd(c->skeleton->maps.files), key, &file))
		return;
	if (S_ISSOCK(file.mode) && file.parts == 0)
		strbuf_printf(out, "socket:[%llu]", (unsigned long long)key->inode);
	else if (S_ISFIFO(file.mode) && file.parts == 0)
		strbuf_printf(out, "pipe:[%llu]", (unsigned long long)key->inode);
	else
		put_path(&file, out);
}

void syscall_counts_device(const struct syscall_counts *c, uint32_t rdev, struct strbuf *out)
{
	struct syscalls_file_key key, *before = NULL;
	int fd = bpf_map__fd(c->skeleton->maps.files);
	struct syscalls_file file;

	for (size_t i = 0; i < KEYS_MAX && !bpf_map_get_next_key(fd, before, &key); i++) {
		before = &key;
		if (bpf_map_lookup_elem(fd, &key, &file) || file.rdev != rdev)
			continue;
		put_path(&file, out);
		return;
	}
}

bool syscall_counts_stack(const struct syscall_counts *c, uint64_t id, struct syscalls_stack *ret)
{
	if (!id || bpf_map_lookup_elem(bpf_map__fd(c->skeleton->maps.kept_stacks), &id, ret))
		return false;
	ret->n = MIN(ret->n, (uint16_t)SYSCALLS_STACK_FRAMES);
	ret->stop = MIN(ret->stop, (uint8_t)(UNWIND_STOPS - 1));
	return true;
}

bool syscall_counts_ended_name(const struct syscall_counts *c, uint32_t tid,
			       char ret_comm[SYSCALLS_COMM + 1])
{
	char comm[SYSCALLS_COMM];

	if (bpf_map_lookup_elem(bpf_map__fd(c->skeleton->maps.ended_names), &tid, comm))
		return false;
	memcpy(ret_comm, comm, sizeof(comm));
	ret_comm[SYSCALLS_COMM] = '\0';
	return true;
}
