/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which file lies at which address of which process at which time. Fed with MMAP, COMM, FORK and
 * EXIT events in time order; asked for every address of a sample.
 */
#ifndef INSPECT_PROCESS_H
#define INSPECT_PROCESS_H

#include <inspect/event.h>

enum dso_kind {
	DSO_NAMED,   /* index 0: loc is module << 32 | name, both string ids (text, synthetic) */
	DSO_UNKNOWN, /* index 1: an address in no known mapping */
	DSO_KERNEL,  /* index 2: kernel, modules, BPF: loc is the address */
	DSO_ELF,     /* loc is the file offset */
	DSO_VDSO,    /* loc is the offset in the vdso image */
	DSO_JIT,     /* executable memory without a file, one dso a program: loc is the address */
	DSO_CODE,    /* index 3: code that lay somewhere for a time: loc is its index in the
		      * profile's codes */
};

enum { DSO_ID_NAMED = 0, DSO_ID_UNKNOWN = 1, DSO_ID_KERNEL = 2, DSO_ID_CODE = 3 };

#define BUILD_ID_MAX 20

/* A file (or what stands for one) that code was run from. */
struct dso {
	uint32_t id;
	enum dso_kind kind;
	char *path; /* as the target sees it, no " (deleted)"; "[kernel]", "[vdso]", "[jit]" */
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t build_id_size; /* 0: none known */
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t pid;      /* a process that maps it (DSO_JIT: the process) */
	uint64_t start_va; /* where that process maps it: names its entry in map_files */
	uint64_t end_va;
	int fd; /* the running file when it was opened while mapped, else -1; owned. DSO_JIT: the
		 * process's own /tmp, where its perf map is */
	uint32_t ns_pid, user; /* with the fd of a DSO_JIT: the process's pid in its own pid
				* namespace, and its effective user */
	uint64_t forked_ns;    /* with that fd too: CLOCK_BOOTTIME of the process's beginning */
	uint64_t began_ns;     /* DSO_JIT: the exec or fork that the program came with, and … */
	uint64_t ended_ns;     /* … the one that ended it, as events tell; 0: none was seen */
	bool deleted;
};

struct dso_table {
	ARRAY(struct dso *) dsos; /* by id; the first four are always there */
	struct hashmap map;
};

struct mapping {
	uint64_t start_va, end_va, pgoff_bytes;
	uint32_t dso;
};

/* Mappings of one address space: sorted, disjoint; shared between processes until one changes. */
struct map_set;

struct thread {
	uint32_t pid, tid;
	char *comm; /* as received, unescaped; "" when unknown */
};

struct process;

struct process_table {
	struct dso_table dsos;
	struct hashmap by_pid, by_tid;
	ARRAY(struct process *) processes;
	ARRAY(struct thread *) threads;
};

int process_table_init(struct process_table *t);
void process_table_release(struct process_table *t);

/* Applies one event (types other than MMAP, COMM, FORK, EXIT are ignored). 0 or -ENOMEM.
 * Executable mappings only; a mapping over an older one replaces that part of it. */
int process_table_apply(struct process_table *t, const struct event *e);

/* The mapping of pid at user_va, or NULL. Borrowed until the next apply. */
const struct mapping *process_table_find(struct process_table *t, uint32_t pid, uint64_t user_va);

/* The current name of a thread (that of its process when it has none of its own; "" unknown). */
const char *process_table_comm(struct process_table *t, uint32_t pid, uint32_t tid);

/* The dso of a file mapping, added if new. Two files with one path (replaced binaries, other
 * mount namespaces) differ by build-id, or by device and inode; executable memory without a file is
 * one dso for each program, known by its pid and when it began. 0 or -ENOMEM. */
int dso_table_add(struct dso_table *t, const struct mmap_event *m, uint64_t began_ns,
		  uint32_t *ret_dso);

/* Gives build-ids that a perf.data header lists by path to the dsos that have none. */
int dso_table_set_build_id(struct dso_table *t, const char *path, const uint8_t *id, size_t size);

/* The part of a path after the last '/', or the whole. */
const char *dso_short_name(const struct dso *d);

#endif
