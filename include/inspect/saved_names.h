/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names stored inside a recording, so that a report needs neither the binaries nor the processes:
 * they survive exits, upgrades on disk, containers and a move to another machine. The encoding is
 * private to inspect and travels in a feature section that perf skips.
 */
#ifndef INSPECT_SAVED_NAMES_H
#define INSPECT_SAVED_NAMES_H

#include <inspect/profile.h>

struct saved_names;

/* Serialises the names of a symbolized profile. malloc'ed. 0 or -ENOMEM. */
int saved_names_encode(const struct profile *p, uint8_t **ret, size_t *ret_size_bytes);

/* Reads untrusted bytes. 0, -EBADMSG when damaged, or -ENOMEM. */
int saved_names_decode(const uint8_t *v, size_t size_bytes, struct saved_names **ret);
void saved_names_free(struct saved_names *s);

struct saved_name {
	const char *name, *module, *file; /* borrowed; file "" unknown */
	uint32_t line;
	uint32_t kind; /* enum frame_kind */
	bool unknown;
};

/* The names at a location of a dso (matched by kind, path and build-id), outermost first;
 * their number, 0 when none are stored. *ret is borrowed. */
size_t saved_names_find(const struct saved_names *s, const struct dso *d, uint64_t loc,
			const struct saved_name **ret);

/* The forked_ns of a DSO_JIT while it was recorded; 0 unknown. */
uint64_t saved_names_forked_ns(const struct saved_names *s, const struct dso *d);

/* Code that a JIT compiler made: what a jitdump said of the code that samples hit. */
struct saved_code {
	uint64_t start_va, end_va, from_ns, until_ns; /* as in struct code */
	uint32_t pid;
	const char *name; /* "" where nothing lay any more */
};

/* How many codes are stored, and one of them. */
size_t saved_names_codes(const struct saved_names *s);
struct saved_code saved_names_code(const struct saved_names *s, size_t i);

#endif
