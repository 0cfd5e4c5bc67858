/* SPDX-License-Identifier: BSD-2-Clause */
/* From a session to a result: the table of metrics, every run, and what they mean. */
#include "stat.h"

#include <inspect/command.h>
#include <math.h>

#define RUNNING_MARKED_BELOW 90.0 /* percent of the time on a counter */

/* --- cells ------------------------------------------------------------------------------------ */

struct cell stat_cell(double v, enum unit u, bool whole)
{
	static const enum cell_type types[] = {
		[UNIT_COUNT] = CELL_COUNT,   [UNIT_NS] = CELL_NS,
		[UNIT_BYTES] = CELL_BYTES,   [UNIT_PERCENT] = CELL_PERCENT,
		[UNIT_NUMBER] = CELL_NUMBER,
	};
	bool is_amount = u == UNIT_NS || u == UNIT_BYTES;

	if (u == UNIT_COUNT && (!whole || v != floor(v) || v < 0))
		return cell_double(CELL_NUMBER, v);
	if (is_amount || u == UNIT_COUNT)
		return cell_u64(types[u], (uint64_t)(fmax(v, 0) + 0.5));
	return cell_double(types[u], v);
}

const char *stat_run_key(struct result *r, const struct stat_metric *m)
{
	static const char *const suffixes[] = {
		[UNIT_COUNT] = "",           [UNIT_NS] = "_ns",  [UNIT_BYTES] = "_bytes",
		[UNIT_PERCENT] = "_percent", [UNIT_NUMBER] = "",
	};

	return result_text(r, "%s%s", m->name, suffixes[m->unit]);
}

/* --- the table of metrics --------------------------------------------------------------------- */

#define SHOWN_ONCE(repeated) ((repeated) ? COLUMN_DATA_ONLY : 0)
#define SHOWN_REPEATED(repeated) ((repeated) ? 0 : COLUMN_DATA_ONLY)
#define SPARE_REPEATED(repeated) ((repeated) ? COLUMN_SPARE : COLUMN_DATA_ONLY)

#define METRIC_COLUMNS(repeated)                                                                   \
	{                                                                                          \
		{"metric", "metric", CELL_TEXT, 0},                                                \
			{"value", "value", CELL_NUMBER, SHOWN_ONCE(repeated)},                     \
			{"mean", "mean", CELL_NUMBER, SHOWN_REPEATED(repeated)},                   \
			{"sd", "± σ", CELL_NUMBER, SHOWN_REPEATED(repeated)},                      \
			{"low", "95 % from", CELL_NUMBER, SHOWN_REPEATED(repeated)},               \
			{"high", "to", CELL_NUMBER, SHOWN_REPEATED(repeated)},                     \
			{"median", "median", CELL_NUMBER, SPARE_REPEATED(repeated)},               \
			{"outliers", "outliers", CELL_COUNT, SPARE_REPEATED(repeated)},            \
			{"mad", "MAD", CELL_NUMBER, SPARE_REPEATED(repeated)},                     \
			{"min", "min", CELL_NUMBER, SPARE_REPEATED(repeated)},                     \
			{"max", "max", CELL_NUMBER, SPARE_REPEATED(repeated)},                     \
			{"runs", "", CELL_COUNT, COLUMN_DATA_ONLY},                                \
			{"reason", "", CELL_TEXT, COLUMN_DATA_ONLY},                               \
			{"running_percent", "", CELL_PERCENT, COLUMN_DATA_ONLY},                   \
			{"event", "", CELL_TEXT, COLUMN_DATA_ONLY},                                \
			{"unit", "", CELL_TEXT, COLUMN_DATA_ONLY},                                 \
			{"side", "", CELL_TEXT, COLUMN_DATA_ONLY},                                 \
			{"note", "", CELL_TEXT, COLUMN_CUT},                                       \
	}
static const struct column once_columns[] = METRIC_COLUMNS(false);
static const struct column repeated_columns[] = METRIC_COLUMNS(true);

