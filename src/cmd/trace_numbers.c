/* SPDX-License-Identifier: BSD-2-Clause */
/* From a table of calls to the numbers that rules speak of: rates, shares, and whose they are. */
#include "trace.h"

#include <math.h>

/* A shorter run is no base for a rate: 50 calls in 10 ms are a start-up, not 5000 a second. */
#define SECONDS_LEAST 1.0

struct numbers_build {
	const struct syscall_table *t;
	const struct syscall_counts *counts;
	const struct trace_locks *locks;
	struct result *r;
	struct trace_numbers *to;
	double seconds;
};

static void put_number(struct numbers_build *b, const char *name, double value, const char *subject)
{
	if (b->to->n < TRACE_NUMBERS_MAX)
		b->to->v[b->to->n++] = (struct trace_number){name, value, subject};
}

double trace_number(void *numbers, const char *name)
{
	const struct trace_numbers *n = numbers;

	for (size_t i = 0; i < n->n; i++)
		if (str_eq(n->v[i].name, name))
			return n->v[i].value;
	return NAN;
}

/* --- sums over rows --------------------------------------------------------------------------- */

/* Rows of calls with one of these names, of any ABI. */
static bool is_named(const struct syscall_row *row, const char *const *names)
{
	char buf[SYSCALL_NAME_BYTES];
	enum syscall_abi abi = row->key.code / SYSCALLS_NUMBERS;
	const char *name;

	if (abi >= SYSCALL_ABIS)
		return false;
	name = syscall_name(abi, row->key.code % SYSCALLS_NUMBERS, buf);
	for (; *names; names++)
		if (str_eq(name, *names))
			return true;
	return false;
}

struct calls_sum {
	double calls, succeeded, wall_ms;
};

static struct calls_sum sum_calls(const struct numbers_build *b, const char *const *names)
{
	struct calls_sum sum = {0};

	for (size_t i = 0; i < b->t->rows.n; i++) {
		const struct syscall_row *row = &b->t->rows.v[i];

		if (!is_named(row, names))
			continue;
		sum.calls += (double)row->calls;
		sum.succeeded += (double)(row->calls - row->errors);
		sum.wall_ms += (double)row->total_ns / 1e6;
	}
	return sum;
}

static const struct syscall_detail *most_of(const struct numbers_build *b, uint32_t kind)
{
	const struct syscall_detail *most = NULL;

	for (size_t i = 0; i < b->t->details.n; i++) {
		const struct syscall_detail *d = &b->t->details.v[i];

		if (d->key.kind == kind && (!most || d->v.count > most->v.count))
			most = d;
	}
	return most;
}

static uint64_t count_of(const struct numbers_build *b, uint32_t kind, uint32_t id, uint64_t value)
{
	for (size_t i = 0; i < b->t->details.n; i++) {
		const struct syscall_detail *d = &b->t->details.v[i];

		if (d->key.kind == kind && d->key.id == id && d->key.value == value)
			return d->v.count;
	}
	return 0;
}

/* --- whose it is ------------------------------------------------------------------------------ */

static const char *thread_subject(const struct numbers_build *b, uint32_t tid)
{
	for (size_t i = 0; i < b->t->threads.n; i++)
		if (b->t->threads.v[i].tid == tid)
			return result_text(b->r, "thread %s (%s)",
					   trace_task_number(b->t, b->r, tid),
					   b->t->threads.v[i].comm);
	return result_text(b->r, "thread %u", tid);
}

