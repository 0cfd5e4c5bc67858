/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies at a data address of a process, as text: `_PyRuntime+0x1b4`, `libfoo.so .bss+0x40`,
 * `[heap]+0x2a0`, `[stack:4242]+0x1f0`, `/dev/shm/x+0x80`; `[end of thread 4242]` where that is
 * waited for. Names are the target's, to be escaped on their way out; those of C++ and Rust are
 * mangled.
 */
#ifndef INSPECT_LOCK_NAMES_H
#define INSPECT_LOCK_NAMES_H

#include <inspect/strbuf.h>
#include <sys/types.h>

struct lock_names;

/* Mappings and files are kept, those of at most 64 processes; mappings are read again, ten times a
 * second at most, for an address that lies in none. 0 or -ENOMEM. */
int lock_names_new(struct lock_names **ret);
void lock_names_free(struct lock_names *n);
static inline void lock_names_freep(struct lock_names **n)
{
	lock_names_free(*n);
}

/* Appends the name of user_va in pid; `0x…` when nothing is known of it. 0 or -ENOMEM. */
int lock_names_text(struct lock_names *n, pid_t pid, uint64_t user_va, struct strbuf *out);

/* The same for whoever waits there: what is waited for at several of its words (a condition, a
 * rwlock or a barrier of the C library, Python's GIL) has one name, that of its variable, and one
 * address, its first; others are without "+0x0". */
int lock_names_object(struct lock_names *n, pid_t pid, uint64_t user_va, struct strbuf *out,
		      uint64_t *ret_va);

/* Whether that name is of a thread's end: it holds for now, as the next may get the stack. */
void lock_name_put_thread(struct strbuf *out, pid_t tid);
bool lock_name_is_thread(const char *name);

/* Whether that name is within Python's global state, where its interpreter lock is. */
bool lock_name_is_gil(const char *name);

#endif
