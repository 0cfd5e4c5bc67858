/* SPDX-License-Identifier: BSD-2-Clause */
/* Who holds the lock that a thread waits for, where memory says so. */
#ifndef CAPTURE_SNAPSHOT_HOLDERS_H
#define CAPTURE_SNAPSHOT_HOLDERS_H

#include "snapshot_call.h"

/* While the call is waited in, whose object has its name: fills owner and lock_va where they are
 * certain; of what may be a mutex or a rwlock, what it would say. */
void snapshot_holder(const struct waiting_call *c, struct snapshot_wait *wait,
		     struct snapshot_guess *ret_guess);

/* When stacks have names: what may be a lock is one if the thread is in its functions. */
void snapshot_confirm_holders(struct snapshot_work *w);

#endif
