/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines as perf 5.x and 6.x print them, and what other programs' names do to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "text_dump.h"

#define HEAD "slow 10/11 [001] 12.500000:     100 cycles:u: \n"
#define ROW "cycles:u/cycles slow 10/11 "

static void test_stack(void **state UNUSED)
{
	assert_reads("slow 4711/4712 [003] 12345.678901:   10101010 cpu-clock:u: \n"
		     "\t    7f0000001234 memcpy+0x10 (/usr/lib/libc.so.6)\n"
		     "\t          401136 work+0x1f (/home/me/my program)\n"
		     "\t          4010a0 main+0x9 (/home/me/my program (deleted))\n"
		     "\n",
		     "cpu-clock:u/ns slow 4711/4712 main@my program;work@my program;"
		     "memcpy@libc.so.6 10101010 1\n");
}

static void test_last_stack(void **state UNUSED)
{
	assert_reads(HEAD "\t 1 f+0x1 (/m)\n\n" HEAD "\t 2 g+0x1 (/m)",
		     ROW "f@m 100 1\n" ROW "g@m 100 1\n");
	assert_reads(HEAD "\t 1 f+0x1 (/m)\n" HEAD "\t 2 g+0x1 (/m)\n",
		     ROW "f@m 100 1\n" ROW "g@m 100 1\n");
}

static void test_line_ends_and_marks(void **state UNUSED)
{
	assert_reads("\xef\xbb\xbf"
		     "slow 10 12.5: 100 cycles:\r\n\t 1 f+0x1 (/m)\r\n\t 2 main (/m)\r\n\r\n",
		     "cycles/cycles slow 10/10 main@m;f@m 100 1\n");
}

static void test_headers(void **state UNUSED)
{
	static const struct {
		const char *line, *row;
	} cases[] = {
		{"java 25607 4794564.109216: cycles: ", "cycles/samples java 25607/25607 f 1 1\n"},
		{"V8 Worker 12 1/25607 4794564.109216: cycles:", "cycles/samples V8 Worker 12 "
								 "1/25607 f 1 1\n"},
		{"a) 1 2 [3] x 7 [000] 1.0:  5 cycles:", "cycles/cycles a) 1 2 [3] x 7/7 f 5 1\n"},
		{"a 1 x 2 [3] 5 cycles:", "cycles/cycles a 1 x 2/2 f 5 1\n"},
		{"  :77  77 [000] 1.0:  5 cycles:", "cycles/cycles :77 77/77 f 5 1\n"},
		{"swapper     0 [001] 1.0:  5 cycles:", "cycles/cycles swapper 0/0 f 5 1\n"},
		{"x -1/-1 [001] 1.0:  5 cycles:", "cycles/cycles x 4294967295/4294967295 f 5 1\n"},
		{"x 1 [001] 5 cycles:", "cycles/cycles x 1/1 f 5 1\n"},
		{"x 1 5 cycles:", "cycles/cycles x 1/1 f 5 1\n"},
		{"x 1/2", "samples/samples x 1/2 f 1 1\n"},
		{"#x 1 [001] 1.0: 5 cycles:", "cycles/cycles #x 1/1 f 5 1\n"},
		{"x 1 1.123456789: 5 cpu_core/cycles/u:",
		 "cpu_core/cycles/u/cpu_core/cycles/u x 1/1 f 5 1\n"},
		{"x 1 1.0: 5 task-clock:ppp:", "task-clock:ppp/ns x 1/1 f 5 1\n"},
		{"x 1 1.0: 1 sched:sched_switch: prev_comm=a (b) ==> next 12 c (d)",
		 "sched:sched_switch/sched:sched_switch x 1/1 f 1 1\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = NULL;

		assert_true(asprintf(&text, "%s\n\t 1 f\n\n", cases[i].line) > 0);
		assert_reads(text, cases[i].row);
		free(text);
	}
}

/* Each frame line, and the frame: all below one header. */
static void test_frames(void **state UNUSED)
{
	static const struct {
		const char *line, *frame;
	} cases[] = {
		{"1 f+0x1 (/usr/lib/m.so)", "f@m.so"},
		{"1 f (/m)", "f@m"},
		{"1 f+0x1", "f"},
		{"1 std::vector<int, std::allocator<int> >::at(unsigned long) const+0x12 (/m)",
		 "std::vector<int, std::allocator<int> >::at(unsigned long) const@m"},
		{"1 operator()(int) const (/m)", "operator()(int) const@m"},
		{"1 f+0x1 (/opt/my (old) dir/m (deleted))", "f@m"},
		{"1 f+0x1 (/opt/a)b)", "f@a)b"},
		{"1 f(int)+0x1 (/opt/a(b)", "f(int)@a(b"},
		{"1 f g (/opt/a(b)", "f g@a(b"},
		{"1 [unknown] (/usr/lib/libfoo.so.1)", "[libfoo.so.1]@libfoo.so.1"},
		{"1 [unknown] ([unknown])", "[unknown]"},
		{"1 [unknown] ([vdso])", "[vdso]@[vdso]"},
		{"1 [unknown] ([kernel.kallsyms])", "[kernel]_[kernel]@[kernel]"},
		{"1 [unknown] (//anon)", "[anon]@anon"},
		{"1", "[unknown]"},
		{"ffffffff81000000 do_syscall_64+0x5b ([kernel.kallsyms])",
		 "do_syscall_64_[kernel]@[kernel]"},
		{"1 f+0x1 ([kernel.kallsyms]_text)", "f_[kernel]@[kernel]"},
		{"1 f+0x1 ([guest.kernel.kallsyms])", "f_[kernel]@[guest.kernel.kallsyms]"},
		{"1 f+0x1 (/usr/lib/debug/boot/vmlinux-6.1)", "f_[kernel]@vmlinux-6.1"},
		{"1 f+0x1 ([nf_tables])", "f_[kernel]@[nf_tables]"},
		{"1 f+0x1 (/lib/modules/6.1/kernel/fs/ext4.ko.xz)", "f_[kernel]@ext4.ko.xz"},
		{"1 bpf_prog_1+0x1 (bpf_prog_1)", "bpf_prog_1_[kernel]@bpf_prog_1"},
		{"1 f+0x1 ([heap])", "f@[heap]"},
		{"1 f+0x1 ([anon:code])", "f@[anon:code]"},
		{"1 Lmain;run+0x1 (/tmp/perf-12.map)", "Lmain;run_[jit]@perf-12.map"},
		{"1 f+0x1 (/home/me/jitted-12-3.so)", "f_[jit]@jitted-12-3.so"},
		{"1 f (inlined)", "f_[inlined]"},
		{"1 f+0x1 (/usr/lib/m.so+0x1234)", "f@m.so"},
		{"1 +0x12 (/m)", "+0x12@m"},
		{"1 a+0xfg (/m)", "a+0xfg@m"},
		{"1 ) ", ")"},
		{"1 ()", "()"},
	};
	struct strbuf text = {0}, expected = {0};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		strbuf_clear(&text);
		strbuf_clear(&expected);
		strbuf_printf(&text, HEAD "\t%s\n", cases[i].line);
		strbuf_printf(&expected, ROW "%s 100 1\n", cases[i].frame);
		assert_reads(strbuf_str(&text), strbuf_str(&expected));
	}
	strbuf_release(&text);
	strbuf_release(&expected);
}

