/* SPDX-License-Identifier: BSD-2-Clause */
#include "offcpu_impl.h"

#include "kernel_types.h"
#include "points.h"

#include "offcpu.skel.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>
#include <inspect/explain.h>
#include <poll.h>
#include <sys/syscall.h>

enum { DEFAULT_USER_FRAMES = 127, AT_ONCE = 1024, THREADS_MAX = 1 << 20 };

/* --- stacks ----------------------------------------------------------------------------------- */

const struct stack_record *offcpu_stack(const struct offcpu_probe *o, uint64_t id)
{
	return stack_store_find(&o->stacks, id);
}

size_t offcpu_incomplete(struct offcpu_probe *o, const struct stack_record **ret, size_t max)
{
	return stack_store_incomplete(&o->stacks, ret, max);
}

int offcpu_replace_stack(struct offcpu_probe *o, uint64_t id, const struct stack_record *better)
{
	return stack_store_replace(&o->stacks, id, better);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Programs count in the other map from now on: the update returns when none has this one. 1: there
 * is something in this one; 0: nothing has been added. Before the rings are read, so that the
 * stacks that rows speak of have all come. */
static int swap_rows(struct offcpu_probe *o)
{
	uint64_t added = __atomic_load_n(&o->skeleton->bss->rows_added, __ATOMIC_ACQUIRE);
	int now = o->rows_fds[1];
	uint32_t zero = 0;

	if (added == o->rows_read)
		return 0;
	o->rows_read = added;
	if (bpf_map_update_elem(o->rows_now_fd, &zero, &now, BPF_ANY) < 0)
		return -errno;
	o->rows_fds[1] = o->rows_fds[0];
	o->rows_fds[0] = now;
	return 1;
}

/* Up to AT_ONCE elements out of a map. 1: there may be more. */
static int take_batch(int fd, uint32_t *batch, bool first, void *keys, void *values,
		      uint32_t *ret_n)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	uint32_t n = AT_ONCE;
	int err = bpf_map_lookup_and_delete_batch(fd, first ? NULL : batch, batch, keys, values, &n,
						  &options);

	*ret_n = n;
	if (err < 0 && errno != ENOENT)
		return -errno;
	return err == 0;
}

static int read_rows(struct offcpu_probe *o, offcpu_wait_fn *wait, void *ctx)
{
	uint32_t batch, n;
	bool first = true;
	int more, err = 0;

	do {
		more = take_batch(o->rows_fds[1], &batch, first, o->keys, o->rows, &n);
		first = false;
		for (uint32_t i = 0; i < n && more >= 0 && !err; i++) {
			struct offcpu_wait w = {&o->keys[i], &o->rows[i],
						offcpu_stack(o, o->keys[i].stack),
						stack_store_chain(&o->stacks, o->keys[i].chain)};

			err = wait(ctx, &w);
		}
	} while (more > 0 && !err);
	return err ? err : more;
}

static int read_totals(struct offcpu_probe *o)
{
	int fd = probe_core_map(&o->core, "totals"), more, err = 0;
	uint64_t added = __atomic_load_n(&o->skeleton->bss->totals_added, __ATOMIC_ACQUIRE);
	uint32_t batch, n;
	bool first = true;

	if (added == o->totals_read)
		return 0;
	o->totals_read = added;
	do {
		more = take_batch(fd, &batch, first, o->serials, o->totals, &n);
		first = false;
		for (uint32_t i = 0; i < n && more >= 0 && !err && o->threads.n < THREADS_MAX; i++)
			err = array_push(&o->threads,
					 (struct offcpu_ended){.totals = o->totals[i],
							       .serial = o->serials[i]});
	} while (more > 0 && !err);
	return err ? err : more;
}

int offcpu_read(struct offcpu_probe *o, record_fn *emit, offcpu_wait_fn *wait, void *ctx,
		struct diag *d)
{
	/* Before the rings: whoever has ended by now has written his last. */
	bool alive = probe_core_alive(&o->core);
	int swapped = swap_rows(o);
	int err = swapped < 0 ? swapped
			      : probe_rings_read(&o->rings, &o->core, stack_store_keep, &o->stacks,
						 emit, ctx);

