/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees of /proc and /sys of other machines and kernels. */
#include "use_tree.h"

/* --- CPUs ------------------------------------------------------------------------------------- */

static void test_many_cpus(void **state UNUSED)
{
	put_stat(256, 0, -1);
	put("/proc/schedstat", "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 900 1000000000 5\n"
			       "domain0 ff 1 2 3\ncpu1 0 0 0 0 0 0 900 0 5\n");
	put("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
	put("/proc/loadavg", "1.00 1.00 1.00 514/2000 1234\n");
	put("/proc/interrupts", "           CPU0       CPU1\n  0: 1 2 timer\n"
				"MCE:          0          1   Machine check exceptions\n");
	open_session(NULL);
	use_tick(session, 0);
	use_tick(session, 0);
	/* One goes away, as when it is taken offline. */
	put_stat(256, 1000, 9);
	put("/proc/schedstat", "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 900 256000000000 5\n"
			       "domain0 ff 1 2 3\ncpu1 0 0 0 0 0 0 900 1000000000 5\n");
	put("/proc/pressure/cpu", "some avg10=9.00 avg60=0.00 avg300=0.00 total=3000000\n"
				  "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
	put("/proc/interrupts", "           CPU0       CPU1\n  0: 1 2 timer\n"
				"MCE:          2          1   Machine check exceptions\n");
	close_session();
	assert_value("CPU", "", "cpu_busy_percent", 100 * (254 * 250 + 1000) / 255000.);
	assert_value("CPU", "", "run_delay_percent", 100 * 256. / (SECONDS * 255));
	assert_value("CPU", "", "cpu_pressure_percent", 20);
	assert_value("CPU", "", "runnable_per_cpu", 513 / 255.);
	assert_value("CPU", "", "machine_checks", 2);
	assert_string_equal(value_of("CPU", "", "run_delay_percent")->source,
			    "/proc/schedstat (run_delay)");
	assert_value("CPU", "7", "one_cpu_busy_percent", 100);
	/* The row of all CPUs is critical by itself: no single one is worse. */
	assert_int_equal(row_of("CPU", "")->verdict, USE_CRITICAL);
	assert_true(row_of("CPU", "7")->detail);
	use_report_release(&report);
}

/* Only one is full, and that is shown. */
static void test_skew(void **state UNUSED)
{
	put_stat(16, 0, -1);
	open_session(NULL);
	put_stat(17, 1000, -1); /* one has come: it has no beginning */
	close_session();
	assert_value("CPU", "", "cpu_busy_percent", 100 * (15 * 250 + 1000) / 16000.);
	assert_int_equal(row_of("CPU", "")->verdict, USE_OK);
	assert_int_equal(row_of("CPU", "7")->verdict, USE_WARN);
	assert_false(row_of("CPU", "7")->detail);
	assert_true(row_of("CPU", "8")->detail);
	assert_lacks("CPU", "", "run_delay_percent");
	assert_lacks("CPU", "", "cpu_pressure_percent");
	use_report_release(&report);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void test_memory_5_4(void **state UNUSED)
{
	put("/proc/meminfo",
	    "MemTotal:       1000000 kB\nMemFree:  1 kB\nMemAvailable:    40000 kB\n"
	    "SwapTotal:       200000 kB\nSwapFree:        50000 kB\n");
	put("/proc/vmstat", "pswpin 10\npswpout 20\nallocstall_dma 1\nallocstall_normal 2\n"
			    "workingset_refault 100\noom_kill 1\n");
	put("/sys/devices/system/edac/mc/mc0/ce_count", "5\n");
	put("/sys/devices/system/edac/mc/mc0/ue_count", "0\n");
	open_session(NULL);
	put("/proc/vmstat", "pswpin 30\npswpout 20\nallocstall_dma 1\nallocstall_normal 42\n"
			    "workingset_refault 300\noom_kill 2\n");
	put("/sys/devices/system/edac/mc/mc0/ce_count", "8\n");
	close_session();
	assert_value("memory", "", "memory_used_percent", 96);
	assert_value("memory", "", "swap_in_per_second", 2);
	assert_value("memory", "", "swap_out_per_second", 0);
	assert_value("memory", "", "direct_reclaim_per_second", 4);
	assert_value("memory", "", "refault_per_second", 20);
	assert_value("memory", "", "oom_kills", 1);
	assert_value("memory", "", "memory_corrected", 3);
	assert_lacks("memory", "", "memory_pressure_percent");
	assert_value("swap", "", "swap_used_percent", 75);
	assert_int_equal(row_of("memory", "")->verdict, USE_CRITICAL);
	use_report_release(&report);
}

static void put_node(int node, const char *cpus, const char *stat, const char *memory)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	put(path, cpus);
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/numastat", node);
	put(path, stat);
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	put(path, memory);
}

/* Newer counters by kind; two nodes, and a GPU's memory as a third one, which is full. */
static void test_grace(void **state UNUSED)
{
	static const char full[] =
		"Node 2 MemTotal:       500000 kB\nNode 2 MemFree:          1000 kB\n";

	put("/proc/meminfo", "MemTotal:       1500000 kB\nMemAvailable:    701000 kB\n");
	put("/proc/vmstat", "workingset_refault_anon 10\nworkingset_refault_file 20\n");
	put_node(0, "0-3\n", "numa_hit 1\nnuma_miss 0\nlocal_node 1000\nother_node 0\n",
		 "Node 0 MemTotal:       500000 kB\nNode 0 MemFree:       400000 kB\n");
	put_node(1, "4-7\n", "numa_hit 1\nnuma_miss 0\nlocal_node 1000\nother_node 0\n", "");
	put_node(2, "\n", "numa_hit 1\nnuma_miss 0\nlocal_node 0\nother_node 0\n", full);
	open_session(NULL);
	put("/proc/vmstat", "workingset_refault_anon 20\nworkingset_refault_file 110\n");
	put_node(0, "0-3\n", "numa_hit 1\nnuma_miss 50\nlocal_node 61000\nother_node 20000\n", "");
	put_node(1, "4-7\n", "numa_hit 1\nnuma_miss 0\nlocal_node 1000\nother_node 20000\n", "");
	put_node(2, "\n", "numa_hit 1\nnuma_miss 0\nlocal_node 0\nother_node 900000\n", full);
	close_session();
	assert_value("memory", "", "memory_used_percent", 30);
	assert_int_equal(row_of("memory", "")->verdict, USE_OK);
	assert_value("memory", "", "refault_per_second", 10);
	assert_value("NUMA", "", "numa_other_percent", 40);
	assert_value("NUMA", "", "numa_miss_per_second", 5);
	assert_int_equal(row_of("NUMA", "")->verdict, USE_WARN);
	assert_value("NUMA", "node2 (no CPUs)", "node_used_percent", 99.8);
	assert_int_equal(row_of("NUMA", "node2 (no CPUs)")->verdict, USE_OK);
	use_report_release(&report);
}

/* --- disks ------------------------------------------------------------------------------------ */

/* 4.17 had 14 columns, 4.18 has 18, 5.5 has 20. Disk 3 is slow. */
static void put_disks(unsigned n, unsigned ios)
{
	struct strbuf text = {0};

	for (unsigned i = 0; i < n; i++) {
		unsigned await = i == 3 ? 80 : 2;

		strbuf_printf(&text, " 8 %u d%u %u 0 0 %u %u 0 0 %u 0 %u %u%s\n", i, i, 10 + ios,
			      10 + ios * await, 10 + ios, 10 + ios * await, 10 + 10 * ios,
			      10 + ios * 20,
			      i % 3 == 0   ? ""
			      : i % 3 == 1 ? " 7 7 7 7"
					   : " 7 7 7 7 7 7");
		/* A partition, which repeats it. */
		strbuf_printf(&text, " 8 %u d%up1 %u 0 0 1 1 0 0 1 0 1 1\n", i, i, 10 + ios);
	}
	strbuf_puts(&text, " 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n 8 x broken\n");
	put("/proc/diskstats", strbuf_str(&text));
	strbuf_release(&text);
}

static void test_many_disks(void **state UNUSED)
{
	size_t shown = 0;

	free(shell(
		"cd '%s' && mkdir -p sys/block && cd sys/block && mkdir loop0 $(seq -f d%%g 0 299)",
		scratch));
	put("/sys/block/d5/device/ioerr_cnt", "0xa\n");
	put_disks(300, 0);
	open_session(NULL);
	put_disks(300, 500);
	put("/sys/block/d5/device/ioerr_cnt", "0xc\n");
	close_session();
	assert_value("disk", "d0", "disk_await_ms", 2);
	assert_value("disk", "d0", "disk_busy_percent", 50);
	assert_value("disk", "d0", "disk_queue", 1);
	assert_value("disk", "d0", "disk_ios_per_second", 100);
	assert_lacks("disk", "d0", "disk_errors");
	assert_value("disk", "d3", "disk_await_ms", 80);
	assert_int_equal(row_of("disk", "d3")->verdict, USE_CRITICAL);
	assert_false(row_of("disk", "d3")->detail);
	assert_value("disk", "d5", "disk_errors", 2);
	assert_string_equal(report.rows.v[0].resource, "disk");
	/* The 298 that are well are behind the first row. */
	for (size_t i = 0; i < report.rows.n; i++) {
		const struct use_row *row = &report.rows.v[i];

		assert_null(strstr(row->device, "p1"));
		shown += str_eq(row->resource, "disk") && !row->detail;
	}
	assert_int_equal(shown, 2);
	assert_int_equal(report.rows.v[0].hidden, 298);
	use_report_release(&report);
}

/* --- network ---------------------------------------------------------------------------------- */

static void put_net(unsigned k)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "Inter-|   Receive\n face |bytes packets\n"
		 "    lo: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
		 "  eth0:%u 100 %u %u 0 0 0 0 1000 100 0 0 0 0 0 0\n",
		 1000 + k * 1062500000, k, k * 2);
	put("/proc/self/net/dev", text);
	snprintf(text, sizeof(text),
		 "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPBacklogDrop\n"
		 "TcpExt: 0 %u %u 0\nIpExt: InNoRoutes\nIpExt: 1\n",
		 5 + k * 30, 5 + k * 30);
	put("/proc/self/net/netstat", text);
	snprintf(text, sizeof(text),
		 "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs\n"
		 "Tcp: 1 -1 5 %u %u\n",
		 100 + k * 1000, 10 + k * 25);
	put("/proc/self/net/snmp", text);
	snprintf(text, sizeof(text),
		 "00000010 0000000%u 0000000%x 0 0\n00000010 00000000 0000000a 0 0\n", k * 5,
		 k * 10);
	put("/proc/net/softnet_stat", text);
}

