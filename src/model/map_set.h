/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_MODEL_MAP_SET_H
#define INSPECT_MODEL_MAP_SET_H

#include <inspect/process.h>

/* A fork shares the mappings of its parent until one of the two changes them. */
struct map_set {
	uint32_t users;
	ARRAY(struct mapping) maps; /* sorted, disjoint */
};

struct map_set *map_set_new(void);                /* one user; NULL: no memory */
struct map_set *map_set_share(struct map_set *s); /* NULL stays NULL */
void map_set_drop(struct map_set *s);

/* Puts m over whatever lies there; older mappings lose that part. *set is replaced by a private
 * copy when it is shared, and created when NULL. 0 or -ENOMEM. */
int map_set_put(struct map_set **set, const struct mapping *m);

/* The mapping that holds va, or NULL. */
const struct mapping *map_set_find(const struct map_set *s, uint64_t va);

#endif
