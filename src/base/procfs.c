/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/procfs.h>
#include <limits.h>

#define STAT_BYTES_MAX 4096
#define PF_KTHREAD 0x00200000U /* include/linux/sched.h */
#define CHILDREN_THREADS_MAX 64

int file_read(const char *path, size_t max_bytes, struct strbuf *out)
{
	/* O_NONBLOCK: a FIFO at a path that others can write must not stop us. */
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char buf[16384];

	if (fd < 0)
		return -errno;
	strbuf_clear(out);
	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		if ((size_t)n > max_bytes - out->n)
			return -EFBIG;
		strbuf_add(out, buf, (size_t)n);
	}
	return out->failed ? -ENOMEM : 0;
}

int file_read_i64(const char *path, int64_t *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	int err = file_read(path, 64, &text);
	const char *s = strbuf_str(&text);
	char *end;
	long long v;

	if (err)
		return err;
	errno = 0;
	v = strtoll(s, &end, 10);
	if (end == s)
		return -EINVAL;
	if (errno)
		return -errno;
	end += strspn(end, " \n");
	if (*end)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* /proc/PID/NAME or /proc/PID/task/TID/NAME */
static void task_path(char *buf, size_t size, pid_t pid, pid_t tid, const char *name)
{
	if (tid)
		snprintf(buf, size, "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(buf, size, "/proc/%d/%s", pid, name);
}

static uint64_t ticks_to_ns(unsigned long long ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return ticks * (NSEC_PER_SEC / (uint64_t)(hz > 0 ? hz : 100));
}

int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct proc_stat stat = {0};
	unsigned long long utime, stime, start;
	unsigned flags;
	const char *open_paren, *close_paren;
	size_t comm_bytes;
	char path[64];
	int err;

	task_path(path, sizeof(path), pid, tid, "stat");
	err = file_read(path, STAT_BYTES_MAX, &text);
	if (err)
		return err;
	open_paren = strchr(strbuf_str(&text), '(');
	close_paren = strrchr(strbuf_str(&text), ')');
	if (!open_paren || !close_paren || close_paren < open_paren)
		return -EBADMSG;
	/* The bytes as they are: stat doesn't escape as status does. */
	comm_bytes = MIN((size_t)(close_paren - open_paren - 1), sizeof(stat.comm) - 1);
	memcpy(stat.comm, open_paren + 1, comm_bytes);
	/* proc(5): state is field 3, ppid 4, flags 9, utime 14, stime 15, num_threads 20, starttime
	 * 22. */
	if (sscanf(close_paren + 1,
		   " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u"
		   " %llu %llu %*d %*d %*d %*d %u %*d %llu",
		   &stat.state, &stat.ppid, &flags, &utime, &stime, &stat.num_threads, &start) != 7)
		return -EBADMSG;
	stat.of_kernel = flags & PF_KTHREAD;
	stat.utime_ns = ticks_to_ns(utime);
	stat.stime_ns = ticks_to_ns(stime);
	stat.start_time_ns = ticks_to_ns(start);
	*ret = stat;
	return 0;
}

pid_t proc_of_thread(pid_t tid)
{
	CLEANUP(strbuf_release) struct strbuf status = {0};
	char path[64];
	const char *line;
	int err, pid;

	task_path(path, sizeof(path), tid, 0, "status");
	err = file_read(path, 65536, &status);
	if (err)
		return err;
	line = strstr(strbuf_str(&status), "\nTgid:");
	return line && sscanf(line, "\nTgid: %d", &pid) == 1 && pid > 0 ? pid : -EBADMSG;
}

static bool has_memory(pid_t id)
{
	char path[64], target[1];

	task_path(path, sizeof(path), id, 0, "exe");
	return readlink(path, target, sizeof(target)) >= 0 || errno != ENOENT;
}

/* Threads are not listed in /proc, but are there by their ids (proc_pid_lookup). */
pid_t proc_living(pid_t pid)
{
	struct pid_list threads = {0};
	pid_t living = pid;

	if (has_memory(pid) || proc_threads(pid, &threads))
		return pid;
	for (size_t i = 0; i < threads.n && living == pid; i++)
		if (threads.v[i] != pid && has_memory(threads.v[i]))
			living = threads.v[i];
	array_release(&threads);
	return living;
}

int proc_comm_read(pid_t pid, pid_t tid, struct strbuf *out)
{
	char path[64];
	int err;

	task_path(path, sizeof(path), pid, tid, "comm");
	err = file_read(path, STAT_BYTES_MAX, out);
	if (err)
		return err;
	if (out->n && out->v[out->n - 1] == '\n')
		out->v[--out->n] = '\0';
	return 0;
}

/* In maps only a newline of a path is written as an escape (kernel: show_map_vma). */
static void undo_newlines(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		bool newline = str_starts(from, "\\012");

		*to = newline ? '\n' : *from;
		from += newline ? 4 : 1;
	}
	*to = '\0';
}

