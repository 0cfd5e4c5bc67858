/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/cpu_list.h>
#include <inspect/ring.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

/* A ring in a memfd stands for the kernel's: same layout, written by the test. */
struct fixture {
	struct ring ring;
	uint64_t head;
	int fd;
};

static void open_ring(struct fixture *f, unsigned pages)
{
	*f = (struct fixture){.fd = memfd_create("ring", MFD_CLOEXEC)};
	assert_true(f->fd >= 0);
	assert_int_equal(ftruncate(f->fd, (1 + (off_t)pages) * sysconf(_SC_PAGESIZE)), 0);
	assert_int_equal(ring_map(&f->ring, f->fd, pages), 0);
	assert_int_equal(f->ring.data_bytes, pages * (size_t)sysconf(_SC_PAGESIZE));
}

static void close_ring(struct fixture *f)
{
	ring_unmap(&f->ring);
	close(f->fd);
}

static void put_bytes(struct fixture *f, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		f->ring.data[(f->head + i) & (f->ring.data_bytes - 1)] =
			((const uint8_t *)bytes)[i];
	f->head += n;
	f->ring.page->data_head = f->head;
}

/* A record of `size` bytes whose body bytes are all `fill`. */
static void put_record(struct fixture *f, uint16_t size, uint8_t fill)
{
	uint8_t bytes[4096];
	struct perf_event_header h = {.type = PERF_RECORD_COMM, .size = size};

	memset(bytes, fill, sizeof(bytes));
	memcpy(bytes, &h, sizeof(h));
	put_bytes(f, bytes, size);
}

struct seen {
	size_t n, bytes;
	uint8_t next_fill;
	size_t fail_at;
};

static int check(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct seen *s = ctx;
	const uint8_t *body = (const uint8_t *)(record + 1);

	if (s->fail_at && s->n + 1 == s->fail_at)
		return -ENOSPC;
	assert_int_equal(record->size, size_bytes);
	assert_int_equal((uintptr_t)record % 8, 0);
	for (size_t i = 0; i < size_bytes - sizeof(*record); i++)
		assert_int_equal(body[i], s->next_fill);
	s->next_fill++;
	s->n++;
	s->bytes += size_bytes;
	return 0;
}

/* Sizes that do not divide the ring: over 100 rounds records wrap around at every offset. */
static void test_wrapping_records_are_whole(void **state)
{
	struct fixture f;
	struct seen seen = {0};
	uint8_t fill = 0;
	size_t put = 0;

	(void)state;
	open_ring(&f, 1);
	for (int i = 0; i < 4000; i++) {
		uint16_t size = (uint16_t)(8 + 8 * (i * 7 % 120));

		if (f.head - f.ring.page->data_tail + size > f.ring.data_bytes)
			assert_int_equal(ring_read(&f.ring, check, &seen), 0);
		put_record(&f, size, fill++);
		put += size;
	}
	assert_int_equal(ring_read(&f.ring, check, &seen), 0);
	assert_int_equal(seen.n, 4000);
	assert_int_equal(seen.bytes, put);
	assert_int_equal(f.ring.page->data_tail, f.head);
	assert_int_equal(f.ring.broken, 0);
	close_ring(&f);
}

static void test_failed_record_is_read_again(void **state)
{
	struct fixture f;
	struct seen seen = {.fail_at = 2};

	(void)state;
	open_ring(&f, 1);
	for (uint8_t i = 0; i < 3; i++)
		put_record(&f, 64, i);
	assert_int_equal(ring_read(&f.ring, check, &seen), -ENOSPC);
	assert_int_equal(seen.n, 1);
	assert_int_equal(f.ring.page->data_tail, 64);
	seen.fail_at = 0;
	assert_int_equal(ring_read(&f.ring, check, &seen), 0);
	assert_int_equal(seen.n, 3);
	close_ring(&f);
}

static void test_broken_records_are_dropped(void **state)
{
	static const uint16_t sizes[] = {0, 4, 7, 12, 4096, 65535};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct seen seen = {0};
		struct perf_event_header bad = {.type = PERF_RECORD_COMM, .size = sizes[i]};

		open_ring(&f, 1);
		put_record(&f, 64, 0);
		put_bytes(&f, &bad, sizeof(bad));
		put_record(&f, 64, 9);
		assert_int_equal(ring_read(&f.ring, check, &seen), 0);
		assert_int_equal(seen.n, 1);
		assert_int_equal(f.ring.broken, 1);
		assert_int_equal(f.ring.page->data_tail, f.head);
		/* What comes after it is read again. */
		put_record(&f, 64, 1);
		assert_int_equal(ring_read(&f.ring, check, &seen), 0);
		assert_int_equal(seen.n, 2);
		close_ring(&f);
	}
}

static void test_impossible_positions(void **state)
{
	struct fixture f;
	struct seen seen = {0};

	(void)state;
	open_ring(&f, 1);
	f.ring.page->data_head = 1ULL << 40;
	assert_int_equal(ring_read(&f.ring, check, &seen), 0);
	f.ring.page->data_head = 64; /* back */
	assert_int_equal(ring_read(&f.ring, check, &seen), 0);
	f.ring.page->data_head = 68; /* half a header */
	assert_int_equal(ring_read(&f.ring, check, &seen), 0);
	f.ring.page->data_head = 80; /* a tail that is not aligned */
	assert_int_equal(ring_read(&f.ring, check, &seen), 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(f.ring.broken, 4);
	close_ring(&f);
}

static void test_cpu_lists(void **state)
{
	static const char *const bad[] = {"",      "a",   "3-1",     "1-", "-1",  "1,,2",
					  "1-2-3", "1 2", "0-99999", " 1", "1-+2"};
	CLEANUP(cpu_list_release) cpu_list l = {0};

	(void)state;
	assert_int_equal(cpu_list_parse("0-2,8,10-11\n", &l), 0);
	assert_int_equal(l.n, 6);
	assert_int_equal(l.v[2], 2);
	assert_int_equal(l.v[3], 8);
	assert_int_equal(l.v[5], 11);
	assert_true(cpu_list_has(&l, 10));
	assert_false(cpu_list_has(&l, 9));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(cpu_list_release) cpu_list none = {0};

		if (cpu_list_parse(bad[i], &none) == 0)
			fail_msg("'%s' was accepted", bad[i]);
	}
	array_release(&l);
	assert_int_equal(cpu_list_online(&l), 0);
	assert_int_equal(l.n, sysconf(_SC_NPROCESSORS_ONLN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrapping_records_are_whole),
		cmocka_unit_test(test_failed_record_is_read_again),
		cmocka_unit_test(test_broken_records_are_dropped),
		cmocka_unit_test(test_impossible_positions),
		cmocka_unit_test(test_cpu_lists),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
