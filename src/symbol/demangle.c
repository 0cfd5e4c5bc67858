/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/symbolize.h>
#include <libiberty/demangle.h>
#include <setjmp.h>

/* libiberty refuses longer C++ names too (its comps array is on the stack). */
#define MANGLED_BYTES_MAX 8192
/* A short name can stand for an exponentially long one. */
#define DEMANGLED_BYTES_MAX 65536

struct sink {
	struct strbuf *out;
	jmp_buf *too_long;
};

static void collect(const char *s, size_t n, void *ctx)
{
	struct sink *sink = ctx;

	strbuf_add(sink->out, s, n);
	/* The demangler has no way to be stopped; what it holds lives on the stack. */
	if (sink->out->n > DEMANGLED_BYTES_MAX || sink->out->failed)
		longjmp(*sink->too_long, 1);
}

static bool demangle_plain(const char *mangled, struct strbuf *out)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;
	jmp_buf too_long;
	struct sink sink = {out, &too_long};

	if (setjmp(too_long))
		return false;
	/* Rust first: its legacy names are valid C++ ones with a hash as the last part. */
	if (rust_demangle_callback(mangled, options, collect, &sink))
		return true;
	strbuf_clear(out);
	return cplus_demangle_v3_callback(mangled, options, collect, &sink) != 0;
}

bool symbol_demangle(const char *name, struct strbuf *out)
{
	char mangled[MANGLED_BYTES_MAX];
	size_t n;

	strbuf_clear(out);
	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return false;
	/* "@plt", "@@GLIBCXX_3.4" are no part of the mangling. */
	n = strcspn(name, "@");
	if (n >= sizeof(mangled))
		return false;
	memcpy(mangled, name, n);
	mangled[n] = '\0';
	if (!demangle_plain(mangled, out) || !out->n) {
		strbuf_clear(out);
		return false;
	}
	strbuf_add(out, name + n, strnlen(name + n, MANGLED_BYTES_MAX));
	return !out->failed;
}
