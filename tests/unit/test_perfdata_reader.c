/* SPDX-License-Identifier: BSD-2-Clause */
/* Files put together by hand; tests/unit/test_perfdata_perf.c reads perf's own. */
#include "perfdata_image.h"
#include "scratch.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <zstd.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

#define DATA_OFF_AT 40 /* where the header says where the data begins, and its size */
#define DATA_SIZE_AT 48
#define FEATURES_AT 72

static struct perfdata_reader *open_image(const struct strbuf *image)
{
	struct perfdata_reader *r = NULL;
	struct diag d = {0};

	write_file("image", image->v, image->n);
	if (perfdata_open("image", &r, &d))
		fail_msg("%s", d.what);
	return r;
}

/* The file is refused with this line. */
static void expect_refusal(const struct strbuf *image, int err, const char *what)
{
	struct perfdata_reader *r = NULL;
	struct diag d = {0};

	write_file("image", strbuf_str(image), image->n);
	assert_int_equal(perfdata_open("image", &r, &d), err);
	assert_null(r);
	assert_string_equal(d.what, what);
	diag_release(&d);
}

static struct tally read_all(struct perfdata_reader *r)
{
	struct tally t = {0};
	struct diag d = {0};

	if (tally_read(&t, r, &d))
		fail_msg("%s", d.what);
	return t;
}

/* 60 samples of two events in three rounds. */
static void sixty_samples(struct strbuf *data)
{
	for (uint64_t i = 0; i < 60; i++) {
		image_sample(data, i % 3 == 0, i);
		if (i % 20 == 19)
			image_round(data);
	}
}

static void check_sixty(const struct tally *t)
{
	assert_int_equal(t->samples, 60);
	assert_int_equal(t->undecoded, 0);
	assert_int_equal(t->rounds, 3);
	assert_int_equal(t->by_event[0], 40);
	assert_int_equal(t->by_event[1], 20);
	assert_int_equal(t->weights, 60 * 10 + 59 * 60 / 2);
}

static void test_plain(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0}, image = {0};
	struct perfdata_reader *r;
	struct tally t;

	sixty_samples(&data);
	image_file(&image, 2, sizeof(struct perf_event_attr), &data);
	r = open_image(&image);
	assert_true(perfdata_stable(r));
	assert_true(perfdata_info(r)->unfinished);
	for (int i = 0; i < 2; i++) { /* a second walk sees the same */
		t = read_all(r);
		check_sixty(&t);
	}
	assert_null(perfdata_info(r)->damage);
	assert_string_equal(perfdata_events(r)->events.v[0].name, "cpu-clock");
	assert_string_equal(perfdata_events(r)->events.v[1].name, "page-faults");
	perfdata_reader_free(r);
}

/* Attrs of an older and a newer perf. */
static void test_other_attr_sizes(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0};
	static const size_t sizes[] = {64, 96, 136, 168};

	sixty_samples(&data);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CLEANUP(strbuf_release) struct strbuf image = {0};
		struct perfdata_reader *r;
		struct tally t;

		image_file(&image, 2, sizes[i], &data);
		r = open_image(&image);
		t = read_all(r);
		check_sixty(&t);
		assert_null(perfdata_info(r)->newer);
		perfdata_reader_free(r);
		if (sizes[i] <= sizeof(struct perf_event_attr))
			continue;
		image.v[104 + sizeof(struct perf_event_attr)] = 1;
		r = open_image(&image);
		t = read_all(r);
		check_sixty(&t);
		assert_non_null(strstr(perfdata_info(r)->newer, "newer than this program"));
		perfdata_reader_free(r);
	}
}

