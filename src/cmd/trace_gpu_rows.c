/* SPDX-License-Identifier: BSD-2-Clause */
/* From the kernel's rows to those that are shown: --by, errors, distributions. */
#include "trace_gpu.h"

#include <inspect/clock.h>
#include <inspect/hashmap.h>

enum {
	METRICS = 13,
	COLUMNS_MAX = METRICS + GPU_PARTS,
	ROWS_SHOWN = 25,
	ERRORS_SHOWN = 10,
	HISTOGRAMS_SHOWN = 5,
	NOTES_SHOWN = 5,
};

const char *gpu_error_text(const struct gpu_run *run, const struct gpu_key *key, struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	gpu_put_error(&run->choice.version, key, &b);
	return result_text(r, "%s", strbuf_str(&b));
}

/* --- rows ------------------------------------------------------------------------------------- */

static void put_part(const struct gpu_run *run, const struct gpu_key *key, enum gpu_part part,
		     struct strbuf *out)
{
	switch (part) {
	case GPU_PART_CALL:
		gpu_put_call(&run->choice.version, key, out);
		break;
	case GPU_PART_GROUP:
		strbuf_puts(out, gpu_call_group(&run->choice.version, key));
		break;
	case GPU_PART_THREAD:
		strbuf_printf(out, "%u ", key->tid);
		strbuf_add(out, key->comm, strnlen(key->comm, sizeof(key->comm)));
		break;
	case GPU_PART_COMM:
		strbuf_add(out, key->comm, strnlen(key->comm, sizeof(key->comm)));
		break;
	case GPU_PART_DEVICE:
		gpu_device_put(&run->choice.devices, key, out);
		break;
	default:
		if (key->client)
			strbuf_printf(out, "0x%x", key->client);
		else
			strbuf_putc(out, '-');
		break;
	}
}

static void add_count(struct gpu_line *line, const struct gpu_count *from)
{
	line->calls += from->calls;
	line->errors += gpu_call_failed(&from->key) ? from->calls : 0;
	line->bytes += from->bytes;
	line->in_flight += from->in_flight;
	line->open_ns += from->open_ns;
	line->before += from->before;
	line->before_open += from->before_open;
	line->oldest_ns = MAX(line->oldest_ns, from->oldest_ns);
	histogram_merge(&line->h, &from->h);
}

static uint64_t sort_value(const struct gpu_line *l, unsigned sort)
{
	/* trace_sort_names */
	const uint64_t values[] = {
		l->h.sum + l->open_ns,
		l->calls,
		l->errors,
		histogram_mean(&l->h),
		histogram_percentile(&l->h, 50),
		histogram_percentile(&l->h, 99),
		l->h.max,
		l->bytes,
		l->in_flight,
	};

	return values[sort < ARRAY_SIZE(values) ? sort : 0];
}

static int by_sort(const void *a, const void *b, void *ctx)
{
	unsigned sort = *(const unsigned *)ctx;
	uint64_t x = sort_value(a, sort), y = sort_value(b, sort);

	return (x < y) - (x > y);
}

