/* SPDX-License-Identifier: BSD-2-Clause */
/* What is open while sampling. attach.c fills it, sampler.c reads from it. */
#ifndef PERF_SAMPLER_H
#define PERF_SAMPLER_H

#include <inspect/perf_sampler.h>
#include <inspect/ring.h>

struct sampler_fd {
	int fd;
	uint32_t slot, event;
	uint64_t id;    /* what samples of it carry */
	bool on_exec;   /* counts from exec on, not from start */
	bool redundant; /* a late thread's: the thread had inherited the event already */
};

/* A CPU and the ring of all its events. */
struct cpu_slot {
	int cpu;
	bool absent; /* went offline before it was opened */
	int ring_fd; /* the first event opened here, which was mapped; -1: none yet. Borrowed. */
	struct ring ring;
	size_t poll_at; /* index of the event to poll: the first of this CPU that has not ended */
};

/*
 * A thread that was first seen after others of its process had been opened: its creator's events
 * may have been inherited by it, or not (only some CPUs', even). It is opened all the same; the
 * first sample that carries another's id shows that its own event on that CPU is one too many.
 */
struct late_thread {
	pid_t tid;
	size_t first_fd, n_fds;
};

struct sampler {
	struct source source;
	struct event_table events;
	ARRAY(struct sampler_fd) fds;
	ARRAY(struct cpu_slot) slots;
	ARRAY(struct late_thread) late; /* sorted by tid once all are open */
	ARRAY(int) anchors;             /* one for each thread whose events are inherited */
	struct pollfd *polls;           /* as many as slots */
	bool follows_tasks;             /* ends with them; CPU-wide events never end */
	bool counts_lost;               /* PERF_FORMAT_LOST */
};

/* Offset of the words of our samples: attr_prepare's sample_type begins with these. */
struct sampler_sample_head {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
};

/* Opens everything that the config names into an empty *s. On failure nothing stays open. */
int sampler_attach(struct sampler *s, const struct sampler_config *config, const struct host *host,
		   note_list *notes, struct diag *d);

/* Unmaps and closes. */
void sampler_close(struct sampler *s);

#endif
