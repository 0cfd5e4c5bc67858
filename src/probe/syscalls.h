/* SPDX-License-Identifier: BSD-2-Clause */
/* What is open while system calls are counted. syscalls.c fills it, syscalls_read.c reads. */
#ifndef PROBE_SYSCALLS_H
#define PROBE_SYSCALLS_H

#include "core.h"
#include "row_reader.h"

#include <inspect/syscall_counts.h>
#include <lib/stacks.abi.h>

struct syscall_counts {
	struct probe_core core;
	struct syscalls *skeleton;
	struct syscalls_setup setup;
	struct syscalls_shared *shared; /* with the program */
	enum syscall_attach attached;
	bool no_functions; /* to attach to */
	uint64_t started_ns;
	uint64_t stopped_ns;         /* 0: it runs */
	uint32_t n_possible;         /* CPUs */
	struct syscalls_row *by_cpu; /* room for one row of every CPU */
	struct row_reader reader;
};

#endif
