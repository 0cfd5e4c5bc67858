/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/array.h>
#include <inspect/clock.h>
#include <inspect/hashmap.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

/* The index stored for a key whose elements are the indices themselves, or NONE. */
static uint32_t find(const struct hashmap *m, uint64_t hash, uint32_t wanted)
{
	uint32_t at, i;

	hashmap_each_candidate(m, hash, at, i) {
		if (i == wanted)
			return i;
	}
	return HASHMAP_NONE;
}

static void test_many(void **state UNUSED)
{
	CLEANUP(hashmap_release) struct hashmap m = {0};

	assert_int_equal(find(&m, 5, 0), HASHMAP_NONE);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(hashmap_insert(&m, hash_u64(i), i), 0);
	assert_int_equal(m.n, 100000);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(find(&m, hash_u64(i), i), i);
	for (uint32_t i = 100000; i < 110000; i++)
		assert_int_equal(find(&m, hash_u64(i), i), HASHMAP_NONE);
}

/* Equal hashes, and hashes that end in the last slot: all are found, each once. */
static void test_collisions(void **state UNUSED)
{
	CLEANUP(hashmap_release) struct hashmap m = {0};
	bool seen[1000] = {0};
	uint32_t at, i, n = 0;

	for (i = 0; i < 1000; i++)
		assert_int_equal(hashmap_insert(&m, UINT32_MAX, i), 0);
	assert_int_equal(hashmap_insert(&m, UINT32_MAX - 1, 5000), 0);
	hashmap_each_candidate(&m, UINT32_MAX, at, i) {
		assert_true(i < 1000);
		assert_false(seen[i]);
		seen[i] = true;
		n++;
	}
	assert_int_equal(n, 1000);
	assert_int_equal(find(&m, UINT32_MAX - 1, 5000), 5000);
}

static void test_refuses_none(void **state UNUSED)
{
	CLEANUP(hashmap_release) struct hashmap m = {0};

	assert_int_equal(hashmap_insert(&m, 1, HASHMAP_NONE), -E2BIG);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* All prefixes of a text, with each byte changed in turn: 64-bit hashes must all differ. */
static void test_hash_bytes_differ(void **state UNUSED)
{
	char text[64];
	ARRAY(uint64_t) hashes = {0};

	memset(text, 'a', sizeof(text));
	for (size_t n = 0; n <= sizeof(text); n++) {
		assert_int_equal(array_push(&hashes, hash_bytes(text, n)), 0);
		for (size_t i = 0; i < n; i++) {
			text[i] = 'b';
			assert_int_equal(array_push(&hashes, hash_bytes(text, n)), 0);
			text[i] = 'a';
		}
	}
	qsort(hashes.v, hashes.n, sizeof(*hashes.v), compare_u64);
	for (size_t i = 1; i < hashes.n; i++)
		assert_true(hashes.v[i] != hashes.v[i - 1]);
	array_release(&hashes);
}

/* The low bits choose the slot: 65536 numbered names over 4096 buckets, chi-squared with 4095
 * degrees of freedom lies within 4095 +- 5 * sqrt(2 * 4095) unless the hash is poor. */
static void test_hash_bytes_spread(void **state UNUSED)
{
	static unsigned buckets[4096];
	double chi = 0;

	for (unsigned i = 0; i < 65536; i++) {
		char name[32];
		int n = snprintf(name, sizeof(name), "function_%u", i);

		buckets[hashmap_fold_(hash_bytes(name, (size_t)n)) & 4095]++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(buckets); i++)
		chi += (buckets[i] - 16.0) * (buckets[i] - 16.0) / 16.0;
	assert_true(chi > 4095 - 453);
	assert_true(chi < 4095 + 453);
}

/* Reads exactly n bytes: the sanitizer build sees one more or less. */
static void test_hash_bytes_bounds(void **state UNUSED)
{
	for (size_t n = 0; n < 70; n++) {
		char *exact = malloc(n ? n : 1), *other = malloc(n + 8);

		assert_non_null(exact);
		assert_non_null(other);
		memset(exact, 'x', n);
		memset(other, 'y', n + 8);
		memset(other + 3, 'x', n);
		assert_true(hash_bytes(exact, n) == hash_bytes(other + 3, n));
		free(exact);
		free(other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_collisions),
		cmocka_unit_test(test_refuses_none),
		cmocka_unit_test(test_hash_bytes_differ),
		cmocka_unit_test(test_hash_bytes_spread),
		cmocka_unit_test(test_hash_bytes_bounds),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