static void test_network(void **state UNUSED)
{
	put("/sys/class/net/eth0/speed", "1000\n");
	put_net(0);
	open_session(NULL);
	put_net(1);
	close_session();
	assert_value("network", "eth0", "net_used_percent", 85);
	assert_value("network", "eth0", "net_drops_per_second", 0.2);
	assert_value("network", "eth0", "net_errors_per_second", 0.1);
	assert_value("TCP", "", "listen_overflows_per_second", 3);
	assert_value("TCP", "", "retransmitted_percent", 2.5);
	assert_value("packet queues", "", "softnet_drops_per_second", 0.5);
	assert_value("packet queues", "", "softnet_squeezes_per_second", 1);
	assert_int_equal(row_of("network", "eth0")->verdict, USE_WARN);
	use_report_release(&report);
}

/* --- file systems ----------------------------------------------------------------------------- */

static void test_file_systems(void **state UNUSED)
{
	put("/proc/self/mountinfo",
	    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
	    "23 22 8:2 / /data rw,relatime - ext4 /dev/sda2 ro,errors=remount-ro\n"
	    "24 22 8:3 / /media ro,relatime - ext4 /dev/sda3 ro\n"
	    "25 22 0:5 / /proc rw - proc proc rw\n"
	    "26 22 0:40 / /srv rw - nfs4 server:/x rw\n"
	    "27 22 8:1 /sub /again rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	    "28 22 8:4 / /with\\040space rw - xfs /dev/sda4 rw\n"
	    "29 22 0:41 / /layers rw - overlay overlay rw\n"
	    "broken line\n");
	open_session(NULL);
	close_session();
	assert_value("file system", "/", "went_read_only", 0);
	assert_value("file system", "/data", "went_read_only", 1);
	assert_int_equal(row_of("file system", "/data")->verdict, USE_CRITICAL);
	assert_value("file system", "/media", "went_read_only", 0);
	assert_lacks("file system", "/srv", "filesystem_used_percent");
	assert_lacks("file system", "/with space", "filesystem_used_percent");
	for (size_t i = 0; i < report.rows.n; i++) {
		assert_string_not_equal(report.rows.v[i].device, "/again");
		assert_string_not_equal(report.rows.v[i].device, "/proc");
		assert_string_not_equal(report.rows.v[i].device, "/layers");
	}
	use_report_release(&report);
}

