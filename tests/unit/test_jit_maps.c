/* SPDX-License-Identifier: BSD-2-Clause */
/* Code made at run time: whose map names it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inspect/clock.h>
#include <inspect/symbolize.h>

#include "naming.h"
#include "scratch.h"

/* The program of the pid that began then. */
static struct dso *add_jit(struct profile *p, uint32_t pid, uint64_t began_ns)
{
	struct mmap_event m = {.pid = pid, .path = ""};
	uint32_t dso = 0;

	assert_int_equal(dso_table_add(&p->processes.dsos, &m, began_ns, &dso), 0);
	return p->processes.dsos.dsos.v[dso];
}

static void code_made_at_run_time(void **state)
{
	struct profile *p = new_profile();
	uint32_t dso, named, nameless, lost, unmapped;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	write_text(path, "7f0000001000 100 function main() file.js:1\n");
	dso = add_jit(p, (uint32_t)getpid(), 0)->id;
	named = add_frame(p, dso, 0x7f0000001010, FRAME_JIT);
	nameless = add_frame(p, dso, 0x7f0000002000, FRAME_JIT);
	lost = add_frame(p, add_jit(p, 4194304, 0)->id, 0x7f0000001010, FRAME_JIT);
	unmapped = add_frame(p, DSO_ID_UNKNOWN, 0x1010, FRAME_NATIVE);
	symbolize(p, true);
	unlink(path);
	assert_string_equal(name_of(p, named), "function main() file.js:1");
	assert_int_equal(symbol_of(p, named)->kind, FRAME_JIT);
	assert_string_equal(name_of(p, nameless), "[jit] 0x7f0000002000");
	assert_true(symbol_of(p, nameless)->unknown);
	assert_string_equal(name_of(p, lost), "[jit] 0x7f0000001010"); /* no map at all */
	assert_true(has_note(p, "pid 4194304: code made at run time has no names: there is no "
				"/tmp/perf-4194304.map"));
	assert_true(has_note(p, "node --perf-basic-prof, python -X perf and java "
				"-XX:+DumpPerfMapAtExit write a map of such names"));
	assert_string_equal(name_of(p, unmapped), "[unmapped] 0x1010");
	assert_true(symbol_of(p, unmapped)->unknown);
	profile_free(p);
}

/* The map is written now; the program began and ended so many seconds from now, 0: no event. */
static void a_map_is_of(int began_s, int ended_s, bool monotonic, const char *other)
{
	struct profile *p = new_profile();
	struct dso *d = add_jit(p, (uint32_t)getpid(), 0);
	uint32_t frame = add_frame(p, d->id, 0x7f0000001010, FRAME_JIT);
	uint64_t now_ns = clock_now_ns();

	p->monotonic = monotonic;
	p->end_ns = now_ns;
	d->began_ns = began_s ? now_ns + (uint64_t)began_s * NSEC_PER_SEC : 0;
	d->ended_ns = ended_s ? now_ns + (uint64_t)ended_s * NSEC_PER_SEC : 0;
	symbolize(p, true);
	assert_string_equal(name_of(p, frame), other ? "[jit] 0x7f0000001010" : "mine");
	assert_int_equal(p->notes.n, other != NULL);
	assert_true(!other || has_note(p, other));
	profile_free(p);
}

static void maps_of_other_programs(void **state)
{
	static const char before[] = "map is of the program before: nothing was written to it "
				     "since this one began";
	static const char after[] = "map is of the program after: it was written when this one "
				    "had ended";
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	write_text(path, "7f0000001000 100 mine\n");
	a_map_is_of(-9, 0, true, NULL);
	a_map_is_of(-9, 9, true, NULL);
	a_map_is_of(9, 0, true, before);
	a_map_is_of(9, 18, true, before);
	a_map_is_of(-18, -9, true, after);
	a_map_is_of(0, -9, true, after);
	a_map_is_of(9, 18, false, NULL); /* times of another clock say nothing */
	unlink(path);
}

/* Of two programs of one process that make code, an exec between them: the map is written so many
 * ms after it. */
static void a_map_about_an_exec(int after_ms, const char *name_before, const char *name_after,
				size_t n_notes)
{
	struct profile *p = new_profile();
	struct dso *before, *after;
	uint32_t frames[2];
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	write_text(path, "7f0000001000 100 mine\n");
	p->monotonic = true;
	p->end_ns = clock_now_ns();
	before = add_jit(p, (uint32_t)getpid(), 0);
	before->ended_ns = p->end_ns - (uint64_t)(after_ms * (int64_t)NSEC_PER_MSEC);
	after = add_jit(p, (uint32_t)getpid(), before->ended_ns);
	assert_int_not_equal(before->id, after->id);
	frames[0] = add_frame(p, before->id, 0x7f0000001010, FRAME_JIT);
	frames[1] = add_frame(p, after->id, 0x7f0000001010, FRAME_JIT);
	symbolize(p, true);
	unlink(path);
	assert_string_equal(name_of(p, frames[0]), name_before);
	assert_string_equal(name_of(p, frames[1]), name_after);
	assert_int_equal(p->notes.n, n_notes);
	profile_free(p);
}

/* A file may have a time of up to 50 ms before it was written. */
static void maps_about_an_exec(void **state)
{
	static const char none[] = "[jit] 0x7f0000001010";

	(void)state;
	a_map_about_an_exec(2000, none, "mine", 1);
	a_map_about_an_exec(-15, none, none, 1);
	a_map_about_an_exec(-2000, "mine", none, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_made_at_run_time),
		cmocka_unit_test(maps_of_other_programs),
		cmocka_unit_test(maps_about_an_exec),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
