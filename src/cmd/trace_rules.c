/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls mean. The first test of a rule is the one whose limit --limit changes. */
#include "trace.h"

#include "print_result.h"

#include <inspect/near_miss.h>

/* The calls that are counted as such (SYSCALLS_WRITES, src/probe/syscalls.c). */
#define SMALL_WRITES "write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg"

const struct finding_rule trace_rules[] = {
	{
		.name = "gil-contention",
		.tests = {{"gil-wait-ms-per-second", ABOVE, 100, "%.0f ms of waiting a second"}},
		.means = "threads fight for Python's lock: more threads will not make it faster",
		.next = "inspect offcpu {target}",
		.source = "F5: one thread's tenth; waits with time-outs of 5 ms "
			  "(sys.getswitchinterval) are CPython's way to take the lock",
	},
	{
		.name = "lock-contention",
		.tests = {{"lock-wait-ms-per-second", ABOVE, 100, "%.0f ms of waiting a second"}},
		.means = "threads wait for each other at one lock",
		.next = "inspect trace --locks {target}",
		.source = "F4: a tenth of one thread's time",
	},
	{
		.name = "futex-races",
		.tests = {{"futex-eagain-percent", ABOVE, 20, "%.0f %% of waits fail with EAGAIN"},
			  {"futex-races-per-second", ABOVE, 100, "%.0f a second"}},
		.means = "the lock changes hands while threads go to sleep: it is held shortly and "
			 "asked for often",
		.next = "inspect trace --locks {target}",
		.source = "F6: futex(2), EAGAIN: the value was another one at the call",
	},
	{
		.name = "small-writes",
		.tests = {{"small-writes-per-second", ABOVE, 1000,
			   "%.0f writes of less than 256 bytes a second"}},
		.means = "output without a buffer: each line pays for a call",
		.next = "inspect trace --hist --of bytes -e " SMALL_WRITES " {target}",
		.source = "F7: a call costs 0.2 to 2 µs, a buffer nothing",
	},
	{
		.name = "small-writes-by-thread",
		.tests = {{"thread-small-writes-per-second", ABOVE, 2000,
			   "%.0f writes of less than 256 bytes a second"}},
		.means = "one thread writes piece by piece, to whichever descriptors",
		.next = "inspect trace -c --by fd -e " SMALL_WRITES " {target}",
		.source = "F7, by thread",
	},
	{
		.name = "map-churn",
		.tests = {{"map-pairs-per-second", ABOVE, 200,
			   "%.0f mappings a second come and go with one size"}},
		.means = "large buffers are allocated and freed all the time: each pays page "
			 "faults, zeroing and TLB flushes",
		.next = "inspect record -e page-faults -c 1 {target}",
		.source = "F1: mallopt(3), M_MMAP_THRESHOLD",
	},
	{
		.name = "heap-churn",
		.tests = {{"heap-calls-per-second", ABOVE, 1000,
			   "%.0f brk, madvise and mremap calls a second"}},
		.means = "the allocator gives memory back and takes it again",
		.next = "inspect trace -c --by syscall,thread -e brk,madvise,mremap {target}",
		.source = "F1: mallopt(3), M_TRIM_THRESHOLD; MADV_DONTNEED of jemalloc and Go",
	},
	{
		.name = "clone-per-request",
		.tests = {{"clones-per-second", ABOVE, 5, "%.0f new threads or processes a second"},
			  {"clones-per-accept", ABOVE, 0.5, "%.1f for each connection"},
			  {"clones-per-accept", BELOW, 8, NULL}},
		.means = "a thread or process is made for each request instead of taken from a "
			 "pool",
		.next = "inspect trace -c --by comm {target}",
		.source = "F2: a thread costs 10 to 50 µs, a process 0.2 ms and more",
	},
	{
		.name = "yield-spin",
		.tests = {{"yields-per-second", ABOVE, 10000, "%.0f sched_yield calls a second"}},
		.means = "a thread spins instead of sleeping at a lock",
		.next = "inspect record {target}",
		.source = "F3: sched_yield(2): not a way to wait",
	},
	{
		.name = "busy-poll",
		.tests = {{"busy-polls-per-second", ABOVE, 1000,
			   "%.0f epoll_wait calls a second that do not wait and bring at most one "
			   "event"}},
		.means = "an event loop that runs hot: it asks instead of waiting",
		.next = "inspect record {target}",
		.source = "F8: epoll_wait(2), a timeout of 0",
	},
	{
		.name = "missing-files",
		.tests = {{"enoent-per-second", ABOVE, 100, "%.0f names a second do not exist"},
			  {"enoent-percent", ABOVE, 20, "%.0f %% of these calls"}},
		.means = "a search path is walked through: imports, libraries, configuration",
		.next = "inspect trace --failed -e %file {target}",
		.source = "F9",
	},
	{
		.name = "failing-call",
		.tests = {{"failing-calls-per-second", ABOVE, 100, "%.0f calls a second"},
			  {"failing-percent", ABOVE, 95, "%.1f %% fail"}},
		.means = "it asks for what it never gets",
		.next = "inspect trace --failed {target}",
		.source = "F10",
	},
	{
		.name = "syncs",
		.tests = {{"sync-ms-per-second", ABOVE, 50, "%.0f ms a second in fsync"},
			  {"syncs-per-second", ABOVE, 5, "%.0f calls a second"}},
		.means = "requests wait for the disk to confirm",
		.next = "inspect trace -c --by path -e fsync,fdatasync,msync,"
			"sync_file_range,syncfs,sync {target}",
		.source = "F11: fsync(2) waits for the device's cache to be flushed",
	},
	{
		.name = "gpu-allocations",
		.tests = {{"gpu-memory-ioctls-per-second", ABOVE, 10,
			   "%.0f NVIDIA alloc, free and map ioctls a second"}},
		.means = "GPU memory is allocated while serving: each waits for the driver",
		.next = "inspect trace -c --by device -e ioctl {target}",
		.source = "F12: nv_escape.h of NVIDIA's open kernel modules",
	},
	{
		.name = "gpu-open",
		.tests = {{"gpu-open-ms", ABOVE, 100, "opening a GPU took %.0f ms"}},
		.means = "the driver initializes the GPU at each first open: no persistence daemon",
		.next = "nvidia-smi -pm 1",
		.source = "F13: NVIDIA's Driver Persistence documentation",
	},
};
const size_t n_trace_rules = ARRAY_SIZE(trace_rules);

