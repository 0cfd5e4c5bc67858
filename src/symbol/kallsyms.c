/* SPDX-License-Identifier: BSD-2-Clause */
#include "kallsyms.h"
#include "naming.h"
#include <inspect/procfs.h>

#define KERNEL_PAGE_BYTES 4096ULL
#define PADDING "__pfx_"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* "ffffffff81000000 T _stext" and "…\t[module]"; false: no function. */
static bool parse_line(const char *text, const char *line, const char *end, struct kallsym *ret)
{
	const char *at = line, *name, *tab;
	uint64_t address = 0;
	int digit;

	for (; at < end && at - line < 16 && (digit = hex_digit(*at)) >= 0; at++)
		address = address << 4 | (unsigned)digit;
	if (at == line || end - at < 4 || at[0] != ' ' || at[2] != ' ' || !strchr("tTwW", at[1]))
		return false;
	name = at + 3;
	/* The padding before a function (CONFIG_PREFIX_SYMBOLS, 6.2) never runs: its place is that
	 * of the function, interrupted at its first instruction, a byte earlier like callers. */
	if (end - name > (ptrdiff_t)strlen(PADDING) && memcmp(name, PADDING, strlen(PADDING)) == 0)
		name += strlen(PADDING);
	tab = memchr(name, '\t', (size_t)(end - name));
	*ret = (struct kallsym){.address = address, .name = (uint32_t)(name - text)};
	ret->name_n = (uint32_t)((tab ? tab : end) - name);
	if (tab && tab + 1 < end && tab[1] == '[') {
		ret->module = (uint32_t)(tab + 1 - text);
		ret->module_n = (uint32_t)(end - (tab + 1));
	}
	return ret->name_n > 0;
}

