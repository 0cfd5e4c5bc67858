/* SPDX-License-Identifier: BSD-2-Clause */
/* A process as its files say; machines of which nothing can be read, or nonsense. */
#include "use_tree.h"

/* --- a process, by /proc alone ---------------------------------------------------------------- */

/* A thread of tid with so many ticks, and its schedstat in milliseconds. */
static void put_thread(int pid, int tid, unsigned ticks, unsigned run_ms, unsigned delay_ms)
{
	char path[128], text[512];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	snprintf(
		text, sizeof(text),
		"%d (a) b) S 1 1 1 0 -1 0 5 0 7 0 %u 0 0 0 20 0 2 0 1000 0 0 0 0 0 0 0 0 0 0 0 0 0 "
		"0 0 0 0 0 0 0 3 0 0\n",
		tid, ticks);
	put(path, text);
	if (tid == pid) {
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		put(path, text);
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	snprintf(text, sizeof(text), "%u000000 %u000000 5\n", run_ms, delay_ms);
	put(path, text);
}

static void put_process(unsigned k)
{
	char text[512];

	put_thread(40, 40, 100 + k * 100, 1000 + k * 1000, 10 + k * 1500);
	put_thread(40, 41, 100 + k * 950, 1000 + k * 9500, 10);
	put("/proc/40/status", "Name:\ta) b\nUid:\t1000\t1000\t1000\t1000\nVmRSS:\t  2097152 kB\n"
			       "VmSwap:\t    4096 kB\nVmLck:\t      60 kB\nThreads:\t170\n"
			       "Cpus_allowed_list:\t0-1,6\n");
	put("/proc/40/limits",
	    "Limit                     Soft Limit           Hard Limit           Units     \n"
	    "Max processes             200                  200                  processes \n"
	    "Max open files            8                    4096                 files     \n"
	    "Max locked memory         65536                65536                bytes     \n");
	snprintf(text, sizeof(text), "rchar: 1\nread_bytes: %u\nwrite_bytes: %u\n", k * 4000000,
		 k * 6000000);
	put("/proc/40/io", text);
}

/* Others: of the same user, and root's. Its own threads are 170. */
static void put_others(void)
{
	put("/proc/41/status", "Uid:\t1000\t0\t0\t0\nThreads:\t10\n");
	put("/proc/42/status", "Uid:\t0\t1000\t1000\t1000\nThreads:\t99\n");
}

/* DRM: two descriptors of one client; the busiest of its engines counts. */
static void put_drm(unsigned k)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t9\n"
		 "drm-memory-vram:\t2048 KiB\ndrm-engine-gfx:\t%u000000 ns\n"
		 "drm-engine-compute:\t%u000000 ns\ndrm-engine-capacity-compute:\t2\n",
		 5 + k * 1000, 5 + k * 17000);
	put("/proc/40/fdinfo/7", text);
	put("/proc/40/fdinfo/8", text);
	put("/sys/class/drm/card0/device/gpu_busy_percent", "77\n");
	put("/sys/class/drm/card0/device/mem_info_vram_used", "980\n");
	put("/sys/class/drm/card0/device/mem_info_vram_total", "1000\n");
}

