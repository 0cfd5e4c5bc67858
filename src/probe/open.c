/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampler.h"

#include "sampler.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/ioctl.h>

/* As it is opened: without a ring of its own, but what throttles it is told in ours. Precise events
 * want the chain in the sample type where a program takes stacks (perf_event_set_bpf_handler). */
static struct perf_event_attr sampled_attr(const struct perf_event_attr *from)
{
	struct perf_event_attr a = *from;

	a.sample_type = PROBE_COMMON_FIELDS | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
	if (a.precise_ip)
		a.sample_type |= PERF_SAMPLE_CALLCHAIN;
	a.exclude_callchain_kernel = a.exclude_callchain_user = 0;
	a.read_format = PERF_FORMAT_ID;
	a.watermark = 0;
	a.wakeup_watermark = 0;
	a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = a.ksymbol = 0;
	a.inherit = 0;
	a.disabled = 1;
	return a;
}

/* As a recording says what it holds. */
static struct perf_event_attr recorded_attr(const struct bpf_sampler *s, size_t event)
{
	const struct bpf_sampler_config *c = s->config;
	struct perf_event_attr a = c->attrs[event];

	a.sample_type = PROBE_COMMON_FIELDS | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
	if (c->callchain) {
		a.sample_type |= PERF_SAMPLE_CALLCHAIN;
		a.sample_max_stack = (uint16_t)s->setup.max_user_frames;
	}
	if (c->early_regs) {
		a.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		a.sample_regs_user = c->early_regs;
		a.sample_stack_user = SAMPLER_STACK_PIECES * SAMPLER_STACK_PIECE;
	}
	a.read_format = PERF_FORMAT_ID;
	a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = a.ksymbol = event == 0;
	return a;
}

/* perf's own samples beside ours. */
static struct perf_event_attr copy_attr(const struct bpf_sampler_config *c)
{
	struct perf_event_attr a = sampled_attr(&c->attrs[0]);

	a.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	a.sample_regs_user = c->copy_regs;
	a.sample_stack_user = c->copy_bytes;
	return a;
}

static int event_id(int fd, uint64_t *ret)
{
	return ioctl(fd, PERF_EVENT_IOC_ID, ret) < 0 ? -errno : 0;
}

/* --- one CPU ---------------------------------------------------------------------------------- */

static int open_sampled(struct bpf_sampler *s, const struct probe_slot *slot, size_t event)
{
	struct perf_event_attr a = s->config->copy_bytes ? copy_attr(s->config)
							 : sampled_attr(&s->config->attrs[event]);
	unsigned long flags;
	int program_fd = bpf_program__fd(s->skeleton->progs.sample);
	int owner = probe_rings_owner(&s->config->target, &flags), err;
	CLEANUP(closep) int fd = perf_open(&a, owner, slot->cpu, flags);
	uint64_t id;

	if (fd < 0)
		return fd;
	err = event_id(fd, &id);
	if (!err)
		err = event_table_add_id(&s->events, (uint32_t)event + !!s->config->copy_bytes, id);
	if (!err && s->config->copy_bytes)
		err = event_table_add_id(&s->events, (uint32_t)event, id | SAMPLER_COPIED);
	if (!err && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd) < 0)
		err = -errno;
	if (!err && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, slot->output_fd) < 0)
		err = -errno;
	if (!err)
		err = array_push(&s->event_fds, fd);
	if (!err)
		fd = -1;
	return err;
}

/* --- all of them ------------------------------------------------------------------------------ */

static int name_events(struct bpf_sampler *s)
{
	int err = 0;

	for (size_t i = 0; i < s->config->n_events && !err; i++) {
		struct perf_event_attr a = recorded_attr(s, i);

		err = event_table_add(&s->events, &a, s->config->names[i]);
	}
	if (!err && s->config->copy_bytes) {
		struct perf_event_attr a = copy_attr(s->config);

		err = s->config->n_events == 1 ? event_table_add(&s->events, &a, "copy") : -EINVAL;
	}
	for (size_t i = 0; i < s->rings.slots.n && !err; i++)
		err = event_table_add_id(&s->events, 0, s->rings.slots.v[i].id);
	return err;
}

int probe_open(struct bpf_sampler *s, const struct host *h, note_list *notes, struct diag *d)
{
	int err = probe_rings_open(&s->rings, &s->core, s->config->ring_pages, h, notes, d);

	if (err)
		return err;
	err = name_events(s);
	for (size_t i = 0; i < s->rings.slots.n && !err; i++)
		for (size_t event = 0; event < s->config->n_events && !err; event++)
			err = open_sampled(s, &s->rings.slots.v[i], event);
	return err ? diag_errno(d, err, "opening '%s' for BPF", s->config->names[0]) : 0;
}

void probe_close(struct bpf_sampler *s)
{
	for (size_t i = 0; i < s->event_fds.n; i++)
		close(s->event_fds.v[i]);
	array_release(&s->event_fds);
	event_table_release(&s->events);
}
