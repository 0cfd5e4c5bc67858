/* SPDX-License-Identifier: BSD-2-Clause */
#include "use.h"

#include "output_file.h"
#include "print_result.h"
#include "use_driver.h"

#include <fcntl.h>
#include <inspect/bpf_tasks.h>
#include <inspect/capture.h>
#include <inspect/command.h>
#include <inspect/explain.h>
#include <inspect/procfs.h>
#include <inspect/shell_words.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>

#define WINDOW_NS (5 * NSEC_PER_SEC)
#define WATCH_NS (2 * NSEC_PER_SEC)
#define LIMIT_MAX 1e15

/* --- options ---------------------------------------------------------------------------------- */

#define OWN(field) offsetof(struct use_values, field)
static const struct option own_options[] = {
	{.name = "pid",
	 .letter = 'p',
	 .arg = "PID,…",
	 .type = OPTION_STRING,
	 .offset = OWN(pids),
	 .help = "as these processes see it: their cgroup, limits, threads, network"},
	{.name = "children",
	 .type = OPTION_FLAG,
	 .offset = OWN(children),
	 .help = "with -p: its existing child processes too"},
	{.name = "subprocesses", .type = OPTION_FLAG, .offset = OWN(children)},
	{.name = "cgroup",
	 .arg = "PATH",
	 .type = OPTION_STRING,
	 .offset = OWN(cgroup),
	 .help = "as this cgroup (container, service) sees it"},
	{.name = "engine",
	 .arg = "URL",
	 .type = OPTION_STRING,
	 .offset = OWN(engine),
	 .help = "metrics of an inference server (with -p it is found on loopback)"},
	/* The default: who has typed it elsewhere types it here. */
	{.name = "all-cpus", .letter = 'a', .type = OPTION_IGNORED},
	{.name = "device",
	 .arg = "PATH",
	 .type = OPTION_STRING,
	 .offset = OWN(device),
	 .help = "the GPU driver's device, or all in a folder, in place of NVIDIA's"},
	{.name = "no-engine",
	 .type = OPTION_FLAG,
	 .offset = OWN(no_engine),
	 .help = "ask none of the ports of -p for metrics"},
	{0},
};

static int parse_fail_on(void *value, const char *arg, struct diag *d)
{
	static const struct {
		const char *name;
		enum use_fail_on v;
	} names[] = {{"warn", USE_FAIL_WARN}, {"critical", USE_FAIL_CRITICAL}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(arg, names[i].name)) {
			*(unsigned *)value = names[i].v;
			return 0;
		}
	return diag_set(d, -EINVAL, "not warn or critical");
}

static int parse_count(void *value, const char *arg, struct diag *d)
{
	unsigned *count = value;
	int n = 0;

	if (sscanf(arg, "%9u%n", count, &n) == 1 && !arg[n] && arg[0] != '-' && *count)
		return 0;
	return diag_set(d, -EINVAL, "not a number of reports, which is 1 or more");
}

static const struct option report_options[] = {
	{.name = "duration",
	 .letter = 'd',
	 .arg = "TIME",
	 .type = OPTION_DURATION,
	 .offset = OWN(window_ns),
	 .help = "between two readings (default 5 s; with --watch 2 s)"},
	{.name = "watch",
	 .type = OPTION_FLAG,
	 .offset = OWN(watch),
	 .help = "again and again: in place on a terminal (q quit, p pause, s sort)"},
	{.name = "",
	 .letter = 'n',
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(count),
	 .help = "--watch, and end after N reports",
	 .parse = parse_count},
	{.name = "all",
	 .type = OPTION_FLAG,
	 .offset = OWN(all),
	 .help = "every device, CPU and GPU, and what has no data"},
	{.name = "verbose",
	 .letter = 'v',
	 .type = OPTION_FLAG,
	 .offset = OWN(verbose),
	 .help = "each value with its limits and where it comes from"},
	{.name = "explain",
	 .type = OPTION_FLAG,
	 .offset = OWN(explain),
	 .help = "print the rules and limits with their sources"},
	{.name = "limit",
	 .arg = "KEY=WARN/CRIT,…",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(limits),
	 .help = "other limits: cpu_busy_percent=90/99",
	 .parse = use_parse_limits},
	{.name = "fail-on",
	 .arg = "VERDICT",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(fail_on),
	 .help = "exit with 3 when something is warn (or critical)",
	 .parse = parse_fail_on},
	{.name = "log",
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(log),
	 .help = "append each report as a line of JSON"},
	{.name = "prometheus",
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(prometheus),
	 .help = "write the values as metrics, for a textfile collector"},
	{0},
};
#undef OWN
static const struct option_group own_group = {"Target (default: the host)", own_options};
static const struct option_group report_group = {"Report", report_options};

