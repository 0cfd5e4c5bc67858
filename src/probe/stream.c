/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"

#include "stream.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>

/* With more calls than these their own tracepoints cost more to attach than they spare. */
enum { ONE_CALL_MOST = 8, READ_MOST = 16384 };

#define RING_BYTES_LEAST (1u << 20)
#define RING_BYTES (1u << 25)

/* --- the plan --------------------------------------------------------------------------------- */

static int fill_calls(struct syscall_stream *s, const struct syscall_set *only)
{
	int fd = bpf_map__fd(s->skeleton->maps.calls);

	for (unsigned abi = 0; abi < SYSCALL_ABIS; abi++)
		for (uint32_t nr = 0; nr < STREAM_NUMBERS; nr++) {
			uint32_t code = abi * STREAM_NUMBERS + nr;
			char buf[SYSCALL_NAME_BYTES];
			struct stream_call call;

			if (only && !syscall_set_has(only, (enum syscall_abi)abi, nr))
				continue;
			stream_plan((enum syscall_abi)abi,
				    syscall_info_find(syscall_name((enum syscall_abi)abi, nr, buf)),
				    &call);
			call.flags |= STREAM_WANTED;
			if (bpf_map_update_elem(fd, &code, &call, BPF_ANY))
				return -errno;
		}
	return 0;
}

/* --- attaching -------------------------------------------------------------------------------- */

static size_t native_calls(const struct syscall_set *only)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(only->bits[SYSCALL_NATIVE]); i++)
		n += (size_t)__builtin_popcountll(only->bits[SYSCALL_NATIVE][i]);
	return n;
}

static int keep_link(struct syscall_stream *s, struct bpf_link *link)
{
	int err = link ? array_push(&s->core.links, link) : -errno;

	if (err && link)
		bpf_link__destroy(link);
	return err;
}

static int attach_one(struct syscall_stream *s, uint32_t nr)
{
	char buf[SYSCALL_NAME_BYTES], event[64];
	const char *name = syscall_name(SYSCALL_NATIVE, nr, buf);
	int err;

	snprintf(event, sizeof(event), "sys_enter_%s", name);
	err = keep_link(s, bpf_program__attach_tracepoint(s->skeleton->progs.on_one_enter,
							  "syscalls", event));
	if (err)
		return err;
	snprintf(event, sizeof(event), "sys_exit_%s", name);
	return keep_link(s, bpf_program__attach_tracepoint(s->skeleton->progs.on_one_exit,
							   "syscalls", event));
}

/* A few calls have other names there, such as newstat: those are seen by the shared tracepoints. */
static int attach_calls(struct syscall_stream *s, const struct syscall_set *only, struct diag *d)
{
	size_t before = s->core.links.n;
	int err = s->attached == SYSCALL_STREAM_ONE_CALL ? 0 : -ENOENT;

	for (uint32_t nr = 0; nr < SYSCALL_SET_NUMBERS && !err; nr++)
		if (syscall_set_has(only, SYSCALL_NATIVE, nr))
			err = attach_one(s, nr);
	if (!err)
		return 0;
	while (s->core.links.n > before)
		bpf_link__destroy(s->core.links.v[--s->core.links.n]);
	s->attached = SYSCALL_STREAM_ALL_CALLS;
	err = probe_core_attach(&s->core, "on_sys_enter", d);
	return err ? err : probe_core_attach(&s->core, "on_sys_exit", d);
}

static int attach(struct syscall_stream *s, const struct syscall_stream_config *config,
		  struct diag *d)
{
	int err = probe_core_follow(&s->core, d);

	if (!err)
		err = probe_core_attach(&s->core, "on_thread_exit", d);
	if (!err)
		err = attach_calls(s, config->only, d);
	return err ? err : probe_core_targets(&s->core, d);
}

/* --- loading ---------------------------------------------------------------------------------- */

/* A quarter of what memory limits leave, at most. */
static uint32_t ring_bytes(void)
{
	uint64_t left = unwind_maps_memory_left() / 4;
	uint32_t bytes = RING_BYTES;

	while (bytes > RING_BYTES_LEAST && bytes > left)
		bytes /= 2;
	return bytes;
}

static int load(struct syscall_stream *s, const struct syscall_stream_config *config,
		const struct host *h, struct diag *d)
{
	struct stream *k = s->skeleton = stream__open();
	struct stream_setup *setup;
	size_t n;

	if (!k)
		return probe_core_load(&s->core, NULL, h, d);
	/* Calls that only 32-bit code has are not seen by tracepoints of single calls. */
	n = config->only ? native_calls(config->only) : 0;
	s->attached = n && n <= ONE_CALL_MOST && h->tracefs[0] ? SYSCALL_STREAM_ONE_CALL
							       : SYSCALL_STREAM_ALL_CALLS;
	setup = (struct stream_setup *)&k->rodata->setup;
	setup->min_latency_ns = config->min_latency_ns;
	setup->failed_only = config->failed_only;
	setup->with_names = 1;
	setup->with_stack = config->with_stack;
	setup->string_bytes = MIN(config->string_bytes, (uint32_t)SYSCALL_STRING_BYTES_MAX);
	*(struct target_setup *)&k->rodata->target_setup = s->core.setup;
	if (s->attached == SYSCALL_STREAM_ALL_CALLS) {
		bpf_program__set_autoload(k->progs.on_one_enter, false);
		bpf_program__set_autoload(k->progs.on_one_exit, false);
	}
	if (bpf_map__set_max_entries(k->maps.ring, ring_bytes()))
		return diag_errno(d, -errno, "a ring for BPF");
	return probe_core_load(&s->core, k->skeleton, h, d);
}

