/* SPDX-License-Identifier: BSD-2-Clause */
/* Which control groups are looked at: the target's and those above, or all that have a limit. */
#include "readings.h"

#include <dirent.h>
#include <inspect/procfs.h>

enum { GROUPS_MAX = 1024, WALKED_MAX = 4096, DEPTH_MAX = 16, TEXT_MAX = 1 << 20 };

static const char *const controllers[CG_CONTROLLERS] = {"cpu", "memory", "pids",
							"cpuacct", [CG_UNIFIED] = ""};

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; n && at && *at;) {
		if (strncmp(at, word, n) == 0 && (!at[n] || strchr(", \n", at[n])))
			return true;
		at = strchr(at, ',');
		at += at != NULL;
	}
	return false;
}

/* "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0". Where both versions have a
 * controller, version 1 has it: a controller is in one hierarchy only. */
static void find_mounts(const char *root, struct cgroup_mounts *m)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char line[1024], point[PATH_SIZE], type[32], options[256];

	root_read(root, &text, TEXT_MAX, "/proc/mounts");
	for (const char *at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		if (sscanf(line, "%*s %511s %31s %255s", point, type, options) != 3)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
			bool v2 = str_eq(type, "cgroup2");

			if (!v2 && !(str_eq(type, "cgroup") && has_word(options, controllers[i])))
				continue;
			if (v2 && m->dir[i][0])
				continue;
			snprintf(m->dir[i], sizeof(m->dir[i]), "%s", point);
			m->v2[i] = v2;
		}
	}
}

static int add_name(struct cgroup_list *l, const char *name)
{
	char *copy;

	for (size_t i = 0; i < l->names.n; i++)
		if (str_eq(l->names.v[i], name))
			return 0;
	if (l->names.n >= GROUPS_MAX) {
		l->cut = true;
		return 0;
	}
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	if (array_push(&l->names, copy)) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

static bool is_limited(const struct cgroup_mounts *m, int controller, const char *path)
{
	static const char *const v1[] = {"/cpu.cfs_quota_us", "/memory.limit_in_bytes",
					 "/pids.max"};
	double v;

	if (!m->v2[controller]) {
		v = root_number(path, "%s", v1[controller]);
		return v > 0 && v < 9e18;
	}
	for (size_t i = 0; i < 4; i++) {
		static const char *const v2[] = {"/cpu.max", "/memory.max", "/memory.high",
						 "/pids.max"};

		v = root_number(path, "%s", v2[i]);
		if (!isnan(v) && !isinf(v))
			return true;
	}
	return false;
}

/* A container's own group is the root of what it sees; the real root has no limits. */
static int add_root(const char *root, struct cgroup_list *l)
{
	for (int i = 0; i < CG_CPUACCT; i++) {
		char dir[PATH_SIZE + 64];

		snprintf(dir, sizeof(dir), "%s%s", root, l->mounts.dir[i]);
		if (l->mounts.dir[i][0] && is_limited(&l->mounts, i, dir))
			return add_name(l, "/");
	}
	return 0;
}

/* The group and those above it. */
static int add_with_parents(struct cgroup_list *l, const char *name)
{
	char group[256];
	char *slash;
	int err = 0;

	snprintf(group, sizeof(group), "%s", name);
	while (!err && group[0] == '/' && group[1]) {
		err = add_name(l, group);
		slash = strrchr(group, '/');
		*slash = '\0';
	}
	return err;
}

/* "4:memory:/group", "1:cpu,cpuacct:/group", "0::/group" */
bool cgroup_line_of(const char *line, enum cgroup_controller c, bool v2, char *ret, size_t size)
{
	char list[256], group[256];

	if (sscanf(line, "%*u:%255[^:]:%255[^\n]", list, group) == 2) {
		if (v2 || !has_word(list, controllers[c]))
			return false;
	} else if (!v2 || sscanf(line, "0::%255[^\n]", group) != 1) {
		return false;
	}
	snprintf(ret, size, "%s", group);
	return true;
}

static int add_groups_of(const char *root, pid_t pid, struct cgroup_list *l)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char line[1024], group[256];
	int err = 0;

	root_read(root, &text, TEXT_MAX, "/proc/%d/cgroup", (int)pid);
	for (const char *at = strbuf_str(&text); !err && next_line(&at, line, sizeof(line));) {
		bool wanted = false;

		for (int i = 0; i < CG_CONTROLLERS && !wanted; i++)
			wanted = cgroup_line_of(line, i, l->mounts.v2[i], group, sizeof(group));
		if (wanted)
			err = add_with_parents(l, group);
	}
	return err;
}

