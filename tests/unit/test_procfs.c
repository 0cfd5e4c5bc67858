/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/procfs.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

static void test_file_read(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	char path[] = "/tmp/inspect-procfs-XXXXXX";
	int64_t v = 7;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "-12\n", 4), 4);
	assert_int_equal(file_read(path, 4, &b), 0);
	assert_string_equal(strbuf_str(&b), "-12\n");
	assert_int_equal(file_read(path, 3, &b), -EFBIG);
	assert_int_equal(file_read_i64(path, &v), 0);
	assert_int_equal(v, -12);
	assert_int_equal(pwrite(fd, "12x\n", 4, 0), 4);
	assert_int_equal(file_read_i64(path, &v), -EINVAL);
	assert_int_equal(pwrite(fd, "99999999999999999999", 20, 0), 20);
	assert_int_equal(file_read_i64(path, &v), -ERANGE);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(file_read_i64(path, &v), -EINVAL);
	assert_int_equal(v, -12);
	unlink(path);
	assert_int_equal(file_read(path, 100, &b), -ENOENT);
	assert_int_equal(file_read("/tmp", 100, &b), -EISDIR);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(file_read(path, 100, &b), 0); /* and doesn't wait for a writer */
	assert_string_equal(strbuf_str(&b), "");
	unlink(path);
	close(fd);
}

/* Raw bytes, a comm that looks like the end of itself, and no truncation. */
static void test_hostile_comm(void **state UNUSED)
{
	static const char *const names[] = {
		"a) R 1 (x) S",     "sp ace", "back\\slash", "new\nline)",
		"\xff\xfe;<b>\x1b", "((",     ")",           "\\n"};
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char saved[16];

	prctl(PR_GET_NAME, saved);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(strbuf_release) struct strbuf comm = {0};
		struct proc_stat stat;

		assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
		assert_int_equal(proc_stat_read(getpid(), tid, &stat), 0);
		assert_string_equal(stat.comm, names[i]);
		assert_int_equal(stat.state, 'R');
		assert_int_equal(stat.ppid, getppid());
		assert_int_equal(proc_comm_read(getpid(), tid, &comm), 0);
		assert_string_equal(strbuf_str(&comm), names[i]);
	}
	prctl(PR_SET_NAME, saved);
}

static void *wait_for_lock(void *lock)
{
	pthread_setname_np(pthread_self(), "thread ) two");
	pthread_mutex_lock(lock);
	return NULL;
}

static void test_threads(void **state UNUSED)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct pid_list tids = {0};
	struct proc_stat stat;
	pthread_t thread;

	pthread_mutex_lock(&lock);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &lock), 0);
	assert_int_equal(proc_threads(getpid(), &tids), 0);
	assert_int_equal(tids.n, 2);
	assert_int_equal(tids.v[0], getpid());
	do
		assert_int_equal(proc_stat_read(getpid(), tids.v[1], &stat), 0);
	while (stat.state != 'S');
	assert_string_equal(stat.comm, "thread ) two");
	assert_int_equal(stat.num_threads, 2);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	array_release(&tids);
}

