/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_spin SECONDS NAME…: a BPF program for each name, loaded, run for its share of the time, and
 * unloaded again before the next. Prints `NAME NS` of CPU time in each. 77: not allowed here.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 20000, RUNS = 100 };

#define INSN(c, dst, src, o, i)                                                                    \
	((struct bpf_insn){.code = (c), .dst_reg = (dst), .src_reg = (src), .off = (o), .imm = (i)})

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int load(const char *name)
{
	struct bpf_insn code[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, TURNS),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 1),
		INSN(BPF_ALU64 | BPF_SUB | BPF_K, 1, 0, 0, 1),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 1, 0, -3, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.license = (uintptr_t) "GPL",
	};

	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	return (int)bpf(BPF_PROG_LOAD, &attr);
}

int main(int argc, char **argv)
{
	uint64_t each_ns = argc > 2 ? (uint64_t)(atof(argv[1]) * 1e9) / (uint64_t)(argc - 2) : 0;

	for (int i = 2; i < argc; i++) {
		char packet[64] = {0};
		union bpf_attr attr = {.test = {.data_in = (uintptr_t)packet,
						.data_size_in = sizeof(packet),
						.repeat = RUNS}};
		int fd = load(argv[i]);
		uint64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + each_ns;

		attr.test.prog_fd = (uint32_t)fd;
		while (clock_ns(CLOCK_MONOTONIC) < end_ns)
			if (fd < 0 || bpf(BPF_PROG_TEST_RUN, &attr))
				return 77;
		close(fd);
		printf("%s %llu\n", argv[i],
		       (unsigned long long)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns));
		usleep(50000); /* the kernel unloads a moment later */
	}
	return 0;
}
