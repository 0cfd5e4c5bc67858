/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of what calls take. */
#ifndef BASE_SYSCALL_INFO_H
#define BASE_SYSCALL_INFO_H

#include <inspect/syscalls.h>

extern const struct syscall_info syscall_info_table[];
extern const size_t syscall_info_count;

#endif
