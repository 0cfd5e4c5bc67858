/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

void perfdata_info_release(struct perfdata_info *i)
{
	char *strings[] = {i->hostname, i->os_release, i->version,       i->arch,
			   i->cpu_desc, i->command,    i->notes,         i->damage,
			   i->newer,    i->unread,     (char *)i->names, (char *)i->tracing};

	for (size_t at = 0; at < ARRAY_SIZE(strings); at++)
		free(strings[at]);
	for (size_t at = 0; at < i->build_ids.n; at++)
		free(i->build_ids.v[at].path);
	array_release(&i->build_ids);
	*i = (struct perfdata_info){0};
}

void perfdata_reader_free(struct perfdata_reader *r)
{
	if (!r)
		return;
	input_release(&r->in);
	closep(&r->own_fd);
	event_table_release(&r->events);
	perfdata_info_release(&r->info);
	inflate_free(r->inflate);
	arena_release(&r->kept);
	free(r->scratch);
	free(r->name);
	free(r);
}

static void perfdata_reader_freep(struct perfdata_reader **r)
{
	perfdata_reader_free(*r);
}

const struct event_table *perfdata_events(const struct perfdata_reader *r)
{
	return &r->events;
}

const struct perfdata_info *perfdata_info(const struct perfdata_reader *r)
{
	return &r->info;
}

bool perfdata_stable(const struct perfdata_reader *r)
{
	return r->stable;
}

bool perfdata_is_header(const void *bytes, size_t size)
{
	uint64_t magic;

	if (size < sizeof(magic))
		return false;
	memcpy(&magic, bytes, sizeof(magic));
	return magic == PERFDATA_MAGIC || magic == __builtin_bswap64(PERFDATA_MAGIC);
}

static void set_text(char **to, const char *fmt, va_list args)
{
	char *text;

	/* Without memory for the line an older one, or none, is the best there is. */
	if (vasprintf(&text, fmt, args) < 0)
		return;
	free(*to);
	*to = text;
}

void reader_set_damage(struct perfdata_reader *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_text(&r->info.damage, fmt, args);
	va_end(args);
}

void reader_set_newer(struct perfdata_reader *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_text(&r->info.newer, fmt, args);
	va_end(args);
}

static PRINTF(2, 3) void reader_set_unread(struct perfdata_reader *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	set_text(&r->info.unread, fmt, args);
	va_end(args);
}

/* The members of a group have no samples of their own then: each sample of the leader holds their
 * counts (PERF_FORMAT_GROUP in perf_event_open(2)). */
static void note_group_read(struct perfdata_reader *r, const struct perf_event_attr *attr)
{
	if (!(attr->sample_type & PERF_SAMPLE_READ) || !(attr->read_format & PERF_FORMAT_GROUP) ||
	    attr->sample_period)
		return;
	r->group_reads++;
	reader_set_unread(r, "group reads (:S) of %u event%s are not expanded", r->group_reads,
			  r->group_reads == 1 ? "" : "s");
}

int reader_attr(struct perfdata_reader *r, const uint8_t *v, size_t n, struct perf_event_attr *ret)
{
	struct perf_event_attr attr = {0};

	if (n < PERF_ATTR_SIZE_VER0)
		return -EBADMSG;
	memcpy(&attr, v, MIN(n, sizeof(attr)));
	attr.size = sizeof(attr);
	for (size_t i = sizeof(attr); i < n; i++) {
		if (!v[i])
			continue;
		reader_set_newer(r,
				 "an event uses settings newer than this program "
				 "(%zu bytes, %zu known)",
				 n, sizeof(attr));
		break;
	}
	note_group_read(r, &attr);
	*ret = attr;
	return 0;
}

/* Entry i of the attrs, with its ids. *ids_left bounds those of the whole file: sections may
 * overlap. */
