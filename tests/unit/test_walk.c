/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs without frame pointers, recorded by perf with registers and stack copies: our chains
 * against those of libdwfl on the same bytes, frame by frame. One test for each kind of code.
 */
#include <inspect/decode.h>
#include <inspect/perfdata.h>
#include <inspect/unwind.h>

/* cmocka.h needs these first. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "skip.h"

#include "oracle.h"
#include <math.h>

enum { FRAMES_MAX = ORACLE_FRAMES_MAX, SAMPLES_MIN = 50 };

static char workloads[4096];

/* --- comparing -------------------------------------------------------------------------------- */

struct score {
	const struct event_table *events;
	struct process_table processes;
	struct unwind_walk walk;
	struct oracle oracle;
	struct reorder *reorder;
	size_t samples, complete, equal, farther, differ;
	size_t by_stop[UNWIND_STOPS];
	bool told; /* the first difference was printed */
};

static void print_difference(const struct score *s, const uint64_t *chain, size_t n,
			     enum unwind_stop stop)
{
	const struct oracle *o = &s->oracle;

	print_message("# first difference: %zu frames, then %s; libdwfl has %zu\n", n,
		      unwind_stop_text(stop), o->n);
	for (size_t i = 0; i < MAX(n, o->n) && i < 40; i++)
		print_message("#   %2zu %12llx %12llx\n", i,
			      i < n ? (unsigned long long)chain[i] : 0ULL,
			      i < o->n ? (unsigned long long)o->chain[i] : 0ULL);
}

static void compare(struct score *s, const struct sample *sample)
{
	uint64_t chain[FRAMES_MAX];
	enum unwind_stop stop;
	bool guessed;
	size_t n = unwind_sample(&s->walk, sample, chain, FRAMES_MAX, &stop, &guessed), same = 0;

	oracle_unwind(&s->oracle, &s->processes, sample);
	while (same < n && same < s->oracle.n && same_frame(chain[same], s->oracle.chain[same]))
		same++;
	s->samples++;
	s->complete += stop == UNWIND_END;
	s->by_stop[stop]++;
	if (same == n && n == s->oracle.n)
		s->equal++;
	else if (same == s->oracle.n)
		s->farther++;
	else
		s->differ++;
	if (same != s->oracle.n && !s->told) {
		s->told = true;
		print_difference(s, chain, n, stop);
	}
}

static int take(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct score *s = ctx;
	struct event e;

	if (decode_record(s->events, record, size_bytes, &e))
		return 0;
	if (e.type != EVENT_SAMPLE)
		return process_table_apply(&s->processes, &e);
	if (e.sample.regs.abi && e.sample.stack)
		compare(s, &e.sample);
	return 0;
}

static int sort(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct score *s = ctx;
	uint64_t time_ns = 0;

	if (record->type == RECORD_FINISHED_ROUND)
		return reorder_round(s->reorder);
	if (decode_time(s->events, record, size_bytes, &time_ns))
		return 0;
	return reorder_add(s->reorder, time_ns, record, size_bytes, false);
}

static void read_file(struct score *s)
{
	struct perfdata_reader *reader;
	CLEANUP(diag_release) struct diag d = {0};

	assert_int_equal(perfdata_open("perf.data", &reader, &d), 0);
	s->events = perfdata_events(reader);
	assert_int_equal(process_table_init(&s->processes), 0);
	assert_int_equal(unwind_tables_new(false, &s->walk.tables), 0);
	s->walk.processes = &s->processes;
	s->walk.local_host = true;
	assert_int_equal(reorder_new(1 << 30, take, s, &s->reorder), 0);
	assert_int_equal(perfdata_read(reader, sort, s, &d), 0);
	assert_int_equal(reorder_flush(s->reorder), 0);
	reorder_free(s->reorder);
	perfdata_reader_free(reader);
}

static void release(struct score *s)
{
	dwfl_end(s->oracle.dwfl);
	unwind_tables_free(s->walk.tables);
	process_table_release(&s->processes);
}

/* Whether n of all may come from a true share: three standard deviations above it at most. */
static bool at_most(size_t n, size_t all, double share)
{
	double mean = share * (double)all;

	return (double)n <= mean + 3 * sqrt(mean);
}

/*
 * Records a command and compares. What the oracle says has to be said by us too, in 99.5 % of the
 * samples; where it stops and we go on, the stack counts as ours alone. 99 % end properly, or for
 * the reason that is allowed.
 */
static void check_but(const char *command, enum unwind_stop allowed)
{
	struct score s = {0};

	free(shell("perf record -q -N -F 499 --call-graph dwarf,65528 -o perf.data -- %s "
		   ">/dev/null 2>&1",
		   command));
	read_file(&s);
	print_message("# %s: %zu samples, %.2f %% complete, %.2f %% equal, %.2f %% longer than "
		      "libdwfl's\n",
		      command, s.samples, 100.0 * (double)s.complete / (double)s.samples,
		      100.0 * (double)s.equal / (double)s.samples,
		      100.0 * (double)s.farther / (double)s.samples);
	for (size_t i = UNWIND_END + 1; i < UNWIND_STOPS; i++)
		if (s.by_stop[i])
			print_message("#   %zu %s\n", s.by_stop[i],
				      unwind_stop_text((enum unwind_stop)i));
	assert_true(s.samples >= SAMPLES_MIN);
	if (allowed != UNWIND_END)
		s.complete += s.by_stop[allowed];
	assert_true(at_most(s.samples - s.complete, s.samples, 0.01));
	assert_true(at_most(s.differ, s.samples, 0.005));
	release(&s);
}

