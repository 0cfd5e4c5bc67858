/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A system call as one line of strace's shape:
 *
 *	[4711 python3] openat(AT_FDCWD, "/etc/hostname", O_RDONLY|O_CLOEXEC) = 3 <0.000021>
 *
 * What a pointer pointed to comes with the event as captures, taken when the call was made; without
 * one the pointer is shown as a number. Every byte of the target is escaped here.
 */
#ifndef INSPECT_SYSCALL_TEXT_H
#define INSPECT_SYSCALL_TEXT_H

#include <inspect/strbuf.h>
#include <inspect/syscall_event.h>

/* The names of arguments of calls that the tables don't know, from tracefs. */
struct syscall_formats;
int syscall_formats_new(const char *tracefs, struct syscall_formats **ret); /* "": none. -ENOMEM */
void syscall_formats_free(struct syscall_formats *f);
static inline void syscall_formats_freep(struct syscall_formats **f)
{
	syscall_formats_free(*f);
}

enum syscall_time { SYSCALL_TIME_NONE, SYSCALL_TIME_WALL, SYSCALL_TIME_RELATIVE };

struct syscall_text_options {
	enum syscall_time time;
	uint64_t first_ns;               /* SYSCALL_TIME_RELATIVE: what it counts from */
	int64_t wall_offset_ns;          /* SYSCALL_TIME_WALL: CLOCK_REALTIME - CLOCK_MONOTONIC */
	bool with_duration;              /* " <0.000021>" */
	struct syscall_formats *formats; /* or NULL */
};

/* Appends the line without its newline. 0 or -ENOMEM. */
int syscall_text_line(const struct syscall_event *e, const struct syscall_text_options *o,
		      struct strbuf *out);

/* Appends when a call began, as the options have it, with a space; CLOCK_MONOTONIC. */
void syscall_text_time(uint64_t start_ns, const struct syscall_text_options *o, struct strbuf *out);

/* Appends `openat(AT_FDCWD, …)` alone, and ` = 3` alone. */
void syscall_text_call(const struct syscall_event *e, struct syscall_formats *formats,
		       struct strbuf *out);
void syscall_text_result(const struct syscall_event *e, struct strbuf *out);

/* The path of the first ARG_PATH with its folder before it when it is relative, raw; false when the
 * call has none, or it was not captured. */
bool syscall_text_path(const struct syscall_event *e, struct strbuf *out);

#endif
