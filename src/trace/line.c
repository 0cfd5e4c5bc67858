/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/term.h>
#include <poll.h>
#include <time.h>

#include "flags.h"
#include "text.h"

static const struct syscall_info *info_of(const struct syscall_event *e, const char **ret_name,
					  char buf[SYSCALL_NAME_BYTES])
{
	*ret_name = syscall_name((enum syscall_abi)e->abi, e->nr, buf);
	return syscall_info_find(*ret_name);
}

/* What tracefs calls them: "key=0x5, value=1". */
static void named_args(const struct syscall_event *e, const struct format_arg *args, unsigned n,
		       struct strbuf *out)
{
	for (unsigned i = 0; i < n; i++) {
		strbuf_puts(out, i ? ", " : "");
		term_escape(out, args[i].name, strlen(args[i].name));
		strbuf_putc(out, '=');
		if (args[i].is_pointer)
			pointer_text(e->args[i], out);
		else if (args[i].is_signed)
			strbuf_printf(out, "%d", (int)e->args[i]);
		else
			strbuf_printf(out, e->args[i] ? "%#llx" : "%llu",
				      (unsigned long long)e->args[i]);
	}
}

static void unknown_args(const struct syscall_event *e, const char *name,
			 struct syscall_formats *formats, struct strbuf *out)
{
	struct format_arg args[SYSCALL_ARGS];
	unsigned n = e->abi == SYSCALL_I386 ? 0 : format_args(formats, name, args);

	if (n) {
		named_args(e, args, n, out);
		return;
	}
	for (unsigned i = 0; i < SYSCALL_ARGS; i++)
		strbuf_printf(out, "%s%#llx", i ? ", " : "", (unsigned long long)e->args[i]);
}

void syscall_text_call(const struct syscall_event *e, struct syscall_formats *formats,
		       struct strbuf *out)
{
	char buf[SYSCALL_NAME_BYTES];
	const char *name;
	const struct syscall_info *info = info_of(e, &name, buf);
	struct arg_text a = {.e = e, .out = out};
	uint8_t shown;
	bool first = true;

	strbuf_puts(out, name);
	strbuf_puts(out, syscall_abi_suffix((enum syscall_abi)e->abi));
	strbuf_putc(out, '(');
	if (!info)
		unknown_args(e, name, formats, out);
	shown = info ? args_shown(e, info->args) : 0;
	for (unsigned i = 0; i < SYSCALL_ARGS; i++) {
		if (!(shown >> i & 1))
			continue;
		a.kinds = info->args;
		a.i = i;
		a.v = e->args[i];
		strbuf_puts(out, first ? "" : ", ");
		first = false;
		arg_text(&a);
	}
	strbuf_putc(out, ')');
}

/* --- the result ------------------------------------------------------------------------------- */

