/* SPDX-License-Identifier: BSD-2-Clause */
/* An inference engine: where its metrics are, readings of them, rows. */
#include "engine.h"
#include "http.h"

#include <fcntl.h>
#include <inspect/clock.h>

enum {
	PAGE_BYTES_MAX = 16 << 20,
	GET_MS = 3000,
	AGAIN_MS = 1000, /* once it did not answer in time */
	TRY_MS = 300,
	FIND_MS = 1000, /* all ports together */
	URL_SIZE = 256,
	WHY_SIZE = 160,
	WHY_ALL_SIZE = ENGINE_PORTS_MAX * WHY_SIZE, /* of all ports */
};

struct engine_session {
	struct http *http;
	char url[URL_SIZE]; /* "" none was found */
	char why[WHY_ALL_SIZE];
	bool found; /* by itself */
	bool slow;  /* it did not answer in time, the last time */
	pid_t pid;  /* whose network it is in; 0: ours */
	int net_fd; /* that network; -1 */
};

struct engine_reading {
	struct engine_page page;
	char why[WHY_ALL_SIZE]; /* of no data; "" it was read */
	bool read;
};

struct engine_reading *engine_reading_new(void)
{
	return calloc(1, sizeof(struct engine_reading));
}

void engine_reading_free(struct engine_reading *e)
{
	free(e);
}

double engine_running(const struct engine_reading *e)
{
	return e->read ? e->page.values[ENGINE_RUNNING] : NAN;
}

static int get_page(const struct engine_session *e, const char *url, unsigned timeout_ms,
		    struct engine_page *ret, char *why)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	int err = http_get(e->http, url, timeout_ms, PAGE_BYTES_MAX, &text, why, WHY_SIZE);

	if (!err) {
		err = engine_parse(strbuf_str(&text), text.n, ret);
		snprintf(why, WHY_SIZE, "%s", "too many lines");
	}
	if (!err && !ret->engine) {
		snprintf(why, WHY_SIZE, "%s", "no metrics of an engine that is known");
		err = -ENOMSG;
	}
	return err;
}

