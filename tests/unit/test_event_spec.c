/* SPDX-License-Identifier: BSD-2-Clause */
#include "../../src/perf/event_spec.h"
#include <inspect/near_miss.h>

#include <inspect/procfs.h>

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

/* A folder with a PMU "cpu" of three formats, and tracefs with three events. */
struct fixture {
	char root[64], sysfs[96];
	struct host host;
};

static void write_file(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(full, 0755);
		*slash = '/';
	}
	file = fopen(full, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.root = "/tmp/test_event_spec.XXXXXX"};
	assert_non_null(mkdtemp(f.root));
	snprintf(f.sysfs, sizeof(f.sysfs), "%s/sysfs", f.root);
	snprintf(f.host.tracefs, sizeof(f.host.tracefs), "%s", f.root);
	write_file(f.root, "sysfs/cpu/type", "4\n");
	write_file(f.root, "sysfs/cpu/format/event", "config:0-7,32-35\n");
	write_file(f.root, "sysfs/cpu/format/umask", "config:8-15\n");
	write_file(f.root, "sysfs/cpu/format/edge", "config:18\n");
	write_file(f.root, "sysfs/cpu/format/ldlat", "config1:0-15\n");
	write_file(f.root, "sysfs/cpu/format/odd", "config7:0-99\n");
	write_file(f.root, "sysfs/cpu/events/cpu-cycles", "event=0x3c\n");
	write_file(f.root, "sysfs/cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
	write_file(f.root, "sysfs/cpu/events/loop", "loop\n");
	write_file(f.root, "sysfs/cpu/events/empty", "");
	write_file(f.root, "sysfs/uncore_imc/type", "17\n");
	write_file(f.root, "events/sched/sched_switch/id", "314\n");
	write_file(f.root, "events/sched/sched_wakeup/id", "316\n");
	write_file(f.root, "events/syscalls/sys_enter_futex/id", "77\n");
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", f->root);
	return system(command);
}

static event_specs parse(struct fixture *f, const char *text)
{
	event_specs specs = {0};
	CLEANUP(diag_release) struct diag d = {0};
	int err = event_specs_parse_at(text, &f->host, f->sysfs, &specs, &d);

	if (err)
		print_message("# %s: %s\n", text, d.what);
	assert_int_equal(err, 0);
	return specs;
}

static void test_generic_names(void **state)
{
	/* Numbers from include/uapi/linux/perf_event.h, written out on purpose. */
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} rows[] = {
		{"cycles", 0, 0},
		{"cpu-cycles", 0, 0},
		{"instructions", 0, 1},
		{"cache-references", 0, 2},
		{"cache-misses", 0, 3},
		{"branches", 0, 4},
		{"branch-instructions", 0, 4},
		{"branch-misses", 0, 5},
		{"bus-cycles", 0, 6},
		{"stalled-cycles-frontend", 0, 7},
		{"idle-cycles-backend", 0, 8},
		{"ref-cycles", 0, 9},
		{"cpu-clock", 1, 0},
		{"task-clock", 1, 1},
		{"page-faults", 1, 2},
		{"faults", 1, 2},
		{"cs", 1, 3},
		{"context-switches", 1, 3},
		{"migrations", 1, 4},
		{"minor-faults", 1, 5},
		{"major-faults", 1, 6},
		{"alignment-faults", 1, 7},
		{"emulation-faults", 1, 8},
		{"dummy", 1, 9},
		{"bpf-output", 1, 10},
		{"cgroup-switches", 1, 11},
		{"L1-dcache-load-misses", 3, 0x10000},
		{"L1-dcache-loads", 3, 0},
		{"L1-dcache-stores", 3, 0x100},
		{"l1d", 3, 0},
		{"L1-icache-load-misses", 3, 0x10001},
		{"LLC-loads", 3, 2},
		{"LLC-prefetch-misses", 3, 0x10202},
		{"LLC-misses", 3, 0x10002},
		{"dTLB-store-misses", 3, 0x10103},
		{"iTLB-loads", 3, 4},
		{"branch-loads", 3, 5},
		{"branch-load-misses", 3, 0x10005},
		{"node-speculative-read-miss", 3, 0x10206},
		{"r1a8", 4, 0x1a8},
		{"rffffffffffffffff", 4, UINT64_MAX},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		event_specs specs = parse(*state, rows[i].name);

		assert_int_equal(specs.n, 1);
		assert_int_equal(specs.v[0].attr.type, rows[i].type);
		assert_true(specs.v[0].attr.config == rows[i].config);
		assert_string_equal(specs.v[0].name, rows[i].name);
		assert_false(specs.v[0].is_tracepoint);
		assert_int_equal(specs.v[0].attr.exclude_guest, 1);
		assert_int_equal(specs.v[0].attr.exclude_user, 0);
		event_specs_release(&specs);
	}
}

