/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tasks are at now, read by an iterator in the kernel (bpf/tasks.bpf.c): nothing is attached,
 * and no task is stopped or slowed down.
 */
#ifndef INSPECT_TASK_STATE_H
#define INSPECT_TASK_STATE_H

#include <inspect/array.h>
#include <inspect/diag.h>
#include <inspect/host.h>
#include <lib/unwind_step.h>
#include <sys/types.h>

enum { TASK_STATE_KERNEL_FRAMES = 64, TASK_STATE_ARGS = 6 };

#define TASK_STATE_TIME_UNKNOWN UINT64_MAX

struct task_state {
	pid_t pid, tid;    /* of our own pid namespace */
	pid_t own_tid;     /* of the task's; 0 unknown */
	char state;        /* as /proc has it: R S D T t X Z P I */
	bool frozen;       /* by the freezer of its cgroup; from /proc: not known */
	bool on_cpu;       /* runs at this moment: its registers are not saved anywhere */
	bool is_kernel;    /* a kernel thread, or a worker that the kernel made in a process */
	bool is_32_bit;    /* its user code */
	bool calls_32_bit; /* syscall_nr is one of i386 */
	char comm[16];     /* raw bytes */
	uint64_t stamp;    /* changes whenever the task runs; 0 unknown */
	uint64_t since_ns; /* how long it has not run (R: waits for a CPU); or _TIME_UNKNOWN */
	struct unwind_state user; /* registers where it entered the kernel; known 0: none */
	int64_t syscall_nr;       /* -1: in none */
	uint64_t args[TASK_STATE_ARGS];
	uint64_t kernel[TASK_STATE_KERNEL_FRAMES]; /* leaf first */
	size_t n_kernel;
	/* Of the user stack, where it was asked for: borrowed until the reader's next such read. */
	const uint8_t *copy;
	uint64_t copy_va;
	size_t copy_bytes;
};

typedef ARRAY(struct task_state) task_states;
void task_states_release(task_states *s);

struct task_selection {
	const pid_t *pids; /* all their threads */
	size_t n_pids;
	const pid_t *tids; /* with no pids: these threads */
	size_t n_tids;     /* neither: every task there is */
	bool with_stacks;  /* copies of the user stacks, as far as task_reader_copies */
};

struct task_reader;

/* 0 or -errno, explained. */
int task_reader_new(const struct host *h, struct task_reader **ret, struct diag *d);
void task_reader_free(struct task_reader *r);
static inline void task_reader_freep(struct task_reader **r)
{
	task_reader_free(*r);
}

/* Whether it can copy stacks (Linux 5.18): for who may use BPF and not ptrace(2). */
bool task_reader_copies(const struct task_reader *r);

/* Puts the selected tasks into *ret, which is emptied first, in the kernel's order: by process id.
 * What has ended is left out. 0 or -errno. */
int task_reader_read(struct task_reader *r, const struct task_selection *which, task_states *ret);

/* The letter of /proc for task_struct.__state | exit_state. */
char task_state_letter(uint32_t bits);

#endif
