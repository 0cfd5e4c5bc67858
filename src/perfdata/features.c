/* SPDX-License-Identifier: BSD-2-Clause */
/* What the feature sections say. Layouts: write_*() and process_*() in tools/perf/util/header.c. */
#include "reader.h"

struct bytes {
	const uint8_t *p, *end;
};

/* Takes n bytes into ret; false when there are not as many. */
static bool bytes_take(struct bytes *b, void *ret, size_t n)
{
	if (n > (size_t)(b->end - b->p))
		return false;
	memcpy(ret, b->p, n);
	b->p += n;
	return true;
}

/* A string: u32 length, padding included, and the bytes. *ret_n is its length without padding. */
static bool bytes_string(struct bytes *b, const char **ret, size_t *ret_n)
{
	uint32_t n;

	if (!bytes_take(b, &n, sizeof(n)) || n > (size_t)(b->end - b->p))
		return false;
	*ret = (const char *)b->p;
	*ret_n = strnlen(*ret, n);
	b->p += n;
	return true;
}

static int replace_string(char **to, const char *s, size_t n)
{
	char *copy = strndup(s, n);

	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

static int read_string(struct bytes *b, char **to)
{
	const char *s;
	size_t n;

	return bytes_string(b, &s, &n) ? replace_string(to, s, n) : -EBADMSG;
}

static int read_hostname(struct perfdata_reader *r, struct bytes *b)
{
	return read_string(b, &r->info.hostname);
}

static int read_os_release(struct perfdata_reader *r, struct bytes *b)
{
	return read_string(b, &r->info.os_release);
}

static int read_version(struct perfdata_reader *r, struct bytes *b)
{
	return read_string(b, &r->info.version);
}

static int read_arch(struct perfdata_reader *r, struct bytes *b)
{
	return read_string(b, &r->info.arch);
}

static int read_cpu_desc(struct perfdata_reader *r, struct bytes *b)
{
	return read_string(b, &r->info.cpu_desc);
}

static int read_nr_cpus(struct perfdata_reader *r, struct bytes *b)
{
	uint32_t available_online[2];

	if (!bytes_take(b, available_online, sizeof(available_online)))
		return -EBADMSG;
	r->info.cpus_online = available_online[1];
	return 0;
}

static int read_command(struct perfdata_reader *r, struct bytes *b)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};
	char *command;
	const char *s;
	uint32_t n_args;
	size_t n;
	int err;

	if (!bytes_take(b, &n_args, sizeof(n_args)))
		return -EBADMSG;
	for (uint32_t i = 0; i < n_args; i++) {
		if (!bytes_string(b, &s, &n))
			return -EBADMSG;
		if (i)
			strbuf_putc(&line, ' ');
		strbuf_add(&line, s, n);
	}
	err = strbuf_take(&line, &command);
	if (err)
		return err;
	free(r->info.command);
	r->info.command = command;
	return 0;
}

static int read_sample_time(struct perfdata_reader *r, struct bytes *b)
{
	uint64_t first_last_ns[2];

	if (!bytes_take(b, first_last_ns, sizeof(first_last_ns)))
		return -EBADMSG;
	r->info.first_sample_ns = first_last_ns[0];
	r->info.last_sample_ns = first_last_ns[1];
	return 0;
}

/* Events by their names: {attr, number of ids, name, ids}, in the order of the attrs. */
static int read_event_desc(struct perfdata_reader *r, struct bytes *b)
{
	uint32_t counts[2], n_ids; /* events, bytes of an attr */
	int err;

	if (!bytes_take(b, counts, sizeof(counts)))
		return -EBADMSG;
	for (uint32_t i = 0; i < counts[0]; i++) {
		CLEANUP(freep) char *name = NULL;
		uint64_t id = 0;
		int event;

		if (counts[1] > (size_t)(b->end - b->p))
			return -EBADMSG;
		b->p += counts[1];
		if (!bytes_take(b, &n_ids, sizeof(n_ids)))
			return -EBADMSG;
		err = read_string(b, &name);
		if (err)
			return err;
		if (n_ids > (size_t)(b->end - b->p) / 8)
			return -EBADMSG;
		if (n_ids)
			memcpy(&id, b->p, sizeof(id));
		b->p += 8 * (size_t)n_ids;
		event = n_ids ? event_table_find_id(&r->events, id) : -ENOENT;
		if (event < 0)
			event = i < r->events.events.n ? (int)i : -1;
		err = event < 0 || !*name ? 0
					  : event_table_rename(&r->events, (uint32_t)event, name);
		if (err)
			return err;
	}
	return 0;
}

