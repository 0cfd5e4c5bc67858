/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records go through a buffer and reach the file round by round. Until the end the header names no
 * features, and its data.size grows only over whole rounds: whatever ends the recorder, the file
 * can be read up to the last round.
 */
#include "writer.h"
#include <fcntl.h>
#include <inspect/explain.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define BUFFER_BYTES (256U << 10)

struct perfdata_writer {
	char *path;     /* for messages */
	char *old_path; /* where an older file was moved; NULL: there was none */
	int fd;
	bool own_fd, pipe_mode;
	bool in_place;   /* /dev/null: neither created nor removed */
	bool in_records; /* of a file: what is written now begins and ends with a record */
	uint8_t *buffer;
	size_t buffered_bytes;
	uint64_t written_bytes; /* by write(): the file's end without the buffer */
	struct file_header header;
	struct strbuf event_desc; /* that feature, made while the events are at hand */
	bool clock_given;         /* times come from a clock that was asked for */
	int failed;               /* the first error; nothing is written after it */
};

uint64_t perfdata_bytes_written(const struct perfdata_writer *w)
{
	return w->written_bytes + w->buffered_bytes;
}

void perfdata_writer_free(struct perfdata_writer *w)
{
	if (!w)
		return;
	if (w->own_fd)
		closep(&w->fd);
	strbuf_release(&w->event_desc);
	free(w->buffer);
	free(w->old_path);
	free(w->path);
	free(w);
}

void perfdata_discard(struct perfdata_writer *w)
{
	if (w && w->own_fd && !w->in_place)
		unlink(w->path);
	if (w && w->old_path)
		rename(w->old_path, w->path);
	perfdata_writer_free(w);
}

/* Until it is handed over: what was made so far is undone. */
static void perfdata_discardp(struct perfdata_writer **w)
{
	perfdata_discard(*w);
}

/* --- bytes ----------------------------------------------------------------------------------- */

static int write_failed(struct perfdata_writer *w, int err, struct diag *d)
{
	w->failed = err;
	diag_errno(d, err, "cannot write %s (%llu bytes written)", w->path,
		   (unsigned long long)w->written_bytes);
	if (w->own_fd && !w->in_place && w->in_records)
		diag_fix(d, "inspect report %s      (what was written can be read)", w->path);
	return err;
}

static size_t whole_records(const uint8_t *v, size_t n)
{
	struct perf_event_header h;
	size_t at = 0;

	while (n - at >= sizeof(h)) {
		memcpy(&h, v + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > n - at)
			break;
		at += h.size;
	}
	return at;
}

/* After a failure the header is told of the whole records that got through, the last n bytes of
 * which are at v: they can then be read. To write over it takes no room on a full disk. */
static void save_whole_records(struct perfdata_writer *w, const uint8_t *v, size_t n)
{
	if (!w->in_records)
		return;
	w->header.data.size_bytes = w->written_bytes - n + whole_records(v, n) - w->header.data.off;
	if (pwrite(w->fd, &w->header, sizeof(w->header), 0) < 0)
		return; /* the header of the last round stays */
}

static int write_through(struct perfdata_writer *w, const uint8_t *v, size_t n, struct diag *d)
{
	const uint8_t *start = v;

	while (n) {
		ssize_t done = write(w->fd, v, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			int err = done < 0 ? -errno : -EIO;

			save_whole_records(w, start, (size_t)(v - start));
			return write_failed(w, err, d);
		}
		v += done;
		n -= (size_t)done;
		w->written_bytes += (uint64_t)done;
	}
	return 0;
}

static int flush(struct perfdata_writer *w, struct diag *d)
{
	size_t n = w->buffered_bytes;

	w->buffered_bytes = 0;
	return write_through(w, w->buffer, n, d);
}

static int append(struct perfdata_writer *w, const void *v, size_t n, struct diag *d)
{
	int err = 0;

	if (w->failed)
		return w->failed;
	if (n > BUFFER_BYTES - w->buffered_bytes)
		err = flush(w, d);
	if (err)
		return err;
	if (n >= BUFFER_BYTES)
		return write_through(w, v, n, d);
	memcpy(w->buffer + w->buffered_bytes, v, n);
	w->buffered_bytes += n;
	return 0;
}

