/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command will map, before it does: its first stacks need not wait for rows. */
#ifndef PROBE_UNWIND_PRELOAD_H
#define PROBE_UNWIND_PRELOAD_H

#include "unwind_process.h"

/*
 * The program, interpreters and libraries as elf_program_each finds them. Files whose
 * rows take long to make are left out, and so is what is left after 50 ms. Whatever is not found
 * or not understood is met when it runs. 0 or -ENOMEM.
 */
int unwind_preload(struct unwind_processes *u, const char *command);

#endif