int reader_build_id(struct perfdata_reader *r, const uint8_t *v, size_t n)
{
	struct perfdata_build_id entry = {0};
	struct build_id_record record;
	int err;

	if (n < sizeof(record))
		return -EBADMSG;
	memcpy(&record, v, sizeof(record));
	entry.size = record.header.misc & MISC_BUILD_ID_SIZE ? record.id_bytes : sizeof(entry.id);
	if (entry.size > sizeof(entry.id))
		return -EBADMSG;
	memcpy(entry.id, record.id, sizeof(entry.id));
	entry.kernel =
		(record.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	entry.path = strndup((const char *)v + sizeof(record), n - sizeof(record));
	if (!entry.path)
		return -ENOMEM;
	err = array_push(&r->info.build_ids, entry);
	if (err)
		free(entry.path);
	return err;
}

static int read_build_ids(struct perfdata_reader *r, struct bytes *b)
{
	struct perf_event_header header;
	int err = 0;

	while (!err && b->p < b->end) {
		if ((size_t)(b->end - b->p) < sizeof(header))
			return -EBADMSG;
		memcpy(&header, b->p, sizeof(header));
		if (header.size > (size_t)(b->end - b->p))
			return -EBADMSG;
		err = reader_build_id(r, b->p, header.size);
		b->p += header.size;
	}
	return err;
}

static int read_names(struct perfdata_reader *r, struct bytes *b)
{
	size_t n = (size_t)(b->end - b->p);
	uint8_t *copy = malloc(MAX(n, (size_t)1));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, b->p, n);
	free(r->info.names);
	r->info.names = copy;
	r->info.names_bytes = n;
	return 0;
}

static int read_notes(struct perfdata_reader *r, struct bytes *b)
{
	return replace_string(&r->info.notes, (const char *)b->p, (size_t)(b->end - b->p));
}

static const struct {
	unsigned feature;
	const char *name;
	int (*read)(struct perfdata_reader *r, struct bytes *b);
} readers[] = {
	{FEAT_BUILD_ID, "build-ids", read_build_ids},
	{FEAT_HOSTNAME, "host name", read_hostname},
	{FEAT_OS_RELEASE, "kernel release", read_os_release},
	{FEAT_VERSION, "version", read_version},
	{FEAT_ARCH, "architecture", read_arch},
	{FEAT_NR_CPUS, "number of CPUs", read_nr_cpus},
	{FEAT_CPU_DESC, "CPU description", read_cpu_desc},
	{FEAT_COMMAND, "command line", read_command},
	{FEAT_EVENT_DESC, "event names", read_event_desc},
	{FEAT_SAMPLE_TIME, "sample times", read_sample_time},
	{PERFDATA_FEAT_NAMES, "stored names", read_names},
	{PERFDATA_FEAT_NOTES, "notes", read_notes},
};

int reader_feature(struct perfdata_reader *r, unsigned feature, const uint8_t *v, size_t n)
{
	struct bytes b = {.p = v, .end = v + n};

	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		if (readers[i].feature == feature)
			return readers[i].read(r, &b);
	return 0;
}

static const char *feature_name(unsigned feature)
{
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		if (readers[i].feature == feature)
			return readers[i].name;
	return "not used here";
}

/* The section at index `at` of the table; damage is said, and costs this feature alone. A section
 * that is of no use here still tells that the file is cut. */
static int read_section(struct perfdata_reader *r, const uint8_t *table, size_t at,
			unsigned feature)
{
	const struct input *in = &r->in;
	struct file_section s;
	bool whole;
	int err = 0;

	memcpy(&s, table + at * sizeof(s), sizeof(s));
	whole = s.off <= in->file_bytes && s.size_bytes <= in->file_bytes - s.off;
	if (whole)
		err = reader_feature(r, feature, in->file + s.off, s.size_bytes);
	if (whole && err != -EBADMSG)
		return err;
	/* A cut goes through the first and takes all that follow. */
	if (r->info.damage)
		return 0;
	if (whole)
		reader_set_damage(r, "damaged at byte %llu, in feature %u (%s)",
				  (unsigned long long)s.off, feature, feature_name(feature));
	else
		reader_set_damage(r, "cut in feature %u (%s): the file ends at byte %zu", feature,
				  feature_name(feature), in->file_bytes);
	return 0;
}

int reader_features(struct perfdata_reader *r, const struct file_header *h)
{
	const struct input *in = &r->in;
	size_t n = 0, at = 0;
	uint64_t table_off;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(h->features); i++)
		n += (size_t)__builtin_popcountll(h->features[i]);
	/* The walk over the data says it when they end early. */
	table_off = r->data.off + r->data.size_bytes;
	if (!n || table_off > in->file_bytes)
		return 0;
	if (n > (in->file_bytes - table_off) / sizeof(struct file_section)) {
		reader_set_damage(r, "cut at byte %zu, inside the list of features",
				  in->file_bytes);
		return 0;
	}
	for (unsigned i = 0; i < FEATURE_BITS && !err; i++)
		if (h->features[i / 64] >> i % 64 & 1)
			err = read_section(r, in->file + table_off, at++, i);
	return err;
}
