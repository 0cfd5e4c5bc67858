/* SPDX-License-Identifier: BSD-2-Clause */
/* The source of records while sampling: starting, reading in order of the rings, ending. */
#include "sampler.h"
#include "synthesize.h"

#include <poll.h>
#include <sys/ioctl.h>

static struct sampler *sampler_of(struct source *s)
{
	return (struct sampler *)s;
}

static int ioctl_all(struct sampler *s, unsigned long request, bool on_exec_too)
{
	int err = 0;

	for (size_t i = 0; i < s->fds.n; i++) {
		if (s->fds.v[i].on_exec && !on_exec_too)
			continue;
		if (ioctl(s->fds.v[i].fd, request, 0) < 0 && !err)
			err = -errno;
	}
	return err;
}

static int sampler_start(struct source *source, struct diag *d)
{
	int err = ioctl_all(sampler_of(source), PERF_EVENT_IOC_ENABLE, false);

	return err ? diag_errno(d, err, "starting the events") : 0;
}

static int sampler_stop(struct source *source)
{
	return ioctl_all(sampler_of(source), PERF_EVENT_IOC_DISABLE, true);
}

/* --- which have ended ------------------------------------------------------------------------- */

static bool slot_has_ended(const struct sampler *s, const struct cpu_slot *slot)
{
	return slot->ring_fd < 0 || slot->poll_at == s->fds.n;
}

/* On to the next event of the slot, from poll_at on, poll_at included. */
static void slot_next(const struct sampler *s, size_t at)
{
	struct cpu_slot *slot = &s->slots.v[at];

	while (slot->poll_at < s->fds.n && s->fds.v[slot->poll_at].slot != at)
		slot->poll_at++;
}

/*
 * Moves each CPU's poll_at to the first of its events that has not ended: POLLHUP, which comes when
 * the thread and all that inherited from it are gone (perf_poll, is_event_hup) and then stays. The
 * ring outlives them. An event that is polled wakes for its whole ring.
 */
static void skip_ended(struct sampler *s)
{
	size_t moved;

	do {
		size_t n = 0;

		moved = 0;
		for (size_t i = 0; i < s->slots.n; i++) {
			slot_next(s, i);
			s->polls[i].fd = slot_has_ended(s, &s->slots.v[i])
						 ? -1
						 : s->fds.v[s->slots.v[i].poll_at].fd;
			s->polls[i].events = 0;
			s->polls[i].revents = 0;
			n += s->polls[i].fd >= 0;
		}
		if (!n || poll(s->polls, s->slots.n, 0) <= 0)
			return;
		for (size_t i = 0; i < s->slots.n; i++) {
			if (!(s->polls[i].revents & (POLLHUP | POLLERR)))
				continue;
			s->slots.v[i].poll_at++;
			moved++;
		}
	} while (moved);
}

static size_t sampler_fds(struct source *source, struct pollfd *v, size_t max)
{
	struct sampler *s = sampler_of(source);
	size_t n = 0;

	for (size_t i = 0; i < s->slots.n && n < max; i++) {
		const struct cpu_slot *slot = &s->slots.v[i];

		slot_next(s, i);
		if (!slot_has_ended(s, slot))
			v[n++] =
				(struct pollfd){.fd = s->fds.v[slot->poll_at].fd, .events = POLLIN};
	}
	return n;
}

/* --- threads that may have their events twice ------------------------------------------------- */

struct late_filter {
	struct sampler *s;
	uint32_t slot; /* whose ring is read */
	record_fn *emit;
	void *ctx;
};

