/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs BPF iterators, and reads what they write. */
#ifndef PROBE_ITERATOR_H
#define PROBE_ITERATOR_H

#include <stddef.h>

struct bpf_link;
struct bpf_program;

/* One element, valid during the call; not 0 ends the reading with it. */
typedef int probe_element_fn(void *ctx, const void *element);

/* Runs an iterator to its end. What it writes are elements of that size, each handed on whole;
 * NULL: it writes nothing. 0 or -errno. */
int probe_iterate(const struct bpf_program *program, size_t element_bytes, probe_element_fn *each,
		  void *ctx);
/* The same of one that is attached. */
int probe_iterate_link(const struct bpf_link *link, size_t element_bytes, probe_element_fn *each,
		       void *ctx);

#endif
