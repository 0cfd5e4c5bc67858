/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ticks HZ FILE CMD…: runs CMD, and writes to FILE what that took of it and of all that it started:
 * `cpu NS` of rusage, `clock NS` of a task-clock, `ticks N` samples of a plain cpu-clock of that rate.
 * Exits as CMD does.
 *
 * The oracle of how many samples there must be. CPU time alone is none on a virtual machine: while
 * its host holds a CPU up, the clock of events runs on and CPU time may not (steal, subtracted by
 * update_rq_clock_task), and all ticks of one holdup are one sample.
 */
#include "cpu_time.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPUS_MAX = 256, PAGE = 4096, RING_PAGES = 16 };

static int open_event(uint64_t config, uint64_t hz, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.freq = hz != 0,
		.sample_freq = hz,
		.inherit = 1,
		.disabled = 1,
		.enable_on_exec = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Records without fields, of a header each: their number is that of the bytes. */
static uint64_t drain(struct perf_event_mmap_page *const *rings, int n)
{
	uint64_t bytes = 0;

	for (int i = 0; i < n; i++) {
		uint64_t head = __atomic_load_n(&rings[i]->data_head, __ATOMIC_ACQUIRE);

		__atomic_store_n(&rings[i]->data_tail, head, __ATOMIC_RELEASE);
		bytes += head;
	}
	return bytes / sizeof(struct perf_event_header);
}

int main(int argc, char **argv)
{
	static struct perf_event_mmap_page *rings[CPUS_MAX];
	int n = 0, clock, go[2], status;
	uint64_t ticks, clock_ns = 0;
	FILE *out;
	pid_t pid;
	char c;

	if (argc < 4 || pipe(go) < 0) {
		fprintf(stderr, "usage: ticks HZ FILE CMD...\n");
		return 2;
	}
	pid = fork();
	if (!pid) {
		close(go[1]);
		while (read(go[0], &c, 1) < 0)
			;
		close(go[0]);
		execvp(argv[3], argv + 3);
		_exit(127);
	}
	clock = open_event(PERF_COUNT_SW_TASK_CLOCK, 0, pid, -1);
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		int fd = open_event(PERF_COUNT_SW_CPU_CLOCK, strtoull(argv[1], NULL, 10), pid, cpu);

		if (fd < 0)
			continue;
		rings[n] = mmap(NULL, (1 + RING_PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
				fd, 0);
		if (rings[n] == MAP_FAILED)
			return 1;
		n++;
	}
	signal(SIGINT, SIG_IGN);
	close(go[1]);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		poll(NULL, 0, 20);
		drain(rings, n);
	}
	ticks = drain(rings, n);
	out = fopen(argv[2], "w");
	if (!out || clock < 0 || read(clock, &clock_ns, sizeof(clock_ns)) < 0)
		return 1;
	fprintf(out, "cpu %llu\nclock %llu\nticks %llu\n",
		(unsigned long long)rusage_cpu_ns(RUSAGE_CHILDREN), (unsigned long long)clock_ns,
		(unsigned long long)ticks);
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