static int open_network(const char *root, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "%.32s/proc/%d/ns/net", root, (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* 0: there are metrics of an engine. -ETIME: no time was left. Else why the first path has none. */
static int try_port(struct engine_session *e, const struct engine_port *p, uint64_t end_ns,
		    char *why)
{
	static const char *const paths[] = {"/metrics", "/prometheus/metrics"};
	char other_why[WHY_SIZE];
	struct engine_page page;
	int err = -ETIME;

	for (size_t k = 0; k < ARRAY_SIZE(paths); k++) {
		uint64_t now_ns = clock_now_ns();
		uint64_t left_ms = now_ns < end_ns ? (end_ns - now_ns) / NSEC_PER_MSEC : 0;
		char url[URL_SIZE];

		if (!left_ms)
			return err;
		snprintf(url, sizeof(url), "http://%s:%u%s", p->v6 ? "[::1]" : "127.0.0.1", p->port,
			 paths[k]);
		err = get_page(e, url, (unsigned)MIN(left_ms, (uint64_t)TRY_MS), &page,
			       k ? other_why : why);
		if (!err) {
			memcpy(e->url, url, sizeof(e->url));
			return 0;
		}
		if (err == -ETIMEDOUT || err == -EIO)
			return err; /* no HTTP: nor by another path */
	}
	return err;
}

/* One more port without an engine. */
static void add_why(struct engine_session *e, const struct engine_port *p, int err, const char *why)
{
	size_t n = strlen(e->why);
	char *at = e->why + n;

	n = sizeof(e->why) - n;
	if (err == -ETIMEDOUT && p->pid)
		snprintf(at, n, "; port %u: no answer within %.1f s", p->port, TRY_MS / 1e3);
	else if (err == -ETIMEDOUT)
		snprintf(at, n,
			 "; port %u: no answer within %.1f s (--engine http://%s:%u/metrics waits "
			 "%d s)",
			 p->port, TRY_MS / 1e3, p->v6 ? "[::1]" : "127.0.0.1", p->port,
			 GET_MS / 1000);
	else if (err == -ETIME)
		snprintf(at, n, "; port %u: not asked, the others took %d s (--engine URL)",
			 p->port, FIND_MS / 1000);
	else
		snprintf(at, n, "; port %u: %s", p->port, why);
}

/* Ports of the target are asked one after the other, as a monitoring system would. */
static void find(struct engine_session *e, const struct use_config *c)
{
	uint64_t end_ns = clock_now_ns() + FIND_MS * NSEC_PER_MSEC;
	struct engine_port ports[ENGINE_PORTS_MAX];
	const char *reason = "";
	size_t n = engine_ports(c->root, c->pids, c->n_pids, ports, &reason);

	snprintf(e->why, sizeof(e->why), "%s",
		 n ? "no port of the target has metrics of an engine" : reason);
	for (size_t i = 0; i < n && !e->found; i++) {
		int fd = ports[i].pid ? open_network(c->root, ports[i].pid) : -1, err = -EPERM;
		char why[WHY_SIZE] = "in another network namespace, which root alone may enter";

		if (!ports[i].pid || http_may_enter(fd)) {
			http_set_network(e->http, fd);
			err = try_port(e, &ports[i], end_ns, why);
		}
		e->found = !err;
		if (err) {
			add_why(e, &ports[i], err, why);
			closep(&fd);
			continue;
		}
		e->pid = ports[i].pid;
		e->net_fd = fd;
	}
	if (!e->found)
		http_set_network(e->http, -1);
}

struct engine_session *engine_open(const struct use_config *c)
{
	struct engine_session *e = calloc(1, sizeof(*e));
	const char *reason = "";

	if (!e)
		return NULL;
	e->net_fd = -1;
	e->http = http_open(&reason);
	if (!e->http)
		snprintf(e->why, sizeof(e->why), "%s", reason);
	else if (c->engine)
		snprintf(e->url, sizeof(e->url), "%s", c->engine);
	else
		find(e, c);
	return e;
}

void engine_close(struct engine_session *e)
{
	if (!e)
		return;
	http_close(e->http);
	closep(&e->net_fd);
	free(e);
}

void engine_read(struct engine_session *e, struct engine_reading *ret)
{
	int err;

	*ret = (struct engine_reading){0};
	snprintf(ret->why, sizeof(ret->why), "%s", e->why);
	if (!e->url[0])
		return;
	err = get_page(e, e->url, e->slow ? AGAIN_MS : GET_MS, &ret->page, ret->why);
	ret->read = !err;
	e->slow = err == -ETIMEDOUT;
}

/* --- rows ------------------------------------------------------------------------------------- */

static const char *const value_names[ENGINE_VALUES] = {
	[ENGINE_RUNNING] = "running requests", [ENGINE_WAITING] = "waiting requests",
	[ENGINE_KV] = "use of the KV cache",   [ENGINE_PREEMPTED] = "preemptions",
	[ENGINE_FAILED] = "failed requests",
};

/* Why there is no value. */
static const char *lacks(const struct interval *i, enum engine_value value, struct use_report *r)
{
	const struct engine_page *now = &i->now->engine->page, *before = &i->before->engine->page;
	const struct engine_page *odd = now->is_odd[value] ? now : before;

	if (odd->is_odd[value])
		return report_text(r, "%s: exported, but as %s", value_names[value],
				   isnan(odd->odd[value])   ? "NaN"
				   : isinf(odd->odd[value]) ? "an infinity"
							    : "a number out of its range");
	return report_text(r, "%s: %s", value_names[value],
			   isnan(now->values[value]) ? "not exported by this engine"
						     : "not exported before");
}

static void queue_row(const struct interval *i, const char *name, struct use_report *r)
{
	const double *now = i->now->engine->page.values, *before = i->before->engine->page.values;
	double queue = engine_quantile(&i->now->engine->page.times[ENGINE_QUEUE],
				       &i->before->engine->page.times[ENGINE_QUEUE], 0.99);
	struct use_row *row = row_add(r, "engine", "request queue", name);
	struct use_value *v;

	row_put_or(r, row, "requests_running", now[ENGINE_RUNNING], lacks(i, ENGINE_RUNNING, r));
	row_put_or(r, row, "requests_waiting", now[ENGINE_WAITING], lacks(i, ENGINE_WAITING, r));
	if (now[ENGINE_WAITING] >= 0 && now[ENGINE_RUNNING] >= 0) {
		v = row_put(r, row, "waiting_per_running",
			    now[ENGINE_WAITING] / fmax(now[ENGINE_RUNNING], 1));
		if (v && v->v <= 1)
			v->text = "";
	}
	if (!isnan(queue))
		row_put(r, row, "queue_time_p99_ms", queue * 1e3);
	row_put_or(r, row, "requests_failed_per_second",
		   rate_of(now[ENGINE_FAILED], before[ENGINE_FAILED], i->seconds),
		   lacks(i, ENGINE_FAILED, r));
}

static void kv_row(const struct interval *i, const char *name, struct use_report *r)
{
	const double *now = i->now->engine->page.values, *before = i->before->engine->page.values;
	struct use_row *row = row_add(r, "engine", "KV cache", name);

	row_put_or(r, row, "kv_cache_percent", 100 * now[ENGINE_KV], lacks(i, ENGINE_KV, r));
	row_put_or(r, row, "preemptions_per_second",
		   rate_of(now[ENGINE_PREEMPTED], before[ENGINE_PREEMPTED], i->seconds),
		   lacks(i, ENGINE_PREEMPTED, r));
}

static void time_rows(const struct interval *i, const char *name, struct use_report *r)
{
	static const struct {
		enum engine_time time;
		const char *resource, *median, *high;
	} rows[] = {
		{ENGINE_FIRST_TOKEN, "first token", "first_token_p50_ms", "first_token_p99_ms"},
		{ENGINE_PER_TOKEN, "per token", "per_token_p50_ms", "per_token_p99_ms"},
		{ENGINE_PREFILL, "prefill", "prefill_p50_ms", "prefill_p99_ms"},
		{ENGINE_DECODE, "decode", "decode_p50_ms", "decode_p99_ms"},
	};

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		const struct engine_histogram *now = &i->now->engine->page.times[rows[k].time];
		const struct engine_histogram *before =
			&i->before->engine->page.times[rows[k].time];
		struct use_row *row;

		if (!now->n)
			continue;
		row = row_add(r, "engine", rows[k].resource, name);
		row_put_or(r, row, rows[k].median, 1e3 * engine_quantile(now, before, 0.5),
			   "none came in this time");
		row_put_or(r, row, rows[k].high, 1e3 * engine_quantile(now, before, 0.99),
			   "none came in this time");
	}
}

void engine_rows(const struct interval *i, struct use_report *r)
{
	const struct engine_reading *now = i->now->engine, *before = i->before->engine;
	const char *name = now->page.engine ? now->page.engine : "";
	const char *why = i->engine ? now->why : "--engine URL, or -p PID finds it";
	struct use_row *row;

	if (!i->engine || !now->read || !before->read) {
		row = row_add(r, "engine", "engine", "");
		if (i->engine && now->read)
			why = before->why;
		row_lacks(r, row, "requests_running", report_text(r, "%s", why));
		/* It was asked for: who asks must see on the first screen that there is none. */
		if (i->config->engine)
			report_note(r, "--engine %s gave nothing: %s", i->config->engine, why);
		return;
	}
	if (i->engine->pid)
		report_note(r, "%s was found at %s in the network of process %d", name,
			    i->engine->url, (int)i->engine->pid);
	else if (i->engine->found)
		report_note(r, "%s was found at %s", name, i->engine->url);
	if (now->page.bad_lines)
		report_note(r, "%d lines of %s are no metrics", now->page.bad_lines,
			    i->engine->url);
	queue_row(i, name, r);
	kv_row(i, name, r);
	time_rows(i, name, r);
}
