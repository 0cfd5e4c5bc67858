/* SPDX-License-Identifier: BSD-2-Clause */
#include "flame_profile.h"

static void assert_folded(struct profile *p, int event, const char *want)
{
	CLEANUP(freep) char *text = NULL;

	if (!p->first.n)
		name_frames(p);
	text = WRITTEN(folded_write(p, event, out));
	assert_string_equal(text, want);
}

static void test_lines(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();

	(void)state;
	add_stack(p, 0, "my app", "main|b", 10101010, 1);
	add_stack(p, 0, "my app", "main|a|k:do_read", 20202020, 2);
	add_stack(p, 0, "my app", "i:main|j:Foo.bar|p:run|s:[truncated]", 30, 3);
	add_stack(p, 0, "", "main|b", 7, 1);
	add_stack(p, 0, "idle", "", 5, 1);
	assert_folded(p, 0,
		      "idle 5\n"
		      "main;b 7\n"
		      "my_app;main;a;do_read_[k] 20202020\n"
		      "my_app;main;b 10101010\n"
		      "my_app;main_[i];Foo.bar_[j];run;[truncated] 30\n");
}

/* Threads of one name are one; what is written alike is one line. */
static void test_merge(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	uint32_t thread;

	(void)state;
	add_stack(p, 0, "app", "main|a;b", 1, 1);
	add_stack(p, 0, "app", "main|a:b", 2, 1);
	add_stack(p, 0, "app", "main|a\nb", 4, 1);
	assert_int_equal(profile_thread(p, 1, 2, "app", 3, &thread), 0);
	assert_int_equal(profile_add(p, p->rows.v[0].stack, thread, 0, 8, 1), 0);
	add_stack(p, 0, "", "app|main|a:b", 16, 1);
	add_stack(p, 0, "", "huge", UINT64_MAX, 1);
	add_stack(p, 0, "h", "", UINT64_MAX, 1);
	add_stack(p, 0, "", "h", 1, 1);
	assert_folded(p, 0,
		      "app;main;a:b 31\n"
		      "h 18446744073709551615\n"
		      "huge 18446744073709551615\n");
}

static void test_events(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	uint32_t event;

	(void)state;
	assert_int_equal(profile_add_event(p, "faults", "count", &event), 0);
	add_stack(p, 0, "", "f", 10, 1);
	add_stack(p, event, "", "f", 3, 1);
	add_stack(p, event, "", "g", 4, 1);
	assert_folded(p, 0, "f 10\n");
	assert_folded(p, 1, "f 3\ng 4\n");
	assert_folded(p, -1, "f 13\ng 4\n");
	assert_folded(p, 2, "");
}

static void test_hostile(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();

	(void)state;
	add_stack(p, 0, "a;b\nc d", "\x1b[31mred|x\xffy|caf\xc3\xa9|tab\there|cr\rx", 1, 1);
	assert_folded(p, 0, "a:b:c_d;\\x1b[31mred;x\\xffy;caf\xc3\xa9;tab\\there;cr:x 1\n");
}

/* The order is that of the bytes of whole stacks, also around the `;` between names. */
static void test_order(void **state)
{
	static const char *const names[] = {"a",  "a ", "a!",  "a:",  "a<",
					    "aa", "A",  "a b", "k:a", "~"};
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL;
	unsigned seed = 5, lines = 0;
	char last[256] = "";

	(void)state;
	for (int i = 0; i < 400; i++) {
		char stack[64] = "";

		for (int k = rand_r(&seed) % 4; k >= 0; k--) {
			strcat(stack, names[(size_t)rand_r(&seed) % ARRAY_SIZE(names)]);
			strcat(stack, k ? "|" : "");
		}
		add_stack(p, 0, "", stack, 1, 1);
	}
	name_frames(p);
	text = WRITTEN(folded_write(p, 0, out));
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
		*end = 0;
		*strrchr(line, ' ') = 0;
		assert_true(strcmp(last, line) < 0);
		strcpy(last, line);
	}
	assert_true(lines > 150);
}

static void test_full_disk(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(fclosep) FILE *full = fopen("/dev/full", "w");

	(void)state;
	add_stack(p, 0, "", "f", 10, 1);
	name_frames(p);
	assert_non_null(full);
	assert_int_equal(folded_write(p, 0, full), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),  cmocka_unit_test(test_merge),
		cmocka_unit_test(test_events), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_order),  cmocka_unit_test(test_full_disk),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
