/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf_check.h"

#include <dwarf.h>
#include <gelf.h>

static const Elf_Data *section_data(Elf *elf, Elf_Scn *section, const char **ret_name)
{
	GElf_Shdr header;
	size_t names;

	if (!gelf_getshdr(section, &header) || elf_getshdrstrndx(elf, &names))
		return NULL;
	*ret_name = elf_strptr(elf, names, header.sh_name);
	return *ret_name ? elf_rawdata(section, NULL) : NULL;
}

/* The number of the kind of section that has this name, or -1. */
static int kind_of(const char *name)
{
	static const struct {
		const char *name;
		int kind;
	} kinds[] = {{".debug_info", 0},  {".zdebug_info", 0},  {".debug_info.dwo", 1},
		     {".debug_types", 2}, {".zdebug_types", 2}, {".debug_types.dwo", 3}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_eq(name, kinds[i].name))
			return kinds[i].kind;
	return -1;
}

static bool is_of_strings(const char *name)
{
	static const char *const names[] = {".debug_str", ".debug_line_str", ".debug_str.dwo",
					    ".zdebug_str", ".zdebug_line_str"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

bool dwarf_strings_check(Dwarf *dwarf, struct dwarf_strings *ret)
{
	struct dwarf_strings t = {0};
	Elf *elf = dwarf_getelf(dwarf);

	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
		const char *name, *start;
		const Elf_Data *data = section_data(elf, s, &name);
		bool open;
		int kind;

		if (!data || !data->d_buf || !data->d_size)
			continue;
		start = data->d_buf;
		open = start[data->d_size - 1];
		if (open && is_of_strings(name))
			return false;
		kind = kind_of(name);
		if (kind < 0)
			continue;
		/* Of two sections with one name libdw reads the first. */
		if (t.v[kind].start && open)
			return false;
		if (!t.v[kind].start) {
			t.v[kind].start = start;
			t.v[kind].end = start + data->d_size;
		}
	}
	*ret = t;
	return true;
}

bool dwarf_strings_all(Dwarf *dwarf)
{
	struct dwarf_strings t;

	if (!dwarf_strings_check(dwarf, &t))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(t.v); i++)
		if (t.v[i].start && t.v[i].end[-1])
			return false;
	return true;
}

static bool is_whole(const struct dwarf_strings *t, const char *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(t->v); i++)
		if (t->v[i].start && s >= t->v[i].start && s < t->v[i].end)
			return memchr(s, 0, (size_t)(t->v[i].end - s));
	return false;
}

const char *dwarf_string(const struct dwarf_strings *t, Dwarf_Attribute *attr)
{
	const char *s = dwarf_formstring(attr);
	struct dwarf_strings other;

	/* libdw has looked where the others begin, and their sections end with a NUL. */
	if (!s || dwarf_whatform(attr) != DW_FORM_string || is_whole(t, s))
		return s;
	/* In a .dwo file, or in the one of dwz; or right at the end of its section. */
	return dwarf_strings_check(dwarf_cu_getdwarf(attr->cu), &other) && is_whole(&other, s)
		       ? s
		       : NULL;
}

bool dwarf_strings_unit(const struct dwarf_strings *t, Dwarf_Die *unit)
{
	static const unsigned names[] = {DW_AT_name, DW_AT_comp_dir, DW_AT_dwo_name,
					 DW_AT_GNU_dwo_name};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		Dwarf_Attribute attr;

		if (dwarf_attr(unit, names[i], &attr) && dwarf_formstring(&attr) &&
		    !dwarf_string(t, &attr))
			return false;
	}
	return true;
}
