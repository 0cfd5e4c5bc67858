/* SPDX-License-Identifier: BSD-2-Clause */
/* Circles of locks, groups and their order; memory of others that may not be waited for. */
#include "../../src/capture/memory_probe.h"
#include "../../src/capture/snapshot_impl.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

/* --- circles ---------------------------------------------------------------------------------- */

/* Threads 1, 2, 3, … that wait for the given ones (0: for none). */
static void waiting(struct snapshot *s, const pid_t *owners, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct snapshot_thread t = {.task = {.pid = 1, .tid = (pid_t)i + 1, .state = 'S'},
					    .wait = {.text = "", .owner = owners[i]}};

		assert_int_equal(array_push(&s->threads, t), 0);
	}
}

static void check_cycles(const pid_t *owners, const uint32_t *wanted, size_t n, uint32_t cycles)
{
	struct snapshot s = {0};

	waiting(&s, owners, n);
	assert_int_equal(snapshot_find_cycles(&s), 0);
	assert_int_equal(s.n_cycles, cycles);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(s.threads.v[i].cycle, wanted[i]);
	snapshot_release(&s);
}

static void circles(void **state)
{
	(void)state;
	/* two that wait for each other, a third behind them */
	check_cycles((pid_t[]){2, 1, 1}, (uint32_t[]){1, 1, 0}, 3, 1);
	/* the third is looked at first */
	check_cycles((pid_t[]){2, 3, 2}, (uint32_t[]){0, 1, 1}, 3, 1);
	/* a chain that ends */
	check_cycles((pid_t[]){2, 3, 0}, (uint32_t[]){0, 0, 0}, 3, 0);
	/* a holder that is not there */
	check_cycles((pid_t[]){99, 1}, (uint32_t[]){0, 0}, 2, 0);
	/* itself, and another circle of three */
	check_cycles((pid_t[]){1, 3, 4, 2}, (uint32_t[]){1, 2, 2, 2}, 4, 2);
	check_cycles(NULL, NULL, 0, 0);
}

/* --- groups ----------------------------------------------------------------------------------- */

static void add(struct snapshot *s, pid_t tid, char state, const char *call, bool by_design,
		uint32_t leaf)
{
	struct snapshot_thread t = {.task = {.pid = 1, .tid = tid, .state = state},
				    .wait = {.text = "", .call = call, .by_design = by_design}};

	assert_int_equal(array_push(&t.path.at, (struct symbol_at){.symbol = 7, .line = 1}), 0);
	/* A line is no reason for a group of its own. */
	assert_int_equal(array_push(&t.path.at,
				    (struct symbol_at){.symbol = leaf, .line = (uint32_t)tid}),
			 0);
	assert_int_equal(array_push(&s->threads, t), 0);
}

static void groups(void **state)
{
	static const pid_t wanted[] = {6, 5, 2, 4, 8, 1, 3, 7, 9};
	struct snapshot s = {0};

	(void)state;
	add(&s, 1, 'S', "futex", false, 10);
	add(&s, 2, 'S', "read", false, 10); /* the same place, another call */
	add(&s, 3, 'S', "futex", false, 10);
	add(&s, 4, 'S', "epoll_wait", true, 11);
	add(&s, 5, 'R', NULL, false, 12);
	add(&s, 6, 'D', NULL, false, 13);
	add(&s, 7, 'S', "futex", false, 10);
	add(&s, 8, 'Z', NULL, false, 10);
	add(&s, 9, 'S', "futex", false, 10);
	s.threads.v[7].wait.by_design = true; /* after what waits by design too, by its place */
	assert_int_equal(snapshot_group(&s), 0);
	assert_int_equal(s.groups.n, 6);
	for (size_t g = 0, i = 0; g < s.groups.n; g++)
		for (size_t k = 0; k < s.groups.v[g].n; k++, i++) {
			const struct snapshot_thread *t =
				&s.threads.v[s.order.v[s.groups.v[g].first + k]];

			assert_int_equal(t->task.tid, wanted[i]);
			assert_int_equal(t->group, g);
		}
	snapshot_release(&s);
}

static void no_threads(void **state)
{
	struct snapshot s = {0};

	(void)state;
	assert_int_equal(snapshot_group(&s), 0);
	assert_int_equal(s.groups.n, 0);
	snapshot_release(&s);
}

