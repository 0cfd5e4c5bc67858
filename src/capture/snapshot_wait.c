/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thread waits for: the system call that it is in, and who holds the lock. */
#include "fd_peers.h"
#include "snapshot_call.h"

#include <inspect/fd_names.h>
#include <inspect/lock_names.h>
#include <inspect/procfs.h>
#include <linux/futex.h>

/* --- locks ------------------------------------------------------------------------------------ */

/* The thread that has this id in its own pid namespace, in that process first. */
static pid_t find_owner(const struct snapshot *s, pid_t pid, pid_t own_tid)
{
	pid_t other = 0;

	for (size_t i = 0; i < s->threads.n; i++) {
		const struct task_state *t = &s->threads.v[i].task;

		if ((t->own_tid ? t->own_tid : t->tid) != own_tid)
			continue;
		if (t->pid == pid)
			return t->tid;
		other = t->tid;
	}
	return other;
}

/*
 * Who holds it, where the lock says so: futexes of the PI and robust kinds hold the owner's id in
 * their word (Documentation/locking/robust-futex-ABI.rst). glibc's plain mutex waits with
 * FUTEX_WAIT for 2 (lowlevellock.c) on the first word of struct __pthread_mutex_s, whose third is
 * the owner: taken when it is the id of a thread. *ret_va: the mutex.
 */
static pid_t lock_owner(const struct waiting_call *c, uint64_t *ret_va)
{
	struct {
		uint32_t lock, count, owner, users;
	} mutex;
	uint64_t va = c->task->args[0];
	uint32_t command = (uint32_t)c->task->args[1] & (uint32_t)FUTEX_CMD_MASK, id;
	pid_t owner;

	if (remote_memory_read(c->memory, va, &mutex, sizeof(mutex)))
		return 0;
	if (command == FUTEX_LOCK_PI || command == 13 ||
	    (command == FUTEX_WAIT && c->task->args[2] & FUTEX_WAITERS))
		id = mutex.lock & FUTEX_TID_MASK;
	else if (command == FUTEX_WAIT && (uint32_t)c->task->args[2] == 2 && mutex.lock == 2)
		id = mutex.owner;
	else
		return 0;
	owner = id ? find_owner(c->names->work->result, c->task->pid, (pid_t)id) : 0;
	if (owner)
		*ret_va = va;
	return owner;
}

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

static int describe(struct waiting_call *c, struct snapshot *s, struct snapshot_thread *t)
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
		t->wait.owner = lock_owner(c, &t->wait.lock_va);
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
		   struct snapshot_thread *t)
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
	err = describe(&c, w->result, t);
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

		err = wait_of(&names, w, &w->result->threads.v[i]);
	}
	return err ? err : snapshot_find_cycles(w->result);
}
