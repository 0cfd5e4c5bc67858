/* SPDX-License-Identifier: BSD-2-Clause */
#include "perfdata_image.h"
#include "scratch.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

static void make_events(struct event_table *t, unsigned n)
{
	*t = (struct event_table){0};
	for (unsigned i = 0; i < n; i++) {
		struct perf_event_attr attr = image_attr(i);

		assert_int_equal(event_table_add(t, &attr, i ? "second:u" : "first"), 0);
		assert_int_equal(event_table_add_id(t, i, IMAGE_ID + i), 0);
	}
}

static struct perfdata_writer *create(const char *path, unsigned n_events, bool *replaced)
{
	struct perfdata_writer *w = NULL;
	struct event_table t;
	struct diag d = {0};

	make_events(&t, n_events);
	if (perfdata_create(path, &t, &w, replaced, &d))
		fail_msg("%s", d.what);
	event_table_release(&t); /* the writer keeps nothing of it */
	return w;
}

static void write_samples(struct perfdata_writer *w, uint64_t from, uint64_t to)
{
	CLEANUP(strbuf_release) struct strbuf data = {0};

	for (uint64_t i = from; i < to; i++)
		image_sample(&data, i % 2, i);
	assert_int_equal(perfdata_write(w, data.v, data.n, NULL), 0);
}

static struct perfdata_reader *reopen(const char *path, struct tally *t)
{
	struct perfdata_reader *r = NULL;
	struct diag d = {0};

	*t = (struct tally){0};
	if (perfdata_open(path, &r, &d) || tally_read(t, r, &d))
		fail_msg("%s", d.what);
	assert_int_equal(t->undecoded, 0);
	return r;
}

/* At any moment the file holds all rounds that have ended. */
static void test_rounds(void **state UNUSED)
{
	struct perfdata_writer *w = create("rounds", 2, NULL);
	struct perfdata_reader *r;
	struct tally t;

	r = reopen("rounds", &t);
	assert_int_equal(t.records, 0);
	assert_true(perfdata_info(r)->unfinished);
	perfdata_reader_free(r);
	for (uint64_t round = 1; round <= 3; round++) {
		write_samples(w, 0, 5000); /* more than the buffer */
		assert_int_equal(perfdata_round(w, NULL), 0);
		write_samples(w, 0, 3000); /* not yet in a round */
		r = reopen("rounds", &t);
		assert_int_equal(t.rounds, round);
		assert_int_equal(t.samples, 8000 * round - 3000);
		assert_int_equal(t.by_event[0], t.samples / 2);
		assert_true(perfdata_info(r)->unfinished);
		assert_null(perfdata_info(r)->damage);
		assert_string_equal(perfdata_events(r)->events.v[1].name, "page-faults");
		perfdata_reader_free(r);
	}
	perfdata_writer_free(w);
}

static void test_features(void **state UNUSED)
{
	struct perfdata_writer *w = create("features", 2, NULL);
	struct perfdata_build_id id = {.path = (char *)"/bin/x", .id = {1, 2}, .size = 20};
	size_t names_bytes = 70U << 20;
	uint8_t *names = malloc(names_bytes);
	struct perfdata_info info = {.hostname = (char *)"h",
				     .command = (char *)"inspect record -- a",
				     .cpus_online = 4,
				     .last_sample_ns = 9,
				     .names = names,
				     .names_bytes = names_bytes,
				     .notes = (char *)"a=1\nb=2\n"};
	const struct perfdata_info *got;
	struct perfdata_reader *r;
	struct stat st;
	struct tally t;

	assert_non_null(names);
	for (size_t i = 0; i < names_bytes; i++)
		names[i] = (uint8_t)(i * 2654435761U >> 24);
	info.build_ids.v = &id;
	info.build_ids.n = 1;
	write_samples(w, 0, 100);
	assert_int_equal(perfdata_finish(w, &info, NULL), 0);
	assert_int_equal(stat("features", &st), 0);
	assert_int_equal(perfdata_bytes_written(w), st.st_size);
	assert_int_equal(st.st_mode & 07777, 0600);
	perfdata_writer_free(w);

	r = reopen("features", &t);
	got = perfdata_info(r);
	assert_int_equal(t.samples, 100);
	assert_false(got->unfinished);
	assert_null(got->damage);
	assert_string_equal(got->hostname, "h");
	assert_string_equal(got->command, "inspect record -- a");
	assert_int_equal(got->cpus_online, 4);
	assert_int_equal(got->last_sample_ns, 9);
	assert_int_equal(got->names_bytes, names_bytes);
	assert_memory_equal(got->names, names, names_bytes);
	assert_string_equal(got->notes, "a=1\nb=2\n");
	assert_null(got->arch);
	assert_int_equal(got->build_ids.n, 1);
	assert_string_equal(got->build_ids.v[0].path, "/bin/x");
	assert_memory_equal(got->build_ids.v[0].id, id.id, 20);
	assert_string_equal(perfdata_events(r)->events.v[0].name, "first");
	assert_string_equal(perfdata_events(r)->events.v[1].name, "second:u");
	perfdata_reader_free(r);
	free(names);

	/* Without its end the samples are still there, and what is missing is said. */
	assert_int_equal(truncate("features", st.st_size - 100), 0);
	r = reopen("features", &t);
	assert_int_equal(t.samples, 100);
	assert_non_null(strstr(perfdata_info(r)->damage, "cut in feature 240 (stored names)"));
	assert_string_equal(perfdata_info(r)->hostname, "h");
	perfdata_reader_free(r);
}

