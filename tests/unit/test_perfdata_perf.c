/* SPDX-License-Identifier: BSD-2-Clause */
/* perf as the judge: its files read by us, and ours read by it. */
#include "perfdata_image.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

#define BUSY "sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'"

/* What perf prints of its decoding, one line a sample: the form of tally_sample(). */
static const char dump_awk[] =
	"function out() { if (t) print t, who, ip, period, \"nr\", nr, \"sp\", sp, \"stack\", st;\n"
	" t = \"\"; nr = 0; sp = 0; st = 0 }\n"
	"/PERF_RECORD_/ { out() }\n"
	"/: PERF_RECORD_SAMPLE\\(IP, 0x[0-9a-f]+\\): / {\n"
	" n = split(substr($0, 1, index($0, \": PERF_RECORD_SAMPLE\")), f, \" \"); t = f[n - 2]\n"
	" rest = $0; sub(/.*PERF_RECORD_SAMPLE\\(IP, 0x[0-9a-f]+\\): /, \"\", rest)\n"
	" split(rest, g, \" \"); who = g[1]; sub(/:/, \"\", who); ip = g[2]; period = g[4] }\n"
	"/^\\.\\.\\. FP chain: nr:/ { sub(/nr:/, \"\", $4); nr = $4 }\n"
	"/regs: mask/ { user = $2 == \"user\" }\n"
	"/^\\.\\.\\.\\. SP / && user { sp = $3; sub(/^0x0*/, \"\", sp) }\n"
	"/^\\.\\.\\. ustack: size/ { st = $4; sub(/,/, \"\", st) }\n"
	"END { out() }\n";

/* Samples of a file as we read them, sorted, without and with the event's name. */
static uint64_t our_lines(const char *path)
{
	struct perfdata_reader *r = NULL;
	struct diag d = {0};
	struct tally t = {0};

	if (perfdata_open(path, &r, &d))
		fail_msg("%s", d.what);
	t.lines = fopen("ours", "w");
	assert_non_null(t.lines);
	if (tally_read(&t, r, &d))
		fail_msg("%s", d.what);
	fclose(t.lines);
	assert_int_equal(t.undecoded, 0);
	assert_null(perfdata_info(r)->damage);
	perfdata_reader_free(r);
	free(shell("LC_ALL=C sort ours | awk '{ NF = 10; print }' > ours.dump"));
	free(shell("LC_ALL=C awk '{ print $1, $2, $4, $11 }' ours | sort > ours.events"));
	return t.samples;
}

static void assert_same_files(const char *a, const char *b, const char *about)
{
	char *difference = shell("diff %s %s | head -5", a, b);

	if (*difference)
		fail_msg("%s: %s and %s differ: %s", about, a, b, difference);
	free(difference);
}

/* perf's "ustack: size" is the used part too (stack_user__printf, tools/perf/util/session.c). */
static void compare_dump(const char *path)
{
	free(shell("perf script -D -i %s 2>/dev/null | LC_ALL=C awk -f dump.awk | LC_ALL=C sort "
		   "> perf.dump",
		   path));
	assert_same_files("ours.dump", "perf.dump", path);
}

static void compare_events(const char *path)
{
	free(shell("perf script -i %s -F pid,tid,time,event,period --ns -G 2>/dev/null | "
		   "LC_ALL=C awk '{ sub(/:$/, \"\", $4); gsub(/[.:]/, \"\", $2); "
		   "print $2, $1, $3, $4 }' | sort > perf.events",
		   path));
	assert_same_files("ours.events", "perf.events", path);
}

/* A recording of BUSY by perf. perf 6.1 aborts on mappings whose build-id bit another recording on
 * the machine has set (see has_build_id() in decode.c): then once more. */
static void record(const char *options, const char *path)
{
	free(shell("for try in 1 2 3 4 5 6; do "
		   "perf record -q -N %s -o %s " BUSY " >/dev/null 2>record.err && "
		   "perf script -i %s >/dev/null 2>&1 && exit 0; done; cat record.err >&2; false",
		   options, path, path));
}

