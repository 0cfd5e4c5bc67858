/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys as text, and the order of rows. */
#include "trace.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

const struct trace_part trace_parts[] = {
	{"syscall", "syscall", SYSCALLS_BY_CALL, CELL_TEXT, false},
	{"thread", "tid", SYSCALLS_BY_THREAD, CELL_COUNT, false},
	{"thread", "own_tid", SYSCALLS_BY_THREAD, CELL_COUNT, false},
	{"thread", "thread", SYSCALLS_BY_THREAD, CELL_TEXT, false},
	{"comm", "comm", SYSCALLS_BY_COMM, CELL_TEXT, false},
	{"fd", "pid", SYSCALLS_BY_FD, CELL_COUNT, false},
	{"fd", "own_pid", SYSCALLS_BY_FD, CELL_COUNT, false},
	{"fd", "fd", SYSCALLS_BY_FD, CELL_COUNT, false},
	{"fd", "file", SYSCALLS_BY_FD, CELL_TEXT, true},
	{"path", "path", SYSCALLS_BY_PATH, CELL_TEXT, true},
	{"device", "device", SYSCALLS_BY_DEVICE, CELL_TEXT, true},
	{"errno", "errno", SYSCALLS_BY_ERRNO, CELL_TEXT, false},
	{"cgroup", "cgroup", SYSCALLS_BY_CGROUP, CELL_COUNT, false},
	{"cgroup", "cgroup_path", SYSCALLS_BY_CGROUP, CELL_TEXT, true},
	{"value", "value", SYSCALLS_BY_VALUE, CELL_TEXT, false},
};
const size_t n_trace_parts = ARRAY_SIZE(trace_parts);

const char *trace_call_name(struct result *r, uint32_t code)
{
	enum syscall_abi abi = code / SYSCALLS_NUMBERS;
	char buf[SYSCALL_NAME_BYTES];

	if (code == SYSCALLS_FUTEX_IDLE)
		return "futex (idle)";
	if (abi >= SYSCALL_ABIS || code % SYSCALLS_NUMBERS == SYSCALLS_UNKNOWN)
		return "(no such call)";
	return result_text(r, "%s%s", syscall_name(abi, code % SYSCALLS_NUMBERS, buf),
			   syscall_abi_suffix(abi));
}

/* --- cells ------------------------------------------------------------------------------------ */

static struct cell file_cell(const struct trace_view *view, const struct syscall_row *row,
			     struct result *r)
{
	const struct syscalls_file_key key = {row->key.inode, row->key.device,
					      (uint32_t)row->key.stack};
	CLEANUP(strbuf_release) struct strbuf b = {0};

	if (!row->key.inode && !row->key.device)
		return cell_text(r, "(no file)");
	syscall_counts_file(view->counts, &key, &b);
	if (view->sockets && str_starts(strbuf_str(&b), "socket:[")) {
		strbuf_clear(&b);
		if (fd_names_socket(view->sockets, (pid_t)row->pid, row->key.inode, &b))
			return cell_null(r, "no memory");
	}
	if (!b.n)
		strbuf_printf(&b, "inode %llu on %u:%u", (unsigned long long)row->key.inode,
			      row->key.device >> 20, row->key.device & 0xfffff);
	return cell_text(r, strbuf_str(&b));
}

static bool path_of_descriptor(int fd, char *ret, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, size - 1);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	return true;
}

/* The path of a cgroup below the mount, as in /proc/PID/cgroup. Its id is the kernel's handle of
 * its folder (FILEID_KERNFS, include/linux/exportfs.h; 5.5). */
static struct cell cgroup_cell(const struct trace_view *view, uint64_t id, struct result *r)
{
	enum { FILEID_KERNFS = 0xfe };
	union {
		struct file_handle h;
		unsigned char bytes[sizeof(struct file_handle) + sizeof(id)];
	} handle = {.h = {.handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS}};
	char top[PATH_MAX], path[PATH_MAX];
	CLEANUP(closep) int fd = -1;