/* An end without a single record is an end. */
static void test_empty(void **state UNUSED)
{
	struct perfdata_writer *w = create("empty", 1, NULL);
	struct perfdata_info info = {.hostname = (char *)"h"};
	struct perfdata_reader *r;
	struct tally t;

	assert_int_equal(perfdata_finish(w, &info, NULL), 0);
	perfdata_writer_free(w);
	r = reopen("empty", &t);
	assert_int_equal(t.records, 0);
	assert_false(perfdata_info(r)->unfinished);
	assert_null(perfdata_info(r)->damage);
	assert_string_equal(perfdata_info(r)->hostname, "h");
	perfdata_reader_free(r);
}

static void expect_no_file(const char *path, int err, const char *what)
{
	struct perfdata_writer *w = NULL;
	struct event_table t;
	struct diag d = {0};

	make_events(&t, 1);
	assert_int_equal(perfdata_create(path, &t, &w, NULL, &d), err);
	assert_null(w);
	assert_string_equal(d.what, what);
	diag_release(&d);
	event_table_release(&t);
}

static void test_places(void **state UNUSED)
{
	struct perfdata_writer *w;
	bool replaced = false;
	struct stat st;
	char *text;

	w = create("place", 1, &replaced);
	perfdata_writer_free(w);
	assert_false(replaced);
	write_text("place", "the old one");
	w = create("place", 1, &replaced);
	perfdata_writer_free(w);
	assert_true(replaced);
	text = shell("cat place.old");
	assert_string_equal(text, "the old one");
	free(text);

	write_text("precious", "untouched");
	assert_int_equal(symlink("precious", "link"), 0);
	assert_int_equal(mkdir("folder", 0755), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	expect_no_file("link", -EEXIST,
		       "cannot create link: there is a symbolic link of that name");
	expect_no_file("folder", -EISDIR,
		       "cannot create folder: there is a directory of that name");
	expect_no_file("fifo", -EEXIST, "cannot create fifo: there is a special file of that name");
	expect_no_file("no/where", -ENOENT, "cannot create no/where: No such file or directory");
	text = shell("cat precious");
	assert_string_equal(text, "untouched");
	free(text);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static size_t records_within(const struct strbuf *records, size_t room)
{
	struct perf_event_header h;
	size_t n = 0;

	for (size_t at = 0;; at += h.size, n++) {
		memcpy(&h, records->v + at, sizeof(h));
		if (at + h.size > room)
			return n;
	}
}

/* No room left: one line, and every whole record that got through can be read. */
static void test_no_room(void **state UNUSED)
{
	struct rlimit limit = {.rlim_cur = 400000, .rlim_max = RLIM_INFINITY}, before;
	struct perfdata_writer *w = create("full", 2, NULL);
	struct perfdata_info info = {.hostname = (char *)"h"};
	CLEANUP(strbuf_release) struct strbuf data = {0};
	struct perfdata_reader *r;
	struct diag d = {0}, later = {0};
	struct tally t;
	struct stat st;

	write_samples(w, 0, 1000);
	assert_int_equal(perfdata_round(w, NULL), 0);
	assert_int_equal(stat("full", &st), 0);
	for (uint64_t i = 0; i < 10000; i++)
		image_sample(&data, 0, i);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(perfdata_write(w, data.v, data.n, &d), -EFBIG);
	assert_string_equal(d.what, "cannot write full (400000 bytes written): File too large");
	assert_int_equal(perfdata_round(w, &later), -EFBIG);
	assert_int_equal(perfdata_finish(w, &info, &later), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	perfdata_writer_free(w);
	diag_release(&d);
	diag_release(&later);

	r = reopen("full", &t);
	assert_int_equal(t.samples, 1000 + records_within(&data, 400000 - (size_t)st.st_size));
	assert_true(perfdata_info(r)->unfinished);
	assert_null(perfdata_info(r)->damage);
	perfdata_reader_free(r);
}

/* A stream whose reader goes away. */
static void test_stream_breaks(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf data = {0};
	struct perfdata_writer *w;
	struct diag d = {0};
	int fds[2], out, err;

	assert_int_equal(pipe(fds), 0);
	fflush(stdout);
	out = dup(STDOUT_FILENO);
	dup2(fds[1], STDOUT_FILENO);
	signal(SIGPIPE, SIG_IGN);
	w = create("-", 2, NULL);
	close(fds[0]);
	for (uint64_t i = 0; i < 10; i++)
		image_sample(&data, 0, i);
	err = perfdata_write(w, data.v, data.n, &d);
	if (!err)
		err = perfdata_round(w, &d);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(fds[1]);
	assert_int_equal(err, -EPIPE);
	assert_non_null(strstr(d.what, "cannot write stdout ("));
	assert_non_null(strstr(d.what, " bytes written): Broken pipe"));
	perfdata_writer_free(w);
	diag_release(&d);
}

/* More ids than a record of a stream can name. */
static void test_many_ids(void **state UNUSED)
{
	struct perfdata_writer *w = NULL;
	struct perfdata_info info = {0};
	struct perfdata_reader *r;
	struct event_table t;
	struct diag d = {0};
	struct tally tally;
	int out, err;

	make_events(&t, 1);
	for (uint64_t id = 1000; id < 21000; id++)
		assert_int_equal(event_table_add_id(&t, 0, id), 0);
	assert_int_equal(perfdata_create("many", &t, &w, NULL, &d), 0);
	write_samples(w, 0, 1);
	assert_int_equal(perfdata_finish(w, &info, &d), 0);
	perfdata_writer_free(w);
	r = reopen("many", &tally);
	assert_int_equal(perfdata_events(r)->events.v[0].ids.n, 20001);
	assert_string_equal(perfdata_events(r)->events.v[0].name, "first");
	perfdata_reader_free(r);

	fflush(stdout);
	out = dup(STDOUT_FILENO);
	assert_int_equal(dup2(open("many-stream", O_WRONLY | O_CREAT, 0600), STDOUT_FILENO),
			 STDOUT_FILENO);
	err = perfdata_create("-", &t, &w, NULL, &d);
	if (!err) {
		write_samples(w, 0, 1);
		err = perfdata_finish(w, &info, &d);
		perfdata_writer_free(w);
	}
	assert_int_equal(event_table_add(&t, &t.events.v[0].attr, "other"), 0);
	w = NULL;
	if (!err)
		err = perfdata_create("-", &t, &w, NULL, &d) == -E2BIG ? 0 : -EINVAL;
	dup2(out, STDOUT_FILENO);
	close(out);
	assert_int_equal(err, 0);
	assert_null(w);
	assert_non_null(strstr(d.what, "'first' has 20001 parts (CPUs times threads)"));
	r = reopen("many-stream", &tally);
	assert_int_equal(tally.samples, 1);
	perfdata_reader_free(r);
	diag_release(&d);
	event_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds),   cmocka_unit_test(test_features),
		cmocka_unit_test(test_empty),    cmocka_unit_test(test_places),
		cmocka_unit_test(test_no_room),  cmocka_unit_test(test_stream_breaks),
		cmocka_unit_test(test_many_ids),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
