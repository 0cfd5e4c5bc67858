/* SPDX-License-Identifier: BSD-2-Clause */
/* The sections after the records, and what is said of a file that is cut among them. */
#include "perfdata_image.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

#define FEATURES_AT 72
#define SAMPLES 5

/* Features that are read here, and some of perf's that are not. */
static const struct {
	unsigned feature;
	const char *text; /* NULL: an empty section */
	const char *name;
} sections[] = {
	{3, "\10\0\0\0machine", "host name"}, {13, "CPU topology", "not used here"},
	{22, "memory", "not used here"},      {26, NULL, "not used here"},
	{31, "PMU", "not used here"},         {241, "duration_ns=5\n", "notes"},
};

static size_t section_bytes(size_t i)
{
	/* A string has its length in front, and its end with it. */
	return sections[i].feature == 3 ? 12 : sections[i].text ? strlen(sections[i].text) : 0;
}

/* Five samples and the sections; *ret_table is where their list begins. */
static void make_image(struct strbuf *image, size_t *ret_table)
{
	CLEANUP(strbuf_release) struct strbuf data = {0};
	uint64_t bits[4] = {0}, off;

	for (uint64_t i = 0; i < SAMPLES; i++)
		image_sample(&data, 0, i);
	image_file(image, 1, sizeof(struct perf_event_attr), &data);
	*ret_table = image->n;
	off = image->n + 16 * ARRAY_SIZE(sections);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		bits[sections[i].feature / 64] |= 1ULL << sections[i].feature % 64;
		image_u64(image, off);
		image_u64(image, section_bytes(i));
		off += section_bytes(i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		strbuf_add(image, sections[i].text ? sections[i].text : "", section_bytes(i));
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		image_set_u64(image, FEATURES_AT + 8 * i, bits[i]);
}

/* All samples, and this line on the damage; NULL none. */
static void expect_damage(const struct strbuf *image, const char *damage)
{
	struct perfdata_reader *r = NULL;
	struct tally t = {0};
	struct diag d = {0};

	write_file("image", image->v, image->n);
	if (perfdata_open("image", &r, &d) || tally_read(&t, r, &d))
		fail_msg("%s", d.what);
	assert_int_equal(t.samples, SAMPLES);
	if (damage)
		assert_string_equal(perfdata_info(r)->damage, damage);
	else
		assert_null(perfdata_info(r)->damage);
	perfdata_reader_free(r);
}

static void test_whole(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf image = {0};
	struct perfdata_reader *r = NULL;
	size_t table;

	make_image(&image, &table);
	expect_damage(&image, NULL);
	assert_int_equal(perfdata_open("image", &r, NULL), 0);
	assert_string_equal(perfdata_info(r)->hostname, "machine");
	assert_string_equal(perfdata_info(r)->notes, "duration_ns=5\n");
	perfdata_reader_free(r);
}

/* Every length is told from the whole file, also where nothing is lost that is used. */
static void test_cut(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf image = {0};
	size_t table, whole, end, in = 0;
	char damage[100];

	make_image(&image, &table);
	whole = image.n;
	end = table + 16 * ARRAY_SIZE(sections);
	for (size_t n = table; n < end; n++) {
		image.n = n;
		snprintf(damage, sizeof(damage), "cut at byte %zu, inside the list of features", n);
		expect_damage(&image, damage);
	}
	for (size_t n = end; n < whole; n++) {
		while (n >= end + section_bytes(in))
			end += section_bytes(in++);
		image.n = n;
		snprintf(damage, sizeof(damage),
			 "cut in feature %u (%s): the file ends at byte %zu", sections[in].feature,
			 sections[in].name, n);
		expect_damage(&image, damage);
	}
	assert_int_equal(in, ARRAY_SIZE(sections) - 1);
}

/* A section whose place makes no sense; one whose text does not. */
static void test_damaged(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf image = {0}, text = {0};
	size_t table, at;
	char damage[100];

	make_image(&image, &table);
	at = table + 16 * ARRAY_SIZE(sections);
	strbuf_add(&text, image.v, image.n);
	text.v[at + 1] = 1; /* the string is longer than its section */
	snprintf(damage, sizeof(damage), "damaged at byte %zu, in feature 3 (host name)", at);
	expect_damage(&text, damage);

	image_set_u64(&image, table + 16, UINT64_MAX - 3);
	snprintf(damage, sizeof(damage),
		 "cut in feature 13 (not used here): the file ends at byte %zu", image.n);
	expect_damage(&image, damage);
}

/* Makes the attr at this byte the leader of a group, or a member. */
static void make_group(struct strbuf *image, size_t at, bool leader)
{
	struct perf_event_attr attr;

	memcpy(&attr, image->v + at, sizeof(attr));
	attr.sample_type |= PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	attr.sample_period = leader ? 1000 : 0;
	memcpy(image->v + at, &attr, sizeof(attr));
}

static void expect_unread(const struct strbuf *image, const char *unread)
{
	struct perfdata_reader *r = NULL;
	struct tally t = {0};

	write_file("image", image->v, image->n);
	assert_int_equal(perfdata_open("image", &r, NULL), 0);
	assert_int_equal(tally_read(&t, r, NULL), 0);
	assert_null(perfdata_info(r)->damage);
	if (unread)
		assert_string_equal(perfdata_info(r)->unread, unread);
	else
		assert_null(perfdata_info(r)->unread);
	perfdata_reader_free(r);
}

/* What a leader's samples hold of its members is said to be left out, of a file and of a stream. */
static void test_group_reads(void **state UNUSED)
{
	static const char *const lines[] = {NULL, "group reads (:S) of 1 event are not expanded",
					    "group reads (:S) of 2 events are not expanded"};
	size_t attr_bytes = sizeof(struct perf_event_attr);

	for (unsigned members = 0; members < ARRAY_SIZE(lines); members++) {
		CLEANUP(strbuf_release) struct strbuf data = {0}, file = {0}, stream = {0};

		image_file(&file, 3, attr_bytes, &data);
		image_stream_head(&stream, 3);
		for (unsigned i = 0; i <= members; i++) {
			make_group(&file, 104 + i * (attr_bytes + 16), i == 0);
			make_group(&stream, 16 + i * (8 + attr_bytes + 8) + 8, i == 0);
		}
		expect_unread(&file, lines[members]);
		expect_unread(&stream, lines[members]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_group_reads),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