/* As `perf evlist -v` shows for perf 6.1, but that there k, h and P alone include guests. */
static void test_modifiers(void **state)
{
	static const struct {
		const char *name;
		int user, kernel, hv, guest, host, precise; /* excluded */
	} rows[] = {
		{"cycles:u", 0, 1, 1, 1, 0, 0},         {"cycles:k", 1, 0, 1, 1, 0, 0},
		{"cycles:uk", 0, 0, 1, 1, 0, 0},        {"cycles:h", 1, 1, 0, 1, 0, 0},
		{"cycles:pp", 0, 0, 0, 1, 0, 2},        {"cycles:uppp", 0, 1, 1, 1, 0, 3},
		{"cycles:P", 0, 0, 0, 1, 0, 3},         {"cycles:G", 0, 0, 0, 0, 1, 0},
		{"cycles:H", 0, 0, 0, 1, 0, 0},         {"cycles:GH", 0, 0, 0, 0, 0, 0},
		{"cycles:kH", 1, 0, 1, 1, 0, 0},        {"r1a8:u", 0, 1, 1, 1, 0, 0},
		{"LLC-loads:u", 0, 1, 1, 1, 0, 0},      {"cpu/event=1/u", 0, 1, 1, 1, 0, 0},
		{"cpu/event=1/:kpp", 1, 0, 1, 1, 0, 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		event_specs specs = parse(*state, rows[i].name);
		const struct perf_event_attr *a = &specs.v[0].attr;

		assert_string_equal(specs.v[0].name, rows[i].name);
		assert_int_equal(a->exclude_user, rows[i].user);
		assert_int_equal(a->exclude_kernel, rows[i].kernel);
		assert_int_equal(a->exclude_hv, rows[i].hv);
		assert_int_equal(a->exclude_guest, rows[i].guest);
		assert_int_equal(a->exclude_host, rows[i].host);
		assert_int_equal(a->precise_ip, rows[i].precise);
		event_specs_release(&specs);
	}
}

static void test_pmu_terms(void **state)
{
	static const struct {
		const char *text, *name;
		uint64_t config, config1, period;
	} rows[] = {
		{"cpu/event=0x3c,umask=0x0/", NULL, 0x3c, 0, 0},
		{"cpu/event=0xabc,umask=2,edge/", NULL, 0xa000402bc, 0, 0},
		{"cpu/cycles/", NULL, 0x3c, 0, 0},
		{"cpu/cpu-cycles,period=200003/", NULL, 0x3c, 0, 200003},
		{"cpu/mem-loads/", NULL, 0x1cd, 3, 0},
		{"cpu/mem-loads,ldlat=30/", NULL, 0x1cd, 30, 0},
		{"cpu/config=0x1234,config1=7/", NULL, 0x1234, 7, 0},
		{"cpu/event=1,name=mine/", "mine", 1, 0, 0},
		{"cpu//", NULL, 0, 0, 0},
	};
	event_specs specs;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		specs = parse(*state, rows[i].text);
		assert_int_equal(specs.n, 1);
		assert_int_equal(specs.v[0].attr.type, 4);
		assert_true(specs.v[0].attr.config == rows[i].config);
		assert_true(specs.v[0].attr.config1 == rows[i].config1);
		assert_true(specs.v[0].attr.sample_period == rows[i].period);
		assert_string_equal(specs.v[0].name, rows[i].name ? rows[i].name : rows[i].text);
		event_specs_release(&specs);
	}
	specs = parse(*state, "uncore_imc/config=1,freq=99/");
	assert_int_equal(specs.v[0].attr.type, 17);
	assert_int_equal(specs.v[0].attr.freq, 1);
	assert_int_equal(specs.v[0].attr.sample_freq, 99);
	event_specs_release(&specs);
}

