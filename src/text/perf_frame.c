/* SPDX-License-Identifier: BSD-2-Clause */
/* `symbol+0x10 (module)` of a perf-script line as a frame. Runs once for each different text. */
#include "text.h"

static bool span_is(struct span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.s, text, s.n) == 0;
}

static bool span_starts(struct span s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.n >= n && memcmp(s.s, prefix, n) == 0;
}

static bool span_ends(struct span s, const char *suffix)
{
	size_t n = strlen(suffix);

	return s.n >= n && memcmp(s.s + s.n - n, suffix, n) == 0;
}

/* Without a `+0x…` at its end, unless that is all there is. */
static struct span strip_offset(struct span s)
{
	size_t n = s.n;

	while (n && (is_digit(s.s[n - 1]) || (s.s[n - 1] >= 'a' && s.s[n - 1] <= 'f')))
		n--;
	if (n != s.n && n > 3 && memcmp(s.s + n - 3, "+0x", 3) == 0)
		s.n = n - 3;
	return s;
}

/* Where ` (module)` begins when its brackets are balanced, or SIZE_MAX. */
static size_t balanced_module(struct span text)
{
	size_t depth = 0;

	for (size_t i = text.n; i; i--) {
		char c = text.s[i - 1];

		depth += c == ')';
		if (c == '(' && --depth == 0)
			return i > 1 && is_blank(text.s[i - 2]) ? i - 1 : SIZE_MAX;
	}
	return SIZE_MAX;
}

/* The same for module names with an odd bracket: behind an offset, else the last ` (`. */
static size_t odd_module(struct span text)
{
	size_t last = SIZE_MAX;

	for (size_t i = text.n - 1; i > 1; i--) {
		struct span symbol = {text.s, i - 1};

		if (text.s[i] != '(' || text.s[i - 1] != ' ')
			continue;
		if (strip_offset(symbol).n != symbol.n)
			return i;
		if (last == SIZE_MAX)
			last = i;
	}
	return last;
}

/* Both spans are inside the text; the module is without its brackets, empty when none is given. */
static void split_module(struct span text, struct span *ret_symbol, struct span *ret_module)
{
	size_t open = SIZE_MAX;

	if (text.n && text.s[text.n - 1] == ')') {
		open = balanced_module(text);
		if (open == SIZE_MAX)
			open = odd_module(text);
	}
	*ret_symbol = text;
	*ret_module = (struct span){text.s + text.n, 0};
	if (open == SIZE_MAX)
		return;
	ret_symbol->n = open;
	while (ret_symbol->n && is_blank(text.s[ret_symbol->n - 1]))
		ret_symbol->n--;
	*ret_module = (struct span){text.s + open + 1, text.n - open - 2};
}

/* The part after the last '/', without what perf or the kernel add. */
static struct span short_name(struct span module)
{
	const char *slash;

	if (span_ends(module, " (deleted)"))
		module.n -= strlen(" (deleted)");
	slash = memrchr(module.s, '/', module.n);
	if (slash && slash + 1 < module.s + module.n) {
		module.n -= (size_t)(slash + 1 - module.s);
		module.s = slash + 1;
	}
	return module;
}

/* `[name]` of a kernel module; the kernel has other bracketed names for user memory. */
static bool is_kernel_module(struct span module)
{
	static const char *const user[] = {"[vdso]",    "[vdso32]", "[vsyscall]", "[vvar]",
					   "[heap]",    "[stack]",  "[unknown]",  "[uprobes]",
					   "[sigpage]", "[vectors]"};

	if (module.n < 3 || module.s[0] != '[' || module.s[module.n - 1] != ']')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(user); i++)
		if (span_is(module, user[i]))
			return false;
	/* "[anon:…]", "[stack:123]" */
	return !memchr(module.s, ':', module.n);
}

static bool is_kernel(struct span module, struct span name)
{
	static const char *const suffixes[] = {".ko", ".ko.gz", ".ko.xz", ".ko.zst"};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (span_ends(name, suffixes[i]))
			return true;
	return span_starts(module, "[kernel.kallsyms]") || span_starts(module, "[guest.kernel") ||
	       span_is(name, "vmlinux") || span_starts(name, "vmlinux-") ||
	       span_starts(module, "bpf_prog_") || is_kernel_module(module);
}

static bool is_jit(struct span module, struct span name)
{
	return (span_starts(module, "/tmp/perf-") && span_ends(module, ".map")) ||
	       span_starts(name, "jitted-");
}

/* `[libfoo.so]` for an address in a known module; names that have brackets keep them. */
static int unnamed_frame(struct profile *p, enum frame_kind kind, struct span module,
			 uint32_t *ret_frame)
{
	CLEANUP(freep) char *name = NULL;
	int n;

	if (!module.n || module.s[0] == '[')
		n = asprintf(&name, "%.*s", (int)MIN(module.n, (size_t)INT32_MAX), module.s);
	else
		n = asprintf(&name, "[%.*s]", (int)MIN(module.n, (size_t)INT32_MAX), module.s);
	if (n < 0) {
		name = NULL; /* undefined after a failure */
		return -ENOMEM;
	}
	return profile_named_frame(p, kind, name, (size_t)n, module.s, module.n, ret_frame);
}

int perf_frame_make(struct profile *p, struct span text, uint32_t *ret_frame)
{
	static const struct span kernel = {"[kernel]", 8}, none = {"", 0};
	enum frame_kind kind = FRAME_NATIVE;
	struct span symbol, module, name;

	split_module(text, &symbol, &module);
	symbol = strip_offset(symbol);
	module = strip_offset(module);
	name = short_name(module);
	if (span_is(module, "inlined")) {
		kind = FRAME_INLINED;
		name = none;
	} else if (span_is(module, "[unknown]")) {
		name = none;
	} else if (is_kernel(module, name)) {
		kind = FRAME_KERNEL;
		if (span_starts(module, "[kernel.kallsyms]"))
			name = kernel;
	} else if (is_jit(module, name)) {
		kind = FRAME_JIT;
	}
	if (symbol.n && !span_is(symbol, "[unknown]"))
		return profile_named_frame(p, kind, symbol.s, symbol.n, name.s, name.n, ret_frame);
	if (name.n)
		return unnamed_frame(p, kind, name, ret_frame);
	return profile_named_frame(p, kind, "[unknown]", 9, "", 0, ret_frame);
}
