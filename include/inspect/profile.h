/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first waist: stacks with weights. Sources know nothing to the right of it, renderers nothing
 * to the left.
 *
 * A frame is an address (or a ready name) and is interned; a stack is a node of a trie of frames,
 * root first; a row is a stack on a thread under an event with what was counted there. Frames get
 * their names once, after the capture (symbolize.h): each frame becomes one or more symbols (more
 * when functions were inlined there, outermost first).
 */
#ifndef INSPECT_PROFILE_H
#define INSPECT_PROFILE_H

#include <inspect/intern.h>
#include <inspect/process.h>

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_INLINED,
	FRAME_PYTHON,
	FRAME_JIT,
	FRAME_SYNTHETIC, /* [truncated] and the like */
	FRAME_KINDS
};

/* "native", "kernel", … as used in JSON and the SVG's legend. */
const char *frame_kind_name(enum frame_kind kind);

struct frame {
	uint64_t loc;  /* see enum dso_kind; for return addresses already decremented by one */
	uint32_t dso;  /* index in the profile's dso table */
	uint32_t kind; /* enum frame_kind */
};

#define STACK_ROOT 0U /* the empty stack */

struct stack_node {
	uint32_t parent;
	uint32_t frame;
};

/* A function as shown. Interned: the same name in the same module of the same kind is one. */
struct symbol {
	uint32_t name;   /* string id; never 0 */
	uint32_t module; /* string id of its short name ("libc.so.6", "[kernel]"); 0 unknown */
	uint32_t kind;   /* enum frame_kind */
	bool unknown;    /* the name is a stand-in such as [libfoo.so+0x1234] */
};

/* One symbol of a frame, with its source line when known. */
struct symbol_at {
	uint32_t symbol;
	uint32_t file; /* string id, 0 unknown */
	uint32_t line; /* 0 unknown */
};

/*
 * Code that lay at an address for a time: what a jitdump, or a KSYMBOL record of the kernel, names.
 * The same address at another time may be another function, which is another frame.
 */
struct code {
	uint64_t start_va, end_va;
	uint64_t from_ns, until_ns; /* from 0: since before the recording; until 0: no end known */
	uint32_t pid;               /* 0: the kernel */
	uint32_t name, module;      /* string ids; the name as its maker wrote it */
};

struct profile_thread {
	uint32_t pid, tid;
	uint32_t comm; /* string id; a thread that renames itself becomes a second entry */
};

struct profile_event {
	char *name;               /* "cpu-clock" */
	char *unit;               /* "ns", "cycles", "count": what weight counts */
	uint64_t freq_hz, period; /* one of them is set when sampling is known */
	bool is_time;             /* weight is time on CPU */
	bool is_tracepoint;       /* counts occurrences, not time */
};

struct profile_row {
	uint32_t stack; /* STACK_ROOT: a sample without a stack */
	uint32_t thread;
	uint32_t event;
	uint64_t weight;
	uint64_t count;
};

/* What is missing from a profile. Every renderer prints it. Counted + lost = exact. */
struct losses {
	uint64_t samples; /* delivered */
	uint64_t lost;    /* samples and records that the kernel dropped, from all sources */
	ARRAY(uint64_t) lost_by_cpu;         /* by CPU number */
	uint64_t throttled;                  /* times an event was throttled */
	uint64_t truncated;                  /* samples whose stack does not reach an entry point */
	uint64_t truncated_by[UNWIND_STOPS]; /* those of them that say why; the rest by name */
	uint64_t guessed;       /* samples with a frame found by frame pointer, without a row */
	uint64_t without_stack; /* samples with no user or kernel frame at all */
	uint64_t damaged;       /* records whose sizes do not fit */
	uint64_t late;          /* records that came too late to be put in order */
	uint64_t filtered;      /* samples left out on request (report's filters) */
};

struct profile {
	struct intern strings;
	struct process_table processes;
	ARRAY(struct frame) frames;
	struct hashmap frame_map;
	ARRAY(struct stack_node) stacks;
	struct hashmap stack_map;
	ARRAY(struct profile_thread) threads;
	struct hashmap thread_map;
	ARRAY(struct profile_event) events;
	ARRAY(struct profile_row) rows;
	struct hashmap row_map;
	ARRAY(struct code) codes;
	struct map_set *kernel_code; /* what lies in the kernel now: dso is an index in codes */

