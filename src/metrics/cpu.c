/* SPDX-License-Identifier: BSD-2-Clause */
/* CPUs. Sources: proc(5), Documentation/accounting/psi.rst, scheduler/sched-stats.rst */
#include "readings.h"

enum { STAT_BYTES_MAX = 8 << 20, CPUS_MAX = 8192 };

void pressure_read(const char *root, const char *path, struct pressure *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	*ret = (struct pressure){NAN, NAN};
	if (!root_read(root, &text, 4096, "%s", path))
		return;
	for (const char *line = strbuf_str(&text); line && *line;) {
		const char *total = strstr(line, "total=");
		double *v = str_starts(line, "some ") ? &ret->some_us : &ret->full_us;

		if (total)
			*v = line_number(total + strlen("total="), 0);
		line = strchr(line, '\n');
		line += line != NULL;
	}
}

double pressure_percent(double now_us, double before_us, double seconds)
{
	double percent = rate_of(now_us, before_us, seconds) / 1e4;

	return percent > 100 ? 100 : percent;
}

/* user nice system idle iowait irq softirq steal; guest time is part of user time. Columns came
 * with time: what an old kernel lacks is 0. */
static bool parse_times(const char *columns, struct cpu_times *ret)
{
	double v[8] = {0};

	for (unsigned i = 0; i < ARRAY_SIZE(v); i++) {
		double field = line_number(columns, i);

		if (isnan(field) && i < 4)
			return false;
		v[i] = isnan(field) ? 0 : field;
	}
	ret->steal = v[7];
	ret->busy = v[0] + v[1] + v[2] + v[5] + v[6] + v[7];
	ret->total = ret->busy + v[3] + v[4];
	return true;
}

static void read_times(const char *root, struct cpu_reading *c)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *at;
	char line[512];

	c->readable = root_read(root, &text, STAT_BYTES_MAX, "/proc/stat");
	at = strbuf_str(&text);
	while (next_line(&at, line, sizeof(line)) && str_starts(line, "cpu")) {
		struct cpu_times t = {0};
		int n = 0;

		/* The first line is the sum, in which CPUs that are offline stay. */
		if (line[3] < '0' || line[3] > '9' || sscanf(line, "cpu%d %n", &t.cpu, &n) != 1 ||
		    !n || t.cpu < 0 || c->cpus.n >= CPUS_MAX || !parse_times(line + n, &t))
			continue;
		if (array_push(&c->cpus, t))
			return;
	}
}

/* Lines "cpuN" of version 15 and later: run_delay is the 8th number. */
static void read_schedstat(const char *root, struct cpu_reading *c)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *at;
	char line[512];

	c->run_delay_ns = NAN;
	if (!root_read(root, &text, STAT_BYTES_MAX, "/proc/schedstat"))
		return;
	at = strbuf_str(&text);
	while (next_line(&at, line, sizeof(line))) {
		double delay = str_starts(line, "cpu") ? line_number(line, 8) : NAN;

		if (!isnan(delay))
			c->run_delay_ns = (isnan(c->run_delay_ns) ? 0 : c->run_delay_ns) + delay;
	}
}

/* Each CPU's column of the line "MCE:". */
static void read_machine_checks(const char *root, struct cpu_reading *c)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *line;
	double sum = 0;

	c->machine_checks = NAN;
	if (!root_read(root, &text, STAT_BYTES_MAX, "/proc/interrupts"))
		return;
	line = strstr(strbuf_str(&text), "MCE:");
	if (!line)
		return;
	line += strlen("MCE:");
	for (char *end;; line = end) {
		line += strspn(line, " ");
		if (*line < '0' || *line > '9')
			break;
		sum += (double)strtoull(line, &end, 10);
	}
	c->machine_checks = sum;
}

static void read_throttles(const char *root, struct cpu_reading *c)
{
	static const char format[] = "/sys/devices/system/cpu/cpu%d/thermal_throttle/"
				     "core_throttle_count";

	c->throttles = NAN;
	for (size_t i = 0; i < c->cpus.n; i++) {
		double v = root_number(root, format, c->cpus.v[i].cpu);

		if (isnan(v) && !i)
			return;
		c->throttles = (i ? c->throttles : 0) + (isnan(v) ? 0 : v);
	}
}

void cpu_read(const char *root, struct cpu_reading *c)
{
	read_times(root, c);
	read_schedstat(root, c);
	read_machine_checks(root, c);
	read_throttles(root, c);
	pressure_read(root, "/proc/pressure/cpu", &c->pressure);
}

void cpu_release(struct cpu_reading *c)
{
	array_release(&c->cpus);
}

/* The 4th word of loadavg, "3/1234": tasks that run or want to, this one included. */
void runnable_sample(const char *root, struct runnable *r)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	unsigned runnable;

	if (!root_read(root, &text, 256, "/proc/loadavg") ||
	    sscanf(strbuf_str(&text), "%*s %*s %*s %u/", &runnable) != 1)
		return;
	r->sum += runnable ? runnable - 1 : 0;
	r->n++;
}

/* --- rows ------------------------------------------------------------------------------------- */

static const struct cpu_times *find_cpu(const struct cpu_reading *c, int cpu)
{
	size_t low = 0, high = c->cpus.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->cpus.v[mid].cpu < cpu)
			low = mid + 1;
		else
			high = mid;
	}
	return low < c->cpus.n && c->cpus.v[low].cpu == cpu ? &c->cpus.v[low] : NULL;
}

/* idle and iowait may run backwards, and a CPU that was away may begin anew. */
static struct cpu_times change(const struct cpu_times *now, const struct cpu_times *before)
{
	return (struct cpu_times){
		.cpu = now->cpu,
		.busy = fmax(now->busy - before->busy, 0),
		.total = fmax(now->total - before->total, 0),
		.steal = fmax(now->steal - before->steal, 0),
	};
}

