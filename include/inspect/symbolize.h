/* SPDX-License-Identifier: BSD-2-Clause */
/* From addresses to names: each unique frame of a profile once, file by file. */
#ifndef INSPECT_SYMBOLIZE_H
#define INSPECT_SYMBOLIZE_H

#include <inspect/profile.h>
#include <inspect/strbuf.h>

struct symbolize_options {
	bool no_demangle;
	bool no_inline;  /* functions of symbol tables only, no source lines */
	bool offline;    /* no debuginfod */
	bool local_host; /* recorded on this machine and boot: kallsyms and /proc may be used */
	const struct saved_names *saved; /* names that came with the file, or NULL */
};

/*
 * Names every frame and fills symbols, at, first. A file that is missing or damaged costs its
 * names and adds one note to the profile; an address without a name becomes
 * `[libfoo.so+0x1234]` with the address that addr2line takes (the file offset when the file is
 * missing), `[kernel] 0x…` (a note says it when kptr_restrict hides the names), `[jit] 0x…` for
 * executable memory without a map, `[unmapped] 0x…`. Then marks and counts the stacks that reach
 * no entry point (cut, truncated_symbol, losses.truncated). 0 or -ENOMEM.
 */
int symbolize_profile(struct profile *p, const struct symbolize_options *o);

/*
 * Keeps hold of what names the code that a live process makes at run time (d: its DSO_JIT dso): its
 * /tmp, its pid in its own namespace and its user, so that its perf map is found when it has ended.
 * 0 or -errno.
 */
int symbolize_hold_process(struct dso *d);

/* Demangles C++ (Itanium) and Rust (legacy, v0) into out; false when `name` is not mangled. */
bool symbol_demangle(const char *name, struct strbuf *out);

/* True for functions at which a stack may properly begin: _start, main, clone, start_thread,
 * runtime.goexit, kernel entry points, … */
bool symbol_is_entry(const char *name);

#endif
