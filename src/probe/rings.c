/* SPDX-License-Identifier: BSD-2-Clause */
#include "rings.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/cpu_list.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>

#define RING_BYTES_USER (512u << 10)
#define RING_BYTES_ROOT (2u << 20)
#define RINGS_BYTES_ROOT (64u << 20) /* all CPUs together, before they get RING_BYTES_USER */

/* --- opening ---------------------------------------------------------------------------------- */

static struct perf_event_attr output_attr(unsigned ring_bytes)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(a),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW | PROBE_COMMON_FIELDS,
		.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = ring_bytes / 4,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = 1,
	};

	return a;
}

int probe_rings_owner(const struct probe_target *t, unsigned long *ret_flags)
{
	*ret_flags = t->cgroup_fd >= 0 ? PERF_FLAG_PID_CGROUP : 0;
	return t->cgroup_fd >= 0 ? t->cgroup_fd : -1;
}

static int open_slot(struct probe_rings *r, const struct probe_target *t, struct probe_slot *slot,
		     unsigned ring_pages)
{
	struct perf_event_attr a = output_attr(ring_pages * (unsigned)sysconf(_SC_PAGESIZE));
	uint32_t key = (uint32_t)slot->cpu;
	unsigned long flags;
	int err = 0, owner = probe_rings_owner(t, &flags);

	slot->output_fd = perf_open(&a, owner, slot->cpu, flags);
	if (slot->output_fd == -EINVAL) { /* before 6.0 */
		a.read_format = PERF_FORMAT_ID;
		slot->output_fd = perf_open(&a, owner, slot->cpu, flags);
	}
	if (slot->output_fd < 0)
		return slot->output_fd;
	r->counts_lost = a.read_format & PERF_FORMAT_LOST;
	if (ioctl(slot->output_fd, PERF_EVENT_IOC_ID, &slot->id) < 0)
		err = -errno;
	if (!err)
		err = ring_map(&slot->ring, slot->output_fd, ring_pages);
	if (!err && bpf_map_update_elem(r->outputs_fd, &key, &slot->output_fd, BPF_ANY) < 0)
		err = -errno;
	return err;
}

static int list_cpus(struct probe_rings *r, const struct probe_target *t, note_list *notes)
{
	CLEANUP(cpu_list_release) cpu_list online = {0};
	int err = cpu_list_online(&online);
	const int *cpus = t->cpus && t->n_cpus ? t->cpus : online.v;
	size_t n = t->cpus && t->n_cpus ? t->n_cpus : online.n;

	for (size_t i = 0; i < n && !err; i++) {
		struct probe_slot slot = {.cpu = cpus[i], .output_fd = -1};
		char text[64];

		snprintf(text, sizeof(text), "CPU %d is offline: not measured", cpus[i]);
		err = cpu_list_has(&online, cpus[i]) ? array_push(&r->slots, slot)
						     : note_add_once(notes, text);
	}
	return err ? err : r->slots.n ? 0 : -ENODEV;
}

static unsigned default_pages(const struct probe_rings *r, const struct host *h)
{
	unsigned page_bytes = (unsigned)sysconf(_SC_PAGESIZE), bytes = RING_BYTES_USER;

	if (host_has_cap(h, CAP_IPC_LOCK) && r->slots.n <= RINGS_BYTES_ROOT / RING_BYTES_ROOT)
		bytes = RING_BYTES_ROOT;
	return MAX(bytes / page_bytes, 1u);
}

static void close_slots(struct probe_rings *r)
{
	for (size_t i = 0; i < r->slots.n; i++) {
		ring_unmap(&r->slots.v[i].ring);
		if (r->slots.v[i].output_fd >= 0)
			close(r->slots.v[i].output_fd);
		r->slots.v[i].output_fd = -1;
	}
}

/* A descriptor for each CPU, and what the caller opens beside it. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	/* The limit as it was is enough for most; what is not is told when it fails. */
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
}

