/* SPDX-License-Identifier: BSD-2-Clause */
#include "cgroup.h"

#include <inspect/capture.h>
#include <inspect/explain.h>
#include <inspect/hashmap.h>
#include <inspect/procfs.h>
#include <time.h>

enum { IDS_MAX = 1 << 20, CPU_MAX = 1 << 16, YOUNG_S = 10, BUSY_PART = 5 };

/* One number of a list such as 1,2,3 or, where allowed, 0-3. */
static int parse_number(const char **at, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (**at < '0' || **at > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(*at, &end, 10);
	if (errno || v > max)
		return -EINVAL;
	*at = end;
	*ret = v;
	return 0;
}

static int bad_list(const char *option, const char *text, const char *example, struct diag *d)
{
	diag_set(d, -EINVAL, "%s %s: not a list of numbers", option, text);
	diag_fix(d, "%s %s", option, example);
	return -EINVAL;
}

/* What people give where an id belongs. */
static int bad_ids(const char *option, const char *text, struct diag *d)
{
	if (str_eq(text, "0") || str_eq(text, "-1")) {
		diag_set(d, -EINVAL, "%s %s: no process has this id", option, text);
		diag_fix(d, "-a      (the whole system)");
		return -EINVAL;
	}
	if (*text && (*text < '0' || *text > '9') && !strpbrk(text, "'\\ ,")) {
		diag_set(d, -EINVAL, "%s %s: not a list of numbers", option, text);
		diag_why(d, "processes are given by their ids");
		diag_fix(d, "-p \"$(pgrep -d, -x '%s')\"", text);
		return -EINVAL;
	}
	return bad_list(option, text, "1234,5678", d);
}

/* One that is given twice, or as a child of another, is measured once. */
static int add_once(struct hashmap *seen, struct pid_list *to, pid_t id)
{
	uint64_t hash = (uint64_t)id * 0x9e3779b97f4a7c15;
	uint32_t at, i;
	int err;

	hashmap_each_candidate(seen, hash, at, i)
		if (to->v[i] == id)
			return 0;
	err = array_push(to, id);
	return err ? err : hashmap_insert(seen, hash, (uint32_t)to->n - 1);
}

static int parse_ids(const char *option, const char *text, struct pid_list *ret, struct diag *d)
{
	const char *at = text;

	for (;;) {
		uint64_t id;
		int err = parse_number(&at, INT32_MAX, &id);

		if (err || !id || ret->n >= IDS_MAX || (*at && *at != ','))
			return bad_ids(option, text, d);
		err = array_push(ret, (pid_t)id);
		if (err)
			return diag_errno(d, err, "%s", option);
		if (!*at++)
			return 0;
	}
}

/* A CPU without the file cannot be taken offline. */
static bool is_online(uint64_t cpu)
{
	char path[80];
	int64_t online = 1;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%llu", (unsigned long long)cpu);
	if (access(path, F_OK))
		return access("/sys/devices/system/cpu/cpu0", F_OK) != 0; /* no /sys to ask */
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%llu/online",
		 (unsigned long long)cpu);
	return file_read_i64(path, &online) || online == 1;
}

static int refuse_cpu(const char *text, uint64_t cpu, struct diag *d)
{
	CLEANUP(strbuf_release) struct strbuf online = {0};

	diag_set(d, -EINVAL, "-C %s: CPU %llu is not online", text, (unsigned long long)cpu);
	if (file_read("/sys/devices/system/cpu/online", 4096, &online) == 0 && online.n > 1)
		diag_fix(d, "-C %.*s      (those that are)", (int)online.n - 1, online.v);
	return -EINVAL;
}

static int parse_cpus(const char *text, struct target *t, struct diag *d)
{
	const char *at = text;

	for (;;) {
		uint64_t first, last;
		int err = parse_number(&at, CPU_MAX, &first);

		last = first;
		if (!err && *at == '-') {
			at++;
			err = parse_number(&at, CPU_MAX, &last);
		}
		if (err || last < first || (*at && *at != ','))
			return bad_list("-C", text, "0-3,8", d);
		for (uint64_t cpu = first; cpu <= last; cpu++) {
			if (!is_online(cpu))
				return refuse_cpu(text, cpu, d);
			if (array_push(&t->cpus, (int)cpu))
				return diag_errno(d, -ENOMEM, "-C %s", text);
		}
		if (!*at++)
			return 0;
	}
}

static int check_exists(pid_t pid, bool with_zombies, const struct host *host, struct diag *d)
{
	struct proc_stat s;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (access(path, F_OK))
		return explain_target(-ESRCH, (int)pid, host, d);
	/* A main thread may end before the others. */
	if (with_zombies || proc_stat_read(pid, 0, &s) || s.state != 'Z' || s.num_threads > 1)
		return 0;
	diag_set(d, -ESRCH, "process %d has ended: only its exit status is left (a zombie)",
		 (int)pid);
	diag_why(d, "its parent, process %d, has not asked for it yet", (int)s.ppid);
	return -ESRCH;
}

/* Start-up work (imports, caches, JIT) is not what a server does later. One that has hardly run
 * does none. */
