/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs that arguments point to, as the kernel lays them out for 64 bits. */
#include <fcntl.h>
#include <inspect/base.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "flags.h"
#include "text.h"

#define SIGNALS 64

/* struct timespec, struct timeval and their pairs are words. */
struct words {
	int64_t v[4];
};

static void timespec_text(int64_t seconds, int64_t fraction, const char *name, struct strbuf *out)
{
	strbuf_printf(out, "{tv_sec=%lld, %s=%lld}", (long long)seconds, name, (long long)fraction);
}

static bool one_time(const struct arg_text *a, const char *fraction_name)
{
	struct words w;

	if (!capture_copy(a->e, a->i, &w, 16))
		return false;
	timespec_text(w.v[0], w.v[1], fraction_name, a->out);
	return true;
}

static bool timespec(const struct arg_text *a)
{
	return one_time(a, "tv_nsec");
}

static bool timeval(const struct arg_text *a)
{
	return one_time(a, "tv_usec");
}

static bool timespecs(const struct arg_text *a)
{
	struct words w;

	if (!capture_copy(a->e, a->i, &w, sizeof(w)))
		return false;
	strbuf_putc(a->out, '[');
	for (size_t i = 0; i < 4; i += 2) {
		strbuf_puts(a->out, i ? ", " : "");
		if (w.v[i + 1] == UTIME_NOW)
			strbuf_puts(a->out, "UTIME_NOW");
		else if (w.v[i + 1] == UTIME_OMIT)
			strbuf_puts(a->out, "UTIME_OMIT");
		else
			timespec_text(w.v[i], w.v[i + 1], "tv_nsec", a->out);
	}
	strbuf_putc(a->out, ']');
	return true;
}

/* Of timerfd_settime and timer_settime with nanoseconds, of setitimer with microseconds. */
static bool itimer(const struct arg_text *a)
{
	const char *fraction = a->kinds[0] == ARG_ITIMER ? "tv_usec" : "tv_nsec";
	struct words w;

	if (!capture_copy(a->e, a->i, &w, sizeof(w)))
		return false;
	strbuf_puts(a->out, "{it_interval=");
	timespec_text(w.v[0], w.v[1], fraction, a->out);
	strbuf_puts(a->out, ", it_value=");
	timespec_text(w.v[2], w.v[3], fraction, a->out);
	strbuf_putc(a->out, '}');
	return true;
}

static void file_mode(uint32_t mode, struct strbuf *out)
{
	flags_text(&file_type_table, mode & S_IFMT, out);
	strbuf_printf(out, "|%#03o", mode & ~(uint32_t)S_IFMT);
}

static void size_or_device(uint32_t mode, uint64_t size_bytes, uint32_t maj, uint32_t min,
			   const char *prefix, struct strbuf *out)
{
	if (S_ISCHR(mode) || S_ISBLK(mode))
		strbuf_printf(out, ", %srdev=makedev(%#x, %#x), ...}", prefix, maj, min);
	else
		strbuf_printf(out, ", %ssize=%llu, ...}", prefix, (unsigned long long)size_bytes);
}

static bool file_status(const struct arg_text *a)
{
	struct stat st;

	if (!capture_copy(a->e, a->i, &st, sizeof(st)))
		return false;
	strbuf_puts(a->out, "{st_mode=");
	file_mode(st.st_mode, a->out);
	size_or_device(st.st_mode, (uint64_t)st.st_size, major(st.st_rdev), minor(st.st_rdev),
		       "st_", a->out);
	return true;
}

static bool file_status_x(const struct arg_text *a)
{
	struct statx st;

	if (!capture_copy(a->e, a->i, &st, sizeof(st)))
		return false;
	strbuf_puts(a->out, "{stx_mask=");
	flags_text(flag_table_of(ARG_STATX_MASK), st.stx_mask, a->out);
	strbuf_puts(a->out, ", stx_mode=");
	file_mode(st.stx_mode, a->out);
	size_or_device(st.stx_mode, st.stx_size, st.stx_rdev_major, st.stx_rdev_minor, "stx_",
		       a->out);
	return true;
}

