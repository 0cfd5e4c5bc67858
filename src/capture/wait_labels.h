/* SPDX-License-Identifier: BSD-2-Clause */
/* What threads wait for, as text: from the system call and its argument at the switch. */
#ifndef CAPTURE_WAIT_LABELS_H
#define CAPTURE_WAIT_LABELS_H

#include <inspect/waits.h>

struct wait_labels;

int wait_labels_new(struct wait_labels **ret); /* 0 or -ENOMEM */
void wait_labels_free(struct wait_labels *l);

/* Which argument the program has to keep of each call, into OFFCPU_SYSCALLS bytes. */
void wait_labels_arguments(uint8_t *ret);

/* The label of what a key says, in w. Descriptors and addresses are looked up in the process now,
 * once for each; descriptors that are gone by what the probe has kept. 0 or -ENOMEM. */
int wait_labels_find(struct wait_labels *l, const struct offcpu_probe *probe, struct waits *w,
		     const struct offcpu_key *key, uint32_t pid, uint32_t *ret_label);

#endif
