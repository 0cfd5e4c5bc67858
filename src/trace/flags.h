/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers with names: what the kernel's exported headers call them. */
#ifndef TRACE_FLAGS_H
#define TRACE_FLAGS_H

#include <inspect/strbuf.h>
#include <inspect/syscalls.h>

struct flag_name {
	uint64_t value;
	const char *name;
};

/* One of `choices` in the bits of `choice_mask`, the others from `bits`. A name of several bits
 * stands before those of its parts. */
struct flag_table {
	uint64_t choice_mask;
	const struct flag_name *choices;
	const struct flag_name *bits; /* both end with a NULL name */
	const char *zero;             /* for 0 when no choice is named so; NULL: "0" */
	bool is_signed;
};

/* NULL: that kind has no table. */
const struct flag_table *flag_table_of(enum syscall_arg kind);
extern const struct flag_table poll_events_table, epoll_events_table, file_type_table, uring_table;

/* "O_WRONLY|O_CREAT|0x40000000" */
void flags_text(const struct flag_table *t, uint64_t value, struct strbuf *out);

/* The name of one value, or NULL. */
const char *flag_choice(const struct flag_name *choices, uint64_t value);

extern const struct flag_name ioctl_names[], sockopt_names[], tcp_option_names[];

#endif