static void test_stat_times(void **state UNUSED)
{
	struct proc_stat before, after;
	struct timespec boot;
	struct rusage usage;
	uint64_t used_ns;

	assert_int_equal(proc_stat_read(getpid(), 0, &before), 0);
	while (clock_own_cpu_ns() < 150 * NSEC_PER_MSEC)
		;
	getrusage(RUSAGE_SELF, &usage);
	assert_int_equal(proc_stat_read(getpid(), 0, &after), 0);
	used_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
		  (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NSEC_PER_USEC;
	/* stat counts in ticks of 10 ms */
	assert_true(after.utime_ns + after.stime_ns + 25 * NSEC_PER_MSEC > used_ns);
	assert_true(after.utime_ns + after.stime_ns < used_ns + 25 * NSEC_PER_MSEC);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	assert_true(after.start_time_ns <= (uint64_t)(boot.tv_sec + 1) * NSEC_PER_SEC);
	assert_true(after.start_time_ns + 60 * NSEC_PER_SEC > (uint64_t)boot.tv_sec * NSEC_PER_SEC);
	assert_int_equal(before.start_time_ns, after.start_time_ns);
}

struct find_map {
	uint64_t start;
	struct proc_map found;
	char path[256];
	size_t n;
};

static int find_map(void *ctx, const struct proc_map *map)
{
	struct find_map *find = ctx;

	find->n++;
	if (map->start != find->start)
		return 0;
	find->found = *map;
	snprintf(find->path, sizeof(find->path), "%s", map->path);
	return 55;
}

static void test_maps(void **state UNUSED)
{
	char dir[] = "/tmp/inspect maps-XXXXXX", path[64], deleted[96];
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct find_map find = {0};
	struct stat st;
	void *file, *anonymous;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/new\nline  x ", dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(3 * page_bytes)), 0);
	assert_int_equal(fstat(fd, &st), 0);
	file = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_EXEC, MAP_SHARED, fd, (off_t)page_bytes);
	assert_true(file != MAP_FAILED);
	anonymous = mmap(NULL, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(anonymous != MAP_FAILED);

	find.start = (uintptr_t)file;
	assert_int_equal(proc_maps_each(getpid(), find_map, &find), 55);
	assert_string_equal(find.path, path);
	assert_int_equal(find.found.end, (uintptr_t)file + 2 * page_bytes);
	assert_int_equal(find.found.pgoff_bytes, page_bytes);
	assert_int_equal(find.found.ino, st.st_ino);
	assert_true(find.found.read && find.found.exec && find.found.shared && !find.found.write);

	unlink(path);
	snprintf(deleted, sizeof(deleted), "%s (deleted)", path);
	assert_int_equal(proc_maps_each(getpid(), find_map, &find), 55);
	assert_string_equal(find.path, deleted);

	/* Neighbouring anonymous memory may be one line: look for it by protection only. */
	find = (struct find_map){.start = (uintptr_t)anonymous};
	if (proc_maps_each(getpid(), find_map, &find) == 55) {
		assert_string_equal(find.path, "");
		assert_false(find.found.read || find.found.exec || find.found.shared);
	}
	find = (struct find_map){0};
	assert_int_equal(proc_maps_each(getpid(), find_map, &find), 0);
	assert_true(find.n > 10);
	assert_int_equal(proc_maps_each(INT32_MAX, find_map, &find), -ENOENT);
	munmap(file, 2 * page_bytes);
	munmap(anonymous, page_bytes);
	rmdir(dir);
	close(fd);
}

static bool has(const struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i] == pid)
			return true;
	return false;
}

static bool is_sorted(const struct pid_list *list)
{
	for (size_t i = 1; i < list->n; i++)
		if (list->v[i - 1] >= list->v[i])
			return false;
	return true;
}

/* child → grandchild, which reports its pid and waits until the pipe closes. */
static void run_child(int report, int until)
{
	pid_t grandchild = fork();
	char c;

	if (grandchild == 0) {
		pid_t self = getpid();

		if (write(report, &self, sizeof(self)) == sizeof(self) && read(until, &c, 1) == 0)
			_exit(0);
		_exit(1);
	}
	waitpid(grandchild, NULL, 0);
	_exit(0);
}

static void test_descendants(void **state UNUSED)
{
	struct pid_list list = {0}, all = {0};
	int report[2], until[2];
	pid_t child, grandchild;

	assert_int_equal(pipe(report), 0);
	assert_int_equal(pipe(until), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(until[1]);
		run_child(report[1], until[0]);
	}
	assert_int_equal(read(report[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	assert_int_equal(proc_descendants(getpid(), &list), 0);
	assert_int_equal(list.n, 2);
	assert_true(has(&list, child) && has(&list, grandchild) && is_sorted(&list));
	assert_int_equal(proc_descendants(child, &list), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.v[0], grandchild);
	assert_int_equal(proc_descendants(grandchild, &list), 0);
	assert_int_equal(list.n, 0);
	assert_int_equal(proc_pids(&all), 0);
	assert_true(has(&all, getpid()) && has(&all, grandchild) && is_sorted(&all));
	close(until[1]);
	waitpid(child, NULL, 0);
	assert_int_equal(proc_descendants(getpid(), &list), 0);
	assert_int_equal(list.n, 0);
	array_release(&list);
	array_release(&all);
}

static void test_missing(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf comm = {0};
	struct pid_list list = {0};
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(INT32_MAX, 0, &stat), -ENOENT);
	assert_int_equal(proc_comm_read(INT32_MAX, 0, &comm), -ENOENT);
	assert_int_equal(proc_threads(INT32_MAX, &list), -ENOENT);
	assert_null(list.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_read), cmocka_unit_test(test_hostile_comm),
		cmocka_unit_test(test_threads),   cmocka_unit_test(test_stat_times),
		cmocka_unit_test(test_maps),      cmocka_unit_test(test_descendants),
		cmocka_unit_test(test_missing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