static bool polled(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_MEMORY, 0);
	struct pollfd p;

	if (!c)
		return false;
	strbuf_putc(a->out, '[');
	for (size_t at = 0; at + sizeof(p) <= c->n_bytes; at += sizeof(p)) {
		memcpy(&p, (const char *)c->data + at, sizeof(p));
		strbuf_printf(a->out, "%s{fd=%d, events=", at ? ", " : "", p.fd);
		flags_text(&poll_events_table, (uint16_t)p.events, a->out);
		strbuf_putc(a->out, '}');
	}
	strbuf_puts(a->out, c->truncated ? ", ...]" : "]");
	return true;
}

static void epoll_event(const struct epoll_event *event, struct strbuf *out)
{
	strbuf_puts(out, "{events=");
	flags_text(&epoll_events_table, event->events, out);
	strbuf_printf(out, ", data={u32=%u, u64=%llu}}", event->data.u32,
		      (unsigned long long)event->data.u64);
}

static bool epoll_events(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_MEMORY, 0);
	struct epoll_event event;
	bool one = a->kinds[a->i] == ARG_EPOLL_EVENT;

	if (!one && !a->e->result && !a->e->end) {
		strbuf_puts(a->out, "[]");
		return true;
	}
	if (!c)
		return false;
	strbuf_puts(a->out, one ? "" : "[");
	for (size_t at = 0; at + sizeof(event) <= c->n_bytes; at += sizeof(event)) {
		memcpy(&event, (const char *)c->data + at, sizeof(event));
		strbuf_puts(a->out, at ? ", " : "");
		epoll_event(&event, a->out);
	}
	strbuf_puts(a->out, one ? "" : c->truncated ? ", ...]" : "]");
	return true;
}

static bool descriptors(const struct arg_text *a)
{
	int fds[2];

	if (!capture_copy(a->e, a->i, fds, sizeof(fds)))
		return false;
	strbuf_printf(a->out, "[%d, %d]", fds[0], fds[1]);
	return true;
}

static bool fd_set_text(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_MEMORY, 0);
	const uint8_t *bytes = c ? c->data : NULL;
	bool first = true;

	if (!c)
		return false;
	strbuf_putc(a->out, '[');
	for (uint32_t fd = 0; fd < 8 * c->n_bytes && fd < a->e->args[0]; fd++) {
		if (!(bytes[fd / 8] >> (fd % 8) & 1))
			continue;
		strbuf_printf(a->out, first ? "%u" : " %u", fd);
		first = false;
	}
	strbuf_putc(a->out, ']');
	return true;
}

static bool int_text(const struct arg_text *a)
{
	int v;

	if (!capture_copy(a->e, a->i, &v, sizeof(v)))
		return false;
	strbuf_printf(a->out, "[%d]", v);
	return true;
}

static bool long_text(const struct arg_text *a)
{
	int64_t v;

	if (!capture_copy(a->e, a->i, &v, sizeof(v)))
		return false;
	strbuf_printf(a->out, "[%lld]", (long long)v);
	return true;
}

