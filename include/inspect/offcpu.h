/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where threads wait, as bpf/offcpu.bpf.c adds it up at every switch: rows by thread, stack, what
 * it waits for and who woke it, and for each thread how its time went.
 */
#ifndef INSPECT_OFFCPU_H
#define INSPECT_OFFCPU_H

#include <inspect/array.h>
#include <inspect/diag.h>
#include <inspect/event.h>
#include <inspect/gpu_counts.h>
#include <inspect/host.h>
#include <inspect/note_list.h>
#include <inspect/probe_counts.h>
#include <inspect/probe_target.h>
#include <inspect/syscalls.h>
#include <offcpu.abi.h>

struct offcpu_probe;
struct pollfd;

/* How many of each there is room for; 0: as many as usual. */
struct offcpu_room {
	uint32_t rows;   /* that change between two reads */
	uint32_t stacks; /* and chains of wakers */
	uint32_t totals; /* threads that end between two reads */
	uint32_t loops;
};

struct offcpu_config {
	const struct probe_target *target; /* without rows: no user stacks */
	bool kernel_stacks;
	bool kthreads;
	bool wakers;
	bool chains;        /* who woke whom */
	bool loops;         /* of events: offcpu_loops; with tick_hz 0 too what runs is looked at */
	unsigned max_stack; /* user frames; 0: 127 */
	unsigned ring_pages;               /* per CPU, a power of two; 0: default */
	uint64_t min_wait_ns, max_wait_ns; /* max 0: none */
	uint64_t tick_hz;                  /* above 0: rows of what runs too, as often */
	bool calls;                        /* system calls, without kernel stacks, not waits */
	const struct syscall_set *only;    /* of calls; NULL: all */
	/* Points in code, neither waits nor calls; its target is not used. */
	const struct probe_counts_config *probe;
	const struct gpu_watch *gpu;       /* calls of GPU drivers, not waits; NULL: none */
	const struct gpu_watch *gpu_waits; /* of waits: devices whose calls tell what it is for */
	bool gpu_events;                   /* each of them as an event too */
	struct offcpu_room room;
	uint8_t arguments[OFFCPU_SYSCALLS]; /* enum offcpu_argument, by number */
};

/* What was added up since the last read under one key. */
struct offcpu_wait {
	const struct offcpu_key *key;
	const struct offcpu_row *row;
	const struct stack_record *stack; /* NULL: none, or lost */
	const struct offcpu_chain *chain; /* the same */
};
typedef int offcpu_wait_fn(void *ctx, const struct offcpu_wait *w);

struct offcpu_lost {
	uint64_t stacks_unsent; /* ring full; sent with the next wait at the same place */
	uint64_t stacks_full;   /* more different stacks than there is room for */
	uint64_t rows_full;     /* waits, when too many rows changed at once */
	uint64_t totals_full;   /* threads that ended at once */
	uint64_t threads_full;  /* threads without memory for them */
	uint64_t chains_lost;   /* waits whose chain of wakers found no room */
	uint64_t loops_full;    /* gaps of event loops, of too many threads */
	uint64_t side_records;  /* about processes and mappings */
};

/* Loads and attaches; nothing is measured yet. On failure the diag explains and nothing stays. */
int offcpu_new(const struct offcpu_config *c, const struct host *h, note_list *notes,
	       struct offcpu_probe **ret, struct diag *d);
void offcpu_free(struct offcpu_probe *o);

int offcpu_start(struct offcpu_probe *o, struct diag *d);
size_t offcpu_fds(const struct offcpu_probe *o, struct pollfd *v, size_t max);

/* The event ids that records about processes carry in their trailers (IDENTIFIER, TID, TIME, CPU).
 * Calls add for each; what it returns ends it when not 0. */
int offcpu_ids(const struct offcpu_probe *o, int (*add)(void *ctx, uint64_t id), void *ctx);

/* Records about the target's processes go to emit, then waits to wait. 1: more may come; 0: the
 * target has ended; or -errno. */
int offcpu_read(struct offcpu_probe *o, record_fn *emit, offcpu_wait_fn *wait, void *ctx,
		struct diag *d);

/* The stack with that id, as far as it has come; or NULL. */
const struct stack_record *offcpu_stack(const struct offcpu_probe *o, uint64_t id);

/* The file of a key's descriptor, by its arg and inode, as it was when a thread first waited for
 * it. 0 or -ENOENT. */
int offcpu_file(const struct offcpu_probe *o, uint64_t arg, uint64_t inode,
		struct offcpu_file *ret);

/* The call that a row's number stands for: with gpu its nr, of waits with OFFCPU_GPU its inode. 0,
 * -ENOENT: unknown; or -ENOMEM. */
int offcpu_gpu_call(struct offcpu_probe *o, int32_t number, struct gpu_key *ret);
/* Hands on the events that are there. 0, -errno, or what fn returned. */
int offcpu_gpu_events(struct offcpu_probe *o, gpu_event_fn *fn, void *ctx);
int offcpu_gpu_losses(struct offcpu_probe *o, struct gpu_losses *ret); /* 0 or -errno */

/* Stacks that came since the last call without their callers, because their code was mapped too
 * recently: whoever can read them otherwise while the thread waits replaces them, for rows that are
 * read from then on. */
size_t offcpu_incomplete(struct offcpu_probe *o, const struct stack_record **ret, size_t max);
/* 0, -ENOENT when it is another wait by now (the thread was stopped at another place), -ENOMEM. */
int offcpu_replace_stack(struct offcpu_probe *o, uint64_t id, const struct stack_record *better);

/* Ends the measurement: what is open is closed. The last read collects the rest. */
int offcpu_stop(struct offcpu_probe *o, struct diag *d);

/* After the last read. */
const struct offcpu_ended *offcpu_threads(const struct offcpu_probe *o, size_t *ret_n);
/* The next event loop of those that were seen, to be called with *serial 0 first, then with what it
 * left there. 0, -ENOENT at the end, or -errno. */
int offcpu_loop_next(const struct offcpu_probe *o, uint32_t *serial, struct offcpu_loop *ret);
/* The thread of pid whose end is told at that address; 0: none. */
uint32_t offcpu_thread_at(const struct offcpu_probe *o, uint32_t pid, uint64_t user_va);
void offcpu_losses(struct offcpu_probe *o, struct offcpu_lost *ret);
/* Of all CPUs together. 0 or -errno. */
int offcpu_delays(const struct offcpu_probe *o, struct offcpu_delays *ret);
int offcpu_notes(const struct offcpu_probe *o, note_list *notes);

/* The least and the least greater wait of a bucket. */
static inline uint64_t offcpu_bucket_low_ns(unsigned bucket)
{
	unsigned log2 = bucket ? (bucket - 1) / 4 : 0, quarter = bucket ? (bucket - 1) % 4 : 0;

	return bucket ? (uint64_t)(4 + quarter) << (log2 + OFFCPU_BUCKET_FIRST_LOG2 - 2) : 0;
}

#endif