	memcpy(handle.h.f_handle, &id, sizeof(id));
	if (view->cgroups_fd <= 0 || !path_of_descriptor(view->cgroups_fd, top, sizeof(top)))
		return cell_null(r, "cgroups of version 2 are not mounted");
	fd = open_by_handle_at(view->cgroups_fd, &handle.h, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !path_of_descriptor(fd, path, sizeof(path)) || !str_starts(path, top))
		return cell_null(r, "the group is not there any more");
	return cell_text(r, path[strlen(top)] ? path + strlen(top) : "/");
}

/* A device's own number stands for all of its nodes; any other file is itself. */
static struct cell device_cell(const struct trace_view *view, const struct syscall_row *row,
			       struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	if (row->key.inode || !row->key.device)
		return file_cell(view, row, r);
	syscall_counts_device(view->counts, row->key.device, &b);
	strbuf_printf(&b, "%sdevice %u:%u", b.n ? " " : "", row->key.device >> 20,
		      row->key.device & 0xfffff);
	return cell_text(r, strbuf_str(&b));
}

static struct cell errno_cell(const struct syscall_row *row, struct result *r)
{
	const char *name = row->key.error ? errno_name((int)row->key.error) : "OK";

	return cell_text(r, name ? name : result_text(r, "errno %u", row->key.error));
}

/* As it is called now, or was at its end: a name at the first call may be that of a parent. */
static const char *thread_name(const struct trace_view *view, const struct syscall_row *row,
			       char comm[SYSCALLS_COMM + 1])
{
	for (size_t i = 0; i < view->table->threads.n; i++)
		if (view->table->threads.v[i].tid == row->key.tid)
			return view->table->threads.v[i].comm;
	if (!view->counts)
		return row->comm;
	return syscall_counts_ended_name(view->counts, row->key.tid, comm) ? comm : row->comm;
}

static uint64_t number_of(const struct syscall_row *row, const struct trace_part *part)
{
	const struct {
		const char *key;
		uint64_t number;
	} all[] = {{"tid", row->key.tid},
		   {"own_tid", row->own_tid},
		   {"pid", row->key.pid},
		   {"own_pid", row->own_pid},
		   {"fd", (uint64_t)row->key.fd}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (str_eq(all[i].key, part->key))
			return all[i].number;
	return 0;
}

static struct cell part_cell(const struct trace_view *view, const struct syscall_row *row,
			     const struct trace_part *part, struct result *r)
{
	const struct syscalls_key *key = &row->key;
	char comm[SYSCALLS_COMM + 1] = "";

	switch (part->by) {
	case SYSCALLS_BY_CALL:
		return cell_text(r, trace_call_name(r, key->code));
	case SYSCALLS_BY_THREAD:
		return part->type == CELL_TEXT ? cell_text(r, thread_name(view, row, comm))
					       : cell_u64(CELL_COUNT, number_of(row, part));
	case SYSCALLS_BY_COMM:
		memcpy(comm, key->comm, sizeof(key->comm));
		return cell_text(r, comm);
	case SYSCALLS_BY_FD:
		if (part->type == CELL_TEXT)
			return file_cell(view, row, r);
		if (key->fd < 0)
			return cell_null(r, "calls without a descriptor");
		return cell_u64(CELL_COUNT, number_of(row, part));
	case SYSCALLS_BY_PATH:
		return file_cell(view, row, r);
	case SYSCALLS_BY_DEVICE:
		return device_cell(view, row, r);
	case SYSCALLS_BY_ERRNO:
		return errno_cell(row, r);
	case SYSCALLS_BY_VALUE:
		/* Small ones are numbers, large ones addresses. */
		return cell_text(r,
				 key->inode >> 32 && key->inode + 65536 > 2 * 65536UL
					 ? result_text(r, "0x%llx", (unsigned long long)key->inode)
					 : result_text(r, "%lld", (long long)key->inode));
	default:
		return part->type == CELL_TEXT ? cgroup_cell(view, key->cgroup, r)
					       : cell_u64(CELL_COUNT, key->cgroup);
	}
}

size_t trace_key_cells(const struct trace_view *view, const struct syscall_row *row,
		       struct result *r, struct cell *cells)
{
	size_t n = 0;

	for (size_t i = 0; i < n_trace_parts; i++)
		if (view->by & trace_parts[i].by)
			cells[n++] = part_cell(view, row, &trace_parts[i], r);
	return n;
}

/* Numbers that are the same in all pid namespaces are shown once. */
static bool is_hidden(const struct trace_view *view, const struct trace_part *part)
{
	const struct syscall_table *t = view->table;

	if (!str_starts(part->key, "own_"))
		return false;
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct syscall_row *row = &t->rows.v[i];

		if (str_eq(part->key, "own_tid")
			    ? row->own_tid && row->own_tid != row->key.tid
			    : row->own_pid && row->key.pid && row->own_pid != row->key.pid)
			return false;
	}
	return true;
}

