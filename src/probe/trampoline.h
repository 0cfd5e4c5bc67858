/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs on the kernel's functions by fentry and fexit, through trampolines. */
#ifndef PROBE_TRAMPOLINE_H
#define PROBE_TRAMPOLINE_H

#include <inspect/host.h>

/* Whether this kernel puts programs on a function; type: what it is in the kernel's BTF. */
bool trampoline_works(uint32_t type, const struct host *h);

#endif
