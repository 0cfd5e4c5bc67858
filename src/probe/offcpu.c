/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/offcpu.h>

#include "iterator.h"
#include "own_frames.h"
#include "points.h"
#include "rings.h"

#include "offcpu.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>
#include <inspect/explain.h>
#include <sys/syscall.h>

enum { DEFAULT_USER_FRAMES = 127, AT_ONCE = 1024, THREADS_MAX = 1 << 20 };

struct offcpu_probe {
	struct offcpu *skeleton;
	struct probe_core core;
	struct probe_rings rings;
	struct own_frames own;
	ARRAY(int) tick_fds;
	int rows_fds[2], rows_now_fd; /* the object's; the first of them is in use */
	bool stopped;
	uint64_t rows_read, totals_read; /* how many had been added by then */
	/* Stacks that came, by id. */
	ARRAY(struct stack_record *) stacks;
	struct hashmap by_id;
	ARRAY(struct offcpu_chain) chains;
	struct hashmap chains_by_id;
	size_t n_seen; /* of the stacks, by offcpu_incomplete */
	ARRAY(struct offcpu_ended) threads;
	/* Room for a batch. */
	struct offcpu_key *keys;
	struct offcpu_row *rows;
	uint32_t *serials;
	struct offcpu_totals *totals;
};

/* --- stacks ----------------------------------------------------------------------------------- */

const struct stack_record *offcpu_stack(const struct offcpu_probe *o, uint64_t id)
{
	uint32_t at, i;

	hashmap_each_candidate(&o->by_id, id, at, i)
		if (o->stacks.v[i]->id == id)
			return o->stacks.v[i];
	return NULL;
}

static const struct offcpu_chain *find_chain(const struct offcpu_probe *o, uint64_t id)
{
	uint32_t at, i;

	hashmap_each_candidate(&o->chains_by_id, id, at, i)
		if (o->chains.v[i].id == id)
			return &o->chains.v[i];
	return NULL;
}

static int keep_chain(struct offcpu_probe *o, const struct probe_message *m)
{
	struct offcpu_chain chain;
	int err;

	memcpy(&chain, m->raw, sizeof(chain));
	if (chain.n > OFFCPU_LINKS || find_chain(o, chain.id))
		return 0;
	err = array_push(&o->chains, chain);
	return err ? err : hashmap_insert(&o->chains_by_id, chain.id, (uint32_t)o->chains.n - 1);
}

/* Bytes that are neither a stack nor a chain are left out. */
static int keep_message(void *ctx, const struct probe_message *m)
{
	struct offcpu_probe *o = ctx;
	struct stack_record head, *kept;
	size_t size_bytes, own;
	int err;

	if (m->raw_bytes < STACK_HEAD_BYTES)
		return 0;
	memcpy(&head, m->raw, STACK_HEAD_BYTES);
	if (head.mark == OFFCPU_CHAIN_MARK && m->raw_bytes >= sizeof(struct offcpu_chain))
		return keep_chain(o, m);
	size_bytes = STACK_HEAD_BYTES + 8 * ((size_t)head.n_kernel + head.n_user);
	if (head.mark != STACK_MARK || size_bytes > m->raw_bytes || head.stop >= UNWIND_STOPS ||
	    head.n_kernel > STACK_KERNEL_FRAMES || offcpu_stack(o, head.id))
		return 0;
	kept = malloc(size_bytes);
	if (!kept)
		return -ENOMEM;
	memcpy(kept, m->raw, size_bytes);
	own = own_frames_count(&o->own, kept->chain, kept->n_kernel);
	kept->n_kernel -= (uint16_t)own;
	memmove(kept->chain, kept->chain + own,
		((size_t)kept->n_kernel + kept->n_user) * sizeof(*kept->chain));
	err = array_push(&o->stacks, kept);
	if (err) {
		free(kept);
		return err;
	}
	return hashmap_insert(&o->by_id, head.id, (uint32_t)o->stacks.n - 1);
}

static bool is_incomplete(const struct stack_record *s)
{
	return s->stop == UNWIND_NEW_MAPPING || s->stop == UNWIND_NO_MAPPING;
}

size_t offcpu_incomplete(struct offcpu_probe *o, const struct stack_record **ret, size_t max)
{
	size_t n = 0;

	for (; o->n_seen < o->stacks.n && n < max; o->n_seen++)
		if (is_incomplete(o->stacks.v[o->n_seen]))
			ret[n++] = o->stacks.v[o->n_seen];
	o->n_seen = o->stacks.n;
	return n;
}

int offcpu_replace_stack(struct offcpu_probe *o, uint64_t id, const struct stack_record *better)
{
	size_t size_bytes = STACK_HEAD_BYTES + 8 * ((size_t)better->n_kernel + better->n_user);
	uint32_t at, i;

	hashmap_each_candidate(&o->by_id, id, at, i) {
		const struct stack_record *s = o->stacks.v[i];
		struct stack_record *copy;

		if (s->id != id)
			continue;
		if (!s->n_user || !better->n_user || s->pid != better->pid ||
		    s->chain[s->n_kernel] != better->chain[better->n_kernel])
			return -ENOENT;
		copy = malloc(size_bytes);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, better, size_bytes);
		copy->id = id;
		free(o->stacks.v[i]);
		o->stacks.v[i] = copy;
		return 0;
	}
	return -ENOENT;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Programs count in the other map from now on: the update returns when none has this one. */
