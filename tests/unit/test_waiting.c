/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits of a process for which there is too little room: whatever has none is counted and said. */
#include "../../src/capture/waiting.h"

#include <inspect/explain.h>
#include <inspect/procfs.h>
#include <inspect/source.h>

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { LOCKS = 200, THREADS = 20, LOOPS = 4 };

static struct host host;

/* --- the process ------------------------------------------------------------------------------ */

static void *end_at_once(void *unused)
{
	return unused;
}

static void *poll_twice(void *unused)
{
	poll(NULL, 0, 2);
	poll(NULL, 0, 2);
	return unused;
}

static void run_threads(int n, void *(*run)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			_exit(1);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

/* Each lock is a row of its own; sleeping and reading have other stacks. */
static void wait_for_much(int go)
{
	static uint32_t locks[LOCKS];
	const struct timespec shortly = {.tv_nsec = 1000};
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* where a test fails */
	if (read(go, &byte, 1) != 1)
		_exit(1);
	nanosleep(&shortly, NULL);
	for (int i = 0; i < LOCKS; i++)
		syscall(SYS_futex, &locks[i], FUTEX_WAIT_PRIVATE, 0, &shortly, NULL, 0);
	run_threads(THREADS, end_at_once);
	run_threads(LOOPS, poll_twice);
	if (read(go, &byte, 1) != 1)
		_exit(1);
	_exit(0);
}

/* --- watching it ------------------------------------------------------------------------------ */

struct session {
	pid_t pid;
	int go;
	struct source *source;
	struct waits waits;
	note_list notes;
	uint64_t lost; /* by records */
};

static int keep_lost(void *ctx, const struct perf_event_header *h, size_t size_bytes)
{
	struct session *w = ctx;

	assert_true(size_bytes >= sizeof(*h) + 2 * sizeof(uint64_t));
	if (h->type == PERF_RECORD_LOST)
		w->lost += ((const uint64_t *)(const void *)h)[2];
	return 0;
}

static bool is_asleep(pid_t pid)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
	return !file_read(path, 4096, &text) && strstr(strbuf_str(&text), "pipe_read");
}

/* Nothing is read meanwhile: all of it has to find room at once. */
static void watch(struct session *w, const struct offcpu_room *room)
{
	struct probe_target target = {.cgroup_fd = -1, .n_pids = 1};
	struct waiting_config config = {.target = &target,
					.with_stacks = true,
					.chains = true,
					.loops = true,
					.room = *room};
	struct diag d = {0};
	int go[2];

	*w = (struct session){0};
	assert_int_equal(pipe(go), 0);
	w->pid = fork();
	if (!w->pid)
		wait_for_much(go[0]);
	w->go = go[1];
	target.pids = &w->pid;
	assert_int_equal(waiting_new(&config, &host, &w->notes, &w->waits, &w->source, &d), 0);
	assert_int_equal(w->source->ops->start(w->source, &d), 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	do
		usleep(20000);
	while (!is_asleep(w->pid));
	assert_int_equal(w->source->ops->stop(w->source), 0);
	assert_true(w->source->ops->read(w->source, keep_lost, w, &d) >= 0);
	assert_int_equal(waiting_finish(w->source, keep_lost, w), 0);
	assert_int_equal(waiting_notes(w->source, &w->notes), 0);
	diag_release(&d);
	close(go[0]);
}

static void end(struct session *w)
{
	assert_int_equal(write(w->go, "x", 1), 1);
	waitpid(w->pid, NULL, 0);
	close(w->go);
	w->source->ops->free(w->source);
	waits_release(&w->waits);
	note_list_release(&w->notes);
}

static bool has_note(const struct session *w, uint64_t n, const char *text)
{
	char wanted[128];

	snprintf(wanted, sizeof(wanted), "%llu %s", (unsigned long long)n, text);
	for (size_t i = 0; i < w->notes.n; i++)
		if (str_starts(w->notes.v[i], wanted))
			return true;
	return false;
}

/* Every ns that a thread was off the CPU is in a row, or counted as in none. */
static void check_sums(const struct session *w)
{
	for (size_t i = 0; i < w->waits.threads.n; i++) {
		const struct wait_thread *t = &w->waits.threads.v[i];
		uint64_t ns = t->totals.lost_ns;

		for (size_t j = 0; j < w->waits.parts.n; j++)
			if (w->waits.parts.v[j].serial == t->serial)
				ns += w->waits.parts.v[j].wait_ns + w->waits.parts.v[j].queue_ns;
		assert_int_equal(ns, t->totals.off_ns);
	}
}

static void test_too_little_room(void **state)
{
	const struct offcpu_room room = {.rows = 8, .stacks = 1, .totals = 2, .loops = 1};
	struct session w;
	const struct offcpu_lost *l = &w.waits.lost;

	(void)state;
	watch(&w, &room);
	check_sums(&w);
	assert_true(l->rows_full > LOCKS / 2);
	assert_true(has_note(&w, l->rows_full, "waits are in no row"));
	assert_true(l->stacks_full >= 1);
	assert_true(w.waits.without_stack >= 1);
	assert_true(has_note(&w, w.waits.without_stack, "waits have no stack: there are too many"));
	assert_int_equal(l->totals_full, THREADS + LOOPS - 2);
	assert_true(has_note(&w, l->totals_full, "threads that ended are missing"));
	assert_true(l->loops_full >= 1);
	assert_true(has_note(&w, l->loops_full, "gaps of event loops are in no row"));
	assert_true(l->chains_lost >= 1);
	assert_true(has_note(&w, l->chains_lost, "waits do not say who woke whom"));
	assert_int_equal(w.waits.loops.n, 1);
	assert_int_equal(waits_lost(&w.waits), l->rows_full + w.waits.without_stack +
						       w.waits.without_link + l->totals_full +
						       l->loops_full + l->chains_lost);
	assert_int_equal(w.lost, waits_lost(&w.waits));
	end(&w);
}

static void test_room_enough(void **state)
{
	struct session w;

	(void)state;
	watch(&w, &(struct offcpu_room){0});
	check_sums(&w);
	assert_int_equal(waits_lost(&w.waits), 0);
	assert_int_equal(w.waits.threads.n, 1 + THREADS + LOOPS);
	assert_int_equal(w.waits.loops.n, LOOPS);
	assert_int_equal(w.waits.loops.v[0].gaps.n, 1);
	end(&w);
}

/* The last wait of a site, not over at the end, has no waker: its stack is not the one to show. */
static void test_stack_with_wakers(void **state)
{
	struct waits w = {0};
	struct wait_site site = {.stack = UINT32_MAX};

	(void)state;
	assert_int_equal(array_push(&w.sites, site), 0);
	waiting_found(&w, 0, 3);
	assert_int_equal(w.sites.v[0].stack, 3);
	waiting_found(&w, SITE_WITH_LINKS, 5);
	waiting_found(&w, 0, 7);
	assert_int_equal(w.sites.v[0].stack, 5);
	waiting_found(&w, SITE_WITH_LINKS, 8);
	waiting_found(&w, SITE_WITH_LINKS | 1, 9); /* there is no such site */
	assert_int_equal(w.sites.v[0].stack, 8);
	waits_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_with_wakers),
		cmocka_unit_test(test_too_little_room),
		cmocka_unit_test(test_room_enough),
	};
	struct diag d = {0};

	host_read(&host, "");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	if (explain_bpf_tracing(&host, TRACING_SINCE_5_10, "test", "", &d)) {
		printf("1..0 # SKIP no BPF here\n");
		diag_release(&d);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