static bool wait_status(const struct arg_text *a)
{
	int v;

	if (!capture_copy(a->e, a->i, &v, sizeof(v)))
		return false;
	if (a->e->result == 0) {
		pointer_text(a->v, a->out);
	} else if (WIFEXITED(v)) {
		strbuf_printf(a->out, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", WEXITSTATUS(v));
	} else if (WIFSIGNALED(v)) {
		strbuf_puts(a->out, "[{WIFSIGNALED(s) && WTERMSIG(s) == ");
		signal_text(WTERMSIG(v), a->out);
		strbuf_puts(a->out, WCOREDUMP(v) ? " && WCOREDUMP(s)}]" : "}]");
	} else if (WIFSTOPPED(v)) {
		strbuf_puts(a->out, "[{WIFSTOPPED(s) && WSTOPSIG(s) == ");
		signal_text(WSTOPSIG(v), a->out);
		strbuf_puts(a->out, "}]");
	} else {
		strbuf_printf(a->out, "[%#x]", v);
	}
	return true;
}

/* "[INT CHLD]"; of a set with most signals those that are missing: "~[KILL STOP]". */
static bool signal_set(const struct arg_text *a)
{
	uint64_t set;
	bool inverted, first = true;

	if (!capture_copy(a->e, a->i, &set, sizeof(set)))
		return false;
	inverted = __builtin_popcountll(set) > SIGNALS * 2 / 3;
	strbuf_puts(a->out, inverted ? "~[" : "[");
	for (int number = 1; number <= SIGNALS; number++) {
		CLEANUP(strbuf_release) struct strbuf name = {0};

		if ((set >> (number - 1) & 1) == inverted)
			continue;
		signal_text(number, &name);
		strbuf_printf(a->out, "%s%s", first ? "" : " ",
			      strbuf_str(&name) + 3 * str_starts(strbuf_str(&name), "SIG"));
		first = false;
	}
	strbuf_putc(a->out, ']');
	return true;
}

static bool clone_args(const struct arg_text *a)
{
	/* struct clone_args, include/uapi/linux/sched.h */
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} c;

	if (!capture_copy(a->e, a->i, &c, sizeof(c)))
		return false;
	strbuf_puts(a->out, "{flags=");
	flags_text(&(struct flag_table){.bits = flag_table_of(ARG_CLONE)->bits}, c.flags, a->out);
	if (c.flags & CLONE_CHILD_CLEARTID || c.child_tid) {
		strbuf_puts(a->out, ", child_tid=");
		pointer_text(c.child_tid, a->out);
	}
	if (c.flags & CLONE_PARENT_SETTID) {
		strbuf_puts(a->out, ", parent_tid=");
		pointer_text(c.parent_tid, a->out);
	}
	strbuf_puts(a->out, ", exit_signal=");
	signal_text((int)c.exit_signal, a->out);
	strbuf_puts(a->out, ", stack=");
	pointer_text(c.stack, a->out);
	strbuf_printf(a->out, ", stack_size=%#llx", (unsigned long long)c.stack_size);
	if (c.flags & CLONE_SETTLS) {
		strbuf_puts(a->out, ", tls=");
		pointer_text(c.tls, a->out);
	}
	strbuf_putc(a->out, '}');
	return true;
}

static bool open_how(const struct arg_text *a)
{
	static const struct flag_name resolve[] = {{RESOLVE_NO_XDEV, "RESOLVE_NO_XDEV"},
						   {RESOLVE_NO_MAGICLINKS, "RESOLVE_NO_MAGICLINKS"},
						   {RESOLVE_NO_SYMLINKS, "RESOLVE_NO_SYMLINKS"},
						   {RESOLVE_BENEATH, "RESOLVE_BENEATH"},
						   {RESOLVE_IN_ROOT, "RESOLVE_IN_ROOT"},
						   {RESOLVE_CACHED, "RESOLVE_CACHED"},
						   {0, NULL}};
	struct open_how how;

	if (!capture_copy(a->e, a->i, &how, sizeof(how)))
		return false;
	strbuf_puts(a->out, "{flags=");
	flags_text(flag_table_of(ARG_OPEN), how.flags, a->out);
	if (how.mode)
		strbuf_printf(a->out, ", mode=%#03llo", (unsigned long long)how.mode);
	strbuf_puts(a->out, ", resolve=");
	flags_text(&(struct flag_table){.bits = resolve}, how.resolve, a->out);
	strbuf_putc(a->out, '}');
	return true;
}

static void one_limit(uint64_t v, struct strbuf *out)
{
	if (v == ~0ULL)
		strbuf_puts(out, "RLIM64_INFINITY");
	else if (v > 1024 && v % 1024 == 0)
		strbuf_printf(out, "%llu*1024", (unsigned long long)v / 1024);
	else
		strbuf_printf(out, "%llu", (unsigned long long)v);
}

