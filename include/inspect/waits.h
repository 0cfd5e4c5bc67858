/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the threads of a target waited: what a recording of waits adds up beside its profile. A
 * site is one stack in one process that waited for one thing; a part is what one thread, woken by
 * one other, waited there.
 */
#ifndef INSPECT_WAITS_H
#define INSPECT_WAITS_H

#include <inspect/hashmap.h>
#include <inspect/histogram.h>
#include <inspect/offcpu.h>
#include <inspect/syscalls.h>
#include <inspect/wait_reason.h>

/* What is waited for. */
struct wait_label {
	char *text; /* "futex _PyRuntime+0x1b4", "read pipe:[17]", "runnable"; names unescaped */
	enum wait_reason reason;
	bool idle;        /* waits for work, by design */
	bool by_stack;    /* the kernel's functions on the stack may say better */
	bool is_call;     /* a system call, whatever it did */
	bool is_probe;    /* a point in code */
	bool from_before; /* calls that began before the start: a part of their time was seen */
	bool told;        /* a record has named it */
};

struct wait_site {
	uint32_t pid, label;
	uint64_t stack_id; /* the program's */
	uint32_t stack;    /* in the profile; UINT32_MAX: unknown */
	bool has_links;    /* it goes on with who ended the wait */
	enum wait_reason reason;
	enum lock_use use; /* of locks: what the stack tells of it */
	uint64_t wait_ns;  /* up to the wake-ups */
	uint64_t queue_ns; /* from then until a CPU was free */
	uint64_t count, max_ns;
	uint64_t errors, bytes, io;  /* of system calls */
	uint64_t open_ns, before_ns; /* of wait_ns: not over at the end; since before the start */
	uint32_t n_open, n_before;
	uint32_t n_threads; /* filled in at the end */
	uint32_t buckets[OFFCPU_BUCKETS];
};

struct wait_part {
	uint32_t site, serial, waker; /* OFFCPU_WAKER_… or another thread's serial */
	uint64_t wait_ns, queue_ns, count;
};

struct wait_thread {
	struct offcpu_totals totals;
	uint32_t serial;
	uint64_t by_reason[WAIT_REASONS]; /* ns */
	uint64_t idle_ns;                 /* of them, waits for work by design */
};

/* From the end of a wait for events until the next one. */
struct wait_gap {
	uint64_t begin_ns, gap_ns;
	uint64_t ran_ns;   /* of it, on a CPU */
	uint64_t stack_id; /* the program's: of one place in it; 0: not seen */
	uint32_t stack;    /* in the profile; UINT32_MAX: unknown */
	bool waited;       /* the stack is that of its longest wait; else it ran there */
	bool open;         /* not over at the end */
};

/* A thread's event loop. */
struct wait_loop {
	uint32_t serial, pid, tid;
	char call[SYSCALL_NAME_BYTES];
	uint64_t waits, polls; /* calls that waited; ticks that hit one that did not */
	struct histogram gaps;
	struct wait_gap longest[OFFCPU_LOOP_GAPS]; /* the longest first */
	size_t n_longest;
};

struct waits {
	ARRAY(struct wait_label) labels;
	struct hashmap label_map; /* by text and reason */
	ARRAY(struct wait_site) sites;
	struct hashmap site_map;
	ARRAY(struct wait_part) parts;
	struct hashmap part_map;
	ARRAY(struct wait_thread) threads; /* those with a serial, by serial */
	ARRAY(struct wait_loop) loops;     /* with the longest gap first */
	ARRAY(uint32_t) throttled;         /* pids that a quota has kept off their CPU, each once */
	struct offcpu_delays delays;       /* after wake-ups: the queue_ns of sites that waited */
	struct offcpu_lost lost;
	struct gpu_losses gpu_lost;
	uint64_t without_stack;  /* waits whose stack has not come */
	uint64_t without_link;   /* waits with a waker whose stack has not come */
	uint64_t parts_left_out; /* ns of parts beyond the bound: in sites alone */
	uint64_t start_ns, end_ns;
};

void waits_release(struct waits *w);

/* The label with that text and reason, added if new. 0 or -ENOMEM. */
int waits_label(struct waits *w, const char *text, enum wait_reason reason, uint32_t *ret);

/* Adds what the program has added up under one key. 0 or -ENOMEM; *ret_site. */
int waits_add(struct waits *w, const struct offcpu_key *key, const struct offcpu_row *row,
	      uint32_t label, uint32_t *ret_site);

/* At the end: an event loop; its gaps have no stacks yet. 0 or -ENOMEM. */
int waits_add_loop(struct waits *w, uint32_t serial, const struct offcpu_loop *loop);

/* At the end: the threads, and how many waited at each site. 0 or -ENOMEM. */
int waits_finish(struct waits *w, const struct offcpu_ended *threads, size_t n);
/* When the profile has its names: reasons of sites, and from them of threads. 0 or -ENOMEM. */
struct profile;
int waits_classify(struct waits *w, const struct profile *p);

/* The process of a thread that waited for a mutex or rwlock all through; 0: none did. */
uint32_t waits_stuck(const struct waits *w);

/* What is missing, by cause. */
struct wait_loss {
	const char *key;
	uint64_t n;
	const char *text; /* behind the number */
};
enum { WAIT_LOSSES = 12 };
void waits_losses(const struct waits *w, struct wait_loss ret[WAIT_LOSSES]);
uint64_t waits_lost(const struct waits *w); /* their sum */

/* The thread of a serial, or NULL. */
const struct wait_thread *waits_thread(const struct waits *w, uint32_t serial);

/* The wait that `percent` % of a site's did not exceed, in ns: 4 steps for each power of two. */
uint64_t wait_site_percentile(const struct wait_site *s, double percent);

#endif
