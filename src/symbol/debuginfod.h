/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Debug files from the servers in DEBUGINFOD_URLS. libdebuginfod does the talking and keeps what it
 * has got in its cache; it is loaded when it is first needed, for it brings a whole HTTP client.
 */
#ifndef DEBUGINFOD_H
#define DEBUGINFOD_H

#include <inspect/elf_file.h>

struct debuginfod {
	void *library; /* NULL: not loaded */
	struct debuginfod_client *client;
	bool unusable; /* no servers, no library, or no answer in time: not asked any more */
	bool no_library, no_answer;
	unsigned asked, found;
	uint64_t spent_ns;   /* in all */
	uint64_t started_ns; /* of the query that is running */
};

/* The debug file of that build-id. Takes at most 10 s without an answer and 60 s in all.
 * 0 or -ENOENT. */
int debuginfod_find(struct debuginfod *d, const uint8_t *id, size_t id_size, struct elf_file **ret);
void debuginfod_release(struct debuginfod *d);

#endif
