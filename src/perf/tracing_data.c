/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of tracepoints' raw data, as perf wants it beside records of tracepoints: without it
 * perf refuses the file. Format: tools/perf/util/trace-event-info.c, version 0.6.
 */
#include <inspect/perf_sampler.h>
#include <inspect/procfs.h>

#define FORMAT_BYTES_MAX (1 << 20)

struct tracepoint {
	const char *system; /* not terminated: ends at the ':' */
	int system_n;
	const char *name;
	int name_n;
};

static bool split(const struct event_desc *e, struct tracepoint *ret)
{
	const char *colon = strchr(e->name, ':');

	if (e->attr.type != PERF_TYPE_TRACEPOINT || !colon)
		return false;
	*ret = (struct tracepoint){e->name, (int)(colon - e->name), colon + 1,
				   (int)strcspn(colon + 1, ":")};
	return true;
}

static void add_number(struct strbuf *b, uint64_t v, size_t bytes)
{
	strbuf_add(b, (const char *)&v, bytes); /* the byte order is stated in the head */
}

static int add_file(struct strbuf *b, const struct host *host, const char *rest)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[512];
	int err;

	snprintf(path, sizeof(path), "%s/events/%s", host->tracefs, rest);
	err = file_read(path, FORMAT_BYTES_MAX, &text);
	if (err)
		return err;
	add_number(b, text.n, 8);
	strbuf_add(b, strbuf_str(&text), text.n);
	return 0;
}

static bool same_system(const struct tracepoint *a, const struct tracepoint *b)
{
	return a->system_n == b->system_n && memcmp(a->system, b->system, (size_t)a->system_n) == 0;
}

typedef ARRAY(struct tracepoint) tracepoints;

static bool is_first_of_system(const tracepoints *list, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (same_system(&list->v[j], &list->v[i]))
			return false;
	return true;
}

static int add_system(struct strbuf *b, const struct host *host, const tracepoints *list, size_t i)
{
	const struct tracepoint *first = &list->v[i];
	uint32_t n = 0;
	int err = 0;

	for (size_t j = i; j < list->n; j++)
		n += same_system(first, &list->v[j]);
	strbuf_add(b, first->system, (size_t)first->system_n);
	strbuf_putc(b, '\0');
	add_number(b, n, 4);
	for (size_t j = i; j < list->n && !err; j++) {
		const struct tracepoint *t = &list->v[j];
		char rest[256];

		if (!same_system(first, t))
			continue;
		snprintf(rest, sizeof(rest), "%.*s/%.*s/format", t->system_n, t->system, t->name_n,
			 t->name);
		err = add_file(b, host, rest);
	}
	return err;
}

static int add_all(struct strbuf *b, const struct host *host, const tracepoints *list)
{
	static const char head[] = "\x17\x08\x44tracing0.6"; /* with its NUL */
	uint32_t systems = 0;
	int err;

	strbuf_add(b, head, sizeof(head));
	strbuf_putc(b, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	strbuf_putc(b, sizeof(long));
	add_number(b, (uint64_t)sysconf(_SC_PAGESIZE), 4);
	strbuf_add(b, "header_page", 12);
	err = add_file(b, host, "header_page");
	strbuf_add(b, "header_event", 13);
	if (!err)
		err = add_file(b, host, "header_event");
	add_number(b, 0, 4); /* no events of ftrace's own */
	for (size_t i = 0; i < list->n; i++)
		systems += is_first_of_system(list, i);
	add_number(b, systems, 4);
	for (size_t i = 0; i < list->n && !err; i++)
		if (is_first_of_system(list, i))
			err = add_system(b, host, list, i);
	add_number(b, 0, 4); /* kallsyms, printk formats, saved command names: none */
	add_number(b, 0, 4);
	add_number(b, 0, 8);
	return err ? err : b->failed ? -ENOMEM : 0;
}

int tracing_data_read(const struct event_table *events, const struct host *host, struct strbuf *ret)
{
	tracepoints list = {0};
	struct tracepoint t;
	int err = 0;

	for (size_t i = 0; i < events->events.n && !err; i++)
		if (split(&events->events.v[i], &t))
			err = array_push(&list, t);
	if (!err && list.n)
		err = add_all(ret, host, &list);
	array_release(&list);
	return err;
}
