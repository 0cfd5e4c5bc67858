/* SPDX-License-Identifier: BSD-2-Clause */
/* What GPU calls mean. */
#include "trace_gpu.h"

#include <math.h>

enum {
	ENOUGH = 100,    /* calls, to speak of their tail */
	TAIL_RATIO = 10, /* to the median */
};

const struct finding_rule gpu_rules[] = {
	{
		.name = "gpu-driver-lock",
		.tests = {{"crowded-ratio", ABOVE, 1.8,
			   "calls take %.1f times as long beside another thread's"},
			  {"crowded-calls", ABOVE, 50, NULL}},
		.means = "the driver takes calls one after the other: threads queue behind each "
			 "other",
		.next = "inspect trace --gpu -c --by thread,call {target}",
		.source = "one lock of the driver's: a call takes from the end of the one before "
			  "what it takes alone",
	},
	{
		.name = "gpu-failing-calls",
		.tests = {{"failing-per-second", ABOVE, 10, "%.0f times a second"},
			  {"failing-calls", ABOVE, 20, NULL}},
		.means = "the same call fails again and again",
		.next = "inspect trace --gpu --failed {target}",
		.source =
			"a driver call costs 5 to 500 µs, failed or not; in a process's first ten "
			"seconds 500 of them at the least",
	},
	{
		.name = "gpu-memory-calls",
		.tests = {{"memory-per-second", ABOVE, 10, "%.0f a second"},
			  {"memory-wall-percent", ABOVE, 1,
			   "together %.1f %% of one thread's time"},
			  {"memory-pairs", ABOVE, 20, NULL}},
		.means = "GPU memory is allocated or mapped and given back all the time",
		.next = "inspect trace --gpu -c --by group,thread {target}",
		.source = "a caching allocator makes no calls once it is warm; in at least every "
			  "other second, from a process's tenth on",
	},
	{
		.name = "gpu-open-slow",
		.tests = {{"open-ms", ABOVE, 100, "%.0f ms"}},
		.means = "the driver initializes the GPU at each first open: no persistence daemon",
		.next = "nvidia-smi -pm 1",
		.source = "NVIDIA's Driver Persistence documentation",
	},
	{
		.name = "gpu-pollers",
		.tests = {{"queries-per-second", ABOVE, 20, "%.0f queries a second"},
			  {"queries-wall-percent", ABOVE, 1,
			   "together %.1f %% of one thread's time"}},
		.means = "it asks the driver for its state all the time (NVML), and each "
			 "query may hold up the calls of others",
		.next = "inspect trace --gpu -c --by group,comm -a -d 10",
		.source =
			"a monitor asks some 10 values a second; the same ones, in at least every "
			"other second, after a process's first ten",
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
		.name = "gpu-sync",
		.tests = {{"sync-wall-percent", ABOVE, 50, "%.0f %% of this thread's time"}},
		.means = "a thread sleeps until the GPU is done",
		.next = "inspect offcpu {target}",
		.source = "half of a thread's time, in waits of which nine in ten are ended by the "
			  "device and not by time; of an epoll set that has other files too nobody "
			  "knows which it was",
	},
};
const size_t n_gpu_rules = ARRAY_SIZE(gpu_rules);

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

/* Whether it goes on for as long as was measured: in every other second at the least. */
static bool is_steady(uint32_t in_seconds, double seconds)
{
	return 2 * in_seconds >= MAX(seconds, 1);
}

/* What a process name does of one kind. */
struct doer {
	const char *comm;
	uint64_t takes, gives, calls, ns;
	uint32_t seconds;
};
typedef ARRAY(struct doer) doers;

static struct doer *doer_of(doers *all, const struct gpu_key *key, struct result *r)
{
	const char *comm = result_text(r, "%.*s", GPU_COMM, key->comm);

	for (size_t i = 0; i < all->n; i++)
		if (str_eq(all->v[i].comm, comm))
			return &all->v[i];
	return array_push(all, (struct doer){.comm = comm}) ? NULL : &all->v[all->n - 1];
}

/* Of the process name that allocates, maps and gives back most. What it has not given back, and
 * what it did at its start, is how it came to its memory. */
static int add_memory(const struct gpu_run *run, double seconds, struct result *r,
		      struct gpu_numbers *numbers)
{
	const struct gpu_table *t = &run->tracing.table;
	const struct doer *most = NULL;
	doers all = {0};

