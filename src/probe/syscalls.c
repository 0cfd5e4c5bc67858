/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening, loading and attaching the program that adds up system calls. */
#include "syscalls.h"

#include "call_points.h"
#include "iterator.h"
#include "kernel_types.h"

#include "syscalls.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>

/* --- what is looked at in which call ---------------------------------------------------------- */

static uint16_t traits_by_arguments(const struct syscall_info *info)
{
	uint16_t traits = 0;

	if (info->args[0] == ARG_FD)
		traits |= SYSCALLS_FD_ARG0;
	if (info->args[4] == ARG_FD)
		traits |= SYSCALLS_FD_ARG4;
	if (info->result == ARG_FD)
		traits |= SYSCALLS_FD_RESULT;
	if (syscall_moves_bytes(info))
		traits |= SYSCALLS_BYTES;
	if (info->classes & SYSCALL_WAITS)
		traits |= SYSCALLS_IS_WAIT;
	return traits;
}

static uint16_t traits_of(const char *name)
{
	static const struct {
		const char *name;
		uint16_t traits;
	} special[] = {
		{"write", SYSCALLS_WRITES},
		{"pwrite64", SYSCALLS_WRITES},
		{"writev", SYSCALLS_WRITES},
		{"pwritev", SYSCALLS_WRITES},
		{"pwritev2", SYSCALLS_WRITES},
		{"sendto", SYSCALLS_WRITES},
		{"sendmsg", SYSCALLS_WRITES},
		{"mmap", SYSCALLS_MAPS},
		{"munmap", SYSCALLS_UNMAPS},
		{"sched_yield", SYSCALLS_YIELDS},
		{"epoll_wait", SYSCALLS_EPOLL},
		{"epoll_pwait", SYSCALLS_EPOLL},
		{"futex", SYSCALLS_FUTEX},
		{"ioctl", SYSCALLS_IOCTL},
		{"rt_sigreturn", SYSCALLS_NO_RESULT},
		{"exit", SYSCALLS_NO_RETURN},
		{"exit_group", SYSCALLS_NO_RETURN},
	};
	const struct syscall_info *info = syscall_info_find(name);
	uint16_t traits = info ? traits_by_arguments(info) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (str_eq(special[i].name, name))
			traits |= special[i].traits;
	return traits;
}

static void fill_setup(struct syscall_counts *c, const struct syscall_counts_config *config)
{
	char buf[SYSCALL_NAME_BYTES];

	c->setup.by = config->by;
	c->setup.own_pid = (uint32_t)getpid();
	c->setup.of_bytes = config->of_bytes;
	c->setup.details = config->details;
	c->setup.with_stacks = config->by & SYSCALLS_BY_LOCK && config->target.rows;
	for (uint32_t nr = 0; nr < SYSCALLS_NUMBERS; nr++)
		c->setup.traits[nr] = traits_of(syscall_name(SYSCALL_NATIVE, nr, buf));
	if (!config->only)
		return;
	c->setup.chosen_only = 1;
	for (unsigned abi = 0; abi < SYSCALL_ABIS; abi++)
		memcpy(&c->setup.wanted[abi * SYSCALLS_NUMBERS / 64], config->only->bits[abi],
		       sizeof(config->only->bits[abi]));
}

/* --- attaching -------------------------------------------------------------------------------- */

static struct probe_call_programs call_programs(const struct syscall_counts *c)
{
	const struct syscalls *k = c->skeleton;

	return (struct probe_call_programs){
		.object = k->obj,
		.all_enter = k->progs.on_sys_enter,
		.all_exit = k->progs.on_sys_exit,
		.one_enter = k->progs.on_one_enter,
		.one_exit = k->progs.on_one_exit,
		.no_functions = c->no_functions,
	};
}

/* Those that watch threads first: none is born unseen, then none is marked twice. */
static int attach(struct syscall_counts *c, const struct syscall_counts_config *config,
		  struct diag *d)
{
	static const char *const programs[] = {"state_on_fork", "state_on_exec", "state_on_exit"};
	const struct probe_call_programs calls = call_programs(c);
	int err = probe_core_follow(&c->core, d);

	for (size_t i = 0; i < ARRAY_SIZE(programs) && !err; i++)
		err = probe_core_attach(&c->core, programs[i], d);
	if (!err && config->by & SYSCALLS_BY_LOCK)
		err = probe_core_attach(&c->core, "on_futex_wake", d);
	if (!err)
		err = probe_attach_calls(&c->core, &calls, config->only, &c->attached, d);
	if (!err)
		err = probe_core_targets(&c->core, d);
	if (err)
		return err;
	err = probe_iterate(c->skeleton->progs.mark, 0, NULL, NULL);
	return diag_errno(d, err, "marking threads with BPF");
}

/* --- loading ---------------------------------------------------------------------------------- */

/* They are made ahead, 2 KiB each: 38 MiB, a quarter of it where a cgroup leaves little. */
static uint32_t keyed_rows(const struct syscall_counts_config *config)
{
	enum { KEYS_MOST = 16384, MEMORY_FOR_MOST = 512 << 20 };

	if (config->by == SYSCALLS_BY_CALL)
		return 1;
	return unwind_maps_memory_left() < MEMORY_FOR_MOST ? KEYS_MOST / 4 : KEYS_MOST;
}