/* --- cgroups ---------------------------------------------------------------------------------- */

static void put_v2(const char *group, const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, file);
	put(path, text);
}

static void put_pod(unsigned k)
{
	char text[256];

	put_v2("/pod", "cpu.max", "150000 100000\n");
	put_v2("/pod/app", "cpu.max", "max 100000\n");
	snprintf(text, sizeof(text),
		 "usage_usec %u\nuser_usec 1\nnr_periods %u\nnr_throttled %u\nthrottled_usec %u\n",
		 1000000 + k * 12000000, 100 + k * 100, 10 + k * 25, 5 + k * 4000000);
	put_v2("/pod", "cpu.stat", text);
	put_v2("/pod/app", "cpu.stat", k ? "usage_usec 2500005\n" : "usage_usec 5\n");
	put_v2("/pod/app", "memory.current", "1000000000\n");
	put_v2("/pod/app", "memory.max", "1000000000\n");
	put_v2("/pod/app", "memory.high", "max\n");
	put_v2("/pod/app", "memory.stat", "anon 5\ninactive_file 400000000\n");
	snprintf(text, sizeof(text), "low 0\nhigh 0\nmax %u\noom %u\noom_kill %u\n", k * 100, k, k);
	put_v2("/pod/app", "memory.events", text);
	snprintf(text, sizeof(text), "some avg10=0 total=0\nfull avg10=0 total=%u\n", k * 500000);
	put_v2("/pod/app", "memory.pressure", text);
	put_v2("/pod/app", "pids.current", "90\n");
	put_v2("/pod/app", "pids.max", "100\n");
	snprintf(text, sizeof(text), "max %u\n", k * 3);
	put_v2("/pod/app", "pids.events", text);
}

