/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strings that libdw takes for granted and a damaged file does not keep. Up to elfutils 0.189 it
 * knows of a string only that it begins inside of its section (dwarf_formstring); it hands such
 * strings out, and walks some itself (read_srclines).
 */
#ifndef DWARF_CHECK_H
#define DWARF_CHECK_H

#include <elfutils/libdw.h>
#include <inspect/base.h>

/* The sections that hold strings among other data (DW_FORM_string): .debug_info and the like. */
struct dwarf_strings {
	struct {
		const char *start, *end;
	} v[4];
};

/* False when a section of strings does not end with a NUL: the file is not to be used. */
bool dwarf_strings_check(Dwarf *dwarf, struct dwarf_strings *ret);

/* The same, and the other sections end with a NUL too: all strings that begin in one end there. */
bool dwarf_strings_all(Dwarf *dwarf);

/* The string of an attribute; NULL when it has none, or one that is not whole in its section. */
const char *dwarf_string(const struct dwarf_strings *t, Dwarf_Attribute *attr);

/* Whether the strings of a unit's own entry, which libdw reads by itself, end. */
bool dwarf_strings_unit(const struct dwarf_strings *t, Dwarf_Die *unit);

#endif