static const struct late_thread *late_find(const struct sampler *s, uint32_t tid)
{
	size_t low = 0, high = s->late.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if ((uint32_t)s->late.v[mid].tid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->late.n && (uint32_t)s->late.v[low].tid == tid ? &s->late.v[low] : NULL;
}

/* Whether a sample of a late thread is the second one of the same tick. */
static bool late_drop(struct sampler *s, uint32_t slot, const struct late_thread *t, uint64_t id)
{
	struct sampler_fd *fds = s->fds.v + t->first_fd;
	int event;

	for (size_t i = 0; i < t->n_fds; i++)
		if (fds[i].id == id)
			return fds[i].redundant;
	event = event_table_find_id(&s->events, id);
	for (size_t i = 0; i < t->n_fds; i++) {
		if (fds[i].slot != slot || (int)fds[i].event != event || fds[i].redundant)
			continue;
		fds[i].redundant = true;
		ioctl(fds[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	}
	return false;
}

static int late_emit(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct late_filter *f = ctx;
	const struct sampler_sample_head *sample = (const void *)record;
	const struct late_thread *t = NULL;

	if (record->type == PERF_RECORD_SAMPLE && size_bytes >= sizeof(*sample))
		t = late_find(f->s, sample->tid);
	if (t && late_drop(f->s, f->slot, t, sample->id))
		return 0;
	return f->emit(f->ctx, record, size_bytes);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int sampler_read(struct source *source, record_fn *emit, void *ctx, struct diag *d)
{
	struct sampler *s = sampler_of(source);
	bool alive = false;

	/* Before the rings: what has ended by now has written its last. */
	if (s->follows_tasks)
		skip_ended(s);
	for (size_t i = 0; i < s->slots.n; i++) {
		struct cpu_slot *slot = &s->slots.v[i];
		struct late_filter filter = {.s = s, .slot = (uint32_t)i, .emit = emit, .ctx = ctx};
		int err = 0;

		alive |= !slot_has_ended(s, slot);
		if (slot->ring_fd < 0)
			continue;
		err = s->late.n ? ring_read(&slot->ring, late_emit, &filter)
				: ring_read(&slot->ring, emit, ctx);
		if (err == -ENOMEM)
			return diag_errno(d, err, "reading the samples");
		if (err)
			return err;
	}
	return alive;
}

/* What the events of one CPU counted, and what its ring could not make sense of. */
static uint64_t slot_lost(const struct sampler *s, size_t slot)
{
	struct {
		uint64_t value, id, lost; /* by attr.read_format */
	} v;
	uint64_t sum = s->slots.v[slot].ring.broken;

	for (size_t i = 0; i < s->fds.n && s->counts_lost; i++)
		if (s->fds.v[i].slot == slot &&
		    read(s->fds.v[i].fd, &v, sizeof(v)) == (ssize_t)sizeof(v))
			sum += v.lost;
	return sum;
}

int sampler_untold_losses(struct source *source, record_fn *emit, void *ctx)
{
	struct sampler *s = sampler_of(source);
	int err = 0;

	for (size_t i = 0; i < s->slots.n && !err; i++) {
		const struct cpu_slot *slot = &s->slots.v[i];
		uint64_t lost = slot_lost(s, i);

		if (lost > slot->ring.lost)
			err = synthesize_lost(&s->events, (uint32_t)slot->cpu,
					      lost - slot->ring.lost, emit, ctx);
	}
	return err;
}

static void sampler_free(struct source *source)
{
	struct sampler *s = sampler_of(source);

	sampler_close(s);
	free(s->polls);
	free(s);
}

static const struct source_ops sampler_ops = {
	.name = "perf",
	.start = sampler_start,
	.fds = sampler_fds,
	.read = sampler_read,
	.stop = sampler_stop,
	.free = sampler_free,
};

int sampler_new(const struct sampler_config *config, const struct host *host, note_list *notes,
		struct source **ret, struct diag *d)
{
	struct sampler *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return diag_errno(d, -ENOMEM, "opening the events");
	s->source.ops = &sampler_ops;
	s->source.events = &s->events;
	err = sampler_attach(s, config, host, notes, d);
	if (!err) {
		s->polls = calloc(s->slots.n, sizeof(*s->polls));
		err = s->polls ? 0 : diag_errno(d, -ENOMEM, "opening the events");
	}
	if (err) {
		sampler_free(&s->source);
		return err;
	}
	*ret = &s->source;
	return 0;
}
