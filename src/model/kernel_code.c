/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that comes into the kernel and goes: BPF programs, trampolines. */
#include "map_set.h"
#include <inspect/profile.h>

/* A recording of a machine sees some hundred; each costs a move of those behind it. */
#define KERNEL_CODES_MAX 16384U
#define NO_CODE UINT32_MAX

static int add_code(struct profile *p, const struct event *e, uint32_t *ret)
{
	const char *module = e->ksymbol.type == PERF_RECORD_KSYMBOL_TYPE_BPF ? "[bpf]" : "[kernel]";
	struct code c = {.start_va = e->ksymbol.addr,
			 .end_va = e->ksymbol.addr + e->ksymbol.len_bytes,
			 .from_ns = e->ksymbol.unregister ? 0 : e->time_ns,
			 .until_ns = e->ksymbol.unregister ? e->time_ns : 0};
	int err = intern_puts(&p->strings, e->ksymbol.name, &c.name);

	if (!err)
		err = intern_puts(&p->strings, module, &c.module);
	if (!err)
		err = array_push(&p->codes, c);
	if (err)
		return err;
	*ret = (uint32_t)p->codes.n - 1;
	return 0;
}

/* Each event of a recording may be told: what a record says is known already. */
static bool is_known(const struct profile *p, const struct event *e)
{
	const struct mapping *m = map_set_find(p->kernel_code, e->ksymbol.addr);
	const struct code *c;

	if (!m || m->start_va != e->ksymbol.addr)
		return false;
	if (m->dso == NO_CODE)
		return e->ksymbol.unregister;
	c = &p->codes.v[m->dso];
	return !e->ksymbol.unregister && c->end_va == c->start_va + e->ksymbol.len_bytes &&
	       str_eq(intern_str(&p->strings, c->name), e->ksymbol.name);
}

int profile_ksymbol(struct profile *p, const struct event *e)
{
	struct mapping m = {.start_va = e->ksymbol.addr,
			    .end_va = e->ksymbol.addr + e->ksymbol.len_bytes,
			    .dso = NO_CODE};
	uint32_t code;
	int err = 0;

	if (m.end_va <= m.start_va || !e->ksymbol.name[0] || p->codes.n >= KERNEL_CODES_MAX ||
	    is_known(p, e))
		return 0;
	if (!e->ksymbol.unregister)
		err = add_code(p, e, &m.dso);
	else if (!profile_kernel_code(p, m.start_va, &code))
		p->codes.v[code].until_ns = e->time_ns;
	else
		err = add_code(p, e, &code); /* it was there when the recording began */
	return err ? err : map_set_put(&p->kernel_code, &m);
}

int profile_kernel_code(const struct profile *p, uint64_t va, uint32_t *ret_code)
{
	const struct mapping *m = map_set_find(p->kernel_code, va);

	if (!m || m->dso == NO_CODE)
		return -ENOENT;
	*ret_code = m->dso;
	return 0;
}