	if (!err && swapped)
		err = read_rows(o, wait, ctx);
	if (!err)
		err = read_totals(o);
	if (err < 0)
		return diag_errno(d, err, "reading waits");
	probe_forget_ended(&o->core);
	return alive;
}

size_t offcpu_fds(const struct offcpu_probe *o, struct pollfd *v, size_t max)
{
	size_t n = probe_rings_fds(&o->rings, v, max);

	if (o->gpu_events.ring && n < max)
		v[n++] = (struct pollfd){.fd = gpu_events_fd(&o->gpu_events), .events = POLLIN};
	return n;
}

int offcpu_gpu_call(struct offcpu_probe *o, int32_t number, struct gpu_key *ret)
{
	return gpu_keys_find(&o->gpu_keys, &o->core, (uint32_t)MAX(number, 0), ret);
}

int offcpu_gpu_events(struct offcpu_probe *o, gpu_event_fn *fn, void *ctx)
{
	return gpu_events_read(&o->gpu_events, fn, ctx);
}

int offcpu_gpu_losses(struct offcpu_probe *o, struct gpu_losses *ret)
{
	const void *shared = &o->skeleton->bss->gpu_shared;

	return gpu_watch_losses(&o->core, shared, ret);
}

int offcpu_ids(const struct offcpu_probe *o, int (*add)(void *ctx, uint64_t id), void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < o->rings.slots.n && !err; i++)
		err = add(ctx, o->rings.slots.v[i].id);
	return err;
}

const struct offcpu_ended *offcpu_threads(const struct offcpu_probe *o, size_t *ret_n)
{
	*ret_n = o->threads.n;
	return o->threads.v;
}

/* --- start and end ---------------------------------------------------------------------------- */

static int add_thread(void *ctx, const void *element)
{
	struct offcpu_probe *o = ctx;

	return array_push(&o->threads, *(const struct offcpu_ended *)element);
}

static int iterate(struct offcpu_probe *o, const struct bpf_program *program)
{
	return probe_iterate(program, sizeof(struct offcpu_ended), add_thread, o);
}

int offcpu_start(struct offcpu_probe *o, struct diag *d)
{
	int err = probe_core_start(&o->core);

	if (!err)
		err = iterate(o, o->skeleton->progs.begin);
	if (!err && o->begin_gpu)
		err = iterate(o, o->begin_gpu);
	return err ? diag_errno(d, err, "starting to watch threads") : 0;
}

int offcpu_stop(struct offcpu_probe *o, struct diag *d)
{
	int err;

	if (o->stopped)
		return 0;
	o->stopped = true;
	probe_core_stop(&o->core);
	err = iterate(o, o->skeleton->progs.end);
	return err ? diag_errno(d, err, "reading what threads wait for") : 0;
}

int offcpu_loop_next(const struct offcpu_probe *o, uint32_t *serial, struct offcpu_loop *ret)
{
	int fd = bpf_map__fd(o->skeleton->maps.loops);
	uint32_t next;

	/* Serials count up from 1. */
	if (bpf_map_get_next_key(fd, *serial ? serial : NULL, &next) < 0 ||
	    bpf_map_lookup_elem(fd, &next, ret) < 0)
		return -errno;
	*serial = next;
	return 0;
}

int offcpu_notes(const struct offcpu_probe *o, note_list *notes)
{
	return probe_core_notes(&o->core, notes);
}

/* --- making ----------------------------------------------------------------------------------- */

void offcpu_free(struct offcpu_probe *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->tick_fds.n; i++)
		close(o->tick_fds.v[i]);
	array_release(&o->tick_fds);
	gpu_events_release(&o->gpu_events);
	array_release(&o->gpu_keys.v);
	probe_rings_release(&o->rings);
	probe_core_release(&o->core);
	offcpu__destroy(o->skeleton);
	stack_store_release(&o->stacks);
	array_release(&o->threads);
	free(o->keys);
	free(o->rows);
	free(o->serials);
	free(o->totals);
	free(o);
}