static int swap_rows(struct offcpu_probe *o)
{
	int now = o->rows_fds[1];
	uint32_t zero = 0;

	if (bpf_map_update_elem(o->rows_now_fd, &zero, &now, BPF_ANY) < 0)
		return -errno;
	o->rows_fds[1] = o->rows_fds[0];
	o->rows_fds[0] = now;
	return 0;
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
	uint64_t added = __atomic_load_n(&o->skeleton->bss->rows_added, __ATOMIC_ACQUIRE);
	int more, err = 0;

	if (added == o->rows_read)
		return 0;
	o->rows_read = added;
	more = swap_rows(o);
	if (more < 0)
		return more;
	do {
		more = take_batch(o->rows_fds[1], &batch, first, o->keys, o->rows, &n);
		first = false;
		for (uint32_t i = 0; i < n && more >= 0 && !err; i++) {
			struct offcpu_wait w = {&o->keys[i], &o->rows[i],
						offcpu_stack(o, o->keys[i].stack),
						find_chain(o, o->keys[i].chain)};

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
	int err = probe_rings_read(&o->rings, &o->core, keep_message, o, emit, ctx);

	if (!err)
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
	return probe_rings_fds(&o->rings, v, max);
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

uint64_t offcpu_bucket_low_ns(unsigned bucket)
{
	unsigned log2 = bucket ? (bucket - 1) / 4 : 0, quarter = bucket ? (bucket - 1) % 4 : 0;

	return bucket ? (uint64_t)(4 + quarter) << (log2 + OFFCPU_BUCKET_FIRST_LOG2 - 2) : 0;
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

static void add_losses(const struct offcpu_probe *o, const char *map, uint64_t *sums, size_t n)
{
	size_t per_cpu = n * o->rings.n_possible;
	uint64_t *v = calloc(per_cpu, sizeof(*v));
	uint32_t zero = 0;

	if (v && bpf_map_lookup_elem(probe_core_map(&o->core, map), &zero, v) == 0)
		for (size_t i = 0; i < per_cpu; i++)
			sums[i % n] += v[i];
	free(v);
}

void offcpu_losses(struct offcpu_probe *o, struct offcpu_lost *ret)
{
	uint64_t stacks[2] = {0}, rows[5] = {0};

	_Static_assert(sizeof(struct stack_losses) == sizeof(stacks), "read as words");
	_Static_assert(sizeof(struct offcpu_losses) == sizeof(rows), "read as words");
	add_losses(o, "stacks_lost", stacks, ARRAY_SIZE(stacks));
	add_losses(o, "lost", rows, ARRAY_SIZE(rows));
	probe_rings_side_losses(&o->rings);
	*ret = (struct offcpu_lost){.stacks_unsent = stacks[0],
				    .stacks_full = stacks[1],
				    .rows_full = rows[0],
				    .totals_full = rows[1],
				    .threads_full = rows[2],
				    .loops_full = rows[3],
				    .chains_lost = rows[4],
				    .side_records = o->rings.side_lost};
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
	probe_rings_release(&o->rings);
	probe_core_release(&o->core);
	offcpu__destroy(o->skeleton);
	for (size_t i = 0; i < o->stacks.n; i++)
		free(o->stacks.v[i]);
	array_release(&o->stacks);
	hashmap_release(&o->by_id);
	array_release(&o->chains);
	hashmap_release(&o->chains_by_id);
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

static int choose_programs(struct offcpu *k, const struct offcpu_config *c)
{
	struct bpf_map *const of_probes[] = {k->maps.thread_states, k->maps.__bpf_usdt_specs,
					     k->maps.__bpf_usdt_ip_to_spec_id};
	const struct point_programs points = POINT_PROGRAMS_OF(k->progs);
	bool waits = !c->calls && !c->probe;
	int err = 0;

	bpf_program__set_autoload(k->progs.on_waking, waits);
	bpf_program__set_autoload(k->progs.on_switch, waits);
	bpf_program__set_autoload(k->progs.on_call, c->calls);
	bpf_program__set_autoload(k->progs.on_call_end, c->calls);
	bpf_program__set_autoload(k->progs.on_caller_exit, !waits);
	points_choose(&points, c->probe, (struct probes_setup *)&k->rodata->probe_setup);
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
	struct offcpu *k = o->skeleton = offcpu__open();
	int err;

	if (k) {
		own_frames_find(&o->own);
		*(struct target_setup *)&k->rodata->target_setup = o->core.setup;
		*(struct stack_setup *)&k->rodata->stack_setup = (struct stack_setup){
			.max_user_frames = c->max_stack ? MIN(c->max_stack, UNWIND_MAX_STACK)
							: DEFAULT_USER_FRAMES,
			.with_kernel = c->kernel_stacks,
			.with_user = c->target->rows != NULL,
			.iterator_from_va = o->own.v[OWN_FRAMES_SWITCH_ITERATOR].from_va,
			.iterator_to_va = o->own.v[OWN_FRAMES_SWITCH_ITERATOR].to_va,
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
			.with_calls = c->calls,
			.with_probe = c->probe != NULL,
			.with_loops = c->loops,
			.n_cpus = (uint32_t)libbpf_num_possible_cpus(),
		};
		bpf_program__set_autoload(k->progs.on_tick, c->tick_hz || c->loops);
		make_room(k, c);
		err = choose_programs(k, c);
		if (err)
			return diag_errno(d, err, "preparing BPF programs");
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
	const struct point_programs points = POINT_PROGRAMS_OF(o->skeleton->progs);
	const char *const *programs = c->calls ? of_calls : c->probe ? of_probes : of_waits;
	size_t n = c->calls   ? ARRAY_SIZE(of_calls)
		   : c->probe ? ARRAY_SIZE(of_probes)
			      : ARRAY_SIZE(of_waits);
	int err = probe_core_follow(&o->core, d);

	for (size_t i = 0; i < n && !err; i++)
		err = probe_core_attach(&o->core, programs[i], d);
	return err || !c->probe ? err : points_attach(&o->core, &points, c->probe, h, d);
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
