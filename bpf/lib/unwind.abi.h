/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that every unwinding program shares with the tool (src/probe/unwind_maps.c). */
#ifndef BPF_LIB_UNWIND_ABI_H
#define BPF_LIB_UNWIND_ABI_H

#include "unwind_step.h"

/*
 * Rows and ranges lie in chunks, mmapable arrays that are made when they are needed; an index
 * counts on through all chunks of a kind: chunk = index >> SHIFT.
 */
enum {
	UNWIND_ROW_SHIFT = 16,
	UNWIND_ROW_CHUNKS = 1024,
	UNWIND_RANGE_SHIFT = 12,
	UNWIND_RANGE_CHUNKS = 256,
	UNWIND_RULES_MAX = 65536, /* of all files together: equal ones are one */
	UNWIND_PROCESSES_MAX = 16384,
	UNWIND_REQUESTS_BYTES = 65536,
	UNWIND_KNOWN_MAX = 8192,
	UNWIND_KNOWN_ENTERED = 64, /* without ranges; then the tool is asked for them */

	UNWIND_ROW_STEPS = 26, /* of a binary search: 2^26 rows in all */
	UNWIND_RANGE_STEPS = 20,

	/* Rules that are always there. */
	UNWIND_RULE_INDEX_NONE = 0,
	UNWIND_RULE_INDEX_FP = 1,
	UNWIND_RULE_INDEX_FIRST = 2,
};

enum unwind_range_kind {
	UNWIND_RANGE_ROWS,
	UNWIND_RANGE_FP,   /* made at run time: frame pointers */
	UNWIND_RANGE_STOP, /* no rows for the reason in `stop`; a frame pointer may still help */
};

/* Executable memory of a process, [start, end). */
struct unwind_range {
	__u64 start_va, end_va;
	__u64 bias; /* added to an address: what rows count in (struct unwind_row.off) */
	__u32 first_row, n_rows;
	__u8 kind, stop;
	__u16 pad;
	__u32 generation; /* that of the process whose range this is now */
	__u64 identity;   /* of the file: unwind_identity, unwind_memory_identity; 0: none */
};

/* In unwind_range.identity: nobody knows, and what lies there is believed. */
#define UNWIND_UNKNOWN (~0ULL)

/* A hash of the words so far and one more: the steps of MurmurHash3. */
UNWIND_INLINE __u64 unwind_mix(__u64 hash, __u64 word)
{
	hash ^= word * 0x9e3779b97f4a7c15ULL;
	hash = (hash << 27) | (hash >> 37);
	return hash * 0xff51afd7ed558ccdULL + 0x52dce729;
}

/* The kernel's number of a device, as it lies in its super_block (include/linux/kdev_t.h). */
UNWIND_INLINE __u32 unwind_device(__u32 major, __u32 minor)
{
	return major << 20 | minor;
}

/* What is mapped where a range is. One that an ELF file was made into: the file as it is now, which
 * the time of its last change tells: unlike that of its last write, nobody can set it. */
UNWIND_INLINE __u64 unwind_identity(__u64 inode, __u32 device, __u64 page, __u64 size_bytes,
				    __u64 ctime_s, __u64 ctime_ns)
{
	__u64 hash = unwind_mix(unwind_mix(inode, device), page);

	hash = unwind_mix(unwind_mix(hash, size_bytes), ctime_s << 30 | ctime_ns);
	return hash && hash != UNWIND_UNKNOWN ? hash : 1;
}

/* One that holds code made at run time: a compiler writes to it, and maps it in pieces. */
UNWIND_INLINE __u64 unwind_memory_identity(__u64 inode, __u32 device)
{
	__u64 hash = unwind_mix(inode, device);

	return hash && hash != UNWIND_UNKNOWN ? hash : 1;
}

/* The vdso has no file: what stands for an identity, by the size of its mapping. */
UNWIND_INLINE __u64 unwind_vdso_identity(__u64 size_bytes)
{
	return unwind_mix(0x6f736476, size_bytes);
}

/* What code of a file is unwound by in whatever process it is mapped: by unwind_identity, or that
 * of the vdso. */
struct unwind_known {
	__u64 identity; /* again: an entry may become another's while it is read */
	__u64 bias;     /* added to an offset in the mapping */
	__u32 first_row, n_rows;
};

/* Of a process, by its pid: its ranges, sorted, disjoint. Copied to its children, which may then
 * refer to ranges that are another's by now: the generation tells. */
struct unwind_process {
	__u32 first, n;
	__u32 generation; /* 0: none yet */
	__u8 waiting;     /* the tool was asked for new ranges */
	__u8 fresh;       /* the last time it was, there were some: there may be more */
	__u8 entered;     /* mappings of known files, without ranges of it */
	__u8 pad;
	__u64 quiet_until_ns; /* do not ask before for an address that seems to be wrong, … */
	__u64 sure_until_ns;  /* … nor before that for code that is another or new */
};

/* A process whose ranges are missing or old. */
struct unwind_request {
	__u32 pid;
	__u32 pad;
};

_Static_assert(sizeof(struct unwind_range) == 48, "shared with the tool");
_Static_assert(sizeof(struct unwind_known) == 24, "shared with the tool");
_Static_assert(sizeof(struct unwind_process) == 32, "shared with the tool");
_Static_assert(sizeof(struct unwind_request) == 8, "shared with the tool");

#endif
