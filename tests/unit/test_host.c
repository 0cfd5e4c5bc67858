/* SPDX-License-Identifier: BSD-2-Clause */
/* host_read on small trees that stand for other machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <inspect/host.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/version.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

struct tree {
	char root[64];
};

static void tree_new(struct tree *t)
{
	snprintf(t->root, sizeof(t->root), "/tmp/inspect-host.XXXXXX");
	assert_non_null(mkdtemp(t->root));
}

static int remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED,
		      struct FTW *at UNUSED)
{
	return remove(path);
}

static void tree_free(struct tree *t)
{
	nftw(t->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path below the root, with the folders that it needs. */
static void tree_path(const struct tree *t, const char *path, char *ret, size_t size)
{
	snprintf(ret, size, "%s%s", t->root, path);
	for (char *slash = ret + strlen(t->root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(ret, 0755);
		*slash = '/';
	}
}

static void put_bytes(const struct tree *t, const char *path, const char *v, size_t n)
{
	char full[PATH_MAX];
	int fd;

	tree_path(t, path, full, sizeof(full));
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, v, n), (ssize_t)n);
	close(fd);
}

static void put(const struct tree *t, const char *path, const char *text)
{
	put_bytes(t, path, text, strlen(text));
}

static void put_link(const struct tree *t, const char *path, const char *to)
{
	char full[PATH_MAX];

	tree_path(t, path, full, sizeof(full));
	assert_int_equal(symlink(to, full), 0);
}

static void put_dir(const struct tree *t, const char *path)
{
	char full[PATH_MAX];

	tree_path(t, path, full, sizeof(full));
	assert_int_equal(mkdir(full, 0755), 0);
}

#define STATUS(uid, caps, bounding, nnp, seccomp)                                                  \
	"Name:\tinspect\nUmask:\t0022\nUid:\t" uid                                                 \
	"\nGid:\t100\t101\t100\t100\nCapInh:\t0000000000000000\n"                                  \
	"CapPrm:\t" caps "\nCapEff:\t" caps "\nCapBnd:\t" bounding "\nNoNewPrivs:\t" nnp           \
	"\nSeccomp:\t" seccomp "\nSeccomp_filters:\t0\n"

