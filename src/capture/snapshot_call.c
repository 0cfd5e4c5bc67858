/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The call as strace writes it, with files, sockets and locks by their names. Of calls that wait
 * for one of several descriptors, or for a time, that is what is told.
 */
#include "snapshot_call.h"

#include "fd_peers.h"

#include <fcntl.h>
#include <inspect/fd_names.h>
#include <inspect/lock_names.h>
#include <inspect/procfs.h>
#include <inspect/syscall_text.h>
#include <inspect/term.h>
#include <linux/futex.h>
#include <poll.h>
#include <time.h>

enum {
	ROOM_BYTES = 4096,      /* what one argument points to, or its name */
	STRING_BYTES_MAX = 256, /* of a path or another string */
	DATA_BYTES = 32,        /* of what is written */
	ADDRESS_BYTES_MAX = 128,
	FDS_SHOWN = 4,
	LOCKS_SHOWN = 4,
	FDS_MAX = 1 << 16,
};

/* A call with what its arguments point to. */
struct captured {
	struct syscall_event event;
	char room[SYSCALL_ARGS][ROOM_BYTES];
};

static int32_t as_int(uint64_t v)
{
	return (int32_t)v;
}

/* --- names ------------------------------------------------------------------------------------ */

/* Of what has its other end on this host: a pipe or a Unix socket, with a path or without. */
static bool has_peer(const char *name)
{
	return str_starts(name, "pipe:") || str_starts(name, "unix:") ||
	       str_starts(name, "socket:");
}

/* The name of a descriptor into out; the first one of a call is its object. */
static bool name_fd(struct waiting_call *c, int fd, struct strbuf *out)
{
	if (fd < 0 || fd_names_text(c->names->fds, c->task->pid, fd, out))
		return false;
	if (!c->object.n)
		strbuf_puts(&c->object, strbuf_str(out));
	if (!c->peer.n && has_peer(strbuf_str(out)) &&
	    fd_peers_text(c->names->peers, c->task->pid, fd, &c->peer))
		c->peer.failed = true;
	return true;
}

/* `5<TCP 127.0.0.1:80->…>` */
static void add_fd(struct waiting_call *c, int fd)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};

	strbuf_printf(&c->text, "%d", fd);
	if (!name_fd(c, fd, &name))
		return;
	strbuf_putc(&c->text, '<');
	term_escape(&c->text, strbuf_str(&name), name.n);
	strbuf_putc(&c->text, '>');
}

/* --- any call --------------------------------------------------------------------------------- */

static void capture(struct captured *to, unsigned arg, enum syscall_capture_kind kind, size_t n,
		    bool truncated)
{
	to->event.captures[to->event.n_captures++] = (struct syscall_capture){
		.arg = (uint8_t)arg,
		.kind = (uint8_t)kind,
		.truncated = truncated,
		.n_bytes = (uint32_t)n,
		.data = to->room[arg],
	};
}

static void capture_name(struct waiting_call *c, struct captured *to, unsigned arg,
			 enum syscall_capture_kind kind)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};
	size_t n;

	if (!name_fd(c, as_int(c->task->args[arg]), &name))
		return;
	n = MIN(name.n, (size_t)ROOM_BYTES);
	memcpy(to->room[arg], strbuf_str(&name), n);
	capture(to, arg, kind, n, n < name.n);
}

static void capture_string(struct waiting_call *c, struct captured *to, unsigned arg)
{
	char *room = to->room[arg];
	size_t n = 0;

	while (n < STRING_BYTES_MAX &&
	       !remote_memory_read(c->memory, c->task->args[arg] + n, room + n, 1) && room[n])
		n++;
	if (!n)
		return;
	if (!c->object.n)
		strbuf_add(&c->object, room, n);
	capture(to, arg, CAPTURE_MEMORY, n, n == STRING_BYTES_MAX);
}

/* Bytes that an argument of that kind points to, where it is the call that reads them; 0: none. */
static size_t pointed_bytes(const struct waiting_call *c, const struct syscall_info *info,
			    unsigned arg)
{
	static const uint8_t sizes[SYSCALL_ARG_KINDS] = {
		[ARG_TIMESPEC] = 16,    [ARG_TIMEVAL] = 16, [ARG_ITIMERVAL] = 32, [ARG_SIGSET] = 8,
		[ARG_EPOLL_EVENT] = 12, [ARG_INT_IN] = 4,   [ARG_OPEN_HOW] = 24,  [ARG_RLIMIT] = 16,
	};
	uint64_t next = arg + 1 < SYSCALL_ARGS ? c->task->args[arg + 1] : 0;

	if (c->abi == SYSCALL_I386) /* the sizes are others there */
		return 0;
	if (info->args[arg] == ARG_BUF)
		return MIN(next, (uint64_t)DATA_BYTES);
	if (info->args[arg] == ARG_SOCKADDR)
		return MIN(next, (uint64_t)ADDRESS_BYTES_MAX);
	return sizes[info->args[arg]];
}