	for (size_t i = 0; i < t->rows.n; i++) {
		const struct gpu_count *row = &t->rows.v[i];
		enum gpu_effect effect = gpu_call_effect(&row->key);
		bool memory = str_eq(gpu_call_group(&run->choice.version, &row->key), "memory");
		struct doer *d;

		if (row->starting || gpu_call_failed(&row->key) || (!memory && effect != GPU_GIVES))
			continue;
		d = doer_of(&all, &row->key, r);
		if (!d) {
			array_release(&all);
			return -ENOMEM;
		}
		d->takes += effect == GPU_TAKES ? row->calls : 0;
		d->gives += effect == GPU_GIVES ? row->calls : 0;
		d->ns += row->h.sum;
		d->seconds = MAX(d->seconds, row->seconds);
	}
	for (size_t i = 0; i < all.n; i++) {
		all.v[i].calls = MIN(all.v[i].takes, all.v[i].gives);
		if (is_steady(all.v[i].seconds, seconds) && (!most || all.v[i].calls > most->calls))
			most = &all.v[i];
	}
	if (most) {
		put(numbers, "memory-per-second", (double)most->calls / seconds, most->comm);
		put(numbers, "memory-wall-percent", (double)most->ns / 1e7 / seconds, NULL);
		put(numbers, "memory-pairs", (double)most->calls, NULL);
	}
	array_release(&all);
	return 0;
}

/* Whether it is asked again and again: what a program asks when it starts is many calls, but a few
 * of each. Programs that start all the time ask all the time too. */
static bool is_polled(const struct gpu_count *row, double seconds)
{
	enum { AGAIN = 20, STARTS_SECONDS = 10 };

	return row->calls >= AGAIN && is_steady(row->seconds, seconds) &&
	       (!row->starting || row->seconds >= STARTS_SECONDS);
}

/* Of the process name that asks most. */
static int add_pollers(const struct gpu_run *run, double seconds, struct result *r,
		       struct gpu_numbers *numbers)
{
	const struct gpu_table *t = &run->tracing.table;
	const struct doer *most = NULL;
	doers all = {0};

	for (size_t i = 0; i < t->rows.n; i++) {
		const struct gpu_count *row = &t->rows.v[i];
		struct doer *d;

		if (!is_polled(row, seconds) ||
		    !str_eq(gpu_call_group(&run->choice.version, &row->key), "queries"))
			continue;
		d = doer_of(&all, &row->key, r);
		if (!d) {
			array_release(&all);
			return -ENOMEM;
		}
		d->calls += row->calls;
		d->ns += row->h.sum;
	}
	for (size_t i = 0; i < all.n; i++)
		if (!most || all.v[i].ns > most->ns)
			most = &all.v[i];
	if (most) {
		put(numbers, "queries-per-second", (double)most->calls / seconds, most->comm);
		put(numbers, "queries-wall-percent", (double)most->ns / 1e7 / seconds, NULL);
	}
	array_release(&all);
	return 0;
}

/* Of the thread that waits most. In an event loop most waits are ended by time, or by something
 * else that it listens to. */
static void add_waiters(const struct gpu_run *run, double seconds, struct result *r,
			struct gpu_numbers *numbers)
{
	enum { FEW = 5 };
	const struct gpu_table *t = &run->tracing.table;
	const struct gpu_waiter *most = NULL;

	for (size_t i = 0; i < t->waiters.n; i++) {
		const struct gpu_waiter *w = &t->waiters.v[i];

		if (w->ended >= FEW && 10 * w->ended >= 9 * (w->ended + w->others) &&
		    (!most || w->ended_ns > most->ended_ns))
			most = w;
	}
	if (most)
		put(numbers, "sync-wall-percent", (double)most->ended_ns / 1e7 / seconds,
		    result_text(r, "%.*s", GPU_COMM, most->comm));
}

/* A call that waits for another's end takes from there on what it takes alone. Calls side by side
 * end whenever they end, however long they are. */
static bool is_queued(const struct gpu_queue *q)
{
	enum { FEW = 20 };

	return q->alone > FEW && q->judged > FEW && 4 * q->early <= q->judged &&
	       (double)q->judged_ns / (double)q->judged <
		       1.5 * (double)q->alone_ns / (double)q->alone;
}

static void add_queues(const struct gpu_run *run, struct result *r, struct gpu_numbers *numbers)
{
	const struct gpu_table *t = &run->tracing.table;
	const struct gpu_queued *most = NULL;
	CLEANUP(strbuf_release) struct strbuf call = {0};
	double most_ratio = 0;

	for (size_t i = 0; i < t->queues.n; i++) {
		const struct gpu_queue *q = &t->queues.v[i].v;
		double ratio;

		if (!is_queued(q) || !q->alone_ns)
			continue;
		ratio = ((double)q->crowded_ns / (double)q->crowded) /
			((double)q->alone_ns / (double)q->alone);
		if (ratio > most_ratio) {
			most_ratio = ratio;
			most = &t->queues.v[i];
		}
	}
	if (!most)
		return;
	for (size_t i = 0; i < t->rows.n && !call.n; i++) {
		const struct gpu_key *key = &t->rows.v[i].key;

		if (key->kind == GPU_IOCTL && key->class == most->key.class &&
		    key->number == most->key.number && key->selector == most->key.selector)
			gpu_put_call(&run->choice.version, key, &call);
	}
	put(numbers, "crowded-ratio", most_ratio, result_text(r, "%s", strbuf_str(&call)));
	put(numbers, "crowded-calls", (double)most->v.crowded, NULL);
}

