/* SPDX-License-Identifier: BSD-2-Clause */
#include "flame.h"
#include <inspect/clock.h>
#include <inspect/term.h>

const struct flame_kind flame_kinds[FLAME_KINDS] = {
	[FRAME_NATIVE] = {'n', "native", 6},     [FRAME_KERNEL] = {'k', "kernel", 6},
	[FRAME_INLINED] = {'i', "inlined", 6},   [FRAME_PYTHON] = {'p', "python", 6},
	[FRAME_JIT] = {'j', "jit", 6},           [FRAME_SYNTHETIC] = {'s', "synthetic", 1},
	[FLAME_THREAD] = {'t', "thread", 1},     [FLAME_ON_CPU] = {'o', "on-cpu", 1},
	[FLAME_RUNNABLE] = {'r', "runnable", 1}, [FLAME_WAITING] = {'w', "waiting", 6},
};

static const struct intern_string *name_of(const struct profile *p, uint32_t symbol)
{
	return &p->strings.strings
			.v[symbol & FLAME_COMM ? symbol & ~FLAME_COMM : p->symbols.v[symbol].name];
}

/* The leaves of offcpu and --wall, which are named as code of the kernel's (capture/waiting.c). */
static uint32_t kind_of_kernel(const char *name)
{
	if (str_eq(name, "[on-cpu]"))
		return FLAME_ON_CPU;
	if (str_eq(name, "[runnable]") || str_eq(name, "[throttled]"))
		return FLAME_RUNNABLE;
	return str_starts(name, "[waiting: ") || str_eq(name, "[stopped]") ? FLAME_WAITING
									   : FRAME_KERNEL;
}

uint32_t flame_symbol_kind(const struct profile *p, uint32_t symbol)
{
	uint32_t kind = symbol & FLAME_COMM ? FLAME_THREAD : p->symbols.v[symbol].kind;

	if (kind == FRAME_KERNEL)
		return kind_of_kernel(name_of(p, symbol)->s);
	return kind < FLAME_KINDS ? kind : FRAME_NATIVE;
}

unsigned flame_symbol_shade(const struct profile *p, uint32_t symbol)
{
	const struct intern_string *name = name_of(p, symbol);
	uint32_t hash = 2166136261U; /* FNV-1a: the same on every machine */

	for (uint32_t i = 0; i < name->n; i++)
		hash = (hash ^ (unsigned char)name->s[i]) * 16777619U;
	return (hash ^ hash >> 15) % flame_kinds[flame_symbol_kind(p, symbol)].shades;
}

void flame_symbol_text(const struct profile *p, uint32_t symbol, struct strbuf *out)
{
	const struct intern_string *name = name_of(p, symbol);

	term_escape(out, name->s, name->n);
}

uint32_t flame_symbol_module(const struct profile *p, uint32_t symbol)
{
	return symbol & FLAME_COMM ? 0 : p->symbols.v[symbol].module;
}

void flame_grouped(struct strbuf *out, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			strbuf_putc(out, ',');
		strbuf_putc(out, digits[i]);
	}
}

static void add_seconds(struct strbuf *out, uint64_t ns)
{
	char text[32];

	strbuf_puts(out, duration_format(ns, text, sizeof(text)));
}

static void add_quality(const struct profile *p, struct strbuf *out)
{
	const struct losses *l = &p->losses;
	const struct {
		const char *label;
		uint64_t n;
		bool always;
	} parts[] = {
		{"lost", l->lost, true},
		{"truncated", l->truncated, !p->no_stacks},
		{"throttled", l->throttled, false},
		{"without stack", l->without_stack, false},
		{"damaged", l->damaged, false},
		{"late", l->late, false},
		{"filtered", l->filtered, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i].n && !parts[i].always)
			continue;
		strbuf_printf(out, " · %s ", parts[i].label);
		flame_grouped(out, parts[i].n);
	}
	if (p->no_stacks && l->samples)
		strbuf_puts(out, " · no stacks recorded");
}

void flame_subtitle(const struct profile *p, uint32_t event, struct strbuf *out)
{
	const struct profile_event *e = event < p->events.n ? &p->events.v[event] : NULL;
	uint64_t weight, count;

	profile_totals(p, event, &weight, &count);
	if (e && *e->name) {
		term_escape(out, e->name, strlen(e->name));
		if (e->freq_hz)
			strbuf_printf(out, " at %llu Hz", (unsigned long long)e->freq_hz);
		strbuf_puts(out, " · ");
	}
	flame_grouped(out, count);
	strbuf_puts(out, count == 1 ? " sample" : " samples");
	if (e && str_eq(e->unit, "ns")) {
		strbuf_puts(out, " = ");
		add_seconds(out, weight);
	}
	if (p->duration_ns) {
		strbuf_puts(out, " in ");
		add_seconds(out, p->duration_ns);
	}
	add_quality(p, out);
}