static void check_pod(bool asked)
{
	assert_value("cgroup CPU", "/pod", "cgroup_cpu_percent", 80);
	assert_value("cgroup CPU", "/pod", "throttled_percent", 25);
	assert_value("cgroup CPU", "/pod", "throttled_time_percent", 40);
	assert_value("cgroup memory", "/pod/app", "cgroup_memory_percent", 60);
	assert_value("cgroup memory", "/pod/app", "memory_max_per_second", 10);
	assert_value("cgroup memory", "/pod/app", "cgroup_oom_kills", 1);
	assert_value("cgroup memory", "/pod/app", "cgroup_memory_pressure_percent", 5);
	assert_value("cgroup pids", "/pod/app", "pids_percent", 90);
	assert_value("cgroup pids", "/pod/app", "pids_refused", 3);
	/* What has no quota is shown if it was asked for, with what it uses. */
	for (size_t i = 0; i < report.rows.n && !asked; i++)
		assert_false(str_eq(report.rows.v[i].resource, "cgroup CPU") &&
			     str_eq(report.rows.v[i].device, "/pod/app"));
	if (asked)
		assert_value("cgroup CPU", "/pod/app", "cgroup_cpus", 0.25);
	use_report_release(&report);
}

static void test_cgroup_v2(void **state UNUSED)
{
	put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
	put_pod(0);
	open_session(NULL); /* all groups with a limit */
	put_pod(1);
	close_session();
	check_pod(false);
	/* The group by its path, with the one above it. */
	put_pod(0);
	open_session("/sys/fs/cgroup/pod/app");
	put_pod(1);
	close_session();
	check_pod(true);
}

