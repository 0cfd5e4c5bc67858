/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's types that a BPF object uses. For each type of the object libbpf looks through all
 * of the kernel's, 100,000 and more, and through those of every module where there is none: in a
 * file that has no others it finds them at once.
 */
#ifndef PROBE_KERNEL_TYPES_H
#define PROBE_KERNEL_TYPES_H

#include <bpf/libbpf.h>
#include <inspect/base.h>

struct kernel_types {
	int fd; /* -1: none */
	char path[32];
	struct bpf_object_open_opts opts;
};

#define KERNEL_TYPES_INIT ((struct kernel_types){.fd = -1})

/* How much of a type's name counts: one that ends in ___something stands for that before it. */
size_t kernel_types_name_bytes(const char *name);

/* The types in `btf` (n bytes of BTF) that have one of the names, and what those consist of, into
 * a file: a descriptor, or -errno. Pointers point to void: what is behind one is another type. */
int kernel_types_pick(const void *btf, size_t n, const char *const *names, size_t n_names);

/* What to open an object with (its ELF file), until it is loaded; the kernel's own types where ours
 * can't be made. */
const struct bpf_object_open_opts *kernel_types_open(struct kernel_types *k, const void *object,
						     size_t object_bytes);
void kernel_types_release(struct kernel_types *k);

/* NAME__open() with them. */
#define KERNEL_TYPES_OPEN(NAME, k)                                                                 \
	({                                                                                         \
		size_t bytes_;                                                                     \
		const void *object_ = NAME##__elf_bytes(&bytes_);                                  \
		NAME##__open_opts(kernel_types_open(k, object_, bytes_));                          \
	})

#endif