static const struct {
	const char *name, *options;
	bool groups; /* perf script makes several samples of one */
} recordings[] = {
	{"g", "-F 2000 -g -e cpu-clock", false},
	{"z", "-F 2000 -z -g -e cpu-clock", false},
	{"two", "-F 2000 -g -e cpu-clock,page-faults", false},
	{"two-z", "-F 2000 -z -g -e cpu-clock,page-faults", false},
	{"group", "-F 2000 -g -e '{cpu-clock,page-faults}'", false},
	{"group-read", "-F 2000 -g -e '{cpu-clock,page-faults}:S'", true},
	{"fixed-period", "-g -e page-faults -c 3", false},
	{"all-cpus", "-F 2000 -a --sample-cpu -g -e cpu-clock,page-faults", false},
	{"dwarf", "-F 2000 --call-graph dwarf -e cpu-clock", false},
	{"dwarf-z", "-F 2000 -z --call-graph dwarf -e cpu-clock", false},
	{"extras", "-F 2000 -g -e cpu-clock -d -T --sample-cpu --phys-data -I", false},
	{"mmap-ids", "-F 2000 --buildid-mmap -g -e cpu-clock", false},
	{"no-ids", "-F 2000 -B -g -e cpu-clock", false},
	{"no-samples", "-e major-faults -c 1000000", false},
};

static void test_read(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_SIZE(recordings); i++) {
		const char *name = recordings[i].name;
		uint64_t samples;

		record(recordings[i].options, name);
		samples = our_lines(name);
		compare_dump(name);
		if (!recordings[i].groups)
			compare_events(name);
		if (str_eq(name, "no-samples"))
			assert_int_equal(samples, 0);
		else
			assert_in_range(samples, 10, 1000000);
	}
}

/* Through a pipe, and as a stored stream. */
static void test_read_stream(void **state UNUSED)
{
	free(shell("perf record -q -F 2000 -g -e cpu-clock,page-faults -o - " BUSY
		   " > stream 2>/dev/null"));
	assert_in_range(our_lines("stream"), 10, 1000000);
	free(shell("perf script -D -i - < stream 2>/dev/null | LC_ALL=C awk -f dump.awk | "
		   "LC_ALL=C sort > perf.dump"));
	assert_same_files("ours.dump", "perf.dump", "stream");
	compare_events("- < stream");
}

/* perf's own header, field by field. */
static void expect_header(const char *path, const char *label, const char *value)
{
	char *said = shell("perf report --header-only -i %s 2>/dev/null | sed -n 's/^# %s : //p'",
			   path, label);

	said[strcspn(said, "\n")] = '\0';
	if (said[0] && said[strlen(said) - 1] == ' ')
		said[strlen(said) - 1] = '\0';
	assert_string_equal(said, value);
	free(said);
}

static void test_read_header(void **state UNUSED)
{
	const struct perfdata_info *info;
	struct perfdata_reader *r = NULL;
	FILE *ids;
	char cpus[16];

	record("-F 2000 -g -e cpu-clock", "header");
	assert_int_equal(perfdata_open("header", &r, NULL), 0);
	info = perfdata_info(r);
	expect_header("header", "hostname", info->hostname);
	expect_header("header", "os release", info->os_release);
	expect_header("header", "perf version", info->version);
	expect_header("header", "arch", info->arch);
	expect_header("header", "cpudesc", info->cpu_desc);
	expect_header("header", "cmdline", info->command);
	snprintf(cpus, sizeof(cpus), "%u", info->cpus_online);
	expect_header("header", "nrcpus online", cpus);
	assert_false(info->unfinished);
	assert_in_range(info->build_ids.n, 1, 100);
	ids = fopen("ids", "w");
	assert_non_null(ids);
	for (size_t i = 0; i < info->build_ids.n; i++) {
		for (size_t k = 0; k < info->build_ids.v[i].size; k++)
			fprintf(ids, "%02x", info->build_ids.v[i].id[k]);
		fprintf(ids, " %s\n", info->build_ids.v[i].path);
	}
	fclose(ids);
	free(shell(
		"sort ids > ours.ids; perf buildid-list -i header 2>/dev/null | sort > perf.ids"));
	assert_same_files("ours.ids", "perf.ids", "build-ids");
	perfdata_reader_free(r);
}

/* What a file holds that perf is still writing to; nothing before its header is there. */
static struct tally read_unfinished(const char *path)
{
	struct perfdata_reader *r = NULL;
	struct tally t = {0};