static void check(const char *command)
{
	check_but(command, UNWIND_END);
}

static void check_workload(const char *environment, const char *name)
{
	char command[5000];

	snprintf(command, sizeof(command), "%s/%s", workloads, name);
	if (access(command, X_OK) < 0)
		skip_because("%s was not built", name);
	snprintf(command, sizeof(command), "%s%s/%s 300", environment, workloads, name);
	check(command);
}

#define WORKLOAD_TEST(name)                                                                        \
	static void name(void **state UNUSED)                                                      \
	{                                                                                          \
		check_workload("", #name);                                                         \
	}
WORKLOAD_TEST(uw_deep)
WORKLOAD_TEST(uw_fib)
WORKLOAD_TEST(uw_realign)
WORKLOAD_TEST(uw_signal)
WORKLOAD_TEST(uw_plt)
WORKLOAD_TEST(uw_static)
WORKLOAD_TEST(uw_static_pie)
WORKLOAD_TEST(uw_debug_frame)
WORKLOAD_TEST(uw_musl)
WORKLOAD_TEST(uw_musl_shared)
WORKLOAD_TEST(uw_vfork)
WORKLOAD_TEST(uw_threads)
WORKLOAD_TEST(uw_exceptions)
WORKLOAD_TEST(uw_asm)

/* A copy of the stack at sp holds nothing of the one that was interrupted: these stacks end, and
 * say why. The sampler in the kernel reads both. */
static void uw_signal_other_stack(void **state UNUSED)
{
	char command[5000];

	snprintf(command, sizeof(command), "%s/uw_signal 300 other", workloads);
	check_but(command, UNWIND_OTHER_STACK);
}

static void uw_plt_resolving(void **state UNUSED)
{
	check_workload("env LD_BIND_NOT=1 ", "uw_plt");
}

static void libcrypto(void **state UNUSED)
{
	check("sh -c 'exec openssl speed -seconds 1 -bytes 1024 aes-256-cbc sha256'");
}

static void libcrypto_rsa(void **state UNUSED)
{
	check("openssl speed -seconds 1 rsa2048");
}

static void python(void **state UNUSED)
{
	write_text("p.py", "import re\n"
			   "for i in range(40):\n"
			   "    re.sub('a(b|c)*d', lambda m: str(sorted(range(2000), key=lambda v: "
			   "-v)[0]), 'abcbcbcd' * 20)\n");
	check("python3 p.py");
}

static void rust(void **state UNUSED)
{
	write_text("r.rs", "use std::collections::BTreeMap;\n"
			   "fn grow(depth: u32, map: &mut BTreeMap<String, u32>) -> usize {\n"
			   "  map.insert(format!(\"key {}\", depth % 977), depth);\n"
			   "  if depth == 0 { return map.len(); }\n"
			   "  grow(depth - 1, map) + map.len() / 7\n"
			   "}\n"
			   "fn main() {\n"
			   "  let t: Vec<_> = (0..2).map(|_| std::thread::spawn(|| {\n"
			   "    let mut n = 0; let mut map = BTreeMap::new();\n"
			   "    for _ in 0..40000 { n += grow(60, &mut map); }\n"
			   "    n })).collect();\n"
			   "  let sum: usize = t.into_iter().map(|t| t.join().unwrap()).sum();\n"
			   "  println!(\"{}\", sum);\n"
			   "}\n");
	if (system("rustc -O r.rs 2>/dev/null")) {
		skip_because("no rustc here");
	}
	check("./r");
}

static void compiler(void **state UNUSED)
{
	write_text("c.c",
		   "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
		   "#include <math.h>\n#include <pthread.h>\nint main(void) { return 0; }\n");
	check("sh -c 'for i in 1 2 3 4 5 6 7 8; do gcc -O2 -c c.c; done'");
}

static int setup(void **state)
{
	const char *o = getenv("O");
	char *folder = realpath(o && *o ? o : "build", NULL);

	snprintf(workloads, sizeof(workloads), "%s/workloads", folder ? folder : "");
	free(folder);
	return scratch_setup(state) || write_vdso() ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uw_deep),
		cmocka_unit_test(uw_fib),
		cmocka_unit_test(uw_realign),
		cmocka_unit_test(uw_signal),
		cmocka_unit_test(uw_signal_other_stack),
		cmocka_unit_test(uw_plt),
		cmocka_unit_test(uw_plt_resolving),
		cmocka_unit_test(uw_static),
		cmocka_unit_test(uw_static_pie),
		cmocka_unit_test(uw_debug_frame),
		cmocka_unit_test(uw_musl),
		cmocka_unit_test(uw_musl_shared),
		cmocka_unit_test(uw_vfork),
		cmocka_unit_test(uw_threads),
		cmocka_unit_test(uw_exceptions),
		cmocka_unit_test(uw_asm),
		cmocka_unit_test(libcrypto),
		cmocka_unit_test(libcrypto_rsa),
		cmocka_unit_test(python),
		cmocka_unit_test(rust),
		cmocka_unit_test(compiler),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
