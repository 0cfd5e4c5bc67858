/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf_map.h"
#include "identity.h"
#include "naming.h"
#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/procfs.h>
#include <inspect/saved_names.h>
#include <sys/stat.h>
#include <time.h>

struct map_line {
	uint64_t start, size_bytes;
	const char *name;
	size_t name_n;
};

/* Hexadecimal, with or without 0x; *at ends behind it. False: none, or over 64 bits. */
static bool parse_hex(const char **at, const char *end, uint64_t *ret)
{
	const char *s = *at, *first;
	uint64_t v = 0;

	while (s < end && *s == ' ')
		s++;
	if (end - s > 2 && s[0] == '0' && (s[1] | 0x20) == 'x')
		s += 2;
	for (first = s; s < end; s++) {
		char c = *s | 0x20;

		if (*s >= '0' && *s <= '9')
			v = v << 4 | (unsigned)(*s - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (unsigned)(c - 'a' + 10);
		else
			break;
	}
	if (s == first || s - first > 16 || s == end || *s != ' ')
		return false;
	*at = s;
	*ret = v;
	return true;
}

static bool parse_line(const char *line, const char *end, struct map_line *ret)
{
	const char *at = line;

	if (end > line && end[-1] == '\r')
		end--;
	if (!parse_hex(&at, end, &ret->start) || !parse_hex(&at, end, &ret->size_bytes))
		return false;
	ret->name = at + 1;
	ret->name_n = (size_t)(end - ret->name);
	return ret->size_bytes && ret->name_n;
}

/* Index of the first query at or above an address. */
static size_t first_query(const struct perf_map_query *q, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (q[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first unnamed query from i on: each named one points past itself. */
static size_t first_unnamed(uint32_t *next, size_t i)
{
	while (next[i] != i) {
		next[i] = next[next[i]];
		i = next[i];
	}
	return i;
}

int perf_map_find(const char *text, size_t n, struct perf_map_query *queries, size_t n_queries)
{
	CLEANUP(freep) uint32_t *next = calloc(n_queries + 1, sizeof(*next));
	const char *end = text + n;

	if (!next)
		return -ENOMEM;
	for (size_t i = 0; i <= n_queries; i++)
		next[i] = (uint32_t)i;
	/* From the last line to the first: who comes first is right, and no address is looked at
	 * twice, however the entries overlap. */
	while (end > text) {
		const char *line = end;
		struct map_line m;

		while (line > text && line[-1] != '\n')
			line--;
		if (parse_line(line, end, &m)) {
			size_t i = first_query(queries, n_queries, m.start);

			for (i = first_unnamed(next, i);
			     i < n_queries && queries[i].address - m.start < m.size_bytes;
			     i = first_unnamed(next, i)) {
				queries[i].name = m.name;
				queries[i].name_n = m.name_n;
				next[i] = (uint32_t)i + 1;
			}
		}
		end = line > text ? line - 1 : text;
	}
	return 0;
}

int perf_map_open(pid_t pid)
{
	CLEANUP(closep) int root = -1;
	uint32_t ns_pid = (uint32_t)pid, user = geteuid();
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", proc_living(pid));
	if (!process_identity(pid, &ns_pid, &user))
		root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	else
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	snprintf(path, sizeof(path), "tmp/perf-%u.map", ns_pid);
	return check_owner(file_open_below(root, path), user);
}

/* CLOCK_BOOTTIME; 0: the process is gone */
static uint64_t fork_time(uint32_t pid)
{
	struct proc_stat stat;

	return proc_stat_read((pid_t)pid, 0, &stat) ? 0 : stat.start_time_ns;
}

int symbolize_hold_process(struct dso *d)
{
	CLEANUP(closep) int root = -1;
	uint32_t ns_pid, user;
	char path[64];
	int fd, err = process_identity((pid_t)d->pid, &ns_pid, &user);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/root", proc_living((pid_t)d->pid));
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	/* The folder itself: when the last process of a mount namespace ends, what was mounted in
	 * it can no longer be reached from its root. */
	fd = openat(root, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d->fd = fd;
	d->ns_pid = ns_pid;
	d->user = user;
	d->forked_ns = fork_time(d->pid);
	return 0;
}

int perf_map_open_held(const struct dso *d)
{
	char path[64];

	snprintf(path, sizeof(path), "perf-%u.map", d->ns_pid);
	return check_owner(file_open_below(d->fd, path), d->user);
}

static int read_map(int fd, struct strbuf *out)
{
	struct stat st;
	char path[64];

	/* Before any of it is in memory. */
	if (!fstat(fd, &st) && st.st_size > (off_t)PERF_MAP_BYTES_MAX)
		return -EFBIG;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return file_read(path, PERF_MAP_BYTES_MAX, out);
}

static int name_queries(struct naming *w, const uint32_t *frames,
			const struct perf_map_query *queries, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t symbol;
		int err;

		if (!queries[i].name)
			continue;
		err = naming_symbol(w, queries[i].name, queries[i].name_n, "[jit]", FRAME_JIT,
				    false, &symbol);
		if (!err)
			err = naming_set(w, frames[i], symbol);
		if (err)
			return err;
	}
	return 0;
}

/* Why a map is not read. */
static const char *refusal(int err)
{
	switch (err) {
	case -EPERM:
		return "belongs to another user";
	case -ELOOP:
	case -ENOTDIR:
		return "is reached through a symlink";
	case -EINVAL:
		return "is no plain file";
	case -EFBIG:
		return "has more than 512 MiB";
	default:
		return strerror(-err);
	}
}

/* Files have the time of the last tick, which can be late. */
#define WRITTEN_LATE_NS (50 * NSEC_PER_MSEC)

/* What bounds the time in which a program can have written its map, CLOCK_BOOTTIME. */
struct writing {
	uint64_t from_ns, until_ns; /* 0: not known */
	bool previous, next;        /* a program before it, or after it, makes code too */
};

static struct writing writing_of(const struct naming *w, const struct dso *d)
{
	const struct dso_table *t = &w->p->processes.dsos;
	uint64_t asleep_ns = clock_boottime_ns() - clock_now_ns();
	uint64_t forked_ns = d->fd >= 0 ? d->forked_ns : fork_time(d->pid);
	struct writing r = {0};

	if (w->p->monotonic && forked_ns > w->p->end_ns + asleep_ns)
		r.until_ns = forked_ns; /* the pid was given again since */
	else
		r.from_ns = forked_ns;
	if (w->o->saved)
		r.from_ns = MAX(r.from_ns, saved_names_forked_ns(w->o->saved, d));
	if (!w->p->monotonic)
		return r;
	if (d->began_ns)
		r.from_ns = MAX(r.from_ns, d->began_ns + asleep_ns);
	if (d->ended_ns)
		r.until_ns = d->ended_ns + asleep_ns;
	for (size_t i = 0; i < t->dsos.n; i++) {
		const struct dso *other = t->dsos.v[i];

		if (other == d || other->kind != DSO_JIT || other->pid != d->pid)
			continue;
		r.next |= d->ended_ns && other->began_ns >= d->ended_ns;
		r.previous |= other->ended_ns && other->ended_ns <= d->began_ns;
	}
	return r;
}

/* Why a map is not used for a program, NULL if it is: those that a process execs one after the
 * other write to one path. */
static const char *other_program(const struct naming *w, const struct dso *d, int fd)
{
	static const char unclear[] = "was written about when the process executed another "
				      "program, which makes code too: it may be of either";
	struct writing r = writing_of(w, d);
	uint64_t written_ns;
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	written_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec +
		     clock_boottime_ns() - clock_realtime_ns();
	if (written_ns + WRITTEN_LATE_NS < r.from_ns)
		return "is of the program before: nothing was written to it since this one began";
	if (r.previous && written_ns < r.from_ns)
		return unclear;
	if (r.until_ns && written_ns >= r.until_ns)
		return "is of the program after: it was written when this one had ended";
	if (r.next && written_ns + WRITTEN_LATE_NS >= r.until_ns)
		return unclear;
	return NULL;
}

/* why: NULL for what an error says */
static int note_no_map(struct naming *w, const struct dso *d, int err, const char *why)
{
	uint32_t pid = d->fd >= 0 ? d->ns_pid : d->pid;
	int err_note;

	if (w->file_notes++ >= FILE_NOTES_MAX)
		return 0;
	if (err != -ENOENT)
		return profile_note(w->p,
				    "pid %u: code made at run time has no names: /tmp/perf-%u.map "
				    "%s",
				    d->pid, pid, why ? why : refusal(err));
	err_note = profile_note(w->p,
				"pid %u: code made at run time has no names: there is no "
				"/tmp/perf-%u.map",
				d->pid, pid);
	return err_note ? err_note
			: profile_note(w->p, "node --perf-basic-prof, python -X perf and java "
					     "-XX:+DumpPerfMapAtExit write a map of such names");
}

int naming_jit(struct naming *w, const uint32_t *frames, size_t n)
{
	CLEANUP(freep) struct perf_map_query *queries = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	CLEANUP(closep) int fd = -1;
	const struct dso *d = naming_dso(w, frames[0]);
	const char *other = NULL;
	int err;

	if (!w->o->local_host || !d->pid)
		return 0;
	fd = d->fd >= 0 ? perf_map_open_held(d) : perf_map_open((pid_t)d->pid);
	err = fd < 0 ? fd : read_map(fd, &text);
	if (!err)
		other = other_program(w, d, fd);
	if (err == -ENOMEM)
		return err;
	if (err || other)
		return note_no_map(w, d, err, other);
	queries = calloc(n, sizeof(*queries));
	if (!queries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		queries[i].address = w->p->frames.v[frames[i]].loc;
	err = perf_map_find(strbuf_str(&text), text.n, queries, n);
	return err ? err : name_queries(w, frames, queries, n);
}
