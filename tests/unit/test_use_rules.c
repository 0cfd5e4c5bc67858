/* SPDX-License-Identifier: BSD-2-Clause */
/* What use says first when rows look like this, and whom the next command is for. */
#include "../../src/cmd/use.h"
#include "../../src/cmd/use_rules.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <inspect/command.h>
#include <math.h>

struct input {
	const char *resource, *device, *key;
	double v;
};

static void fill(struct use_report *r, const struct input *in, size_t n)
{
	*r = (struct use_report){0};
	for (size_t i = 0; i < n && in[i].resource; i++) {
		size_t metric = use_metric_find(in[i].key);
		const struct use_metric *m = &use_metrics[metric];
		struct use_row row = {.resource = in[i].resource,
				      .device = in[i].device,
				      .scope = str_starts(in[i].resource, "cgroup") ? "cgroup"
										    : "host",
				      .n_values = 1};

		assert_true(metric < n_use_metrics);
		row.verdict = in[i].v > m->critical ? USE_CRITICAL
			      : in[i].v > m->warn   ? USE_WARN
						    : USE_OK;
		row.values[0] = (struct use_value){
			.metric = (unsigned)metric, .v = in[i].v, .verdict = row.verdict};
		assert_int_equal(array_push(&r->rows, row), 0);
	}
}