/* What unwinding needs, where nothing is unwound: a map may not have no room at all. */
static int shrink_maps(struct syscall_counts *c)
{
	struct syscalls *k = c->skeleton;
	struct bpf_map *const all[] = {k->maps.stacks_sent,  k->maps.kept_stacks,
				       k->maps.unwind_rules, k->maps.unwind_processes,
				       k->maps.moves,        k->maps.all_moves};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all) && !c->setup.with_stacks && !err; i++)
		err = bpf_map__set_max_entries(all[i], 1);
	if (c->setup.with_stacks)
		err = bpf_map__set_max_entries(k->maps.stacks_sent, SYSCALLS_STACKS_MAX);
	return err;
}

static int make_ahead(struct syscalls *k)
{
	int err = bpf_map__set_map_flags(k->maps.files, 0);

	return err ? err : bpf_map__set_map_flags(k->maps.ended_names, 0);
}

static int load(struct syscall_counts *c, const struct syscall_counts_config *config,
		const struct host *h, struct diag *d)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	struct syscalls *k = c->skeleton = KERNEL_TYPES_OPEN(syscalls, &types);
	struct probe_call_programs calls;
	uint32_t n_rows;

	if (!k)
		return probe_core_load(&c->core, NULL, h, d);
	calls = call_programs(c);
	c->attached = probe_calls_choose(&calls, config->only, h);
	/* Rows are made ahead, for every CPU: no more than there are calls in use. */
	n_rows = c->n_possible > 32 ? 128 : 256;
	if (bpf_map__set_max_entries(k->maps.rows, n_rows))
		return diag_errno(d, -errno, "rows for BPF");
	if (bpf_map__set_max_entries(k->maps.keyed_rows, keyed_rows(config)))
		return diag_errno(d, -errno, "rows for BPF");
	if (c->attached == SYSCALL_ATTACH_ONE_CALL && !probe_may_allocate(h) && make_ahead(k))
		return diag_errno(d, -errno, "names for BPF");
	c->setup.rows_mask = n_rows - 1;
	*(struct target_setup *)&k->rodata->target_setup = c->core.setup;
	*(struct syscalls_setup *)&k->rodata->setup = c->setup;
	*(struct stack_setup *)&k->rodata->stack_setup =
		(struct stack_setup){.max_user_frames = SYSCALLS_STACK_FRAMES, .with_user = 1};
	bpf_program__set_autoload(k->progs.on_futex_wake, config->by & SYSCALLS_BY_LOCK);
	if (shrink_maps(c))
		return diag_errno(d, -EINVAL, "rows for BPF");
	return probe_core_load(&c->core, k->skeleton, h, d);
}

static int open_counts(struct syscall_counts *c, const struct syscall_counts_config *config,
		       const struct host *h, struct diag *d)
{
	int n = libbpf_num_possible_cpus(), err;

	if (n <= 0)
		return diag_errno(d, -ENODEV, "counting the CPUs");
	c->n_possible = (uint32_t)n;
	c->by_cpu = calloc(c->n_possible, sizeof(*c->by_cpu));
	if (!c->by_cpu)
		return diag_errno(d, -ENOMEM, "counting system calls");
	fill_setup(c, config);
	/* Calls that threads are in when it starts do not end in a trampoline. */
	c->no_functions = c->setup.by & SYSCALLS_BY_LOCK || !config->target.child ||
			  config->target.child_runs;
	err = probe_core_init(&c->core, &config->target, false, h, d);
	if (!err)
		err = load(c, config, h, d);
	if (err && c->attached == SYSCALL_ATTACH_FUNCTION) {
		diag_release(d);
		syscalls__destroy(c->skeleton);
		c->no_functions = true;
		err = load(c, config, h, d);
	}
	if (err)
		return err;
	c->core.shared = &c->skeleton->bss->target_shared;
	c->shared = &c->skeleton->bss->shared;
	return attach(c, config, d);
}

int syscall_counts_new(const struct syscall_counts_config *config, const struct host *h,
		       note_list *notes UNUSED, struct syscall_counts **ret, struct diag *d)
{
	struct syscall_counts *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return diag_errno(d, -ENOMEM, "counting system calls");
	err = open_counts(c, config, h, d);
	if (err) {
		syscall_counts_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

int syscall_counts_start(struct syscall_counts *c)
{
	c->shared->start_ns = c->started_ns = clock_now_ns();
	return probe_core_start(&c->core);
}

void syscall_counts_stop(struct syscall_counts *c)
{
	c->stopped_ns = probe_core_stop(&c->core);
	probe_core_detach(&c->core, 0); /* the target pays no more while the tables are read */
}

void syscall_counts_free(struct syscall_counts *c)
{
	if (!c)
		return;
	probe_core_release(&c->core);
	syscalls__destroy(c->skeleton);
	row_reader_release(&c->reader);
	free(c->by_cpu);
	free(c);
}

enum syscall_attach syscall_counts_attached(const struct syscall_counts *c)
{
	return c->attached;
}

bool syscall_counts_alive(const struct syscall_counts *c)
{
	return probe_core_alive(&c->core);
}
