/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of the sampler share: a target process, a session that samples it, a tally of what
 * came.
 *
 * The oracle of how many samples must come is a plain cpu-clock of the same rate on the same
 * process, whose records are counted here. CPU time alone is none on a virtual machine: while its
 * host holds a CPU up, the clock of events runs on and CPU time may not (steal, subtracted by
 * update_rq_clock_task), and all ticks of one holdup are one sample. The timers of two events meet
 * the same holdups.
 */
#ifndef TESTS_SAMPLER_SESSION_H
#define TESTS_SAMPLER_SESSION_H

#include <inspect/clock.h>
#include <inspect/perf_sampler.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "skip.h"

#define HZ_ASKED 999
#define BURN_NS (300 * NSEC_PER_MSEC)
#define TIDS_MAX 512

static struct host host; /* read by setup */

static inline size_t open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static inline void burn(uint64_t cpu_ns)
{
	uint64_t end = thread_cpu_ns() + cpu_ns;

	while (thread_cpu_ns() < end)
		for (volatile int i = 0; i < 10000; i++)
			;
}

/* --- the target ------------------------------------------------------------------------------- */

#define TICK_CPUS_MAX 64
#define TICK_RING_BYTES (64 * 4096)

/* Counts the ticks of a cpu-clock on a process and what it makes. */
struct ticks {
	struct {
		int fd; /* -1: no such CPU */
		struct perf_event_mmap_page *ring;
	} cpus[TICK_CPUS_MAX];
};

struct target {
	pid_t pid;
	int go;    /* closing it lets the target go on */
	int clock; /* task-clock of it and what it makes */
	struct shared {
		pid_t tid; /* of a thread that it made */
		int made;  /* threads so far */
		int spin, stop;
	} * shared;
};

typedef void body_fn(struct shared *shared);

static inline int task_clock_open(pid_t pid)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.inherit = 1,
		.exclude_kernel = 1, /* asks for fewer rights; a clock counts all the same */
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* What the clock of events says of the target so far, in seconds. */
static inline double target_clock_s(const struct target *t)
{
	uint64_t ns = 0;

	assert_int_equal(read(t->clock, &ns, sizeof(ns)), sizeof(ns));
	return (double)ns / 1e9;
}

static inline void ticks_open(struct ticks *t, pid_t pid, uint64_t hz)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
		.sample_type = PERF_SAMPLE_TID,
		.inherit = 1,
	};

	for (int i = 0; i < TICK_CPUS_MAX; i++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, pid, i, -1, PERF_FLAG_FD_CLOEXEC);

		t->cpus[i].fd = fd;
		if (fd < 0)
			continue;
		t->cpus[i].ring = mmap(NULL, 4096 + TICK_RING_BYTES, PROT_READ | PROT_WRITE,
				       MAP_SHARED, fd, 0);
		assert_true(t->cpus[i].ring != MAP_FAILED);
	}
}

/* Of one thread, or of all with tid 0. */
static inline size_t ticks_so_far(const struct ticks *t, pid_t tid)
{
	size_t n = 0;

	for (int i = 0; i < TICK_CPUS_MAX; i++) {
		const struct perf_event_mmap_page *ring = t->cpus[i].ring;
		const struct {
			struct perf_event_header header;
			uint32_t pid, tid;
		} * records;
		uint64_t head;

		if (t->cpus[i].fd < 0)
			continue;
		records = (const void *)((const uint8_t *)ring + 4096);
		head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
		assert_true(head < TICK_RING_BYTES); /* nothing was lost */
		for (size_t at = 0; at < head / sizeof(*records); at++) {
			assert_int_equal(records[at].header.size, sizeof(*records));
			if (records[at].header.type == PERF_RECORD_SAMPLE)
				n += !tid || records[at].tid == (uint32_t)tid;
		}
	}
	return n;
}

static inline void ticks_close(struct ticks *t)
{
	for (int i = 0; i < TICK_CPUS_MAX; i++) {
		if (t->cpus[i].fd < 0)
			continue;
		munmap(t->cpus[i].ring, 4096 + TICK_RING_BYTES);
		close(t->cpus[i].fd);
	}
}

/* A child that waits to be let go, and then does `body`. */
static inline struct target target_start(body_fn *body)
{
	struct target t;
	int pipe_fds[2];
	char c;

	t.shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(t.shared != MAP_FAILED);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	t.pid = fork();
	assert_true(t.pid >= 0);
	if (!t.pid) {
		close(pipe_fds[1]);
		while (read(pipe_fds[0], &c, 1) < 0)
			;
		body(t.shared);
		_exit(0);
	}
	close(pipe_fds[0]);
	t.go = pipe_fds[1];
	t.clock = task_clock_open(t.pid);
	assert_true(t.clock >= 0);
	return t;
}

static inline void target_go(struct target *t)
{
	if (t->go >= 0)
		close(TAKE_FD(t->go));
}

