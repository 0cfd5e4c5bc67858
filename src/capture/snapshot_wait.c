/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thread waits for: the system call that it is in, and who holds the lock. */
#include "fd_peers.h"
#include "snapshot_holders.h"

#include <inspect/fd_names.h>
#include <inspect/lock_names.h>
#include <inspect/procfs.h>

/* --- one thread ------------------------------------------------------------------------------- */

static enum syscall_abi abi_of(const struct task_state *t)
{
	if (t->calls_32_bit)
		return SYSCALL_I386;
	return t->syscall_nr & SYSCALL_X32_BIT ? SYSCALL_X32 : SYSCALL_NATIVE;
}

static int keep(struct snapshot *s, const struct strbuf *text, const char **ret)
{
	if (!text->failed && text->n)
		*ret = arena_strndup(&s->arena, strbuf_str(text), text->n);
	return text->failed || !*ret ? -ENOMEM : 0;
}

static int describe(struct waiting_call *c, struct snapshot *s, struct snapshot_thread *t,
		    struct snapshot_guess *ret_guess)
{
	uint32_t nr = (uint32_t)c->task->syscall_nr & ~SYSCALL_X32_BIT;
	char buffer[SYSCALL_NAME_BYTES], call[SYSCALL_NAME_BYTES + 8];
	int err;

	c->name = syscall_name(c->abi, nr, buffer);
	waiting_call_describe(c);
	snprintf(call, sizeof(call), "%s%s", c->name, syscall_abi_suffix(c->abi));
	t->wait.call = arena_strndup(&s->arena, call, strlen(call));
	err = t->wait.call ? keep(s, &c->text, &t->wait.text) : -ENOMEM;
	if (!err && (c->object.n || c->object.failed))
		err = keep(s, &c->object, &t->wait.object);
	if (!err && (c->peer.n || c->peer.failed))
		err = keep(s, &c->peer, &t->wait.peer);
	if (!str_eq(c->name, "futex"))
		t->wait.by_design = syscall_classes(c->abi, nr) & SYSCALL_WAITS;
	else if (!err)
		snapshot_holder(c, &t->wait, ret_guess);
	return err;
}

/* The parent, who has not asked for the exit status. */
static int describe_zombie(struct snapshot *s, struct snapshot_thread *t)
{
	struct proc_stat stat, parent;
	char text[96];
	int n;

	if (t->task.tid != t->task.pid || proc_stat_read(t->task.pid, 0, &stat) || !stat.ppid ||
	    proc_stat_read(stat.ppid, 0, &parent) || stat.num_threads > 1)
		return 0;
	n = snprintf(text, sizeof(text), "%d %.15s, its parent, to ask for its status", stat.ppid,
		     parent.comm);
	t->wait.text = arena_strndup(&s->arena, text, (size_t)n);
	return t->wait.text ? 0 : -ENOMEM;
}

static int wait_of(const struct call_names *names, struct snapshot_work *w,
		   struct snapshot_thread *t, struct snapshot_guess *ret_guess)
{
	struct waiting_call c = {
		.names = names,
		.task = &t->task,
		.memory = &w->session->memory,
		.abi = abi_of(&t->task),
	};
	int err;

	if (t->task.state == 'Z')
		return describe_zombie(w->result, t);
	/* What is stopped has mostly finished its call. */
	if (t->task.syscall_nr < 0 || t->task.is_kernel || strchr("RXTt", t->task.state))
		return 0;
	remote_memory_begin(c.memory, snapshot_is_locked(w, t->task.pid) ? 0 : t->task.pid);
	err = describe(&c, w->result, t, ret_guess);
	strbuf_release(&c.text);
	strbuf_release(&c.object);
	strbuf_release(&c.peer);
	return err;
}

int snapshot_waits(struct snapshot_work *w)
{
	CLEANUP(fd_names_freep) struct fd_names *fds = NULL;
	CLEANUP(fd_peers_freep) struct fd_peers *peers = NULL;
	CLEANUP(lock_names_freep) struct lock_names *locks = NULL;
	int err = fd_names_new(&fds);

	if (!err)
		err = lock_names_new(&locks);
	if (!err)
		err = fd_peers_new(&peers);
	for (size_t i = 0; i < w->result->threads.n && !err; i++) {
		const struct call_names names = {
			.work = w, .fds = fds, .peers = peers, .locks = locks};
		struct snapshot_guess guess = {0};

		err = wait_of(&names, w, &w->result->threads.v[i], &guess);
		if (!err)
			err = array_push(&w->guesses, guess);
	}
	return err;
}