/* sched_switch tells the state that prev had: since 5.18, as the fourth argument behind the
 * tracepoint's own. */
static bool switch_tells_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *t = NULL;
	int id = btf ? btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) : -1;
	bool tells;

	if (id > 0)
		t = btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
	if (t && btf_is_ptr(t))
		t = btf__type_by_id(btf, t->type);
	tells = t && btf_is_func_proto(t) && btf_vlen(t) >= 5;
	btf__free(btf);
	return tells;
}

/* NULL: none. */
static struct bpf_program *choose_begin_gpu(struct offcpu *k, const struct offcpu_config *c,
					    const struct host *h)
{
	bool reads = gpu_watch_reads_others(h);

	bpf_program__set_autoload(k->progs.begin_gpu, c->gpu && !reads);
	bpf_program__set_autoload(k->progs.begin_gpu_reading, c->gpu && reads);
	return !c->gpu ? NULL : reads ? k->progs.begin_gpu_reading : k->progs.begin_gpu;
}

/* Maps of calls of GPU drivers, of which waits need a few. */
static void choose_gpu_maps(struct offcpu *k, const struct offcpu_config *c)
{
	const struct bpf_map *const of_waits[] = {k->maps.gpu_devices, k->maps.gpu_layouts,
						  k->maps.gpu_keys,    k->maps.gpu_counts,
						  k->maps.gpu_numbers, k->maps.gpu_wait_calls};
	struct bpf_map *map;

	bpf_object__for_each_map(map, k->obj)
	{
		bool wanted = c->gpu && map != k->maps.gpu_wait_calls;

		for (size_t i = 0; i < ARRAY_SIZE(of_waits) && c->gpu_waits; i++)
			wanted |= map == of_waits[i];
		if (str_starts(bpf_map__name(map), "gpu_"))
			bpf_map__set_autocreate(map, wanted);
	}
}

static int choose_programs(struct offcpu *k, const struct offcpu_config *c)
{
	struct bpf_map *const of_probes[] = {k->maps.thread_states, k->maps.__bpf_usdt_specs,
					     k->maps.__bpf_usdt_ip_to_spec_id};
	struct point_programs points = POINT_PROGRAMS_OF(k->progs);
	bool waits = !c->calls && !c->probe && !c->gpu;
	int err = 0;

	bpf_program__set_autoload(k->progs.on_waking, waits);
	bpf_program__set_autoload(k->progs.on_switch, waits);
	bpf_program__set_autoload(k->progs.on_call, c->calls);
	bpf_program__set_autoload(k->progs.on_call_end, c->calls);
	bpf_program__set_autoload(k->progs.on_gpu_call, c->gpu);
	bpf_program__set_autoload(k->progs.on_gpu_call_end, c->gpu);
	bpf_program__set_autoload(k->progs.on_caller_exit, !waits);
	choose_gpu_maps(k, c);
	points_choose(&points, c->probe, NULL, (struct probes_setup *)&k->rodata->probe_setup);
	if (!waits)
		err = bpf_map__set_max_entries(k->maps.met_files, 1);
	for (size_t i = 0; i < ARRAY_SIZE(of_probes) && !c->probe && !err; i++)
		err = bpf_map__set_max_entries(of_probes[i], 1);
	return err;
}

static void fill_calls(const struct syscall_set *only, struct offcpu_calls *ret)
{
	uint64_t *to = (uint64_t *)ret->wanted;
	char buf[SYSCALL_NAME_BYTES];

	for (unsigned abi = 0; abi < SYSCALL_ABIS; abi++, to += OFFCPU_CALL_CODES / 64 / 4) {
		if (only)
			memcpy(to, only->bits[abi], sizeof(only->bits[abi]));
		else
			memset(to, 0xff, OFFCPU_CALL_CODES / 8 / 4);
	}
	for (uint32_t nr = 0; nr < OFFCPU_CALL_CODES / 4; nr++) {
		const struct syscall_info *info =
			syscall_info_find(syscall_name(SYSCALL_NATIVE, nr, buf));

		if (info && syscall_moves_bytes(info))
			ret->moves_bytes[nr / 64] |= 1ULL << nr % 64;
	}
	ret->execve = (uint32_t)SYS_execve;
	ret->rt_sigreturn = (uint32_t)SYS_rt_sigreturn;
}

