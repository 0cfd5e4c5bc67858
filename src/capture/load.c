/* SPDX-License-Identifier: BSD-2-Clause */
#include "dummy_events.h"
#include "gpu_waits.h"

#include <fcntl.h>
#include <inspect/capture.h>
#include <inspect/host.h>
#include <inspect/saved_names.h>
#include <inspect/symbolize.h>
#include <inspect/text_input.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { KALLSYMS_HEAD_LINES = 20000, NOTES_MAX = 256 };

/* An input is a perf.data file, or text; from a file or a pipe. */
struct input {
	const char *name;
	int fd;
	const char *map;
	size_t size;
};

static void input_release(struct input *in)
{
	if (in->map)
		munmap((void *)in->map, in->size);
	closep(&in->fd);
}

/* All that a pipe holds, in memory, so that it can be looked at before it is read. */
static int copy_pipe(int from_fd, const char *name, int *ret_fd, struct diag *d)
{
	enum { PART = 1 << 20 };
	CLEANUP(closep) int fd = memfd_create("inspect-input", MFD_CLOEXEC);
	CLEANUP(freep) char *part = malloc(PART);
	ssize_t n;

	if (fd < 0 || !part)
		return diag_errno(d, fd < 0 ? -errno : -ENOMEM, "%s", name);
	while ((n = read(from_fd, part, PART)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return diag_errno(d, -errno, "%s: cannot read", name);
		for (ssize_t done = 0; done < n;) {
			ssize_t w = write(fd, part + done, (size_t)(n - done));

			if (w < 0)
				return diag_errno(d, -errno, "%s: cannot keep its text", name);
			done += w;
		}
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_stdin(struct input *in, struct diag *d)
{
	in->name = "stdin";
	if (isatty(STDIN_FILENO)) {
		diag_set(d, -EINVAL, "stdin is a terminal: nothing to read");
		diag_fix(d, "perf script | inspect flame > out.svg");
		return -EINVAL;
	}
	in->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	return in->fd < 0 ? diag_errno(d, -errno, "stdin") : 0;
}

/* Without blocking, so that a FIFO without a writer is refused instead of waited for. */
static int open_file(const char *path, struct input *in, struct diag *d)
{
	in->name = path;
	in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (in->fd >= 0)
		return 0;
	diag_errno(d, -errno, "cannot open %s", path);
	if (errno == ENOENT)
		diag_fix(d, "inspect record -p PID   (writes inspect.data)");
	return d->err;
}

/* What is not a plain file: a pipe (also a shell's <(…)) is copied, the rest refused. */
static int make_regular(struct input *in, struct stat *st, struct diag *d)
{
	int copy = -1, err;

	if (S_ISDIR(st->st_mode))
		return diag_set(
			d, -EISDIR,
			"%s is a directory: perf's directory format is not read; record one "
			"file (perf record without --threads)",
			in->name);
	if (!S_ISFIFO(st->st_mode) && !S_ISSOCK(st->st_mode))
		return diag_set(d, -EINVAL, "%s is neither a file nor a pipe", in->name);
	fcntl(in->fd, F_SETFL, fcntl(in->fd, F_GETFL) & ~O_NONBLOCK);
	err = copy_pipe(in->fd, in->name, &copy, d);
	if (err)
		return err;
	close(in->fd);
	in->fd = copy;
	return fstat(copy, st) ? diag_errno(d, -errno, "%s", in->name) : 0;
}

static int open_input(const char *path, struct input *in, struct diag *d)
{
	struct stat st;
	int err = str_eq(path, "-") ? open_stdin(in, d) : open_file(path, in, d);

	if (err)
		return err;
	if (fstat(in->fd, &st))
		return diag_errno(d, -errno, "%s", in->name);
	if (!S_ISREG(st.st_mode)) {
		err = make_regular(in, &st, d);
		if (err)
			return err;
	}
	if (st.st_size == 0)
		return diag_set(d, -ENODATA, "%s is empty", in->name);
	in->size = (size_t)st.st_size;
	in->map = mmap(NULL, in->size, PROT_READ, MAP_PRIVATE, in->fd, 0);
	if (in->map == MAP_FAILED) {
		in->map = NULL;
		return diag_errno(d, -errno, "%s: cannot map", in->name);
	}
	return 0;
}

struct feed {
	struct pipeline *pipeline;
	bool stable;
	bool has_counts; /* what `perf stat record` writes */
};

static int feed_record(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct feed *f = ctx;

	if (record->type == RECORD_FINISHED_ROUND)
		return pipeline_round(f->pipeline);
	f->has_counts |= record->type == RECORD_STAT_CONFIG || record->type == RECORD_STAT;
	return pipeline_record(f->pipeline, record, size_bytes, f->stable);
}

static char *copy_text(const char *s)
{
	return s ? strdup(s) : NULL;
}

/* The frequency that was asked for, where the attr states the period that it became. */
static void read_frequency(struct profile *p, uint64_t hz)
{
	struct profile_event *e = p->events.v;

	if (p->events.n != 1 || !hz || e->period != NSEC_PER_SEC / hz)
		return;
	e->freq_hz = hz;
	e->period = 0;
}

/* The lines that record stores beside the records: what no record says. */
static void read_notes(struct profile *p, const char *text)
{
	for (const char *line = text; line && *line;) {
		size_t n = strcspn(line, "\n");
		unsigned long long v;

		if (sscanf(line, "duration_ns=%llu", &v) == 1)
			p->duration_ns = v;
		else if (sscanf(line, "wall_start_ns=%llu", &v) == 1)
			p->wall_start_ns = v;
		else if (sscanf(line, "own_cpu_ns=%llu", &v) == 1)
			p->own_cpu_ns = v;
		else if (sscanf(line, "naming_cpu_ns=%llu", &v) == 1)
			p->naming_cpu_ns = v;
		else if (sscanf(line, "freq_hz=%llu", &v) == 1)
			read_frequency(p, v);
		else if (str_starts(line, "note=") && p->notes.n < NOTES_MAX)
			profile_note(p, "%.*s", (int)MIN(n - 5, (size_t)1000), line + 5);
		line += n + (line[n] == '\n');
	}
}

static int take_info(struct profile *p, const struct perfdata_info *info, const char *name)
{
	int err = 0;

	p->command = copy_text(info->command);
	p->hostname = copy_text(info->hostname);
	p->os_release = copy_text(info->os_release);
	p->arch = copy_text(info->arch);
	for (size_t i = 0; i < info->build_ids.n; i++) {
		const struct perfdata_build_id *b = &info->build_ids.v[i];

		if (!b->kernel && b->size)
			dso_table_set_build_id(&p->processes.dsos, b->path, b->id, b->size);
	}
	read_notes(p, info->notes);
	if (!p->duration_ns && p->end_ns > p->start_ns)
		p->duration_ns = p->end_ns - p->start_ns;
	if (info->newer)
		err = profile_note(p, "%s: %s", name, info->newer);
	if (info->unread && !err)
		err = profile_note(p, "%s: %s", name, info->unread);
	if (err)
		return err;
	if (info->damage)
		err = profile_note(p, "%s: %s", name, info->damage);
	else if (info->unfinished)
		err = profile_note(
			p,
			"%s: the recorder did not end properly; everything it had written "
			"is shown",
			name);
	return err;
}

/* Where the kernel begins differs from boot to boot (KASLR). */
static bool is_this_boot(const struct profile *p)
{
	CLEANUP(fclosep) FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[16];
	unsigned long long va;

	for (size_t i = 0; p->kernel_start_va && file && i < KALLSYMS_HEAD_LINES; i++) {
		if (!fgets(line, sizeof(line), file))
			break;
		if (sscanf(line, "%llx %*c %15s", &va, name) == 2 && va == p->kernel_start_va &&
		    (str_eq(name, "_text") || str_eq(name, "_stext")))
			return true;
	}
	return false;
}

/* Kernel addresses mean something only on the boot that they were recorded on: the symbolizer
 * also compares where the kernel begins. That is all there is to go by when the recorder was
 * killed before it could say on which host it ran. */
static bool is_local(const struct profile *p, const struct perfdata_info *info)
{
	struct host host;

	if (!info->hostname && !info->os_release)
		return is_this_boot(p);
	host_read(&host, "");
	return info->hostname && info->os_release && str_eq(info->hostname, host.hostname) &&
	       str_eq(info->os_release, host.kernel_release);
}

/* *ret stays NULL when there are none, or none of use. */
static int read_names(struct profile *p, const struct perfdata_info *info, const char *path,
		      struct saved_names **ret)
{
	int err = info->names ? saved_names_decode(info->names, info->names_bytes, ret) : 0;

	if (err != -EBADMSG)
		return err;
	return profile_note(p, "%s: the names stored in the file are damaged and not used", path);
}

static int name_frames(struct profile *p, const struct load_options *o, bool local_host,
		       const struct saved_names *saved)
{
	struct symbolize_options so = {.no_demangle = o->naming.no_demangle,
				       .no_inline = o->naming.no_inline,
				       .offline = o->naming.offline,
				       .local_host = local_host,
				       .saved = saved};
	int err;

	/* With --no-demangle the stored names are of no use: they are demangled. */
	if (o->naming.no_demangle)
		so.saved = NULL;
	err = symbolize_profile(p, &so);
	return err ? err : gpu_waits_mark(p, NULL);
}

/* After the last record: all of the file is known. */
static int finish(struct pipeline *pipeline, struct profile *p, const struct perfdata_info *info,
		  const struct load_options *o, const char *path)
{
	struct saved_names *saved = NULL;
	bool local_host = is_local(p, info);
	int err = read_names(p, info, path, &saved);

	pipeline_jit_sources(pipeline, saved, local_host);
	if (!err)
		err = pipeline_finish(pipeline);
	if (!err)
		err = take_info(p, info, path);
	if (!err)
		err = name_frames(p, o, local_host, saved);
	saved_names_free(saved);
	return err;
}

static int refuse_counts(const char *name, struct diag *d)
{
	diag_set(d, -ENODATA, "%s holds counts (perf stat record), and no samples", name);
	diag_fix(d, "perf stat report -i %s", name);
	return -ENODATA;
}

static int load_perfdata(const struct input *in, const struct load_options *o, struct profile *p,
			 struct diag *d)
{
	struct perfdata_reader *reader;
	struct pipeline *pipeline;
	int err = perfdata_open_fd(in->fd, NULL, 0, in->name, &reader, d);

	if (err)
		return err;
	err = pipeline_new(perfdata_events(reader), p, &o->filter, false, &pipeline);
	if (!err) {
		struct feed feed = {.pipeline = pipeline, .stable = perfdata_stable(reader)};
		struct unwinding u = {.no_cache = o->naming.no_cache,
				      .info = perfdata_info(reader),
				      .local_host = is_local(p, perfdata_info(reader))};

		err = pipeline_unwind(pipeline, &u);
		if (!err)
			err = perfdata_read(reader, feed_record, &feed, d);
		if (!err)
			err = finish(pipeline, p, perfdata_info(reader), o, in->name);
		pipeline_free(pipeline);
		if (!err && feed.has_counts && !p->losses.samples)
			err = refuse_counts(in->name, d);
		if (!err)
			dummy_events_drop(p, perfdata_events(reader));
	}
	perfdata_reader_free(reader);
	return err;
}

static bool matches(const struct profile *p, uint32_t string, const char *want)
{
	return !want || str_eq(intern_str(&p->strings, string), want);
}

static bool row_passes(const struct profile *p, const struct profile_row *row,
		       const struct sample_filter *f, struct symbol_path *path)
{
	const struct profile_thread *t = &p->threads.v[row->thread];
	const struct symbol *leaf;

	if ((f->pid && t->pid != f->pid) || (f->tid && t->tid != f->tid) ||
	    !matches(p, t->comm, f->comm))
		return false;
	if (!f->dso && !f->symbol)
		return true;
	if (profile_row_path(p, row, path) || !path->at.n)
		return false;
	leaf = &p->symbols.v[path->at.v[profile_path_leaf(p, path)].symbol];
	return matches(p, leaf->module, f->dso) && matches(p, leaf->name, f->symbol);
}

/* --comm, --pid, --tid, --dso and --symbol: as in perf, of the thread and of the leaf. */
static void filter_rows(struct profile *p, const struct sample_filter *f)
{
	struct symbol_path path = {0};
	size_t kept = 0;

	for (size_t i = 0; i < p->rows.n; i++) {
		if (row_passes(p, &p->rows.v[i], f, &path))
			p->rows.v[kept++] = p->rows.v[i];
		else
			p->losses.filtered += p->rows.v[i].count;
	}
	p->rows.n = kept;
	/* Rows have moved: nothing may be added any more. */
	hashmap_release(&p->row_map);
	array_release(&path.at);
}

int profile_load(const char *path, const struct load_options *o, struct profile **ret,
		 struct diag *d)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(input_release) struct input in = {.fd = -1};
	int err = open_input(path, &in, d);

	if (!err)
		err = profile_new(&p);
	if (err)
		return diag_errno(d, err, "%s", path);
	if (perfdata_is_header(in.map, in.size)) {
		err = load_perfdata(&in, o, p, d);
	} else {
		err = text_read(in.map, in.size, in.name, p, d);
		if (!err)
			err = name_frames(p, o, false, NULL);
	}
	if (err)
		return diag_errno(d, err, "%s", in.name);
	if (o->filter.pid || o->filter.tid || o->filter.comm || o->filter.dso || o->filter.symbol)
		filter_rows(p, &o->filter);
	*ret = TAKE_PTR(p);
	return 0;
}
