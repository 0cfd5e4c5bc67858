/* SPDX-License-Identifier: BSD-2-Clause */
/* The counting engine on a PMU made of tables: groups, multiplexing, scaling, refusals. */
#include "fake_pmu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define HW(id, rate)                                                                               \
	{                                                                                          \
		PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id, rate                                       \
	}
#define SW(id, rate)                                                                               \
	{                                                                                          \
		PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, rate                                       \
	}
static const struct fake_rate all_rates[] = {
	HW(CPU_CYCLES, 3000),          HW(INSTRUCTIONS, 4500),       HW(CACHE_REFERENCES, 90),
	HW(CACHE_MISSES, 30),          HW(BRANCH_INSTRUCTIONS, 600), HW(BRANCH_MISSES, 6),
	SW(TASK_CLOCK, FAKE_SLICE_NS), SW(CONTEXT_SWITCHES, 2),      SW(PAGE_FAULTS, 1),
};

#define CHILD ((pid_t)4242)

struct bench {
	struct fake_pmu pmu;
	struct host host;
	struct counter_events events;
	struct counters *counters;
	note_list notes;
	struct diag diag;
	struct counters_config config;
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	if (!b)
		return -1;
	b->pmu.counters = 8;
	b->pmu.rates = all_rates;
	b->pmu.n_rates = ARRAY_SIZE(all_rates);
	b->host.has_pmu = true;
	b->host.perf_event_paranoid = 2;
	b->host.euid = 1000;
	b->config.child = CHILD;
	b->config.events = &b->events;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	counters_free(b->counters);
	/* Whatever happened, all that was opened is closed. */
	if (b->pmu.opened != b->pmu.closed)
		return -1;
	counter_events_release(&b->events);
	note_list_release(&b->notes);
	diag_release(&b->diag);
	free(b);
	return 0;
}

static int open_events(struct bench *b, const char *text)
{
	assert_int_equal(counter_events_parse(text, &b->host, &b->events, NULL), 0);
	return counters_new(&b->config, &fake_pmu_ops, &b->pmu, &b->host, &b->notes, &b->counters,
			    &b->diag);
}

static void run(struct bench *b, unsigned slices)
{
	/* The exec of the child enables what waits for it. */
	for (int i = 0; i < FAKE_EVENTS; i++)
		b->pmu.events[i].enabled |= b->pmu.events[i].attr.enable_on_exec;
	assert_int_equal(counters_start(b->counters), 0);
	fake_run(&b->pmu, slices);
	assert_int_equal(counters_stop(b->counters), 0);
	assert_int_equal(counters_read(b->counters), 0);
}

static size_t event_index(const struct bench *b, const char *name)
{
	for (size_t i = 0; i < counters_events(b->counters); i++)
		if (str_starts(counters_event(b->counters, i)->name, name))
			return i;
	fail_msg("no event %s", name);
	return 0;
}

static double total(const struct bench *b, const char *name, struct count *ret)
{
	return counters_total(b->counters, event_index(b, name), ret);
}

/* --- scaling ---------------------------------------------------------------------------------- */