static void capture_argument(struct waiting_call *c, struct captured *to,
			     const struct syscall_info *info, unsigned arg)
{
	uint64_t v = c->task->args[arg];
	size_t n;

	switch (info->args[arg]) {
	case ARG_FD:
		capture_name(c, to, arg, CAPTURE_NAME);
		break;
	case ARG_DIRFD:
		capture_name(c, to, arg, CAPTURE_FOLDER);
		break;
	case ARG_PATH:
	case ARG_STR:
		capture_string(c, to, arg);
		break;
	default:
		n = pointed_bytes(c, info, arg);
		if (n && v && !remote_memory_read(c->memory, v, to->room[arg], n))
			capture(to, arg, CAPTURE_MEMORY, n,
				info->args[arg] == ARG_BUF && c->task->args[arg + 1] > n);
	}
}

static void add_call(struct waiting_call *c)
{
	const struct syscall_info *info = syscall_info_find(c->name);
	struct captured *to = calloc(1, sizeof(*to));

	if (!to) {
		c->text.failed = true;
		return;
	}
	to->event.pid = c->task->pid;
	to->event.tid = c->task->tid;
	to->event.nr = (uint32_t)c->task->syscall_nr & ~SYSCALL_X32_BIT;
	to->event.abi = (uint8_t)c->abi;
	to->event.end = SYSCALL_IN_FLIGHT;
	memcpy(to->event.args, c->task->args, sizeof(to->event.args));
	for (unsigned i = 0; info && i < SYSCALL_ARGS && info->args[i] != ARG_END; i++)
		capture_argument(c, to, info, i);
	syscall_text_call(&to->event, NULL, &c->text);
	free(to);
}

/* --- several descriptors ---------------------------------------------------------------------- */

static void add_timeout(struct waiting_call *c, uint64_t user_va)
{
	struct timespec t;

	if (!user_va)
		strbuf_puts(&c->text, "; no timeout");
	else if (!remote_memory_read(c->memory, user_va, &t, sizeof(t)))
		strbuf_printf(&c->text, "; timeout %g s",
			      (double)t.tv_sec + (double)t.tv_nsec / 1e9);
}

static void add_pollfds(struct waiting_call *c)
{
	uint64_t n = (uint32_t)c->task->args[1], i;
	struct pollfd fd;

	for (i = 0; i < n && i < FDS_SHOWN; i++) {
		uint64_t va = c->task->args[0] + i * sizeof(fd);

		if (remote_memory_read(c->memory, va, &fd, sizeof(fd)))
			break;
		strbuf_puts(&c->text, i ? ", " : "");
		add_fd(c, fd.fd);
	}
	if (i < n)
		strbuf_printf(&c->text, "%s… %llu in all", i ? ", " : "", (unsigned long long)n);
	if (str_eq(c->name, "ppoll"))
		add_timeout(c, c->task->args[2]);
	else if (as_int(c->task->args[2]) < 0)
		strbuf_puts(&c->text, "; no timeout");
	else
		strbuf_printf(&c->text, "; timeout %g s", as_int(c->task->args[2]) / 1e3);
}

/* The sets of select: those to read, to write, and for exceptions. */
static void add_fdset(struct waiting_call *c, const char *name, uint64_t user_va)
{
	uint64_t word = 0, n = (uint32_t)c->task->args[0];
	unsigned shown = 0;

	for (uint64_t fd = 0; user_va && fd < n && fd < FDS_MAX; fd++) {
		if (fd % 64 == 0 &&
		    remote_memory_read(c->memory, user_va + fd / 8, &word, sizeof(word)))
			return;
		if (!(word >> fd % 64 & 1))
			continue;
		if (shown == FDS_SHOWN) {
			strbuf_puts(&c->text, ", …");
			return;
		}
		if (!shown)
			strbuf_printf(&c->text, "%s%s ",
				      str_ends(strbuf_str(&c->text), "(") ? "" : "; ", name);
		strbuf_puts(&c->text, shown++ ? ", " : "");
		add_fd(c, (int)fd);
	}
}

static void add_select(struct waiting_call *c)
{
	static const char *const names[] = {"read", "write", "except"};

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		add_fdset(c, names[i], c->task->args[1 + i]);
	if (str_eq(c->name, "pselect6"))
		add_timeout(c, c->task->args[4]);
}

/* --- futexes ---------------------------------------------------------------------------------- */

