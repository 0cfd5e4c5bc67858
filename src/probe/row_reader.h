/* SPDX-License-Identifier: BSD-2-Clause */
/* From the rows that a program fills (syscalls.abi.h) to those of a table. */
#ifndef PROBE_ROW_READER_H
#define PROBE_ROW_READER_H

#include <inspect/syscall_table.h>

/* The sums of a row as they were last read: slots in the kernel have 32 bits. */
struct read_slots {
	struct syscalls_key key;
	uint32_t slots[LOG_LINEAR_SLOTS];
	uint64_t sums[LOG_LINEAR_SLOTS];
};

/* All zero at first. */
struct row_reader {
	ARRAY(struct read_slots) seen;
	struct hashmap by_key;
};
void row_reader_release(struct row_reader *r);

/* Fills row, the one of that key, with what the program has in it now. 0 or -ENOMEM. */
int row_reader_take(struct row_reader *r, const struct syscalls_key *key,
		    const struct syscalls_row *from, struct syscall_row *row);

/* All rows of a hash map. 0 or -errno. */
int row_reader_map(struct row_reader *r, int map_fd, struct syscall_table *t);

#endif
