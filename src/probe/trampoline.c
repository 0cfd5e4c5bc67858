/* SPDX-License-Identifier: BSD-2-Clause */
#include "trampoline.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/version.h>

/* A trampoline could go while somebody slept in the function: fixed in 5.12. */
#define TRAMPOLINES_HOLD KERNEL_VERSION(5, 13, 0)

bool trampoline_works(uint32_t type, const struct host *h)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY,
		    .attach_btf_id = type);
	CLEANUP(closep) int program = -1;
	CLEANUP(closep) int link = -1;

	if (h->kernel_version && h->kernel_version < TRAMPOLINES_HOLD)
		return false;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "inspect_nothing", "GPL", nothing,
				ARRAY_SIZE(nothing), &opts);
	link = program < 0 ? -1 : bpf_raw_tracepoint_open(NULL, program);
	return link >= 0;
}
