/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf_index.h"

#include "dwarf_check.h"
#include "dwarf_unit.h"
#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <sys/stat.h>

enum { UNITS_MAX = 1 << 22, CHAIN_MAX = 256 };

struct unit_range {
	uint64_t low, high;
	uint64_t reach; /* the highest `high` up to here: how far back a search must look */
	uint32_t unit;
};

struct dwarf_index {
	struct elf_file *file;
	struct elf_file *unpacked, *alt_unpacked; /* what libdw reads instead, or NULL */
	Dwarf *dwarf, *alt_dwarf;
	struct dwarf_strings strings;
	struct dwarf_alt alt; /* name NULL: none is needed */
	ARRAY(struct dwarf_unit) units;
	ARRAY(struct unit_range) ranges; /* sorted by low */
	struct dwarf_gaps gaps;
};

static int add_ranges(struct dwarf_index *x, Dwarf_Die *die, uint32_t unit)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		int err;

		if (!low || low >= high)
			continue;
		err = array_push(&x->ranges, (struct unit_range){low, high, 0, unit});
		if (err)
			return err;
	}
	return 0;
}

/* Split units are not opened here: that is a file each. */
static int add_units(struct dwarf_index *x)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	int more = 0;

	while (x->units.n < UNITS_MAX &&
	       (more = dwarf_get_units(x->dwarf, cu, &cu, NULL, &type, &die, NULL)) == 0) {
		bool split = type == DW_UT_skeleton;
		int err;

		if ((type != DW_UT_compile && !split) || !dwarf_strings_unit(&x->strings, &die))
			continue;
		err = array_push(&x->units,
				 (struct dwarf_unit){.die = die, .lines = die, .split = split});
		if (!err)
			err = add_ranges(x, &die, (uint32_t)x->units.n - 1);
		if (err)
			return err;
	}
	x->gaps.damaged += more < 0;
	return 0;
}

static int by_low(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* NULL: cannot be read. */
static Dwarf *begin(struct elf_file *f, struct elf_file **ret_unpacked)
{
	int err = elf_zstd_debug_open(f, ret_unpacked);

	if (err && err != -ENOENT)
		return NULL;
	return dwarf_begin_elf(elf_file_elf(err ? f : *ret_unpacked), DWARF_C_READ, NULL);
}

static int read_units(struct dwarf_index *x)
{
	const void *id;
	ssize_t id_size;
	uint64_t reach = 0;
	int err;

	x->dwarf = begin(x->file, &x->unpacked);
	err = x->dwarf && dwarf_strings_check(x->dwarf, &x->strings) ? add_units(x) : -EBADMSG;
	if (err)
		return err;
	id_size = dwelf_dwarf_gnu_debugaltlink(x->dwarf, &x->alt.name, &id);
	if (id_size > 0) {
		x->alt.id = id;
		x->alt.id_size = (size_t)id_size;
	}
	if (x->ranges.n)
		qsort(x->ranges.v, x->ranges.n, sizeof(*x->ranges.v), by_low);
	for (size_t i = 0; i < x->ranges.n; i++)
		reach = x->ranges.v[i].reach = MAX(reach, x->ranges.v[i].high);
	return x->units.n || !x->gaps.damaged ? 0 : -EBADMSG;
}

int dwarf_index_open(struct elf_file *f, struct dwarf_index **ret)
{
	struct dwarf_index *x;
	int err;

	if (!elf_file_has_dwarf(f))
		return -ENOENT;
	if (elf_file_debug_bytes(f) > DWARF_BYTES_MAX)
		return -EFBIG;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->file = f;
	err = read_units(x);
	if (err) {
		dwarf_index_free(x);
		return err;
	}
	*ret = x;
	return 0;
}

bool dwarf_index_alt(const struct dwarf_index *x, struct dwarf_alt *ret)
{
	if (!x->alt.id_size)
		return false;
	*ret = x->alt;
	return true;
}

int dwarf_index_set_alt(struct dwarf_index *x, struct elf_file *alt)
{
	if (elf_file_debug_bytes(alt) <= DWARF_BYTES_MAX)
		x->alt_dwarf = begin(alt, &x->alt_unpacked);
	if (x->alt_dwarf && !dwarf_strings_all(x->alt_dwarf)) {
		dwarf_end(x->alt_dwarf);
		x->alt_dwarf = NULL;
	}
	if (x->alt_dwarf)
		dwarf_setalt(x->dwarf, x->alt_dwarf);
	else
		x->gaps.damaged++;
	return 0;
}

void dwarf_index_free(struct dwarf_index *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->units.n; i++)
		dwarf_unit_release(&x->units.v[i]);
	array_release(&x->units);
	array_release(&x->ranges);
	dwarf_end(x->dwarf);
	dwarf_end(x->alt_dwarf);
	elf_file_free(x->unpacked);
	elf_file_free(x->alt_unpacked);
	free(x);
}

static struct dwarf_unit *unit_at(struct dwarf_index *x, uint64_t elf_vaddr)
{
	size_t low = 0, high = x->ranges.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->ranges.v[mid].low <= elf_vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low > 0 && x->ranges.v[low - 1].reach > elf_vaddr; low--)
		if (x->ranges.v[low - 1].high > elf_vaddr)
			return &x->units.v[x->ranges.v[low - 1].unit];
	return NULL;
}

static const char *name_of(const struct dwarf_index *x, Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr)) {
		const char *name = dwarf_string(&x->strings, &attr);

		if (name && *name)
			return name;
	}
	return dwarf_attr_integrate(die, DW_AT_name, &attr) ? dwarf_string(&x->strings, &attr)
							    : NULL;
}

