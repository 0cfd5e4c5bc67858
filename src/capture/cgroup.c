/* SPDX-License-Identifier: BSD-2-Clause */
#include "cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <inspect/procfs.h>
#include <sys/vfs.h>

enum { GROUPS_MAX = 4096, DEPTH_MAX = 32, GROUPS_NAMED = 3 };

/* Where cgroup hierarchies are mounted; perf_event counts on the v2 one or on its own v1 one. */
static const char *const roots[] = {
	"/sys/fs/cgroup",         "/sys/fs/cgroup/unified", "/sys/fs/cgroup/perf_event",
	"/sys/fs/cgroup/memory",  "/sys/fs/cgroup/cpu",     "/sys/fs/cgroup/pids",
	"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/blkio",
	"/sys/fs/cgroup/cpuset",  "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/devices",
};

bool cgroup_counts_events(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs))
		return false;
	return fs.f_type == 0x63677270 /* CGROUP2_SUPER_MAGIC */ ||
	       (str_starts(path, "/sys/fs/cgroup/perf_event") &&
		fs.f_type == 0x27e0eb /* CGROUP_SUPER_MAGIC */);
}

static bool has_procs(const char *path)
{
	char procs[4200];
	int n = snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);

	return n > 0 && (size_t)n < sizeof(procs) && access(procs, F_OK) == 0;
}

/* --- hierarchies that perf does not count ----------------------------------------------------- */

/* A walk through a group and the groups below it. */
struct walk {
	struct target *t;
	struct strbuf named; /* the first groups below, by name */
	size_t groups;       /* below */
	struct diag *d;
};

/* A group that vanishes meanwhile has no processes any more. */
static int add_processes(struct walk *w, const char *path)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char procs[4200];
	int err;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	err = file_read(procs, 16 << 20, &text);
	if (err == -ENODEV || err == -ENOENT)
		return 0;
	if (err)
		return diag_errno(w->d, err, "cannot read %s", procs);
	for (const char *at = strbuf_str(&text); *at && !err;) {
		char *end;
		long pid = strtol(at, &end, 10);

		if (end == at || *end != '\n' || pid < 0 || pid > INT32_MAX)
			return diag_set(w->d, -EBADMSG, "%s: not a list of processes", procs);
		at = end + 1;
		if (pid) /* 0: it is outside our pid namespace */
			err = array_push(&w->t->pids, (pid_t)pid);
	}
	return err;
}

static int add_groups(struct walk *w, const char *path, unsigned depth)
{
	int err = add_processes(w, path);
	DIR *dir = !err && depth < DEPTH_MAX ? opendir(path) : NULL;

	if (!dir)
		return err;
	for (struct dirent *e; !err && w->groups < GROUPS_MAX && (e = readdir(dir));) {
		char below[4096];

		if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
		    (size_t)snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >=
			    sizeof(below))
			continue;
		if (w->groups++ < GROUPS_NAMED)
			strbuf_printf(&w->named, "%s%s", w->groups > 1 ? ", " : "",
				      below + strlen(w->t->cgroup) + 1);
		err = add_groups(w, below, depth + 1);
	}
	closedir(dir);
	return err;
}

bool cgroup_has_processes(const char *path)
{
	struct target t = {.cgroup = (char *)path};
	struct walk w = {.t = &t};
	bool has = !add_groups(&w, path, 0) && t.pids.n;

	strbuf_release(&w.named);
	array_release(&t.pids);
	return has;
}

/* Hierarchies of version 1 have groups of one name with other processes, or none. */
static char *find_cgroup(const char *text)
{
	char path[4096], *found = NULL;

	/* As others spell it: without symlinks, and slashes that say nothing. */
	if (text[0] == '/' && has_procs(text))
		return realpath(text, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		int n = snprintf(path, sizeof(path), "%s/%s", roots[i], text + (text[0] == '/'));
		bool has;

		if (n <= 0 || (size_t)n >= sizeof(path) || !has_procs(path))
			continue;
		has = cgroup_has_processes(path);
		if (found && !has)
			continue;
		free(found);
		found = realpath(path, NULL);
		if (has)
			break;
	}
	return found;
}

/* The processes that are in a cgroup now, for hierarchies that perf_event does not know. */
int target_list_cgroup(struct target *t, note_list *notes, struct diag *d)
{
	CLEANUP(strbuf_release) struct strbuf below = {0};
	struct walk w = {.t = t, .d = d};
	int err = add_groups(&w, t->cgroup, 0);

	if (w.groups)
		strbuf_printf(&below, " (with those of %zu group%s below: %s%s)", w.groups,
			      w.groups == 1 ? "" : "s", strbuf_str(&w.named),
			      w.groups > GROUPS_NAMED ? ", …" : "");
	strbuf_release(&w.named);
	if (err)
		return diag_errno(d, err, "%s", t->cgroup);
	if (!t->pids.n)
		return diag_set(d, -ESRCH, "no process is in the cgroup %s, or below it",
				t->cgroup);
	return note_add(notes,
			"%s is not in a hierarchy that counts events: its %zu processes of "
			"now%s and their children are recorded",
			t->cgroup, t->pids.n, strbuf_str(&below));
}

static int refuse(const char *text, struct diag *d)
{
	bool is_top = str_eq(text, "/") || str_starts("/sys/fs/cgroup/", text);

	diag_set(d, is_top ? -EINVAL : -ENOENT,
		 is_top ? "'%s' is not one cgroup" : "no cgroup '%s'", text);
	if (is_top) {
		diag_why(d, "%s",
			 str_eq(text, "/") ? "the root of all cgroups is the whole system"
					   : "it holds the hierarchies, each with its own "
					     "groups");
		diag_fix(d, "-a      (the whole system)");
	} else {
		diag_why(d, "neither a path nor a group below /sys/fs/cgroup");
	}
	diag_fix(d, "cat /proc/PID/cgroup      (the groups of a process: --cgroup takes such a "
		    "path)");
	return d->err;
}

int target_open_cgroup(const char *text, bool lists, struct target *t, note_list *notes,
		       struct diag *d)
{
	if (!*text || str_eq(text, "/"))
		return refuse(*text ? text : "/", d);
	t->cgroup = find_cgroup(text);
	if (!t->cgroup)
		return refuse(text, d);
	if (!cgroup_counts_events(t->cgroup))
		return lists ? target_list_cgroup(t, notes, d) : 0;
	t->cgroup_fd = open(t->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->cgroup_fd < 0 ? diag_errno(d, -errno, "cannot open cgroup %s", t->cgroup) : 0;
}