const char *trace_task_number(const struct syscall_table *t, struct result *r, uint32_t number)
{
	for (size_t i = 0; i < t->threads.n; i++) {
		const struct syscall_thread *thread = &t->threads.v[i];

		if (thread->tid == number && thread->own_tid && thread->own_tid != number)
			return result_text(r, "%u(%u)", number, thread->own_tid);
	}
	return result_text(r, "%u", number);
}

size_t trace_key_columns(const struct trace_view *view, struct column *columns)
{
	size_t n = 0;

	for (size_t i = 0; i < n_trace_parts; i++) {
		const struct trace_part *part = &trace_parts[i];

		const char *name = part->by == SYSCALLS_BY_VALUE ? view->value_name : part->key;

		if (view->by & part->by)
			columns[n++] = (struct column){name, name, part->type,
						       is_hidden(view, part) ? COLUMN_DATA_ONLY
						       : part->is_long       ? COLUMN_CUT
									     : 0};
	}
	return n;
}

bool trace_row_waits(const struct trace_view *view, const struct syscall_row *row)
{
	if (!(view->by & SYSCALLS_BY_CALL))
		return row->key.code != 0;
	if (row->key.code == SYSCALLS_FUTEX_IDLE)
		return true;
	return syscall_classes(row->key.code / SYSCALLS_NUMBERS, row->key.code % SYSCALLS_NUMBERS) &
	       SYSCALL_WAITS;
}

/* --- order ------------------------------------------------------------------------------------ */

const char trace_sort_names[] = "total|calls|errors|avg|p50|p99|max|bytes|in-flight";

static uint64_t sort_value(const struct syscall_row *row, unsigned sort)
{
	switch (sort) {
	case 0:
		return trace_row_wall_ns(row);
	case 1:
		return row->calls;
	case 2:
		return row->errors;
	case 3:
		return row->calls ? row->total_ns / row->calls : 0;
	case 4:
		return histogram_percentile(&row->h, 50);
	case 5:
		return histogram_percentile(&row->h, 99);
	case 6:
		return row->h.max;
	case 7:
		return row->bytes;
	default:
		return row->in_flight;
	}
}

struct sorted_row {
	uint64_t value, calls;
	size_t index;
};

static int greatest_first(const void *a, const void *b)
{
	const struct sorted_row *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

int trace_sorted_rows(const struct syscall_table *t, unsigned sort, size_t **ret)
{
	CLEANUP(freep) struct sorted_row *sorted = calloc(t->rows.n + 1, sizeof(*sorted));
	size_t *order = calloc(t->rows.n + 1, sizeof(*order));

	if (!sorted || !order) {
		free(order);
		return -ENOMEM;
	}
	for (size_t i = 0; i < t->rows.n; i++)
		sorted[i] =
			(struct sorted_row){sort_value(&t->rows.v[i], sort), t->rows.v[i].calls, i};
	qsort(sorted, t->rows.n, sizeof(*sorted), greatest_first);
	for (size_t i = 0; i < t->rows.n; i++)
		order[i] = sorted[i].index;
	*ret = order;
	return 0;
}
