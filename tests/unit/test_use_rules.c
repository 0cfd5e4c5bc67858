/* SPDX-License-Identifier: BSD-2-Clause */
/* What use says first when rows look like this, and whom the next command is for. */
#include "../../src/cmd/stat.h"
#include "../../src/cmd/use.h"

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
				      .scope = "host",
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
	 "inspect trace --gpu -c -a"},
	{{{"GPU", "0", "gpu_busy_percent", 12},
	  {"hottest thread", "python3/71", "thread_busy_percent", 99},
	  {"request queue", "vLLM", "requests_running", 8}},
	 "event-loop-bound",
	 "hottest thread python3/71: one thread 99 % of a core (above 90), GPU 12 % busy (below "
	 "50)",
	 "inspect record -t 71"},
	{{{"KV cache", "vLLM", "kv_cache_percent", 99},
	  {"KV cache", "vLLM", "preemptions_per_second", 2},
	  {"GPU", "0", "gpu_busy_percent", 97}},
	 "kv-cache-full",
	 "KV cache vLLM: KV cache 99 % (above 90), 2.00 preemptions a second (above 0)",
	 "inspect use --watch"},
	{{{"cgroup CPU", "/pod", "throttled_percent", 40}, {"CPU", "", "cpu_busy_percent", 30}},
	 "cgroup-throttled",
	 "cgroup CPU /pod: 40 % of its periods (above 1)",
	 "inspect offcpu -a"},
	{{{"hottest thread", "a/1/72", "thread_busy_percent", 100},
	  {"CPU", "", "cpu_busy_percent", 30}},
	 "hot-thread",
	 "hottest thread a/1/72: 100 % of a core (above 90)",
	 "inspect record -t 72"},
	{{{"request queue", "x", "requests_waiting", 9}, {"GPU", "0", "gpu_busy_percent", 30}},
	 "gpu-starved",
	 "request queue x: 9 requests wait (above 0), GPU 30 % busy (below 50)",
	 "inspect offcpu -a"},
	{{{"locks", "app/99 0x7f00", "lock_wait", 2}},
	 "locked",
	 "locks app/99 0x7f00: 2.00 s of waiting a second (above 0.1)",
	 "inspect trace --locks -p 99"},
	{{{"fds", "srv/55", "fds_percent", 97}},
	 "descriptors",
	 "fds srv/55: 97 % of its limit (above 80)",
	 "ls -l /proc/55/fd"},
	{{{"fds", "srv/55", "fds_percent", 97}, {"fds", "srv/55", "fds_refused", 3}},
	 "descriptors",
	 "fds srv/55: 3 calls failed with EMFILE (above 0)",
	 "ls -l /proc/55/fd"},
	{{{"threads", "", "threads_refused", 5}},
	 "no-more-processes",
	 "threads: 5 forks failed with EAGAIN (above 0)",
	 "prlimit --nproc; cat /sys/fs/cgroup/pids.max; sysctl kernel.threads-max"},
	/* One thread waits for a CPU though there are some. Where there are none that is first. */
	{{{"run queue", "app/44", "thread_run_delay_percent", 40},
	  {"CPU", "", "run_delay_percent", 1}},
	 "waits-for-cpu",
	 "run queue app/44: run delay 40 % (above 5)",
	 "inspect offcpu -t 44"},
	{{{"run queue", "app/44", "thread_run_delay_percent", 90},
	  {"CPU", "", "run_delay_percent", 300},
	  {"CPU", "", "cpu_busy_percent", 100}},
	 "cpu-saturated",
	 "CPU: run delay 300 % (above 5), 100 % busy (above 80)",
	 "inspect record -a -d 10"},
	{{{"GPU driver", "", "gpu_calls_p99_ms", 8}},
	 "gpu-driver-slow",
	 "GPU driver: p99 8.0 ms (above 5)",
	 "inspect trace --gpu -c -a"},
	{{{"GPU driver", "", "gpu_allocs_per_second", 30},
	  {"request queue", "x", "requests_running", 2}},
	 "gpu-allocates",
	 "GPU driver: 30 allocations a second (above 10)",
	 "inspect trace --gpu --leaks -a"},
	/* What is critical comes before what is a warning, whatever their order in the table. */
	{{{"cgroup CPU", "/pod", "throttled_percent", 5}, {"disk", "sda", "disk_await_ms", 80}},
	 "slow-disk",
	 "disk sda: 80.0 ms for each I/O (above 10)",
	 "inspect offcpu -a"},
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
		assert_int_equal(use_findings(&report, &host, &r, &f), 0);
		assert_true(f.n >= 1);
		assert_string_equal(f.v[0].rule->name, cases[i].rule);
		assert_string_equal(f.v[0].evidence, cases[i].evidence);
		assert_string_equal(f.v[0].next, cases[i].next);
		array_release(&f);
		use_report_release(&report);
		result_release(&r);
	}
}

static const char *fact_of(const struct result *r, const char *label)
{
	for (size_t i = 0; i < r->facts.n; i++)
		if (str_eq(r->facts.v[i].label, label))
			return r->facts.v[i].value.text;
	return "";
}

/* What no rule speaks of comes first when it is worse than what they speak of. */
static void test_worst_row(void **state UNUSED)
{
	static const struct input in[] = {{"disk", "sda", "disk_await_ms", 20},
					  {"GPU memory", "0", "gpu_ecc_uncorrected", 2}};
	const struct use_subject host = {.cpus = 4};
	const struct use_values v = {0};
	struct use_report report;
	struct result r;

	for (size_t n = 1; n <= ARRAY_SIZE(in); n++) {
		result_init(&r, "");
		fill(&report, in, n);
		use_fill_result(&report, &v, &host, false, USE_SORT_WORST, &r);
		if (n == 2)
			assert_string_equal(fact_of(&r, "verdict"),
					    "critical: GPU memory 0: 2 ECC errors");
		assert_non_null(strstr(fact_of(&r, n == 1 ? "verdict" : "also"), "slow-disk: "));
		use_report_release(&report);
		result_release(&r);
	}
}

/* A rule names values and commands that there are. */
static void test_rules(void **state UNUSED)
{
	for (size_t i = 0; i < n_use_rules; i++) {
		const struct finding_rule *rule = &use_rules[i];

		for (size_t k = 0; k < FINDING_TESTS_MAX && rule->tests[k].value; k++)
			if (use_metric_find(rule->tests[k].value) == n_use_metrics)
				fail_msg("%s: no value %s", rule->name, rule->tests[k].value);
		assert_non_null(rule->means);
		assert_non_null(rule->source);
		if (str_starts(rule->next, "inspect ") && !stat_has_command(rule->next))
			fail_msg("%s: no command for %s", rule->name, rule->next);
	}
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
		cmocka_unit_test(test_first_findings),
		cmocka_unit_test(test_worst_row),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_metrics),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