static int by_address(const void *a, const void *b)
{
	const struct kallsym *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* The kernel's own symbols, most of all, are in order; modules come after them as they were loaded.
 * What is in order, and below everything that comes after it, stays. */
static void sort(struct kallsyms *k)
{
	size_t n = k->v.n ? 1 : 0;
	uint64_t lowest = UINT64_MAX;

	while (n < k->v.n && k->v.v[n - 1].address <= k->v.v[n].address)
		n++;
	for (size_t i = n; i < k->v.n; i++)
		lowest = MIN(lowest, k->v.v[i].address);
	if (lowest == UINT64_MAX)
		return;
	while (n && k->v.v[n - 1].address > lowest)
		n--;
	qsort(k->v.v + n, k->v.n - n, sizeof(*k->v.v), by_address);
}

int kallsyms_parse(const char *text, size_t n, struct kallsyms *ret)
{
	struct kallsyms k = {.text = text};
	const char *end = text + n;
	bool any_address = false;

	if (n > KALLSYMS_BYTES_MAX)
		return -EFBIG;
	for (const char *line = text; line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		struct kallsym s;

		if (!newline)
			newline = end;
		if (parse_line(text, line, newline, &s)) {
			any_address |= s.address != 0;
			if (array_push(&k.v, s)) {
				kallsyms_release(&k);
				return -ENOMEM;
			}
		}
		line = newline + 1;
	}
	k.hidden = k.v.n && !any_address;
	sort(&k);
	*ret = k;
	return 0;
}

void kallsyms_release(struct kallsyms *k)
{
	array_release(&k->v);
}

static bool same_module(const struct kallsyms *k, const struct kallsym *a, const struct kallsym *b)
{
	return a->module_n == b->module_n &&
	       memcmp(k->text + a->module, k->text + b->module, a->module_n) == 0;
}

const struct kallsym *kallsyms_find(const struct kallsyms *k, uint64_t address)
{
	size_t low = 0, high = k->v.n;
	const struct kallsym *found;

	/* Of several at one address the last is taken, as perf does. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->v.v[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || k->hidden)
		return NULL;
	found = &k->v.v[low - 1];
	if (low < k->v.n && same_module(k, found, found + 1))
		return found;
	return address - found->address < 2 * KERNEL_PAGE_BYTES - found->address % KERNEL_PAGE_BYTES
		       ? found
		       : NULL;
}

void kallsyms_explain_hidden(int64_t kptr_restrict, int64_t perf_event_paranoid, struct strbuf *out)
{
	bool paranoid = perf_event_paranoid > 1;

	strbuf_puts(out, "kernel names hidden: ");
	if (kptr_restrict != 0)
		strbuf_printf(out, "kernel.kptr_restrict=%lld", (long long)kptr_restrict);
	else
		strbuf_printf(out, "kernel.perf_event_paranoid=%lld and no CAP_SYSLOG",
			      (long long)perf_event_paranoid);
	strbuf_puts(out, "; fix: sudo sysctl");
	if (kptr_restrict != 0)
		strbuf_puts(out, " kernel.kptr_restrict=0");
	if (paranoid)
		strbuf_puts(out, " kernel.perf_event_paranoid=1");
}

static int note_hidden(struct naming *w)
{
	int64_t kptr_restrict = 1, paranoid = 2;

	file_read_i64("/proc/sys/kernel/kptr_restrict", &kptr_restrict);
	file_read_i64("/proc/sys/kernel/perf_event_paranoid", &paranoid);
	strbuf_clear(&w->text);
	kallsyms_explain_hidden(kptr_restrict, paranoid, &w->text);
	return w->text.failed ? -ENOMEM : profile_note(w->p, "%s", w->text.v);
}

static int name_one(struct naming *w, const struct kallsyms *k, const struct kallsym *s,
		    uint32_t frame)
{
	char module[64] = "[kernel]";
	uint32_t symbol;
	int err;

	if (s->module_n)
		snprintf(module, sizeof(module), "%.*s", (int)MIN(s->module_n, 63U),
			 k->text + s->module);
	err = naming_symbol(w, k->text + s->name, s->name_n, module, FRAME_KERNEL, false, &symbol);
	return err ? err : naming_set(w, frame, symbol);
}

/* The kernel is put somewhere else at each boot: where the recording says that it begins, it must
 * begin now. */
static bool is_this_boot(const struct profile *p, const struct strbuf *text)
{
	static const char *const starts[] = {"_text", "_stext"};

	for (size_t i = 0; i < ARRAY_SIZE(starts) && p->kernel_start_va; i++) {
		char line[64];
		int n = snprintf(line, sizeof(line), "%016llx T %s\n",
				 (unsigned long long)p->kernel_start_va, starts[i]);

		if (memmem(strbuf_str(text), text->n, line, (size_t)n))
			return true;
	}
	return !p->kernel_start_va;
}

/* The first frame at or above an address. */
static size_t first_at(const struct naming *w, const uint32_t *frames, size_t n, uint64_t va)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->p->frames.v[frames[middle]].loc < va)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Code that was there when the recording began, and that the kernel named when it went: what lies
 * there today is something else. */
static int name_gone(struct naming *w, const uint32_t *frames, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < w->p->codes.n && !err; i++) {
		struct code c = w->p->codes.v[i];
		const char *name = intern_str(&w->p->strings, c.name);
		size_t at = first_at(w, frames, n, c.start_va);

		if (c.pid || c.from_ns)
			continue;
		for (; at < n && w->p->frames.v[frames[at]].loc < c.end_va && !err; at++) {
			const char *module = intern_str(&w->p->strings, c.module);
			uint32_t symbol;

			err = naming_symbol(w, name, strlen(name), module, FRAME_KERNEL, false,
					    &symbol);
			if (!err)
				err = naming_set(w, frames[at], symbol);
		}
	}
	return err;
}

int naming_kernel(struct naming *w, const uint32_t *frames, size_t n)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	CLEANUP(kallsyms_release) struct kallsyms k = {0};
	int err = name_gone(w, frames, n);

	/* Another host's, or another boot's addresses mean nothing here. */
	if (err || !w->o->local_host)
		return err;
	err = file_read("/proc/kallsyms", KALLSYMS_BYTES_MAX, &text);
	if (!err)
		err = kallsyms_parse(strbuf_str(&text), text.n, &k);
	if (err == -ENOMEM)
		return err;
	if (err)
		return profile_note(w->p, "/proc/kallsyms: %s: kernel functions have no names",
				    strerror(-err));
	if (k.hidden)
		return note_hidden(w);
	if (!is_this_boot(w->p, &text))
		return profile_note(w->p, "recorded on another boot of this host: kernel functions "
					  "without a stored name have none");
	for (size_t i = 0; i < n && !err; i++) {
		const struct kallsym *s = kallsyms_find(&k, w->p->frames.v[frames[i]].loc);

		if (s && !w->names[frames[i]].n)
			err = name_one(w, &k, s, frames[i]);
	}
	return err;
}
