/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a recording consists of. An event borrows the record that it was decoded from and is valid
 * during the callback only. Sources: include/uapi/linux/perf_event.h.
 */
#ifndef INSPECT_EVENT_H
#define INSPECT_EVENT_H

#include <inspect/array.h>
#include <inspect/hashmap.h>
#include <lib/unwind_step.h>
#include <linux/perf_event.h>

/* Shorter build-ids (lld's have 8 bytes) are not put into MMAP2 records: a reader that cannot trust
 * the record's mark (see decode.c) takes the first byte for part of an inode. */
#define RECORD_BUILD_ID_MIN 16

/* User-space record types of the perf.data stream (tools/lib/perf/include/perf/event.h). */
enum {
	RECORD_HEADER_ATTR = 64,
	RECORD_HEADER_TRACING_DATA = 66,
	RECORD_HEADER_BUILD_ID = 67,
	RECORD_FINISHED_ROUND = 68,
	RECORD_ID_INDEX = 69,
	RECORD_AUXTRACE = 71,
	RECORD_STAT_CONFIG = 75,
	RECORD_STAT = 76,
	RECORD_EVENT_UPDATE = 78,
	RECORD_HEADER_FEATURE = 80,
	RECORD_COMPRESSED = 81,
	RECORD_FINISHED_INIT = 82,
	RECORD_COMPRESSED2 = 83,
};

/* In an MMAP2 record of ours, in place of the inode: the file has been changed since it was mapped,
 * and no file is known to be the one. */
#define INODE_UNKNOWN UINT64_MAX

/* The events of a recording: attr, name, and the ids that samples carry. */
struct event_desc {
	struct perf_event_attr attr;
	char *name; /* "cycles", "sched:sched_switch"; owned; never NULL */
	ARRAY(uint64_t) ids;
};

struct event_table {
	ARRAY(struct event_desc) events;
	struct hashmap by_id;
	ARRAY(uint32_t) id_owner; /* id index in by_id → event; parallel to id_value */
	ARRAY(uint64_t) id_value;
	/* Where every event's records carry their id: words from the start of a sample's body, and
	 * from the end of other records; -1: nowhere, or not all agree. Kept by event_table_add. */
	int sample_id_word, trailer_id_word;
};

void event_table_release(struct event_table *t);

/* Appends an event without ids; the name is copied (NULL: named from the attr). 0 or -ENOMEM. */
int event_table_add(struct event_table *t, const struct perf_event_attr *attr, const char *name);
/* An id that an event owns already stays with it. 0, -EINVAL for no such event, or -ENOMEM. */
int event_table_add_id(struct event_table *t, uint32_t event, uint64_t id);
int event_table_rename(struct event_table *t, uint32_t event, const char *name);

/* Index of the event that owns the id, or -ENOENT. */
int event_table_find_id(const struct event_table *t, uint64_t id);

/* "cycles", "cpu-clock", "L1-dcache-load-misses", "raw 0x1c2"… into buf; returns buf. */
const char *event_attr_name(const struct perf_event_attr *attr, char *buf, size_t size);

#define OFFCPU_EVENT "offcpu" /* time that threads waited, added up by stack */
#define WALL_EVENT "wall"     /* and time that they ran */
#define LOOPS_EVENT "loops"   /* the longest times between waits of event loops */
/* Time from a point in code to another, by the stack at the first; without an end, how often. */
#define PROBE_EVENT "probe"
#define PROBE_HITS_EVENT "probe-hits"
#define CALLS_EVENT "syscalls" /* time in system calls, by the stack that made them */
#define GPU_EVENT "gpu-driver" /* the same of calls of a GPU's driver */

/* cpu-clock and task-clock: their periods are in ns. */
bool event_is_clock(const struct perf_event_attr *attr);

/* What one weight of this event means: "ns" for the clocks, else "count" or the event's own name
 * ("cycles", "page-faults"). Static or within the attr's name; never NULL. */
const char *event_unit(const struct event_desc *e);

enum event_type {
	EVENT_SAMPLE,
	EVENT_MMAP,
	EVENT_COMM,
	EVENT_FORK,
	EVENT_EXIT,
	EVENT_LOST,         /* records the kernel could not write into a full ring */
	EVENT_LOST_SAMPLES, /* samples lost, as the event counted them */
	EVENT_THROTTLE,
	EVENT_KSYMBOL,
	EVENT_OTHER, /* understood to be nothing we use */
};

