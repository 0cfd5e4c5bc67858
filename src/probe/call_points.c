/* SPDX-License-Identifier: BSD-2-Clause */
#include "call_points.h"

#include <bpf/libbpf.h>

/* With more calls than these their own tracepoints cost more to attach than they spare. */
enum { ONE_CALL_MOST = 8 };

static size_t native_calls(const struct syscall_set *only)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(only->bits[SYSCALL_NATIVE]); i++)
		n += (size_t)__builtin_popcountll(only->bits[SYSCALL_NATIVE][i]);
	return n;
}

enum syscall_attach probe_calls_choose(const struct probe_call_programs *p,
				       const struct syscall_set *only, const struct host *h)
{
	/* Calls that only 32-bit code has are not seen by tracepoints of single calls. */
	size_t n = only ? native_calls(only) : 0;

	if (n && n <= ONE_CALL_MOST && h->tracefs[0])
		return SYSCALL_ATTACH_ONE_CALL;
	bpf_program__set_autoload(p->one_enter, false);
	bpf_program__set_autoload(p->one_exit, false);
	return SYSCALL_ATTACH_TP_BTF;
}

static int attach_one(struct probe_core *c, const struct probe_call_programs *p, uint32_t nr)
{
	char buf[SYSCALL_NAME_BYTES], event[64];
	const char *name = syscall_name(SYSCALL_NATIVE, nr, buf);
	int err;

	snprintf(event, sizeof(event), "sys_enter_%s", name);
	err = probe_core_keep(c, bpf_program__attach_tracepoint(p->one_enter, "syscalls", event));
	if (err)
		return err;
	snprintf(event, sizeof(event), "sys_exit_%s", name);
	return probe_core_keep(c, bpf_program__attach_tracepoint(p->one_exit, "syscalls", event));
}

int probe_attach_calls(struct probe_core *c, const struct probe_call_programs *p,
		       const struct syscall_set *only, enum syscall_attach *how, struct diag *d)
{
	size_t before = c->links.n;
	int err = *how == SYSCALL_ATTACH_ONE_CALL ? 0 : -ENOENT;

	for (uint32_t nr = 0; nr < SYSCALL_SET_NUMBERS && !err; nr++)
		if (syscall_set_has(only, SYSCALL_NATIVE, nr))
			err = attach_one(c, p, nr);
	if (!err)
		return 0;
	/* A few calls have other names there, such as newstat. */
	probe_core_detach(c, before);
	*how = SYSCALL_ATTACH_TP_BTF;
	err = probe_core_attach(c, "on_sys_enter", d);
	return err ? err : probe_core_attach(c, "on_sys_exit", d);
}

const char *syscall_attach_text(enum syscall_attach how)
{
	return how == SYSCALL_ATTACH_ONE_CALL
		       ? "the tracepoints of these calls (others pay for a flag: 1.2x of a short "
			 "call; 32-bit calls are not seen)"
		       : "tp_btf of all calls (each call of any process pays for it: about 0.1 µs)";
}
