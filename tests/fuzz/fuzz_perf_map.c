/* SPDX-License-Identifier: BSD-2-Clause */
/* A perf map, asked for addresses of its own beginning. */
#include "fuzz.h"

#include "../../src/symbol/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	enum { QUERIES = 64 };
	struct perf_map_query queries[QUERIES + 1] = {0};

	for (size_t i = 0; i < QUERIES; i++)
		queries[i].address = 0x1000 + i * 0x10;
	queries[QUERIES].address = UINT64_MAX;
	if (perf_map_find((const char *)v, n, queries, QUERIES + 1))
		return 0;
	for (size_t i = 0; i <= QUERIES; i++)
		if (queries[i].name)
			fuzz_touch(queries[i].name, queries[i].name_n);
	return 0;
}