int gpu_lines_of(const struct gpu_run *run, uint32_t parts, struct result *r, gpu_lines *ret)
{
	const struct gpu_table *t = &run->tracing.table;
	struct hashmap by_text = {0};
	unsigned sort = run->v->sort;
	int err = 0;

	for (size_t i = 0; i < t->rows.n && !err; i++) {
		CLEANUP(strbuf_release) struct strbuf all = {0};
		const char *text[GPU_PARTS] = {0};
		uint32_t at, index;
		uint64_t hash;
		size_t found = SIZE_MAX;

		for (unsigned p = 0; p < GPU_PARTS; p++) {
			CLEANUP(strbuf_release) struct strbuf one = {0};

			if (!(parts & 1u << p))
				continue;
			put_part(run, &t->rows.v[i].key, (enum gpu_part)p, &one);
			text[p] = result_text(r, "%s", strbuf_str(&one));
			strbuf_printf(&all, "%s\n", strbuf_str(&one));
		}
		hash = hash_bytes(strbuf_str(&all), all.n);
		hashmap_each_candidate(&by_text, hash, at, index) {
			bool same = true;

			for (unsigned p = 0; p < GPU_PARTS && same; p++)
				same = !text[p] || str_eq(text[p], ret->v[index].part[p]);
			if (same)
				found = index;
		}
		if (found == SIZE_MAX) {
			struct gpu_line line = {0};

			found = ret->n;
			memcpy(line.part, text, sizeof(text));
			err = array_push(ret, line);
			if (!err)
				err = hashmap_insert(&by_text, hash, (uint32_t)found);
		}
		if (!err)
			add_count(&ret->v[found], &t->rows.v[i]);
	}
	hashmap_release(&by_text);
	if (ret->n)
		qsort_r(ret->v, ret->n, sizeof(*ret->v), by_sort, &sort);
	return err;
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct column part_columns[GPU_PARTS] = {
	[GPU_PART_CALL] = {"call", "call", CELL_TEXT, COLUMN_CUT},
	[GPU_PART_GROUP] = {"group", "group", CELL_TEXT, 0},
	[GPU_PART_THREAD] = {"thread", "thread", CELL_TEXT, 0},
	[GPU_PART_COMM] = {"comm", "comm", CELL_TEXT, 0},
	[GPU_PART_DEVICE] = {"device", "device", CELL_TEXT, 0},
	[GPU_PART_CLIENT] = {"client", "client", CELL_TEXT, 0},
};

static size_t put_part_columns(uint32_t parts, struct column *columns)
{
	size_t n = 0;

	for (unsigned p = 0; p < GPU_PARTS; p++)
		if (parts & 1u << p)
			columns[n++] = part_columns[p];
	return n;
}

static size_t put_part_cells(const struct gpu_line *line, struct result *r, struct cell *cells)
{
	size_t n = 0;

	for (unsigned p = 0; p < GPU_PARTS; p++)
		if (line->part[p])
			cells[n++] = cell_text(r, line->part[p]);
	return n;
}

static const struct column *make_columns(uint32_t parts, struct result *r, size_t *ret_n)
{
	static const struct column metrics[METRICS] = {
		{"calls", "calls", CELL_COUNT, 0},
		{"errors", "errors", CELL_COUNT, 0},
		{"total_ns", "total", CELL_NS, 0},
		{"avg_ns", "avg", CELL_NS, COLUMN_DATA_ONLY},
		{"p50_ns", "p50", CELL_NS, 0},
		{"p99_ns", "p99", CELL_NS, 0},
		{"p999_ns", "p99.9", CELL_NS, COLUMN_SPARE},
		{"max_ns", "max", CELL_NS, COLUMN_SPARE},
		{"wall_percent", "of a thread", CELL_PERCENT, COLUMN_SPARE},
		{"in_flight", "now", CELL_COUNT, 0},
		{"oldest_ns", "since", CELL_NS, COLUMN_SPARE},
		{"bytes", "bytes", CELL_BYTES, COLUMN_SPARE},
		{"from_before", "from before", CELL_COUNT, COLUMN_DATA_ONLY},
	};
	struct column *columns = arena_alloc(&r->arena, COLUMNS_MAX * sizeof(*columns));
	size_t n;

	if (!columns)
		return NULL;
	n = put_part_columns(parts, columns);
	memcpy(columns + n, metrics, sizeof(metrics));
	*ret_n = n + METRICS;
	return columns;
}

static void add_line(const struct gpu_line *line, uint64_t elapsed_ns, struct result *r,
		     size_t section)
{
	struct cell cells[COLUMNS_MAX];
	size_t n = put_part_cells(line, r, cells);
	const char *none = line->calls ? "no call has begun and ended" : "no call has ended";

#define NS_OF_CALLS(v) (line->h.n ? cell_u64(CELL_NS, (v)) : cell_null(r, none))
	const struct cell metrics[METRICS] = {
		cell_u64(CELL_COUNT, line->calls),
		cell_u64(CELL_COUNT, line->errors),
		cell_u64(CELL_NS, line->h.sum + line->open_ns),
		NS_OF_CALLS(histogram_mean(&line->h)),
		NS_OF_CALLS(histogram_percentile(&line->h, 50)),
		NS_OF_CALLS(histogram_percentile(&line->h, 99)),
		NS_OF_CALLS(histogram_percentile(&line->h, 99.9)),
		NS_OF_CALLS(line->h.max),
		cell_double(CELL_PERCENT, elapsed_ns
						  ? 100.0 * (double)(line->h.sum + line->open_ns) /
							    (double)elapsed_ns
						  : 0),
		cell_u64(CELL_COUNT, line->in_flight),
		line->in_flight ? cell_u64(CELL_NS, line->oldest_ns) : cell_null(r, ""),
		line->bytes ? cell_u64(CELL_BYTES, line->bytes) : cell_null(r, ""),
		cell_u64(CELL_COUNT, line->before + line->before_open),
	};
#undef NS_OF_CALLS

	memcpy(cells + n, metrics, sizeof(metrics));
	result_row(r, section, cells);
}

/* --- errors ----------------------------------------------------------------------------------- */

struct error_row {
	const char *call, *error;
	uint64_t count;
};
typedef ARRAY(struct error_row) error_rows;

static int most_first(const void *a, const void *b)
{
	const struct error_row *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

static int collect_errors(const struct gpu_run *run, struct result *r, error_rows *ret)
{
	const struct gpu_table *t = &run->tracing.table;
	int err = 0;

	for (size_t i = 0; i < t->rows.n && !err; i++) {
		CLEANUP(strbuf_release) struct strbuf call = {0};
		const struct gpu_count *row = &t->rows.v[i];
		const char *error;
		size_t k = 0;

		if (!row->calls || !gpu_call_failed(&row->key))
			continue;
		gpu_put_call(&run->choice.version, &row->key, &call);
		error = gpu_error_text(run, &row->key, r);
		while (k < ret->n && (!str_eq(ret->v[k].call, strbuf_str(&call)) ||
				      !str_eq(ret->v[k].error, error)))
			k++;
		if (k == ret->n)
			err = array_push(ret,
					 (struct error_row){result_text(r, "%s", strbuf_str(&call)),
							    error, 0});
		if (!err)
			ret->v[k].count += row->calls;
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), most_first);
	return err;
}

static int add_errors(const struct gpu_run *run, struct result *r)
{
	static const struct column columns[] = {
		{"call", "call", CELL_TEXT, COLUMN_CUT},
		{"error", "error", CELL_TEXT, 0},
		{"count", "count", CELL_COUNT, 0},
	};
	error_rows errors = {0};
	int err = collect_errors(run, r, &errors);
	size_t section;

	if (!err && errors.n) {
		section = result_section(r, "errors", "errors", columns, ARRAY_SIZE(columns));
		for (size_t i = 0; i < errors.n; i++)
			result_row(r, section,
				   (const struct cell[]){
					   cell_text(r, errors.v[i].call),
					   cell_text(r, errors.v[i].error),
					   cell_u64(CELL_COUNT, errors.v[i].count),
				   });
		if (r->failed)
			err = -ENOMEM;
		else
			r->sections.v[section].limit = ERRORS_SHOWN;
	}
	array_release(&errors);
	return err;
}

/* Of the calls of a row that have not ended and had begun before the start, how much was seen. */
static void note_from_before(const struct gpu_line *line, struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};
	char seen[32];

	if (!line->before_open)
		return;
	for (unsigned p = 0; p < GPU_PARTS; p++)
		if (line->part[p])
			strbuf_printf(&name, "%s%s", name.n ? " · " : "", line->part[p]);
	result_note(r, "%s: %llu in flight since before the start, for %s or more",
		    strbuf_str(&name), (unsigned long long)line->before_open,
		    duration_format(line->oldest_ns, seen, sizeof(seen)));
}

