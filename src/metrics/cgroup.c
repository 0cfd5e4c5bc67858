/* SPDX-License-Identifier: BSD-2-Clause */
/* Control groups of both versions. Sources: Documentation/admin-guide/cgroup-v2.rst,
 * cgroup-v1/{memory,pids}.rst, scheduler/sched-bwc.rst. */
#include "readings.h"

#include <dirent.h>

enum { TEXT_MAX = 1 << 20, DEPTH_MAX = 16, BELOW_MAX = 256 };

/* --- version 2 -------------------------------------------------------------------------------- */

static void read_cpu_v2(const char *dir, struct cgroup *g)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	double quota, period;

	root_read(dir, &text, TEXT_MAX, "/cpu.stat");
	g->counters[CG_USAGE_NS] = text_field(strbuf_str(&text), "usage_usec") * 1e3;
	g->counters[CG_PERIODS] = text_field(strbuf_str(&text), "nr_periods");
	g->counters[CG_THROTTLED] = text_field(strbuf_str(&text), "nr_throttled");
	g->counters[CG_THROTTLED_NS] = text_field(strbuf_str(&text), "throttled_usec") * 1e3;
	if (!root_read(dir, &text, 256, "/cpu.max"))
		return;
	quota = line_number(strbuf_str(&text), 0); /* "max 100000" has none */
	period = line_number(strbuf_str(&text), 1);
	if (quota > 0 && period > 0)
		g->quota_cpus = quota / period;
}

static void read_memory_v2(const char *dir, struct cgroup *g)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	g->memory = root_number(dir, "/memory.current");
	g->memory_max = root_number(dir, "/memory.max");
	g->memory_high = root_number(dir, "/memory.high");
	root_read(dir, &text, TEXT_MAX, "/memory.stat");
	g->cache = text_field(strbuf_str(&text), "inactive_file");
	root_read(dir, &text, TEXT_MAX, "/memory.events");
	g->counters[CG_HIGH] = text_field(strbuf_str(&text), "high");
	g->counters[CG_MAX] = text_field(strbuf_str(&text), "max");
	g->counters[CG_OOM] = text_field(strbuf_str(&text), "oom");
	g->counters[CG_OOM_KILL] = text_field(strbuf_str(&text), "oom_kill");
}

/* --- version 1 -------------------------------------------------------------------------------- */

static void read_cpu_v1(const char *dir, struct cgroup *g)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	double quota = root_number(dir, "/cpu.cfs_quota_us");
	double period = root_number(dir, "/cpu.cfs_period_us");

	root_read(dir, &text, TEXT_MAX, "/cpu.stat");
	g->counters[CG_PERIODS] = text_field(strbuf_str(&text), "nr_periods");
	g->counters[CG_THROTTLED] = text_field(strbuf_str(&text), "nr_throttled");
	g->counters[CG_THROTTLED_NS] = text_field(strbuf_str(&text), "throttled_time");
	if (quota > 0 && period > 0)
		g->quota_cpus = quota / period;
}

static void read_memory_v1(const char *dir, struct cgroup *g)
{
	/* "No limit" is the largest number of whole pages. */
	static const double none = 9e18;
	CLEANUP(strbuf_release) struct strbuf text = {0};

	g->memory = root_number(dir, "/memory.usage_in_bytes");
	g->memory_max = root_number(dir, "/memory.limit_in_bytes");
	if (g->memory_max > none)
		g->memory_max = INFINITY;
	g->memory_high = root_number(dir, "/memory.soft_limit_in_bytes");
	if (g->memory_high > none)
		g->memory_high = INFINITY;
	root_read(dir, &text, TEXT_MAX, "/memory.stat");
	g->cache = text_field(strbuf_str(&text), "total_inactive_file");
	g->counters[CG_MAX] = root_number(dir, "/memory.failcnt");
	root_read(dir, &text, 4096, "/memory.oom_control");
	g->counters[CG_OOM_KILL] = text_field(strbuf_str(&text), "oom_kill");
}

/* --- both ------------------------------------------------------------------------------------- */

static double refused_in(const char *dir, const char *file)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	root_read(dir, &text, 4096, "%s", file);
	return text_field(strbuf_str(&text), "max");
}

/* Version 1, and 2 before Linux 6.11, count a refusal where the fork was, not where the limit is:
 * in groups below that have none of their own (kernel/cgroup/pids.c). */
