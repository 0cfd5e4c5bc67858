/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RLIMIT_NPROC: how many threads a user has, all its processes together, against the limit of the
 * process that wants one more. Sources: getrlimit(2), kernel/fork.c, copy_process().
 */
#include "readings.h"

#include <dirent.h>
#include <inspect/clock.h>
#include <sys/stat.h>

enum {
	COST_SHARE = 400, /* counting takes no more than this part of a CPU */
	ROWS_MAX = 32,
	TEXT_MAX = 65536,
	TASK_LINKS = 2 /* of its folder itself: fs/proc/base.c */
};

#define INITIAL_USER_NAMESPACE 0xEFFFFFFDu /* include/linux/proc_ns.h */
#define EXEMPT (1ULL << 21 | 1ULL << 24)   /* CAP_SYS_ADMIN, CAP_SYS_RESOURCE */

/* --- by /proc --------------------------------------------------------------------------------- */

/* 0: not readable. */
static ino_t user_namespace(const char *root, const char *who)
{
	char path[PATH_SIZE];
	struct stat st;

	snprintf(path, sizeof(path), "%s/proc/%s/ns/user", root, who);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Root of the whole system, and who has root's rights there, may have any number. */
bool user_threads_exempt(const char *root, const char *status, pid_t pid)
{
	const char *caps = strstr(status, "\nCapEff:");
	ino_t own = user_namespace(root, "self"), theirs;
	char who[16];

	if (text_field(status, "Uid") == 0 && (!own || own == INITIAL_USER_NAMESPACE))
		return true;
	if (!caps || !(strtoull(caps + strlen("\nCapEff:"), NULL, 16) & EXEMPT))
		return false;
	snprintf(who, sizeof(who), "%d", (int)pid);
	theirs = user_namespace(root, who);
	return !theirs || theirs == INITIAL_USER_NAMESPACE;
}

/* Threads of a process when it is of that user, else 0. The folder of its threads has both its
 * effective user and, as links, their number: one call, where its status takes three. */
static double threads_of(const char *root, int proc_fd, const char *pid, double uid)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[32];
	struct stat st;

	if (!root[0]) {
		snprintf(path, sizeof(path), "%.20s/task", pid);
		if (fstatat(proc_fd, path, &st, 0) || st.st_uid != uid)
			return 0;
		return (double)st.st_nlink - TASK_LINKS;
	}
	root_read(root, &text, TEXT_MAX, "/proc/%s/status", pid);
	return text_field(strbuf_str(&text), "Uid") == uid
		       ? text_field(strbuf_str(&text), "Threads")
		       : 0;
}

/* `wanted`: in that user namespace alone; 0: in any. */
static double count_threads(const char *root, double uid, ino_t wanted)
{
	char path[PATH_SIZE];
	double sum = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", root);
	dir = opendir(path);
	if (!dir)
		return NAN;
	for (struct dirent *e; (e = readdir(dir));) {
		double n;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		n = threads_of(root, dirfd(dir), e->d_name, uid);
		if (n > 0 && (!wanted || user_namespace(root, e->d_name) == wanted))
			sum += n;
	}
	closedir(dir);
	return sum;
}

/* Of the user of a process; in another user namespace than ours a user is counted by itself. All
 * processes are looked at, and they may be thousands: as often as that costs little. */
static double threads_of_user(const struct interval *i, const struct process *p)
{
	const char *root = i->config->root;
	uint64_t now_ns = clock_now_ns(), begin_ns = clock_own_cpu_ns();
	struct user_counts *counts = i->user_counts;
	struct user_count *at = counts->v;
	char who[16];
	ino_t user_ns;

	snprintf(who, sizeof(who), "%d", (int)p->pid);
	user_ns = user_namespace(root, who);
	if (user_ns == user_namespace(root, "self"))
		user_ns = 0;
	while (at < counts->v + counts->n && (at->uid != p->uid || at->user_ns != user_ns))
		at++;
	if (at < counts->v + counts->n && now_ns - at->time_ns < at->cost_ns * COST_SHARE)
		return at->threads;
	/* Of more users than there is room for the last one is forgotten. */
	if (at == counts->v + ARRAY_SIZE(counts->v))
		at--;
	else if (at == counts->v + counts->n)
		counts->n++;
	*at = (struct user_count){.uid = p->uid, .user_ns = user_ns, .time_ns = now_ns};
	at->threads = count_threads(root, p->uid, user_ns);
	at->cost_ns = clock_own_cpu_ns() - begin_ns;
	return at->threads;
}

/* --- rows ------------------------------------------------------------------------------------- */