static void test_process(void **state UNUSED)
{
	static const pid_t pid = 40;

	put_stat(8, 0, -1);
	put_process(0);
	put_others();
	put_drm(0);
	free(shell(
		"cd '%s/proc/40' && mkdir fd && cd fd && for i in 0 1 2 3 4 5; do ln -s /dev/null "
		"$i; done; ln -s /dev/dri/renderD128 7; ln -s /dev/dri/renderD128 8",
		scratch));
	open_session_of(&pid, 1, NULL);
	put_process(1);
	put_drm(1);
	put_stat(8, 1000, -1);
	close_session();
	assert_value("process CPU", "a) b/40", "process_cpus", 1.05);
	assert_value("process CPU", "a) b/40", "process_cpu_percent", 35); /* of three CPUs */
	assert_value("process CPU", "a) b/40", "process_run_delay_percent", 15);
	assert_value("hottest thread", "a) b/41", "thread_busy_percent", 95);
	assert_value("fds", "a) b/40", "fds_percent", 100);
	assert_value("process threads", "a) b/40", "process_threads_percent", 90);
	assert_value("process memory", "a) b/40", "process_memory_bytes", 2147483648.);
	assert_value("process memory", "a) b/40", "process_swap_bytes", 4194304);
	assert_value("process memory", "a) b/40", "locked_percent", 93.75);
	assert_value("process I/O", "a) b/40", "process_disk_bytes_per_second", 1e6);
	assert_lacks("locks", "", "lock_wait");
	assert_value("GPU", "amdgpu 0000:03:00.0 client 9", "drm_busy_percent", 85);
	assert_value("GPU", "amdgpu 0000:03:00.0 client 9", "drm_memory_bytes", 2097152);
	assert_value("GPU", "card0", "card_busy_percent", 77);
	assert_int_equal(row_of("GPU", "card0")->verdict, USE_WARN);
	use_report_release(&report);
}

/* --- users' threads, as BPF has them ---------------------------------------------------------- */

static int give_tasks(void *ctx UNUSED, struct task_table *ret)
{
	static const struct task_times tasks[] = {
		{.pid = 7, .tid = 7, .uid = 9, .user_tasks = 60, .user_limit = 100, .comm = "x"},
		{.pid = 8, .tid = 8, .uid = 9, .user_tasks = 60, .user_limit = 80, .comm = "y"},
		{.pid = 40, .tid = 40, .uid = 1, .user_tasks = 9, .user_limit = 12, .comm = "z"},
		{.pid = 41, .tid = 41, .uid = 2, .user_tasks = 9, .user_limit = 90, .comm = "w"},
		{.pid = 42, .tid = 42, .user_tasks = 500, .comm = "root"},
	};
	static uint64_t n;

	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++)
		assert_int_equal(array_push(&ret->tasks, tasks[i]), 0);
	ret->has_refusals = true;
	n++;
	/* Of its user's limit, of the system's, and of a process that is gone. */
	return array_push(&ret->refusals,
			  (struct task_refusals){.pid = 41, .user_eagain = 3 * n}) ||
			       array_push(&ret->refusals, (struct task_refusals){.pid = 5,
										 .user_eagain = n,
										 .eagain = 2 * n})
		       ? -ENOMEM
		       : 0;
}

static void test_users(void **state UNUSED)
{
	static const pid_t pids[] = {40, 41, 44};
	struct use_config config = {.root = scratch, .seconds = SECONDS, .tasks = give_tasks};

	put_process(0);
	for (size_t n = 0; n < 4; n += 3) {
		config.pids = n ? pids : NULL;
		config.n_pids = n;
		assert_int_equal(use_new(&config, &session), 0);
		put_thread(44, 44, 100, 1000, 10);
		assert_int_equal(use_read(session), 0);
		put_thread(44, 44, 600, 6000, 10);
		close_session();
		/* The limit of one user is not the host's. */
		assert_value("threads", "", "threads_refused", 2);
		if (n)
			break;
		assert_value("process threads", "y/8", "process_threads_percent", 75);
		assert_value("process threads", "z/40", "process_threads_percent", 75);
		assert_value("process threads", "w/41", "process_threads_percent", 10);
		assert_value("process threads", "w/41", "user_threads_refused", 3);
		assert_value("process threads", "of ended processes", "user_threads_refused", 1);
		for (size_t i = 0; i < report.rows.n; i++)
			assert_false(str_eq(report.rows.v[i].resource, "process threads") &&
				     str_eq(report.rows.v[i].device, "x/7"));
		use_report_release(&report);
	}
	assert_value("process threads", "a) b/40", "process_threads_percent", 75);
	assert_value("process threads", "a) b/40", "user_threads_refused", 0);
	assert_string_equal(report.notes.v[0], "1 of the target's 3 processes has ended");
	/* BPF was not shown that one. */
	assert_value("process CPU", "a) b/44", "process_cpus", 0.5);
	assert_value("hottest thread", "a) b/44", "thread_busy_percent", 50);
	use_report_release(&report);
}

