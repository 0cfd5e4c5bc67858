/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of this machine's kernel by name, one at a time. */
#ifndef INSPECT_KERNEL_NAMES_H
#define INSPECT_KERNEL_NAMES_H

#include <inspect/strbuf.h>

struct kernel_names;

/* From /proc/kallsyms; where it hides addresses there are no names. 0 or -errno. */
int kernel_names_new(struct kernel_names **ret);
void kernel_names_free(struct kernel_names *k);

/* "[kernel](futex_wait+0x6d) [0xffffffff8120ab6d]"; the module in place of the kernel, if it is in
 * one; without a name the address alone. */
void kernel_names_put(const struct kernel_names *k, uint64_t va, struct strbuf *out);

#endif