enum { N_BINDINGS = 5 };
static void bind_options(struct use_values *v, struct option_binding *ret)
{
	ret[0] = (struct option_binding){&own_group, v};
	ret[1] = (struct option_binding){&report_group, v};
	ret[2] = (struct option_binding){&common_option_group, &v->common};
	ret[3] = (struct option_binding){&resource_habit_group, NULL};
	ret[4] = (struct option_binding){&measuring_habit_group, NULL};
}

/* --- limits ----------------------------------------------------------------------------------- */

/* Beyond 100 % no share gets: a limit there is a slip. These are not of one thread, or no
 * shares. */
static double limit_max(const char *key)
{
	static const char *const sums[] = {"run_delay_percent", "io_delay_percent",
					   "process_cpu_percent", "retransmitted_percent"};

	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		if (str_eq(key, sums[i]))
			return LIMIT_MAX;
	return str_ends(key, "_percent") ? 100 : LIMIT_MAX;
}

static int parse_limit(const char *text, struct use_limit *limits, struct diag *d)
{
	char key[64] = "";
	double warn, critical = NAN, most;
	size_t metric;
	int n = 0, numbers;

	numbers = sscanf(text, "%63[a-z0-9_]=%lf%n/%lf%n", key, &warn, &n, &critical, &n) - 1;
	if (numbers < 1 || text[n])
		return diag_set(d, -EINVAL, "not KEY=WARN or KEY=WARN/CRITICAL");
	most = limit_max(key);
	if (!(warn >= 0 && warn <= most) || (numbers == 2 && !(critical <= most)))
		return diag_set(d, -EINVAL, "a limit of %s is a number from 0 to %g", key, most);
	metric = use_metric_find(key);
	if (metric == n_use_metrics) {
		diag_set(d, -EINVAL, "there is no value '%s'", key);
		diag_fix(d, "inspect use --explain      (lists them)");
		return -EINVAL;
	}
	if (critical < warn)
		return diag_set(d, -EINVAL, "the critical limit is below the other");
	limits[metric] = (struct use_limit){warn, critical};
	return 0;
}

int use_parse_limits(void *value, const char *arg, struct diag *d)
{
	struct use_limit **limits = value;
	CLEANUP(freep) char *copy = strdup(arg);
	int err = 0;

	if (!*limits) {
		*limits = calloc(n_use_metrics, sizeof(**limits));
		for (size_t i = 0; *limits && i < n_use_metrics; i++)
			(*limits)[i] = (struct use_limit){NAN, NAN};
	}
	if (!*limits || !copy)
		return diag_errno(d, -ENOMEM, "--limit");
	for (char *at = copy, *one; !err && (one = strsep(&at, ","));)
		err = parse_limit(one, *limits, d);
	return err;
}

/* --- --explain -------------------------------------------------------------------------------- */

static struct cell limit_cell(struct result *r, double v)
{
	return isnan(v) ? cell_null(r, "") : cell_double(CELL_NUMBER, v);
}

