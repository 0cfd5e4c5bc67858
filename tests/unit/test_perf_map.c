/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "skip.h"
#include <fcntl.h>
#include <inspect/array.h>
#include <inspect/clock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../../src/symbol/perf_map.h"
#include "scratch.h"

static void named(const char *text, uint64_t address, const char *want)
{
	struct perf_map_query q = {.address = address};

	assert_int_equal(perf_map_find(text, strlen(text), &q, 1), 0);
	if (!want) {
		assert_null(q.name);
		return;
	}
	assert_non_null(q.name);
	assert_int_equal(q.name_n, strlen(want));
	assert_memory_equal(q.name, want, q.name_n);
}

static void lines(void **state)
{
	static const char map[] = "7f0000001000 40 plain\n"
				  "7f0000001040 40 with spaces (in; it)\r\n"
				  "0x7f0000002000 0x10 prefixed\n"
				  "7F0000003000 AB upper\n"
				  "7f0000004000 0 empty\n"
				  "junk\n\n7f0000005000\n7f0000005000 10\n7f0000005000 10 \n"
				  "12345678901234567 10 over 64 bits\n"
				  "fffffffffffffff0 ffff to the end\n"
				  "7f0000006000 10 last without newline";

	(void)state;
	named(map, 0x7f0000001000, "plain");
	named(map, 0x7f000000103f, "plain");
	named(map, 0x7f0000001040, "with spaces (in; it)");
	named(map, 0x7f0000001080, NULL);
	named(map, 0x7f000000200f, "prefixed");
	named(map, 0x7f00000030aa, "upper");
	named(map, 0x7f00000030ab, NULL);
	named(map, 0x7f0000004000, NULL);
	named(map, 0x7f0000005000, NULL);
	named(map, 0x7f0000006001, "last without newline");
	named(map, UINT64_MAX, "to the end");
	named(map, 0xffffffffffffffef, NULL);
	named(map, 0, NULL); /* the size does not wrap around */
	named("", 0, NULL);
}

static void the_last_written_wins(void **state)
{
	static const char map[] = "1000 100 old\n"
				  "1000 20 new\n"
				  "1080 10 middle\n"
				  "10f0 100 next\n"
				  "1100 10 newest\n";

	(void)state;
	named(map, 0x1000, "new");
	named(map, 0x1020, "old");
	named(map, 0x1085, "middle");
	named(map, 0x1095, "old");
	named(map, 0x10f0, "next");
	named(map, 0x1105, "newest");
	named(map, 0x1115, "next");
	named(map, 0x11f0, NULL);
}

/* Against painting every byte in the order of the lines. */
static void equals_painting(void **state)
{
	enum { SPACE = 4096, ENTRIES = 500 };
	static uint16_t paint[SPACE];
	static struct perf_map_query queries[SPACE];
	struct strbuf map = {0};
	uint32_t x = 7;

	(void)state;
	for (unsigned i = 1; i <= ENTRIES; i++) {
		unsigned start, size;

		x = x * 1664525 + 1013904223;
		start = (x >> 8) % SPACE;
		size = (x >> 22) % 64;
		strbuf_printf(&map, "%x %x f%u\n", start, size, i);
		for (unsigned at = start; at < start + size && at < SPACE; at++)
			paint[at] = (uint16_t)i;
	}
	for (unsigned at = 0; at < SPACE; at++)
		queries[at].address = at;
	assert_int_equal(perf_map_find(map.v, map.n, queries, SPACE), 0);
	for (unsigned at = 0; at < SPACE; at++) {
		unsigned i = queries[at].name ? (unsigned)atoi(queries[at].name + 1) : 0;

		assert_int_equal(i, paint[at]);
	}
	strbuf_release(&map);
}

static void many_lines_over_many_addresses(void **state)
{
	enum { QUERIES = 100000, LINES = 200000 };
	struct perf_map_query *queries = calloc(QUERIES, sizeof(*queries));
	struct strbuf map = {0};
	uint64_t before;

	(void)state;
	assert_non_null(queries);
	for (unsigned i = 0; i < QUERIES; i++)
		queries[i].address = i;
	for (unsigned i = 0; i < LINES; i++)
		strbuf_printf(&map, "0 ffffffff all %u\n", i);
	before = clock_own_cpu_ns();
	assert_int_equal(perf_map_find(map.v, map.n, queries, QUERIES), 0);
	assert_true(clock_own_cpu_ns() - before < NSEC_PER_SEC);
	assert_memory_equal(queries[QUERIES / 2].name, "all 199999", 10);
	strbuf_release(&map);
	free(queries);
}

static void map_path(char *path, size_t size, pid_t pid)
{
	snprintf(path, size, "/tmp/perf-%d.map", pid);
}

static void only_from_its_owner(void **state)
{
	char path[64];
	int fd;

	(void)state;
	map_path(path, sizeof(path), getpid());
	unlink(path);
	assert_int_equal(perf_map_open(getpid()), -ENOENT);
	write_text(path, "1000 10 f\n");
	fd = perf_map_open(getpid());
	assert_true(fd >= 0);
	close(fd);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(perf_map_open(getpid()), -EPERM);
	}
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(perf_map_open(getpid()), -ELOOP);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(perf_map_open(getpid()), -EINVAL);
	rmdir(path);
}

static void of_a_process_that_is_gone(void **state)
{
	char path[64];
	pid_t pid = fork();
	int fd;

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	map_path(path, sizeof(path), pid);
	write_text(path, "1000 10 f\n");
	fd = perf_map_open(pid);
	assert_true(fd >= 0);
	close(fd);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(perf_map_open(pid), -EPERM);
	}
	unlink(path);
}

/* As in a container: pid 1 of its own pid namespace, with its own /tmp. */
static int contained(void *fds)
{
	const int *pipes = fds;
	char byte;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/tmp", "tmpfs", 0, NULL))
		_exit(1);
	write_text("/tmp/perf-1.map", "1000 10 inside\n");
	if (write(pipes[1], "x", 1) != 1 || read(pipes[2], &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static void in_its_own_namespaces(void **state)
{
	static char stack[65536] __attribute__((aligned(16)));
	int pipes[4];
	char byte, text[64] = "";
	pid_t pid;
	int fd;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(pipes + 2), 0);
	pid = clone(contained, stack + sizeof(stack), CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, pipes);
	if (pid < 0) {
		skip_because("namespaces are not allowed here: %s", strerror(errno));
	}
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		skip_because("mounts are not allowed here");
	}
	fd = perf_map_open(pid);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "1000 10 inside\n");
	close(fd);
	assert_int_equal(write(pipes[3], "x", 1), 1);
	close(pipes[3]);
	waitpid(pid, NULL, 0);
	close(pipes[0]);
	close(pipes[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(the_last_written_wins),
		cmocka_unit_test(equals_painting),
		cmocka_unit_test(many_lines_over_many_addresses),
		cmocka_unit_test(only_from_its_owner),
		cmocka_unit_test(of_a_process_that_is_gone),
		cmocka_unit_test(in_its_own_namespaces),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