/* A recorder that never wrote the size; one whose file system lost the end. */
static void test_unfinished(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0}, image = {0};
	char damage[200];
	struct perfdata_reader *r;
	struct tally t;

	sixty_samples(&data);
	image_file(&image, 2, sizeof(struct perf_event_attr), &data);
	image_set_u64(&image, DATA_SIZE_AT, 0);
	r = open_image(&image);
	t = read_all(r);
	check_sixty(&t);
	assert_true(perfdata_info(r)->unfinished);
	assert_null(perfdata_info(r)->damage);
	perfdata_reader_free(r);

	image.n -= 4; /* inside the last round's end */
	r = open_image(&image);
	t = read_all(r);
	assert_int_equal(t.samples, 60);
	assert_int_equal(t.rounds, 2);
	snprintf(damage, sizeof(damage), "cut at byte %zu: 62 records in 2 rounds read", image.n);
	assert_string_equal(perfdata_info(r)->damage, damage);
	perfdata_reader_free(r);

	image_set_u64(&image, DATA_SIZE_AT, data.n);
	r = open_image(&image);
	t = read_all(r);
	assert_int_equal(t.samples, 60);
	snprintf(damage, sizeof(damage), "cut at byte %zu of %zu: 62 records in 2 rounds read",
		 image.n, image.n + 4);
	assert_string_equal(perfdata_info(r)->damage, damage);
	perfdata_reader_free(r);
}

/* Every length: what comes before the cut is read, and the cut is named. */
static void test_cut_anywhere(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0}, image = {0};
	size_t data_off, whole, n_records = 0, ends[63];
	struct perf_event_header h;

	sixty_samples(&data);
	for (size_t at = 0; at < data.n; at += h.size) {
		memcpy(&h, data.v + at, sizeof(h));
		ends[n_records++] = at + h.size;
	}
	image_file(&image, 2, sizeof(struct perf_event_attr), &data);
	data_off = image.n - data.n;
	whole = image.n;
	for (size_t n = data_off; n < whole; n += n < data_off + 200 ? 1 : 37) {
		struct perfdata_reader *r;
		size_t expected = 0;
		struct tally t;

		while (expected < n_records && ends[expected] <= n - data_off)
			expected++;
		image.n = n;
		r = open_image(&image);
		t = read_all(r);
		assert_int_equal(t.records, expected);
		assert_int_equal(t.undecoded, 0);
		assert_non_null(perfdata_info(r)->damage);
		perfdata_reader_free(r);
	}
}

static void test_damage(void **state UNUSED)
{
	static const struct {
		uint32_t type;
		uint16_t size;
		const char *damage;
	} cases[] = {
		{PERF_RECORD_SAMPLE, 0, "(type 9, 0 bytes): 21 records in 1 rounds read"},
		{PERF_RECORD_SAMPLE, 7, "(type 9, 7 bytes): 21 records in 1 rounds read"},
		{RECORD_COMPRESSED, 16, "(type 81, 16 bytes): 21 records in 1 rounds read"},
		{RECORD_AUXTRACE, 8, "(type 71, 8 bytes): 21 records in 1 rounds read"},
		{RECORD_HEADER_TRACING_DATA, 8, "(type 66, 8 bytes): 21 records in 1 rounds read"},
		{RECORD_EVENT_UPDATE, 8, "(type 78, 8 bytes): 21 records in 1 rounds read"},
		{RECORD_HEADER_FEATURE, 8, "(type 80, 8 bytes): 21 records in 1 rounds read"},
		{RECORD_HEADER_BUILD_ID, 8, "(type 67, 8 bytes): 21 records in 1 rounds read"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(strbuf_release) struct strbuf data = {0}, image = {0};
		struct perf_event_header h = {.type = cases[i].type, .size = cases[i].size};
		struct perfdata_reader *r;
		char place[64];
		size_t at = 0;
		struct tally t;

		sixty_samples(&data);
		for (int k = 0; k < 21; k++)
			at += ((struct perf_event_header *)(void *)(data.v + at))->size;
		memcpy(data.v + at, &h, sizeof(h));
		image_file(&image, 2, sizeof(struct perf_event_attr), &data);
		r = open_image(&image);
		t = read_all(r);
		assert_int_equal(t.samples, 20);
		snprintf(place, sizeof(place), "damaged at byte %zu ", image.n - data.n + at);
		assert_int_equal(strncmp(perfdata_info(r)->damage, place, strlen(place)), 0);
		assert_string_equal(perfdata_info(r)->damage + strlen(place), cases[i].damage);
		perfdata_reader_free(r);
	}
}

/* A record that reaches into what follows the data. */
static void test_past_the_data(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0}, image = {0};
	struct perfdata_reader *r;
	struct tally t;

	sixty_samples(&data);
	image_file(&image, 2, sizeof(struct perf_event_attr), &data);
	image_set_u64(&image, DATA_SIZE_AT, data.n - 8 - 16);
	r = open_image(&image);
	t = read_all(r);
	assert_int_equal(t.samples, 59);
	assert_non_null(strstr(perfdata_info(r)->damage,
			       "(a record reaches past the end of the data): 61 records in 2"));
	perfdata_reader_free(r);
}