	if (perfdata_open(path, &r, NULL))
		return t;
	assert_true(perfdata_info(r)->unfinished);
	assert_int_equal(tally_read(&t, r, NULL), 0);
	assert_int_equal(t.undecoded, 0);
	perfdata_reader_free(r);
	return t;
}

/* kill -9 of perf: what it had written is read, as it was while perf ran. */
static void test_read_killed(void **state UNUSED)
{
	uint64_t seen = 0, killed;

	free(shell("perf record -q -N -m 2 -F 2000 -g -e cpu-clock -o killed -- sh -c "
		   "'while :; do :; done' >/dev/null 2>&1 & echo $! > pid"));
	for (int i = 0; i < 400 && seen < 100; i++) {
		usleep(100000);
		seen = read_unfinished("killed").samples;
	}
	free(shell("p=$(cat pid); kill -9 $p $(pgrep -P $p)"));
	killed = read_unfinished("killed").samples;
	assert_in_range(seen, 100, killed);
}

/* --- files of ours --------------------------------------------------------------------------- */

struct copy {
	struct perfdata_writer *w;
	struct diag d;
};

static int copy_record(void *ctx, const struct perf_event_header *record, size_t n)
{
	struct copy *c = ctx;

	if (record->type == RECORD_FINISHED_ROUND)
		return perfdata_round(c->w, &c->d);
	if (record->type >= RECORD_HEADER_ATTR)
		return 0;
	return perfdata_write(c->w, record, n, &c->d);
}

/* A header with everything that can be stated. */
static struct perfdata_info full_info(struct perfdata_build_id *ids)
{
	struct perfdata_info info = {
		.hostname = (char *)"host.example",
		.os_release = (char *)"6.18-test",
		.version = (char *)"inspect 1.0",
		.arch = (char *)"x86_64",
		.cpu_desc = (char *)"A CPU of some kind",
		.command = (char *)"inspect record -F 99 -- ./a b c",
		.cpus_online = 3,
		.first_sample_ns = 1000000000,
		.last_sample_ns = 2500000000,
		.names = (uint8_t *)"any\0bytes",
		.names_bytes = 9,
		.notes = (char *)"lost=3\n",
	};

	ids[0] = (struct perfdata_build_id){
		.path = (char *)"/usr/bin/of ours", .id = {0xab, 0xcd, [19] = 0xef}, .size = 20};
	ids[1] = (struct perfdata_build_id){
		.path = (char *)"[kernel.kallsyms]", .id = {0x12}, .size = 16, .kernel = true};
	info.build_ids.v = ids;
	info.build_ids.n = 2;
	return info;
}

/* All records of perf's file through our writer, finished or left as a crash would leave it. */
static void copy_file(const char *from, const char *to, bool finish)
{
	struct perfdata_build_id ids[2];
	struct perfdata_info info = full_info(ids);
	struct perfdata_reader *r = NULL;
	struct copy c = {0};

	assert_int_equal(perfdata_open(from, &r, NULL), 0);
	assert_int_equal(perfdata_create(to, perfdata_events(r), &c.w, NULL, &c.d), 0);
	assert_int_equal(perfdata_read(r, copy_record, &c, &c.d), 0);
	if (finish) {
		info.build_ids.n = 0; /* those of the records are perf's to find */
		assert_int_equal(perfdata_finish(c.w, &info, &c.d), 0);
	} else {
		assert_int_equal(perfdata_round(c.w, &c.d), 0);
	}
	perfdata_writer_free(c.w);
	perfdata_reader_free(r);
}

static void test_written(void **state UNUSED)
{
	static const char *const names[] = {"g",        "two-z",   "group-read",
					    "all-cpus", "dwarf-z", "mmap-ids"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		/* Under -a, names depend on files that may go away between two runs. */
		const char *fields = str_eq(names[i], "all-cpus")
					     ? "-F comm,pid,tid,cpu,time,event,period -G"
					     : "--no-inline";
		char *complaints;

		copy_file(names[i], "copy", true);
		copy_file(names[i], "crashed", false);
		free(shell("perf script %s -i %s > perf.text 2>/dev/null", fields, names[i]));
		free(shell("perf script %s -i copy > copy.text 2> copy.err", fields));
		free(shell("perf script %s -i crashed > crashed.text 2> crashed.err", fields));
		complaints = shell("grep -iE 'feature|invalid|corrupt|fail|incompat|240|241' "
				   "copy.err crashed.err || true");
		assert_string_equal(complaints, "");
		free(complaints);
		assert_same_files("copy.text", "perf.text", names[i]);
		assert_same_files("crashed.text", "perf.text", names[i]);
	}
}

