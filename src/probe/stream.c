/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"

#include "call_points.h"
#include "iterator.h"
#include "kernel_types.h"

#include "stream.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>

enum { READ_MOST = 16384 };

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

static struct probe_call_programs call_programs(const struct syscall_stream *s)
{
	const struct stream *k = s->skeleton;

	return (struct probe_call_programs){
		.object = k->obj,
		.all_enter = k->progs.on_sys_enter,
		.all_exit = k->progs.on_sys_exit,
		.one_enter = k->progs.on_one_enter,
		.one_exit = k->progs.on_one_exit,
		.no_functions = s->no_functions,
	};
}

static int attach(struct syscall_stream *s, const struct syscall_stream_config *config,
		  struct diag *d)
{
	const struct probe_call_programs calls = call_programs(s);
	int err = probe_core_follow(&s->core, d);

	if (!err)
		err = probe_core_attach(&s->core, "on_thread_exit", d);
	if (!err && config->with_stack)
		err = probe_core_attach(&s->core, "on_sleep", d);
	if (!err)
		err = probe_attach_calls(&s->core, &calls, config->only, &s->attached, d);
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
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	struct stream *k = s->skeleton = KERNEL_TYPES_OPEN(stream, &types);
	struct probe_call_programs calls;
	struct stream_setup *setup;

	if (!k)
		return probe_core_load(&s->core, NULL, h, d);
	calls = call_programs(s);
	s->attached = probe_calls_choose(&calls, config->only, h);
	setup = (struct stream_setup *)&k->rodata->setup;
	setup->min_latency_ns = config->min_latency_ns;
	setup->failed_only = config->failed_only;
	setup->with_names = 1;
	setup->with_stack = config->with_stack;
	bpf_program__set_autoload(k->progs.on_sleep, config->with_stack);
	if (config->with_stack)
		own_frames_find(&s->own);
	setup->string_bytes = MIN(config->string_bytes, (uint32_t)SYSCALL_STRING_BYTES_MAX);
	*(struct target_setup *)&k->rodata->target_setup = s->core.setup;
	if (bpf_map__set_max_entries(k->maps.ring, ring_bytes()))
		return diag_errno(d, -errno, "a ring for BPF");
	return probe_core_load(&s->core, k->skeleton, h, d);
}

static int take_record(void *ctx, void *record, size_t n_bytes)
{
	struct syscall_stream *s = ctx;
	uint64_t lost;
	int err;

	switch (stream_record_kind(record, n_bytes)) {
	case STREAM_FILE:
		s->err = stream_files_add(&s->files, record, n_bytes);
		return s->err;
	case STREAM_STACK:
		s->err = stream_stacks_keep(&s->stacks, record, n_bytes);
		return s->err;
	default:
		break;
	}
	err = stream_decode(record, n_bytes, &s->names, &s->event, &lost);
	if (!err)
		stream_stacks_take(&s->stacks, &s->files, &s->own, &s->event);
	if (!err)
		err = s->fn(s->ctx, &s->event, lost);
	s->n++;
	s->err = err;
	return err ? err : s->n >= READ_MOST ? -EAGAIN : 0;
}

static int open_stream(struct syscall_stream *s, const struct syscall_stream_config *config,
		       const struct host *h, struct diag *d)
{
	int err = probe_core_init(&s->core, &config->target, false, h, d);

	if (!err)
		err = load(s, config, h, d);
	if (err && s->attached == SYSCALL_ATTACH_FUNCTION) {
		diag_release(d);
		stream__destroy(s->skeleton);
		s->no_functions = true;
		err = load(s, config, h, d);
	}
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
	stream_stacks_release(&s->stacks);
	free(s);
}

/* --- running ---------------------------------------------------------------------------------- */

int syscall_stream_start(struct syscall_stream *s)
{
	s->skeleton->bss->shared.start_ns = clock_now_ns();
	return probe_core_start(&s->core);
}

int syscall_stream_stop(struct syscall_stream *s)
{
	int err;

	probe_core_stop(&s->core);
	/* What it has to say goes into the ring. Before the detaching, which takes a while. */
	err = probe_iterate(s->skeleton->progs.in_flight, 0, NULL, NULL);
	probe_core_detach(&s->core, 0);
	return err;
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

enum syscall_attach syscall_stream_attached(const struct syscall_stream *s)
{
	return s->attached;
}

int syscall_stream_counts(const struct syscall_stream *s, struct syscall_stream_counts *ret)
{
	const struct probe_sum all[] = {{STREAM_SENT, &ret->sent},
					{STREAM_LOST_RING, &ret->lost_ring},
					{STREAM_LOST_MEMORY, &ret->lost_memory},
					{STREAM_NO_EXIT, &ret->no_exit}};

	ret->recursions = probe_core_missed(&s->core);
	return probe_core_sums(&s->core, "counts", all, ARRAY_SIZE(all));
}

int syscall_stream_notes(const struct syscall_stream *s, note_list *notes)
{
	return probe_core_notes(&s->core, notes);
}