/* memory.high is the limit that slows down. */
static void test_memory_high(void **state UNUSED)
{
	put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
	put_pod(0);
	put_v2("/pod/app", "memory.high", "500000000\n");
	put_v2("/pod/app", "memory.events", "high 5\nmax 0\noom 0\noom_kill 0\n");
	put_v2("/pod/app", "memory.current", "499000000\n");
	put_v2("/pod/app", "memory.stat", "inactive_file 0\n");
	open_session(NULL);
	put_v2("/pod/app", "memory.events", "high 105\nmax 0\noom 0\noom_kill 0\n");
	close_session();
	assert_value("cgroup memory", "/pod/app", "cgroup_memory_percent", 99.8);
	assert_value("cgroup memory", "/pod/app", "memory_high_per_second", 10);
	assert_non_null(
		strstr(value_of("cgroup memory", "/pod/app", "cgroup_memory_percent")->source,
		       "memory.high"));
	use_report_release(&report);
}

/* In a container the own group is the root of the hierarchy, and /proc says so (version 2) or has
 * the path that the host sees (version 1). */
static void test_in_container(void **state UNUSED)
{
	static const pid_t pid = 5;

	for (int version = 1; version <= 2; version++) {
		put("/proc/mounts", version == 2 ? "cgroup /sys/fs/cgroup cgroup2 ro 0 0\n"
						 : "cgroup /sys/fs/cgroup cgroup ro,memory 0 0\n");
		put("/proc/5/cgroup", version == 2 ? "0::/\n" : "4:memory:/docker/0123\n");
		put("/proc/5/stat", "5 (a) S 1 1 1 0 -1 0 5 0 7 0 1 0 0 0 20 0 2 0 1000 0 0 0\n");
		put("/sys/fs/cgroup/memory.max", "1000\n");
		put("/sys/fs/cgroup/memory.current", "600\n");
		put("/sys/fs/cgroup/memory.limit_in_bytes", "1000\n");
		put("/sys/fs/cgroup/memory.usage_in_bytes", "600\n");
		open_session_of(&pid, 1, NULL);
		close_session();
		assert_value("cgroup memory", "/", "cgroup_memory_percent", 60);
		use_report_release(&report);
		open_session(NULL);
		close_session();
		assert_value("cgroup memory", "/", "cgroup_memory_percent", 60);
		use_report_release(&report);
	}
}

