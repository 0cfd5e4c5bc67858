/* SPDX-License-Identifier: BSD-2-Clause */
/* What GPU calls mean. */
#include "trace_gpu.h"

#include <math.h>

enum {
	ENOUGH = 100,    /* calls, to speak of their tail */
	TAIL_RATIO = 10, /* to the median */
};

static const struct finding_rule gpu_rules[] = {
	{
		.name = "gpu-driver-lock",
		.tests = {{"crowded-ratio", ABOVE, 1.8,
			   "calls take %.1f times as long beside another thread's"},
			  {"crowded-calls", ABOVE, 50, NULL}},
		.means = "the driver takes calls one after the other: threads queue behind each "
			 "other",
		.next = "inspect trace --gpu -c --by thread,call {target}",
		.source = "the driver has one API lock for most of its calls",
	},
	{
		.name = "gpu-failing-calls",
		.tests = {{"failing-per-second", ABOVE, 10, "%.0f times a second"},
			  {"failing-calls", ABOVE, 20, NULL}},
		.means = "the same call fails again and again",
		.next = "inspect trace --gpu --failed {target}",
		.source = "a driver call costs 5 to 500 µs, failed or not",
	},
	{
		.name = "gpu-memory-calls",
		.tests = {{"memory-per-second", ABOVE, 10, "%.0f a second"},
			  {"memory-wall-percent", ABOVE, 1, "%.1f %% of one thread's time"},
			  {"memory-calls", ABOVE, 20, NULL}},
		.means = "GPU memory is allocated, freed, mapped or flushed while serving",
		.next = "inspect trace --gpu -c --by group,thread {target}",
		.source = "a caching allocator makes no calls once it is warm",
	},
	{
		.name = "gpu-open-slow",
		.tests = {{"open-ms", ABOVE, 100, "%.0f ms"}},
		.means = "the driver initializes the GPU at each first open: no persistence daemon",
		.next = "nvidia-smi -pm 1",
		.source = "NVIDIA's Driver Persistence documentation",
	},
	{
		.name = "gpu-slow-tail",
		.tests = {{"tail-ratio", ABOVE, TAIL_RATIO, "its p99 is %.0f times its median"},
			  {"tail-p99-ms", ABOVE, 5, "%.1f ms"}},
		.means = "a few calls take far longer than most",
		.next = "inspect trace --gpu -c --by stack --sort max {target}",
		.source = "calls of the same kind do the same work",
	},
	{
		.name = "gpu-pollers",
		.tests = {{"queries-per-second", ABOVE, 20, "%.0f queries a second"},
			  {"queries-wall-percent", ABOVE, 1, "%.1f %% of one thread's time"}},
		.means = "it asks the driver for its state all the time (NVML), and each "
			 "query may hold up the calls of others",
		.next = "inspect trace --gpu -c --by group,comm -a -d 10",
		.source = "a monitor asks some 10 values a second",
	},
	{
		.name = "gpu-sync",
		.tests = {{"sync-wall-percent", ABOVE, 50, "%.0f %% of one thread's time"}},
		.means = "a thread sleeps until the GPU is done",
		.next = "inspect use {target}",
		.source = "half of a thread's time",
	},
};

/* What the rules' tests are of. */
struct gpu_numbers {
	struct {
		const char *name;
		double value;
		const char *subject; /* which call; NULL: none */
	} v[24];
	size_t n;
};

static void put(struct gpu_numbers *numbers, const char *name, double value, const char *subject)
{
	if (numbers->n == ARRAY_SIZE(numbers->v))
		return;
	numbers->v[numbers->n].name = name;
	numbers->v[numbers->n].value = value;
	numbers->v[numbers->n++].subject = subject;
}