static void make_room(struct offcpu *k, const struct offcpu_config *c)
{
	const struct offcpu_room *room = &c->room;
	const struct {
		struct bpf_map *map;
		uint32_t n;
	} all[] = {
		{k->maps.rows_even, room->rows},     {k->maps.rows_odd, room->rows},
		{k->maps.stacks_sent, room->stacks}, {k->maps.chains_sent, room->stacks},
		{k->maps.totals, room->totals},      {k->maps.loops, c->loops ? room->loops : 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].n)
			bpf_map__set_max_entries(all[i].map, all[i].n);
	if (!c->chains)
		bpf_map__set_max_entries(k->maps.chains_sent, 1);
}

static int load(struct offcpu_probe *o, const struct offcpu_config *c, const struct host *h,
		struct diag *d)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	struct offcpu *k = o->skeleton = KERNEL_TYPES_OPEN(offcpu, &types);
	int err;

	if (k) {
		own_frames_find(&o->stacks.own);
		*(struct target_setup *)&k->rodata->target_setup = o->core.setup;
		*(struct stack_setup *)&k->rodata->stack_setup = (struct stack_setup){
			.max_user_frames = c->max_stack ? MIN(c->max_stack, UNWIND_MAX_STACK)
							: DEFAULT_USER_FRAMES,
			.with_kernel = c->kernel_stacks,
			.with_user = c->target->rows != NULL,
			.iterator_from_va = o->stacks.own.v[OWN_FRAMES_SWITCH_ITERATOR].from_va,
			.iterator_to_va = o->stacks.own.v[OWN_FRAMES_SWITCH_ITERATOR].to_va,
		};
		*(struct offcpu_setup *)&k->rodata->setup = (struct offcpu_setup){
			.min_wait_ns = c->min_wait_ns,
			.max_wait_ns = c->max_wait_ns,
			.with_stacks = c->kernel_stacks || c->target->rows,
			.with_kthreads = c->kthreads,
			.with_wakers = c->wakers,
			.has_state_argument = switch_tells_state(),
			.with_ticks = c->tick_hz != 0,
			.with_chains = c->chains,
			.with_calls = c->calls || c->gpu,
			.with_probe = c->probe != NULL,
			.with_loops = c->loops,
			.with_gpus = c->gpu_waits != NULL,
			.n_cpus = (uint32_t)libbpf_num_possible_cpus(),
		};
		bpf_program__set_autoload(k->progs.on_tick, c->tick_hz || c->loops);
		make_room(k, c);
		o->begin_gpu = choose_begin_gpu(k, c, h);
		err = choose_programs(k, c);
		if (err)
			return diag_errno(d, err, "preparing BPF programs");
		if (c->gpu)
			gpu_watch_setup(0, c->gpu_events,
					(struct gpu_setup *)&k->rodata->gpu_setup);
		if (c->calls)
			fill_calls(c->only, (struct offcpu_calls *)&k->rodata->calls);
		memcpy((void *)k->rodata->syscall_argument, c->arguments, sizeof(c->arguments));
	}
	err = probe_core_load(&o->core, k ? k->skeleton : NULL, h, d);
	if (err)
		return err;
	o->core.shared = &k->bss->target_shared;
	o->rows_fds[0] = bpf_map__fd(k->maps.rows_even);
	o->rows_fds[1] = bpf_map__fd(k->maps.rows_odd);
	o->rows_now_fd = bpf_map__fd(k->maps.rows_now);
	return 0;
}

