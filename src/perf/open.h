/* SPDX-License-Identifier: BSD-2-Clause */
/* From an event_spec to attrs that this kernel and user are allowed, and perf_event_open itself. */
#ifndef PERF_OPEN_H
#define PERF_OPEN_H

#include <inspect/perf_sampler.h>
#include <inspect/ring.h>

/* Of config->max_stack, what is asked of the kernel; 0: its limit. */
unsigned kernel_max_stack(const struct sampler_config *c);

/*
 * The attr to open for an event: the spec's, the config's, and what every event of ours has.
 * The first event alone carries the side-band records (mmap, comm, fork), so that each comes once.
 */
void attr_prepare(const struct event_spec *spec, const struct sampler_config *c, uint64_t freq_hz,
		  unsigned ring_bytes, bool first, struct perf_event_attr *ret);

/*
 * Opens, and takes away from *attr what the kernel refuses one by one: precision, flags of newer
 * kernels, kernel samples where `may_drop_kernel`. What a user must know about that goes to *notes
 * (once, as *attr stays changed), and *name gets the modifier u with the kernel samples gone.
 * A descriptor or -errno.
 */
int perf_open_negotiated(struct perf_event_attr *attr, char **name, pid_t pid, int cpu,
			 unsigned long flags, bool may_drop_kernel, const struct host *host,
			 note_list *notes);

/* A descriptor for each thread, CPU and event is more than the usual soft limit. */
void raise_descriptor_limit(struct host *h);

#endif