/* Each controller of version 1 in a hierarchy of its own; version 2 beside them has none. */
static void test_cgroup_v1(void **state UNUSED)
{
	put("/proc/mounts", "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
			    "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
			    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
	put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat",
	    "nr_periods 10\nnr_throttled 1\nthrottled_time 0\n");
	put("/sys/fs/cgroup/cpu,cpuacct/a/cpuacct.usage", "1000000000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "1000000\n");
	put("/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "900000\n");
	put("/sys/fs/cgroup/memory/m/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n");
	put("/sys/fs/cgroup/memory/m/memory.failcnt", "0\n");
	put("/sys/fs/cgroup/memory/m/memory.oom_control",
	    "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
	put("/sys/fs/cgroup/memory/n/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/unified/a/cpu.pressure", "some avg10=0 total=0\n");
	open_session(NULL);
	put("/sys/fs/cgroup/unified/a/cpu.pressure", "some avg10=0 total=2500000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat",
	    "nr_periods 110\nnr_throttled 51\nthrottled_time 2000000000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/a/cpuacct.usage", "3500000000\n");
	put("/sys/fs/cgroup/memory/m/memory.failcnt", "30\n");
	put("/sys/fs/cgroup/memory/m/memory.oom_control",
	    "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	close_session();
	assert_value("cgroup CPU", "/a", "cgroup_cpu_percent", 50);
	assert_value("cgroup CPU", "/a", "throttled_percent", 50);
	assert_value("cgroup CPU", "/a", "throttled_time_percent", 20);
	/* Version 2 has it beside. */
	assert_value("cgroup CPU", "/a", "cgroup_cpu_pressure_percent", 25);
	assert_lacks("cgroup memory", "/m", "memory_high_per_second");
	assert_value("cgroup memory", "/m", "cgroup_memory_percent", 88);
	assert_value("cgroup memory", "/m", "memory_max_per_second", 3);
	assert_value("cgroup memory", "/m", "cgroup_oom_kills", 2);
	/* The same name elsewhere may be another group. */
	assert_string_equal(row_of("cgroup CPU", "/a")->path, "/sys/fs/cgroup/cpu,cpuacct/a");
	assert_string_equal(row_of("cgroup memory", "/m")->path, "/sys/fs/cgroup/memory/m");
	use_report_release(&report);
}

/* --- kernels of today, and what comes and goes ------------------------------------------------ */

static void put_new_shapes(unsigned k)
{
	char text[1024];

	put_stat(2, k * 1000, -1);
	/* Version 17 (6.14) names domains; psi has full lines since 5.13; 6.x added columns. */
	snprintf(text, sizeof(text),
		 "version 17\ntimestamp 1\ncpu0 0 0 0 0 0 0 900 %u000000000 5\n"
		 "domain0 SMT 3 1 2 3\ncpu1 0 0 0 0 0 0 900 0 5\ndomain0 SMT 3 1 2 3\n",
		 k * 4);
	put("/proc/schedstat", text);
	snprintf(text, sizeof(text),
		 "some avg10=0.00 avg60=0.00 avg300=0.00 total=%u\n"
		 "full avg10=0.00 avg60=0.00 avg300=0.00 total=%u\n",
		 k * 1000000, k * 500000);
	put("/proc/pressure/cpu", text);
	put("/proc/pressure/io", text);
	put("/proc/pressure/irq", "full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n");
	snprintf(text, sizeof(text),
		 "00000010 %08x %08x 0 0 0 0 0 0 0 0 00000000 00000000 00000000 00000000\n", k * 20,
		 k * 40);
	put("/proc/net/softnet_stat", text);
	put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,memory_recursiveprot 0 0\n");
	put_v2("/s", "cpu.max", "100000 100000\n");
	snprintf(text, sizeof(text),
		 "usage_usec %u\nuser_usec 1\nsystem_usec 1\nnice_usec 0\n"
		 "nr_periods %u\nnr_throttled %u\nthrottled_usec %u\nnr_bursts 7\nburst_usec 7\n",
		 k * 5000000, k * 100, k * 50, k * 2500000);
	put_v2("/s", "cpu.stat", text);
	put_v2("/s", "memory.max", "1000\n");
	put_v2("/s", "memory.high", "max\n");
	put_v2("/s", "memory.current", "500\n");
	snprintf(text, sizeof(text),
		 "low 0\nhigh 0\nmax 0\noom %u\noom_kill %u\noom_group_kill 9\nsock_throttled 9\n",
		 k, k);
	put_v2("/s", "memory.events", text);
	put_v2("/s", "pids.max", "10\n");
	put_v2("/s", "pids.current", "5\n");
	put_v2("/s", "pids.peak", "9\n");
	snprintf(text, sizeof(text), "max %u\n", k);
	put_v2("/s", "pids.events", text);
}

static void test_new_kernels(void **state UNUSED)
{
	put_new_shapes(0);
	open_session(NULL);
	put_new_shapes(1);
	close_session();
	assert_value("CPU", "", "run_delay_percent", 100 * 4. / (SECONDS * 2));
	assert_value("CPU", "", "cpu_pressure_percent", 10);
	assert_value("I/O", "", "io_pressure_percent", 10);
	assert_value("packet queues", "", "softnet_drops_per_second", 2);
	assert_value("packet queues", "", "softnet_squeezes_per_second", 4);
	assert_value("cgroup CPU", "/s", "cgroup_cpu_percent", 50);
	assert_value("cgroup CPU", "/s", "throttled_percent", 50);
	assert_value("cgroup CPU", "/s", "throttled_time_percent", 25);
	assert_value("cgroup memory", "/s", "cgroup_memory_percent", 50);
	assert_value("cgroup memory", "/s", "cgroup_oom_kills", 1);
	assert_value("cgroup pids", "/s", "pids_refused", 1);
	use_report_release(&report);
}

static bool has_row(const char *resource, const char *device)
{
	for (size_t i = 0; i < report.rows.n; i++)
		if (str_eq(report.rows.v[i].resource, resource) &&
		    str_eq(report.rows.v[i].device, device))
			return true;
	return false;
}

/* What has come has no beginning, what has gone no end: neither has a rate. */
static void test_hot_plug(void **state UNUSED)
{
	free(shell("cd '%s' && mkdir -p sys/block/d0 sys/block/d1 sys/block/d2", scratch));
	put("/proc/diskstats", " 8 0 d0 10 0 0 10 10 0 0 10 0 10 10\n"
			       " 8 1 d1 10 0 0 10 10 0 0 10 0 10 10\n");
	put("/proc/self/net/dev", "a\nb\n eth0: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n");
	put_node(0, "0-3\n", "numa_hit 1\nnuma_miss 0\nlocal_node 0\nother_node 0\n", "");
	put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	put_v2("/gone", "pids.max", "10\n");
	open_session(NULL);
	put("/proc/diskstats", " 8 1 d1 20 0 0 110 10 0 0 10 0 10 10\n"
			       " 8 2 d2 9999 0 0 9999999 10 0 0 10 0 10 10\n");
	put("/proc/self/net/dev", "a\nb\n eth0: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n"
				  " wg0: 9999999 9 0 77 0 0 0 0 9 9 0 0 0 0 0 0\n");
	put_node(0, "0-3\n", "numa_hit 1\nnuma_miss 0\nlocal_node 9000\nother_node 1000\n", "");
	put_node(1, "4-7\n", "numa_hit 1\nnuma_miss 9\nlocal_node 0\nother_node 999999\n", "");
	free(shell("rm -r '%s/sys/fs/cgroup/gone'", scratch));
	close_session();
	assert_false(has_row("disk", "d0"));
	assert_value("disk", "d1", "disk_await_ms", 10);
	assert_false(has_row("disk", "d2"));
	assert_value("network", "eth0", "net_bytes_per_second", 0);
	assert_false(has_row("network", "wg0"));
	assert_value("NUMA", "", "numa_other_percent", 10);
	assert_false(has_row("cgroup pids", "/gone"));
	use_report_release(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(test_many_cpus),    IN_SCRATCH(test_skew),
		IN_SCRATCH(test_memory_5_4),   IN_SCRATCH(test_grace),
		IN_SCRATCH(test_many_disks),   IN_SCRATCH(test_network),
		IN_SCRATCH(test_file_systems), IN_SCRATCH(test_cgroup_v2),
		IN_SCRATCH(test_memory_high),  IN_SCRATCH(test_in_container),
		IN_SCRATCH(test_cgroup_v1),    IN_SCRATCH(test_new_kernels),
		IN_SCRATCH(test_hot_plug),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