	/* After symbolization: frame i has symbols at[first[i]] … at[first[i + 1] - 1]. */
	ARRAY(struct symbol) symbols;
	struct hashmap symbol_map;
	ARRAY(struct symbol_at) at;
	ARRAY(uint32_t) first;
	ARRAY(uint8_t) ended;      /* by stack id: 1: the unwinder said how it ended */
	ARRAY(uint8_t) cut;        /* by stack id: 1: the stack does not reach an entry point */
	uint32_t truncated_symbol; /* what stands at the root of such a stack */
	bool no_stacks;            /* no event was recorded with stacks: none is truncated */

	struct losses losses;
	ARRAY(char *) notes; /* lines for the reader: "no hardware counters: cpu-clock used" */
	uint64_t start_ns, end_ns;          /* times of the first and last sample, 0 unknown */
	uint64_t own_cpu_ns;                /* what measuring cost the recorder; 0 unknown */
	uint64_t naming_cpu_ns;             /* what it then took to look up names; 0 unknown */
	uint64_t duration_ns;               /* of the measurement; 0: unknown */
	char *command;                      /* command line of the recording, NULL unknown */
	char *hostname, *os_release, *arch; /* NULL unknown */
	bool monotonic;                     /* the times of its events are CLOCK_MONOTONIC's */
	uint64_t wall_start_ns;             /* CLOCK_REALTIME at start, 0 unknown */
	uint64_t kernel_start_va;           /* where the recorded kernel begins; 0 unknown */
};

int profile_new(struct profile **ret);
void profile_free(struct profile *p);
static inline void profile_freep(struct profile **p)
{
	profile_free(*p);
}

int profile_add_event(struct profile *p, const char *name, const char *unit, uint32_t *ret_event);
/* Once, however often it is said. 0 or -ENOMEM. */
int profile_note(struct profile *p, const char *fmt, ...) PRINTF(2, 3);

int profile_frame(struct profile *p, const struct frame *f, uint32_t *ret_frame);
/* A frame that has its name already; module may be "". */
int profile_named_frame(struct profile *p, enum frame_kind kind, const char *name, size_t name_n,
			const char *module, size_t module_n, uint32_t *ret_frame);
/* The stack `parent` with one frame more towards the leaf. */
int profile_stack(struct profile *p, uint32_t parent, uint32_t frame, uint32_t *ret_stack);
/* The unwinder knows how this stack ends: its names are not asked. 0 or -ENOMEM. */
int profile_stack_ended(struct profile *p, uint32_t stack);
int profile_thread(struct profile *p, uint32_t pid, uint32_t tid, const char *comm, size_t comm_n,
		   uint32_t *ret_thread);

/* Applies a KSYMBOL event. 0 or -ENOMEM. */
int profile_ksymbol(struct profile *p, const struct event *e);
/* The code that a KSYMBOL record has put at a kernel address. 0 or -ENOENT. */
int profile_kernel_code(const struct profile *p, uint64_t va, uint32_t *ret_code);

/* Adds weight and count to the row (stack, thread, event). */
int profile_add(struct profile *p, uint32_t stack, uint32_t thread, uint32_t event, uint64_t weight,
		uint64_t count);

/* Interns a symbol. */
int profile_symbol(struct profile *p, const struct symbol *s, uint32_t *ret_symbol);

/*
 * The symbols of a row's stack, root first, with "[truncated]" put at the root of stacks that do
 * not reach an entry point. *buf is grown as needed and belongs to the caller. Needs symbolization.
 */
struct symbol_path {
	ARRAY(struct symbol_at) at;
};
int profile_row_path(const struct profile *p, const struct profile_row *row,
		     struct symbol_path *buf);
/* Which of a path (not empty) its samples were taken in: the last, but of waits with who ended them
 * ("[woken by …]", and his stack) the one that waited. */
size_t profile_path_leaf(const struct profile *p, const struct symbol_path *path);

/* The line on which most samples of a function were taken; or, of one that only called, most calls
 * stood. By symbol; file 0: unknown. malloc'ed. Needs symbolization. 0 or -ENOMEM. */
struct symbol_place {
	uint32_t file; /* string id */
	uint32_t line;
};
int profile_places(const struct profile *p, struct symbol_place **ret);

/* Sum of weights and counts of one event's rows. */
void profile_totals(const struct profile *p, uint32_t event, uint64_t *ret_weight,
		    uint64_t *ret_count);

/* Samples whose leaf is unnamed, by module, largest first. */
struct unknown_module {
	uint32_t module; /* string id */
	uint64_t count;
};
typedef ARRAY(struct unknown_module) unknown_modules;
int profile_unknown(const struct profile *p, unknown_modules *ret);

#endif