/*
 * How the user part of a sample's chain ended, when we unwound it: an enum unwind_stop in bits of
 * misc that mean nothing in samples (perf and the kernel set 0), so that it takes no room. 0: not
 * known, as for chains by frame pointer.
 */
enum {
	SAMPLE_MISC_STOP_SHIFT = 4,
	SAMPLE_MISC_STOP_MASK = 0x1f << SAMPLE_MISC_STOP_SHIFT,
	SAMPLE_MISC_GUESSED = 1 << 9, /* struct unwind_state.guessed */
};
_Static_assert(UNWIND_STOPS <= 32, "5 bits of misc");

static inline uint16_t sample_misc_of_stop(enum unwind_stop stop, bool guessed)
{
	return (uint16_t)((unsigned)stop << SAMPLE_MISC_STOP_SHIFT |
			  (guessed ? SAMPLE_MISC_GUESSED : 0));
}

struct user_regs {
	uint64_t abi;  /* PERF_SAMPLE_REGS_ABI_*; NONE: no registers */
	uint64_t mask; /* the attr's sample_regs_user */
	const uint64_t *v;
};

struct sample {
	uint64_t ip;
	uint32_t pid, tid;
	uint32_t event;        /* index in the event_table */
	uint64_t weight;       /* the period: ns for the clocks, else the event's own unit */
	uint8_t cpumode;       /* PERF_RECORD_MISC_KERNEL, _USER, … */
	const uint64_t *chain; /* as the kernel gave it, with PERF_CONTEXT_* marks, leaf first */
	size_t n_chain;
	enum unwind_stop stop; /* of the chain's user part; UNWIND_CONTINUE: not known */
	bool guessed;          /* one of its frames is a guess by frame pointer */
	struct user_regs regs;
	const uint8_t *stack; /* copy of the user stack from sp on, or NULL */
	size_t stack_bytes;
	bool stack_cut;     /* by memory that could not be read, before the size asked for */
	const uint8_t *raw; /* at no good alignment; NULL: none */
	size_t raw_bytes;
};

/* In the raw part of samples that stand for several waits added up: what perf has no field for.
 * Written and read by this program alone; others skip it. */
struct sample_waits {
	uint32_t magic;
	uint32_t site;  /* of the recording that is being made; UINT32_MAX in a file */
	uint64_t count; /* waits */
	uint64_t max_ns;
};
#define SAMPLE_WAITS_MAGIC 0x54494157 /* "WAIT" */

/* Those of a sample; of any other one wait at no site. */
static inline struct sample_waits sample_waits(const struct sample *s)
{
	struct sample_waits one = {.site = UINT32_MAX, .count = 1}, w;

	if (s->raw_bytes < sizeof(w))
		return one;
	memcpy(&w, s->raw, sizeof(w));
	return w.magic == SAMPLE_WAITS_MAGIC ? w : one;
}

struct mmap_event {
	uint32_t pid, tid;
	uint64_t start_va, len_bytes, pgoff_bytes;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	const uint8_t *build_id; /* NULL when the record has none */
	size_t build_id_size;
	bool exec, kernel;
	const char *path; /* NUL-terminated inside the record */
};

struct event {
	enum event_type type;
	uint64_t time_ns; /* 0 when the record has none */
	uint32_t cpu;     /* UINT32_MAX when the record has none */
	union {
		struct sample sample;
		struct mmap_event mmap;
		struct {
			uint32_t pid, tid;
			bool exec;
			const char *comm;
		} comm;
		struct {
			uint32_t pid, ppid, tid, ptid;
			bool own_maps; /* the parent's mappings are not the child's */
		} task;                /* FORK and EXIT */
		struct {
			uint64_t n;
			uint32_t event; /* UINT32_MAX when unknown */
		} lost;                 /* LOST and LOST_SAMPLES */
		struct {
			uint64_t addr;
			uint32_t len_bytes;
			uint16_t type;
			bool unregister;
			const char *name;
		} ksymbol;
	};
};

/* Receives whole records (header.size valid and within size_bytes) in the order of a source. */
typedef int record_fn(void *ctx, const struct perf_event_header *record, size_t size_bytes);

#endif