static double number(void *ctx, const char *name)
{
	const struct gpu_numbers *numbers = ctx;

	for (size_t i = 0; i < numbers->n; i++)
		if (str_eq(numbers->v[i].name, name))
			return numbers->v[i].value;
	return NAN;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static void add_groups(const gpu_lines *groups, double seconds, struct gpu_numbers *numbers)
{
	static const struct {
		const char *group, *calls, *rate, *percent;
	} wanted[] = {
		{"memory", "memory-calls", "memory-per-second", "memory-wall-percent"},
		{"sync", "syncs", "syncs-per-second", "sync-wall-percent"},
	};

	for (size_t i = 0; i < groups->n; i++) {
		const struct gpu_line *l = &groups->v[i];

		for (size_t k = 0; k < ARRAY_SIZE(wanted); k++) {
			if (!str_eq(l->part[GPU_PART_GROUP], wanted[k].group))
				continue;
			put(numbers, wanted[k].calls, (double)l->calls, NULL);
			put(numbers, wanted[k].rate, (double)l->calls / seconds, NULL);
			put(numbers, wanted[k].percent,
			    (double)(l->h.sum + l->open_ns) / 1e7 / seconds, NULL);
		}
	}
}

/* Of the process name that asks most. Who polls asks the same again and again: what a program asks
 * when it starts is many calls, but a few of each. */
static int add_pollers(const gpu_lines *lines, double seconds, struct gpu_numbers *numbers)
{
	enum { AGAIN = 20 };
	struct poller {
		const char *comm;
		uint64_t calls, ns;
	};
	ARRAY(struct poller) pollers = {0};
	size_t most = 0;
	int err = 0;

	for (size_t i = 0; i < lines->n && !err; i++) {
		const struct gpu_line *l = &lines->v[i];
		size_t k = 0;

		if (!str_eq(l->part[GPU_PART_GROUP], "queries") || l->calls < AGAIN)
			continue;
		while (k < pollers.n && !str_eq(pollers.v[k].comm, l->part[GPU_PART_COMM]))
			k++;
		if (k == pollers.n)
			err = array_push(&pollers, (struct poller){l->part[GPU_PART_COMM], 0, 0});
		if (err)
			break;
		pollers.v[k].calls += l->calls;
		pollers.v[k].ns += l->h.sum + l->open_ns;
		most = pollers.v[k].ns > pollers.v[most].ns ? k : most;
	}
	if (!err && pollers.n) {
		put(numbers, "queries-per-second", (double)pollers.v[most].calls / seconds,
		    pollers.v[most].comm);
		put(numbers, "queries-wall-percent", (double)pollers.v[most].ns / 1e7 / seconds,
		    NULL);
	}
	array_release(&pollers);
	return err;
}

/* The call that a test speaks of is the one with the greatest value. */
static void add_calls(const gpu_lines *calls, struct gpu_numbers *numbers)
{
	enum { FEW = 20 };
	const struct gpu_line *tail = NULL, *crowded = NULL;
	double tail_ratio = 0, crowded_ratio = 0;

	for (size_t i = 0; i < calls->n; i++) {
		const struct gpu_line *l = &calls->v[i];
		double median = (double)histogram_percentile(&l->h, 50);
		double p99 = (double)histogram_percentile(&l->h, 99), alone, beside;
		uint64_t n_alone = l->h.n - l->crowded_calls;

		if (str_eq(l->part[GPU_PART_CALL], "open"))
			put(numbers, "open-ms", (double)l->h.max / NSEC_PER_MSEC, "open");
		if (l->h.n >= ENOUGH && median > 0 && p99 / median > tail_ratio &&
		    !str_eq(l->part[GPU_PART_CALL], "poll") &&
		    !str_eq(l->part[GPU_PART_CALL], "epoll_wait")) {
			tail_ratio = p99 / median;
			tail = l;
		}
		if (l->crowded_calls <= FEW || n_alone <= FEW || l->h.sum <= l->crowded_ns)
			continue;
		alone = (double)(l->h.sum - l->crowded_ns) / (double)n_alone;
		beside = (double)l->crowded_ns / (double)l->crowded_calls;
		if (beside / alone > crowded_ratio) {
			crowded_ratio = beside / alone;
			crowded = l;
		}
	}
	if (tail) {
		put(numbers, "tail-ratio", tail_ratio, tail->part[GPU_PART_CALL]);
		put(numbers, "tail-p99-ms",
		    (double)histogram_percentile(&tail->h, 99) / NSEC_PER_MSEC, NULL);
	}
	if (crowded) {
		put(numbers, "crowded-ratio", crowded_ratio, crowded->part[GPU_PART_CALL]);
		put(numbers, "crowded-calls", (double)crowded->crowded_calls, NULL);
	}
}

static void add_failures(const struct gpu_run *run, double seconds, struct result *r,
			 struct gpu_numbers *numbers)
{
	const struct gpu_table *t = &run->tracing.table;
	const struct gpu_count *most = NULL;
	CLEANUP(strbuf_release) struct strbuf call = {0};

	for (size_t i = 0; i < t->rows.n; i++)
		if (gpu_call_failed(&t->rows.v[i].key) &&
		    (!most || t->rows.v[i].calls > most->calls))
			most = &t->rows.v[i];
	if (!most)
		return;
	put(numbers, "failing-calls", (double)most->calls, NULL);
	gpu_put_call(&run->choice.version, &most->key, &call);
	put(numbers, "failing-per-second", (double)most->calls / seconds,
	    result_text(r, "%s = %s", strbuf_str(&call), gpu_error_text(run, &most->key, r)));
}

static int fill(const struct gpu_run *run, struct result *r, struct gpu_numbers *numbers)
{
	double seconds = (double)run->tracing.table.elapsed_ns / NSEC_PER_SEC;
	gpu_lines groups = {0}, calls = {0}, by_comm = {0}; /* and by call */
	int err;

	if (seconds <= 0)
		return 0;
	err = gpu_lines_of(run, 1u << GPU_PART_GROUP, r, &groups);
	if (!err)
		err = gpu_lines_of(run, 1u << GPU_PART_CALL, r, &calls);
	if (!err)
		err = gpu_lines_of(run,
				   1u << GPU_PART_GROUP | 1u << GPU_PART_COMM | 1u << GPU_PART_CALL,
				   r, &by_comm);
	if (!err)
		err = add_pollers(&by_comm, seconds, numbers);
	if (!err) {
		add_groups(&groups, seconds, numbers);
		add_calls(&calls, numbers);
		add_failures(run, seconds, r, numbers);
	}
	array_release(&groups);
	array_release(&calls);
	array_release(&by_comm);
	return err;
}

/* What the numbers mean, into the result's head. */
static int judge(struct gpu_numbers *numbers, const char *target, struct result *r)
{
	findings f = {0};
	int err =
		findings_evaluate(gpu_rules, ARRAY_SIZE(gpu_rules), number, numbers, target, r, &f);

	for (size_t i = 0; i < f.n && !err; i++)
		for (size_t k = 0; k < numbers->n; k++)
			if (numbers->v[k].subject &&
			    str_eq(numbers->v[k].name, f.v[i].rule->tests[0].value))
				f.v[i].evidence = result_text(r, "%s: %s", numbers->v[k].subject,
							      f.v[i].evidence);
	if (!err)
		findings_head(r, &f);
	array_release(&f);
	return err;
}

int gpu_findings(const struct gpu_run *run, struct result *r)
{
	struct gpu_numbers numbers = {0};
	int err = fill(run, r, &numbers);

	return err ? err : judge(&numbers, strbuf_str(&run->target_text), r);
}

/* --- by stack --------------------------------------------------------------------------------- */

/* All sites of a label together, and the one that most of its slow calls come from. */
struct label_tail {
	struct wait_site all;
	const struct wait_site *worst;
	uint64_t most_slow;
};

static uint64_t calls_above(const struct wait_site *s, uint64_t ns)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < OFFCPU_BUCKETS; i++)
		n += offcpu_bucket_low_ns(i) >= ns ? s->buckets[i] : 0;
	return n;
}

