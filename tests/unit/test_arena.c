/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/arena.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

/* Blocks of every size are aligned, apart from each other and keep what was written. */
static void test_blocks(void **state UNUSED)
{
	CLEANUP(arena_release) struct arena a = {0};
	unsigned char *blocks[2000];
	size_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		size_t n = i * 7 % 5000;

		blocks[i] = arena_alloc(&a, n);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		memset(blocks[i], (int)(i & 0xff), n);
		sum += n;
	}
	assert_true(a.used_bytes >= sum);
	assert_true(a.used_bytes <= sum + 16 * ARRAY_SIZE(blocks));
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
		for (size_t k = 0; k < i * 7 % 5000; k++)
			assert_int_equal(blocks[i][k], i & 0xff);
}

/* A block larger than any chunk doesn't end the chunk that is being filled. */
static void test_large(void **state UNUSED)
{
	CLEANUP(arena_release) struct arena a = {0};
	char *before = arena_alloc(&a, 16), *large = arena_alloc(&a, 8 << 20), *after;

	assert_non_null(before);
	assert_non_null(large);
	memset(large, 1, 8 << 20);
	after = arena_alloc(&a, 16);
	assert_ptr_equal(after, before + 16);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 64));
}

static void test_clear_reuses(void **state UNUSED)
{
	CLEANUP(arena_release) struct arena a = {0};
	void *first;

	for (int i = 0; i < 1000; i++)
		assert_non_null(arena_alloc(&a, 100));
	arena_clear(&a);
	assert_int_equal(a.used_bytes, 0);
	first = arena_alloc(&a, 100);
	arena_clear(&a);
	assert_ptr_equal(arena_alloc(&a, 100), first);
}

static void test_strndup(void **state UNUSED)
{
	CLEANUP(arena_release) struct arena a = {0};

	assert_string_equal(arena_strndup(&a, "main.c", 4), "main");
	assert_string_equal(arena_strndup(&a, "", 0), "");
	assert_memory_equal(arena_strndup(&a, "x\0y", 3), "x\0y", 4);
	assert_null(arena_strndup(&a, "", SIZE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_clear_reuses),
		cmocka_unit_test(test_strndup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
