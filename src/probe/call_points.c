/* SPDX-License-Identifier: BSD-2-Clause */
#include "call_points.h"
#include "trampoline.h"

#include <bpf/libbpf.h>
#include <linux/bpf.h>

/* With more calls than these their own points cost more to attach than they spare. */
enum { FEW_CALLS = 8, FUNCTION_NAME_BYTES = SYSCALL_NAME_BYTES + 16 };

#if defined(__x86_64__)
#define FUNCTION_PREFIX "__x64_sys_"
#else
#define FUNCTION_PREFIX "__arm64_sys_"
#endif

/* The native ones, at most that many; how many there are. */
static size_t native_calls(const struct syscall_set *only, uint32_t *ret, size_t most)
{
	size_t n = 0;

	for (uint32_t nr = 0; nr < SYSCALL_SET_NUMBERS; nr++)
		if (syscall_set_has(only, SYSCALL_NATIVE, nr) && n++ < most)
			ret[n - 1] = nr;
	return n;
}

/* What the kernel calls it. There are functions stat, fstat and lstat too, of older calls. */
static const char *kernel_name(uint32_t nr, char buf[SYSCALL_NAME_BYTES])
{
	static const struct {
		const char *name, *in_kernel;
	} others[] = {
		{"stat", "newstat"},        {"fstat", "newfstat"}, {"lstat", "newlstat"},
		{"sendfile", "sendfile64"}, {"uname", "newuname"}, {"umount2", "umount"},
	};
	const char *name = syscall_name(SYSCALL_NATIVE, nr, buf);

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (str_eq(name, others[i].name))
			return others[i].in_kernel;
	return name;
}

/* --- functions -------------------------------------------------------------------------------- */

/* 0 or -ENOENT. */
static int find_function(uint32_t nr, char ret[FUNCTION_NAME_BYTES])
{
	char buf[SYSCALL_NAME_BYTES];
	const char *name = kernel_name(nr, buf);
	const struct syscall_info *info = syscall_info_find(name);

	snprintf(ret, FUNCTION_NAME_BYTES, FUNCTION_PREFIX "%s", name);
	if (libbpf_find_vmlinux_btf_id(ret, BPF_TRACE_FENTRY) > 0)
		return 0;
	/* Of a call without arguments that name is an alias, which BTF has not. */
	snprintf(ret, FUNCTION_NAME_BYTES, "__do_sys_%s", name);
	return info && info->args[0] == ARG_END &&
			       libbpf_find_vmlinux_btf_id(ret, BPF_TRACE_FENTRY) > 0
		       ? 0
		       : -ENOENT;
}

static struct bpf_program *function_program(const struct bpf_object *object, size_t i, bool at_exit)
{
	char name[32];

	snprintf(name, sizeof(name), "on_function%zu_%s", i, at_exit ? "exit" : "enter");
	return bpf_object__find_program_by_name(object, name);
}

/* From exit and exit_group nobody comes back: a trampoline would stay for ever. */
static bool returns(uint32_t nr)
{
	char buf[SYSCALL_NAME_BYTES];

	return !str_starts(syscall_name(SYSCALL_NATIVE, nr, buf), "exit");
}

/* Names the functions to the programs. */
static bool choose_functions(const struct bpf_object *object, const uint32_t *calls, size_t n,
			     const struct host *h)
{
	char name[FUNCTION_NAME_BYTES];

	for (size_t i = 0; i < n; i++) {
		int type;

		if (!returns(calls[i]) || find_function(calls[i], name))
			return false;
		type = libbpf_find_vmlinux_btf_id(name, BPF_TRACE_FENTRY);
		if (!i && !trampoline_works((uint32_t)type, h))
			return false;
		for (int at_exit = 0; at_exit < 2; at_exit++)
			if (bpf_program__set_attach_target(function_program(object, i, at_exit), 0,
							   name))
				return false;
	}
	return true;
}

