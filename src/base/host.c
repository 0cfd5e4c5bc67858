/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/host.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/version.h>
#include <sys/resource.h>
#include <sys/utsname.h>

/* The initial namespaces have fixed inodes: include/linux/proc_ns.h, PROC_*_INIT_INO. */
static const struct {
	const char *link, *initial;
} namespaces[] = {
	{"/proc/self/ns/user", "user:[4026531837]"},     {"/proc/self/ns/pid", "pid:[4026531836]"},
	{"/proc/self/ns/uts", "uts:[4026531838]"},       {"/proc/self/ns/ipc", "ipc:[4026531839]"},
	{"/proc/self/ns/cgroup", "cgroup:[4026531835]"},
};
enum { NS_USER, NS_PID };

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

static bool path_join(const char *root, const char *path, char *ret, size_t size)
{
	return (size_t)snprintf(ret, size, "%s%s", root, path) < size;
}

/* As much of the text as fits. */
static void copy_text(char *ret, size_t size, const char *s)
{
	size_t n = MIN(strlen(s), size - 1);

	memcpy(ret, s, n);
	ret[n] = '\0';
}

/* The first bytes of a file as text; false when it cannot be read. These files are short, or
 * what matters of them stands at their beginning. */
static bool read_head(const char *root, const char *path, char *buf, size_t size)
{
	char full[PATH_MAX];
	CLEANUP(closep) int fd = -1;
	size_t n = 0;

	if (!path_join(root, path, full, sizeof(full)))
		return false;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return false;
	while (n < size - 1) {
		ssize_t got = read(fd, buf + n, size - 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return false;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	buf[n] = '\0';
	return true;
}

/* The first line of a file, left untouched when it cannot be read. */
static void read_line(const char *root, const char *path, char *ret, size_t size)
{
	char buf[512];

	if (!read_head(root, path, buf, sizeof(buf)))
		return;
	buf[strcspn(buf, "\n")] = '\0';
	copy_text(ret, size, buf);
}

static int64_t read_number(const char *root, const char *path)
{
	char buf[64], *end;
	long long v;

	if (!read_head(root, path, buf, sizeof(buf)))
		return HOST_UNKNOWN;
	errno = 0;
	v = strtoll(buf, &end, 10);
	if (errno || end == buf || (*end && *end != '\n'))
		return HOST_UNKNOWN;
	return v;
}

static bool path_exists(const char *root, const char *path)
{
	char full[PATH_MAX];

	return path_join(root, path, full, sizeof(full)) && access(full, F_OK) == 0;
}

/* As this program will open it: with its effective ids and capabilities. */
static bool path_readable(const char *root, const char *path)
{
	char full[PATH_MAX];

	return path_join(root, path, full, sizeof(full)) &&
	       faccessat(AT_FDCWD, full, R_OK, AT_EACCESS) == 0;
}

static bool read_link(const char *root, const char *path, char *ret, size_t size)
{
	char full[PATH_MAX], buf[PATH_MAX];
	ssize_t n;

	if (!path_join(root, path, full, sizeof(full)))
		return false;
	n = readlink(full, buf, sizeof(buf) - 1);
	if (n < 0 || (size_t)n >= size)
		return false;
	memcpy(ret, buf, (size_t)n);
	ret[n] = '\0';
	return true;
}

static void read_kernel(struct host *h, const char *root)
{
	unsigned a = 0, b = 0, c = 0;
	struct utsname u;

	if (!*root && uname(&u) == 0) {
		copy_text(h->kernel_release, sizeof(h->kernel_release), u.release);
		copy_text(h->machine, sizeof(h->machine), u.machine);
		copy_text(h->hostname, sizeof(h->hostname), u.nodename);
	} else {
		read_line(root, "/proc/sys/kernel/osrelease", h->kernel_release,
			  sizeof(h->kernel_release));
		read_line(root, "/proc/sys/kernel/arch", h->machine, sizeof(h->machine));
		read_line(root, "/proc/sys/kernel/hostname", h->hostname, sizeof(h->hostname));
	}
	if (sscanf(h->kernel_release, "%3u.%5u.%5u", &a, &b, &c) >= 2)
		h->kernel_version = KERNEL_VERSION(a, MIN(b, 255u), MIN(c, 255u));
}

static void read_sysctls(struct host *h, const char *root)
{
	h->perf_event_paranoid = read_number(root, "/proc/sys/kernel/perf_event_paranoid");
	h->perf_event_mlock_kb = read_number(root, "/proc/sys/kernel/perf_event_mlock_kb");
	h->perf_event_max_sample_rate =
		read_number(root, "/proc/sys/kernel/perf_event_max_sample_rate");
	h->perf_event_max_stack = read_number(root, "/proc/sys/kernel/perf_event_max_stack");
	h->kptr_restrict = read_number(root, "/proc/sys/kernel/kptr_restrict");
	h->unprivileged_bpf_disabled =
		read_number(root, "/proc/sys/kernel/unprivileged_bpf_disabled");
}

/* The text behind "\nNAME:" in /proc/PID/status, or NULL. The first line, Name, is not asked for:
 * it is the only one whose text a user chooses, and the kernel escapes its newlines. */
static const char *status_field(const char *status, const char *name)
{
	char key[32];
	const char *at;

	snprintf(key, sizeof(key), "\n%s:", name);
	at = strstr(status, key);
	return at ? at + strlen(key) : NULL;
}

static void read_user(struct host *h, const char *root)
{
	char status[8192];
	const char *v;
	unsigned real, effective;

	h->euid = geteuid();
	h->egid = getegid();
	h->seccomp_mode = -1;
	h->caps_bounding = ~0ULL;
	if (!read_head(root, "/proc/self/status", status, sizeof(status)))
		return;
	v = status_field(status, "Uid");
	if (v && sscanf(v, "%u %u", &real, &effective) == 2)
		h->euid = effective;
	v = status_field(status, "Gid");
	if (v && sscanf(v, "%u %u", &real, &effective) == 2)
		h->egid = effective;
	v = status_field(status, "CapEff");
	if (v)
		h->caps_effective = strtoull(v, NULL, 16);
	v = status_field(status, "CapBnd");
	if (v)
		h->caps_bounding = strtoull(v, NULL, 16);
	v = status_field(status, "NoNewPrivs");
	if (v)
		h->no_new_privs = strtol(v, NULL, 10) == 1;
	v = status_field(status, "Seccomp");
	if (v)
		h->seccomp_mode = (int)MIN(strtoul(v, NULL, 10), 2ul);
}

/* "none [integrity] confidentiality" */
static void read_lockdown(struct host *h, const char *root)
{
	char buf[128], *open_bracket, *end;

	if (!read_head(root, "/sys/kernel/security/lockdown", buf, sizeof(buf)))
		return;
	open_bracket = strchr(buf, '[');
	end = open_bracket ? strchr(open_bracket, ']') : NULL;
	if (!end)
		return;
	*end = '\0';
	copy_text(h->lockdown_mode, sizeof(h->lockdown_mode), open_bracket + 1);
	h->lockdown = !str_eq(h->lockdown_mode, "none");
}

/* The ids of tracepoints are what is needed of tracefs; sched_switch exists everywhere. */
static bool tracefs_readable(const char *root, const char *mount_point)
{
	char path[PATH_MAX];

	return path_join(mount_point, "/events/sched/sched_switch/id", path, sizeof(path)) &&
	       path_readable(root, path);
}

/* Lines longer than the buffer (overlay mounts have such) come in pieces, which are no mounts of
 * tracefs: it has no long options. */
static void read_tracefs(struct host *h, const char *root)
{
	char full[PATH_MAX], line[1024], point[64], type[16];
	CLEANUP(fclosep) FILE *mounts = NULL;

	if (!path_join(root, "/proc/self/mounts", full, sizeof(full)))
		return;
	mounts = fopen(full, "re");
	if (!mounts)
		return;
	for (size_t lines = 0; lines < 100000 && fgets(line, sizeof(line), mounts); lines++) {
		if (sscanf(line, "%*s %63s %15s", point, type) != 2 || !str_eq(type, "tracefs"))
			continue;
		h->tracefs_mounted = true;
		memcpy(h->tracefs_point, point, sizeof(point));
		if (!tracefs_readable(root, point))
			continue;
		memcpy(h->tracefs, point, sizeof(point));
		return;
	}
}

/* 1: in the initial one, 0: in another, -1: unknown. */
static int is_initial_namespace(const char *root, size_t which)
{
	char ns[64];

	if (!read_link(root, namespaces[which].link, ns, sizeof(ns)))
		return -1;
	return str_eq(ns, namespaces[which].initial);
}

/* Containers may share some of the host's namespaces, but none shares all of them. */
static bool is_on_host(const char *root)
{
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (is_initial_namespace(root, i) != 1)
			return false;
	return true;
}

/* Value of NAME= in the NUL-separated environment of a process; false when absent. */
static bool environ_value(const char *root, const char *path, const char *name, char *ret,
			  size_t size)
{
	char full[PATH_MAX], buf[4096];
	CLEANUP(fclosep) FILE *file = NULL;
	size_t n, name_n = strlen(name);

	if (!path_join(root, path, full, sizeof(full)))
		return false;
	file = fopen(full, "re");
	if (!file)
		return false;
	n = fread(buf, 1, sizeof(buf) - 1, file);
	buf[n] = '\0';
	for (size_t at = 0; at < n; at += strlen(buf + at) + 1) {
		if (strncmp(buf + at, name, name_n) != 0 || buf[at + name_n] != '=')
			continue;
		copy_text(ret, size, buf + at + name_n + 1);
		return true;
	}
	return false;
}

/* The marks that the runtimes leave; systemd.io/CONTAINER_INTERFACE for the last two. */
static void read_container(struct host *h, const char *root)
{
	static const struct {
		const char *path, *name;
	} marks[] = {
		{"/var/run/secrets/kubernetes.io", "kubernetes"},
		{"/run/.containerenv", "podman"},
		{"/.dockerenv", "docker"},
	};

	/* A virtual machine may have been started from a container's image, marks and all. */
	if (is_on_host(root))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (path_exists(root, marks[i].path)) {
			copy_text(h->container, sizeof(h->container), marks[i].name);
			return;
		}
	if (environ_value(root, "/proc/self/environ", "KUBERNETES_SERVICE_HOST", h->container,
			  sizeof(h->container)))
		copy_text(h->container, sizeof(h->container), "kubernetes");
	else if (!environ_value(root, "/proc/1/environ", "container", h->container,
				sizeof(h->container)))
		read_line(root, "/run/systemd/container", h->container, sizeof(h->container));
}

/* What the drivers of CPU counters call themselves (drivers/perf, arch/x86/events, …). */
static bool is_cpu_pmu(const char *name)
{
	static const char *const names[] = {"cpu", "cpu_core", "cpu_atom", "cpum_cf"};
	static const char *const prefixes[] = {"armv", "apple_", "riscv"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, names[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts(name, prefixes[i]))
			return true;
	return false;
}

static bool find_pmu(const char *root)
{
	char full[PATH_MAX];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (!path_join(root, "/sys/bus/event_source/devices", full, sizeof(full)))
		return false;
	dir = opendir(full);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir)))
		found = is_cpu_pmu(entry->d_name);
	closedir(dir);
	return found;
}