static int take_record(void *ctx, void *record, size_t n_bytes)
{
	struct syscall_stream *s = ctx;
	uint64_t lost;
	int err;

	if (stream_is_file(record, n_bytes)) {
		s->err = stream_files_add(&s->files, record, n_bytes);
		return s->err;
	}
	err = stream_decode(record, n_bytes, &s->files, &s->names, &s->event, &lost);
	if (!err)
		err = s->fn(s->ctx, &s->event, lost);
	s->n++;
	s->err = err;
	return err ? err : s->n >= READ_MOST ? -EAGAIN : 0;
}

static int open_stream(struct syscall_stream *s, const struct syscall_stream_config *config,
		       const struct host *h, struct diag *d)
{
	int n = libbpf_num_possible_cpus(), err;

	if (n <= 0)
		return diag_errno(d, -ENODEV, "counting the CPUs");
	s->n_possible = (uint32_t)n;
	err = probe_core_init(&s->core, &config->target, false, h, d);
	if (!err)
		err = load(s, config, h, d);
	if (err)
		return err;
	s->core.shared = &s->skeleton->bss->target_shared;
	err = fill_calls(s, config->only);
	if (err)
		return diag_errno(d, err, "telling BPF which calls are wanted");
	s->ring = ring_buffer__new(bpf_map__fd(s->skeleton->maps.ring), take_record, s, NULL);
	if (!s->ring)
		return diag_errno(d, -errno, "mapping BPF's ring");
	return attach(s, config, d);
}

int syscall_stream_new(const struct syscall_stream_config *config, const struct host *h,
		       struct syscall_stream **ret, struct diag *d)
{
	struct syscall_stream *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return diag_errno(d, -ENOMEM, "streaming system calls");
	err = open_stream(s, config, h, d);
	if (err) {
		syscall_stream_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void syscall_stream_free(struct syscall_stream *s)
{
	if (!s)
		return;
	ring_buffer__free(s->ring);
	probe_core_release(&s->core);
	stream__destroy(s->skeleton);
	strbuf_release(&s->names);
	stream_files_release(&s->files);
	free(s);
}

/* --- running ---------------------------------------------------------------------------------- */

int syscall_stream_start(struct syscall_stream *s)
{
	s->skeleton->bss->shared.start_ns = clock_now_ns();
	return probe_core_start(&s->core);
}

/* Runs an iterator to its end; what it has to say goes into the ring. */
static int run_iterator(struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	CLEANUP(closep) int fd = -1;
	char unused[64];
	ssize_t n;
	int err;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? -errno : 0;
	do
		n = err ? 0 : read(fd, unused, sizeof(unused));
	while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		err = -errno;
	bpf_link__destroy(link);
	return err;
}

int syscall_stream_stop(struct syscall_stream *s)
{
	probe_core_stop(&s->core);
	while (s->core.links.n)
		bpf_link__destroy(s->core.links.v[--s->core.links.n]);
	return run_iterator(s->skeleton->progs.in_flight);
}

int syscall_stream_fd(const struct syscall_stream *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

int syscall_stream_read(struct syscall_stream *s, syscall_event_fn *fn, void *ctx)
{
	int n;

	s->fn = fn;
	s->ctx = ctx;
	s->n = s->err = 0;
	n = ring_buffer__consume(s->ring);
	if (s->err)
		return s->err;
	return n < 0 && n != -EAGAIN ? n : s->n;
}

bool syscall_stream_alive(const struct syscall_stream *s)
{
	return probe_core_alive(&s->core);
}

enum syscall_stream_attach syscall_stream_attached(const struct syscall_stream *s)
{
	return s->attached;
}

static int sum_of(const struct syscall_stream *s, uint32_t what, uint64_t *by_cpu, uint64_t *ret)
{
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(s->skeleton->maps.counts), &what, by_cpu))
		return -errno;
	for (uint32_t i = 0; i < s->n_possible; i++)
		sum += by_cpu[i];
	*ret = sum;
	return 0;
}

static uint64_t recursions(const struct syscall_stream *s)
{
	struct bpf_program *p;
	uint64_t sum = 0;

	bpf_object__for_each_program(p, s->skeleton->obj)
	{
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (bpf_program__fd(p) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size))
			sum += info.recursion_misses;
	}
	return sum;
}

int syscall_stream_counts(const struct syscall_stream *s, struct syscall_stream_counts *ret)
{
	struct syscall_stream_counts c = {.recursions = recursions(s)};
	const struct {
		uint32_t what;
		uint64_t *to;
	} wanted[] = {{STREAM_SENT, &c.sent},
		      {STREAM_LOST_RING, &c.lost_ring},
		      {STREAM_LOST_MEMORY, &c.lost_memory},
		      {STREAM_NO_EXIT, &c.no_exit}};
	CLEANUP(freep) uint64_t *by_cpu = calloc(s->n_possible, sizeof(*by_cpu));
	int err = by_cpu ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(wanted) && !err; i++)
		err = sum_of(s, wanted[i].what, by_cpu, wanted[i].to);
	if (!err)
		*ret = c;
	return err;
}

int syscall_stream_notes(const struct syscall_stream *s, note_list *notes)
{
	return probe_core_notes(&s->core, notes);
}
