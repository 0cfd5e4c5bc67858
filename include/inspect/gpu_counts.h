/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of GPU drivers added up in the kernel (bpf/gpu.bpf.c): a row for each call, device and
 * status, with a histogram of latencies; on demand every call as an event.
 */
#ifndef INSPECT_GPU_COUNTS_H
#define INSPECT_GPU_COUNTS_H

#include <gpu.abi.h>
#include <inspect/diag.h>
#include <inspect/histogram.h>
#include <inspect/host.h>
#include <inspect/note_list.h>
#include <inspect/probe_target.h>

/* What is watched: one char device, a major, or a file. */
struct gpu_device_entry {
	struct gpu_device_key key;
	struct gpu_device device;
};

/* A device's node, by which an open that fails is known. */
struct gpu_path_entry {
	struct gpu_path path;
	struct gpu_path_device device;
};

struct gpu_layout_entry {
	struct gpu_layout_key key;
	struct gpu_layout layout;
};

/* Which calls are watched. All is borrowed. */
struct gpu_watch {
	const struct gpu_device_entry *devices;
	size_t n_devices;
	const struct gpu_path_entry *paths;
	size_t n_paths;
	const struct gpu_layout_entry *layouts;
	size_t n_layouts;
};

/* All is borrowed. */
struct gpu_counts_config {
	struct probe_target target;
	struct gpu_watch watch;
	uint32_t by; /* enum gpu_by: more parts of a row's key */
	bool events;
};

/* Borrowed during the call; not 0 ends the reading with that error. */
typedef int gpu_event_fn(void *ctx, const struct gpu_event *e);

/* Rows of calls that have ended, and of those that have not. */
struct gpu_count {
	struct gpu_key key;
	uint64_t calls, bytes;
	struct histogram h; /* latency */
	uint32_t seconds;   /* in how many of them it was called */
	bool starting;      /* in the first seconds of its processes */
	uint64_t in_flight, oldest_ns;
	uint64_t before, before_open; /* begun before the start: of the calls, which h lacks then,
				       * and of those in flight */
	uint64_t open_ns;             /* of those in flight, and of calls that h lacks */
};

struct gpu_losses {
	uint64_t rows_full, threads_dropped;
	uint64_t reads_failed;     /* calls whose struct could not be read */
	uint64_t ranges_cut;       /* of more mappings than are looked at: their bytes are less */
	uint64_t sets_cut;         /* epoll sets of more members than are looked at */
	uint64_t events;           /* that found no room in the ring */
	uint64_t recursion_misses; /* program runs that the kernel left out */
};

/* An ioctl's, whoever called it. */
struct gpu_queued {
	struct gpu_queue_key key;
	struct gpu_queue v;
};

struct gpu_table {
	ARRAY(struct gpu_count) rows;
	ARRAY(struct gpu_queued) queues;
	ARRAY(struct gpu_waiter) waiters;
	uint64_t elapsed_ns;
	uint64_t ioctls_seen;    /* of all files of the target */
	uint64_t ioctls_counted; /* of watched devices, that their drivers see */
	struct gpu_losses losses;
};

struct gpu_counts;

/* Loads and attaches; nothing counts yet. On failure the diag explains and nothing stays. */
int gpu_counts_new(const struct gpu_counts_config *c, const struct host *h, struct gpu_counts **ret,
		   struct diag *d);
int gpu_counts_start(struct gpu_counts *c); /* 0 or -errno */
void gpu_counts_stop(struct gpu_counts *c);
void gpu_counts_free(struct gpu_counts *c);
bool gpu_counts_alive(const struct gpu_counts *c);

/* Readable when there are events; -1 without them. */
int gpu_counts_fd(const struct gpu_counts *c);
/* Hands on the events that are there. 0 or -errno. */
int gpu_counts_events(struct gpu_counts *c, gpu_event_fn *fn, void *ctx);

/* Everything up to now into an empty table. 0 or -errno. */
int gpu_counts_read(struct gpu_counts *c, struct gpu_table *ret);
int gpu_counts_notes(const struct gpu_counts *c, note_list *notes);
static inline void gpu_table_release(struct gpu_table *t)
{
	array_release(&t->rows);
	array_release(&t->queues);
	array_release(&t->waiters);
}

#endif
