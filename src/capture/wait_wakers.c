/* SPDX-License-Identifier: BSD-2-Clause */
#include "wait_wakers.h"

#include <inspect/procfs.h>

enum { SERIALS_MAX = 1 << 20, NAME_MAX_BYTES = 64 };

int wait_wakers_init(struct wait_wakers *k)
{
	return intern_init(&k->names);
}

void wait_wakers_release(struct wait_wakers *k)
{
	array_release(&k->threads);
	intern_release(&k->names);
}

/* The name that it has now. 0 (also when it has ended) or -ENOMEM. */
static int read_name(struct wait_wakers *k, pid_t tid, uint32_t *ret_name)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};

	if (proc_comm_read(tid, tid, &name) || !name.n)
		return 0;
	return intern_add(&k->names, name.v, MIN(name.n, (size_t)NAME_MAX_BYTES), ret_name);
}

int wait_wakers_note(struct wait_wakers *k, uint32_t serial, pid_t tid)
{
	int err = 0;

	if (serial >= SERIALS_MAX)
		return 0;
	while (k->threads.n <= serial && !err)
		err = array_push(&k->threads, (struct waker_thread){0});
	if (err || k->threads.v[serial].tid)
		return err;
	k->threads.v[serial].tid = tid;
	return read_name(k, tid, &k->threads.v[serial].name);
}

int wait_wakers_label(struct wait_wakers *k, struct waits *w, uint32_t waker,
		      const struct stack_record *stack, uint32_t *ret_label)
{
	/* Of whom nothing has come yet: its stack was first seen of somebody like it. */
	struct waker_thread other = {.tid = stack ? (pid_t)stack->tid : 0}, *t = &other;
	char text[NAME_MAX_BYTES + 16];
	int err = 0;

	if (waker == OFFCPU_WAKER_IRQ)
		return waits_label(w, "woken by an interrupt", WAIT_RUNNING, ret_label);
	if (waker & OFFCPU_WAKER_OTHER)
		other.tid = (pid_t)(waker & ~OFFCPU_WAKER_OTHER);
	else if (waker < k->threads.n && k->threads.v[waker].tid)
		t = &k->threads.v[waker];
	if (t->tid)
		err = read_name(k, t->tid, &t->name);
	if (err)
		return err;
	if (!t->name)
		return waits_label(w, "woken by one that has ended", WAIT_RUNNING, ret_label);
	snprintf(text, sizeof(text), "woken by %s", intern_str(&k->names, t->name));
	return waits_label(w, text, WAIT_RUNNING, ret_label);
}