static int note_young(pid_t pid, struct target *t)
{
	struct proc_stat s;
	struct timespec now;
	uint64_t now_ns, age_ns;

	if (proc_stat_read(pid, 0, &s) || clock_gettime(CLOCK_BOOTTIME, &now))
		return 0;
	now_ns = (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
	age_ns = now_ns - MIN(now_ns, s.start_time_ns);
	if (age_ns > YOUNG_S * NSEC_PER_SEC || (s.utime_ns + s.stime_ns) * BUSY_PART < age_ns)
		return 0;
	return note_add(&t->hints,
			"process %d is %.0f s old and may still be starting up; --delay TIME waits",
			(int)pid, (double)age_ns / 1e9);
}

/* A thread's id leads to its process, as in perf. */
static int note_thread(const struct target_options *o, pid_t tid, pid_t pid, note_list *notes)
{
	if (o->no_threads)
		return note_add(notes, "%d is a thread of process %d, which is measured as a whole",
				(int)tid, (int)pid);
	return note_add(notes,
			"%d is a thread of process %d, which is measured as a whole; -t %d is the "
			"thread alone",
			(int)tid, (int)pid, (int)tid);
}

static int add_children(pid_t pid, struct hashmap *seen, struct pid_list *to)
{
	struct pid_list children = {0};
	int err = 0;

	if (!proc_descendants(pid, &children))
		for (size_t i = 0; i < children.n && !err; i++)
			err = add_once(seen, to, children.v[i]);
	array_release(&children);
	return err;
}

static int add_pids(const struct target_options *o, const struct host *host, struct target *t,
		    note_list *notes, struct diag *d)
{
	struct pid_list ids = {0};
	struct hashmap seen = {0};
	int err = parse_ids("-p", o->pids, &ids, d);

	for (size_t i = 0; i < ids.n && !err; i++) {
		size_t before = t->pids.n;
		pid_t pid = proc_of_thread(ids.v[i]);

		pid = pid > 0 ? pid : ids.v[i];
		err = check_exists(pid, o->with_zombies, host, d);
		if (!err)
			err = add_once(&seen, &t->pids, pid);
		if (!err && t->pids.n > before)
			err = note_young(pid, t);
		if (!err && t->pids.n > before && pid != ids.v[i])
			err = note_thread(o, ids.v[i], pid, notes);
		if (!err && o->children)
			err = add_children(pid, &seen, &t->pids);
		if (err)
			diag_errno(d, err, "-p");
	}
	hashmap_release(&seen);
	array_release(&ids);
	return err;
}

static int add_tids(const struct target_options *o, const struct host *host, struct target *t,
		    struct diag *d)
{
	struct pid_list ids = {0};
	struct hashmap seen = {0};
	int err = parse_ids("-t", o->tids, &ids, d);

	for (size_t i = 0; i < ids.n && !err; i++) {
		err = check_exists(ids.v[i], o->with_zombies, host, d);
		if (!err && add_once(&seen, &t->tids, ids.v[i]))
			err = diag_errno(d, -ENOMEM, "-t");
	}
	hashmap_release(&seen);
	array_release(&ids);
	return err;
}

static int refuse_two(const char *a, const char *b, struct diag *d)
{
	return diag_set(d, -EINVAL, "%s and %s exclude each other", a, b);
}

static int check_conflicts(const struct target_options *o, struct diag *d)
{
	const struct {
		const char *name;
		bool given;
	} ways[] = {
		{"-p", o->pids != NULL},
		{"-t", o->tids != NULL},
		{"-a", o->all},
		{"--cgroup", o->cgroup != NULL},
	};
	const char *first = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		if (!ways[i].given)
			continue;
		if (first)
			return refuse_two(first, ways[i].name, d);
		first = ways[i].name;
	}
	if (o->children && !o->pids)
		return diag_set(d, -EINVAL, "--children needs -p PID");
	return 0;
}

int target_resolve(const struct target_options *o, const struct operands *operands,
		   const struct host *host, note_list *notes, struct target *ret, struct diag *d)
{
	struct target t = {.cgroup_fd = -1};
	int err = check_conflicts(o, d);

	if (!err && operands->n) {
		t.argv = operands->v;
		t.cmd_times_only = o->pids || o->tids || o->all || o->cgroup;
	}
	if (!err && o->cpus) {
		err = parse_cpus(o->cpus, &t, d);
		t.all = !o->pids && !o->tids && !o->cgroup && !operands->n;
	}
	if (!err && o->pids)
		err = add_pids(o, host, &t, notes, d);
	if (!err && o->tids)
		err = add_tids(o, host, &t, d);
	if (!err && o->cgroup)
		err = target_open_cgroup(o->cgroup, !o->cgroup_later, &t, notes, d);
	t.all |= o->all;
	if (!err && !t.argv && !t.pids.n && !t.tids.n && !t.all && !t.cgroup) {
		err = diag_set(d, -EINVAL, "nothing to measure: no target is given");
		diag_fix(d, "-p PID, -t TID, -a (all CPUs), --cgroup PATH, or -- CMD");
	}
	if (err) {
		target_release(&t);
		return err;
	}
	*ret = t;
	return 0;
}

void target_release(struct target *t)
{
	array_release(&t->pids);
	array_release(&t->tids);
	array_release(&t->cpus);
	note_list_release(&t->hints);
	closep(&t->cgroup_fd);
	free(t->cgroup);
}
