/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of a measurement: intervals of time (-I), cores, threads and cgroups (--per-…). */
#include "stat.h"

#include <dirent.h>
#include <fcntl.h>
#include <inspect/procfs.h>
#include <inspect/term.h>
#include <math.h>
#include <sys/stat.h>

enum { CGROUPS_MAX = 256, LIVE_TIME_WIDTH = 10, LIVE_WIDTH_MIN = 10 };

/* The clock of a CPU runs while that is idle: shown only to who asks for it. */
static bool is_idle_clock(const struct stat_session *s, const struct counter_event *e)
{
	return s->target.all && !s->v->events && event_is_clock(&e->attr);
}

/* The columns of both: every event that is counted. */
static int take_event_names(struct stat_session *s, const struct counters *c)
{
	int err = 0;

	for (size_t i = s->event_names.n; i < counters_events(c) && !err; i++) {
		const struct counter_event *e = counters_event(c, i);
		char *name;

		if (asprintf(&name, "%s%s", e->name, event_is_clock(&e->attr) ? "_ns" : "") < 0)
			return -ENOMEM;
		err = array_push(&s->event_names, name);
		if (err)
			free(name);
	}
	return err;
}

/* --- intervals -------------------------------------------------------------------------------- */

static struct count count_since(const struct count *now, const struct count *before)
{
	return (struct count){
		.value = now->value - before->value,
		.enabled_ns = now->enabled_ns - before->enabled_ns,
		.running_ns = now->running_ns - before->running_ns,
	};
}

static int live_width(const struct counter_event *e)
{
	return MAX((int)term_columns(e->name), LIVE_WIDTH_MIN);
}

static bool is_live(const struct stat_session *s, const struct counter_event *e)
{
	return !e->missing && !is_idle_clock(s, e);
}

/* As many columns as the terminal has room for; the rest is named once. 0 or -ENOMEM. */
static int choose_live(struct stat_session *s, const struct counters *c)
{
	CLEANUP(strbuf_release) struct strbuf left = {0};
	unsigned width = term_width(fileno(s->live)), used = LIVE_TIME_WIDTH;

	for (size_t i = 0; i < counters_events(c); i++) {
		const struct counter_event *e = counters_event(c, i);

		if (!is_live(s, e))
			continue;
		used += 2 + (unsigned)live_width(e);
		if (!width || used <= width || !s->live_events)
			s->live_events = i + 1;
		else
			strbuf_printf(&left, "%s%s", left.n ? ", " : "", e->name);
	}
	if (!left.n)
		return left.failed ? -ENOMEM : 0;
	return note_add(&s->notes, "-I: columns left out for the width: %s", strbuf_str(&left));
}

static int print_live(struct stat_session *s, const struct stat_interval *interval,
		      const struct counters *c)
{
	if (!s->live)
		return 0;
	if (s->intervals.n == 1) {
		if (choose_live(s, c))
			return -ENOMEM;
		fprintf(s->live, "%*s", LIVE_TIME_WIDTH, "seconds");
		for (size_t i = 0; i < s->live_events; i++)
			if (is_live(s, counters_event(c, i)))
				fprintf(s->live, "  %*s", LIVE_WIDTH_MIN,
					counters_event(c, i)->name);
		putc('\n', s->live);
	}
	fprintf(s->live, "%*.3f", LIVE_TIME_WIDTH, (double)interval->elapsed_ns / 1e9);
	for (size_t i = 0; i < s->live_events; i++) {
		const struct counter_event *e = counters_event(c, i);

		if (!is_live(s, e))
			continue;
		if (isnan(interval->values[i]))
			fprintf(s->live, "  %*s", live_width(e), "-");
		else if (event_is_clock(&e->attr))
			fprintf(s->live, "  %*.2f ms", live_width(e) - 3,
				interval->values[i] / 1e6);
		else
			fprintf(s->live, "  %*.0f", live_width(e), interval->values[i]);
	}
	putc('\n', s->live);
	fflush(s->live);
	return 0;
}

/* The rows that result_csv would write of the section, each when it is known. */
static void print_live_csv(struct stat_session *s, const struct stat_interval *interval)
{
	if (s->intervals.n == 1) {
		fputs("section,elapsed_ns", s->live_csv);
		for (size_t i = 0; i < s->event_names.n; i++) {
			const char *quote = strchr(s->event_names.v[i], ',') ? "\"" : "";

			fprintf(s->live_csv, ",%s%s%s", quote, s->event_names.v[i], quote);
		}
		putc('\n', s->live_csv);
	}
	fprintf(s->live_csv, "intervals,%llu", (unsigned long long)interval->elapsed_ns);
	for (size_t i = 0; i < s->event_names.n; i++) {
		putc(',', s->live_csv);
		if (!isnan(interval->values[i]))
			fprintf(s->live_csv, "%.0f", floor(interval->values[i] + 0.5));
	}
	putc('\n', s->live_csv);
	fflush(s->live_csv);
}

