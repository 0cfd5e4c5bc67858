/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files damaged in every way that a fixed seed brings about: cut, flipped, with sizes that lie.
 * They may be refused or read in part, but end, and touch nothing that is not theirs (make SAN=…).
 */
#include "perfdata_image.h"
#include "scratch.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <zstd.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

#define FLIPS 6000

static int fd = -1; /* of a file in memory that each variant is written to */

static int setup(void **state)
{
	if (scratch_setup(state))
		return -1;
	fd = memfd_create("hostile", MFD_CLOEXEC);
	return fd < 0;
}

static int teardown(void **state)
{
	close(fd);
	return scratch_teardown(state);
}

/* Opens and reads what the descriptor holds; how many records came. */
static uint64_t read_from(int from)
{
	struct perfdata_reader *r = NULL;
	struct diag d = {0};
	struct tally t = {0};
	int err = perfdata_open_fd(from, NULL, 0, "hostile", &r, &d);

	if (err) {
		assert_true(err < 0);
		assert_non_null(d.what);
		assert_non_null(strstr(d.what, "hostile"));
		diag_release(&d);
		return 0;
	}
	assert_int_equal(tally_read(&t, r, &d), 0);
	perfdata_reader_free(r);
	return t.records;
}

/* As a mapped file, and, when a pipe holds it, in memory of its exact size, which ASan watches. */
static uint64_t survive(const char *v, size_t n)
{
	uint64_t records;
	int fds[2];

	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, v, n, 0), n);
	records = read_from(fd);
	if (n > 32768)
		return records;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], v, n), n);
	close(fds[1]);
	assert_int_equal(read_from(fds[0]), records);
	close(fds[0]);
	return records;
}

static uint32_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return (uint32_t)hash_u64(*state);
}

/* A file with all features that we write, compressed records among the plain ones. */
static void make_file(struct strbuf *image)
{
	struct perfdata_build_id id = {.path = (char *)"/bin/x", .id = {1, 2}, .size = 20};
	struct perfdata_info info = {.hostname = (char *)"h",
				     .command = (char *)"inspect record",
				     .cpus_online = 2,
				     .last_sample_ns = 9,
				     .names = (uint8_t *)"names",
				     .names_bytes = 5,
				     .notes = (char *)"a=1\n"};
	CLEANUP(strbuf_release) struct strbuf data = {0}, plain = {0};
	struct perfdata_writer *w = NULL;
	struct event_table t = {0};
	char packed[4096], *text;
	struct perf_event_header h = {.type = RECORD_COMPRESSED};
	size_t n;
	FILE *file;

	info.build_ids.v = &id;
	info.build_ids.n = 1;
	for (unsigned i = 0; i < 2; i++) {
		struct perf_event_attr attr = image_attr(i);

		assert_int_equal(event_table_add(&t, &attr, NULL), 0);
		assert_int_equal(event_table_add_id(&t, i, IMAGE_ID + i), 0);
	}
	for (uint64_t i = 0; i < 4; i++) {
		image_sample(&data, i % 2, i);
		image_sample(&plain, i % 2, i);
	}
	n = ZSTD_compress(packed, sizeof(packed), plain.v, plain.n, 1);
	assert_false(ZSTD_isError(n));
	h.size = (uint16_t)(sizeof(h) + n);
	strbuf_add(&data, (char *)&h, sizeof(h));
	strbuf_add(&data, packed, n);
	assert_int_equal(perfdata_create("seed", &t, &w, NULL, NULL), 0);
	assert_int_equal(perfdata_write(w, data.v, data.n, NULL), 0);
	assert_int_equal(perfdata_round(w, NULL), 0);
	assert_int_equal(perfdata_finish(w, &info, NULL), 0);
	perfdata_writer_free(w);
	event_table_release(&t);

	text = malloc(1 << 16);
	file = fopen("seed", "r");
	assert_non_null(text);
	assert_non_null(file);
	strbuf_add(image, text, fread(text, 1, 1 << 16, file));
	fclose(file);
	free(text);
	assert_int_equal(survive(image->v, image->n), 9);
}

static void make_stream(struct strbuf *image)
{
	struct record_builder b;

	image_stream_head(image, 2);
	record_begin(&b, RECORD_HEADER_FEATURE, 0);
	record_u64(&b, 12); /* event names */
	record_u32(&b, 1);
	record_u32(&b, 8);
	record_u64(&b, 0);
	record_u32(&b, 1);
	record_u32(&b, 8);
	record_string(&b, "renamed");
	record_u64(&b, IMAGE_ID);
	image_record(image, &b);
	record_begin(&b, RECORD_HEADER_TRACING_DATA, 0);
	record_u32(&b, 8);
	record_u32(&b, 0);
	record_u64(&b, 0);
	b.header.size -= 8; /* the payload lies behind the record */
	image_record(image, &b);
	for (uint64_t i = 0; i < 4; i++)
		image_sample(image, i % 2, i);
	image_round(image);
	assert_int_equal(survive(image->v, image->n), 9);
}

static void cut_everywhere(const struct strbuf *image)
{
	uint64_t most = 0;

	for (size_t n = 0; n < image->n; n++) {
		/* The exact size, so that a byte too many is seen. */
		uint64_t records = survive(image->v, n);

		most = MAX(most, records);
	}
	assert_in_range(most, 7, 9);
}

static void flip_bytes(const struct strbuf *image, uint64_t seed)
{
	char *v = malloc(image->n);

	assert_non_null(v);
	for (int i = 0; i < FLIPS; i++) {
		memcpy(v, image->v, image->n);
		for (uint32_t k = 0; k <= next_random(&seed) % 4; k++)
			v[next_random(&seed) % image->n] = (char)next_random(&seed);
		survive(v, image->n);
	}
	free(v);
}

/* Each aligned word of each width becomes each of the values that break arithmetic. */
static void lie_about_sizes(const struct strbuf *image)
{
	static const uint64_t lies[] = {
		0,          1,
		7,          8,
		0x7fffffff, 0xffffffff,
		0xffff,     1ULL << 62,
		1ULL << 63, UINT64_MAX - 7,
		UINT64_MAX, UINT64_MAX / 8 + 2,
	};
	char *v = malloc(image->n);

	assert_non_null(v);
	for (size_t at = 8; at + 8 <= image->n; at += 4)
		for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
			memcpy(v, image->v, image->n);
			memcpy(v + at, &lies[i], at % 8 ? 4 : 8);
			survive(v, image->n);
		}
	free(v);
}

static void test_file(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf image = {0};

	make_file(&image);
	cut_everywhere(&image);
	flip_bytes(&image, 1);
	lie_about_sizes(&image);
}

static void test_stream(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf image = {0};

	make_stream(&image);
	cut_everywhere(&image);
	flip_bytes(&image, 2);
	lie_about_sizes(&image);
}

/* Many events that all claim the same ids cost no more than the file is long. */
static void test_shared_ids(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0}, image = {0};

	for (int i = 0; i < 100000; i++)
		image_u64(&data, (uint64_t)i);
	image_file(&image, 2000, sizeof(struct perf_event_attr), &data);
	for (size_t i = 0; i < 2000; i++) {
		size_t entry = 104 + i * (sizeof(struct perf_event_attr) + 16);

		image_set_u64(&image, entry + sizeof(struct perf_event_attr), image.n - data.n);
		image_set_u64(&image, entry + sizeof(struct perf_event_attr) + 8, data.n);
	}
	assert_int_equal(survive(image.v, image.n), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_shared_ids),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