/* Formats come from the table of derived values. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_derived(struct strbuf *b, const char *metric, const struct saved_stat *now)
{
	struct stat_numbers numbers = {now};

	for (size_t i = 0; i < n_stat_derived; i++) {
		const struct stat_derived *derived = &stat_derived[i];
		double v;

		if (!stat_is_metric(metric, derived->beside))
			continue;
		v = stat_number(&numbers, derived->name);
		if (isnan(v))
			continue;
		strbuf_puts(b, b->n ? " · " : "");
		strbuf_printf(b, derived->shown, v);
	}
}
#pragma GCC diagnostic pop

static const char *note_text(struct result *r, const struct stat_metric *m,
			     const struct saved_stat *now, bool first_side)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	if (m->event_name && m->running_percent < 99.5)
		strbuf_printf(&b, "counted %.0f %% of the time, scaled%s", m->running_percent,
			      m->running_percent < RUNNING_MARKED_BELOW ? " (!)" : "");
	if (first_side)
		put_derived(&b, m->name, now);
	return result_text(r, "%s", strbuf_str(&b));
}

static struct cell event_cell(struct result *r, const struct stat_metric *m)
{
	if (m->source != FROM_EVENT)
		return cell_null(r, "not a perf event");
	return m->event_name ? cell_text(r, m->event_name) : cell_null(r, "not opened");
}

static int add_metric(const struct stat_session *s, size_t metric, unsigned side,
		      const struct saved_stat *now, struct result *r, size_t section)
{
	const struct stat_metric *m = &s->metrics.v[metric];
	const char *why = m->reason ? result_text(r, "not counted: %s", m->reason) : "not measured";
	struct series series;
	struct summary sum;
	int err = stat_metric_series(s, metric, side, &series);
	bool known = !err && series.n;

	if (known)
		err = series_summary(series, &sum);
	if (!err) {
#define CELL(v, whole) (known ? stat_cell(v, m->unit, whole) : cell_null(r, why))
		result_row(r, section,
			   (const struct cell[]){
				   cell_text(r, m->name),
				   CELL(sum.median, true),
				   CELL(sum.mean, false),
				   CELL(sum.sd, false),
				   CELL(sum.low, false),
				   CELL(sum.high, false),
				   CELL(sum.median, true),
				   known ? cell_u64(CELL_COUNT, sum.outliers) : cell_null(r, why),
				   CELL(sum.mad, false),
				   CELL(sum.min, true),
				   CELL(sum.max, true),
				   cell_u64(CELL_COUNT, series.n),
				   cell_text(r, known ? "" : why),
				   known ? cell_double(CELL_PERCENT, m->running_percent)
					 : cell_null(r, why),
				   event_cell(r, m),
				   cell_text(r, unit_name(m->unit)),
				   cell_text(r, side ? "b" : "a"),
				   cell_text(r, note_text(r, m, now, !side)),
			   });
#undef CELL
	}
	free((double *)series.v);
	return err;
}

static size_t judged_runs(const struct stat_session *s, unsigned side)
{
	size_t n = 0;

	for (size_t i = 0; i < s->runs.n; i++)
		n += s->runs.v[i].judged && s->runs.v[i].side == side;
	return n;
}

static int add_metrics(const struct stat_session *s, const struct saved_stat *now, struct result *r)
{
	bool repeated = judged_runs(s, 0) > 1;
	const char *titles[] = {"", ""};
	int err = 0;

	if (s->v->versus) {
		titles[0] = result_text(r, "A: %s", s->command);
		titles[1] = result_text(r, "B: %s", s->v->versus);
	}
	for (unsigned side = 0; side < (s->v->versus ? 2U : 1U) && !err; side++) {
		size_t section = result_section(r, "metrics", titles[side],
						repeated ? repeated_columns : once_columns,
						ARRAY_SIZE(once_columns));

		for (size_t i = 0; i < s->metrics.n && !err; i++)
			err = add_metric(s, i, side, now, r, section);
	}
	return err;
}

/* --- every run -------------------------------------------------------------------------------- */

enum { RUN_COLUMNS = 5 };