static void test_lists_and_tracepoints(void **state)
{
	event_specs specs = parse(*state, "cpu/event=1,umask=2/, cs,sched:sched_switch,cs");

	assert_int_equal(specs.n, 4);
	assert_int_equal(specs.v[0].attr.config, 0x201);
	assert_string_equal(specs.v[1].name, "cs");
	assert_string_equal(specs.v[2].name, "sched:sched_switch");
	assert_int_equal(specs.v[2].attr.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(specs.v[2].attr.config, 314);
	assert_true(specs.v[2].is_tracepoint);
	assert_string_equal(specs.v[3].name, "cs");
	event_specs_release(&specs);

	specs = parse(*state, "sched:sched_wakeup:u");
	assert_int_equal(specs.v[0].attr.config, 316);
	assert_int_equal(specs.v[0].attr.exclude_kernel, 1);
	assert_string_equal(specs.v[0].name, "sched:sched_wakeup:u");
	event_specs_release(&specs);

	specs = parse(*state, "sched:sched_*");
	assert_int_equal(specs.n, 2);
	assert_string_equal(specs.v[0].name, "sched:sched_switch");
	assert_string_equal(specs.v[1].name, "sched:sched_wakeup");
	event_specs_release(&specs);
}

static void test_refusals(void **state)
{
	/* The word must be in what, why or fix. */
	static const struct {
		const char *text, *word;
	} rows[] = {
		{"", "empty"},
		{"cs,,cs", "empty"},
		{"cs,", "empty"},
		{"cycels", "cycles"},
		{"cycels:u", "cycles"},
		{"cache-miss", "cache-misses"},
		{"L1-dcache-load-mises", "L1-dcache-load-misses"},
		{"iTLB-stores", "iTLB-stores"},
		{"LLC-", "LLC-"},
		{"LLC-loads-loads", "LLC-loads-loads"},
		{"r", "'r'"},
		{"r12345678901234567", "r12345678901234567"},
		{"rxyz", "rxyz"},
		{"cycles:z", "'z'"},
		{"cycles:uu", "'uu'"},
		{"cycles:pppp", "'pppp'"},
		{"{cycles,instructions}", "groups"},
		{"sched:sched_swich", "sched:sched_switch"},
		{"shed:sched_switch", "sched:sched_switch"},
		{"sched:nothing_*", "sched:nothing_*"},
		{"sched:../../x", "not"},
		{"../sched:x", "closing"},
		{"cpu/event=1", "closing"},
		{"cpx/event=1/", "cpu"},
		{"cpu/evnt=1/", "event"},
		{"cpu/mem-load/", "mem-loads"},
		{"cpu/event=0x10000/", "more than its bits"},
		{"cpu/event=zz/", "number"},
		{"cpu/event=?/", "number"},
		{"cpu/event=-1/", "number"},
		{"cpu/odd=1/", "not understood"},
		{"cpu/loop/", "loop"},
		{"cpu/empty/", "empty"},
		{"cpu/period=0/", "period"},
		{"../cpu/event=1/", "modifiers"},
		{"../event=1/", "not the name"},
		{"cpu/../type=1/", "modifiers"},
		{"cpu/..=1/", "not a term"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		event_specs specs = {0};
		CLEANUP(diag_release) struct diag d = {0};
		int err = event_specs_parse_at(rows[i].text, &f->host, f->sysfs, &specs, &d);

		if (err >= 0 || !d.what)
			fail_msg("%s was accepted", rows[i].text);
		assert_int_equal(err, d.err);
		assert_int_equal(specs.n, 0);
		if (!strstr(d.what, rows[i].word) && !(d.why && strstr(d.why, rows[i].word)) &&
		    !(d.fix && strstr(d.fix, rows[i].word)))
			fail_msg("%s: no '%s' in: %s / %s / %s", rows[i].text, rows[i].word, d.what,
				 d.why ? d.why : "", d.fix ? d.fix : "");
	}
}

static void test_failure_appends_nothing(void **state)
{
	struct fixture *f = *state;
	event_specs specs = parse(f, "cs");

	assert_true(event_specs_parse_at("cpu-clock,nonsense", &f->host, f->sysfs, &specs, NULL) <
		    0);
	assert_int_equal(specs.n, 1);
	assert_int_equal(event_specs_parse_at("cpu-clock", &f->host, f->sysfs, &specs, NULL), 0);
	assert_int_equal(specs.n, 2);
	assert_string_equal(specs.v[1].name, "cpu-clock");
	event_specs_release(&specs);
}

static void test_sizes_are_bounded(void **state)
{
	struct fixture *f = *state;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	event_specs specs = {0};

	for (int i = 0; i < 600; i++)
		strbuf_printf(&text, "%scs", i ? "," : "");
	assert_int_equal(event_specs_parse_at(text.v, &f->host, f->sysfs, &specs, NULL), -E2BIG);
	strbuf_clear(&text);
	strbuf_puts(&text, "cpu/");
	for (int i = 0; i < 100; i++)
		strbuf_puts(&text, "edge,");
	strbuf_puts(&text, "/");
	assert_int_equal(event_specs_parse_at(text.v, &f->host, f->sysfs, &specs, NULL), -E2BIG);
	strbuf_clear(&text);
	for (int i = 0; i < 5000; i++)
		strbuf_putc(&text, 'x');
	assert_int_equal(event_specs_parse_at(text.v, &f->host, f->sysfs, &specs, NULL),
			 -ENAMETOOLONG);
	for (int i = 0; i < 70000; i++)
		strbuf_putc(&text, ',');
	assert_int_equal(event_specs_parse_at(text.v, &f->host, f->sysfs, &specs, NULL), -E2BIG);
	assert_int_equal(specs.n, 0);
}

static void test_edit_distance(void **state)
{
	(void)state;
	assert_int_equal(edit_distance("cycles", "cycles"), 0);
	assert_int_equal(edit_distance("cycels", "cycles"), 1); /* swapped */
	assert_int_equal(edit_distance("cycle", "cycles"), 1);
	assert_int_equal(edit_distance("kitten", "sitting"), 3);
	assert_int_equal(edit_distance("", "abc"), 3);
	assert_int_equal(edit_distance("LLC", "llc"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generic_names),
		cmocka_unit_test(test_modifiers),
		cmocka_unit_test(test_pmu_terms),
		cmocka_unit_test(test_lists_and_tracepoints),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_failure_appends_nothing),
		cmocka_unit_test(test_sizes_are_bounded),
		cmocka_unit_test(test_edit_distance),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