static const char *fd_subject(const struct numbers_build *b, const struct syscall_detail *d)
{
	CLEANUP(strbuf_release) struct strbuf file = {0};

	if (b->counts)
		syscall_counts_file(b->counts, &d->v.file, &file);
	return result_text(b->r, "fd %u%s%s%s of process %s", (uint32_t)d->key.value,
			   file.n ? " <" : "", strbuf_str(&file), file.n ? ">" : "",
			   trace_task_number(b->t, b->r, (uint32_t)(d->key.value >> 32)));
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Mappings that went again with the size with which they came: F1. */
static void put_memory(struct numbers_build *b)
{
	static const char *const others[] = {"brk", "madvise", "mremap", NULL};
	const struct syscall_detail *most = NULL;
	uint64_t pairs = 0, most_pairs = 0;

	for (size_t i = 0; i < b->t->details.n; i++) {
		const struct syscall_detail *d = &b->t->details.v[i];
		uint64_t gone, both;

		if (d->key.kind != SYSCALLS_MAP)
			continue;
		gone = count_of(b, SYSCALLS_UNMAP, d->key.id, d->key.value);
		both = MIN(gone, d->v.count);
		pairs += both;
		if (both > most_pairs) {
			most = d;
			most_pairs = both;
		}
	}
	put_number(b, "map-pairs-per-second", (double)pairs / b->seconds,
		   most ? result_text(b->r, "most of %llu KiB, process %s",
				      (unsigned long long)most->key.value >> 10,
				      trace_task_number(b->t, b->r, most->key.id))
			: NULL);
	put_number(b, "heap-calls-per-second", sum_calls(b, others).calls / b->seconds, NULL);
}

/* --- threads and descriptors ------------------------------------------------------------------ */

static void put_most(struct numbers_build *b, const char *name, uint32_t kind)
{
	const struct syscall_detail *most = most_of(b, kind);

	put_number(b, name, most ? (double)most->v.count / b->seconds : 0,
		   most ? thread_subject(b, most->key.id) : NULL);
}

/* Of each (thread, descriptor) there is a count: their sums over one of the two. */
static uint64_t small_writes(const struct numbers_build *b, const struct syscall_detail *like,
			     bool by_thread)
{
	uint64_t n = 0;

	for (size_t i = 0; i < b->t->details.n; i++) {
		const struct syscall_detail *d = &b->t->details.v[i];

		if (d->key.kind == SYSCALLS_SMALL_WRITE &&
		    (by_thread ? d->key.id == like->key.id : d->key.value == like->key.value))
			n += d->v.count;
	}
	return n;
}

static void put_small_writes(struct numbers_build *b)
{
	const struct syscall_detail *fd = NULL, *thread = NULL;
	uint64_t by_fd = 0, by_thread = 0;

	for (size_t i = 0; i < b->t->details.n; i++) {
		const struct syscall_detail *d = &b->t->details.v[i];
		uint64_t n;

		/* The sum of a key with many parts is that of a large part most likely: small ones
		 * need no look at all others. */
		if (d->key.kind != SYSCALLS_SMALL_WRITE || d->v.count * 64 < by_fd)
			continue;
		n = small_writes(b, d, false);
		if (n > by_fd) {
			by_fd = n;
			fd = d;
		}
		n = small_writes(b, d, true);
		if (n > by_thread) {
			by_thread = n;
			thread = d;
		}
	}
	put_number(b, "small-writes-per-second", (double)by_fd / b->seconds,
		   fd ? fd_subject(b, fd) : NULL);
	put_number(b, "thread-small-writes-per-second", (double)by_thread / b->seconds,
		   thread ? thread_subject(b, thread->key.id) : NULL);
}

static void put_clones(struct numbers_build *b)
{
	static const char *const clones[] = {"clone", "clone3", "fork", "vfork", NULL};
	static const char *const accepts[] = {"accept", "accept4", NULL};
	double cloned = sum_calls(b, clones).succeeded, accepted = sum_calls(b, accepts).succeeded;

	put_number(b, "clones-per-second", cloned / b->seconds, NULL);
	put_number(b, "clones-per-accept", accepted > 0 ? cloned / accepted : NAN, NULL);
}

/* --- locks ------------------------------------------------------------------------------------ */

/* The greatest among Python's own locks, or among all others. */
static const struct syscall_detail *top_lock(const struct numbers_build *b, bool gil)
{
	const struct syscall_detail *top = NULL;

	for (size_t i = 0; i < b->t->details.n; i++) {
		const struct syscall_detail *d = &b->t->details.v[i];

		if (d->key.kind == SYSCALLS_LOCK && (!top || d->v.sum > top->v.sum) &&
		    trace_lock_is_gil(b->locks, d->key.id, d->key.value) == gil)
			top = d;
	}
	return top;
}

static void put_lock(struct numbers_build *b, const char *name, bool gil)
{
	const struct syscall_detail *top = top_lock(b, gil);

	put_number(
		b, name, top ? (double)top->v.sum / 1e6 / b->seconds : 0,
		top ? result_text(b->r, "lock %s of process %s, %llu waits, longest %.1f ms",
				  trace_lock_name(b->locks, b->r, top->key.id, top->key.value, 0),
				  trace_task_number(b->t, b->r, top->key.id),
				  (unsigned long long)top->v.count, (double)top->v.max / 1e6)
		    : NULL);
}

static void put_locks(struct numbers_build *b)
{
	uint64_t waits = 0, races = 0;

	for (size_t i = 0; i < b->t->details.n; i++) {
		const struct syscall_detail *d = &b->t->details.v[i];

		races += d->key.kind == SYSCALLS_LOCK_RACES ? d->v.count : 0;
		waits += d->key.kind == SYSCALLS_LOCK ? d->v.count : 0;
	}
	put_lock(b, "gil-wait-ms-per-second", true);
	put_lock(b, "lock-wait-ms-per-second", false);
	put_number(b, "futex-races-per-second", (double)races / b->seconds, NULL);
	put_number(b, "futex-eagain-percent",
		   waits + races ? 100.0 * (double)races / (double)(waits + races) : NAN, NULL);
}

/* --- failures --------------------------------------------------------------------------------- */

static uint64_t failures_of(const struct numbers_build *b, const struct syscall_row *row)
{
	char buf[SYSCALL_NAME_BYTES];
	uint32_t code = row->key.code;

	if (code != SYSCALLS_FUTEX_IDLE &&
	    !syscall_is_timed_wait(syscall_name(MIN(code / SYSCALLS_NUMBERS, SYSCALL_ABIS - 1U),
						code % SYSCALLS_NUMBERS, buf)))
		return row->errors;
	return row->errors - MIN(row->errors, count_of(b, SYSCALLS_ERROR, code, ETIMEDOUT));
}

static void put_failures(struct numbers_build *b)
{
	const struct syscall_row *worst = NULL;
	double missing = 0, missing_percent = 0;
	const char *missing_call = NULL;

	for (size_t i = 0; i < b->t->rows.n; i++) {
		const struct syscall_row *row = &b->t->rows.v[i];
		double missed = (double)count_of(b, SYSCALLS_ERROR, row->key.code, ENOENT);

		if (missed > missing) {
			missing = missed;
			missing_percent = 100 * missed / (double)row->calls;
			missing_call = trace_call_name(b->r, row->key.code);
		}
		if (failures_of(b, row) * 100 > row->calls * 95 &&
		    (!worst || row->errors > worst->errors))
			worst = row;
	}
	put_number(b, "enoent-per-second", missing / b->seconds, missing_call);
	put_number(b, "enoent-percent", missing_percent, NULL);
	put_number(b, "failing-calls-per-second", worst ? (double)worst->calls / b->seconds : 0,
		   worst ? trace_call_name(b->r, worst->key.code) : NULL);
	put_number(b, "failing-percent",
		   worst ? 100.0 * (double)worst->errors / (double)worst->calls : 0, NULL);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void put_syncs(struct numbers_build *b)
{
	static const char *const syncs[] = {
		"fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync", NULL};
	struct calls_sum sum = sum_calls(b, syncs);

	put_number(b, "syncs-per-second", sum.calls / b->seconds, NULL);
	put_number(b, "sync-ms-per-second", sum.wall_ms / b->seconds, NULL);
}

/* Escapes of the resource manager that allocate, free or map: NV_ESC_RM_ALLOC_MEMORY, RM_FREE,
 * RM_ALLOC, RM_MAP_MEMORY, RM_UNMAP_MEMORY (nv_escape.h of the open kernel modules). */
static void put_gpu(struct numbers_build *b)
{
	static const uint32_t allocating[] = {0x27, 0x29, 0x2b, 0x4e, 0x4f};
	const struct syscall_detail *open = most_of(b, SYSCALLS_GPU_OPEN);
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(allocating); i++)
		n += count_of(b, SYSCALLS_GPU_IOCTL, allocating[i], 0);
	put_number(b, "gpu-memory-ioctls-per-second", (double)n / b->seconds, NULL);
	put_number(b, "gpu-open-ms", open ? (double)open->v.max / 1e6 : 0,
		   open ? result_text(b->r, "process %s",
				      trace_task_number(b->t, b->r, open->key.id))
			: NULL);
}

/* What a healthy server mostly does: waits for events, moves bytes, wakes threads, asks its GPU. */
static void put_shape(struct numbers_build *b)
{
	static const char *const usual[] = {
		"epoll_wait",      "epoll_pwait", "epoll_pwait2", "poll",     "ppoll",
		"select",          "pselect6",    "read",         "pread64",  "readv",
		"write",           "pwrite64",    "writev",       "recvfrom", "recvmsg",
		"sendto",          "sendmsg",     "futex",        "ioctl",    "accept",
		"accept4",         "sendfile",    "recvmmsg",     "sendmmsg", "nanosleep",
		"clock_nanosleep", NULL};
	double all = 0;

	for (size_t i = 0; i < b->t->rows.n; i++)
		all += (double)b->t->rows.v[i].calls;
	put_number(b, "usual-percent", all > 0 ? 100 * sum_calls(b, usual).calls / all : NAN, NULL);
}

void trace_numbers_fill(const struct trace_view *view, struct result *r, struct trace_numbers *ret)
{
	struct numbers_build b = {
		.t = view->table,
		.counts = view->counts,
		.locks = view->locks,
		.r = r,
		.to = ret,
		.seconds = fmax((double)view->table->elapsed_ns / 1e9, SECONDS_LEAST),
	};

	ret->n = 0;
	put_memory(&b);
	put_clones(&b);
	put_most(&b, "yields-per-second", SYSCALLS_YIELD);
	put_locks(&b);
	put_small_writes(&b);
	put_most(&b, "busy-polls-per-second", SYSCALLS_BUSY_POLL);
	put_failures(&b);
	put_syncs(&b);
	put_gpu(&b);
	put_shape(&b);
}