static void test_scaling(void **state UNUSED)
{
	static const struct {
		struct count count;
		double want;
	} table[] = {
		{{100, 1000, 1000}, 100},
		{{100, 1000, 500}, 200},
		{{100, 1000, 333}, 300},
		{{100, 0, 0}, 0},
		{{0, 1000, 500}, 0},
		{{7, 1000, 2000}, 7},
		{{1, 3, 2}, 2} /* 1.5 is rounded up, as perf does */,
		{{100, 1000, 0}, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_true(count_scaled(&table[i].count) == table[i].want);
}

/* --- scheduling ------------------------------------------------------------------------------- */

static void test_all_fit(void **state)
{
	struct bench *b = *state;
	struct count c;

	assert_int_equal(open_events(b, "{cycles,instructions},cache-misses,task-clock"), 0);
	run(b, 1000);
	assert_true(total(b, "cycles", &c) == 3000e3);
	assert_int_equal(c.running_ns, c.enabled_ns);
	assert_true(total(b, "instructions", &c) == 4500e3);
	assert_true(total(b, "cache-misses", &c) == 30e3);
	assert_true(total(b, "task-clock", &c) == 1e9);
	assert_int_equal(b->notes.n, 0);
}

/* Three pairs on four counters: two of three are on at a time. */
static void test_multiplexed_groups(void **state)
{
	struct bench *b = *state;
	struct count cycles, instructions, references, clock;

	b->pmu.counters = 4;
	assert_int_equal(open_events(b, "{cycles,instructions},{cache-references,cache-misses},"
					"{branches,branch-misses},task-clock"),
			 0);
	run(b, 3000);
	assert_true(total(b, "cycles", &cycles) == 9e6);
	assert_true(total(b, "instructions", &instructions) == 13.5e6);
	assert_true(total(b, "cache-references", &references) == 270e3);
	assert_int_equal(cycles.running_ns, instructions.running_ns);
	assert_true(fabs((double)cycles.running_ns / (double)cycles.enabled_ns - 2.0 / 3) < 0.001);
	/* Software events take no counter and are always on. */
	assert_true(total(b, "task-clock", &clock) == 3e9);
	assert_int_equal(clock.running_ns, clock.enabled_ns);
}

/* A group of three never fits two counters: each event is counted alone, and that is said. */
static void test_group_broken_up(void **state)
{
	struct bench *b = *state;
	struct count c;

	b->pmu.counters = 2;
	assert_int_equal(open_events(b, "{cycles,instructions,branches},{cache-references,"
					"cache-misses}"),
			 0);
	assert_int_equal(b->notes.n, 1);
	assert_non_null(strstr(b->notes.v[0], "cycles, instructions, branches"));
	assert_true(counters_event(b->counters, 0)->broken_up);
	assert_false(counters_event(b->counters, event_index(b, "cache-misses"))->broken_up);
	run(b, 4000);
	assert_true(fabs(total(b, "cycles", &c) - 12e6) < 12e6 * 0.01);
	assert_true(c.running_ns && c.running_ns < c.enabled_ns);
}

/* It was never on: not 0, but not counted. */
static void test_never_on_a_counter(void **state)
{
	struct bench *b = *state;
	struct count c;
	double v;

	assert_int_equal(open_events(b, "cycles,context-switches"), 0);
	b->pmu.counters = 0;
	run(b, 100);
	total(b, "cycles", &c);
	assert_int_equal(c.running_ns, 0);
	assert_false(counters_value(b->counters, event_index(b, "cycles"), &c, &v));
	total(b, "context-switches", &c);
	assert_true(counters_value(b->counters, event_index(b, "context-switches"), &c, &v));
	assert_true(v == 200);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void test_missing_event(void **state)
{
	struct bench *b = *state;
	struct count c;
	double v;

	assert_int_equal(open_events(b, "{bus-cycles,cycles,instructions}"), 0);
	assert_string_equal(counters_event(b->counters, 0)->missing,
			    "this CPU's counters do not have the event");
	assert_int_equal(counters_event(b->counters, 0)->err, -ENOENT);
	run(b, 10);
	/* The group goes on without it. */
	assert_true(total(b, "instructions", &c) == 45000);
	total(b, "bus-cycles", &c);
	assert_false(counters_value(b->counters, 0, &c, &v));
}

static void test_no_pmu(void **state)
{
	struct bench *b = *state;

	b->pmu.n_rates = 0;
	b->host.has_pmu = false;
	assert_int_equal(open_events(b, "cycles"), 0);
	assert_string_equal(counters_event(b->counters, 0)->missing, "no hardware counters here");
	b->host.virtual_machine = true;
	assert_string_equal(counter_reason(-ENOENT, true, &b->host),
			    "no hardware counters in this VM");
}

static void test_user_only(void **state)
{
	struct bench *b = *state;

	b->pmu.kernel_error = -EACCES;
	assert_int_equal(open_events(b, "cycles,page-faults"), 0);
	assert_string_equal(counters_event(b->counters, 0)->name, "cycles:u");
	assert_true(counters_event(b->counters, 0)->attr.exclude_kernel);
	assert_int_equal(b->notes.n, 1);
	assert_non_null(strstr(b->notes.v[0], "perf_event_paranoid=2"));
}

/* Switches happen in the kernel: without it they are not 0, they are not counted. */
static void test_user_only_leaves_no_switches(void **state)
{
	struct bench *b = *state;

	b->pmu.kernel_error = -EACCES;
	b->config.required = true;
	assert_int_equal(open_events(b, "context-switches"), 0);
	assert_non_null(strstr(counters_event(b->counters, 0)->missing, "not permitted"));
}

static void test_refusal_of_what_was_asked_for(void **state)
{
	struct bench *b = *state;

	b->pmu.open_error = -EACCES;
	b->config.required = true;
	assert_int_equal(open_events(b, "cycles"), -EACCES);
	assert_non_null(strstr(b->diag.what, "cannot count 'cycles"));
	assert_null(b->counters);
}

static void test_descriptors(void **state)
{
	struct bench *b = *state;

	b->pmu.open_error = -EMFILE;
	b->pmu.opens_left = 2;
	assert_int_equal(open_events(b, "cycles,instructions,branches"), -EMFILE);
	assert_non_null(strstr(b->diag.why, "descriptors"));
	assert_int_equal(b->pmu.opened, 2);
}

static void test_guests(void **state)
{
	struct bench *b = *state;

	b->pmu.refuses_guests = true;
	assert_int_equal(open_events(b, "{cycles,instructions},branches"), 0);
	assert_int_equal(b->notes.n, 0);
	for (size_t i = 0; i < 3; i++) {
		assert_null(counters_event(b->counters, i)->missing);
		assert_false(counters_event(b->counters, i)->broken_up);
	}
}

static void test_child_gone(void **state)
{
	struct bench *b = *state;

	b->pmu.gone = CHILD;
	assert_int_equal(open_events(b, "cycles"), -ESRCH);
}

static void test_thread_gone(void **state)
{
	struct bench *b = *state;
	const pid_t tids[] = {100, 101, 102};

	b->config.child = 0;
	b->config.tids = tids;
	b->config.n_tids = 3;
	b->pmu.gone = 101;
	assert_int_equal(open_events(b, "cycles,task-clock"), 0);
	assert_int_equal(counters_places(b->counters), 2);
	assert_int_equal(b->notes.n, 1);
	assert_non_null(strstr(b->notes.v[0], "1 thread ended"));
}

static void test_read_error(void **state)
{
	struct bench *b = *state;

	assert_int_equal(open_events(b, "cycles"), 0);
	b->pmu.read_error = -EIO;
	assert_int_equal(counters_read(b->counters), -EIO);
}

static void test_nothing_left(void **state)
{
	struct bench *b = *state;

	b->config.user_only = true;
	assert_int_equal(open_events(b, "cycles:k"), -EINVAL);
	assert_non_null(strstr(b->diag.what, "nothing is left"));
}

/* --- places ----------------------------------------------------------------------------------- */

static void test_places(void **state)
{
	struct bench *b = *state;
	const pid_t tids[] = {100, 101};
	struct count c;

	b->config.child = 0;
	b->config.tids = tids;
	b->config.n_tids = 2;
	assert_int_equal(open_events(b, "cycles"), 0);
	assert_int_equal(counters_places(b->counters), 2);
	assert_int_equal(counters_place(b->counters, 0)->tid, 100);
	assert_int_equal(counters_place(b->counters, 1)->tid, 101);
	assert_false(b->pmu.events[0].attr.inherit);
	run(b, 10);
	assert_true(counters_at(b->counters, 0, 1, &c));
	assert_int_equal(c.value, 30000);
	assert_true(total(b, "cycles", &c) == 60000);
}

/* A task on two CPUs in turn: what waits is the event of the other CPU, not for a counter. */
static void test_task_on_its_cpus(void **state)
{
	struct bench *b = *state;
	static const int cpus[] = {0};
	struct count cycles, faults;
	double value;

	b->config.cpus = cpus;
	b->config.n_cpus = 1;
	assert_int_equal(open_events(b, "page-faults,cycles"), 0);
	run(b, 100);
	for (int i = 0; i < FAKE_EVENTS; i++)
		b->pmu.events[i].enabled = false;
	/* Elsewhere for half of the time; a third of the rest without a counter. */
	for (int i = 0; i < FAKE_EVENTS; i++) {
		struct fake_event *e = &b->pmu.events[i];

		e->count.enabled_ns *= 2;
		if (e->attr.type == PERF_TYPE_HARDWARE)
			e->count.running_ns = e->count.running_ns * 2 / 3;
	}
	assert_int_equal(counters_read(b->counters), 0);
	total(b, "page-faults", &faults);
	assert_int_equal(faults.running_ns, faults.enabled_ns);
	value = total(b, "cycles", &cycles);
	assert_int_equal(cycles.enabled_ns, faults.running_ns);
	assert_true(fabs(value / (double)cycles.value - 1.5) < 0.001);
}

static void test_child_flags(void **state)
{
	struct bench *b = *state;

	assert_int_equal(open_events(b, "cycles"), 0);
	assert_true(b->pmu.events[0].attr.inherit);
	assert_true(b->pmu.events[0].attr.enable_on_exec);
	assert_true(b->pmu.events[0].attr.disabled);
	assert_int_equal(b->pmu.events[0].cpu, -1);
}

static void test_system_wide(void **state)
{
	struct bench *b = *state;
	const int cpus[] = {0};

	b->config.child = 0;
	b->config.all = true;
	b->config.cpus = cpus;
	b->config.n_cpus = 1;
	assert_int_equal(open_events(b, "cycles,task-clock"), 0);
	assert_int_equal(counters_places(b->counters), 1);
	assert_int_equal(b->pmu.events[0].pid, -1);
	assert_int_equal(b->pmu.events[0].cpu, 0);
}

/* --- the list --------------------------------------------------------------------------------- */

static void test_groups_of_the_list(void **state)
{
	struct bench *b = *state;
	const unsigned want[] = {0, 1, 1, 2, 3, 3};

	assert_int_equal(counter_events_parse("cycles,{instructions,branches},page-faults,"
					      "{cache-misses,cache-references}",
					      &b->host, &b->events, NULL),
			 0);
	assert_int_equal(b->events.specs.n, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(b->events.groups.v[i], want[i]);
	/* What is appended begins a group of its own. */
	assert_int_equal(counter_events_parse("{cycles,instructions}", &b->host, &b->events, NULL),
			 0);
	assert_int_equal(b->events.groups.v[6], 4);
	assert_int_equal(b->events.groups.v[7], 4);
}

static void test_bad_lists(void **state)
{
	static const char *const lists[] = {
		"",
		"{",
		"}",
		"{cycles",
		"cycles}",
		"{}",
		"{cycles}x",
		"{{cycles}}",
		"cycles{instructions}",
		"{cycles},,branches",
		"nosuchevent",
	};
	struct bench *b = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		CLEANUP(diag_release) struct diag d = {0};

		if (counter_events_parse(lists[i], &b->host, &b->events, &d) >= 0)
			fail_msg("'%s' is taken", lists[i]);
		assert_non_null(d.what);
	}
	assert_int_equal(b->events.specs.n, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scaling),
		T(test_all_fit),
		T(test_multiplexed_groups),
		T(test_group_broken_up),
		T(test_never_on_a_counter),
		T(test_missing_event),
		T(test_no_pmu),
		T(test_user_only),
		T(test_user_only_leaves_no_switches),
		T(test_refusal_of_what_was_asked_for),
		T(test_descriptors),
		T(test_guests),
		T(test_child_gone),
		T(test_thread_gone),
		T(test_read_error),
		T(test_nothing_left),
		T(test_places),
		T(test_task_on_its_cpus),
		T(test_child_flags),
		T(test_system_wide),
		T(test_groups_of_the_list),
		T(test_bad_lists),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
