/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inspect/profile.h>
#include <inspect/waits.h>

enum { MS = 1000000 };

static unsigned bucket_of(uint64_t ns)
{
	unsigned i = 0;

	while (i + 1 < OFFCPU_BUCKETS && offcpu_bucket_low_ns(i + 1) <= ns)
		i++;
	return i;
}

static struct offcpu_row row_of(uint32_t pid, uint64_t wait_ns, uint64_t queue_ns, uint64_t count)
{
	struct offcpu_row r = {.wait_ns = wait_ns,
			       .queue_ns = queue_ns,
			       .count = count,
			       .max_ns = wait_ns / count,
			       .pid = pid};

	r.buckets[bucket_of(r.max_ns)] = (uint32_t)count;
	return r;
}

static void test_buckets_are_in_order(void **state)
{
	(void)state;
	assert_int_equal(offcpu_bucket_low_ns(0), 0);
	assert_int_equal(offcpu_bucket_low_ns(1), 1024);
	assert_int_equal(offcpu_bucket_low_ns(5), 2048);
	for (unsigned i = 1; i + 1 < OFFCPU_BUCKETS; i++) {
		double ratio =
			(double)offcpu_bucket_low_ns(i + 1) / (double)offcpu_bucket_low_ns(i);

		assert_true(ratio > 1.1 && ratio < 1.26);
	}
}

static void test_sums(void **state)
{
	struct waits w = {0};
	struct profile *p;
	struct offcpu_key key = {.stack = 7, .thread = 1, .waker = 2};
	struct offcpu_ended threads[2] = {{.totals = {.pid = 1, .tid = 11}, .serial = 2},
					  {.totals = {.pid = 1, .tid = 10}, .serial = 1}};
	struct offcpu_row a = row_of(1, 30 * MS, 2 * MS, 3), b = row_of(1, 40 * MS, 0, 1);
	uint32_t lock, again, site, other;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(waits_label(&w, "futex x", WAIT_LOCK, &lock), 0);
	assert_int_equal(waits_label(&w, "futex x", WAIT_LOCK, &again), 0);
	assert_int_equal(lock, again);
	assert_int_equal(waits_add(&w, &key, &a, lock, &site), 0);
	key.waker = OFFCPU_WAKER_IRQ;
	key.flags = OFFCPU_OPEN;
	assert_int_equal(waits_add(&w, &key, &b, lock, &other), 0);
	assert_int_equal(site, other);
	key.thread = 2;
	key.flags = 0;
	assert_int_equal(waits_add(&w, &key, &a, lock, &other), 0);
	key.stack = 8;
	assert_int_equal(waits_add(&w, &key, &a, lock, &other), 0);
	assert_int_not_equal(site, other);
	assert_int_equal(w.sites.v[site].wait_ns, 100 * MS);
	assert_int_equal(w.sites.v[site].queue_ns, 4 * MS);
	assert_int_equal(w.sites.v[site].count, 7);
	assert_int_equal(w.sites.v[site].max_ns, 40 * MS);
	assert_int_equal(w.sites.v[site].n_open, 1);
	assert_int_equal(w.sites.v[site].open_ns, 40 * MS);

	assert_int_equal(waits_finish(&w, threads, 2), 0);
	assert_int_equal(w.sites.v[site].n_threads, 2);
	assert_int_equal(waits_classify(&w, p), 0);
	assert_int_equal(waits_thread(&w, 1)->totals.tid, 10);
	assert_int_equal(waits_thread(&w, 1)->by_reason[WAIT_LOCK], 70 * MS);
	assert_int_equal(waits_thread(&w, 1)->by_reason[WAIT_RUNNABLE], 2 * MS);
	assert_int_equal(waits_thread(&w, 2)->by_reason[WAIT_LOCK], 60 * MS);
	assert_null(waits_thread(&w, 3));
	waits_release(&w);
	profile_free(p);
}

static void test_percentiles(void **state)
{
	struct wait_site s = {.max_ns = 1000 * MS};

	(void)state;
	s.buckets[bucket_of(1 * MS)] = 98;
	s.buckets[bucket_of(1000 * MS)] = 2;
	assert_in_range(wait_site_percentile(&s, 50), 890000, 1110000);
	assert_in_range(wait_site_percentile(&s, 99), 890 * MS, 1000 * MS);
	s = (struct wait_site){0};
	assert_int_equal(wait_site_percentile(&s, 50), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets_are_in_order),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_percentiles),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