static int explain(const struct use_values *v, struct diag *d)
{
	static const struct column columns[] = {
		{"metric", "value", CELL_TEXT, 0},        {"warn", "warn", CELL_NUMBER, 0},
		{"critical", "critical", CELL_NUMBER, 0}, {"source", "comes from", CELL_TEXT, 0},
		{"why", "limits from", CELL_TEXT, 0},
	};
	CLEANUP(result_release) struct result r;
	size_t section;

	result_init(&r, "inspect.use-rules/1");
	if (use_findings_explain(v->limits, &r))
		return diag_errno(d, -ENOMEM, "use");
	section = result_section(&r, "metrics", "", columns, ARRAY_SIZE(columns));
	if (!r.failed)
		r.sections.v[section].blocks = true;
	for (size_t i = 0; i < n_use_metrics; i++) {
		const struct use_metric *m = &use_metrics[i];
		struct use_limit limit = use_limit_of(v->limits, i);

		result_row(&r, section,
			   (const struct cell[]){
				   cell_text(&r, m->key),
				   limit_cell(&r, limit.warn),
				   limit_cell(&r, limit.critical),
				   cell_text(&r, m->source),
				   cell_text(&r, m->why ? m->why : ""),
			   });
	}
	return print_result(&r, &v->common, true, d);
}

/* --- the command ------------------------------------------------------------------------------ */

static int check_url(const char *url, struct diag *d)
{
	size_t n = str_starts(url, "http://")    ? strlen("http://")
		   : str_starts(url, "https://") ? strlen("https://")
						 : 0;

	if (n && url[n] && !strchr("/?#", url[n]))
		return 0;
	diag_set(d, -EINVAL, "--engine %s is no URL of a server", url);
	diag_fix(d, "--engine http://127.0.0.1:8000/metrics");
	return -EINVAL;
}

static int parse(int argc, char **argv, struct use_values *v, struct diag *d)
{
	struct option_binding bindings[N_BINDINGS];
	struct operands operands;
	int err;

	bind_options(v, bindings);
	err = options_parse(bindings, N_BINDINGS, argc, argv, false, &operands, d);
	if (!err)
		err = options_conflict("--json", v->common.json, "--csv", v->common.csv, d);
	if (!err)
		err = options_conflict("-p", v->pids != NULL, "--cgroup", v->cgroup != NULL, d);
	if (!err)
		err = options_conflict("--engine", v->engine != NULL, "--no-engine", v->no_engine,
				       d);
	if (!err && v->engine)
		err = check_url(v->engine, d);
	if (!err && operands.n) {
		err = diag_set(d, -EINVAL, "inspect use takes no operand, but has '%s'",
			       operands.v[0]);
		diag_fix(d, "-p PID for a process, --cgroup PATH for a container");
		diag_fix(d, "--watch -d 1      (again and again, as vmstat 1 does)");
	}
	if (!err && v->children && !v->pids)
		err = diag_set(d, -EINVAL, "--children needs -p PID");
	if (!err && v->log && str_eq(v->log, "-")) {
		err = diag_set(d, -EINVAL, "--log - is no file");
		diag_fix(d, "--watch --json      (lines of JSON on stdout)");
	}
	if (!err && v->log && v->prometheus && str_eq(v->log, v->prometheus))
		err = diag_set(d, -EINVAL, "--log and --prometheus name the same file, %s", v->log);
	if (!err && v->prometheus)
		err = output_file_check(v->prometheus, NULL, 0, d);
	v->watch |= v->count != 0;
	if (!v->window_ns)
		v->window_ns = v->watch ? WATCH_NS : WINDOW_NS;
	return err;
}

/* Appended: what was logged before stays. */
static int open_log(const char *path, FILE **ret, struct diag *d)
{
	int fd, err;

	if (!path)
		return 0;
	err = output_file_check(path, NULL, 0, d);
	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
	*ret = fd < 0 ? NULL : fdopen(fd, "a");
	return *ret ? 0 : explain_create(-errno, path, d);
}

