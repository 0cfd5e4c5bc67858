/* SPDX-License-Identifier: BSD-2-Clause */
/* One sample of each thread that runs: a timer that counts while it is on a CPU. */
#include "snapshot_impl.h"
#include "unwinding.h"

#include <inspect/clock.h>
#include <inspect/decode.h>
#include <inspect/ring.h>
#include <poll.h>
#include <sys/ioctl.h>

#define PERIOD_NS (500 * NSEC_PER_USEC)
#define WAIT_NS (60 * NSEC_PER_MSEC)

enum {
	STACK_BYTES = 16384, /* callers above it are read in the process itself */
	RING_BYTES = 65536,
};

struct timer {
	int fd;     /* -1: could not be opened, or its thread has ended */
	bool fired; /* and was stopped: one sample is enough */
	struct ring ring;
};

struct timers {
	struct timer *v;
	size_t n, left;
	struct event_table events;
	snapshot_sampled_fn *fn;
	void *ctx;
	size_t at; /* whose ring is read */
};

static struct perf_event_attr timer_attr(bool user_only)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(a),
		.sample_period = PERIOD_NS,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = unwind_perf_regs(unwinding_host_arch()),
		.sample_stack_user = STACK_BYTES,
		.exclude_callchain_user = 1,
		.exclude_kernel = user_only,
		.wakeup_events = 1,
	};

	return a;
}

static int timer_open(struct timer *t, pid_t tid)
{
	unsigned pages = (unsigned)(RING_BYTES / (size_t)sysconf(_SC_PAGESIZE));
	struct perf_event_attr a = timer_attr(false);
	int err;

	t->fd = perf_open(&a, tid, -1, 0);
	if (t->fd == -EACCES || t->fd == -EPERM) {
		a = timer_attr(true);
		t->fd = perf_open(&a, tid, -1, 0);
	}
	err = t->fd < 0 ? t->fd : ring_map(&t->ring, t->fd, MAX(pages, 1u));
	if (err && t->fd >= 0)
		close(t->fd);
	if (err)
		t->fd = -1;
	return err;
}

static void timer_close(struct timer *t)
{
	ring_unmap(&t->ring);
	closep(&t->fd);
	t->fd = -1;
}

static void timers_release(struct timers *t)
{
	for (size_t i = 0; i < t->n; i++)
		timer_close(&t->v[i]);
	free(t->v);
	event_table_release(&t->events);
}

static int take(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct timers *t = ctx;
	struct event e;

	if (decode_record(&t->events, record, size_bytes, &e) || e.type != EVENT_SAMPLE ||
	    t->v[t->at].fired)
		return 0;
	ioctl(t->v[t->at].fd, PERF_EVENT_IOC_DISABLE, 0);
	t->v[t->at].fired = true;
	t->left--;
	return t->fn(t->ctx, t->at, &e.sample);
}

static int wait_and_read(struct timers *t, uint64_t end_ns)
{
	CLEANUP(freep) struct pollfd *fds = calloc(t->n, sizeof(*fds));
	uint64_t now_ns = clock_now_ns();
	int err = 0;

	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		fds[i] = (struct pollfd){.fd = t->v[i].fired ? -1 : t->v[i].fd, .events = POLLIN};
	if (now_ns >= end_ns)
		return 0;
	if (poll(fds, t->n, (int)((end_ns - now_ns) / NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
		return -errno;
	for (t->at = 0; t->at < t->n && !err; t->at++) {
		struct timer *timer = &t->v[t->at];

		if (timer->fd < 0 || timer->fired)
			continue;
		err = ring_read(&timer->ring, take, t);
		if (!err && !timer->fired && (fds[t->at].revents & (POLLHUP | POLLERR))) {
			timer_close(timer); /* the thread has ended */
			t->left--;
		}
	}
	return err;
}

int snapshot_sample(const pid_t *tids, size_t n, snapshot_sampled_fn *fn, void *ctx)
{
	CLEANUP(timers_release) struct timers t = {.fn = fn, .ctx = ctx};
	struct perf_event_attr a = timer_attr(false);
	uint64_t end_ns;
	int err;

	t.v = calloc(n, sizeof(*t.v));
	if (!t.v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		t.v[i].fd = -1;
	t.n = n;
	err = event_table_add(&t.events, &a, "cpu-clock");
	for (size_t i = 0; i < n && !err; i++)
		t.left += timer_open(&t.v[i], tids[i]) == 0;
	end_ns = clock_now_ns() + WAIT_NS;
	while (!err && t.left && clock_now_ns() < end_ns)
		err = wait_and_read(&t, end_ns);
	return err;
}
