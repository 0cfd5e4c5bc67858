/* SPDX-License-Identifier: BSD-2-Clause */
#include "debug_files.h"

#include <limits.h>

/* The symbols of one file, and of the debug file that goes with it. */
struct symbol_source {
	struct elf_file *file;
	struct elf_file *debug_file; /* a separate one, or MiniDebugInfo; or NULL */
	struct elf_file *alt_file;   /* what several debug files share, or NULL */
	struct elf_symbols own, debug;
	struct dwarf_index *dwarf;   /* NULL: none, or not wanted */
	struct source_frames frames; /* scratch */
	uint64_t entry_vaddr;
	const struct elf_symbol *entry; /* the function there, or NULL */
};

static void symbol_source_release(struct symbol_source *s)
{
	elf_symbols_release(&s->own);
	elf_symbols_release(&s->debug);
	array_release(&s->frames.v);
	dwarf_index_free(s->dwarf);
	elf_file_free(s->alt_file);
	elf_file_free(s->debug_file);
	elf_file_free(s->file);
}

static const struct elf_symbol *find_covering(const struct symbol_source *s, uint64_t elf_vaddr)
{
	const struct elf_symbol *debug = elf_symbols_find(&s->debug, elf_vaddr);
	const struct elf_symbol *own;

	if (debug && debug->size_bytes)
		return debug;
	/* MiniDebugInfo lacks what .dynsym has: a label of it ends where that begins. */
	own = elf_symbols_find(&s->own, elf_vaddr);
	if (!debug || (own && (own->size_bytes || own->elf_vaddr >= debug->elf_vaddr)))
		return own;
	return debug;
}

/* A signal handler returns to the first instruction of the function that ends the signal: the byte
 * before it, where a call would be, belongs to no function. Else that byte is padding. */
static bool ends_signal(const struct elf_symbol *symbol)
{
	static const char *const prefixes[] = {"__restore",
					       "__kernel_rt_sigreturn",
					       "__kernel_sigreturn",
					       "__default_sa_restorer",
					       "__default_rt_sa_restorer",
					       "runtime.sigreturn"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts(symbol->name, prefixes[i]))
			return true;
	return false;
}

static const struct elf_symbol *find(const struct symbol_source *s, uint64_t elf_vaddr)
{
	const struct elf_symbol *found = find_covering(s, elf_vaddr);

	if (found)
		return found;
	found = find_covering(s, elf_vaddr + 1);
	return found && found->elf_vaddr == elf_vaddr + 1 && ends_signal(found) ? found : NULL;
}

/* From a debug file: what the file itself lacks. */
static int read_debug_file(struct naming *w, const struct dso *d, struct symbol_source *s,
			   bool has_symtab)
{
	int err = has_symtab ? 0 : elf_symbols_read(s->debug_file, &s->debug);

	if (!err && !w->o->no_inline && !s->dwarf)
		err = debug_index_open(w, d, s->debug_file, &s->dwarf, &s->alt_file);
	return err == -ENOMEM ? err : 0;
}

static int read_debug_info(struct naming *w, const struct dso *d, struct symbol_source *s)
{
	bool has_symtab = elf_file_has_symtab(s->file);
	int err = 0;

	if (!w->o->no_inline)
		err = debug_index_open(w, d, s->file, &s->dwarf, &s->alt_file);
	if (err == -ENOMEM)
		return err;
	if (d->kind == DSO_ELF && (!has_symtab || (!w->o->no_inline && !s->dwarf)) &&
	    !debug_file_open(w, d, s->file, &s->debug_file))
		return read_debug_file(w, d, s, has_symtab);
	err = has_symtab ? -ENOENT : elf_mini_debug_open(s->file, &s->debug_file);
	if (!err)
		err = elf_symbols_read(s->debug_file, &s->debug);
	else if (err == -EBADMSG || err == -EFBIG)
		err = naming_file_note(w, "%s: its MiniDebugInfo is %s and not used",
				       dso_short_name(d), err == -EFBIG ? "huge" : "damaged");
	return err == -ENOMEM ? err : 0;
}

static int symbol_source_open(struct naming *w, const struct dso *d, struct symbol_source *s)
{
	int err = code_file_open(d, w->o->local_host, &s->file);

	if (err)
		return err;
	err = elf_symbols_read(s->file, &s->own);
	if (!err)
		err = read_debug_info(w, d, s);
	if (err)
		return err;
	s->entry_vaddr = elf_file_entry(s->file);
	s->entry = s->entry_vaddr ? find(s, s->entry_vaddr) : NULL;
	return 0;
}

static int note_unusable(struct naming *w, const struct dso *d, int err)
{
	const char *name = dso_short_name(d);

	if (err == -ESTALE)
		return naming_file_note(w,
					"%s: the file on disk is not the one that was recorded "
					"(%s differs): its functions have no names",
					name,
					d->build_id_size          ? "build-id"
					: d->ino == INODE_UNKNOWN ? "time of change"
								  : "inode");
	return naming_file_note(w, "%s: %s: its functions have no names", d->path,
				err == -ENOEXEC ? "no ELF file" : strerror(-err));
}

/* Units that lie in files of their own. gdb, too, looks for PROGRAM.dwp with all of them. */
static int note_missing(struct naming *w, const struct dso *d, const struct dwarf_gaps *gaps)
{
	char package[PATH_MAX];
	int n = snprintf(package, sizeof(package), "%s.dwp", d->path);
	bool packed = n < (int)sizeof(package) && access(package, F_OK) == 0;

	return naming_file_note(w,
				"%s: the debug information of %zu compile unit%s lies in .dwo "
				"files that are not found (%.200s)%s%.200s%s: inlined functions "
				"there are left out",
				dso_short_name(d), gaps->missing, gaps->missing == 1 ? "" : "s",
				gaps->missing_name, packed ? "; " : "", packed ? package : "",
				packed ? " may have them, but this libdw reads no .dwp" : "");
}