static void test_refusals(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0}, image = {0}, text = {0};
	uint64_t magic;

	expect_refusal(&text, -EBADMSG,
		       "image: not a perf.data file (it does not begin with PERFILE2)");
	strbuf_puts(&text, "PERFILE1 and so on, as text");
	expect_refusal(&text, -EBADMSG,
		       "image: not a perf.data file (it does not begin with PERFILE2)");
	image_file(&image, 1, sizeof(struct perf_event_attr), &data);
	for (size_t n = 17; n < 104; n += 29) {
		CLEANUP(strbuf_release) struct strbuf cut = {0};
		char what[100];

		strbuf_add(&cut, image.v, n);
		snprintf(what, sizeof(what), "image: cut at byte %zu, inside its header", n);
		expect_refusal(&cut, -EBADMSG, what);
	}
	image.n -= 8;
	expect_refusal(&image, -EBADMSG, "image: damaged event descriptions (from byte 104 on)");
	image.n -= 8;
	expect_refusal(&image, -EBADMSG,
		       "image: cut at byte 240, before the end of its event descriptions");
	image.n += 16;
	image_set_u64(&image, FEATURES_AT, 1ULL << 24);
	expect_refusal(&image, -ENOTSUP,
		       "image: part of a perf.data directory (perf record --threads), which "
		       "cannot be read");
	image_set_u64(&image, DATA_OFF_AT, 1ULL << 63);
	image_set_u64(&image, FEATURES_AT, 0);
	expect_refusal(&image, -EBADMSG,
		       "image: cut or damaged: its records begin at byte 9223372036854775808 of "
		       "256");
	memcpy(&magic, image.v, sizeof(magic));
	image_set_u64(&image, 0, __builtin_bswap64(magic));
	assert_true(perfdata_is_header(image.v, image.n));
	assert_false(perfdata_is_header(image.v, 7));
	expect_refusal(&image, -ENOTSUP,
		       "image: recorded on a machine of the other byte order, which cannot be "
		       "read");
}

static void test_no_file(void **state UNUSED)
{
	struct perfdata_reader *r = NULL;
	struct diag d = {0}, d2 = {0};

	assert_int_equal(perfdata_open("absent", &r, &d), -ENOENT);
	assert_string_equal(d.what, "cannot open absent: No such file or directory");
	diag_release(&d);
	assert_int_equal(perfdata_open(".", &r, &d2), -EISDIR);
	assert_non_null(strstr(d2.what, "a directory"));
	diag_release(&d2);
}

/* Compresses all of `data` into records of `type` with at most `piece` bytes each. */
static void compress(const struct strbuf *data, uint32_t type, size_t piece, struct strbuf *out)
{
	size_t bound = ZSTD_compressBound(data->n), n, padded;
	char *z = malloc(bound);

	n = ZSTD_compress(z, bound, data->v, data->n, 3);
	assert_false(ZSTD_isError(n));
	for (size_t at = 0; at < n; at += piece) {
		size_t now = MIN(piece, n - at);
		struct perf_event_header h = {.type = type};

		if (type == RECORD_COMPRESSED)
			h.size = (uint16_t)(sizeof(h) + now); /* else 0: the next word counts */
		strbuf_add(out, (char *)&h, sizeof(h));
		if (type == RECORD_COMPRESSED2)
			image_u64(out, now);
		strbuf_add(out, z + at, now);
		padded = type == RECORD_COMPRESSED2 ? ALIGN_UP(now, (size_t)8) : now;
		for (size_t k = now; k < padded; k++)
			strbuf_putc(out, '\0');
	}
	free(z);
}

