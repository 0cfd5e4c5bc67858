/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inspect/jitdump.h>
#include <sys/mman.h>

#include "../../src/capture/jit_timeline.h"

struct dump {
	uint8_t v[4096];
	size_t n;
};

static void put(struct dump *d, const void *v, size_t n)
{
	memcpy(d->v + d->n, v, n);
	d->n += n;
}

static void put_header(struct dump *d, uint32_t magic, uint32_t version, uint64_t flags)
{
	uint32_t words[] = {magic, version, 40, 62, 0, 1};
	uint64_t rest[] = {0, flags};

	put(d, words, sizeof(words));
	put(d, rest, sizeof(rest));
}

static void put_load(struct dump *d, uint64_t at_ns, uint64_t va, const char *name, uint64_t index)
{
	uint32_t head[] = {0, (uint32_t)(56 + strlen(name) + 1 + 4)};
	uint32_t who[] = {1, 1};
	uint64_t body[] = {va, va, 4, index};

	put(d, head, sizeof(head));
	put(d, &at_ns, sizeof(at_ns));
	put(d, who, sizeof(who));
	put(d, body, sizeof(body));
	put(d, name, strlen(name) + 1);
	put(d, "code", 4);
}

static void put_move(struct dump *d, uint64_t at_ns, uint64_t from, uint64_t to, uint64_t index)
{
	uint32_t head[] = {1, 64};
	uint32_t who[] = {1, 1};
	uint64_t body[] = {to, from, to, 4, index};

	put(d, head, sizeof(head));
	put(d, &at_ns, sizeof(at_ns));
	put(d, who, sizeof(who));
	put(d, body, sizeof(body));
}

/* The file; closed by the caller. */
static int as_file(const struct dump *d, size_t n)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, d->v, n, 0), n);
	return fd;
}

static void is_load(int fd, const struct jit_load *l, uint64_t va, uint64_t at_ns, const char *name)
{
	struct strbuf text = {0};

	assert_int_equal(l->start_va, va);
	assert_int_equal(l->end_va, va + 4);
	assert_int_equal(l->from_ns, at_ns);
	assert_int_equal(l->name_n, strlen(name));
	assert_int_equal(jitdump_name(fd, l, &text), 0);
	assert_string_equal(strbuf_str(&text), name);
	strbuf_release(&text);
}

static void make(struct dump *d)
{
	uint32_t debug_info[] = {2, 24, 0, 0, 1, 2};

	put_header(d, 0x4a695444, 1, 0);
	put_load(d, 10, 0x1000, "first", 1);
	put(d, debug_info, sizeof(debug_info));
	put_load(d, 20, 0x2000, "second", 2);
	put_move(d, 30, 0x1000, 0x3000, 1);
	put_move(d, 40, 0x9000, 0x4000, 1); /* of nothing that is known */
}

static void loads_and_moves(void **state)
{
	struct dump d = {0};
	jit_loads loads = {0};
	const char *problem = NULL;
	int fd;

	(void)state;
	make(&d);
	fd = as_file(&d, d.n);
	assert_int_equal(jitdump_read(fd, &loads, &problem), 0);
	assert_int_equal(loads.n, 4);
	is_load(fd, &loads.v[0], 0x1000, 10, "first");
	is_load(fd, &loads.v[1], 0x2000, 20, "second");
	is_load(fd, &loads.v[2], 0x1000, 30, "");
	is_load(fd, &loads.v[3], 0x3000, 30, "first");
	array_release(&loads);
	close(fd);
}

/* Cut anywhere: what is whole up to there. */
static void cut_anywhere(void **state)
{
	struct dump d = {0};

	(void)state;
	make(&d);
	for (size_t n = 0; n <= d.n; n++) {
		jit_loads loads = {0};
		const char *problem = NULL;
		int fd = as_file(&d, n), err = jitdump_read(fd, &loads, &problem);

		assert_int_equal(err, n < 40 ? -EBADMSG : 0);
		assert_int_equal(loads.n, n < 106 ? 0 : n < 197 ? 1 : n < 261 ? 2 : 4);
		array_release(&loads);
		close(fd);
	}
}