static int attach(struct offcpu_probe *o, const struct offcpu_config *c, const struct host *h,
		  struct diag *d)
{
	static const char *const of_waits[] = {"on_birth", "on_start", "on_waking", "on_switch"};
	static const char *const of_calls[] = {"on_birth", "on_start", "on_caller_exit",
					       "on_call_end", "on_call"};
	static const char *const of_probes[] = {"on_birth", "on_start", "on_caller_exit"};
	static const char *const of_gpu[] = {"on_birth", "on_start", "on_caller_exit",
					     "on_gpu_call_end", "on_gpu_call"};
	const struct point_programs points = POINT_PROGRAMS_OF(o->skeleton->progs);
	const char *const *programs = c->calls   ? of_calls
				      : c->gpu   ? of_gpu
				      : c->probe ? of_probes
						 : of_waits;
	size_t n = c->calls   ? ARRAY_SIZE(of_calls)
		   : c->gpu   ? ARRAY_SIZE(of_gpu)
		   : c->probe ? ARRAY_SIZE(of_probes)
			      : ARRAY_SIZE(of_waits);
	int err = probe_core_follow(&o->core, d);

	for (size_t i = 0; i < n && !err; i++)
		err = probe_core_attach(&o->core, programs[i], d);
	return err || !c->probe ? err : points_attach(&o->core, &points, c->probe, h, d);
}

static int fill_gpu(struct offcpu_probe *o, const struct offcpu_config *c, struct diag *d)
{
	int err = gpu_watch_fill(&o->core, c->gpu ? c->gpu : c->gpu_waits);

	if (err)
		return diag_errno(d, err, "telling BPF which devices are meant");
	err = c->gpu_events ? gpu_events_open(&o->gpu_events, &o->core) : 0;
	return err ? diag_errno(d, err, "mapping BPF's ring") : 0;
}

/* cpu-clock, whose interrupts do not come while a switch is looked at, as those of a PMU would. */
static int open_ticks(struct offcpu_probe *o, uint64_t hz, struct diag *d)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(a),
		.freq = 1,
		.sample_freq = hz,
		.exclude_idle = 1,
	};
	int err = 0;

	for (size_t i = 0; i < o->rings.slots.n && !err; i++) {
		int fd = perf_open(&a, -1, o->rings.slots.v[i].cpu, 0);

		err = fd < 0 ? fd : array_push(&o->tick_fds, fd);
		if (!err)
			err = probe_core_attach_event(&o->core, "on_tick", fd);
	}
	return err ? diag_errno(d, err, "opening 'cpu-clock' for BPF") : 0;
}

int offcpu_new(const struct offcpu_config *c, const struct host *h, note_list *notes,
	       struct offcpu_probe **ret, struct diag *d)
{
	struct offcpu_probe *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return diag_errno(d, -ENOMEM, "preparing to watch threads");
	o->keys = calloc(AT_ONCE, sizeof(*o->keys));
	o->rows = calloc(AT_ONCE, sizeof(*o->rows));
	o->serials = calloc(AT_ONCE, sizeof(*o->serials));
	o->totals = calloc(AT_ONCE, sizeof(*o->totals));
	err = o->keys && o->rows && o->serials && o->totals ? 0 : -ENOMEM;
	if (err)
		diag_errno(d, err, "preparing to watch threads");
	if (!err)
		err = probe_core_init(&o->core, c->target, false, h, d);
	if (!err)
		err = load(o, c, h, d);
	if (!err)
		err = probe_rings_open(&o->rings, &o->core, c->ring_pages, h, notes, d);
	if (!err)
		err = c->gpu || c->gpu_waits ? fill_gpu(o, c, d) : 0;
	if (!err)
		err = attach(o, c, h, d);
	if (!err && (c->tick_hz || c->loops))
		err = open_ticks(o, c->tick_hz ? c->tick_hz : NSEC_PER_SEC / OFFCPU_LOOP_TICK_NS,
				 d);
	if (!err)
		err = probe_core_targets(&o->core, d);
	if (err) {
		offcpu_free(o);
		return err;
	}
	*ret = o;
	return 0;
}