static int read_attr(struct perfdata_reader *r, const struct file_header *h, size_t i,
		     uint64_t *ids_left)
{
	const struct input *in = &r->in;
	const uint8_t *entry = in->file + h->attrs.off + i * h->attr_bytes;
	size_t attr_bytes = h->attr_bytes - sizeof(struct file_section);
	struct perf_event_attr attr;
	struct file_section ids;
	uint64_t id;
	int err = reader_attr(r, entry, attr_bytes, &attr);

	if (!err)
		err = event_table_add(&r->events, &attr, NULL);
	memcpy(&ids, entry + attr_bytes, sizeof(ids));
	if (ids.off > in->file_bytes || ids.size_bytes > in->file_bytes - ids.off ||
	    ids.size_bytes / 8 > *ids_left)
		err = err ? err : -EBADMSG;
	if (err)
		return err;
	*ids_left -= ids.size_bytes / 8;
	for (uint64_t at = 0; at < ids.size_bytes / 8 && !err; at++) {
		memcpy(&id, in->file + ids.off + at * 8, sizeof(id));
		err = event_table_add_id(&r->events, (uint32_t)(r->events.events.n - 1), id);
	}
	return err;
}

static int read_attrs(struct perfdata_reader *r, const struct file_header *h, struct diag *d)
{
	const struct input *in = &r->in;
	uint64_t ids_left = in->file_bytes / 8;
	int err = 0;

	if (h->attr_bytes < PERF_ATTR_SIZE_VER0 + sizeof(struct file_section) ||
	    h->attr_bytes > UINT16_MAX || h->attrs.size_bytes < h->attr_bytes)
		return diag_set(d, -EBADMSG, "%s: damaged at byte 16: it describes no events",
				r->name);
	if (h->attrs.off > in->file_bytes || h->attrs.size_bytes > in->file_bytes - h->attrs.off)
		return diag_set(d, -EBADMSG,
				"%s: cut at byte %zu, before the end of its event descriptions",
				r->name, in->file_bytes);
	for (size_t i = 0; i < h->attrs.size_bytes / h->attr_bytes && !err; i++)
		err = read_attr(r, h, i, &ids_left);
	if (err == -EBADMSG)
		return diag_set(d, err, "%s: damaged event descriptions (from byte %llu on)",
				r->name, (unsigned long long)h->attrs.off);
	return err ? diag_errno(d, err, "%s", r->name) : 0;
}

/* perf states its features from the beginning, and the size of the data at the end. A recording
 * without any record shows by the list of its features, which begins where they would. */
static bool has_ended(const struct perfdata_reader *r, const struct file_header *h)
{
	struct file_section first;
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(h->features); i++)
		n += (uint64_t)__builtin_popcountll(h->features[i]);
	if (!n || h->data.size_bytes || sizeof(first) > r->in.file_bytes - h->data.off)
		return n && h->data.size_bytes;
	memcpy(&first, r->in.file + h->data.off, sizeof(first));
	return first.off == h->data.off + n * sizeof(first);
}

/* Where the records lie. A size of 0, or more than there is, is what a recorder leaves that was
 * killed. */
static int set_data(struct perfdata_reader *r, const struct file_header *h, struct diag *d)
{
	struct input *in = &r->in;

	if (h->data.off > in->file_bytes || h->data.off < h->header_bytes)
		return diag_set(d, -EBADMSG,
				"%s: cut or damaged: its records begin at byte %llu of %zu",
				r->name, (unsigned long long)h->data.off, in->file_bytes);
	r->data = h->data;
	r->data.size_bytes = MIN(h->data.size_bytes, UINT64_MAX - h->data.off);
	r->info.unfinished = !has_ended(r, h);
	r->open_ended = r->info.unfinished && !h->data.size_bytes;
	if (!r->open_ended)
		in->end = MIN(r->data.off + r->data.size_bytes, (uint64_t)in->file_bytes);
	return 0;
}

static int open_file(struct perfdata_reader *r, struct diag *d)
{
	struct file_header h;
	int err;

	if (r->in.file_bytes < sizeof(h))
		return diag_set(d, -EBADMSG, "%s: cut at byte %zu, inside its header", r->name,
				r->in.file_bytes);
	memcpy(&h, r->in.file, sizeof(h));
	if (h.header_bytes < sizeof(h))
		return diag_set(d, -EBADMSG, "%s: unknown header of %llu bytes (byte 8)", r->name,
				(unsigned long long)h.header_bytes);
	if (h.features[0] >> FEAT_DIR_FORMAT & 1)
		return diag_set(d, -ENOTSUP,
				"%s: part of a perf.data directory (perf record --threads), "
				"which cannot be read",
				r->name);
	err = read_attrs(r, &h, d);
	if (!err)
		err = set_data(r, &h, d);
	if (err)
		return err;
	r->stable = !(h.features[0] >> FEAT_COMPRESSED & 1);
	if (r->info.unfinished)
		return 0;
	err = reader_features(r, &h);
	return err ? diag_errno(d, err, "%s", r->name) : 0;
}

