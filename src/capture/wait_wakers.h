/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of those who end waits, while the measurement runs: by the serials that rows come with. */
#ifndef CAPTURE_WAIT_WAKERS_H
#define CAPTURE_WAIT_WAKERS_H

#include <inspect/waits.h>

struct wait_wakers {
	ARRAY(pid_t) tids; /* by serial; 0: not seen yet */
};

void wait_wakers_release(struct wait_wakers *k);

/* A row tells whose its serial is. 0 or -ENOMEM. */
int wait_wakers_note(struct wait_wakers *k, uint32_t serial, pid_t tid);

/* The label "woken by NAME" of a key's waker. 0 or -ENOMEM. */
int wait_wakers_label(const struct wait_wakers *k, struct waits *w, const struct offcpu_wait *wait,
		      uint32_t *ret_label);

#endif
