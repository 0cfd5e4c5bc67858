/* SPDX-License-Identifier: BSD-2-Clause */
/* Feature sections as perf writes them: write_*() in tools/perf/util/header.c. */
#include "writer.h"

#define PATH_BYTES_MAX 4096U

static void add_u32(struct strbuf *b, uint32_t v)
{
	strbuf_add(b, (const char *)&v, sizeof(v));
}

static void add_u64(struct strbuf *b, uint64_t v)
{
	strbuf_add(b, (const char *)&v, sizeof(v));
}

static void add_zeros(struct strbuf *b, size_t n)
{
	while (n--)
		strbuf_putc(b, '\0');
}

/* n bytes, a NUL, and zeros up to the next multiple of NAME_ALIGN. */
static void add_padded(struct strbuf *b, const char *s, size_t n)
{
	strbuf_add(b, s, n);
	add_zeros(b, ALIGN_UP(n + 1, (size_t)NAME_ALIGN) - n);
}

static void add_string(struct strbuf *b, const char *s)
{
	size_t n = strlen(s);

	add_u32(b, (uint32_t)ALIGN_UP(n + 1, (size_t)NAME_ALIGN));
	add_padded(b, s, n);
}

void feature_event_desc(const struct event_table *events, struct strbuf *ret)
{
	add_u32(ret, (uint32_t)events->events.n);
	add_u32(ret, sizeof(struct perf_event_attr));
	for (size_t i = 0; i < events->events.n; i++) {
		const struct event_desc *e = &events->events.v[i];
		struct perf_event_attr attr = e->attr;

		attr.size = sizeof(attr);
		strbuf_add(ret, (const char *)&attr, sizeof(attr));
		add_u32(ret, (uint32_t)e->ids.n);
		add_string(ret, e->name);
		if (e->ids.n)
			strbuf_add(ret, (const char *)e->ids.v, 8 * e->ids.n);
	}
}

void feature_build_id(const struct perfdata_build_id *b, uint32_t type, struct strbuf *ret)
{
	size_t n = strnlen(b->path, PATH_BYTES_MAX);
	struct build_id_record record = {
		.header = {.type = type,
			   .misc = (b->kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER) |
				   MISC_BUILD_ID_SIZE},
		.pid = -1,
		.id_bytes = MIN(b->size, (uint8_t)sizeof(record.id)),
	};

	record.header.size = (uint16_t)(sizeof(record) + ALIGN_UP(n + 1, (size_t)NAME_ALIGN));
	memcpy(record.id, b->id, record.id_bytes);
	strbuf_add(ret, (const char *)&record, sizeof(record));
	add_padded(ret, b->path, n);
}

/* The next section, to be filled. */
static struct strbuf *add_feature(struct features *f, unsigned feature)
{
	f->v[f->n].feature = feature;
	return &f->v[f->n++].bytes;
}

static void add_text_feature(struct features *f, unsigned feature, const char *text)
{
	if (text)
		add_string(add_feature(f, feature), text);
}

static void add_small_features(const struct perfdata_info *info, struct features *f)
{
	struct strbuf *b;

	add_text_feature(f, FEAT_HOSTNAME, info->hostname);
	add_text_feature(f, FEAT_OS_RELEASE, info->os_release);
	add_text_feature(f, FEAT_VERSION, info->version);
	add_text_feature(f, FEAT_ARCH, info->arch);
	if (info->cpus_online) {
		b = add_feature(f, FEAT_NR_CPUS);
		add_u32(b, info->cpus_online); /* available */
		add_u32(b, info->cpus_online);
	}
	add_text_feature(f, FEAT_CPU_DESC, info->cpu_desc);
	if (info->command) {
		b = add_feature(f, FEAT_COMMAND);
		add_u32(b, 1); /* one argument: the line as it was */
		add_string(b, info->command);
	}
}

int features_make(const struct perfdata_info *info, const struct strbuf *event_desc,
		  bool clock_given, struct features *ret)
{
	struct features f = {0};
	struct strbuf *b;

	if (info->tracing_bytes)
		strbuf_add(add_feature(&f, FEAT_TRACING_DATA), (const char *)info->tracing,
			   info->tracing_bytes);
	if (info->build_ids.n) {
		b = add_feature(&f, FEAT_BUILD_ID);
		for (size_t i = 0; i < info->build_ids.n; i++)
			feature_build_id(&info->build_ids.v[i], 0, b);
	}
	add_small_features(info, &f);
	strbuf_add(add_feature(&f, FEAT_EVENT_DESC), event_desc->v, event_desc->n);
	if (info->last_sample_ns) {
		b = add_feature(&f, FEAT_SAMPLE_TIME);
		add_u64(b, info->first_sample_ns);
		add_u64(b, info->last_sample_ns);
	}
	if (clock_given)
		add_u64(add_feature(&f, FEAT_CLOCK_ID), 1); /* its resolution in ns */
	if (info->names_bytes)
		strbuf_add(add_feature(&f, PERFDATA_FEAT_NAMES), (const char *)info->names,
			   info->names_bytes);
	if (info->notes)
		strbuf_puts(add_feature(&f, PERFDATA_FEAT_NOTES), info->notes);
	for (size_t i = 0; i < f.n; i++) {
		if (!f.v[i].bytes.failed)
			continue;
		features_release(&f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

void features_release(struct features *f)
{
	for (size_t i = 0; i < f->n; i++)
		strbuf_release(&f->v[i].bytes);
	f->n = 0;
}

bool feature_fits_stream(unsigned feature)
{
	/* Build-ids are records of their own there, and the event names went ahead. */
	return feature < PERFDATA_FEAT_NAMES && feature != FEAT_TRACING_DATA &&
	       feature != FEAT_BUILD_ID && feature != FEAT_EVENT_DESC;
}