/* Its CPU time in all, in seconds; ends it if need be. */
static inline double target_end(struct target *t)
{
	struct rusage usage;
	int status;

	target_go(t);
	assert_int_equal(wait4(t->pid, &status, 0, &usage), t->pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	munmap(t->shared, 4096);
	close(t->clock);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* --- what came -------------------------------------------------------------------------------- */

struct tally {
	const struct event_table *events;
	size_t samples, by_event[4], unknown_id, kernel, throttles;
	uint64_t lost;
	struct {
		uint32_t tid;
		size_t n;
	} by_tid[TIDS_MAX];
	size_t n_tids, mmap2, comm_exec, forks;
	char exec_comm[16];
	uint64_t last_time_ns[64]; /* by CPU */
	size_t out_of_order;
};

static inline void tally_sample(struct tally *t, const struct perf_event_header *record)
{
	const struct {
		struct perf_event_header header;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t period;
	} *s = (const void *)record;
	int event = event_table_find_id(t->events, s->id);
	size_t i = 0;

	assert_true(record->size >= sizeof(*s));
	assert_true(s->cpu < ARRAY_SIZE(t->last_time_ns));
	t->samples++;
	t->kernel += (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	if (event < 0)
		t->unknown_id++;
	else
		t->by_event[event]++;
	t->out_of_order += s->time_ns < t->last_time_ns[s->cpu];
	t->last_time_ns[s->cpu] = s->time_ns;
	while (i < t->n_tids && t->by_tid[i].tid != s->tid)
		i++;
	if (i == TIDS_MAX)
		return;
	t->n_tids = MAX(t->n_tids, i + 1);
	t->by_tid[i].tid = s->tid;
	t->by_tid[i].n++;
}

static inline int tally_record(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct tally *t = ctx;
	const uint8_t *bytes = (const uint8_t *)record;

	assert_int_equal(record->size, size_bytes);
	if (record->type == PERF_RECORD_SAMPLE)
		tally_sample(t, record);
	if (record->type == PERF_RECORD_LOST)
		t->lost += *(const uint64_t *)(bytes + 16);
	if (record->type == PERF_RECORD_COMM && record->misc & PERF_RECORD_MISC_COMM_EXEC) {
		t->comm_exec++;
		snprintf(t->exec_comm, sizeof(t->exec_comm), "%s", (const char *)bytes + 16);
	}
	t->mmap2 += record->type == PERF_RECORD_MMAP2;
	t->forks += record->type == PERF_RECORD_FORK;
	t->throttles += record->type == PERF_RECORD_THROTTLE;
	return 0;
}

static inline size_t tally_of_tid(const struct tally *t, pid_t tid)
{
	for (size_t i = 0; i < t->n_tids; i++)
		if (t->by_tid[i].tid == (uint32_t)tid)
			return t->by_tid[i].n;
	return 0;
}

/* --- the sampler ------------------------------------------------------------------------------ */

struct session {
	event_specs specs;
	note_list notes;
	struct sampler_config config;
	struct source *source;
	struct diag d;
	struct tally tally;
};

static inline void session_init(struct session *s, const char *events)
{
	*s = (struct session){0};
	assert_int_equal(event_specs_parse(events, &host, &s->specs, &s->d), 0);
	s->config = (struct sampler_config){
		.events = &s->specs, .freq_hz = HZ_ASKED, .callchain = true, .cgroup_fd = -1};
}

static inline int session_open(struct session *s)
{
	int err = sampler_new(&s->config, &host, &s->notes, &s->source, &s->d);

	if (err)
		return err;
	s->tally.events = s->source->events;
	return 0;
}

static inline void session_start(struct session *s)
{
	int err = session_open(s);

	if (err)
		fail_msg("%s: %s", s->d.what, s->d.why ? s->d.why : "");
	assert_int_equal(s->source->ops->start(s->source, &s->d), 0);
}

static inline int session_read(struct session *s)
{
	return s->source->ops->read(s->source, tally_record, &s->tally, &s->d);
}

/* Reads until the target is gone, or some time has passed. */
static inline void session_run(struct session *s, uint64_t for_ns)
{
	uint64_t end = clock_now_ns() + for_ns;
	struct pollfd polls[64];
	size_t n;

	while (clock_now_ns() < end && session_read(s) == 1) {
		n = s->source->ops->fds(s->source, polls, ARRAY_SIZE(polls));
		poll(polls, (nfds_t)n, 20);
	}
}

/* For a source that does not end with the target. */
static inline void session_run_until_exit(struct session *s, const struct target *t)
{
	siginfo_t ended = {0};

	while (!ended.si_pid) {
		session_run(s, 50 * NSEC_PER_MSEC);
		assert_int_equal(waitid(P_PID, (id_t)t->pid, &ended, WEXITED | WNOWAIT | WNOHANG),
				 0);
	}
}

static inline void session_release(struct session *s)
{
	source_freep(&s->source);
	event_specs_release(&s->specs);
	note_list_release(&s->notes);
	diag_release(&s->d);
}

static inline bool has_note(const struct session *s, const char *word)
{
	for (size_t i = 0; i < s->notes.n; i++)
		if (strstr(s->notes.v[i], word))
			return true;
	return false;
}

/* As many samples as ticks, within 5 %. */
static inline void assert_samples(size_t got, size_t ticks, const char *what)
{
	if ((double)got < (double)ticks * 0.95 || (double)got > (double)ticks * 1.05)
		fail_msg("%s: %zu, expected %zu", what, got, ticks);
}

static inline void burn_some(struct shared *shared)
{
	(void)shared;
	burn(BURN_NS);
}

static inline double process_cpu_s(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