static void refused(void **state)
{
	static const struct {
		uint32_t magic, version;
		uint64_t flags;
		const char *problem;
	} headers[] = {
		{0x4454694a, 1, 0, "byte order"},
		{0x12345678, 1, 0, "no jitdump"},
		{0x4a695444, 2, 0, "newer version"},
		{0x4a695444, 1, 1, "not CLOCK_MONOTONIC"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		struct dump d = {0};
		jit_loads loads = {0};
		const char *problem = NULL;
		int fd;

		put_header(&d, headers[i].magic, headers[i].version, headers[i].flags);
		put_load(&d, 10, 0x1000, "first", 1);
		fd = as_file(&d, d.n);
		assert_int_equal(jitdump_read(fd, &loads, &problem), -EBADMSG);
		assert_non_null(strstr(problem, headers[i].problem));
		assert_int_equal(loads.n, 0);
		close(fd);
	}
}

static void markers(void **state)
{
	(void)state;
	assert_true(jitdump_is_marker("/tmp/jit-12.dump"));
	assert_true(jitdump_is_marker("/a b/.debug/jit/x/jit-1.dump"));
	assert_false(jitdump_is_marker("/tmp/jit-.dump"));
	assert_false(jitdump_is_marker("/tmp/jit-12.dumps"));
	assert_false(jitdump_is_marker("/tmp/jit-1x.dump"));
	assert_false(jitdump_is_marker("jit-12.dump"));
	assert_false(jitdump_is_marker(""));
}

/* Against painting every address anew for each place, in the order of time. */
static void timeline_equals_painting(void **state)
{
	enum { SPACE = 512, PLACES = 300, PIDS = 2 };
	static uint32_t paint[PIDS][SPACE];
	struct jit_timeline *t = NULL;
	uint32_t x = 11;
	struct jit_place places[PLACES];

	(void)state;
	assert_int_equal(jit_timeline_new(&t), 0);
	for (uint32_t i = 0; i < PLACES; i++) {
		x = x * 1664525 + 1013904223;
		places[i] = (struct jit_place){.start_va = (x >> 8) % SPACE,
					       .from_ns = (i / 2 + 1) * 10,
					       .pid = 1 + (x >> 30 & 1),
					       .source = i + 1};
		places[i].end_va = places[i].start_va + 1 + (x >> 20) % 64;
	}
	/* Added from the back but for pairs of one time, which count in their order. */
	for (uint32_t i = PLACES; i > 0; i -= 2) {
		assert_int_equal(jit_timeline_add(t, &places[i - 2]), 0);
		assert_int_equal(jit_timeline_add(t, &places[i - 1]), 0);
	}
	for (uint64_t va = 0; va < SPACE; va++)
		assert_int_equal(jit_timeline_ask(t, (va * 7) % SPACE), 0);
	assert_int_equal(jit_timeline_sort(t), 0);
	for (uint32_t i = 0; i < PLACES; i += 2) {
		for (uint32_t k = i; k < i + 2; k++)
			for (uint64_t va = places[k].start_va; va < places[k].end_va && va < SPACE;
			     va++)
				paint[places[k].pid - 1][va] = k + 1;
		for (uint32_t pid = 1; pid <= PIDS; pid++) {
			for (uint64_t va = 0; va < SPACE; va++) {
				uint64_t time_ns = places[i].from_ns + 5;
				const struct jit_place *p = jit_timeline_find(t, pid, va, time_ns);

				assert_int_equal(p ? p->source : 0, paint[pid - 1][va]);
			}
		}
	}
	jit_timeline_free(t);
}

static void timeline_ends(void **state)
{
	struct jit_place place = {
		.start_va = 0x10, .end_va = 0x20, .from_ns = 5, .until_ns = 9, .pid = 1};
	struct jit_timeline *t = NULL;

	(void)state;
	assert_int_equal(jit_timeline_new(&t), 0);
	assert_int_equal(jit_timeline_add(t, &place), 0);
	assert_int_equal(jit_timeline_ask(t, 0x10), 0);
	assert_int_equal(jit_timeline_ask(t, 0x1f), 0);
	assert_int_equal(jit_timeline_ask(t, 0x20), 0);
	assert_int_equal(jit_timeline_sort(t), 0);
	assert_null(jit_timeline_find(t, 1, 0x10, 4));
	assert_non_null(jit_timeline_find(t, 1, 0x10, 5));
	assert_non_null(jit_timeline_find(t, 1, 0x1f, 8));
	assert_null(jit_timeline_find(t, 1, 0x1f, 9));
	assert_null(jit_timeline_find(t, 1, 0x20, 6));
	assert_null(jit_timeline_find(t, 2, 0x10, 6));
	assert_null(jit_timeline_find(t, 1, 0x11, 6)); /* not asked for before */
	jit_timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_and_moves),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(refused),
		cmocka_unit_test(markers),
		cmocka_unit_test(timeline_equals_painting),
		cmocka_unit_test(timeline_ends),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
