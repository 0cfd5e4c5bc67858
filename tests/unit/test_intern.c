/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/intern.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

static void test_ids(void **state UNUSED)
{
	CLEANUP(intern_release) struct intern t;
	uint32_t id = 77;

	assert_int_equal(intern_init(&t), 0);
	assert_string_equal(intern_str(&t, 0), "");
	assert_int_equal(intern_puts(&t, "", &id), 0);
	assert_int_equal(id, 0);
	assert_int_equal(intern_puts(&t, "main", &id), 0);
	assert_int_equal(id, 1);
	assert_int_equal(intern_puts(&t, "other", &id), 0);
	assert_int_equal(id, 2);
	assert_int_equal(intern_puts(&t, "main", &id), 0);
	assert_int_equal(id, 1);
	assert_string_equal(intern_str(&t, 2), "other");
}

static void test_bytes(void **state UNUSED)
{
	CLEANUP(intern_release) struct intern t;
	uint32_t a, b, c;

	assert_int_equal(intern_init(&t), 0);
	assert_int_equal(intern_add(&t, "a\0b", 3, &a), 0);
	assert_int_equal(intern_add(&t, "a\0c", 3, &b), 0);
	assert_int_equal(intern_add(&t, "a", 1, &c), 0);
	assert_int_equal(a, 1);
	assert_int_equal(b, 2);
	assert_int_equal(c, 3);
	assert_int_equal(t.strings.v[a].n, 3);
	assert_memory_equal(t.strings.v[a].s, "a\0b", 4);
	assert_int_equal(intern_add(&t, "main.c", 4, &a), 0);
	assert_string_equal(intern_str(&t, a), "main");
}

/* Strings stay where they are while the table grows. */
static void test_many(void **state UNUSED)
{
	CLEANUP(intern_release) struct intern t;
	const char *first;
	char name[32];
	uint32_t id;

	assert_int_equal(intern_init(&t), 0);
	assert_int_equal(intern_puts(&t, "first", &id), 0);
	first = intern_str(&t, id);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 50000; i++) {
			snprintf(name, sizeof(name), "f%u", i);
			assert_int_equal(intern_puts(&t, name, &id), 0);
			assert_int_equal(id, i + 2);
		}
	}
	assert_int_equal(t.strings.n, 50002);
	assert_ptr_equal(first, intern_str(&t, 1));
	assert_string_equal(intern_str(&t, 50001), "f49999");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_many),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