static int write_header(struct perfdata_writer *w, struct diag *d)
{
	const uint8_t *v = (const uint8_t *)&w->header;
	size_t at = 0;

	while (at < sizeof(w->header)) {
		ssize_t done = pwrite(w->fd, v + at, sizeof(w->header) - at, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return write_failed(w, done < 0 ? -errno : -EIO, d);
		at += (size_t)done;
	}
	return 0;
}

/* --- the beginning --------------------------------------------------------------------------- */

/* An attr as this program knows it. */
static struct perf_event_attr attr_of(const struct event_desc *e)
{
	struct perf_event_attr attr = e->attr;

	attr.size = sizeof(attr);
	return attr;
}

/* Header, attrs, ids: the data begins right after. */
static int begin_file(struct perfdata_writer *w, const struct event_table *events, struct diag *d)
{
	size_t n = events->events.n;
	uint64_t ids_off;
	int err;

	w->header = (struct file_header){
		.magic = PERFDATA_MAGIC,
		.header_bytes = sizeof(w->header),
		.attr_bytes = sizeof(struct perf_event_attr) + sizeof(struct file_section),
	};
	w->header.attrs.off = sizeof(w->header);
	w->header.attrs.size_bytes = n * w->header.attr_bytes;
	ids_off = w->header.attrs.off + w->header.attrs.size_bytes;
	w->header.data.off = ids_off;
	for (size_t i = 0; i < n; i++)
		w->header.data.off += 8 * events->events.v[i].ids.n;
	err = append(w, &w->header, sizeof(w->header), d);
	for (size_t i = 0; i < n && !err; i++) {
		const struct event_desc *e = &events->events.v[i];
		struct perf_event_attr attr = attr_of(e);
		struct file_section ids = {.off = ids_off, .size_bytes = 8 * e->ids.n};

		ids_off += ids.size_bytes;
		err = append(w, &attr, sizeof(attr), d);
		if (!err)
			err = append(w, &ids, sizeof(ids), d);
	}
	for (size_t i = 0; i < n && !err; i++)
		if (events->events.v[i].ids.n)
			err = append(w, events->events.v[i].ids.v, 8 * events->events.v[i].ids.n,
				     d);
	if (!err)
		err = flush(w, d);
	w->in_records = !err;
	return err;
}

/* A record of which `body` is the rest; -E2BIG when its size does not fit into 16 bits. */
static int append_record(struct perfdata_writer *w, uint32_t type, const struct strbuf *body,
			 struct diag *d)
{
	struct perf_event_header h = {.type = type};
	int err;

	if (body->failed)
		return diag_errno(d, -ENOMEM, "cannot write %s", w->path);
	if (body->n > UINT16_MAX - sizeof(h))
		return -E2BIG;
	h.size = (uint16_t)(sizeof(h) + body->n);
	err = append(w, &h, sizeof(h), d);
	return err ? err : append(w, strbuf_str(body), body->n, d);
}

/* A feature in a stream. What is larger than a record can be is left out: perf needs none. */
static int append_feature(struct perfdata_writer *w, unsigned feature, const struct strbuf *v,
			  struct diag *d)
{
	CLEANUP(strbuf_release) struct strbuf body = {0};
	uint64_t number = feature;
	int err;

	strbuf_add(&body, (const char *)&number, sizeof(number));
	strbuf_add(&body, strbuf_str(v), v->n);
	while (body.n % 8 && !body.failed)
		strbuf_putc(&body, '\0');
	err = append_record(w, RECORD_HEADER_FEATURE, &body, d);
	return err == -E2BIG ? 0 : err;
}

static int append_attr(struct perfdata_writer *w, const struct event_desc *e, bool only,
		       struct diag *d)
{
	size_t fixed = sizeof(struct perf_event_header) + sizeof(struct perf_event_attr);
	size_t ids_max = (UINT16_MAX - fixed) / 8;
	CLEANUP(strbuf_release) struct strbuf body = {0};
	struct perf_event_attr attr = attr_of(e);

	/* Nothing is told apart by the ids of a single event. */
	if (e->ids.n > ids_max && !only)
		return diag_set(d, -E2BIG,
				"cannot write %s: '%s' has %zu parts (CPUs times threads), and a "
				"stream has room for %zu",
				w->path, e->name, e->ids.n, ids_max);
	strbuf_add(&body, (const char *)&attr, sizeof(attr));
	if (e->ids.n)
		strbuf_add(&body, (const char *)e->ids.v, 8 * MIN(e->ids.n, ids_max));
	return append_record(w, RECORD_HEADER_ATTR, &body, d);
}

static int begin_pipe(struct perfdata_writer *w, const struct event_table *events, struct diag *d)
{
	uint64_t head[] = {PERFDATA_MAGIC, PIPE_HEADER_BYTES};
	int err = append(w, head, sizeof(head), d);

	for (size_t i = 0; i < events->events.n && !err; i++)
		err = append_attr(w, &events->events.v[i], events->events.n == 1, d);
	if (!err)
		err = append_feature(w, FEAT_EVENT_DESC, &w->event_desc, d);
	return err ? err : flush(w, d);
}

/* Moves an earlier recording out of the way; anything else at that place is refused. */
static int move_old(const char *path, char **ret_old, struct diag *d)
{
	CLEANUP(freep) char *old = NULL;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : explain_create(-errno, path, d);
	if (!S_ISREG(st.st_mode)) {
		int err = diag_set(d, S_ISDIR(st.st_mode) ? -EISDIR : -EEXIST,
				   "cannot create %s: there is %s of that name", path,
				   S_ISDIR(st.st_mode)   ? "a directory"
				   : S_ISLNK(st.st_mode) ? "a symbolic link"
							 : "a special file");

		if (!S_ISDIR(st.st_mode))
			diag_fix(d, "-o -      (stdout)");
		return err;
	}
	if (asprintf(&old, "%s.old", path) < 0) {
		old = NULL;
		return diag_errno(d, -ENOMEM, "cannot create %s", path);
	}
	if (rename(path, old) < 0)
		return diag_errno(d, -errno, "cannot rename %s to %s", path, old);
	*ret_old = TAKE_PTR(old);
	return 0;
}

static bool is_null_device(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static int open_output(struct perfdata_writer *w, bool *replaced, struct diag *d)
{
	int err;

	if (w->pipe_mode) {
		w->fd = STDOUT_FILENO;
		return 0;
	}
	w->in_place = is_null_device(w->path);
	err = w->in_place ? 0 : move_old(w->path, &w->old_path, d);
	if (err)
		return err;
	w->fd = w->in_place
			? open(w->path, O_WRONLY | O_CLOEXEC)
			: open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return explain_create(-errno, w->path, d);
	w->own_fd = true;
	if (replaced && w->old_path)
		*replaced = true;
	return 0;
}

static bool any_clock_given(const struct event_table *events)
{
	for (size_t i = 0; i < events->events.n; i++)
		if (events->events.v[i].attr.use_clockid)
			return true;
	return false;
}

int perfdata_create(const char *path, const struct event_table *events,
		    struct perfdata_writer **ret, bool *replaced, struct diag *d)
{
	CLEANUP(perfdata_discardp) struct perfdata_writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return diag_errno(d, -ENOMEM, "cannot create %s", path);
	w->fd = -1;
	w->pipe_mode = str_eq(path, "-");
	w->path = strdup(w->pipe_mode ? "stdout" : path);
	w->buffer = malloc(BUFFER_BYTES);
	w->clock_given = any_clock_given(events);
	feature_event_desc(events, &w->event_desc);
	if (!w->path || !w->buffer || w->event_desc.failed)
		return diag_errno(d, -ENOMEM, "cannot create %s", path);
	err = open_output(w, replaced, d);
	if (!err)
		err = w->pipe_mode ? begin_pipe(w, events, d) : begin_file(w, events, d);
	if (err)
		return err;
	*ret = TAKE_PTR(w);
	return 0;
}

/* --- the records ----------------------------------------------------------------------------- */

int perfdata_write(struct perfdata_writer *w, const void *records, size_t size_bytes,
		   struct diag *d)
{
	return append(w, records, size_bytes, d);
}

int perfdata_round(struct perfdata_writer *w, struct diag *d)
{
	struct perf_event_header round = {.type = RECORD_FINISHED_ROUND, .size = sizeof(round)};
	int err = append(w, &round, sizeof(round), d);

	if (!err)
		err = flush(w, d);
	if (err || w->pipe_mode)
		return err;
	w->header.data.size_bytes = w->written_bytes - w->header.data.off;
	return write_header(w, d);
}

/* --- the end --------------------------------------------------------------------------------- */

static int finish_pipe(struct perfdata_writer *w, const struct features *features,
		       const struct perfdata_info *info, struct diag *d)
{
	int err = 0;

	for (size_t i = 0; i < features->n && !err; i++)
		if (feature_fits_stream(features->v[i].feature))
			err = append_feature(w, features->v[i].feature, &features->v[i].bytes, d);
	for (size_t i = 0; i < info->build_ids.n && !err; i++) {
		CLEANUP(strbuf_release) struct strbuf entry = {0};

		feature_build_id(&info->build_ids.v[i], RECORD_HEADER_BUILD_ID, &entry);
		err = entry.failed ? diag_errno(d, -ENOMEM, "cannot write %s", w->path)
				   : append(w, strbuf_str(&entry), entry.n, d);
	}
	return err ? err : flush(w, d);
}

static int finish_file(struct perfdata_writer *w, const struct features *features, struct diag *d)
{
	uint64_t table_off, off;
	int err = flush(w, d);

	w->in_records = false;
	table_off = w->written_bytes;
	w->header.data.size_bytes = table_off - w->header.data.off;
	if (!err)
		err = write_header(w, d);
	if (err)
		return err;
	off = table_off + features->n * sizeof(struct file_section);
	for (size_t i = 0; i < features->n && !err; i++) {
		struct file_section s = {.off = off, .size_bytes = features->v[i].bytes.n};

		off += s.size_bytes;
		err = append(w, &s, sizeof(s), d);
	}
	for (size_t i = 0; i < features->n && !err; i++)
		err = append(w, strbuf_str(&features->v[i].bytes), features->v[i].bytes.n, d);
	if (!err)
		err = flush(w, d);
	for (size_t i = 0; i < features->n && !err; i++)
		w->header.features[features->v[i].feature / 64] |= 1ULL
								   << features->v[i].feature % 64;
	return err ? err : write_header(w, d);
}

int perfdata_finish(struct perfdata_writer *w, const struct perfdata_info *info, struct diag *d)
{
	CLEANUP(features_release) struct features features = {0};
	int err;

	if (w->failed)
		return w->failed;
	err = features_make(info, &w->event_desc, w->clock_given, &features);
	if (err)
		return diag_errno(d, err, "cannot write %s", w->path);
	return w->pipe_mode ? finish_pipe(w, &features, info, d) : finish_file(w, &features, d);
}