static double refused_below(const char *path, unsigned depth, unsigned *budget)
{
	DIR *dir = depth < DEPTH_MAX ? opendir(path) : NULL;
	double sum = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char below[PATH_SIZE];
		double refused;

		if (e->d_type != DT_DIR || e->d_name[0] == '.' || !*budget ||
		    (size_t)snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >=
			    sizeof(below))
			continue;
		(*budget)--;
		if (!isinf(root_number(below, "/pids.max")))
			continue;
		refused = refused_in(below, "/pids.events");
		sum += (isnan(refused) ? 0 : refused) + refused_below(below, depth + 1, budget);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static void read_pids(const char *dir, bool v2, struct cgroup *g)
{
	unsigned budget = BELOW_MAX;

	g->pids = root_number(dir, "/pids.current");
	g->pids_max = root_number(dir, "/pids.max");
	g->counters[CG_PIDS_MAX] = refused_in(dir, "/pids.events");
	if (isfinite(g->pids_max) && !(v2 && !isnan(refused_in(dir, "/pids.events.local"))))
		g->counters[CG_PIDS_MAX] += refused_below(dir, 0, &budget);
}

static bool dir_of(const char *root, const struct cgroup_mounts *m, int controller,
		   const char *name, char *ret)
{
	int n;

	if (!m->dir[controller][0])
		return false;
	n = snprintf(ret, PATH_SIZE, "%s%s%s", root, m->dir[controller], name);
	return n > 0 && n < PATH_SIZE && access(ret, F_OK) == 0;
}

/* What version 1 has not. */
static void read_unified(const char *dir, struct cgroup *g)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	pressure_read(dir, "/cpu.pressure", &g->cpu_pressure);
	pressure_read(dir, "/memory.pressure", &g->memory_pressure);
	if (!isnan(g->counters[CG_USAGE_NS]))
		return;
	root_read(dir, &text, TEXT_MAX, "/cpu.stat");
	g->counters[CG_USAGE_NS] = text_field(strbuf_str(&text), "usage_usec") * 1e3;
}

static void read_group(const char *root, const struct cgroup_mounts *m, const char *name,
		       struct cgroup *g)
{
	char dir[PATH_SIZE];

	*g = (struct cgroup){.quota_cpus = INFINITY,
			     .memory = NAN,
			     .cache = NAN,
			     .memory_max = NAN,
			     .memory_high = NAN,
			     .pids = NAN,
			     .pids_max = NAN,
			     .cpu_pressure = {NAN, NAN},
			     .memory_pressure = {NAN, NAN}};
	snprintf(g->name, sizeof(g->name), "%s", name);
	for (size_t i = 0; i < CG_COUNTERS; i++)
		g->counters[i] = NAN;
	memcpy(g->v2, m->v2, sizeof(g->v2));
	if (dir_of(root, m, CG_CPU, name, dir)) {
		(m->v2[CG_CPU] ? read_cpu_v2 : read_cpu_v1)(dir, g);
		pressure_read(dir, "/cpu.pressure", &g->cpu_pressure);
	}
	if (dir_of(root, m, CG_MEMORY, name, dir)) {
		(m->v2[CG_MEMORY] ? read_memory_v2 : read_memory_v1)(dir, g);
		pressure_read(dir, "/memory.pressure", &g->memory_pressure);
	}
	if (isnan(g->counters[CG_USAGE_NS]) && dir_of(root, m, CG_CPUACCT, name, dir))
		g->counters[CG_USAGE_NS] = root_number(dir, "/cpuacct.usage");
	if (dir_of(root, m, CG_PIDS, name, dir))
		read_pids(dir, m->v2[CG_PIDS], g);
	if (!m->v2[CG_CPU] && dir_of(root, m, CG_UNIFIED, name, dir))
		read_unified(dir, g);
}

void cgroup_read(const char *root, const struct cgroup_list *l, struct cgroup_reading *ret)
{
	for (size_t i = 0; i < l->names.n; i++) {
		struct cgroup g;

		read_group(root, &l->mounts, l->names.v[i], &g);
		if (array_push(&ret->v, g))
			return;
	}
}