/* The call that a test speaks of is the one with the greatest value. */
static void add_calls(const gpu_lines *calls, struct gpu_numbers *numbers)
{
	const struct gpu_line *tail = NULL;
	double tail_ratio = 0;

	for (size_t i = 0; i < calls->n; i++) {
		const struct gpu_line *l = &calls->v[i];
		double median = (double)histogram_percentile(&l->h, 50);
		double p99 = (double)histogram_percentile(&l->h, 99);

		if (l->h.n < ENOUGH || median <= 0 || p99 / median <= tail_ratio ||
		    str_eq(l->part[GPU_PART_CALL], "poll") ||
		    str_eq(l->part[GPU_PART_CALL], "epoll_wait"))
			continue;
		tail_ratio = p99 / median;
		tail = l;
	}
	if (!tail)
		return;
	put(numbers, "tail-ratio", tail_ratio, tail->part[GPU_PART_CALL]);
	put(numbers, "tail-p99-ms", (double)histogram_percentile(&tail->h, 99) / NSEC_PER_MSEC,
	    NULL);
}

/* Of a GPU, "nvidia0"; the other nodes have nothing to initialize. */
static void add_opens(const struct gpu_run *run, struct gpu_numbers *numbers)
{
	const struct gpu_table *t = &run->tracing.table;
	uint64_t max_ns = 0;

	for (size_t i = 0; i < t->rows.n; i++) {
		const struct gpu_key *key = &t->rows.v[i].key;
		CLEANUP(strbuf_release) struct strbuf device = {0};
		const char *name;

		if (key->kind != GPU_OPEN || gpu_call_failed(key))
			continue;
		gpu_device_put(&run->choice.devices, key, &device);
		name = strbuf_str(&device);
		if (str_starts(name, "nvidia") && name[6] >= '0' && name[6] <= '9')
			max_ns = MAX(max_ns, t->rows.v[i].h.max);
	}
	if (max_ns)
		put(numbers, "open-ms", (double)max_ns / NSEC_PER_MSEC, "open");
}

/* A program that starts tries what the driver may not have, but not hundreds of times. */
static void add_failures(const struct gpu_run *run, double seconds, struct result *r,
			 struct gpu_numbers *numbers)
{
	enum { LOOP = 500 };
	const struct gpu_table *t = &run->tracing.table;
	const struct gpu_count *most = NULL;
	CLEANUP(strbuf_release) struct strbuf call = {0};

	for (size_t i = 0; i < t->rows.n; i++)
		if (gpu_call_failed(&t->rows.v[i].key) &&
		    (!t->rows.v[i].starting || t->rows.v[i].calls >= LOOP) &&
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
	gpu_lines calls = {0};
	int err;

	if (seconds <= 0)
		return 0;
	err = gpu_lines_of(run, 1u << GPU_PART_CALL, r, &calls);
	if (!err)
		err = add_memory(run, seconds, r, numbers);
	if (!err)
		err = add_pollers(run, seconds, r, numbers);
	if (!err) {
		add_calls(&calls, numbers);
		add_opens(run, numbers);
		add_queues(run, r, numbers);
		add_waiters(run, seconds, r, numbers);
		add_failures(run, seconds, r, numbers);
	}
	array_release(&calls);
	return err;
}

/* The rules as --limit has them, with the devices in the commands that they propose. */
static struct finding_rule *make_rules(const struct trace_values *v, struct result *r)
{
	static const char command[] = "inspect trace --gpu";
	struct finding_rule *rules = trace_limited_rules(v, gpu_rules, n_gpu_rules, r);
	CLEANUP(strbuf_release) struct strbuf options = {0};

	gpu_choice_put(&v->gpu_choice, &options);
	for (size_t i = 0; i < n_gpu_rules && rules && options.n; i++)
		if (str_starts(rules[i].next, command))
			rules[i].next = result_text(r, "%s%s%s", command, strbuf_str(&options),
						    rules[i].next + strlen(command));
	return options.failed ? NULL : rules;
}

/* What the numbers mean, into the result's head. */
static int judge(const struct trace_values *v, struct gpu_numbers *numbers, const char *target,
		 struct result *r)
{
	const struct finding_rule *rules = make_rules(v, r);
	findings f = {0};
	int err = rules ? findings_evaluate(rules, n_gpu_rules, number, numbers, target, r, &f)
			: -ENOMEM;

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

	return err ? err : judge(run->v, &numbers, strbuf_str(&run->target_text), r);
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

int gpu_stack_findings(const struct trace_values *v, const struct recording *rec,
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
		    str_starts(w->labels.v[label].text, "epoll_wait ") ||
		    w->labels.v[label].from_before)
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
	return judge(v, &numbers, target, r);
}