/* perf without -g: the frame is on the header's line, and comms are set to the right. */
static void test_one_line_samples(void **state UNUSED)
{
	assert_reads("            slow  4711 [001]  1.0:  250 cycles:  ffffffff81 do_idle+0x4 "
		     "([kernel.kallsyms])\n"
		     "        deadbeef  4712 [001]  1.5:  250 cycles:      55d0 [unknown] (/m)\n"
		     "       my thread  4712 [001]  1.5:  250 cycles:      55d0 f(int)+0x1 (/m)",
		     "cycles/cycles slow 4711/4711 do_idle_[kernel]@[kernel] 250 1\n"
		     "cycles/cycles deadbeef 4712/4712 [m]@m 250 1\n"
		     "cycles/cycles my thread 4712/4712 f(int)@m 250 1\n");
}

/* Samples without any frame are samples. */
static void test_no_stack(void **state UNUSED)
{
	assert_reads("            slow  1 [001]  1.0:  3 cycles: \n"
		     "            slow  1 [001]  2.0:  4 cycles: \n",
		     "cycles/cycles slow 1/1  7 2\n");
}

/* Two events are never added up; nor is one that has periods only at times. */
static void test_events(void **state UNUSED)
{
	assert_reads("x 1 1.0: 5 cycles:\n\t 1 f\n\n"
		     "x 1 1.0: 7 cpu-clock:\n\t 1 f\n\n"
		     "x 1 1.0: 9 cycles:\n\t 1 f\n\n"
		     "x 1 1.0: cycles:\n\t 1 f\n\n",
		     "cycles/cycles x 1/1 f 14 2\n"
		     "cpu-clock/ns x 1/1 f 7 1\n"
		     "cycles/samples x 1/1 f 1 1\n");
}

static void test_skipped_and_broken_lines(void **state UNUSED)
{
	assert_reads("# ========\n# captured on    : Mon\n# cmdline : perf record -F 99 1 x: \n#\n"
		     "x 1 [000] 1.0: PERF_RECORD_MMAP2 1/1: [0x1(0x2) @ 0 08:01 1 2]: r-xp /m\n"
		     "garbage here\n"
		     "\t 1 lost (/m)\n"
		     "x 1 [000] 1.0: 5 cycles:\n"
		     "\t 1 f (/m)\n"
		     "  file.c:12\n"
		     "more garbage\n"
		     "\tnot an address (/m)\n"
		     "\t 2 main (/m)\n"
		     "\n",
		     "cycles/cycles x 1/1 main@m;f@m 5 1\n"
		     "note: 5 lines could not be read and were skipped: line 6, 7, 10, …\n");
}