/* What the file did not tell although it should. */
static int note_gaps(struct naming *w, const struct dso *d, const struct symbol_source *s)
{
	const char *name = dso_short_name(d);
	struct dwarf_gaps gaps = {0};
	int err = 0;

	if (s->dwarf)
		dwarf_index_gaps(s->dwarf, &gaps);
	if (s->own.damaged || s->debug.damaged)
		err = naming_file_note(w, "%s: its symbol table is damaged", name);
	if (!err && gaps.missing)
		err = note_missing(w, d, &gaps);
	if (!err && gaps.damaged)
		err = naming_file_note(w,
				       "%s: its debug information is damaged in %zu place%s: "
				       "inlined functions and lines may be missing",
				       name, gaps.damaged, gaps.damaged == 1 ? "" : "s");
	return err;
}

/* Neighbours in one function of one dso get the same symbol without another look. */
struct last_symbol {
	const struct elf_symbol *elf;
	const struct dso *dso;
	uint32_t symbol;
};

static int symbol_named(struct naming *w, const char *name, const struct dso *d,
			enum frame_kind kind, uint32_t *ret_symbol)
{
	if (!w->o->no_demangle && symbol_demangle(name, &w->text))
		name = strbuf_str(&w->text);
	return naming_symbol(w, name, strnlen(name, SYMBOL_NAME_MAX), dso_short_name(d), kind,
			     false, ret_symbol);
}

static int place_of(struct naming *w, const struct source_frame *f, struct symbol_at *ret)
{
	const char *file = f->file;

	ret->line = f->line;
	if (!file)
		return 0;
	if (file[0] != '/' && *f->folder) {
		strbuf_clear(&w->text);
		strbuf_printf(&w->text, "%s/%s", f->folder, file);
		file = strbuf_str(&w->text);
	}
	return w->text.failed ? -ENOMEM : intern_puts(&w->p->strings, file, &ret->file);
}

/* The functions inlined at the address, below the one that the linker knows. */
static int add_inlined(struct naming *w, const struct symbol_source *s, uint32_t frame)
{
	const struct dso *d = naming_dso(w, frame);
	int err = 0;

	for (size_t i = 1; i < s->frames.v.n && !err; i++) {
		const struct source_frame *f = &s->frames.v.v[i];
		struct symbol_at at = {0};

		err = symbol_named(w, f->name ? f->name : "[inlined]", d, FRAME_INLINED,
				   &at.symbol);
		if (!err)
			err = place_of(w, f, &at);
		if (!err)
			err = naming_add(w, frame, &at);
	}
	return err;
}

static int name_one(struct naming *w, struct symbol_source *s, uint32_t frame,
		    struct last_symbol *last)
{
	const struct frame *f = &w->p->frames.v[frame];
	const struct dso *d = naming_dso(w, frame);
	const struct elf_symbol *found;
	struct symbol_at at = {0};
	const char *name = NULL;
	uint64_t elf_vaddr;
	int err = 0;

	if (elf_file_off_to_vaddr(s->file, f->loc, &elf_vaddr))
		return naming_set_unnamed(w, frame, f->loc);
	found = find(s, elf_vaddr);
	w->entry[frame] = found ? found == s->entry : elf_vaddr == s->entry_vaddr;
	s->frames.v.n = 0;
	if (s->dwarf)
		err = dwarf_index_find(s->dwarf, elf_vaddr, &s->frames);
	if (found)
		name = found->name;
	else if (s->frames.v.n)
		name = s->frames.v.v[0].name;
	if (err || !name)
		return err ? err : naming_set_unnamed(w, frame, elf_vaddr);
	if (!found || found != last->elf || d != last->dso)
		err = symbol_named(w, name, d, f->kind, &last->symbol);
	last->elf = found;
	last->dso = d;
	at.symbol = last->symbol;
	if (!err && s->frames.v.n)
		err = place_of(w, &s->frames.v.v[0], &at);
	if (!err)
		err = naming_add(w, frame, &at);
	return err ? err : add_inlined(w, s, frame);
}

/* One file under several paths: whichever can be opened. */
static int open_first(struct naming *w, const uint32_t *frames, size_t n, struct symbol_source *s)
{
	const struct dso *tried = NULL;
	int first_err = -ENOENT;

	for (size_t i = 0; i < n; i++) {
		const struct dso *d = naming_dso(w, frames[i]);
		int err;

		if (d == tried)
			continue;
		err = symbol_source_open(w, d, s);
		if (!err || err == -ENOMEM)
			return err;
		if (!tried)
			first_err = err;
		tried = d;
	}
	return first_err;
}

int naming_elf(struct naming *w, const uint32_t *frames, size_t n)
{
	CLEANUP(symbol_source_release) struct symbol_source s = {0};
	struct last_symbol last = {0};
	int err = open_first(w, frames, n, &s);

	if (err == -ENOMEM)
		return err;
	/* Nobody has the vdso of another host: not worth a line. */
	if (err && naming_dso(w, frames[0])->kind == DSO_VDSO)
		return 0;
	if (err)
		return note_unusable(w, naming_dso(w, frames[0]), err);
	for (size_t i = 0; i < n && !err; i++)
		err = name_one(w, &s, frames[i], &last);
	return err ? err : note_gaps(w, naming_dso(w, frames[0]), &s);
}