int gpu_summary(const struct gpu_run *run, struct result *r)
{
	size_t n_columns = 0, section;
	const struct column *columns = make_columns(run->parts, r, &n_columns);
	gpu_lines lines = {0};
	int err = columns ? gpu_lines_of(run, run->parts, r, &lines) : -ENOMEM;

	if (!err) {
		section = result_section(r, "rows", "", columns, n_columns);
		for (size_t i = 0; i < lines.n; i++) {
			add_line(&lines.v[i], run->tracing.table.elapsed_ns, r, section);
			if (i < NOTES_SHOWN)
				note_from_before(&lines.v[i], r);
		}
		err = r->failed ? -ENOMEM : 0;
	}
	if (!err) {
		r->sections.v[section].limit = run->v->top ? run->v->top : ROWS_SHOWN;
		r->sections.v[section].fits = !run->v->top;
		r->sections.v[section].more = "--all";
	}
	array_release(&lines);
	return err ? err : add_errors(run, r);
}

/* --- distributions ---------------------------------------------------------------------------- */

static void add_histogram(const struct gpu_line *line, struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};

	for (unsigned p = 0; p < GPU_PARTS; p++)
		if (line->part[p])
			strbuf_printf(&name, "%s%s", name.n ? " · " : "", line->part[p]);
	trace_put_latencies(r, result_text(r, "%s", strbuf_str(&name)), &line->h);
}

int gpu_hist(const struct gpu_run *run, struct result *r)
{
	size_t shown = run->v->all_rows ? SIZE_MAX : run->v->top ? run->v->top : HISTOGRAMS_SHOWN;
	gpu_lines lines = {0};
	int err = gpu_lines_of(run, run->parts, r, &lines);

	for (size_t i = 0; i < lines.n && i < shown && !err; i++)
		if (lines.v[i].h.n)
			add_histogram(&lines.v[i], r);
	if (!err && lines.n > shown)
		result_note(r, "%zu more distributions: --all", lines.n - shown);
	array_release(&lines);
	return err ? err : r->failed ? -ENOMEM : 0;
}