static void one_cpu(struct use_report *r, const struct cpu_times *t)
{
	struct use_row *row = row_add(r, "host", "CPU", report_text(r, "%d", t->cpu));

	if (!row)
		return;
	row->detail = true;
	row_put(r, row, "one_cpu_busy_percent", percent_of(fmin(t->busy, t->total), t->total));
}

static struct cpu_times all_cpus(const struct interval *i, struct use_report *r, size_t *ret_cpus)
{
	struct cpu_times sum = {0};

	*ret_cpus = 0;
	for (size_t k = 0; k < i->now->cpu.cpus.n; k++) {
		const struct cpu_times *now = &i->now->cpu.cpus.v[k];
		const struct cpu_times *before = find_cpu(&i->before->cpu, now->cpu);
		struct cpu_times t;

		if (!before)
			continue;
		t = change(now, before);
		if (t.total <= 0)
			continue;
		sum.busy += t.busy;
		sum.total += t.total;
		sum.steal += t.steal;
		(*ret_cpus)++;
		one_cpu(r, &t);
	}
	return sum;
}

/* Sum over all tasks, where the scheduler does not keep it by CPU. */
static double tasks_delay_ns(const struct interval *i)
{
	double sum = 0;

	if (i->tasks_now->err || i->tasks_before->err || i->tasks_now->table.leaders_only ||
	    i->tasks_now->table.left_out || i->tasks_now->table.targets_only)
		return NAN;
	for (size_t k = 0; k < i->tasks_now->table.tasks.n; k++) {
		const struct task_times *now = &i->tasks_now->table.tasks.v[k];
		const struct task_times *before = task_table_find(&i->tasks_before->table, now);
		uint64_t begin = before ? before->delay_ns : 0;

		if (now->delay_ns > begin)
			sum += (double)(now->delay_ns - begin);
	}
	return sum;
}

/* The part of it that quotas have caused, as a share of the time. */
static double quotas_delay(const struct interval *i)
{
	double sum = 0;

	if (i->tasks_now->err || i->tasks_before->err || !i->throttles->v.n)
		return 0;
	for (size_t k = 0; k < i->tasks_now->table.tasks.n; k++) {
		const struct task_times *t = &i->tasks_now->table.tasks.v[k];

		sum += quota_delay(i, t->tid, task_delay(i, t));
	}
	return sum;
}

static void put_saturation(const struct interval *i, struct use_report *r, struct use_row *row,
			   size_t cpus)
{
	double delay_ns = fmax(i->now->cpu.run_delay_ns - i->before->cpu.run_delay_ns, 0);
	double seconds = i->seconds, pressure, quotas = quotas_delay(i);
	const char *source = "/proc/schedstat (run_delay)";
	struct use_value *v;
	bool by_task = isnan(i->now->cpu.run_delay_ns);

	if (by_task) {
		delay_ns = tasks_delay_ns(i);
		seconds = i->tasks_seconds;
		source = i->tasks_now->table.source;
	}
	if (!isnan(delay_ns))
		delay_ns = fmax(delay_ns - quotas * seconds * 1e9, 0);
	v = row_put_or(r, row, "run_delay_percent",
		       percent_of(delay_ns, seconds * 1e9 * (double)cpus),
		       "no /proc/schedstat (CONFIG_SCHEDSTATS), and no right to BPF");
	if (v && !isnan(v->v))
		v->source = quotas > 0
				    ? report_text(r, "%s, less what cgroups' quotas took", source)
				    : source;
	pressure = pressure_percent(i->now->cpu.pressure.some_us, i->before->cpu.pressure.some_us,
				    i->seconds);
	v = row_put_or(r, row, "cpu_pressure_percent", pressure,
		       "this kernel has no pressure stall information (psi=1)");
	/* Quotas may be all of it. */
	if (v && 100 * throttles_sum(i->throttles) > 0.9 * pressure)
		v->not_judged = "what cgroups wait for their quotas is about as much";
	if (i->runnable.n)
		row_put(r, row, "runnable_per_cpu", i->runnable.sum / i->runnable.n / (double)cpus);
}

static void put_errors(const struct interval *i, struct use_report *r, struct use_row *row)
{
	const struct cpu_reading *now = &i->now->cpu, *before = &i->before->cpu;

	row_put_or(r, row, "machine_checks",
		   rate_of(now->machine_checks, before->machine_checks, 1),
		   "no line MCE in /proc/interrupts");
	row_put_or(r, row, "cpu_throttles", rate_of(now->throttles, before->throttles, 1),
		   "this CPU counts no thermal throttling");
}

static const char *no_times(const struct cpu_reading *c)
{
	if (!c->readable)
		return "/proc/stat is not readable";
	return c->cpus.n ? "no CPU's time in /proc/stat went on meanwhile"
			 : "no CPU is in /proc/stat";
}

void cpu_rows(const struct interval *i, struct use_report *r)
{
	size_t cpus;
	struct cpu_times sum = all_cpus(i, r, &cpus);
	struct use_row *row = row_add(r, "host", "CPU", "");
	double busy = percent_of(fmin(sum.busy, sum.total), sum.total);
	struct use_value *v;

	if (!row)
		return;
	v = row_put_or(r, row, "cpu_busy_percent", busy, no_times(&i->now->cpu));
	if (v && !isnan(busy))
		v->text = report_text(r, "%.0f %% of %zu", busy, cpus);
	if (!cpus)
		return;
	put_saturation(i, r, row, cpus);
	row_put(r, row, "steal_percent", percent_of(sum.steal, sum.total));
	put_errors(i, r, row);
}