/* Parses one line in place: start-end perms offset maj:min inode [path]. */
static int parse_map(char *line, struct proc_map *ret)
{
	unsigned long long start, end, pgoff, ino;
	unsigned maj, min;
	char perms[5];
	int used = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu%n", &start, &end, perms, &pgoff, &maj, &min,
		   &ino, &used) != 7 ||
	    strlen(perms) != 4 || start >= end)
		return -EBADMSG;
	line += used;
	line += strspn(line, " ");
	undo_newlines(line);
	*ret = (struct proc_map){
		.start = start,
		.end = end,
		.pgoff_bytes = pgoff,
		.ino = ino,
		.maj = maj,
		.min = min,
		.read = perms[0] == 'r',
		.write = perms[1] == 'w',
		.exec = perms[2] == 'x',
		.shared = perms[3] == 's',
		.path = line,
	};
	return 0;
}

int proc_maps_each(pid_t pid, proc_map_fn *fn, void *ctx)
{
	CLEANUP(fclosep) FILE *file = NULL;
	CLEANUP(freep) char *line = NULL;
	struct proc_map map;
	size_t size = 0;
	char path[64];
	int err;

	task_path(path, sizeof(path), proc_living(pid), 0, "maps");
	file = fopen(path, "re");
	if (!file)
		return -errno;
	errno = 0;
	while (getline(&line, &size, file) > 0) {
		err = parse_map(line, &map);
		if (!err)
			err = fn(ctx, &map);
		if (err)
			return err;
		errno = 0;
	}
	return ferror(file) || !feof(file) ? -(errno ? errno : EIO) : 0;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static void sort_pids(struct pid_list *list)
{
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), compare_pids);
}

/* The value of a directory entry that is a number, or 0. */
static pid_t entry_pid(const char *name)
{
	char *end;
	long v;

	if (!isdigit((unsigned char)*name))
		return 0;
	errno = 0;
	v = strtol(name, &end, 10);
	return errno || *end || v > INT_MAX ? 0 : (pid_t)v;
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int numeric_entries(const char *path, struct pid_list *out)
{
	CLEANUP(closedirp) DIR *dir = opendir(path);
	int err = 0;

	if (!dir)
		return -errno;
	out->n = 0;
	for (;;) {
		struct dirent *entry;
		pid_t pid;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			break;
		pid = entry_pid(entry->d_name);
		if (pid)
			err = array_push(out, pid);
		if (err)
			return err;
	}
	if (errno)
		return -errno;
	sort_pids(out);
	return 0;
}

int proc_pids(struct pid_list *out)
{
	return numeric_entries("/proc", out);
}

int proc_threads(pid_t pid, struct pid_list *out)
{
	char path[64];

	task_path(path, sizeof(path), pid, 0, "task");
	return numeric_entries(path, out);
}

struct parent_of {
	pid_t ppid, pid;
};

struct parents {
	struct parent_of *v;
	size_t n, cap;
};

static void parents_release(struct parents *parents)
{
	array_release(parents);
}

static void pid_list_release(struct pid_list *list)
{
	array_release(list);
}

static int compare_parents(const void *a, const void *b)
{
	const struct parent_of *x = a, *y = b;

	return (x->ppid > y->ppid) - (x->ppid < y->ppid);
}

/* Every process with its parent, by parent. Those that end meanwhile are left out. */
static int read_parents(struct parents *ret)
{
	CLEANUP(pid_list_release) struct pid_list pids = {0};
	int err = proc_pids(&pids);

	for (size_t i = 0; !err && i < pids.n; i++) {
		struct proc_stat stat;

		if (proc_stat_read(pids.v[i], 0, &stat) == 0)
			err = array_push(ret, (struct parent_of){stat.ppid, pids.v[i]});
	}
	if (!err && ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), compare_parents);
	return err;
}

/* The index of the first process whose parent is ppid or greater. */
static size_t first_child(const struct parents *parents, pid_t ppid)
{
	size_t low = 0, high = parents->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (parents->v[mid].ppid < ppid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The kernel's list of each thread's children (CONFIG_PROC_CHILDREN). It may lack some while others
 * end, but is empty only when there are none. False: there may be some. */
static bool has_no_children(pid_t pid)
{
	CLEANUP(pid_list_release) struct pid_list threads = {0};
	char path[64], first;

	if (proc_threads(pid, &threads) || threads.n > CHILDREN_THREADS_MAX)
		return false;
	for (size_t i = 0; i < threads.n; i++) {
		CLEANUP(closep) int fd = -1;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, threads.v[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, &first, 1) != 0)
			return false;
	}
	return true;
}

int proc_descendants(pid_t pid, struct pid_list *out)
{
	CLEANUP(parents_release) struct parents parents = {0};
	pid_t parent = pid;
	int err;

	if (has_no_children(pid)) {
		out->n = 0;
		return 0;
	}
	err = read_parents(&parents);
	if (err)
		return err;
	out->n = 0;
	/* Each process has one parent in the snapshot, so each is added once; the root itself could
	 * seem to be its own descendant when a pid was reused in between. */
	for (size_t next = 0;; parent = out->v[next++]) {
		for (size_t i = first_child(&parents, parent);
		     i < parents.n && parents.v[i].ppid == parent; i++) {
			if (parents.v[i].pid == pid)
				continue;
			err = array_push(out, parents.v[i].pid);
			if (err)
				return err;
		}
		if (next >= out->n)
			break;
	}
	sort_pids(out);
	return 0;
}