/* One zstd stream over many records, whose events are cut anywhere. */
static void test_compressed(void **state UNUSED)
{
	static const uint32_t types[] = {RECORD_COMPRESSED, RECORD_COMPRESSED2};
	CLEANUP(strbuf_release) struct strbuf data = {0};

	sixty_samples(&data);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		for (size_t piece = 1; piece < 300; piece += 41) {
			CLEANUP(strbuf_release) struct strbuf packed = {0}, image = {0};
			struct perfdata_reader *r;
			struct tally t;

			compress(&data, types[i], piece, &packed);
			image_sample(&packed, 0, 0); /* not aligned after COMPRESSED */
			image_file(&image, 2, sizeof(struct perf_event_attr), &packed);
			r = open_image(&image);
			t = read_all(r);
			assert_null(perfdata_info(r)->damage);
			assert_int_equal(t.samples, 61);
			assert_int_equal(t.undecoded, 0);
			assert_int_equal(t.rounds, 3);
			perfdata_reader_free(r);
		}
}

static void test_compressed_damage(void **state UNUSED)
{
	CLEANUP(strbuf_release)
	struct strbuf data = {0}, packed = {0}, image = {0}, nested = {0}, deep = {0};
	struct perfdata_reader *r;
	struct tally t;

	sixty_samples(&data);
	data.n -= 20; /* ends inside a sample */
	compress(&data, RECORD_COMPRESSED, 64, &packed);
	image_file(&image, 2, sizeof(struct perf_event_attr), &packed);
	r = open_image(&image);
	t = read_all(r);
	assert_int_equal(t.samples, 59);
	assert_string_equal(perfdata_info(r)->damage,
			    "the compressed data ends inside a record: 61 records read");
	perfdata_reader_free(r);

	/* Compressed in compressed could go on for ever. */
	compress(&packed, RECORD_COMPRESSED, 4096, &nested);
	image_file(&deep, 2, sizeof(struct perf_event_attr), &nested);
	r = open_image(&deep);
	t = read_all(r);
	assert_int_equal(t.records, 0);
	assert_non_null(strstr(perfdata_info(r)->damage, "damaged at byte "));
	perfdata_reader_free(r);
}

/* All that a stream may hold: payloads behind records, names, features, build-ids. */
static void make_stream(struct strbuf *image)
{
	static const uint8_t id[24] = {1, 2, 3, [20] = 16};
	struct record_builder b;

	image_stream_head(image, 2);
	record_begin(&b, RECORD_EVENT_UPDATE, 0);
	record_u64(&b, 2);
	record_u64(&b, IMAGE_ID + 1);
	record_string(&b, "page-faults:u");
	image_record(image, &b);
	record_begin(&b, RECORD_HEADER_FEATURE, 0);
	record_u64(&b, 3);
	record_u32(&b, 8);
	record_string(&b, "host");
	image_record(image, &b);
	record_begin(&b, RECORD_HEADER_TRACING_DATA, 0);
	record_u32(&b, 70000);
	image_record(image, &b);
	for (int i = 0; i < 70000; i++)
		strbuf_putc(image, (char)i);
	record_begin(&b, RECORD_HEADER_BUILD_ID, PERF_RECORD_MISC_KERNEL | 1U << 15);
	record_u32(&b, UINT32_MAX);
	record_put(&b, id, sizeof(id));
	record_string(&b, "[kernel.kallsyms]");
	image_record(image, &b);
	record_begin(&b, RECORD_AUXTRACE, 0);
	record_u64(&b, 300000);
	for (int i = 0; i < 4; i++)
		record_u64(&b, 0);
	image_record(image, &b);
	for (int i = 0; i < 300000; i++)
		strbuf_putc(image, (char)i);
	sixty_samples(image);
}

static void check_stream(struct perfdata_reader *r)
{
	struct tally t = read_all(r);
	const struct perfdata_info *info = perfdata_info(r);

	check_sixty(&t);
	assert_null(info->damage);
	assert_string_equal(perfdata_events(r)->events.v[1].name, "page-faults:u");
	assert_string_equal(info->hostname, "host");
	assert_int_equal(info->build_ids.n, 1);
	assert_string_equal(info->build_ids.v[0].path, "[kernel.kallsyms]");
	assert_int_equal(info->build_ids.v[0].size, 16);
	assert_true(info->build_ids.v[0].kernel);
}

/* A descriptor from which the image comes through a pipe. */
static int through_pipe(const struct strbuf *image, pid_t *ret_child)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	*ret_child = fork();
	if (!*ret_child) {
		size_t at = 0;

		close(fds[0]);
		while (at < image->n) {
			ssize_t n = write(fds[1], image->v + at, MIN(image->n - at, (size_t)4099));

			if (n <= 0)
				_exit(1);
			at += (size_t)n;
		}
		_exit(0);
	}
	close(fds[1]);
	return fds[0];
}

