/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of those who end waits, while the measurement runs: by the serials that rows come with. */
#ifndef CAPTURE_WAIT_WAKERS_H
#define CAPTURE_WAIT_WAKERS_H

#include <inspect/intern.h>
#include <inspect/waits.h>

struct waker_thread {
	pid_t tid;     /* 0: not seen yet */
	uint32_t name; /* the last that was read, in names */
};

struct wait_wakers {
	ARRAY(struct waker_thread) threads; /* by serial */
	struct intern names;
};

int wait_wakers_init(struct wait_wakers *k); /* 0 or -ENOMEM */
void wait_wakers_release(struct wait_wakers *k);

/* A row tells whose its serial is. 0 or -ENOMEM. */
int wait_wakers_note(struct wait_wakers *k, uint32_t serial, pid_t tid);

/* The label "woken by NAME" of who was at `stack` (NULL: not known). 0 or -ENOMEM. */
int wait_wakers_label(struct wait_wakers *k, struct waits *w, uint32_t waker,
		      const struct stack_record *stack, uint32_t *ret_label);

#endif
