/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tables are made of (tables.awk). Versions as in struct gpu_version. */
#ifndef GPU_TABLES_H
#define GPU_TABLES_H

#include <inspect/gpu.h>

struct gpu_name {
	uint32_t number;
	uint32_t first, last;
	const char *name;
	bool preferred; /* of several names of a number: it is in gVisor's tables too */
};

struct gpu_rule {
	uint32_t number;
	uint32_t size_bytes; /* 0: any */
	int32_t selector_off, status_off;
	uint32_t first, last;
	enum gpu_selector selector;
};

struct gpu_uvm {
	uint32_t number;
	uint32_t size_bytes;
	int32_t status_off, length_off;
	uint32_t first, last;
};

enum { GPU_TABLES_OLDEST = 515043004, GPU_TABLES_NEWEST = 595045004 };

/* Whether what the tables have from `first` to `last` holds for a version. Without one only what
 * holds for all. */
static inline bool gpu_holds(const struct gpu_version *v, uint32_t first, uint32_t last)
{
	if (!v->table)
		return !v->number && first <= GPU_TABLES_OLDEST && last >= GPU_TABLES_NEWEST;
	return first <= v->table && v->table <= last;
}

#endif
