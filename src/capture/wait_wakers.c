/* SPDX-License-Identifier: BSD-2-Clause */
#include "wait_wakers.h"

#include <inspect/procfs.h>

enum { SERIALS_MAX = 1 << 20, NAME_MAX_BYTES = 64 };

void wait_wakers_release(struct wait_wakers *k)
{
	array_release(&k->tids);
}

int wait_wakers_note(struct wait_wakers *k, uint32_t serial, pid_t tid)
{
	int err = 0;

	if (serial >= SERIALS_MAX)
		return 0;
	while (k->tids.n <= serial && !err)
		err = array_push(&k->tids, 0);
	if (!err)
		k->tids.v[serial] = tid;
	return err;
}

static pid_t tid_of(const struct wait_wakers *k, const struct offcpu_wait *wait)
{
	uint32_t waker = wait->key->waker;

	if (waker & OFFCPU_WAKER_OTHER)
		return (pid_t)(waker & ~OFFCPU_WAKER_OTHER);
	if (waker < k->tids.n && k->tids.v[waker])
		return k->tids.v[waker];
	/* Nothing has come of it yet; its stack was first seen of somebody like it. */
	return wait->waker_stack ? (pid_t)wait->waker_stack->tid : 0;
}

int wait_wakers_label(const struct wait_wakers *k, struct waits *w, const struct offcpu_wait *wait,
		      uint32_t *ret_label)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};
	char text[NAME_MAX_BYTES + 16];
	pid_t tid;

	if (wait->key->waker == OFFCPU_WAKER_IRQ)
		return waits_label(w, "woken by an interrupt", WAIT_RUNNING, ret_label);
	tid = tid_of(k, wait);
	if (!tid || proc_comm_read(tid, tid, &name) || !name.n)
		return waits_label(w, "woken by one that has ended", WAIT_RUNNING, ret_label);
	snprintf(text, sizeof(text), "woken by %.*s", NAME_MAX_BYTES, strbuf_str(&name));
	return waits_label(w, text, WAIT_RUNNING, ret_label);
}