struct finding_rule *trace_limited_rules(const struct trace_values *v,
					 const struct finding_rule *from, size_t n,
					 struct result *r)
{
	struct finding_rule *rules = arena_alloc(&r->arena, n * sizeof(*rules));

	if (!rules)
		return NULL;
	memcpy(rules, from, n * sizeof(*rules));
	for (size_t i = 0; i < v->limits.n; i++)
		for (size_t k = 0; k < n; k++)
			if (str_eq(rules[k].name, v->limits.v[i].rule))
				rules[k].tests[0].limit = v->limits.v[i].limit;
	return rules;
}

int trace_check_limits(const struct trace_values *v, struct diag *d)
{
	const struct finding_rule *rules = v->gpu ? gpu_rules : trace_rules;
	size_t n = v->gpu ? n_gpu_rules : n_trace_rules;

	for (size_t i = 0; i < v->limits.n; i++) {
		const char *rule = v->limits.v[i].rule;
		bool known = false;

		for (size_t k = 0; k < n; k++)
			known |= str_eq(rules[k].name, rule);
		if (known)
			continue;
		diag_set(d, -EINVAL, "--limit: no rule is called '%s'", rule);
		diag_fix(d, "inspect trace %s--explain      (the rules and their limits)",
			 v->gpu ? "--gpu " : "");
		return -EINVAL;
	}
	return 0;
}

/* Whose the number of the rule's first test is. */
static const char *subject_of(const struct trace_numbers *numbers, const struct finding_rule *rule)
{
	for (size_t i = 0; i < numbers->n; i++)
		if (str_eq(numbers->v[i].name, rule->tests[0].value))
			return numbers->v[i].subject;
	return NULL;
}

int trace_findings(const struct trace_values *v, const struct trace_numbers *numbers,
		   const char *target, struct result *r, findings *ret)
{
	struct finding_rule *rules = trace_limited_rules(v, trace_rules, n_trace_rules, r);
	int err = rules ? findings_evaluate(rules, n_trace_rules, trace_number, (void *)numbers,
					    target, r, ret)
			: -ENOMEM;

	for (size_t i = 0; i < ret->n && !err; i++) {
		const char *subject = subject_of(numbers, ret->v[i].rule);

		if (subject)
			ret->v[i].evidence = result_text(r, "%s: %s", subject, ret->v[i].evidence);
	}
	return err;
}

int trace_explain(const struct trace_values *v, struct diag *d)
{
	CLEANUP(result_release) struct result r;
	struct finding_rule *rules;

	result_init(&r, "inspect.trace-rules/1");
	rules = v->gpu ? trace_limited_rules(v, gpu_rules, n_gpu_rules, &r)
		       : trace_limited_rules(v, trace_rules, n_trace_rules, &r);
	if (!rules)
		return diag_errno(d, -ENOMEM, "--explain");
	findings_explain(rules, v->gpu ? n_gpu_rules : n_trace_rules, &r);
	return print_result(&r, &v->common, true, d);
}