static void test_written_header(void **state UNUSED)
{
	struct perfdata_build_id ids[2];
	struct perfdata_info info = full_info(ids);
	struct perfdata_writer *w = NULL;
	struct event_table t = {0};
	struct perf_event_attr attr = image_attr(0);
	char *said;

	attr.use_clockid = 1;
	attr.clockid = 1;
	assert_int_equal(event_table_add(&t, &attr, "my clock"), 0);
	assert_int_equal(event_table_add_id(&t, 0, 5), 0);
	assert_int_equal(event_table_add_id(&t, 0, 6), 0);
	assert_int_equal(perfdata_create("features", &t, &w, NULL, NULL), 0);
	assert_int_equal(perfdata_finish(w, &info, NULL), 0);
	perfdata_writer_free(w);
	expect_header("features", "hostname", info.hostname);
	expect_header("features", "os release", info.os_release);
	expect_header("features", "perf version", info.version);
	expect_header("features", "arch", info.arch);
	expect_header("features", "cpudesc", info.cpu_desc);
	expect_header("features", "cmdline", info.command);
	expect_header("features", "nrcpus online", "3");
	expect_header("features", "time of first sample", "1.000000");
	expect_header("features", "time of last sample", "2.500000");
	free(shell("perf report --header-only -i features 2>/dev/null | "
		   "grep -x '# clockid frequency: 1000 MHz'"));
	said = shell("perf report --header-only -i features 2>/dev/null | grep '^# event : '");
	assert_non_null(strstr(said, "# event : name = my clock, , id = { 5, 6 }"));
	free(said);
	said = shell("perf buildid-list -i features 2>/dev/null");
	assert_non_null(
		strstr(said, "abcd0000000000000000000000000000000000ef /usr/bin/of ours\n"));
	assert_non_null(
		strstr(said, "12000000000000000000000000000000         [kernel.kallsyms]\n"));
	free(said);
	event_table_release(&t);
}

/* Our stream into perf. */
static void test_written_stream(void **state UNUSED)
{
	struct perfdata_build_id ids[2];
	struct perfdata_info info = full_info(ids);
	struct perfdata_reader *r = NULL;
	struct copy c = {0};
	int out = dup(STDOUT_FILENO);

	fflush(stdout);
	assert_non_null(freopen("our-stream", "w", stdout));
	assert_int_equal(perfdata_open("two", &r, NULL), 0);
	assert_int_equal(perfdata_create("-", perfdata_events(r), &c.w, NULL, &c.d), 0);
	assert_int_equal(perfdata_read(r, copy_record, &c, &c.d), 0);
	info.build_ids.n = 0;
	assert_int_equal(perfdata_finish(c.w, &info, &c.d), 0);
	perfdata_writer_free(c.w);
	perfdata_reader_free(r);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);

	free(shell("perf script --no-inline -i two > perf.text 2>/dev/null"));
	free(shell("perf script --no-inline -i - < our-stream > copy.text 2> copy.err"));
	assert_same_files("copy.text", "perf.text", "stream");
	assert_in_range(our_lines("our-stream"), 10, 1000000);
	compare_events("two");
	assert_int_equal(perfdata_open("our-stream", &r, NULL), 0);
	assert_int_equal(tally_read(&(struct tally){0}, r, NULL), 0);
	assert_string_equal(perfdata_info(r)->hostname, info.hostname);
	assert_string_equal(perfdata_info(r)->command, info.command);
	perfdata_reader_free(r);
}

static int setup(void **state)
{
	if (scratch_setup(state))
		return -1;
	write_text("dump.awk", dump_awk);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),           cmocka_unit_test(test_read_stream),
		cmocka_unit_test(test_read_header),    cmocka_unit_test(test_read_killed),
		cmocka_unit_test(test_written),        cmocka_unit_test(test_written_header),
		cmocka_unit_test(test_written_stream),
	};

	if (system("perf --version >/dev/null 2>&1") != 0) {
		puts("1..0 # SKIP perf is not installed");
		return 0;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