static size_t count_left_out(const struct use_values *v, const struct target *t)
{
	struct pid_list children = {0};
	size_t n = 0;

	for (size_t i = 0; v->pids && !v->children && i < t->pids.n; i++)
		if (!proc_descendants(t->pids.v[i], &children))
			n += children.n;
	array_release(&children);
	return n;
}

/* A zombie has ended: only its exit status is left. */
static bool lives(pid_t pid)
{
	struct proc_stat s;

	return !proc_stat_read(pid, 0, &s) && (s.state != 'Z' || s.num_threads > 1);
}

static bool is_own(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return !stat(path, &st) && st.st_uid == geteuid();
}

/* The ids that were given, as processes: of a thread no command takes its id for one. */
static const char *pids_text(const char *given, struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};
	struct pid_list seen = {0};

	for (char *at = (char *)given; *at; at += *at == ',') {
		pid_t id = (pid_t)strtol(at, &at, 10), pid = proc_of_thread(id);
		bool again = false;

		pid = pid > 0 ? pid : id;
		for (size_t i = 0; i < seen.n; i++)
			again |= seen.v[i] == pid;
		if (again)
			continue;
		strbuf_printf(&line, "%s%d", seen.n ? "," : "", (int)pid);
		if (array_push(&seen, pid))
			break;
	}
	array_release(&seen);
	return result_text(r, "%s", strbuf_str(&line));
}

/* Whether commands of other tools would show another network ("net"), or other files ("mnt"), than
 * those of the process. */
static bool is_elsewhere(pid_t pid, const char *namespace)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, namespace);
	if (stat(path, &theirs))
		return false;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", namespace);
	return !stat(path, &ours) && theirs.st_ino != ours.st_ino;
}

static void describe(const struct use_values *v, const struct target *t, struct result *r,
		     struct use_subject *ret)
{
	CLEANUP(strbuf_release) struct strbuf cgroup = {0};
	char comm[64] = "";
	struct proc_stat s;

	if (t->pids.n && is_elsewhere(t->pids.v[0], "net"))
		ret->net_pid = t->pids.v[0];
	if (t->pids.n && is_elsewhere(t->pids.v[0], "mnt"))
		ret->root_pid = t->pids.v[0];
	if (v->cgroup) {
		shell_word_put(&cgroup, t->cgroup);
		ret->target = result_text(r, "--cgroup %s", strbuf_str(&cgroup));
		ret->shown = ret->cgroup = t->cgroup;
		return;
	}
	if (!t->pids.n)
		return;
	ret->pids = t->pids.v;
	ret->n_pids = t->pids.n;
	if (!proc_stat_read(t->pids.v[0], 0, &s))
		snprintf(comm, sizeof(comm), "%s", s.comm);
	ret->target =
		result_text(r, "-p %s%s", pids_text(v->pids, r), v->children ? " --children" : "");
	ret->shown = t->pids.n > 1 ? result_text(r, "%s/%d and %zu more", comm, (int)t->pids.v[0],
						 t->pids.n - 1)
				   : result_text(r, "%s/%d", comm, (int)t->pids.v[0]);
}

/* Those of now: a cgroup's come and go, and it may have none. */
static int list_pids(void *ctx, const pid_t **ret, size_t *ret_n)
{
	struct target *t = ctx;
	note_list notes = {0};
	int err;

	t->pids.n = 0;
	err = target_list_cgroup(t, &notes, NULL);
	note_list_release(&notes);
	*ret = t->pids.v;
	*ret_n = t->pids.n;
	return err == -ENOMEM ? err : 0;
}