/* The first finding of each. */
static const struct {
	struct input in[6];
	const char *rule, *evidence, *next;
} cases[] = {
	{{{"GPU", "0", "gpu_busy_percent", 98},
	  {"request queue", "vLLM", "waiting_per_running", 0.1},
	  {"request queue", "vLLM", "requests_waiting", 1}},
	 "gpu-bound",
	 "GPU 0: GPU 98 % busy (above 90), 0.1 wait for each that runs (below 1)",
	 "inspect trace --gpu -c -a -d 10"},
	{{{"GPU", "0", "gpu_busy_percent", 12},
	  {"hottest thread", "python3/71", "thread_busy_percent", 99},
	  {"request queue", "vLLM", "requests_running", 8}},
	 "event-loop-bound",
	 "hottest thread python3/71: one thread 99 % of a core (above 90), GPU 12 % busy (below "
	 "50)",
	 "inspect record -t 71 -d 10"},
	{{{"KV cache", "vLLM", "kv_cache_percent", 99},
	  {"KV cache", "vLLM", "preemptions_per_second", 2},
	  {"GPU", "0", "gpu_busy_percent", 97}},
	 "kv-cache-full",
	 "KV cache vLLM: KV cache 99 % (above 90), 2.00 preemptions a second",
	 "inspect use --watch"},
	{{{"cgroup CPU", "/pod", "throttled_percent", 40}, {"CPU", "", "cpu_busy_percent", 30}},
	 "cgroup-throttled",
	 "cgroup CPU /pod: 40 % of its periods (above 1)",
	 "inspect offcpu --cgroup /pod -d 10"},
	{{{"hottest thread", "a/1/72", "thread_busy_percent", 100},
	  {"CPU", "", "cpu_busy_percent", 30}},
	 "hot-thread",
	 "hottest thread a/1/72: 100 % of a core (above 90)",
	 "inspect record -t 72 -d 10"},
	/* Where nobody tells of requests, that somebody has taken the GPU's memory. */
	{{{"GPU", "0", "gpu_busy_percent", 12},
	  {"GPU memory", "0", "gpu_memory_percent", 90},
	  {"CPU", "", "cpu_busy_percent", 30},
	  {"hottest thread", "python3/71", "thread_busy_percent", 99}},
	 "event-loop-bound",
	 "hottest thread python3/71: one thread 99 % of a core (above 90), GPU 12 % busy (below "
	 "50)",
	 "inspect record -t 71 -d 10"},
	{{{"GPU", "0", "gpu_busy_percent", 0},
	  {"GPU memory", "0", "gpu_memory_percent", 1},
	  {"CPU", "", "cpu_busy_percent", 30},
	  {"hottest thread", "python3/71", "thread_busy_percent", 99}},
	 "hot-thread",
	 "hottest thread python3/71: 99 % of a core (above 90)",
	 "inspect record -t 71 -d 10"},
	{{{"request queue", "x", "requests_waiting", 9}, {"GPU", "0", "gpu_busy_percent", 30}},
	 "gpu-starved",
	 "request queue x: 9 requests wait, GPU 30 % busy (below 50)",
	 "inspect offcpu -a -d 10"},
	{{{"locks", "app/99 0x7f00", "lock_wait", 2}},
	 "locked",
	 "locks app/99 0x7f00: 2.00 s of waiting a second (above 0.1)",
	 "inspect trace --locks -p 99 -d 10"},
	{{{"fds", "srv/55", "fds_percent", 97}},
	 "descriptors",
	 "fds srv/55: 97 % of its limit (above 80)",
	 "ls -l /proc/55/fd"},
	{{{"fds", "srv/55", "fds_percent", 97}, {"fds", "srv/55", "fds_refused", 3}},
	 "descriptors",
	 "fds srv/55: 3 calls failed with EMFILE",
	 "ls -l /proc/55/fd"},
	{{{"threads", "", "threads_refused", 5}},
	 "process-limit",
	 "threads: 5 forks failed with EAGAIN",
	 "ps -eo nlwp,pid,user,comm --sort=-nlwp | head"},
	{{{"process threads", "srv/55", "process_threads_percent", 100},
	  {"process threads", "srv/55", "user_threads_refused", 3}},
	 "process-limit",
	 "process threads srv/55: 3 forks failed with EAGAIN",
	 "ps -U $(ps -o ruid= -p 55) -o nlwp,pid,comm --sort=-nlwp | head"},
	/* One thread waits for a CPU though there are some. Where there are none that is first. */
	{{{"run queue", "app/44", "thread_run_delay_percent", 40},
	  {"CPU", "", "run_delay_percent", 1}},
	 "waits-for-cpu",
	 "run queue app/44: run delay 40 % (above 5)",
	 "inspect offcpu -t 44 -d 10"},
	{{{"run queue", "app/44", "thread_run_delay_percent", 90},
	  {"CPU", "", "run_delay_percent", 300},
	  {"CPU", "", "cpu_busy_percent", 100}},
	 "cpu-saturated",
	 "CPU: run delay 300 % (above 5), 100 % busy (above 80)",
	 "inspect record -a -d 10"},
	{{{"GPU driver", "", "gpu_calls_p99_ms", 8}},
	 "gpu-driver-slow",
	 "GPU driver: p99 8.0 ms (above 5)",
	 "inspect trace --gpu -c -a -d 10"},
	{{{"GPU driver", "", "gpu_allocs_per_second", 30},
	  {"request queue", "x", "requests_running", 2}},
	 "gpu-allocates",
	 "GPU driver: 30 allocations a second (above 10)",
	 "inspect trace --gpu --leaks -a -d 10"},
	/* What is critical comes before what is a warning, whatever their order in the table. */
	{{{"cgroup CPU", "/pod", "throttled_percent", 5}, {"disk", "sda", "disk_await_ms", 80}},
	 "slow-disk",
	 "disk sda: 80.0 ms for each I/O (above 10)",
	 "inspect offcpu -a -d 10"},
	{{{"file system", "/x", "filesystem_used_percent", 88},
	  {"file system", "/x", "inodes_used_percent", 100}},
	 "inodes-used-up",
	 "file system /x: 100 % of its inodes (above 85)",
	 "du -x --inodes --max-depth=2 /x | sort -n | tail"},
};

static void test_first_findings(void **state UNUSED)
{
	const struct use_subject host = {.cpus = 4};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct use_report report;
		struct result r;
		findings f = {0};

		result_init(&r, "");
		fill(&report, cases[i].in, ARRAY_SIZE(cases[i].in));
		assert_int_equal(use_findings(&report, NULL, &host, &r, &f), 0);
		assert_true(f.n >= 1);
		assert_string_equal(f.v[0].rule->name, cases[i].rule);
		assert_string_equal(f.v[0].evidence, cases[i].evidence);
		assert_string_equal(f.v[0].next, cases[i].next);
		array_release(&f);
		use_report_release(&report);
		result_release(&r);
	}
}