static int open_slots(struct probe_rings *r, const struct probe_target *t, unsigned *pages)
{
	for (;;) {
		int err = 0;

		for (size_t i = 0; i < r->slots.n && !err; i++)
			err = open_slot(r, t, &r->slots.v[i], *pages);
		if ((err != -EPERM && err != -ENOMEM) || *pages <= 2)
			return err;
		close_slots(r);
		*pages /= 2;
	}
}

int probe_rings_open(struct probe_rings *r, const struct probe_core *c, unsigned ring_pages,
		     const struct host *h, note_list *notes, struct diag *d)
{
	unsigned page_bytes = (unsigned)sysconf(_SC_PAGESIZE), wanted, pages;
	int err;

	r->outputs_fd = probe_core_map(c, "output");
	r->failed_fd = probe_core_map(c, "failed");
	r->n_possible = (uint32_t)MAX(libbpf_num_possible_cpus(), 1);
	r->failed = calloc(r->n_possible, sizeof(*r->failed));
	err = r->failed ? list_cpus(r, c->target, notes) : -ENOMEM;
	if (err)
		return diag_errno(d, err, "listing the CPUs");
	raise_descriptor_limit();
	wanted = pages = ring_pages ? ring_pages : default_pages(r, h);
	err = open_slots(r, c->target, &pages);
	if (err)
		return diag_errno(d, err, "opening the rings for BPF");
	if (pages < wanted &&
	    note_add(notes,
		     "ring made smaller: %u KiB per CPU instead of %u (perf_event_mlock_kb, "
		     "ulimit -l, or memory)",
		     pages * (page_bytes / 1024), wanted * (page_bytes / 1024)))
		return diag_errno(d, -ENOMEM, "opening the rings for BPF");
	return 0;
}

void probe_rings_release(struct probe_rings *r)
{
	close_slots(r);
	array_release(&r->slots);
	free(r->failed);
	*r = (struct probe_rings){0};
}

size_t probe_rings_fds(const struct probe_rings *r, struct pollfd *v, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < r->slots.n && n < max; i++)
		v[n++] = (struct pollfd){.fd = r->slots.v[i].output_fd, .events = POLLIN};
	return n;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* MMAP, MMAP2, COMM, FORK and EXIT begin with a pid; FORK and EXIT have the tid third. */
struct side_record {
	struct perf_event_header header;
	uint32_t pid, second, tid;
};

static bool is_about_process(uint32_t type)
{
	return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2 || type == PERF_RECORD_COMM ||
	       type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT;
}

struct reading {
	struct probe_core *core;
	probe_message_fn *message;
	void *message_ctx;
	record_fn *emit;
	void *ctx;
	bool changed;
};

static int pass_side_record(struct reading *r, const struct perf_event_header *h, size_t size_bytes)
{
	struct side_record side;
	int err = 0;

	if (size_bytes < sizeof(side))
		return 0;
	memcpy(&side, h, sizeof(side));
	if (!probe_wants(r->core, (pid_t)side.pid))
		return 0;
	if (h->type == PERF_RECORD_MMAP2 && r->core->maps) {
		err = unwind_maps_changed(r->core->maps, (pid_t)side.pid);
		r->changed = true;
	}
	if (!err && h->type == PERF_RECORD_EXIT && side.tid == side.pid &&
	    r->core->setup.filter == TARGET_PROCESSES)
		err = array_push(&r->core->ended, (pid_t)side.pid);
	return err ? err : r->emit(r->ctx, h, size_bytes);
}

/* A sample of the event that BPF writes to: IDENTIFIER, TID, TIME, CPU, RAW. */
struct output_record {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint32_t raw_bytes;
} __attribute__((packed));