/* The name of the lock at an address, raw. */
static void name_lock(const struct waiting_call *c, uint64_t user_va, struct strbuf *out)
{
	uint64_t object_va;

	if (snapshot_is_locked(c->names->work, c->task->pid))
		strbuf_printf(out, "0x%llx", (unsigned long long)user_va);
	else if (lock_names_object(c->names->locks, c->task->pid, user_va, out, &object_va))
		out->failed = true;
}

/* struct futex_waitv (include/uapi/linux/futex.h), 5.16. */
struct futex_waiter {
	uint64_t value, user_va;
	uint32_t flags, reserved;
};

/* All locks that futex_waitv(2) waits at; the first is the call's object. */
static void add_futexes(struct waiting_call *c)
{
	uint64_t n = (uint32_t)c->task->args[1], i;

	for (i = 0; i < n && i < LOCKS_SHOWN; i++) {
		CLEANUP(strbuf_release) struct strbuf name = {0};
		struct futex_waiter waiter;

		if (remote_memory_read(c->memory, c->task->args[0] + i * sizeof(waiter), &waiter,
				       sizeof(waiter)))
			break;
		name_lock(c, waiter.user_va, &name);
		strbuf_puts(&c->text, i ? ", " : "");
		term_escape(&c->text, strbuf_str(&name), name.n);
		c->text.failed |= name.failed;
		if (!i)
			strbuf_puts(&c->object, strbuf_str(&name));
	}
	if (i < n)
		strbuf_printf(&c->text, "%s%llu futexes%s", i ? ", … " : "", (unsigned long long)n,
			      i ? " in all" : "");
	if (n > 1 && c->object.n)
		strbuf_printf(&c->object, " or %llu more", (unsigned long long)n - 1);
}

/* With the lock's name in the place of its address. */
static void add_futex(struct waiting_call *c)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const struct task_state *t = c->task;
	char address[32];
	size_t n = (size_t)snprintf(address, sizeof(address), "0x%llx",
				    (unsigned long long)t->args[0]);
	const char *at;

	name_lock(c, t->args[0], &c->object);
	add_call(c);
	at = strstr(strbuf_str(&c->text), address);
	if (!at)
		return;
	strbuf_add(&text, c->text.v, (size_t)(at - c->text.v));
	term_escape(&text, strbuf_str(&c->object), c->object.n);
	strbuf_puts(&text, at + n);
	strbuf_clear(&c->text);
	strbuf_puts(&c->text, strbuf_str(&text));
}

/* --- time ------------------------------------------------------------------------------------- */

/* CLOCK_REALTIME or CLOCK_MONOTONIC; in another time namespace the second is another one. */
static void add_time_left(struct waiting_call *c)
{
	const uint64_t *args = c->task->args;
	struct timespec until, now;
	double left;

	if (clock_gettime((clockid_t)args[0], &now) ||
	    remote_memory_read(c->memory, args[2], &until, sizeof(until)))
		return;
	left = (double)(until.tv_sec - now.tv_sec) + (double)(until.tv_nsec - now.tv_nsec) / 1e9;
	strbuf_printf(&c->text, ": %.3g s left", MAX(left, 0.0));
}

static bool is_until(const struct waiting_call *c)
{
	return str_eq(c->name, "clock_nanosleep") && c->task->args[1] & TIMER_ABSTIME &&
	       c->task->args[0] <= CLOCK_MONOTONIC && c->abi != SYSCALL_I386;
}

/* With the process's name, where the target numbers processes as we do. */
static void add_child(struct waiting_call *c)
{
	CLEANUP(strbuf_release) struct strbuf comm = {0};
	pid_t pid = as_int(c->task->args[0]);

	if (pid <= 0 || c->task->own_tid != c->task->tid || proc_comm_read(pid, 0, &comm))
		return;
	strbuf_puts(&c->text, ": ");
	term_escape(&c->text, strbuf_str(&comm), comm.n);
}

/* --- all of them ------------------------------------------------------------------------------ */

void waiting_call_describe(struct waiting_call *c)
{
	static const struct {
		const char *name;
		void (*add)(struct waiting_call *c);
		bool whole; /* with the name and brackets */
	} special[] = {
		{"futex", add_futex, true},      {"poll", add_pollfds, false},
		{"ppoll", add_pollfds, false},   {"select", add_select, false},
		{"pselect6", add_select, false}, {"futex_waitv", add_futexes, false},
	};
	size_t i = 0;

	while (i < ARRAY_SIZE(special) && !str_eq(c->name, special[i].name))
		i++;
	if (i == ARRAY_SIZE(special) || c->abi == SYSCALL_I386) {
		add_call(c);
	} else if (special[i].whole) {
		special[i].add(c);
	} else {
		strbuf_printf(&c->text, "%s(", c->name);
		special[i].add(c);
		strbuf_putc(&c->text, ')');
	}
	if (is_until(c))
		add_time_left(c);
	if (str_eq(c->name, "wait4"))
		add_child(c);
}