static void load_functions(const struct bpf_object *object, size_t n)
{
	for (size_t i = 0; i < FEW_CALLS; i++)
		for (int at_exit = 0; at_exit < 2; at_exit++)
			bpf_program__set_autoload(function_program(object, i, at_exit), i < n);
}

/* --- choosing and attaching ------------------------------------------------------------------- */

enum syscall_attach probe_calls_choose(const struct probe_call_programs *p,
				       const struct syscall_set *only, const struct host *h)
{
	enum syscall_attach how = SYSCALL_ATTACH_TP_BTF;
	uint32_t calls[FEW_CALLS];
	/* Calls that only 32-bit code has are not seen by points of single calls. */
	size_t n = only ? native_calls(only, calls, FEW_CALLS) : 0;

	if (n && n <= FEW_CALLS && !p->no_functions && choose_functions(p->object, calls, n, h))
		how = SYSCALL_ATTACH_FUNCTION;
	else if (n && n <= FEW_CALLS && h->tracefs[0])
		how = SYSCALL_ATTACH_ONE_CALL;
	load_functions(p->object, how == SYSCALL_ATTACH_FUNCTION ? n : 0);
	bpf_program__set_autoload(p->one_enter, how == SYSCALL_ATTACH_ONE_CALL);
	bpf_program__set_autoload(p->one_exit, how == SYSCALL_ATTACH_ONE_CALL);
	return how;
}

static int attach_tracepoint(struct probe_core *c, const struct bpf_program *program,
			     const char *prefix, uint32_t nr)
{
	char buf[SYSCALL_NAME_BYTES], event[64];

	snprintf(event, sizeof(event), "%s%s", prefix, kernel_name(nr, buf));
	return probe_core_keep(c, bpf_program__attach_tracepoint(program, "syscalls", event));
}

static int attach_one(struct probe_core *c, const struct probe_call_programs *p, uint32_t nr,
		      size_t i, bool by_function)
{
	const struct bpf_program *enter, *exit;
	int err;

	if (!by_function) {
		err = attach_tracepoint(c, p->one_enter, "sys_enter_", nr);
		return err ? err : attach_tracepoint(c, p->one_exit, "sys_exit_", nr);
	}
	enter = function_program(p->object, i, false);
	exit = function_program(p->object, i, true);
	err = probe_core_keep(c, bpf_program__attach(enter));
	return err ? err : probe_core_keep(c, bpf_program__attach(exit));
}

int probe_attach_calls(struct probe_core *c, const struct probe_call_programs *p,
		       const struct syscall_set *only, enum syscall_attach *how, struct diag *d)
{
	size_t before = c->links.n, n = 0;
	uint32_t calls[FEW_CALLS];
	int err = 0;

	if (*how != SYSCALL_ATTACH_TP_BTF)
		n = native_calls(only, calls, FEW_CALLS);
	for (size_t i = 0; i < n && !err; i++)
		err = attach_one(c, p, calls[i], i, *how == SYSCALL_ATTACH_FUNCTION);
	if (n && !err)
		return 0;
	/* Not each kernel has each call. */
	probe_core_detach(c, before);
	*how = SYSCALL_ATTACH_TP_BTF;
	err = probe_core_keep(c, bpf_program__attach(p->all_enter));
	if (!err)
		err = probe_core_keep(c, bpf_program__attach(p->all_exit));
	return diag_errno(d, err, "attaching to system calls with BPF");
}

const char *syscall_attach_text(enum syscall_attach how)
{
	switch (how) {
	case SYSCALL_ATTACH_FUNCTION:
		return "the kernel's functions of these calls, by fentry (other calls pay nothing; "
		       "32-bit calls are not seen)";
	case SYSCALL_ATTACH_ONE_CALL:
		return "the tracepoints of these calls (others pay for a flag: 1.2x of a short "
		       "call; 32-bit calls are not seen)";
	default:
		return "tp_btf of all calls (each call of any process pays for it: about 0.1 µs)";
	}
}