static int check_magic(const struct perfdata_reader *r, const uint8_t *head, struct diag *d)
{
	uint64_t magic;

	if (!head || !perfdata_is_header(head, PIPE_HEADER_BYTES))
		return diag_set(d, -EBADMSG,
				"%s: not a perf.data file (it does not begin with PERFILE2)",
				r->name);
	memcpy(&magic, head, sizeof(magic));
	if (magic != PERFDATA_MAGIC)
		return diag_set(d, -ENOTSUP,
				"%s: recorded on a machine of the other byte order, "
				"which cannot be read",
				r->name);
	return 0;
}

/* Recognises what the descriptor holds: a file, mapped; a pipe-mode stream, also when stored in a
 * file; or a file that comes through a pipe, which is read whole. */
static int reader_start(struct perfdata_reader *r, int fd, const void *head, size_t head_bytes,
			struct diag *d)
{
	uint64_t header_bytes;
	const uint8_t *begin;
	struct stat st;
	bool seekable;
	int err;

	if (fstat(fd, &st) < 0)
		return diag_errno(d, -errno, "cannot read %s", r->name);
	if (S_ISDIR(st.st_mode))
		return diag_set(d, -EISDIR,
				"%s: a directory; perf.data directories (perf record --threads) "
				"cannot be read",
				r->name);
	seekable = S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_SET) == 0;
	err = input_open_stream(&r->in, fd, head, seekable ? 0 : head_bytes);
	if (err)
		return diag_errno(d, err, "%s", r->name);
	begin = input_need(&r->in, PIPE_HEADER_BYTES);
	if (r->in.err)
		return diag_errno(d, r->in.err, "cannot read %s", r->name);
	err = check_magic(r, begin, d);
	if (err)
		return err;
	memcpy(&header_bytes, begin + 8, sizeof(header_bytes));
	r->pipe_mode = header_bytes == PIPE_HEADER_BYTES;
	if (r->pipe_mode) {
		input_advance(&r->in, PIPE_HEADER_BYTES);
		return 0;
	}
	if (seekable) {
		input_release(&r->in);
		err = input_map(&r->in, fd, (size_t)st.st_size);
	} else {
		err = input_slurp(&r->in);
	}
	return err ? diag_errno(d, err, "cannot read %s", r->name) : open_file(r, d);
}

static int reader_new(const char *name, struct perfdata_reader **ret)
{
	CLEANUP(perfdata_reader_freep) struct perfdata_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->own_fd = -1;
	r->in.fd = -1;
	r->name = strdup(name);
	r->scratch = malloc(UINT16_MAX + 1);
	if (!r->name || !r->scratch)
		return -ENOMEM;
	*ret = TAKE_PTR(r);
	return 0;
}

int perfdata_open_fd(int fd, const void *head, size_t head_bytes, const char *name,
		     struct perfdata_reader **ret, struct diag *d)
{
	CLEANUP(perfdata_reader_freep) struct perfdata_reader *r = NULL;
	int err = reader_new(name, &r);

	if (err)
		return diag_errno(d, err, "cannot read %s", name);
	err = reader_start(r, fd, head, head_bytes, d);
	if (err)
		return err;
	*ret = TAKE_PTR(r);
	return 0;
}

int perfdata_open(const char *path, struct perfdata_reader **ret, struct diag *d)
{
	CLEANUP(closep) int fd = -1;
	int err;

	if (str_eq(path, "-"))
		return perfdata_open_fd(STDIN_FILENO, NULL, 0, "stdin", ret, d);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return diag_errno(d, -errno, "cannot open %s", path);
	err = perfdata_open_fd(fd, NULL, 0, path, ret, d);
	if (!err)
		(*ret)->own_fd = TAKE_FD(fd);
	return err;
}