static bool find_hypervisor(const char *root)
{
	static const char *const vendors[] = {"QEMU",      "VMware", "Xen",       "innotek",
					      "Parallels", "KVM",    "OpenStack", "Alibaba"};
	static const char *const products[] = {"Virtual Machine" /* Hyper-V */,
					       "Google Compute Engine"};
	static const char *const hints[] = {"/sys/hypervisor/type", "/proc/device-tree/hypervisor"};
	char buf[8192]; /* holds the whole block of the first CPU */
	char vendor[128] = "", product[128] = "";

	if (read_head(root, "/proc/cpuinfo", buf, sizeof(buf)) && strstr(buf, " hypervisor"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (path_exists(root, hints[i]))
			return true;
	read_line(root, "/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	read_line(root, "/sys/class/dmi/id/product_name", product, sizeof(product));
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++)
		if (str_starts(vendor, vendors[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(products); i++)
		if (str_eq(product, products[i]))
			return true;
	return false;
}

/* "0-3,6" in /sys/devices/system/cpu/online */
static uint32_t count_cpus(const char *root)
{
	char buf[1024], *at = buf;
	uint64_t n = 0;

	if (!read_head(root, "/sys/devices/system/cpu/online", buf, sizeof(buf)))
		return *root ? 0 : (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1l);
	while (*at >= '0' && *at <= '9') {
		uint64_t first = strtoul(at, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		if (last >= first && last < 1u << 20)
			n += last - first + 1;
		if (*at != ',')
			break;
		at++;
	}
	return (uint32_t)MIN(n, 1u << 20);
}

static void read_limits(struct host *h)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		h->nofile_soft = limit.rlim_cur;
		h->nofile_hard = limit.rlim_max;
	}
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		h->memlock_soft_bytes = limit.rlim_cur;
}

void host_read(struct host *h, const char *root)
{
	*h = (struct host){0};
	read_kernel(h, root);
	read_sysctls(h, root);
	read_user(h, root);
	read_lockdown(h, root);
	read_tracefs(h, root);
	h->in_user_namespace = is_initial_namespace(root, NS_USER) == 0;
	h->in_pid_namespace = is_initial_namespace(root, NS_PID) == 0;
	read_container(h, root);
	read_limits(h);
	if (!read_link(root, "/proc/self/exe", h->exe, sizeof(h->exe)))
		h->exe[0] = '\0';
	h->has_sudo = path_exists(root, "/usr/bin/sudo") || path_exists(root, "/bin/sudo") ||
		      path_exists(root, "/usr/local/bin/sudo");
	h->has_btf = path_readable(root, "/sys/kernel/btf/vmlinux");
	h->has_pmu = find_pmu(root);
	h->virtual_machine = find_hypervisor(root);
	h->cpus_online = count_cpus(root);
}

bool host_has_cap(const struct host *h, int cap)
{
	return cap >= 0 && cap < 64 && (h->caps_effective >> cap & 1);
}

bool host_perfmon_capable(const struct host *h)
{
	bool has_perfmon = !h->kernel_version || h->kernel_version >= KERNEL_VERSION(5, 8, 0);

	return !h->in_user_namespace &&
	       (host_has_cap(h, CAP_SYS_ADMIN) || (has_perfmon && host_has_cap(h, CAP_PERFMON)));
}