int stat_interval_add(void *ctx, uint64_t elapsed_ns, const struct counters *c)
{
	struct stat_session *s = ctx;
	size_t n = counters_events(c);
	struct stat_interval interval = {.elapsed_ns = elapsed_ns,
					 .values = calloc(n + 1, sizeof(*interval.values))};
	int err = interval.values ? take_event_names(s, c) : -ENOMEM;

	if (!err && !s->interval_before) {
		s->interval_before = calloc(n + 1, sizeof(*s->interval_before));
		err = s->interval_before ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < n && !err; i++) {
		struct count now, delta;

		counters_total(c, i, &now);
		delta = count_since(&now, &s->interval_before[i]);
		s->interval_before[i] = now;
		interval.values[i] = NAN;
		if (!is_idle_clock(s, counters_event(c, i)))
			counters_value(c, i, &delta, &interval.values[i]);
	}
	if (!err)
		err = array_push(&s->intervals, interval);
	if (err) {
		free(interval.values);
		return err;
	}
	if (s->live_csv)
		print_live_csv(s, &interval);
	return print_live(s, &interval, c);
}

/* --- places ----------------------------------------------------------------------------------- */

static int64_t topology_of(int cpu, const char *name)
{
	char path[128];
	int64_t v = -1;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
	return file_read_i64(path, &v) ? -1 : v;
}

/* Places of one row have the same name; the CPUs of a core are found by its numbers. */
static const char *core_name(struct stat_session *s, int cpu)
{
	int64_t package = topology_of(cpu, "physical_package_id"),
		core = topology_of(cpu, "core_id");
	char buf[64];
	int n;

	if (core < 0)
		n = snprintf(buf, sizeof(buf), "CPU %d", cpu);
	else
		n = snprintf(buf, sizeof(buf), "package %lld core %lld", (long long)MAX(package, 0),
			     (long long)core);
	return arena_strndup(&s->arena, buf, (size_t)n);
}

static const char *thread_name(struct stat_session *s, pid_t tid)
{
	CLEANUP(strbuf_release) struct strbuf b = {0}, comm = {0};

	strbuf_printf(&b, "%d", (int)tid);
	if (proc_comm_read(tid, tid, &comm) == 0)
		strbuf_printf(&b, " %s", strbuf_str(&comm));
	return b.failed ? NULL : arena_strndup(&s->arena, strbuf_str(&b), b.n);
}

static const char *place_name(struct stat_session *s, const struct counter_place *p)
{
	if (s->v->per_core)
		return core_name(s, p->cpu);
	if (s->v->per_thread)
		return thread_name(s, p->tid);
	return p->cgroup == SIZE_MAX ? "all" : s->cgroup_names[p->cgroup];
}

static struct stat_place *find_place(struct stat_session *s, const char *name, size_t n_values)
{
	struct stat_place place = {.name = name};

	for (size_t i = 0; i < s->places.n; i++)
		if (str_eq(s->places.v[i].name, name))
			return &s->places.v[i];
	place.values = malloc((n_values + 1) * sizeof(*place.values));
	if (!place.values || array_push(&s->places, place)) {
		free(place.values);
		return NULL;
	}
	for (size_t i = 0; i < n_values; i++)
		place.values[i] = NAN;
	return &s->places.v[s->places.n - 1];
}

int stat_places_take(struct stat_session *s, const struct counters *c)
{
	size_t n = counters_events(c);
	int err = take_event_names(s, c);

	for (size_t p = 0; p < counters_places(c) && !err; p++) {
		const char *name = place_name(s, counters_place(c, p));
		struct stat_place *place = name ? find_place(s, name, n) : NULL;

		if (!place)
			return -ENOMEM;
		for (size_t i = 0; i < n; i++) {
			struct count one;
			double v;

			if (!counters_at(c, i, p, &one) || !counters_value(c, i, &one, &v))
				continue;
			place->values[i] = v + (isnan(place->values[i]) ? 0 : place->values[i]);
		}
	}
	return err;
}

/* --- the groups of --per-cgroup --------------------------------------------------------------- */

static int add_cgroup(struct stat_session *s, const char *folder, const char *name, struct diag *d)
{
	char path[4400];
	int fd;

	snprintf(path, sizeof(path), "%s%s%s", folder, *name ? "/" : "", name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : diag_errno(d, -errno, "cannot open cgroup %s", path);
	s->cgroup_names[s->n_cgroups] = strdup(*name ? name : folder);
	if (!s->cgroup_names[s->n_cgroups]) {
		close(fd);
		return diag_errno(d, -ENOMEM, "--per-cgroup");
	}
	s->cgroup_fds[s->n_cgroups++] = fd;
	return 0;
}

static const char *root_group(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified",
					    "/sys/fs/cgroup"};

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
		if (access(path, R_OK) == 0)
			return roots[i];
	}
	return NULL;
}