static bool limits(const struct arg_text *a)
{
	uint64_t v[2];

	if (!capture_copy(a->e, a->i, v, sizeof(v)))
		return false;
	strbuf_puts(a->out, "{rlim_cur=");
	one_limit(v[0], a->out);
	strbuf_puts(a->out, ", rlim_max=");
	one_limit(v[1], a->out);
	strbuf_putc(a->out, '}');
	return true;
}

static bool address(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_MEMORY, 0);

	if (!c)
		return false;
	sockaddr_text(c->data, c->n_bytes, a->out);
	return true;
}

/* The fourth argument of futex is a timeout for those operations that wait. */
static bool futex_value(const struct arg_text *a)
{
	static const uint32_t waits = 1 << 0 | 1 << 6 | 1 << 9 | 1 << 11 | 1 << 13;

	if (waits >> (a->e->args[1] & 0x1f) & 1)
		return timespec(a);
	strbuf_printf(a->out, "%u", (unsigned)a->v);
	return true;
}

/* struct futex_waitv (include/uapi/linux/futex.h). */
static bool futex_waiters(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_MEMORY, 0);
	struct {
		uint64_t value, user_va;
		uint32_t flags, reserved;
	} w;

	if (!c)
		return false;
	strbuf_putc(a->out, '[');
	for (size_t at = 0; at + sizeof(w) <= c->n_bytes; at += sizeof(w)) {
		memcpy(&w, (const char *)c->data + at, sizeof(w));
		strbuf_printf(a->out, "%s{val=0x%llx, uaddr=0x%llx, flags=", at ? ", " : "",
			      (unsigned long long)w.value, (unsigned long long)w.user_va);
		flags_text(flag_table_of(ARG_FUTEX2), w.flags, a->out);
		strbuf_putc(a->out, '}');
	}
	strbuf_puts(a->out, c->truncated ? ", ...]" : "]");
	return true;
}

bool struct_text(const struct arg_text *a)
{
	static bool (*const printers[SYSCALL_ARG_KINDS])(const struct arg_text *) = {
		[ARG_SOCKADDR] = address,
		[ARG_SOCKADDR_OUT] = address,
		[ARG_SOCKLEN_OUT] = int_text,
		[ARG_TIMESPEC] = timespec,
		[ARG_TIMESPEC_OUT] = timespec,
		[ARG_TIMESPECS] = timespecs,
		[ARG_TIMEVAL] = timeval,
		[ARG_TIMEVAL_OUT] = timeval,
		[ARG_ITIMERVAL] = itimer,
		[ARG_STAT_OUT] = file_status,
		[ARG_STATX_OUT] = file_status_x,
		[ARG_POLLFDS] = polled,
		[ARG_EPOLL_EVENT] = epoll_events,
		[ARG_EPOLL_EVENTS_OUT] = epoll_events,
		[ARG_FDS_OUT] = descriptors,
		[ARG_FDSET] = fd_set_text,
		[ARG_INT_IN] = int_text,
		[ARG_INT_OUT] = int_text,
		[ARG_LONG_OUT] = long_text,
		[ARG_SIZE_OUT] = long_text,
		[ARG_STATUS_OUT] = wait_status,
		[ARG_SIGSET] = signal_set,
		[ARG_SIGSET_OUT] = signal_set,
		[ARG_CLONE_ARGS] = clone_args,
		[ARG_OPEN_HOW] = open_how,
		[ARG_RLIMIT] = limits,
		[ARG_RLIMIT_OUT] = limits,
		[ARG_FUTEX_VALUE] = futex_value,
		[ARG_FUTEX_WAITERS] = futex_waiters,
		[ARG_FUTEX_PAIR] = futex_waiters,
	};

	return printers[a->kinds[a->i]] && printers[a->kinds[a->i]](a);
}