static bool no_more(pid_t pid UNUSED)
{
	return false;
}

/* Who is looked at: a process, a container, everybody; and what has ended is not looked at. */
static void test_targets(void **state UNUSED)
{
	static const pid_t pids[] = {4711};
	static const struct use_subject host = {.cpus = 4},
					process = {.target = "-p 4711",
						   .pids = pids,
						   .n_pids = 1,
						   .net_pid = 4711,
						   .device = "/dev/a b"},
					ended = {.target = "-p 4711",
						 .pids = pids,
						 .n_pids = 1,
						 .lives = no_more},
					group = {.target = "--cgroup '/a b'",
						 .engine = "http://x/?a&b"};
	static const struct {
		struct input in;
		const struct use_subject *subject;
		const char *next;
	} lines[] = {
		{{"disk", "sda", "disk_await_ms", 99}, &host, "inspect offcpu -a -d 10"},
		{{"disk", "sda", "disk_await_ms", 99}, &process, "inspect offcpu -p 4711 -d 10"},
		{{"disk", "sda", "disk_await_ms", 99}, &ended, "inspect offcpu -a -d 10"},
		{{"disk", "sda", "disk_await_ms", 99},
		 &group,
		 "inspect offcpu --cgroup '/a b' -d 10"},
		{{"cgroup CPU", "/a {pid}", "throttled_percent", 9},
		 &host,
		 "inspect offcpu --cgroup '/a {pid}' -d 10"},
		{{"cgroup CPU", "/", "throttled_percent", 9}, &host, "inspect offcpu -a -d 10"},
		{{"fds", "srv/55", "fds_percent", 99}, &host, "ls -l /proc/55/fd"},
		{{"fds", "srv/55", "fds_percent", 99}, &process, "ls -l /proc/55/fd"},
		{{"NUMA", "node0", "numa_other_percent", 99}, &host, "numastat"},
		{{"NUMA", "node0", "numa_other_percent", 99}, &process, "numastat -p 4711"},
		{{"NUMA", "node0", "numa_other_percent", 99}, &ended, "numastat"},
		{{"hottest thread", "a/71", "thread_busy_percent", 99},
		 &host,
		 "inspect record -t 71 -d 10"},
		{{"hottest thread", "a/71", "thread_busy_percent", 99},
		 &ended,
		 "inspect record -a -d 10"},
		{{"hottest thread", "a", "thread_busy_percent", 99},
		 &group,
		 "inspect record --cgroup '/a b' -d 10"},
		{{"request queue", "x", "waiting_per_running", 9}, &host, "inspect use --watch"},
		{{"request queue", "x", "waiting_per_running", 9},
		 &group,
		 "inspect use --watch --cgroup '/a b' --engine 'http://x/?a&b'"},
		{{"GPU driver", "", "gpu_calls_p99_ms", 9},
		 &process,
		 "inspect trace --gpu -c -p 4711 --device '/dev/a b' -d 10"},
		{{"network", "eth0", "net_drops_per_second", 9},
		 &host,
		 "ip -s -s link show dev eth0"},
		{{"network", "eth0", "net_drops_per_second", 9},
		 &process,
		 "nsenter -t 4711 -n ip -s -s link show dev eth0"},
		{{"file system", "/a b", "filesystem_used_percent", 99},
		 &host,
		 "du -xh --max-depth=2 '/a b' | sort -h | tail"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct use_report report;
		struct result r;
		findings f = {0};

		result_init(&r, "");
		fill(&report, &lines[i].in, 1);
		assert_int_equal(use_findings(&report, NULL, lines[i].subject, &r, &f), 0);
		assert_int_equal(f.n, 1);
		assert_string_equal(f.v[0].next, lines[i].next);
		array_release(&f);
		use_report_release(&report);
		result_release(&r);
	}
}

/* Limits of this run are the rules' too. */
static void test_limits(void **state UNUSED)
{
	static const struct input in[] = {{"disk", "sda", "disk_await_ms", 7}};
	const struct use_subject host = {.cpus = 4};
	struct use_limit *limits = NULL;
	struct diag d = {0};
	struct use_report report;
	struct result r;

	assert_int_equal(use_parse_limits(&limits, "disk_await_ms=5/40", &d), 0);
	for (int lower = 0; lower < 2; lower++) {
		findings f = {0};

		result_init(&r, "");
		fill(&report, in, 1);
		report.rows.v[0].verdict = report.rows.v[0].values[0].verdict =
			lower ? USE_WARN : USE_OK;
		assert_int_equal(use_findings(&report, lower ? limits : NULL, &host, &r, &f), 0);
		assert_int_equal(f.n, lower);
		if (lower)
			assert_string_equal(f.v[0].evidence,
					    "disk sda: 7.0 ms for each I/O (above 5)");
		array_release(&f);
		use_report_release(&report);
		result_release(&r);
	}
	free(limits);
}

static void test_refused_limits(void **state UNUSED)
{
	static const char *const refused[][2] = {
		{"disk_await_ms=nan", "a limit of disk_await_ms is a number from 0 to 1e+15"},
		{"disk_await_ms=inf/inf", "a limit of disk_await_ms is a number from 0 to 1e+15"},
		{"disk_await_ms=5/inf", "a limit of disk_await_ms is a number from 0 to 1e+15"},
		{"disk_await_ms=5/nan", "a limit of disk_await_ms is a number from 0 to 1e+15"},
		{"disk_await_ms=-1", "a limit of disk_await_ms is a number from 0 to 1e+15"},
		{"cpu_busy_percent=900/950",
		 "a limit of cpu_busy_percent is a number from 0 to 100"},
		{"cpu_busy_percent=90/80", "the critical limit is below the other"},
		{"cpu_busy_percent", "not KEY=WARN or KEY=WARN/CRITICAL"},
		{"cpu_busy_percent=", "not KEY=WARN or KEY=WARN/CRITICAL"},
		{"cpu_busy_percent=1/2/3", "not KEY=WARN or KEY=WARN/CRITICAL"},
		{"cpu=3", "there is no value 'cpu'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct use_limit *limits = NULL;
		struct diag d = {0};

		assert_int_equal(use_parse_limits(&limits, refused[i][0], &d), -EINVAL);
		assert_string_equal(d.what, refused[i][1]);
		diag_release(&d);
		free(limits);
	}
}

static const char *fact_of(const struct result *r, const char *label, size_t n)
{
	for (size_t i = 0; i < r->facts.n; i++)
		if (str_eq(r->facts.v[i].label, label) && !n--)
			return r->facts.v[i].value.text;
	return "";
}

/* What the findings that are shown say nothing of: the first by name, the rest by number. */
static void test_untold_rows(void **state UNUSED)
{
	static const struct input in[] = {{"disk", "sda", "disk_await_ms", 90},
					  {"disk", "sdb", "disk_await_ms", 80},
					  {"disk", "sdc", "disk_await_ms", 20},
					  {"cgroup CPU", "/a", "throttled_percent", 40},
					  {"cgroup CPU", "/b", "throttled_percent", 30},
					  {"GPU memory", "0", "gpu_ecc_uncorrected", 2},
					  {"memory", "", "memory_used_percent", 99},
					  {"network", "eth0", "net_drops_per_second", 3},
					  {"memory", "n", "major_faults_per_second", 20},
					  {"locks", "", "lock_wait", 0}};
	const struct use_subject host = {.cpus = 4};
	const struct use_values v = {0};
	struct use_report report;
	struct result r;

	result_init(&r, "");
	fill(&report, in, ARRAY_SIZE(in));
	use_fill_result(&report, &v, &host, 0, USE_SORT_WORST, &r);
	/* Errors first, then in the order of the rules; three are shown. */
	assert_non_null(strstr(fact_of(&r, "verdict", 0), "gpu-memory-error: GPU memory 0: 2 "));
	assert_non_null(strstr(fact_of(&r, "also", 0), "cgroup-throttled: cgroup CPU /a: 40 %"));
	assert_non_null(strstr(fact_of(&r, "also", 1), "memory-short: memory: 99 % used"));
	assert_string_equal(fact_of(&r, "also", 2),
			    "critical: cgroup CPU /b: throttled 30 %, disk sda: await 90.0 ms, "
			    "disk sdb: await 80.0 ms; warn: disk sdc: await 20.0 ms, "
			    "memory n: major faults 20/s; 1 more warn");
	use_report_release(&report);
	result_release(&r);
}

static const char *cell_of(const struct result *r, size_t row, const char *title)
{
	const struct section *s = &r->sections.v[1]; /* behind the findings */

	for (size_t i = 0; i < s->n_columns; i++)
		if (str_eq(s->columns[i].title, title) && !(s->columns[i].flags & COLUMN_DATA_ONLY))
			return s->cells.v[row * s->n_columns + i].text;
	return "";
}

/* As many values as there is room for, the worst first; what is left out is marked. */
static void test_widths(void **state UNUSED)
{
	static const struct input in[] = {{"CPU", "", "cpu_busy_percent", 99},
					  {"CPU", "", "run_delay_percent", 9},
					  {"CPU", "", "cpu_pressure_percent", 50},
					  {"CPU", "", "runnable_per_cpu", 3},
					  {"CPU", "", "steal_percent", 0.2}};
	static const struct {
		unsigned width;
		const char *title, *text;
	} cells[] = {
		{0, "saturation", "PSI 50 %, run delay 9 %, 3.0 runnable/CPU"},
		{120, "saturation", "PSI 50 %, run delay 9 %, 3.0 runnable/CPU"},
		{84, "saturation", "PSI 50 %, run delay 9 %, …"},
		{70, "saturation", "PSI 50 %, …"},
		{40, "is", "99 %"},
	};
	const struct use_subject host = {.cpus = 4};
	const struct use_values v = {0};

	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
		struct use_report report;
		struct result r;

		result_init(&r, "");
		fill(&report, in, ARRAY_SIZE(in));
		for (size_t k = 1; k < ARRAY_SIZE(in); k++) {
			report.rows.v[0].values[k] = report.rows.v[k].values[0];
			report.rows.v[0].n_values++;
		}
		report.rows.n = 1;
		use_fill_result(&report, &v, &host, cells[i].width, USE_SORT_WORST, &r);
		assert_string_equal(cell_of(&r, 0, cells[i].title), cells[i].text);
		use_report_release(&report);
		result_release(&r);
	}
}

/* --- the tables ------------------------------------------------------------------------------- */

typedef void each_rule_fn(const struct finding_rule *rule, void *ctx);

static void for_each_rule(each_rule_fn *each, void *ctx)
{
	const struct use_rules *const tables[] = {&use_host_rules, &use_serving_rules};

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (size_t i = 0; i < tables[t]->n; i++)
			each(&tables[t]->v[i], ctx);
}

/* A rule names values that there are, and no limit twice. */
static void check_rule(const struct finding_rule *rule, void *ctx UNUSED)
{
	for (size_t k = 0; k < FINDING_TESTS_MAX && rule->tests[k].value; k++) {
		size_t metric = use_metric_find(rule->tests[k].value);

		if (metric == n_use_metrics)
			fail_msg("%s: no value %s", rule->name, rule->tests[k].value);
		if (isnan(rule->tests[k].limit) && isnan(use_metrics[metric].warn))
			fail_msg("%s: %s has no limit", rule->name, rule->tests[k].value);
		if (rule->tests[k].limit == use_metrics[metric].warn &&
		    !isnan(use_metrics[metric].warn))
			fail_msg("%s: the limit of %s is written twice", rule->name,
				 rule->tests[k].value);
	}
	assert_non_null(rule->means);
	assert_non_null(rule->source);
	if (strstr(rule->next, "{pid}"))
		assert_non_null(rule->next_else);
}

static void test_rules(void **state UNUSED)
{
	for_each_rule(check_rule, NULL);
}

/* Whatever is above its limit has a rule by itself: what it means, and what to do. */
static void test_each_limit_has_a_rule(void **state UNUSED)
{
	const struct use_subject host = {.cpus = 4};

	for (size_t i = 0; i < n_use_metrics; i++) {
		const struct use_metric *m = &use_metrics[i];
		const struct input in = {"x", "y", m->key, 2 * fmax(m->warn, m->critical) + 1};
		struct use_report report;
		struct result r;
		findings f = {0};

		if (isnan(m->warn))
			continue;
		result_init(&r, "");
		fill(&report, &in, 1);
		assert_int_equal(use_findings(&report, NULL, &host, &r, &f), 0);
		if (f.n != 1)
			fail_msg("%s: %zu rules", m->key, f.n);
		assert_true(use_finding_tells(&report, &f.v[0], &report.rows.v[0]));
		array_release(&f);
		use_report_release(&report);
		result_release(&r);
	}
}

/* The command parses its options: --help at the end is reached. */
static void parse_command(const char *line)
{
	char words[512], *argv[32], *save = NULL;
	const struct command *c;
	struct diag d = {0};
	bool json = false;
	int argc = 0;

	snprintf(words, sizeof(words), "%s --help", line);
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		assert_true(argc < (int)ARRAY_SIZE(argv) - 1);
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	c = command_find(argv[1]);
	if (!c)
		fail_msg("no command for %s", line);
	c->run(argc - 1, argv + 1, &d, &json);
	if (d.err != -ECANCELED)
		fail_msg("%s: %s", line, d.what ? d.what : "it ran");
	diag_release(&d);
}

static void parse_next(const struct finding_rule *rule, void *ctx)
{
	const struct use_subject *subject = ctx;
	struct use_row row = {.resource = "x", .device = "a/71", .scope = "host"};
	const char *line;
	struct result r;

	result_init(&r, "");
	line = use_fill_next(&r, rule, &row, subject);
	assert_null(strpbrk(line, "{}"));
	assert_null(strstr(line, "PID"));
	if (str_starts(line, "inspect "))
		parse_command(line);
	result_release(&r);
}

/* As it is printed, for everybody, a process, and a container. */
static void test_commands(void **state UNUSED)
{
	static const pid_t pids[] = {4711};
	struct use_subject subjects[] = {
		{.cpus = 4},
		{.cpus = 4, .lives = no_more},
		{.target = "-p 4711", .pids = pids, .n_pids = 1, .device = "/dev/x"},
		{.target = "-p 4711,4712 --children", .pids = pids, .n_pids = 1, .net_pid = 4711},
		{.target = "--cgroup /x", .engine = "http://127.0.0.1:8000/metrics"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
		for_each_rule(parse_next, &subjects[i]);
}

static void test_metrics(void **state UNUSED)
{
	for (size_t i = 0; i < n_use_metrics; i++) {
		const struct use_metric *m = &use_metrics[i];

		assert_int_equal(use_metric_find(m->key), i);
		assert_int_equal(strspn(m->key, "abcdefghijklmnopqrstuvwxyz0123456789_"),
				 strlen(m->key));
		assert_non_null(m->source);
		/* A limit has a source, and the critical one is not the lower. */
		assert_int_equal(m->why != NULL, !isnan(m->warn));
		assert_true(isnan(m->critical) || m->critical >= m->warn);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_findings), cmocka_unit_test(test_targets),
		cmocka_unit_test(test_limits),         cmocka_unit_test(test_refused_limits),
		cmocka_unit_test(test_untold_rows),    cmocka_unit_test(test_widths),
		cmocka_unit_test(test_rules),          cmocka_unit_test(test_each_limit_has_a_rule),
		cmocka_unit_test(test_commands),       cmocka_unit_test(test_metrics),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