int stat_cgroups_open(struct stat_session *s, struct diag *d)
{
	const char *folder = s->target.cgroup ? s->target.cgroup : root_group();
	DIR *dir = folder ? opendir(folder) : NULL;
	int err = 0;

	if (s->target.cgroup && s->target.cgroup_fd < 0) {
		if (dir)
			closedir(dir);
		return diag_set(d, -EINVAL, "%s is not in a hierarchy that counts events", folder);
	}
	if (!dir)
		return diag_errno(d, folder ? -errno : -ENOENT, "cannot list the cgroups");
	s->cgroup_fds = calloc(CGROUPS_MAX, sizeof(*s->cgroup_fds));
	s->cgroup_names = calloc(CGROUPS_MAX, sizeof(*s->cgroup_names));
	if (!s->cgroup_fds || !s->cgroup_names)
		err = diag_errno(d, -ENOMEM, "--per-cgroup");
	for (struct dirent *e; !err && (e = readdir(dir));) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (s->n_cgroups == CGROUPS_MAX)
			err = note_add(&s->notes, "more than %d cgroups: the rest is not counted",
				       CGROUPS_MAX);
		else
			err = add_cgroup(s, folder, e->d_name, d);
		if (s->n_cgroups == CGROUPS_MAX)
			break;
	}
	closedir(dir);
	if (!err && !s->n_cgroups)
		err = add_cgroup(s, folder, "", d);
	return err;
}

/* --- sections --------------------------------------------------------------------------------- */

static bool is_counted(const struct stat_session *s, size_t event)
{
	for (size_t i = 0; i < s->intervals.n; i++)
		if (!isnan(s->intervals.v[i].values[event]))
			return true;
	for (size_t i = 0; i < s->places.n; i++)
		if (!isnan(s->places.v[i].values[event]))
			return true;
	return false;
}

/* A column for each event, those that are missing everywhere left to the JSON. */
static const struct column *event_columns(const struct stat_session *s, struct result *r,
					  struct column first)
{
	struct column *v = arena_alloc(&r->arena, (s->event_names.n + 1) * sizeof(*v));

	if (!v) {
		r->failed = true;
		return NULL;
	}
	v[0] = first;
	for (size_t i = 0; i < s->event_names.n; i++) {
		const char *key = result_text(r, "%s", s->event_names.v[i]);
		bool is_time = str_ends(key, "_ns");
		const char *title =
			is_time ? result_text(r, "%.*s", (int)strlen(key) - 3, key) : key;

		v[i + 1] = (struct column){key, title, is_time ? CELL_NS : CELL_COUNT,
					   is_counted(s, i) ? first.flags | (i ? COLUMN_SPARE : 0)
							    : COLUMN_DATA_ONLY};
	}
	return v;
}

static void add_value_row(struct stat_session *s, struct result *r, size_t section,
			  struct cell first, const double *values)
{
	struct cell *cells = calloc(s->event_names.n + 1, sizeof(*cells));

	if (!cells) {
		r->failed = true;
		return;
	}
	cells[0] = first;
	for (size_t i = 0; i < s->event_names.n; i++)
		cells[i + 1] = isnan(values[i])
				       ? cell_null(r, "not counted")
				       : cell_u64(str_ends(s->event_names.v[i], "_ns") ? CELL_NS
										       : CELL_COUNT,
						  (uint64_t)(values[i] + 0.5));
	result_row(r, section, cells);
	free(cells);
}

void stat_places_sections(struct stat_session *s, struct result *r)
{
	const struct column time = {"elapsed_ns", "until", CELL_NS, s->live ? COLUMN_DATA_ONLY : 0};
	const struct column place = {"part", "part", CELL_TEXT, 0};
	const struct column *columns;
	size_t section;

	if (s->intervals.n) {
		columns = event_columns(s, r, time);
		if (!columns)
			return;
		section =
			result_section(r, "intervals", "intervals", columns, s->event_names.n + 1);
		for (size_t i = 0; i < s->intervals.n; i++)
			add_value_row(s, r, section,
				      cell_u64(CELL_NS, s->intervals.v[i].elapsed_ns),
				      s->intervals.v[i].values);
	}
	if (!s->places.n)
		return;
	columns = event_columns(s, r, place);
	if (!columns)
		return;
	section = result_section(r, "parts", "parts", columns, s->event_names.n + 1);
	for (size_t i = 0; i < s->places.n; i++)
		add_value_row(s, r, section, cell_text(r, s->places.v[i].name),
			      s->places.v[i].values);
}
