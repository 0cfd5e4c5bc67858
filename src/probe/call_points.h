/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching to system calls: to those few that are wanted, else to all. */
#ifndef PROBE_CALL_POINTS_H
#define PROBE_CALL_POINTS_H

#include "core.h"

#include <inspect/syscall_attach.h>
#include <inspect/syscalls.h>

/* The programs of an object that system calls run. */
struct probe_call_programs {
	struct bpf_program *one_enter, *one_exit; /* a call's own tracepoints */
};

/* How they will be attached, before the load: programs that will not be are not loaded. only NULL:
 * all calls. */
enum syscall_attach probe_calls_choose(const struct probe_call_programs *p,
				       const struct syscall_set *only, const struct host *h);

/* Attaches them, or on_sys_enter and on_sys_exit, which *how then says. */
int probe_attach_calls(struct probe_core *c, const struct probe_call_programs *p,
		       const struct syscall_set *only, enum syscall_attach *how, struct diag *d);

#endif