static void test_debian_server(void **state UNUSED)
{
	CLEANUP(tree_free) struct tree t;
	struct host h;

	tree_new(&t);
	put(&t, "/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
	put(&t, "/proc/sys/kernel/arch", "x86_64\n");
	put(&t, "/proc/sys/kernel/hostname", "web-3\n");
	put(&t, "/proc/sys/kernel/perf_event_paranoid", "3\n");
	put(&t, "/proc/sys/kernel/perf_event_mlock_kb", "516\n");
	put(&t, "/proc/sys/kernel/perf_event_max_sample_rate", "25000\n");
	put(&t, "/proc/sys/kernel/perf_event_max_stack", "127\n");
	put(&t, "/proc/sys/kernel/kptr_restrict", "1\n");
	put(&t, "/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
	put(&t, "/proc/self/status",
	    STATUS("1000\t1001\t1000\t1000", "0000000000000000", "000001ffffffffff", "0", "0"));
	put_link(&t, "/proc/self/ns/user", "user:[4026531837]");
	put_link(&t, "/proc/self/ns/pid", "pid:[4026531836]");
	put_link(&t, "/proc/self/exe", "/opt/inspect/inspect");
	put(&t, "/proc/self/mounts",
	    "proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw,nosuid 0 0\n");
	put_dir(&t, "/sys/kernel/tracing");
	put(&t, "/sys/kernel/btf/vmlinux", "\x9f\xeb");
	put(&t, "/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	put_dir(&t, "/sys/bus/event_source/devices/cpu");
	put_dir(&t, "/sys/bus/event_source/devices/software");
	put(&t, "/sys/devices/system/cpu/online", "0-15,20,22-23\n");
	put(&t, "/sys/class/dmi/id/sys_vendor", "Dell Inc.\n");
	put(&t, "/proc/cpuinfo", "flags\t\t: fpu vme sse2\n");
	put(&t, "/usr/bin/sudo", "");

	host_read(&h, t.root);
	assert_string_equal(h.kernel_release, "6.1.0-18-amd64");
	assert_int_equal(h.kernel_version, KERNEL_VERSION(6, 1, 0));
	assert_string_equal(h.machine, "x86_64");
	assert_string_equal(h.hostname, "web-3");
	assert_int_equal(h.perf_event_paranoid, 3);
	assert_int_equal(h.perf_event_mlock_kb, 516);
	assert_int_equal(h.perf_event_max_sample_rate, 25000);
	assert_int_equal(h.perf_event_max_stack, 127);
	assert_int_equal(h.kptr_restrict, 1);
	assert_int_equal(h.unprivileged_bpf_disabled, 2);
	assert_int_equal(h.euid, 1001);
	assert_int_equal(h.egid, 101);
	assert_int_equal(h.caps_effective, 0);
	assert_int_equal(h.caps_bounding, 0x1ffffffffffULL);
	assert_int_equal(h.seccomp_mode, 0);
	assert_false(h.no_new_privs);
	assert_false(h.in_user_namespace);
	assert_false(h.in_pid_namespace);
	assert_string_equal(h.container, "");
	assert_string_equal(h.exe, "/opt/inspect/inspect");
	assert_true(h.has_sudo);
	assert_true(h.has_btf);
	assert_true(h.has_pmu);
	assert_false(h.virtual_machine);
	assert_false(h.lockdown);
	assert_string_equal(h.lockdown_mode, "none");
	/* mounted, but its files are not to be read */
	assert_true(h.tracefs_mounted);
	assert_string_equal(h.tracefs_point, "/sys/kernel/tracing");
	assert_string_equal(h.tracefs, "");
	assert_int_equal(h.cpus_online, 19);
	assert_false(host_perfmon_capable(&h));

	put(&t, "/sys/kernel/tracing/events/sched/sched_switch/id", "314\n");
	host_read(&h, t.root);
	assert_string_equal(h.tracefs, "/sys/kernel/tracing");
}

static void test_paranoid(void **state UNUSED)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{"-1\n", -1},
		{"0\n", 0},
		{"2\n", 2},
		{"4\n", 4},
		{"4", 4},
		{"", HOST_UNKNOWN},
		{"2x\n", HOST_UNKNOWN},
		{"99999999999999999999\n", HOST_UNKNOWN},
	};
	CLEANUP(tree_free) struct tree t;
	struct host h;

	tree_new(&t);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put(&t, "/proc/sys/kernel/perf_event_paranoid", cases[i].text);
		host_read(&h, t.root);
		assert_int_equal(h.perf_event_paranoid, cases[i].value);
	}
}

static void test_lockdown(void **state UNUSED)
{
	static const struct {
		const char *text, *mode;
		bool lockdown;
	} cases[] = {
		{"none [integrity] confidentiality\n", "integrity", true},
		{"none integrity [confidentiality]\n", "confidentiality", true},
		{"[none] integrity confidentiality\n", "none", false},
		{"[unterminated", "", false},
		{"nothing in brackets\n", "", false},
		{"[a-mode-whose-name-does-not-fit-into-the-field]\n",
		 "a-mode-whose-name-does-not-fit-", true},
	};
	CLEANUP(tree_free) struct tree t;
	struct host h;

	tree_new(&t);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put(&t, "/sys/kernel/security/lockdown", cases[i].text);
		host_read(&h, t.root);
		assert_string_equal(h.lockdown_mode, cases[i].mode);
		assert_int_equal(h.lockdown, cases[i].lockdown);
	}
}

static void test_docker(void **state UNUSED)
{
	CLEANUP(tree_free) struct tree t;
	struct host h;

	tree_new(&t);
	put(&t, "/.dockerenv", "");
	/* docker's default: 14 capabilities, a filter, namespaces of its own */
	put(&t, "/proc/self/status",
	    STATUS("0\t0\t0\t0", "00000000a80425fb", "00000000a80425fb", "1", "2"));
	put_link(&t, "/proc/self/ns/user", "user:[4026531837]");
	put_link(&t, "/proc/self/ns/pid", "pid:[4026532661]");
	host_read(&h, t.root);
	assert_string_equal(h.container, "docker");
	assert_true(h.in_pid_namespace);
	assert_false(h.in_user_namespace);
	assert_int_equal(h.seccomp_mode, 2);
	assert_true(h.no_new_privs);
	assert_int_equal(h.euid, 0);
	assert_true(host_has_cap(&h, CAP_CHOWN));
	assert_false(host_has_cap(&h, CAP_SYS_ADMIN));
	assert_false(host_has_cap(&h, -1));
	assert_false(host_has_cap(&h, 64));
	assert_false(host_perfmon_capable(&h));
	assert_int_equal(h.caps_bounding, 0xa80425fb);
	assert_false(h.has_sudo);
}