static const struct column *run_columns(const struct stat_session *s, struct result *r)
{
	struct column *v = arena_alloc(&r->arena, (s->metrics.n + RUN_COLUMNS) * sizeof(*v));

	if (!v)
		return NULL;
	v[0] = (struct column){"side", "", CELL_TEXT, COLUMN_DATA_ONLY};
	v[1] = (struct column){"run", "", CELL_COUNT, COLUMN_DATA_ONLY};
	v[2] = (struct column){"attempt", "", CELL_COUNT, COLUMN_DATA_ONLY};
	v[3] = (struct column){"judged", "", CELL_BOOL, COLUMN_DATA_ONLY};
	v[4] = (struct column){"exit_code", "", CELL_COUNT, COLUMN_DATA_ONLY};
	for (size_t i = 0; i < s->metrics.n; i++)
		v[RUN_COLUMNS + i] = (struct column){stat_run_key(r, &s->metrics.v[i]), "",
						     CELL_NUMBER, COLUMN_DATA_ONLY};
	return v;
}

static void add_runs(const struct stat_session *s, struct result *r)
{
	const struct column *columns = run_columns(s, r);
	CLEANUP(freep)
	struct cell *cells = calloc(s->metrics.n + RUN_COLUMNS, sizeof(*cells));
	uint64_t numbers[2] = {0};
	size_t section;

	if (!columns || !cells) {
		r->failed = true;
		return;
	}
	section = result_section(r, "runs", "", columns, s->metrics.n + RUN_COLUMNS);
	for (size_t i = 0; i < s->runs.n; i++) {
		const struct stat_run *run = &s->runs.v[i];

		cells[0] = cell_text(r, run->side ? "b" : "a");
		cells[1] = cell_u64(CELL_COUNT, ++numbers[run->side]);
		cells[2] = cell_u64(CELL_COUNT, run->attempt + 1);
		cells[3] = cell_bool(run->judged);
		cells[4] = s->target.argv ? cell_u64(CELL_COUNT, (uint64_t)run->exit_code)
					  : cell_null(r, "no command was run");
		for (size_t k = 0; k < s->metrics.n; k++)
			cells[RUN_COLUMNS + k] =
				isnan(run->values[k])
					? cell_null(r, s->metrics.v[k].reason
							       ? s->metrics.v[k].reason
							       : "not measured")
					: stat_cell(run->values[k], s->metrics.v[k].unit, true);
		result_row(r, section, cells);
	}
}

/* --- what follows ----------------------------------------------------------------------------- */

static void add_derived(const struct saved_stat *now, struct result *r)
{
	static const struct column columns[] = {
		{"name", "", CELL_TEXT, COLUMN_DATA_ONLY},
		{"value", "", CELL_NUMBER, COLUMN_DATA_ONLY},
		{"unit", "", CELL_TEXT, COLUMN_DATA_ONLY},
	};
	struct stat_numbers numbers = {now};
	size_t section = result_section(r, "derived", "", columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < n_stat_derived; i++) {
		double v = stat_number(&numbers, stat_derived[i].name);

		result_row(r, section,
			   (const struct cell[]){
				   cell_text(r, stat_derived[i].name),
				   isnan(v) ? cell_null(r, "what it follows from is not counted")
					    : cell_double(CELL_NUMBER, v),
				   cell_text(r, unit_name(stat_derived[i].unit)),
			   });
	}
}

static const char *first_line(const struct saved_stat *now, const findings *f, const char *target,
			      struct result *r)
{
	struct stat_numbers numbers = {now};
	CLEANUP(strbuf_release) struct strbuf b = {0};
	double cpus = stat_number(&numbers, "cpus-used"),
	       sys = stat_number(&numbers, "sys-percent");
	double ipc = stat_number(&numbers, "ipc");

	strbuf_puts(&b, "target");
	if (str_starts(target, "-C "))
		strbuf_printf(&b, " (-C %.*s)", (int)strcspn(target + 3, " "), target + 3);
	if (!isnan(cpus))
		strbuf_printf(&b, " %.2f of %s CPUs", cpus, saved_stat_fact(now, "cpus"));
	if (!isnan(sys))
		strbuf_printf(&b, " · %.0f %% of it in the kernel", sys);
	if (!isnan(ipc))
		strbuf_printf(&b, " · IPC %.2f", ipc);
	for (size_t i = 0; i < f->n; i++)
		strbuf_printf(&b, "%s%s", i ? ", " : " · ", f->v[i].rule->name);
	if (f->n)
		strbuf_printf(&b, " → next: %s", f->v[0].next);
	else
		strbuf_printf(&b, " → next: inspect record %s", target);
	return result_text(r, "%s", strbuf_str(&b));
}