/* --- the whole tree --------------------------------------------------------------------------- */

struct walk {
	const char *dir; /* of the hierarchy, below root */
	int controller;
	struct cgroup_list *l;
	unsigned walked;
};

static int walk_groups(struct walk *w, const char *path, unsigned depth)
{
	size_t top = strlen(w->dir);
	DIR *dir = depth < DEPTH_MAX ? opendir(path) : NULL;
	int err = 0;

	if (!dir)
		return 0;
	for (struct dirent *e; !err && (e = readdir(dir));) {
		char below[PATH_SIZE];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (w->walked++ >= WALKED_MAX) {
			w->l->cut = true;
			break;
		}
		if ((size_t)snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >=
		    sizeof(below))
			continue;
		if (is_limited(&w->l->mounts, w->controller, below))
			err = add_name(w->l, below + top);
		if (!err)
			err = walk_groups(w, below, depth + 1);
	}
	closedir(dir);
	return err;
}

/* The groups below one, or of all the hierarchies. */
static int walk_all(const char *root, const char *below, struct cgroup_list *l)
{
	int err = 0;

	for (size_t i = 0; i < CG_CPUACCT && !err; i++) {
		char dir[PATH_SIZE + 64], from[2 * PATH_SIZE];
		struct walk w = {.dir = dir, .controller = (int)i, .l = l};

		/* Of version 2 all controllers are in one. */
		if (!l->mounts.dir[i][0] || (i && l->mounts.v2[i] && l->mounts.v2[0]))
			continue;
		snprintf(dir, sizeof(dir), "%s%s", root, l->mounts.dir[i]);
		snprintf(from, sizeof(from), "%s%s", dir, below);
		err = walk_groups(&w, from, 0);
	}
	return err;
}

/* The path in whatever hierarchy it was given: the group's name, "" none. */
static const char *name_of(const char *root, const char *path, const struct cgroup_list *l)
{
	static const char top[] = "/sys/fs/cgroup";
	const char *group;

	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		const char *dir = l->mounts.dir[i];

		if (dir[0] && str_starts(path, dir) && path[strlen(dir)] == '/')
			return path + strlen(dir);
	}
	/* In a hierarchy without limits, such as perf_event's: the same name in the others. */
	if (!str_starts(path, root) || !str_starts(path + strlen(root), top))
		return path;
	group = strchr(path + strlen(root) + strlen(top) + 1, '/');
	return group ? group : "";
}

/* The group, those above it, and those below that have a limit of their own. */
static int add_path(const char *root, const char *path, struct cgroup_list *l)
{
	int err;

	snprintf(l->own, sizeof(l->own), "%s", name_of(root, path, l));
	err = add_with_parents(l, l->own);
	return err || !l->own[0] ? err : walk_all(root, l->own, l);
}

int cgroup_list_find(const char *root, const struct use_config *c, struct cgroup_list *ret)
{
	int err = 0;

	find_mounts(root, &ret->mounts);
	err = add_root(root, ret);
	if (err)
		return err;
	if (c->cgroup)
		return add_path(root, c->cgroup, ret);
	for (size_t i = 0; i < c->n_pids && !err; i++)
		err = add_groups_of(root, c->pids[i], ret);
	return err || c->n_pids ? err : walk_all(root, "", ret);
}

void cgroup_list_release(struct cgroup_list *l)
{
	for (size_t i = 0; i < l->names.n; i++)
		free(l->names.v[i]);
	array_release(&l->names);
}
