/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of another process, read page by page from outside while it runs on. Only pages that are
 * there: to bring one in could hang on the very thing that the process hangs on (a network file
 * system, a FUSE server, userfaultfd).
 */
#ifndef CAPTURE_REMOTE_MEMORY_H
#define CAPTURE_REMOTE_MEMORY_H

#include <inspect/base.h>
#include <sys/types.h>

enum { REMOTE_PAGES = 16, REMOTE_PAGE_BYTES = 4096 };

struct remote_memory {
	pid_t pid;
	pid_t living;                   /* proc_living() of it */
	int pagemap_fd;                 /* of that process, -1: none */
	uint64_t page_va[REMOTE_PAGES]; /* what each slot holds; UINT64_MAX: nothing */
	uint8_t pages[REMOTE_PAGES][REMOTE_PAGE_BYTES];
	const uint8_t *copy; /* of [copy_va, copy_va + copy_bytes): read in place of the memory */
	uint64_t copy_va;
	size_t copy_bytes;
	int err; /* why the last read failed */
};

void remote_memory_init(struct remote_memory *m);
void remote_memory_release(struct remote_memory *m);

/* Forgets what was read: from here on the memory is that of now. */
void remote_memory_begin(struct remote_memory *m, pid_t pid);

/* n bytes at an address. 0 or -errno: -EFAULT (no memory, or not present), -EPERM, -ESRCH. */
int remote_memory_read(struct remote_memory *m, uint64_t user_va, void *ret, size_t n);

/* A word of a stack, for the unwinder (unwind_read_fn; ctx: the memory). */
int remote_memory_word(void *ctx, unsigned long long user_va, unsigned long long *ret_word);

#endif