/* --- states ----------------------------------------------------------------------------------- */

static void state_letters(void **state)
{
	static const struct {
		uint32_t bits;
		char letter;
	} cases[] = {
		{0, 'R'},     {0x1, 'S'},    {0x2, 'D'},         {0x102, 'D'}, /* killable */
		{0x402, 'I'}, {0x2001, 'S'}, {0x8000, 'D'},      {0x4, 'T'},   {0x104, 'T'},
		{0x8, 't'},   {0x40, 'P'},   {0x80 | 0x20, 'Z'}, {0x10, 'X'},  {0x1000, 'D'},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(task_state_letter(cases[i].bits), cases[i].letter);
}

/* --- memory ----------------------------------------------------------------------------------- */

struct shared_page {
	char *there, *missing; /* addresses in the child */
};

static pid_t child_with_pages(struct shared_page *ret)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {(uintptr_t)(pages + bytes), bytes},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	int ready[2], fd;
	char byte;
	pid_t pid;

	assert_ptr_not_equal(pages, MAP_FAILED);
	memset(pages, 'x', bytes);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		alarm(60);
		/* A page that nobody brings in: who touches it waits. */
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
		byte = fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	*ret = (struct shared_page){pages, byte ? NULL : pages + bytes};
	return pid;
}

static void remote_pages(void **state)
{
	struct remote_memory *m = calloc(1, sizeof(*m));
	struct shared_page at;
	pid_t pid = child_with_pages(&at);
	char bytes[64];

	(void)state;
	assert_non_null(m);
	remote_memory_init(m);
	remote_memory_begin(m, pid);
	assert_int_equal(remote_memory_read(m, (uintptr_t)at.there + 10, bytes, 2), 0);
	assert_memory_equal(bytes, "xx", 2);
	alarm(20); /* instead of waiting for ever */
	if (at.missing) {
		assert_int_equal(remote_memory_read(m, (uintptr_t)at.missing, bytes, 1), -EFAULT);
		assert_int_equal(remote_memory_read(m, (uintptr_t)at.missing - 8, bytes, 16),
				 -EFAULT);
	} else {
		print_message("# no userfaultfd here\n");
	}
	alarm(0);
	assert_int_equal(remote_memory_read(m, 8, bytes, 8), -EFAULT);
	assert_int_equal(remote_memory_read(m, UINT64_MAX - 2, bytes, 8), -EFAULT);
	/* A copy goes first, where it has all of it. */
	m->copy = (const uint8_t *)"abcdefgh";
	m->copy_va = (uintptr_t)at.there;
	m->copy_bytes = 8;
	assert_int_equal(remote_memory_read(m, (uintptr_t)at.there + 6, bytes, 2), 0);
	assert_memory_equal(bytes, "gh", 2);
	assert_int_equal(remote_memory_read(m, (uintptr_t)at.there + 7, bytes, 2), 0);
	assert_memory_equal(bytes, "xx", 2);
	remote_memory_release(m);
	free(m);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Those above 1000 never answer. */
static void try_number(pid_t pid)
{
	while (pid > 1000)
		pause();
}

static void locked_memory(void **state)
{
	static const pid_t pids[] = {1, 1001, 2, 3, 1002, 1003, 4};
	bool stuck[ARRAY_SIZE(pids)];

	(void)state;
	assert_int_equal(memory_probe(pids, ARRAY_SIZE(pids), try_number, NSEC_PER_SEC / 2, stuck),
			 0);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		assert_int_equal(stuck[i], pids[i] > 1000);
	assert_int_equal(memory_probe(pids, 0, try_number, 1, stuck), 0);
}

/* Ourselves, and one that does not exist: both answer. */
static void open_memory(void **state)
{
	const pid_t pids[] = {getpid(), INT32_MAX};
	bool stuck[2];

	(void)state;
	assert_int_equal(memory_probe(pids, 2, memory_try, 20 * NSEC_PER_SEC, stuck), 0);
	assert_false(stuck[0] || stuck[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(circles),      cmocka_unit_test(groups),
		cmocka_unit_test(no_threads),   cmocka_unit_test(state_letters),
		cmocka_unit_test(remote_pages), cmocka_unit_test(locked_memory),
		cmocka_unit_test(open_memory),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
