/* SPDX-License-Identifier: BSD-2-Clause */
/* What system calls are seen by. */
#ifndef INSPECT_SYSCALL_ATTACH_H
#define INSPECT_SYSCALL_ATTACH_H

enum syscall_attach {
	SYSCALL_ATTACH_TP_BTF,   /* the two tracepoints of all calls */
	SYSCALL_ATTACH_ONE_CALL, /* those of each call that is wanted */
	SYSCALL_ATTACH_FUNCTION, /* the kernel's functions of them */
};

/* The same for a reader, with what others pay for it. */
const char *syscall_attach_text(enum syscall_attach how);

#endif