static void test_stream(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf image = {0}, data = {0}, file = {0};
	struct perfdata_reader *r = NULL;
	char head[40];
	pid_t child;
	struct tally t;
	int fd;

	make_stream(&image);
	r = open_image(&image);
	assert_false(perfdata_stable(r));
	check_stream(r);
	perfdata_reader_free(r);

	/* From a pipe, its first bytes already read. */
	fd = through_pipe(&image, &child);
	assert_int_equal(read(fd, head, sizeof(head)), sizeof(head));
	assert_int_equal(perfdata_open_fd(fd, head, sizeof(head), "stdin", &r, NULL), 0);
	check_stream(r);
	perfdata_reader_free(r);
	close(fd);
	waitpid(child, NULL, 0);

	/* An ordinary file through a pipe. */
	sixty_samples(&data);
	image_file(&file, 2, sizeof(struct perf_event_attr), &data);
	fd = through_pipe(&file, &child);
	assert_int_equal(perfdata_open_fd(fd, NULL, 0, "stdin", &r, NULL), 0);
	assert_true(perfdata_stable(r));
	t = read_all(r);
	check_sixty(&t);
	perfdata_reader_free(r);
	close(fd);
	waitpid(child, NULL, 0);

	image.n -= 10;
	r = open_image(&image);
	t = read_all(r);
	assert_int_equal(t.samples, 59);
	assert_non_null(strstr(perfdata_info(r)->damage, "the stream is cut at byte "));
	perfdata_reader_free(r);
}

/* With every second record at an odd address, records still arrive aligned, and last. */
static int keep_pointer(void *ctx, const struct perf_event_header *record, size_t n)
{
	ARRAY(const struct perf_event_header *) *kept = ctx;

	assert_int_equal((uintptr_t)record % 8, 0);
	assert_int_equal(record->size, n);
	return array_push(kept, record);
}

static void test_unaligned(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0}, image = {0};
	ARRAY(const struct perf_event_header *) kept = {0};
	struct perfdata_reader *r;
	struct record_builder b;

	for (uint64_t i = 0; i < 200; i++) {
		record_begin(&b, 84, 0);
		record_put(&b, "odd", 3);
		image_record(&data, &b);
		image_sample(&data, 0, i);
	}
	image_file(&image, 1, sizeof(struct perf_event_attr), &data);
	r = open_image(&image);
	assert_true(perfdata_stable(r));
	assert_int_equal(perfdata_read(r, keep_pointer, &kept, NULL), 0);
	assert_int_equal(kept.n, 400);
	for (uint64_t i = 0; i < 200; i++) {
		struct event e;

		assert_int_equal(decode_record(perfdata_events(r), kept.v[2 * i + 1],
					       kept.v[2 * i + 1]->size, &e),
				 0);
		assert_int_equal(e.sample.ip, 0x400000 + i);
	}
	array_release(&kept);
	perfdata_reader_free(r);
}

static int fail_third(void *ctx, const struct perf_event_header *record UNUSED, size_t n UNUSED)
{
	return ++*(int *)ctx == 3 ? -ECANCELED : 0;
}

static void test_receiver_fails(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0}, packed = {0}, image = {0};
	struct perfdata_reader *r;
	int seen = 0;

	sixty_samples(&data);
	compress(&data, RECORD_COMPRESSED, 100, &packed);
	image_file(&image, 2, sizeof(struct perf_event_attr), &packed);
	r = open_image(&image);
	assert_int_equal(perfdata_read(r, fail_third, &seen, NULL), -ECANCELED);
	assert_int_equal(seen, 3);
	assert_null(perfdata_info(r)->damage);
	perfdata_reader_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),          cmocka_unit_test(test_other_attr_sizes),
		cmocka_unit_test(test_unfinished),     cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_damage),         cmocka_unit_test(test_past_the_data),
		cmocka_unit_test(test_refusals),       cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_compressed),     cmocka_unit_test(test_compressed_damage),
		cmocka_unit_test(test_stream),         cmocka_unit_test(test_unaligned),
		cmocka_unit_test(test_receiver_fails),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