static void test_container_marks(void **state UNUSED)
{
	static const struct {
		const char *path, *text;
		size_t n;
		const char *name;
	} marks[] = {
		{"/run/.containerenv", "", 0, "podman"},
		{"/var/run/secrets/kubernetes.io/serviceaccount/token", "x", 1, "kubernetes"},
		{"/proc/1/environ", "PATH=/bin\0container=lxc\0HOME=/", 31, "lxc"},
		{"/proc/1/environ", "PATH=/bin\0xcontainer=lxc\0containers=no", 38, ""},
		{"/proc/self/environ", "A=b\0KUBERNETES_SERVICE_HOST=10.0.0.1", 37, "kubernetes"},
		{"/run/systemd/container", "systemd-nspawn\n", 15, "systemd-nspawn"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		CLEANUP(tree_free) struct tree t;
		struct host h;

		tree_new(&t);
		put_bytes(&t, marks[i].path, marks[i].text, marks[i].n);
		host_read(&h, t.root);
		assert_string_equal(h.container, marks[i].name);
	}
}

/* An image of a container that was booted as a virtual machine is none. */
static void test_booted_image(void **state UNUSED)
{
	CLEANUP(tree_free) struct tree t;
	struct host h;

	tree_new(&t);
	put(&t, "/.dockerenv", "");
	put_link(&t, "/proc/self/ns/user", "user:[4026531837]");
	put_link(&t, "/proc/self/ns/pid", "pid:[4026531836]");
	put_link(&t, "/proc/self/ns/uts", "uts:[4026531838]");
	put_link(&t, "/proc/self/ns/ipc", "ipc:[4026531839]");
	host_read(&h, t.root);
	assert_string_equal(h.container, "docker"); /* not known to share all of them */
	put_link(&t, "/proc/self/ns/cgroup", "cgroup:[4026531835]");
	host_read(&h, t.root);
	assert_string_equal(h.container, "");
}

static void test_user_namespace(void **state UNUSED)
{
	CLEANUP(tree_free) struct tree t;
	struct host h;

	tree_new(&t);
	put(&t, "/proc/self/status",
	    STATUS("0\t0\t0\t0", "000001ffffffffff", "000001ffffffffff", "0", "0"));
	put_link(&t, "/proc/self/ns/user", "user:[4026532000]");
	host_read(&h, t.root);
	assert_true(h.in_user_namespace);
	assert_true(host_has_cap(&h, CAP_SYS_ADMIN));
	assert_false(host_perfmon_capable(&h)); /* the kernel asks in the initial namespace */
}

static void test_arm_machine(void **state UNUSED)
{
	CLEANUP(tree_free) struct tree t;
	struct host h;

	tree_new(&t);
	put(&t, "/proc/sys/kernel/osrelease", "5.4.0-1104-raspi\n");
	put(&t, "/proc/sys/kernel/arch", "aarch64\n");
	put(&t, "/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd evtstrm\n");
	put_dir(&t, "/sys/bus/event_source/devices/armv8_cortex_a72");
	put(&t, "/proc/self/status",
	    STATUS("0\t0\t0\t0", "0000004000000000", "0000003fffffffff", "0", "0"));
	host_read(&h, t.root);
	assert_string_equal(h.machine, "aarch64");
	assert_int_equal(h.kernel_version, KERNEL_VERSION(5, 4, 0));
	assert_true(h.has_pmu);
	assert_false(h.virtual_machine);
	assert_false(h.tracefs_mounted);
	/* 38 is no capability before 5.8 */
	assert_false(host_perfmon_capable(&h));
	put(&t, "/proc/sys/kernel/osrelease", "5.8\n");
	host_read(&h, t.root);
	assert_true(host_perfmon_capable(&h));
}

static void test_virtual_machines(void **state UNUSED)
{
	static const struct {
		const char *path, *text;
		bool virtual_machine;
	} cases[] = {
		{"/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc hypervisor lahf_lm\n", true},
		{"/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc lahf_lm\n", false},
		{"/sys/hypervisor/type", "xen\n", true},
		{"/sys/class/dmi/id/sys_vendor", "QEMU\n", true},
		{"/sys/class/dmi/id/sys_vendor", "Google\n", false}, /* laptops too */
		{"/sys/class/dmi/id/product_name", "Google Compute Engine\n", true},
		{"/sys/class/dmi/id/product_name", "Virtual Machine\n", true},
		{"/proc/device-tree/hypervisor/compatible", "linux,kvm", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(tree_free) struct tree t;
		struct host h;

		tree_new(&t);
		put(&t, cases[i].path, cases[i].text);
		/* devices that every machine has, with and without counters */
		put_dir(&t, "/sys/bus/event_source/devices/software");
		put_dir(&t, "/sys/bus/event_source/devices/uncore_imc_0");
		put_dir(&t, "/sys/bus/event_source/devices/breakpoint");
		host_read(&h, t.root);
		assert_int_equal(h.virtual_machine, cases[i].virtual_machine);
		assert_false(h.has_pmu);
	}
}

/* What cannot be read stays unknown, and odd text is only text. */
static void test_empty_and_hostile(void **state UNUSED)
{
	CLEANUP(tree_free) struct tree t;
	CLEANUP(freep) char *big = malloc(1 << 20);
	struct host h;

	assert_non_null(big);
	memset(big, 'x', 1 << 20);
	tree_new(&t);
	host_read(&h, t.root);
	assert_string_equal(h.kernel_release, "");
	assert_int_equal(h.kernel_version, 0);
	assert_int_equal(h.perf_event_paranoid, HOST_UNKNOWN);
	assert_int_equal(h.seccomp_mode, -1);
	assert_int_equal(h.cpus_online, 0);
	assert_string_equal(h.tracefs, "");

	put_bytes(&t, "/proc/sys/kernel/osrelease", big, 1 << 20);
	put_bytes(&t, "/proc/self/status", big, 1 << 20);
	put_bytes(&t, "/proc/cpuinfo", big, 1 << 20);
	put_bytes(&t, "/proc/1/environ", big, 1 << 20);
	put_bytes(&t, "/proc/self/mounts", big, 1 << 20);
	put(&t, "/sys/devices/system/cpu/online", "7-3,0-99999999999999999999,-,5");
	put_link(&t, "/proc/self/ns/user",
		 "user:[99999999999999999999999999999999999999999999999999"
		 "999999999999999999]");
	host_read(&h, t.root);
	assert_int_equal(strlen(h.kernel_release), sizeof(h.kernel_release) - 1);
	assert_int_equal(h.kernel_version, 0);
	assert_false(h.in_user_namespace); /* no such link exists: unknown */
	assert_int_equal(h.cpus_online, 0);
	assert_false(h.tracefs_mounted);
}

/* This machine, against the system's own answers. */
static void test_this_machine(void **state UNUSED)
{
	struct host h;
	struct utsname u;
	struct rlimit files;
	char exe[PATH_MAX];

	host_read(&h, "");
	assert_int_equal(uname(&u), 0);
	assert_string_equal(h.kernel_release, u.release);
	assert_string_equal(h.machine, u.machine);
	assert_int_equal(h.cpus_online, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(h.euid, geteuid());
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(h.nofile_soft, files.rlim_cur);
	assert_int_equal(h.nofile_hard, files.rlim_max);
	assert_non_null(realpath("/proc/self/exe", exe));
	if (strlen(exe) < sizeof(h.exe))
		assert_string_equal(h.exe, exe);
	assert_int_equal(h.has_btf, access("/sys/kernel/btf/vmlinux", R_OK) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debian_server),    cmocka_unit_test(test_paranoid),
		cmocka_unit_test(test_lockdown),         cmocka_unit_test(test_docker),
		cmocka_unit_test(test_booted_image),     cmocka_unit_test(test_container_marks),
		cmocka_unit_test(test_user_namespace),   cmocka_unit_test(test_arm_machine),
		cmocka_unit_test(test_virtual_machines), cmocka_unit_test(test_empty_and_hostile),
		cmocka_unit_test(test_this_machine),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
