/* SPDX-License-Identifier: BSD-2-Clause */
/* What the program of waits keeps beside rows: names, delays after wake-ups, and what it lost. */
#include "offcpu_impl.h"

int offcpu_file(const struct offcpu_probe *o, uint64_t arg, uint64_t inode, struct offcpu_file *ret)
{
	const struct offcpu_file_key key = {
		.inode = inode,
		.device = arg >> OFFCPU_DEVICE_SHIFT & OFFCPU_DEVICE_MASK,
	};

	return bpf_map_lookup_elem(probe_core_map(&o->core, "met_files"), &key, ret) ? -ENOENT : 0;
}

uint32_t offcpu_thread_at(const struct offcpu_probe *o, uint32_t pid, uint64_t user_va)
{
	const struct offcpu_thread_word word = {.user_va = user_va, .pid = pid};
	uint32_t tid = 0;

	bpf_map_lookup_elem(probe_core_map(&o->core, "thread_words"), &word, &tid);
	return tid;
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

int offcpu_delays(const struct offcpu_probe *o, struct offcpu_delays *ret)
{
	CLEANUP(freep) struct offcpu_delays *v = calloc(o->rings.n_possible, sizeof(*v));
	struct offcpu_delays sum = {0};
	uint32_t zero = 0;
	int err = v ? 0 : -ENOMEM;

	if (!err)
		err = bpf_map_lookup_elem(probe_core_map(&o->core, "delays"), &zero, v);
	for (size_t i = 0; i < o->rings.n_possible && !err; i++) {
		sum.count += v[i].count;
		sum.max_ns = MAX(sum.max_ns, v[i].max_ns);
		for (size_t b = 0; b < OFFCPU_BUCKETS; b++)
			sum.buckets[b] += v[i].buckets[b];
	}
	if (!err)
		*ret = sum;
	return err;
}