static void test_times(void **state UNUSED)
{
	static const char text[] = "x 1 [000] 20.5: 5 cycles:\n\t 1 f\n\n"
				   "x 1 [000] 10.000001: 5 cycles:\n\t 1 f\n\n"
				   "x 1 [000] 30.123456789: 5 cycles:\n\t 1 f\n";
	CLEANUP(profile_freep) struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(text, sizeof(text) - 1, "test", p, NULL), 0);
	assert_true(p->start_ns == 10000001000 && p->end_ns == 30123456789);
	assert_int_equal(p->losses.samples, 3);
	assert_true(p->events.v[0].is_time == false);
}

static void test_clock_is_time(void **state UNUSED)
{
	static const char text[] =
		"x 1 1.0: 5 cpu-clock:u:\n\t 1 f\n\nx 1 1.0: 1 sched:wake:\n\t 1 f\n\n"
		"x 1 1.0: cpu-clock:\n\t 1 f\n";
	CLEANUP(profile_freep) struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(text, sizeof(text) - 1, "test", p, NULL), 0);
	assert_int_equal(p->events.n, 3);
	assert_true(p->events.v[0].is_time && !p->events.v[0].is_tracepoint);
	assert_true(!p->events.v[1].is_time && p->events.v[1].is_tracepoint);
	assert_true(!p->events.v[2].is_time);
}

/* Millions of frames, events without end, a line of 10 MB, numbers that fit nowhere. */
static void test_hostile(void **state UNUSED)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct strbuf text = {0};

	strbuf_puts(&text, HEAD);
	for (int i = 0; i < 300000; i++)
		strbuf_puts(&text, "\t 1 f (/m)\n");
	strbuf_puts(&text, "\n");
	for (int i = 0; i < 300; i++)
		strbuf_printf(&text, "x 1 1.0: 1 e%d:\n\t 1 f\n\n", i);
	strbuf_puts(&text, HEAD "\t 1 ");
	for (int i = 0; i < 1000000; i++)
		strbuf_puts(&text, " (1 [0] ()");
	strbuf_puts(&text, "\n\n");
	for (int i = 0; i < 1000000; i++)
		strbuf_puts(&text, "1 [0] 1.0 ");
	strbuf_puts(&text, "\nx 1 1.0: 99999999999999999999999 cycles:\n\t 1 f\n\n"
			   "x 1 99999999999999999999.0: 1 cycles:\n\t 1 f\n\n"
			   "x 99999999999999999999 1.0: 1 cycles:\n\t 1 f\n\n"
			   "x 1 1.0: 18446744073709551615 cycles:\n\t 1 f\n");
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(text.v, text.n, "test", p, NULL), 0);
	assert_int_equal(p->events.n, 256);
	assert_int_equal(p->notes.n, 2);
	assert_string_equal(p->notes.v[1], "1 stacks of more than 16384 frames were cut");
	strbuf_release(&text);
}

static void test_nuls_and_bytes(void **state UNUSED)
{
	static const char text[] =
		"a\0b 1 [000] 1.0: 5 cycles:\n\t 1 f\0g+0x1 (/m)\n\t\0\n\0\n\xff\xfe "
		"1 [000] 1.0: 5 cycles:\n\t 1 \x1b[31m+0x1 (/\xff)\n";

	assert_reads_n(text, sizeof(text) - 1,
		       "cycles/cycles a 1/1 f@m 5 1\n"
		       "cycles/cycles \xff\xfe 1/1 \x1b[31m@\xff 5 1\n"
		       "note: 2 lines could not be read and were skipped: line 3, 4\n");
}

/* More different frames than the reader remembers: each is still itself. */
static void test_many_frames(void **state UNUSED)
{
	enum { FRAMES = 200000 };
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct strbuf text = {0};

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < FRAMES; i++)
			strbuf_printf(&text, HEAD "\t 1 function_%d+0x1 (/m)\n\n", i);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(text.v, text.n, "test", p, NULL), 0);
	assert_int_equal(p->rows.n, FRAMES);
	assert_int_equal(p->frames.n, FRAMES);
	for (size_t i = 0; i < p->rows.n; i++)
		assert_int_equal(p->rows.v[i].count, 2);
	assert_string_equal(intern_str(&p->strings, (uint32_t)p->frames.v[777].loc),
			    "function_777");
	strbuf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_last_stack),
		cmocka_unit_test(test_line_ends_and_marks),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_one_line_samples),
		cmocka_unit_test(test_no_stack),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_skipped_and_broken_lines),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_clock_is_time),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_nuls_and_bytes),
		cmocka_unit_test(test_many_frames),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
