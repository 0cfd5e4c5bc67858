/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of one compile unit, by address. Private to the DWARF index. */
#ifndef DWARF_UNIT_H
#define DWARF_UNIT_H

#include <elfutils/libdw.h>
#include <inspect/array.h>

#define NODE_NONE UINT32_MAX

/* A function or an inlined copy of one. */
struct function_node {
	Dwarf_Die die;
	uint32_t parent; /* what it was inlined into; NODE_NONE: a function of its own */
};

/* From start on, up to the next segment, code belongs to node. */
struct function_segment {
	uint64_t start_vaddr;
	uint32_t node;
};

struct dwarf_unit {
	Dwarf_Die die;   /* of the unit that has the functions (the split one where there is one) */
	Dwarf_Die lines; /* of the unit that has the line table */
	const char *folder; /* where it was compiled */
	bool split;         /* `die` is a skeleton: what it stands for is opened when it is built */
	bool built, damaged;
	ARRAY(struct function_node) nodes;
	ARRAY(struct function_segment) segments;
};

/* Fills nodes and segments. What cannot be read is left out. 0 or -ENOMEM. */
int dwarf_unit_build(struct dwarf_unit *u);
void dwarf_unit_release(struct dwarf_unit *u);

/* The innermost node at elf_vaddr, or NODE_NONE. */
uint32_t dwarf_unit_find(const struct dwarf_unit *u, uint64_t elf_vaddr);

#endif
