/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every BPF program here has in common: whom it measures (bpf/lib/targets.bpf.h), what it
 * unwinds by (bpf/lib/unwind.bpf.h), loading, and attaching. A program of its own is NAME.bpf.c,
 * NAME.abi.h and one .c that opens the skeleton and calls these in this order:
 *
 *   probe_core_init      whom to measure, into core->setup
 *   KERNEL_TYPES_OPEN    then set rodata->target_setup = core->setup, and the program's own
 *   probe_core_load      loads; then set core->shared = &bss->target_shared
 *   probe_rings_open     rings.h, if the program writes into them
 *   probe_core_attach    by the names of programs; probe_core_follow the three that follow forks
 *   probe_core_targets   names the target to the program, and reads what it has mapped
 *   probe_core_start, probe_core_stop, probe_core_release
 */
#ifndef PROBE_CORE_H
#define PROBE_CORE_H

#include "unwind_maps.h"

#include <inspect/diag.h>
#include <inspect/host.h>
#include <inspect/note_list.h>
#include <lib/targets.abi.h>

struct bpf_link;
struct bpf_object;
struct bpf_object_skeleton;

struct probe_core {
	const struct probe_target *target; /* until probe_core_targets has returned */
	struct target_setup setup;
	struct target_shared *shared; /* with the program */
	struct bpf_object *object;    /* the skeleton's */
	int targets_fd;
	struct unwind_map_fds maps_fds;
	struct unwind_maps *maps; /* NULL: nothing is unwound */
	ARRAY(struct bpf_link *) links;
	ARRAY(pid_t) owners; /* of single threads: their processes */
	ARRAY(pid_t) ended, ended_before;
};

/* The inode of the namespace whose pids are meant; 0: the initial one. 0 or -errno. */
int probe_pid_namespace(const struct host *h, __u64 *ret_inode);

/* target->rows decides whether user stacks are unwound. by_perf_cgroup: perf keeps the cgroup
 * apart, the program need not. On failure the diag explains, here and below. */
int probe_core_init(struct probe_core *c, const struct probe_target *target, bool by_perf_cgroup,
		    const struct host *h, struct diag *d);

/* Loads an opened skeleton (NULL: opening failed with errno). */
int probe_core_load(struct probe_core *c, struct bpf_object_skeleton *skeleton,
		    const struct host *h, struct diag *d);

/* Whether programs of tracepoints and probes may use maps whose elements are not made ahead: since
 * 6.1. Before, the kernel warns in its log; those that are attached by BTF always may. */
bool probe_may_allocate(const struct host *h);

/* Attaches a tracepoint program until the release; -ENOENT: the object has none of that name. */
int probe_core_attach(struct probe_core *c, const char *program, struct diag *d);
/* The same of a perf_event program, to an event that is open. 0 or -errno. */
int probe_core_attach_event(struct probe_core *c, const char *program, int event_fd);
int probe_core_follow(struct probe_core *c, struct diag *d);
/* Keeps what was attached until the release; NULL: attaching failed with errno. 0 or -errno. */
int probe_core_keep(struct probe_core *c, struct bpf_link *link);
/* Detaches all but the first n links: the target pays no more. */
void probe_core_detach(struct probe_core *c, size_t n);

/* Tells the program whom to measure; reads what they have mapped. */
int probe_core_targets(struct probe_core *c, struct diag *d);

int probe_core_start(struct probe_core *c);     /* 0 or -errno */
uint64_t probe_core_stop(struct probe_core *c); /* when: what goes on is counted up to then */
void probe_core_release(struct probe_core *c);  /* before NAME__destroy */

/* The descriptor of a map of the object, which owns it; -ENOENT. */
int probe_core_map(const struct probe_core *c, const char *name);

/* Elements of a per-CPU array of 64-bit counts, each the sum of all CPUs. 0 or -errno. */
struct probe_sum {
	uint32_t which;
	uint64_t *to;
};
int probe_core_sums(const struct probe_core *c, const char *map, const struct probe_sum *v,
		    size_t n);
/* Runs that the kernel did not give to the object's programs, as one ran already. */
uint64_t probe_core_missed(const struct probe_core *c);

/* Whether records about a process belong to the target. */
bool probe_wants(const struct probe_core *c, pid_t pid);
/* Whether anything of the target is left; call before the last data is read. */
bool probe_core_alive(const struct probe_core *c);
/* At the end of a round: what ended a round ago is forgotten, when every ring has been read past
 * its end. */
void probe_forget_ended(struct probe_core *c);

/* What a user should know after the end: children that were not followed, files without room. */
int probe_core_notes(const struct probe_core *c, note_list *notes);

#endif
