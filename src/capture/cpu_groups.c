/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_groups.h"

#include <inspect/procfs.h>

enum { GROUPS_MAX = 256, PATH_SIZE = 4096, GROUP_SIZE = 3072 };

/* Where the controller of CPU time has the group that pid is in, and *ret_root, how much of that is
 * the mount point. Below a v2 hierarchy without the controller there is no cpu.max. */
static int group_of(pid_t pid, char ret[PATH_SIZE], size_t *ret_root)
{
	static const char v2_root[] = "/sys/fs/cgroup", v1_root[] = "/sys/fs/cgroup/cpu";
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[64], group[GROUP_SIZE];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (file_read(path, 1 << 20, &text))
		return -ENOENT;
	line = strstr(strbuf_str(&text), "0::");
	if (line && sscanf(line, "0::%3071[^\n]", group) == 1) {
		snprintf(ret, PATH_SIZE, "%s%s/cpu.max", v2_root, group);
		*ret_root = strlen(v2_root);
		if (access(ret, R_OK) == 0) {
			ret[strlen(ret) - strlen("/cpu.max")] = '\0';
			return 0;
		}
	}
	line = strstr(strbuf_str(&text), ":cpu:");
	if (!line)
		line = strstr(strbuf_str(&text), ":cpu,cpuacct:");
	if (!line || sscanf(strchr(line + 1, ':'), ":%3071[^\n]", group) != 1)
		return -ENOENT;
	*ret_root = strlen(v1_root);
	snprintf(ret, PATH_SIZE, "%s%s", v1_root, group);
	return 0;
}

/* To the group above. Whether there is one: a mount point is no group, or one without a limit. */
static bool go_up(char *dir, size_t root)
{
	char *slash = strrchr(dir, '/');

	if (!slash || (size_t)(slash - dir) <= root)
		return false;
	*slash = '\0';
	return true;
}

/* cpu.max of v2, cpu.cfs_quota_us and _period_us of v1. */
static double quota_of(const char *dir)
{
	CLEANUP(strbuf_release) struct strbuf max = {0};
	char path[PATH_SIZE + 32];
	int64_t quota, period;
	long long q, p;

	snprintf(path, sizeof(path), "%s/cpu.max", dir);
	if (!file_read(path, 4096, &max))
		return sscanf(strbuf_str(&max), "%lld %lld", &q, &p) == 2 && q > 0 && p > 0
			       ? (double)q / (double)p
			       : -1;
	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
	if (file_read_i64(path, &quota) || quota <= 0)
		return -1;
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
	return !file_read_i64(path, &period) && period > 0 ? (double)quota / (double)period : -1;
}

static int64_t throttled_of(const char *dir)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[PATH_SIZE + 32];
	const char *line;
	long long n;

	snprintf(path, sizeof(path), "%s/cpu.stat", dir);
	if (file_read(path, 1 << 16, &text))
		return -1;
	line = strstr(strbuf_str(&text), "nr_throttled ");
	return line && sscanf(line, "nr_throttled %lld", &n) == 1 ? n : -1;
}

double cpu_groups_quota(pid_t pid)
{
	char dir[PATH_SIZE];
	double least = -1;
	size_t root;

	if (group_of(pid, dir, &root))
		return -1;
	do {
		double quota = quota_of(dir);

		if (quota > 0 && (least < 0 || quota < least))
			least = quota;
	} while (go_up(dir, root));
	return least;
}

static bool has(const cpu_group_list *l, const char *dir)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i].dir, dir))
			return true;
	return false;
}

static int add(cpu_group_list *l, const char *dir)
{
	struct cpu_group g = {.n_throttled = throttled_of(dir)};
	int err;

	if (g.n_throttled < 0 || l->n >= GROUPS_MAX)
		return 0;
	g.dir = strdup(dir);
	err = g.dir ? array_push(l, g) : -ENOMEM;
	if (err)
		free(g.dir);
	return err;
}

int cpu_groups_add(cpu_group_list *l, pid_t pid)
{
	char dir[PATH_SIZE];
	size_t root;
	int err = 0;

	if (group_of(pid, dir, &root))
		return 0;
	do {
		if (has(l, dir))
			return 0; /* and so those above */
		err = add(l, dir);
	} while (!err && go_up(dir, root));
	return err;
}

void cpu_groups_release(cpu_group_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].dir);
	array_release(l);
}

int64_t cpu_groups_throttled(const cpu_group_list *l)
{
	int64_t sum = -1;

	for (size_t i = 0; i < l->n; i++) {
		int64_t n = throttled_of(l->v[i].dir);

		if (n >= l->v[i].n_throttled)
			sum = MAX(sum, 0) + n - l->v[i].n_throttled;
	}
	return sum;
}