int stat_findings(const struct saved_stat *now, const char *target, struct result *r)
{
	findings f = {0};
	struct stat_numbers numbers = {now};
	int err = findings_evaluate(stat_rules, n_stat_rules, stat_number, &numbers, target, r, &f);

	if (!err) {
		result_fact(r, "summary", "", cell_text(r, first_line(now, &f, target, r)));
		if (!f.n && stat_number(&numbers, "cpu-seconds") <= STAT_ENOUGH_CPU_SECONDS)
			result_note(r, "too short for a verdict: most rules need %g s of CPU time",
				    STAT_ENOUGH_CPU_SECONDS);
		else if (!f.n)
			result_note(r, "nothing stands out: see --explain for the rules");
		findings_section(r, "", &f);
	}
	array_release(&f);
	return err;
}

/* --- facts ------------------------------------------------------------------------------------ */

static void add_failures(const struct stat_session *s, struct result *r)
{
	bool timed_out;
	int code = stat_session_exit_code(s, &timed_out);
	size_t failed = 0;

	for (size_t i = 0; i < s->runs.n; i++)
		failed += s->runs.v[i].exit_code != 0;
	result_fact(r, "exit_code", "",
		    s->target.argv ? cell_u64(CELL_COUNT, (uint64_t)code)
				   : cell_null(r, "no command was run"));
	result_fact(r, "timed_out", "", cell_bool(timed_out));
	result_fact(r, "failed_runs", "", cell_u64(CELL_COUNT, failed));
	if (timed_out)
		result_note(r, "the command was ended by --timeout");
	else if (code > 128)
		result_note(r, "the command was killed by signal %d in %zu of %zu runs", code - 128,
			    failed, s->runs.n);
	else if (code)
		result_note(r, "the command ended with exit code %d in %zu of %zu runs", code,
			    failed, s->runs.n);
}

static void add_facts(const struct stat_session *s, struct result *r)
{
	size_t runs = judged_runs(s, 0);

	result_fact(r, "command", s->command ? "command" : "",
		    s->command ? cell_text(r, s->command) : cell_null(r, "no command was run"));
	result_fact(r, "target", s->command && !s->target.cmd_times_only ? "" : "target",
		    cell_text(r, s->target_given));
	result_fact(r, "repeat", runs > 1 ? "runs" : "", cell_u64(CELL_COUNT, runs));
	result_fact(r, "warmup", "", cell_u64(CELL_COUNT, s->v->warmup));
	result_fact(r, "attempts", s->attempt > 1 ? "attempts" : "",
		    cell_u64(CELL_COUNT, s->attempt));
	result_fact(r, "interrupted", "", cell_bool(s->interrupted));
	add_failures(s, r);
	stat_environment_facts(s, r);
	/* Less is not seen in the numbers either. */
	if (s->left_out_cpus >= 0.05)
		result_note(r,
			    "%zu child process%s used %.1f CPUs and %s not counted; add --children",
			    s->left_out, s->left_out == 1 ? "" : "es", s->left_out_cpus,
			    s->left_out == 1 ? "is" : "are");
	for (size_t i = 0; i < s->notes.n; i++)
		result_note(r, "%s", s->notes.v[i]);
}

int stat_report(struct stat_session *s, const struct saved_stat *now, struct result *r,
		struct diag *d)
{
	int err;

	add_facts(s, r);
	err = add_metrics(s, now, r);
	if (!err && s->v->versus)
		err = stat_comparison_section(s, r);
	if (!err) {
		add_runs(s, r);
		add_derived(now, r);
		stat_places_sections(s, r);
		err = stat_findings(now, s->target_text, r);
	}
	return diag_errno(d, err, "stat");
}
