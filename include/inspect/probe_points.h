/* SPDX-License-Identifier: BSD-2-Clause */
/* From the text of --probe and --if to points and conditions. */
#ifndef INSPECT_PROBE_POINTS_H
#define INSPECT_PROBE_POINTS_H

#include <inspect/probe_counts.h>

/* Whose files a path or a library's name means: the first process of the target (0: none). */
struct probe_where {
	pid_t pid;
	const struct host *host;
};

/* A point that owns its texts; `fields` name what stands for arguments 1… of a tracepoint. */
struct probe_text {
	struct probe_point point;
	char *texts[4];
	char *fields[PROBES_ARGS];
	size_t n_fields;
};
void probe_text_release(struct probe_text *p);

/*
 * `u:PATH:FUNC[+0xOFF]` (a symbol, a C++ name with or without its parameters, or a file offset),
 * `usdt:PATH:PROVIDER:NAME`, `t:CATEGORY:NAME`, `k:FUNC`. PATH is one of the target's root, a
 * library's name that the target has mapped, or a program in $PATH. 0 or -errno, explained.
 */
int probe_point_parse(const char *text, const struct probe_where *where, struct probe_text *ret,
		      struct diag *d);

/* "arg1"…"arg6", "retval", or a field of the tracepoint, which then gets a number. 0: none. */
uint32_t probe_value_number(struct probe_text *p, const char *name, size_t n,
			    const struct host *host);

/* `arg3>4096`, `retval<0`, several with && between. 0 or -EINVAL, explained. */
int probe_conditions_parse(const char *text, struct probe_text *p, const struct host *host,
			   struct probes_setup *setup, struct diag *d);

#endif