/* strace's: what the kernel does with the code that it gives to itself. */
static const char *restart_note(int number)
{
	static const struct {
		int number;
		const char *note;
	} notes[] = {
		{512, " (To be restarted if SA_RESTART is set)"},
		{513, " (To be restarted)"},
		{514, " (To be restarted if no handler)"},
		{516, " (Interrupted by signal)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
		if (notes[i].number == number)
			return notes[i].note;
	return NULL;
}

static void failure_text(int number, struct strbuf *out)
{
	const char *name = errno_name(number), *note = restart_note(number);

	if (note)
		strbuf_printf(out, " = ? %s%s", name ? name : "", note);
	else if (name)
		strbuf_printf(out, " = -1 %s (%s)", name, strerror(number));
	else
		strbuf_printf(out, " = -%d", number);
}

static void value_text(const struct syscall_event *e, const struct syscall_info *info,
		       struct strbuf *out)
{
	unsigned long long v = (unsigned long long)e->result;

	if (info && info->args[1] == ARG_FCNTL && (int)e->args[1] == F_GETFL) {
		strbuf_printf(out, "%#llx (flags ", v);
		flags_text(flag_table_of(ARG_OPEN), v, out);
		strbuf_putc(out, ')');
		return;
	}
	switch (info ? info->result : ARG_LONG) {
	case ARG_FD:
		fd_text(e, SYSCALL_RESULT, v, out);
		break;
	case ARG_PTR:
	case ARG_HEX:
		strbuf_printf(out, v ? "0x%llx" : "%llu", v);
		break;
	case ARG_OCTAL:
		strbuf_printf(out, "%#03llo", v);
		break;
	default:
		strbuf_printf(out, "%lld", (long long)e->result);
	}
}

/* Of poll's descriptors those that had something. */
static void poll_note(const struct syscall_event *e, unsigned arg, struct strbuf *out)
{
	const struct syscall_capture *c = capture_find(e, arg, CAPTURE_MEMORY, 0);
	bool first = true;
	struct pollfd p;

	for (size_t at = 0; c && at + sizeof(p) <= c->n_bytes; at += sizeof(p)) {
		memcpy(&p, (const char *)c->data + at, sizeof(p));
		if (!p.revents)
			continue;
		strbuf_printf(out, "%s{fd=%d, revents=", first ? " ([" : ", ", p.fd);
		flags_text(&poll_events_table, (uint16_t)p.revents, out);
		strbuf_putc(out, '}');
		first = false;
	}
	strbuf_puts(out, first ? "" : "])");
}

/* What strace adds behind the result. */
static void result_note(const struct syscall_event *e, const struct syscall_info *info,
			struct strbuf *out)
{
	uint8_t kind = info ? info->args[0] : ARG_END;
	bool selects = info && info->args[1] == ARG_FDSET;

	if (kind == ARG_POLLFDS && e->result > 0)
		poll_note(e, 0, out);
	else if ((kind == ARG_POLLFDS || selects) && !e->result)
		strbuf_puts(out, " (Timeout)");
}

static void seconds_text(uint64_t ns, struct strbuf *out)
{
	strbuf_printf(out, "%llu.%06llu", (unsigned long long)(ns / NSEC_PER_SEC),
		      (unsigned long long)(ns % NSEC_PER_SEC / NSEC_PER_USEC));
}

void syscall_text_result(const struct syscall_event *e, struct strbuf *out)
{
	char buf[SYSCALL_NAME_BYTES];
	const char *name;
	const struct syscall_info *info = info_of(e, &name, buf);

	if (e->end == SYSCALL_NEVER_RETURNS || e->end == SYSCALL_THREAD_ENDED) {
		strbuf_puts(out, " = ?");
	} else if (e->end == SYSCALL_IN_FLIGHT) {
		strbuf_puts(out, e->before ? " <in flight for more than " : " <in flight for ");
		seconds_text(e->duration_ns, out);
		strbuf_puts(out, " s>");
	} else if (call_failed(e)) {
		failure_text((int)-e->result, out);
	} else {
		strbuf_puts(out, " = ");
		value_text(e, info, out);
		result_note(e, info, out);
	}
}

/* --- the line --------------------------------------------------------------------------------- */

void syscall_text_time(uint64_t start_ns, const struct syscall_text_options *o, struct strbuf *out)
{
	uint64_t wall_ns;
	struct tm tm;
	time_t seconds;

	if (o->time == SYSCALL_TIME_RELATIVE) {
		uint64_t ns = start_ns > o->first_ns ? start_ns - o->first_ns : 0;

		strbuf_printf(out, "%6llu.%06llu ", (unsigned long long)(ns / NSEC_PER_SEC),
			      (unsigned long long)(ns % NSEC_PER_SEC / NSEC_PER_USEC));
		return;
	}
	if (o->time != SYSCALL_TIME_WALL)
		return;
	wall_ns = start_ns + (uint64_t)o->wall_offset_ns;
	seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	if (!localtime_r(&seconds, &tm))
		return;
	strbuf_printf(out, "%02d:%02d:%02d.%06llu ", tm.tm_hour, tm.tm_min, tm.tm_sec,
		      (unsigned long long)(wall_ns % NSEC_PER_SEC / NSEC_PER_USEC));
}

int syscall_text_line(const struct syscall_event *e, const struct syscall_text_options *o,
		      struct strbuf *out)
{
	syscall_text_time(e->start_ns, o, out);
	strbuf_printf(out, "[%d", e->tid);
	if (e->own_tid && e->own_tid != e->tid)
		strbuf_printf(out, "(%d)", e->own_tid);
	strbuf_putc(out, ' ');
	term_escape(out, e->comm, strnlen(e->comm, sizeof(e->comm)));
	strbuf_puts(out, "] ");
	syscall_text_call(e, o->formats, out);
	syscall_text_result(e, out);
	if (o->with_duration && e->end == SYSCALL_RETURNED) {
		strbuf_puts(out, " <");
		seconds_text(e->duration_ns, out);
		strbuf_putc(out, '>');
	}
	return out->failed ? -ENOMEM : 0;
}

bool syscall_text_path(const struct syscall_event *e, struct strbuf *out)
{
	char buf[SYSCALL_NAME_BYTES];
	const char *name;
	const struct syscall_info *info = info_of(e, &name, buf);

	for (unsigned i = 0; info && i < SYSCALL_ARGS; i++) {
		const struct syscall_capture *path, *folder;

		if (info->args[i] != ARG_PATH)
			continue;
		path = capture_find(e, i, CAPTURE_MEMORY, 0);
		folder = capture_find(e, i, CAPTURE_FOLDER, 0);
		if (!path)
			return false;
		if (folder) {
			strbuf_add(out, folder->data, folder->n_bytes);
			if (!folder->n_bytes || ((char *)folder->data)[folder->n_bytes - 1] != '/')
				strbuf_putc(out, '/');
		}
		strbuf_add(out, path->data, strnlen(path->data, path->n_bytes));
		return true;
	}
	return false;
}