/* All processes by one file each: which thread of several it is cannot be told. */
static void test_walk(void **state UNUSED)
{
	put_process(0);
	open_session(NULL);
	put_thread(40, 40, 100 + 900, 0, 0);
	close_session();
	assert_lacks("hottest thread", "a) b/40", "thread_busy_percent");
	assert_non_null(strstr(value_of("hottest thread", "a) b/40", "thread_busy_percent")->reason,
			       "-p 40"));
	/* Without a file of delays there is none, not 0. */
	assert_lacks("run queue", "", "thread_run_delay_percent");
	use_report_release(&report);
	put_process(0);
	put("/proc/40/status", "Threads:\t1\n");
	put("/proc/40/schedstat", "1000000 20000000 5\n");
	open_session(NULL);
	put_thread(40, 40, 100 + 900, 0, 0);
	put("/proc/40/schedstat", "1000000 3020000000 5\n");
	close_session();
	assert_value("hottest thread", "a) b/40", "thread_busy_percent", 90);
	assert_value("run queue", "a) b/40", "thread_run_delay_percent", 30);
	assert_int_equal(row_of("run queue", "a) b/40")->verdict, USE_CRITICAL);
	use_report_release(&report);
}

/* --- nothing, and nonsense -------------------------------------------------------------------- */

/* What cannot be read has a reason, and is never 0. */
static void test_nothing(void **state UNUSED)
{
	open_session(NULL);
	close_session();
	assert_true(report.rows.n > 10);
	for (size_t i = 0; i < report.rows.n; i++) {
		const struct use_row *row = &report.rows.v[i];

		assert_true(row->verdict <= USE_OK);
		for (size_t k = 0; k < row->n_values; k++) {
			const struct use_value *v = &row->values[k];

			if (!isnan(v->v))
				fail_msg("%s %s has a value", row->resource,
					 use_metrics[v->metric].key);
			assert_non_null(v->reason);
		}
	}
	use_report_release(&report);
}

static void put_nonsense(const char *path)
{
	static const char text[] =
		"cpu\ncpu0\ncpu1 -5 nan 1e999 inf 4 5 6 7 8\ncpu99999999999 1 2 3 4\n"
		"MemTotal: -1 kB\nMemAvailable: 99999999999999999999999 kB\n"
		"some total=\nfull total=-\n: : :\nTcp: OutSegs\nTcp:\nTcpExt: \n"
		"8 0 sda 1 2 3\n8 0 ../../../etc/passwd 1 0 0 1 1 0 0 1 0 1 1\n"
		"\x01\xff\xfe%s%n 4294967296 -1 18446744073709551616 18446744073709551616";

	put(path, text);
}

static void test_nonsense(void **state UNUSED)
{
	static const char *const paths[] = {"/proc/stat",
					    "/proc/schedstat",
					    "/proc/meminfo",
					    "/proc/vmstat",
					    "/proc/diskstats",
					    "/proc/loadavg",
					    "/proc/interrupts",
					    "/proc/mounts",
					    "/proc/self/mountinfo",
					    "/proc/self/net/dev",
					    "/proc/self/net/snmp",
					    "/proc/self/net/netstat",
					    "/proc/pressure/cpu",
					    "/proc/pressure/io",
					    "/proc/net/softnet_stat",
					    "/proc/sys/fs/file-nr",
					    "/proc/pressure/memory",
					    "/proc/1/stat",
					    "/sys/devices/system/node/node0/numastat",
					    "/sys/devices/system/node/node0/meminfo"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		put_nonsense(paths[i]);
	open_session(NULL);
	close_session();
	for (size_t i = 0; i < report.rows.n; i++)
		for (size_t k = 0; k < report.rows.v[i].n_values; k++) {
			double v = report.rows.v[i].values[k].v;

			assert_true(isnan(v) || (v >= 0 && v < 1e30));
		}
	use_report_release(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(test_process), IN_SCRATCH(test_walk),     IN_SCRATCH(test_users),
		IN_SCRATCH(test_nothing), IN_SCRATCH(test_nonsense),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
