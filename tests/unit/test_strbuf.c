/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/strbuf.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

static void test_empty(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	char *taken = NULL;

	assert_string_equal(strbuf_str(&b), "");
	assert_int_equal(strbuf_take(&b, &taken), 0);
	assert_string_equal(taken, "");
	free(taken);
}

static void test_add(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	strbuf_puts(&b, "one");
	strbuf_putc(&b, ' ');
	strbuf_add(&b, "a\0b", 3);
	assert_int_equal(b.n, 7);
	assert_memory_equal(b.v, "one a\0b", 8);
	strbuf_clear(&b);
	assert_string_equal(strbuf_str(&b), "");
	strbuf_printf(&b, "%d-%s", -7, "x");
	assert_string_equal(strbuf_str(&b), "-7-x");
}

/* Every length around the first guess of the room, one after the other and each alone. */
static void test_printf_lengths(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf all = {0};
	size_t sum = 0;

	for (int n = 0; n < 300; n++) {
		CLEANUP(strbuf_release) struct strbuf one = {0};

		strbuf_printf(&one, "%*s", n, "");
		assert_int_equal(one.n, n);
		assert_int_equal(strlen(strbuf_str(&one)), n);
		strbuf_printf(&all, "%0*d", n ? n : 1, 5);
		sum += (size_t)(n ? n : 1);
		assert_int_equal(all.n, sum);
		assert_int_equal(all.v[all.n - 1], '5');
	}
}

static void test_take_hands_over(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	char *taken = NULL;

	strbuf_puts(&b, "text");
	assert_int_equal(strbuf_take(&b, &taken), 0);
	assert_null(b.v);
	assert_int_equal(b.n, 0);
	assert_string_equal(taken, "text");
	free(taken);
}

static void test_failure_sticks(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	char *taken = (char *)1;

	strbuf_puts(&b, "kept");
	strbuf_add(&b, "x", SIZE_MAX - 2);
	assert_true(b.failed);
	strbuf_puts(&b, "not added");
	strbuf_printf(&b, "nor %s", "this");
	assert_string_equal(strbuf_str(&b), "kept");
	assert_int_equal(strbuf_take(&b, &taken), -ENOMEM);
	assert_ptr_equal(taken, (char *)1);
	strbuf_clear(&b);
	strbuf_puts(&b, "again");
	assert_string_equal(strbuf_str(&b), "again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),          cmocka_unit_test(test_add),
		cmocka_unit_test(test_printf_lengths), cmocka_unit_test(test_take_hands_over),
		cmocka_unit_test(test_failure_sticks),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
