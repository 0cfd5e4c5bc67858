/* SPDX-License-Identifier: BSD-2-Clause */
/* How long mutexes are held (bpf/holds.bpf.c), by the C library's own USDT probes. */
#ifndef INSPECT_HOLD_COUNTS_H
#define INSPECT_HOLD_COUNTS_H

#include <holds.abi.h>
#include <inspect/diag.h>
#include <inspect/host.h>
#include <inspect/probe_target.h>
#include <inspect/syscall_table.h>

struct hold_counts;

/* Loads; nothing counts yet. On failure the diag explains and nothing stays. */
int hold_counts_new(const struct probe_target *target, const struct host *h,
		    struct hold_counts **ret, struct diag *d);
void hold_counts_free(struct hold_counts *c);

/* Attaches to a file's probes, of every process that maps it. -ENOENT: it has none. */
int hold_counts_attach(struct hold_counts *c, const char *path);

int hold_counts_start(struct hold_counts *c); /* 0 or -errno */
void hold_counts_stop(struct hold_counts *c);
bool hold_counts_alive(const struct hold_counts *c);

/* Totals up to now into an empty table: pid and address (`inode`) are the key, what is held now is
 * in flight. Its own losses stay 0. 0 or -errno. */
int hold_counts_read(struct hold_counts *c, struct syscall_table *ret);
void hold_counts_losses(const struct hold_counts *c, struct holds_shared *ret);

#endif