void cgroup_release(struct cgroup_reading *g)
{
	array_release(&g->v);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* What was asked for is shown without a limit too. */
static bool is_own(const struct interval *i, const struct cgroup *g)
{
	return str_eq(i->cgroups->own, g->name);
}

const char *cgroup_absence(const struct use_config *c)
{
	return access(c->cgroup, F_OK) ? "this cgroup is gone"
				       : "no process is in this cgroup, or below it";
}

static const char *no_usage(const struct interval *i, const struct cgroup *g)
{
	if (is_own(i, g) && i->config->cgroup && access(i->config->cgroup, F_OK))
		return cgroup_absence(i->config);
	return i->cgroups->mounts.dir[CG_CPUACCT][0] ? "this cgroup is not in the cpuacct hierarchy"
						     : "no cpuacct hierarchy";
}

/* The same name in another controller's hierarchy may be another group, or none: the folder tells
 * which one is meant. */
static struct use_row *group_row(const struct interval *i, enum cgroup_controller controller,
				 const char *resource, const struct cgroup *g, struct use_report *r)
{
	struct use_row *row = row_add(r, "cgroup", resource, g->name);

	if (row && g->name[1])
		row->path = report_text(r, "%s%s", i->cgroups->mounts.dir[controller], g->name);
	return row;
}

static const char version_1_has_none[] = "this group is of version 1, which has none";

static const char *no_pressure(bool v2)
{
	return v2 ? "this kernel has no pressure stall information (psi=1)" : version_1_has_none;
}

static void put_cpu_pressure(const struct interval *i, const struct cgroup *now,
			     const struct cgroup *before, struct use_report *r, struct use_row *row)
{
	row_put_or(r, row, "cgroup_cpu_pressure_percent",
		   pressure_percent(now->cpu_pressure.some_us, before->cpu_pressure.some_us,
				    i->seconds),
		   no_pressure(now->v2[CG_CPU]));
}

static void cpu_row(const struct interval *i, const struct cgroup *now, const struct cgroup *before,
		    struct use_report *r)
{
	const double *a = before->counters, *b = now->counters;
	double periods = rate_of(b[CG_PERIODS], a[CG_PERIODS], 1);
	double throttled = rate_of(b[CG_THROTTLED], a[CG_THROTTLED], 1);
	double used_ns = rate_of(b[CG_USAGE_NS], a[CG_USAGE_NS], i->seconds);
	struct use_row *row;
	struct use_value *v;

	if (isinf(now->quota_cpus) && !is_own(i, now))
		return;
	row = group_row(i, CG_CPU, "cgroup CPU", now, r);
	if (isinf(now->quota_cpus)) {
		row_put_or(r, row, "cgroup_cpus", used_ns / 1e9, no_usage(i, now));
		put_cpu_pressure(i, now, before, r, row);
		return;
	}
	v = row_put_or(r, row, "cgroup_cpu_percent", percent_of(used_ns, now->quota_cpus * 1e9),
		       no_usage(i, now));
	if (v && !isnan(v->v))
		v->text = report_text(r, "%.0f %% of %.2g CPUs", v->v, now->quota_cpus);
	/* Without a runnable task no period begins. */
	v = row_put_or(r, row, "throttled_percent",
		       periods > 0 ? percent_of(throttled, periods) : periods, "not in cpu.stat");
	row_put_or(r, row, "throttled_time_percent",
		   rate_of(b[CG_THROTTLED_NS], a[CG_THROTTLED_NS], i->seconds) / 1e7,
		   "not in cpu.stat");
	put_cpu_pressure(i, now, before, r, row);
}

static void put_memory_saturation(const struct interval *i, const struct cgroup *now,
				  const struct cgroup *before, struct use_report *r,
				  struct use_row *row)
{
	const double *a = before->counters, *b = now->counters;

	row_put_or(r, row, "cgroup_memory_pressure_percent",
		   pressure_percent(now->memory_pressure.full_us, before->memory_pressure.full_us,
				    i->seconds),
		   no_pressure(now->v2[CG_MEMORY]));
	row_put_or(r, row, "memory_high_per_second", rate_of(b[CG_HIGH], a[CG_HIGH], i->seconds),
		   now->v2[CG_MEMORY] ? "not in memory.events" : version_1_has_none);
}

static void put_unlimited_memory(const struct interval *i, const struct cgroup *now,
				 const struct cgroup *before, double used, struct use_report *r)
{
	struct use_row *row = group_row(i, CG_MEMORY, "cgroup memory", now, r);
	struct use_value *v = row_put(r, row, "cgroup_memory_bytes", used);

	if (v)
		v->text = report_text(r, "%.0f MiB, no limit", used / (1 << 20));
	put_memory_saturation(i, now, before, r, row);
}

static void memory_row(const struct interval *i, const struct cgroup *now,
		       const struct cgroup *before, struct use_report *r)
{
	const double *a = before->counters, *b = now->counters;
	double max = fmin(isnan(now->memory_max) ? INFINITY : now->memory_max,
			  now->v2[CG_MEMORY] && now->memory_high > 0 ? now->memory_high : INFINITY);
	double used = now->memory - (isnan(now->cache) ? 0 : fmin(now->cache, now->memory));
	struct use_row *row;
	struct use_value *v;

	if (isnan(now->memory_max) || isinf(max)) {
		if (is_own(i, now) && !isnan(used))
			put_unlimited_memory(i, now, before, used, r);
		return;
	}
	row = group_row(i, CG_MEMORY, "cgroup memory", now, r);
	v = row_put(r, row, "cgroup_memory_percent", percent_of(used, max));
	if (v) {
		v->text = report_text(r, "%.0f %% of %.0f MiB", v->v, max / (1 << 20));
		v->source = now->v2[CG_MEMORY]
				    ? max < now->memory_max
					      ? "(memory.current - inactive_file) / memory.high"
					      : "(memory.current - inactive_file) / memory.max"
				    : "(memory.usage_in_bytes - total_inactive_file) / "
				      "memory.limit_in_bytes";
	}
	put_memory_saturation(i, now, before, r, row);
	v = row_put(r, row, "memory_max_per_second", rate_of(b[CG_MAX], a[CG_MAX], i->seconds));
	if (v && !now->v2[CG_MEMORY])
		v->source = "memory.failcnt";
	row_put_or(r, row, "cgroup_ooms", rate_of(b[CG_OOM], a[CG_OOM], 1),
		   now->v2[CG_MEMORY] ? "not in memory.events" : version_1_has_none);
	v = row_put_or(r, row, "cgroup_oom_kills", rate_of(b[CG_OOM_KILL], a[CG_OOM_KILL], 1),
		       "not in memory.oom_control (before Linux 4.13)");
	if (v && !now->v2[CG_MEMORY])
		v->source = "memory.oom_control (oom_kill)";
}

static void pids_row(const struct interval *i, const struct cgroup *now,
		     const struct cgroup *before, struct use_report *r)
{
	struct use_row *row;
	struct use_value *v;

	if (isnan(now->pids_max) || isinf(now->pids_max)) {
		if (is_own(i, now) && !isnan(now->pids))
			row_put(r, group_row(i, CG_PIDS, "cgroup pids", now, r), "cgroup_pids",
				now->pids);
		return;
	}
	row = group_row(i, CG_PIDS, "cgroup pids", now, r);
	v = row_put(r, row, "pids_percent", percent_of(now->pids, now->pids_max));
	if (v)
		v->text = report_text(r, "%.0f of %.0f", now->pids, now->pids_max);
	row_put_or(r, row, "pids_refused",
		   rate_of(now->counters[CG_PIDS_MAX], before->counters[CG_PIDS_MAX], 1),
		   "no pids.events");
}

const struct cgroup *cgroup_before(const struct interval *i, const struct cgroup *now, size_t hint)
{
	const struct cgroup_reading *g = &i->before->cgroup;

	if (hint < g->v.n && str_eq(g->v.v[hint].name, now->name))
		return &g->v.v[hint];
	for (size_t k = 0; k < g->v.n; k++)
		if (str_eq(g->v.v[k].name, now->name))
			return &g->v.v[k];
	return NULL;
}

/* Of version 2 a group's counters have those below it. */
static bool is_below_another(const struct cgroup_reading *all, const struct cgroup *g)
{
	for (size_t i = 0; i < all->v.n; i++) {
		const char *name = all->v.v[i].name;
		size_t n = strlen(name);

		if (str_starts(g->name, name) && g->name[n] == '/')
			return true;
	}
	return false;
}

double cgroup_limit_kills(const struct interval *i)
{
	double sum = 0;

	for (size_t k = 0; k < i->now->cgroup.v.n; k++) {
		const struct cgroup *now = &i->now->cgroup.v.v[k];
		const struct cgroup *before = cgroup_before(i, now, k);
		int reached = now->v2[CG_MEMORY] ? CG_OOM : CG_MAX;

		if (!before || !(now->counters[reached] > before->counters[reached]) ||
		    (now->v2[CG_MEMORY] && is_below_another(&i->now->cgroup, now)))
			continue;
		sum += fmax(now->counters[CG_OOM_KILL] - before->counters[CG_OOM_KILL], 0);
	}
	return sum;
}

void cgroup_rows(const struct interval *i, struct use_report *r)
{
	size_t rows = r->rows.n;

	for (size_t k = 0; k < i->now->cgroup.v.n; k++) {
		const struct cgroup *now = &i->now->cgroup.v.v[k];
		const struct cgroup *before = cgroup_before(i, now, k);

		if (!before)
			before = now;
		cpu_row(i, now, before, r);
		memory_row(i, now, before, r);
		pids_row(i, now, before, r);
	}
	if (i->cgroups->cut)
		report_note(r, "there are more cgroups than are read: --cgroup PATH reads one");
	if (r->rows.n == rows)
		row_lacks(r, row_add(r, "cgroup", "cgroup", ""), "cgroup_cpu_percent",
			  i->now->cgroup.v.n ? "no limit is set" : "no cgroup has a limit");
}