static int measure(const struct use_values *v, struct target *t, const note_list *notes,
		   const struct host *h, enum use_verdict *ret, struct diag *d)
{
	CLEANUP(fclosep) FILE *log = NULL;
	CLEANUP(result_release) struct result texts;
	struct use_subject subject = {.cpus = h->cpus_online,
				      .notes = notes,
				      .lives = lives,
				      .has_processes = cgroup_has_processes,
				      .is_own = is_own,
				      .engine = v->engine,
				      .device = v->device};
	struct use_config config = {
		.root = "",
		.pids = t->pids.v,
		.n_pids = t->pids.n,
		.list_pids = v->cgroup ? list_pids : NULL,
		.list_ctx = t,
		.cgroup = t->cgroup,
		.engine = v->engine,
		.find_engine = (v->pids || v->cgroup) && !v->engine && !v->no_engine,
		.in_pid_namespace = h->in_pid_namespace,
		.gpus = true,
		.limits = v->limits,
	};
	struct use_loop loop = {.v = v, .subject = &subject};
	CLEANUP(strbuf_release) struct strbuf no_driver = {0};
	struct use_driver *driver = NULL;
	struct bpf_tasks *bpf = NULL;
	int err = v->prometheus ? output_file_try(v->prometheus, d) : 0;

	if (!err)
		err = open_log(v->log, &log, d);
	result_init(&texts, "");
	if (err)
		return err;
	if (!host_perfmon_capable(h))
		subject.as_root = h->has_sudo ? "sudo " : "as root: ";
	subject.n_left_out = count_left_out(v, t);
	loop.log = log;
	if (!bpf_tasks_open(h, !v->watch, &bpf, &config.tasks_reason)) {
		config.tasks = bpf_tasks_read;
		config.tasks_ctx = bpf;
	}
	if (v->cgroup)
		err = list_pids(t, &config.pids, &config.n_pids);
	describe(v, t, &texts, &subject);
	if (!err)
		err = use_driver_open(v->device, !v->watch, t, h, &driver, &no_driver, d);
	config.driver = driver ? use_driver_read : NULL;
	config.driver_ctx = driver;
	config.driver_reason = strbuf_str(&no_driver);
	if (!err)
		err = use_new(&config, &loop.session);
	err = err ? diag_errno(d, err, "use") : use_loop_run(&loop, d);
	use_free(loop.session);
	use_driver_close(driver);
	bpf_tasks_close(bpf);
	*ret = loop.worst;
	return err;
}

static int find_target(const struct use_values *v, const struct host *h, note_list *notes,
		       struct target *ret, struct diag *d)
{
	struct target_options o = {.pids = v->pids,
				   .cgroup = v->cgroup,
				   .children = v->children,
				   .cgroup_later = true,
				   .no_threads = true};
	struct operands none = {0};
	int err = 0;

	*ret = (struct target){.cgroup_fd = -1};
	if (v->pids || v->cgroup)
		err = target_resolve(&o, &none, h, notes, ret, d);
	return err;
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	struct use_values v = {0};
	struct target target = {.cgroup_fd = -1};
	CLEANUP(note_list_release) note_list notes = {0};
	enum use_verdict worst = USE_NO_DATA;
	struct host h;
	int code = 0, err = parse(argc, argv, &v, d);

	*json = v.common.json;
	if (!err && v.explain) {
		err = explain(&v, d);
		free(v.limits);
		return err ? EXIT_OWN_FAILURE : 0;
	}
	if (!err) {
		host_read(&h, "");
		err = find_target(&v, &h, &notes, &target, d);
	}
	if (!err)
		err = measure(&v, &target, &notes, &h, &worst, d);
	if (err)
		code = EXIT_OWN_FAILURE;
	else if (v.fail_on && worst >= (v.fail_on == USE_FAIL_WARN ? USE_WARN : USE_CRITICAL))
		code = EXIT_GATE;
	target_release(&target);
	free(v.limits);
	return code;
}

static void help(FILE *out)
{
	struct use_values v;
	struct option_binding bindings[N_BINDINGS];

	bind_options(&v, bindings);
	options_help(bindings, N_BINDINGS, out);
}

const struct command command_use = {
	.name = "use",
	.summary = "utilisation, saturation and errors of every resource",
	.question = "Which layer is the bottleneck?",
	.usage = "use [OPTIONS]\nuse -p PID [OPTIONS]\nuse --cgroup PATH [OPTIONS]",
	.help = help,
	.run = run,
};
