/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaching to system calls. To a few that are wanted: the kernel's functions of them (fentry,
 * fexit) where it has trampolines, else their own tracepoints; to all: tp_btf. raw_tp would come
 * next, but wherever these programs load there is BTF, and so tp_btf.
 */
#ifndef PROBE_CALL_POINTS_H
#define PROBE_CALL_POINTS_H

#include "core.h"

#include <inspect/syscall_attach.h>
#include <inspect/syscalls.h>

/* The programs of an object that system calls run, beside those of lib/call_functions.bpf.h. */
struct probe_call_programs {
	struct bpf_object *object;
	struct bpf_program *all_enter, *all_exit; /* all calls, loaded in any case */
	struct bpf_program *one_enter, *one_exit; /* a call's own tracepoints */
	bool no_functions; /* the end of calls that are in progress now must be seen */
};

/* How they will be attached, before the load: programs that will not be are not loaded. only NULL:
 * all calls. */
enum syscall_attach probe_calls_choose(const struct probe_call_programs *p,
				       const struct syscall_set *only, const struct host *h);

/* Attaches them, or those of all calls where that fails, which *how then says. */
int probe_attach_calls(struct probe_core *c, const struct probe_call_programs *p,
		       const struct syscall_set *only, enum syscall_attach *how, struct diag *d);

#endif
