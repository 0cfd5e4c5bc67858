/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls added up in the kernel (bpf/syscalls.bpf.c): a row for each key, with a histogram.
 * What is read are totals since the start; intervals are differences of two readings.
 */
#ifndef INSPECT_SYSCALL_COUNTS_H
#define INSPECT_SYSCALL_COUNTS_H

#include <inspect/diag.h>
#include <inspect/host.h>
#include <inspect/note_list.h>
#include <inspect/probe_target.h>
#include <inspect/syscall_attach.h>
#include <inspect/syscall_table.h>
#include <inspect/syscalls.h>

struct syscall_counts_config {
	struct probe_target target;     /* rows: by lock, user stacks are taken */
	const struct syscall_set *only; /* NULL: all calls */
	uint32_t by;                    /* enum syscalls_by, or'ed */
	bool of_bytes;                  /* histograms of bytes instead of latency */
	bool details;                   /* count what findings are made of */
};

struct syscall_counts;

/* Loads and attaches; nothing counts yet. On failure the diag explains and nothing stays. */
int syscall_counts_new(const struct syscall_counts_config *c, const struct host *h,
		       note_list *notes, struct syscall_counts **ret, struct diag *d);
int syscall_counts_start(struct syscall_counts *c); /* 0 or -errno */
void syscall_counts_stop(struct syscall_counts *c);
void syscall_counts_free(struct syscall_counts *c);

enum syscall_attach syscall_counts_attached(const struct syscall_counts *c);

/* Whether anything of the target is left. */
bool syscall_counts_alive(const struct syscall_counts *c);

/* Totals up to now into an empty table. At least once a minute: slots have 32 bits. 0 or -errno. */
int syscall_counts_read(struct syscall_counts *c, struct syscall_table *ret);

/* What findings are made of alone, appended. 0 or -errno. */
int syscall_counts_details(struct syscall_counts *c, struct syscall_table *ret);

/* The file behind a key (by fd, path or device) as it was called when it was first met:
 * "/etc/hostname", "pipe:[123]", "socket:[77]", "/dev/null"; "" unknown. Appended. */
void syscall_counts_file(const struct syscall_counts *c, const struct syscalls_file_key *file,
			 struct strbuf *out);

/* What a thread that has ended was called, of counts by thread. False: not known. */
bool syscall_counts_ended_name(const struct syscall_counts *c, uint32_t tid,
			       char ret_comm[SYSCALLS_COMM + 1]);

/* A stack by its id, of counts by lock. False: there is none, or it found no room. */
bool syscall_counts_stack(const struct syscall_counts *c, uint64_t id, struct syscalls_stack *ret);

/* The name of a device by its number (the kernel's): that of the node met first. Appended. */
void syscall_counts_device(const struct syscall_counts *c, uint32_t rdev, struct strbuf *out);

#endif