static void merge_sites(const struct waits *w, uint32_t label, struct label_tail *ret)
{
	uint64_t slow_ns;

	*ret = (struct label_tail){0};
	for (size_t i = 0; i < w->sites.n; i++) {
		const struct wait_site *s = &w->sites.v[i];

		if (s->label != label)
			continue;
		ret->all.count += s->count;
		ret->all.max_ns = MAX(ret->all.max_ns, s->max_ns);
		for (size_t k = 0; k < OFFCPU_BUCKETS; k++)
			ret->all.buckets[k] += s->buckets[k];
	}
	slow_ns = TAIL_RATIO * wait_site_percentile(&ret->all, 50);
	for (size_t i = 0; i < w->sites.n; i++) {
		const struct wait_site *s = &w->sites.v[i];
		uint64_t n = s->label == label ? calls_above(s, slow_ns) : 0;

		if (n > ret->most_slow) {
			ret->most_slow = n;
			ret->worst = s;
		}
	}
}

/* "RM_FREE from refill < serve < main", the functions of its stack from the innermost outward. */
static const char *name_tail(const struct waits *w, const struct profile *p,
			     const struct wait_site *s, struct result *r)
{
	enum { CALLERS = 4 };
	const struct profile_row row = {.stack = s->stack};
	CLEANUP(strbuf_release) struct strbuf b = {0};
	struct symbol_path path = {0};
	unsigned shown = 0;

	strbuf_puts(&b, w->labels.v[s->label].text);
	if (s->stack != UINT32_MAX && !profile_row_path(p, &row, &path))
		for (size_t i = path.at.n; i > 0 && shown < CALLERS; i--) {
			const struct symbol *symbol = &p->symbols.v[path.at.v[i - 1].symbol];

			const char *module = intern_str(&p->strings, symbol->module);

			if (symbol->kind != FRAME_KERNEL && !trace_module_passes_on(module))
				strbuf_printf(&b, "%s%s", shown++ ? " < " : " from ",
					      intern_str(&p->strings, symbol->name));
		}
	array_release(&path.at);
	return result_text(r, "%s", strbuf_str(&b));
}

int gpu_stack_findings(const struct trace_values *v UNUSED, const struct recording *rec,
		       const char *target, struct result *r)
{
	const struct waits *w = rec->waits;
	struct gpu_numbers numbers = {0};
	struct label_tail most = {0};
	double ratio = 0;

	for (uint32_t label = 0; label < w->labels.n; label++) {
		struct label_tail tail;
		double median, p99;

		if (str_starts(w->labels.v[label].text, "poll ") ||
		    str_starts(w->labels.v[label].text, "epoll_wait "))
			continue;
		merge_sites(w, label, &tail);
		median = (double)wait_site_percentile(&tail.all, 50);
		p99 = (double)wait_site_percentile(&tail.all, 99);
		if (tail.all.count < ENOUGH || !tail.worst || median <= 0 || p99 / median <= ratio)
			continue;
		ratio = p99 / median;
		most = tail;
	}
	if (most.worst) {
		put(&numbers, "tail-ratio", ratio, name_tail(w, rec->profile, most.worst, r));
		put(&numbers, "tail-p99-ms",
		    (double)wait_site_percentile(&most.all, 99) / NSEC_PER_MSEC, NULL);
	}
	return judge(&numbers, target, r);
}