static int pass_message(struct reading *r, const struct perf_event_header *h, size_t size_bytes)
{
	struct output_record out;

	if (size_bytes < sizeof(out))
		return 0;
	memcpy(&out, h, sizeof(out));
	if (out.raw_bytes > size_bytes - sizeof(out))
		out.raw_bytes = 0; /* another event's sample: the receiver knows its layout */
	return r->message(r->message_ctx, &(struct probe_message){
						  .raw = (const uint8_t *)h + sizeof(out),
						  .raw_bytes = out.raw_bytes,
						  .time_ns = out.time_ns,
						  .cpu = out.cpu,
						  .record = h,
						  .id = out.id,
					  });
}

static int pass_record(void *ctx, const struct perf_event_header *h, size_t size_bytes)
{
	struct reading *r = ctx;

	if (h->type == PERF_RECORD_SAMPLE)
		return pass_message(r, h, size_bytes);
	if (is_about_process(h->type))
		return pass_side_record(r, h, size_bytes);
	if (h->type == PERF_RECORD_LOST) /* anything of anybody: told at the end */
		return 0;
	return r->emit(r->ctx, h, size_bytes);
}

int probe_rings_read(struct probe_rings *r, struct probe_core *c, probe_message_fn *message,
		     void *message_ctx, record_fn *emit, void *ctx)
{
	struct reading reading = {.core = c,
				  .message = message,
				  .message_ctx = message_ctx,
				  .emit = emit,
				  .ctx = ctx};

	for (size_t i = 0; i < r->slots.n; i++) {
		int err = ring_read(&r->slots.v[i].ring, pass_record, &reading);

		if (err)
			return err;
	}
	if (reading.changed)
		unwind_maps_wake(c->maps);
	return 0;
}

/* --- losses ----------------------------------------------------------------------------------- */

static int emit_lost(uint64_t id, uint32_t cpu, uint64_t n, record_fn *emit, void *ctx)
{
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
		uint32_t pid, tid; /* the trailer: TID, TIME, CPU, IDENTIFIER */
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t identifier;
	} record = {
		.header = {.type = PERF_RECORD_LOST, .size = sizeof(record)},
		.id = id,
		.lost = n,
		.cpu = cpu,
		.identifier = id,
	};

	return emit(ctx, &record.header, sizeof(record));
}

/* What the program could not send, by slot; false: not known. */
static bool read_failed(struct probe_rings *r)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(r->failed_fd, &zero, r->failed) == 0;
}

static uint64_t failed_of(const struct probe_rings *r, const struct probe_slot *slot)
{
	return (uint32_t)slot->cpu < r->n_possible ? r->failed[slot->cpu] : 0;
}

int probe_rings_losses(struct probe_rings *r, uint64_t id, record_fn *emit, void *ctx)
{
	int err = 0;

	if (!read_failed(r))
		return 0;
	for (size_t i = 0; i < r->slots.n && !err; i++) {
		struct probe_slot *slot = &r->slots.v[i];
		uint64_t failed = failed_of(r, slot);

		if (failed <= slot->lost_told)
			continue;
		err = emit_lost(id, (uint32_t)slot->cpu, failed - slot->lost_told, emit, ctx);
		slot->lost_told = failed;
	}
	return err;
}

/* All that a ring did not take, as the kernel counts it. */
static uint64_t slot_lost(const struct probe_rings *r, const struct probe_slot *slot)
{
	struct {
		uint64_t value, id, lost; /* by output_attr's read_format */
	} v = {0};

	if (r->counts_lost && read(slot->output_fd, &v, sizeof(v)) != (ssize_t)sizeof(v))
		v.lost = 0;
	return MAX(v.lost, slot->ring.lost) + slot->ring.broken;
}

void probe_rings_side_losses(struct probe_rings *r)
{
	bool known = read_failed(r);

	for (size_t i = 0; i < r->slots.n; i++) {
		uint64_t lost = slot_lost(r, &r->slots.v[i]);
		uint64_t own = known ? failed_of(r, &r->slots.v[i]) : lost;

		r->side_lost += lost - MIN(lost, own);
	}
}