static void put_row(const struct interval *i, struct use_report *r, const char *name, double uid,
		    double threads, double limit, const char *source, uint64_t refused)
{
	struct use_row *row = row_add(r, "process", "process threads", name);
	struct use_value *v;

	v = row_put_or(r, row, "process_threads_percent", percent_of(threads, limit),
		       isnan(limit) ? "no limit (RLIMIT_NPROC; root has none)"
				    : "/proc is not readable");
	if (v) {
		v->source = source;
		if (!isnan(v->v))
			v->text = report_text(r, "uid %.0f: %.0f of %.0f", uid, threads, limit);
	}
	put_refusals(i, r, row, "user_threads_refused", refused);
}

static const char by_bpf[] = "threads of its user (BPF: cred.ucounts), RLIMIT_NPROC";
static const char by_proc[] =
	"threads of its effective user (/proc/PID/task), /proc/PID/limits (Max processes)";

static const struct task_times *first_thread(const struct interval *i, pid_t pid)
{
	const struct task_table *t = &i->tasks_now->table;

	return task_table_at(t, t->tasks.n, (uint32_t)pid);
}

void user_threads_row(const struct interval *i, const struct process *p, const char *name,
		      struct use_report *r)
{
	const struct task_times *t = first_thread(i, p->pid);
	uint64_t refused = refusals_of(i, p->pid).user_eagain;

	if (t && t->user_tasks)
		put_row(i, r, name, t->uid, t->user_tasks, t->user_limit ? t->user_limit : NAN,
			by_bpf, refused);
	else
		put_row(i, r, name, p->uid, isnan(p->threads_limit) ? NAN : threads_of_user(i, p),
			p->threads_limit, by_proc, refused);
}

static double share_of(const struct task_times *t)
{
	return t->user_limit ? (double)t->user_tasks / t->user_limit : 0;
}

/* Of a user's processes the one that is nearest to its limit. */
static const struct task_times *nearest(const struct task_table *t, uint32_t uid)
{
	const struct task_times *best = NULL;

	for (size_t i = 0; i < t->tasks.n; i++) {
		const struct task_times *one = &t->tasks.v[i];

		if (one->pid == one->tid && one->uid == uid &&
		    (!best || share_of(one) > share_of(best)))
			best = one;
	}
	return best;
}

struct shown_users {
	uint32_t uids[ROWS_MAX];
	size_t n;
	uint64_t refused;
};

static bool is_shown(const struct shown_users *s, uint32_t uid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->uids[i] == uid)
			return true;
	return false;
}

/* What the living processes of a user were refused. */
static uint64_t refused_to(const struct interval *i, uint32_t uid)
{
	const struct task_table *table = &i->tasks_now->table;
	uint64_t sum = 0;

	for (size_t k = 0; k < table->refusals.n; k++) {
		pid_t pid = (pid_t)table->refusals.v[k].pid;
		const struct task_times *t = pid ? first_thread(i, pid) : NULL;

		sum += t && t->uid == uid ? refusals_of(i, pid).user_eagain : 0;
	}
	return sum;
}

static void show_user(const struct interval *i, uint32_t uid, struct shown_users *s,
		      struct use_report *r)
{
	const struct task_times *t = nearest(&i->tasks_now->table, uid);
	uint64_t refused = refused_to(i, uid);

	s->uids[s->n++] = uid;
	s->refused += refused;
	put_row(i, r, report_text(r, "%s/%u", t->comm, t->pid), uid, t->user_tasks,
		t->user_limit ? t->user_limit : NAN, by_bpf, refused);
}

/* A row for each user who was refused a thread, then for each other that is near its limit. */
void user_threads_rows(const struct interval *i, struct use_report *r)
{
	const struct task_table *table = &i->tasks_now->table;
	struct shown_users s = {0};
	uint64_t all;

	for (size_t k = 0; k < table->refusals.n && s.n < ROWS_MAX; k++) {
		pid_t pid = (pid_t)table->refusals.v[k].pid;
		const struct task_times *t = first_thread(i, pid);

		if (t && refusals_of(i, pid).user_eagain && !is_shown(&s, t->uid))
			show_user(i, t->uid, &s, r);
	}
	for (size_t k = 0; k < table->tasks.n && s.n < ROWS_MAX; k++) {
		const struct task_times *t = &table->tasks.v[k];

		if (t->pid == t->tid && share_of(t) > 0.5 && !is_shown(&s, t->uid))
			show_user(i, t->uid, &s, r);
	}
	all = refusals_of(i, 0).user_eagain;
	if (all > s.refused)
		put_refusals(i, r,
			     row_add(r, "process", "process threads",
				     s.n < ROWS_MAX ? "of ended processes" : "of others"),
			     "user_threads_refused", all - s.refused);
}