static void line_of(struct dwarf_unit *u, uint64_t elf_vaddr, struct source_frame *ret)
{
	Dwarf_Line *line = dwarf_getsrc_die(&u->lines, elf_vaddr);
	int n = 0;

	if (!line)
		return;
	ret->folder = u->folder;
	ret->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &n) == 0 && n > 0)
		ret->line = (uint32_t)n;
}

/* Where the call stood that was replaced by the inlined copy. */
static void call_of(struct dwarf_unit *u, Dwarf_Die *die, struct source_frame *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Word v;
	size_t n;

	*ret = (struct source_frame){.folder = u->folder};
	if (dwarf_attr(die, DW_AT_call_line, &attr) && dwarf_formudata(&attr, &v) == 0)
		ret->line = (uint32_t)MIN(v, (Dwarf_Word)UINT32_MAX);
	if (dwarf_attr(die, DW_AT_call_file, &attr) && dwarf_formudata(&attr, &v) == 0 &&
	    dwarf_getsrcfiles(&u->lines, &files, &n) == 0 && v < n)
		ret->file = dwarf_filesrc(files, v, NULL, NULL);
}

static void reverse(struct source_frames *f)
{
	for (size_t i = 0, j = f->v.n; i + 1 < j; i++) {
		struct source_frame swap = f->v.v[i];

		f->v.v[i] = f->v.v[--j];
		f->v.v[j] = swap;
	}
}

/* --- split units ------------------------------------------------------------------------------ */

static const char *text_of(Dwarf_Die *die, unsigned name, unsigned older_name)
{
	Dwarf_Attribute attr;
	const char *s = NULL;

	if (dwarf_attr(die, name, &attr) || (older_name && dwarf_attr(die, older_name, &attr)))
		s = dwarf_formstring(&attr);
	return s ? s : "";
}

/* False when something else than a file has that name: opening a FIFO waits, a device may act. */
static bool is_file_or_nothing(const char *folder, const char *middle, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s%s%s%s", folder, middle, *middle ? "/" : "", name);

	return n < (int)sizeof(path) && (stat(path, &st) || S_ISREG(st.st_mode));
}

/* The places where libdw looks for a .dwo file (libdw_find_split_unit.c). */
static bool may_open_split(const struct dwarf_index *x, struct dwarf_unit *u)
{
	const char *name = text_of(&u->die, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
	char folder[PATH_MAX] = "";

	if (name[0] == '/')
		return is_file_or_nothing("", "", name);
	elf_file_folder(x->unpacked ? x->unpacked : x->file, folder, sizeof(folder));
	return is_file_or_nothing(folder, "", name) &&
	       is_file_or_nothing(u->folder[0] == '/' ? "" : folder, u->folder, name);
}

/* From the skeleton to the unit that has the functions. */
static void open_split(struct dwarf_index *x, struct dwarf_unit *u)
{
	Dwarf_Die sub = {0};

	if (may_open_split(x, u))
		dwarf_cu_info(u->die.cu, NULL, NULL, NULL, &sub, NULL, NULL, NULL);
	if (sub.addr && !dwarf_strings_all(dwarf_cu_getdwarf(sub.cu))) {
		x->gaps.damaged++;
		return;
	}
	if (sub.addr) {
		u->die = sub;
		return;
	}
	x->gaps.missing++;
	x->gaps.missing_name = text_of(&u->die, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
}

static bool lines_are_damaged(struct dwarf_unit *u)
{
	Dwarf_Lines *lines;
	size_t n;

	return dwarf_hasattr(&u->lines, DW_AT_stmt_list) &&
	       dwarf_getsrclines(&u->lines, &lines, &n) != 0;
}

static int build(struct dwarf_index *x, struct dwarf_unit *u)
{
	int err;

	u->folder = text_of(&u->lines, DW_AT_comp_dir, 0);
	x->gaps.damaged += lines_are_damaged(u);
	if (u->split)
		open_split(x, u);
	err = dwarf_unit_build(u);
	x->gaps.damaged += u->damaged;
	return err;
}

/* --- look-up ---------------------------------------------------------------------------------- */

int dwarf_index_find(struct dwarf_index *x, uint64_t elf_vaddr, struct source_frames *ret)
{
	struct dwarf_unit *u = unit_at(x, elf_vaddr);
	struct source_frame place = {0};
	int err = 0;

	ret->v.n = 0;
	if (!u || (x->alt.id_size && !x->alt_dwarf))
		return 0;
	if (!u->built)
		err = build(x, u);
	if (err)
		return err;
	line_of(u, elf_vaddr, &place);
	for (uint32_t node = dwarf_unit_find(u, elf_vaddr);
	     node != NODE_NONE && ret->v.n < CHAIN_MAX && !err; node = u->nodes.v[node].parent) {
		Dwarf_Die *die = &u->nodes.v[node].die;

		place.name = name_of(x, die);
		err = array_push(&ret->v, place);
		call_of(u, die, &place);
	}
	/* A line without a function: hand-written assembly. */
	if (!err && !ret->v.n && place.file)
		err = array_push(&ret->v, place);
	reverse(ret);
	return err;
}

void dwarf_index_gaps(const struct dwarf_index *x, struct dwarf_gaps *ret)
{
	*ret = x->gaps;
	if (!ret->missing_name)
		ret->missing_name = "";
}
