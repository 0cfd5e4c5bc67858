/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose process it is, and whose files about it may be believed. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <inspect/base.h>
#include <sys/types.h>

#define NO_USER UINT32_MAX

/* The pid in the process's innermost namespace and its effective user. 0 or -errno. */
int process_identity(pid_t pid, uint32_t *ret_ns_pid, uint32_t *ret_user);

/* Takes over fd. It again when the file belongs to the user or to root, else -EPERM. */
int check_owner(int fd, uint32_t user);

#endif
