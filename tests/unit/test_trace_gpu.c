/* SPDX-License-Identifier: BSD-2-Clause */
/* What trace --gpu makes of tables and events that are made up: each rule on both sides of its
 * limit, and what is left of mappings. */
#include "../../src/cmd/trace_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SECONDS = 20, BUILD_VERSION = 0x101, MEMORY_VIRTUAL = 0x50a0 };

/* --- rules ------------------------------------------------------------------------------------ */

static void add_ioctls(struct gpu_table *t, uint32_t number, uint32_t selector, uint64_t calls,
		       uint32_t seconds, bool starting)
{
	struct gpu_count row = {.key = {.kind = GPU_IOCTL,
					.class = GPU_CLASS_RM,
					.number = number,
					.selector = selector,
					.flags = GPU_HAS_STATUS | GPU_HAS_SELECTOR,
					.comm = "server"},
				.calls = calls,
				.seconds = seconds,
				.starting = starting,
				.h = {.n = calls, .sum = calls * 10000000}};

	assert_int_equal(array_push(&t->rows, row), 0);
}

/* Whether a rule speaks of the table, which is released. */
static bool speaks(struct gpu_table *t, const char *rule)
{
	const struct trace_values v = {.gpu = true};
	struct gpu_run run = {.v = &v, .tracing.table = *t};
	CLEANUP(result_release) struct result r;
	bool found = false;

	result_init(&r, "test");
	run.tracing.table.elapsed_ns = SECONDS * NSEC_PER_SEC;
	assert_int_equal(gpu_version_parse("550.54.14", &run.choice.version), 0);
	assert_int_equal(gpu_findings(&run, &r), 0);
	for (size_t i = 0; i < r.sections.n; i++) {
		const struct section *s = &r.sections.v[i];

		if (!str_eq(s->key, "findings"))
			continue;
		for (size_t k = 0; k < s->cells.n; k++)
			found |= s->cells.v[k].type == CELL_TEXT && s->cells.v[k].text &&
				 str_eq(s->cells.v[k].text, rule);
	}
	gpu_table_release(t);
	return found;
}

static void test_pollers(void **state UNUSED)
{
	static const struct {
		uint64_t calls;
		uint32_t seconds;
		bool starting, want;
	} cases[] = {
		{500, SECONDS, false, true},
		{500, SECONDS / 2, false, true},
		{500, SECONDS / 2 - 1, false, false}, /* once, and no more */
		{500, 9, true, false},                /* a start, however long */
		{500, SECONDS, true, true},           /* programs that start all the time */
		{19, SECONDS, false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_table t = {0};

		add_ioctls(&t, GPU_RM_CONTROL, BUILD_VERSION, cases[i].calls, cases[i].seconds,
			   cases[i].starting);
		assert_int_equal(speaks(&t, "gpu-pollers"), cases[i].want);
	}
}

static void test_memory(void **state UNUSED)
{
	static const struct {
		uint64_t takes, gives;
		uint32_t seconds;
		bool starting, want;
	} cases[] = {
		{300, 300, SECONDS, false, true},  {300, 300, 2, false, false},
		{300, 300, SECONDS, true, false},  {9000, 19, SECONDS, false, false},
		{300, 9000, SECONDS, false, true}, {150, 150, SECONDS, false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_table t = {0};

		add_ioctls(&t, GPU_RM_ALLOC, MEMORY_VIRTUAL, cases[i].takes, cases[i].seconds,
			   cases[i].starting);
		add_ioctls(&t, GPU_RM_FREE, 0, cases[i].gives, cases[i].seconds, cases[i].starting);
		assert_int_equal(speaks(&t, "gpu-memory-calls"), cases[i].want);
	}
}

static void test_failures(void **state UNUSED)
{
	static const struct {
		uint64_t calls;
		bool starting, want;
	} cases[] = {
		{300, false, true}, {200, false, false}, {499, true, false}, {500, true, true}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_table t = {0};

		add_ioctls(&t, GPU_RM_CONTROL, BUILD_VERSION, cases[i].calls, 1, cases[i].starting);
		t.rows.v[0].key.status = 0x51;
		assert_int_equal(speaks(&t, "gpu-failing-calls"), cases[i].want);
	}
}

static void test_waiters(void **state UNUSED)
{
	static const struct {
		uint64_t ended, seconds, others;
		bool want;
	} cases[] = {
		{100, 11, 0, true},  {100, 11, 11, true}, {100, 11, 12, false}, /* an event loop */
		{100, 10, 0, false}, {4, 19, 0, false},   {0, 0, 1000, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct gpu_waiter w = {.ended = cases[i].ended,
					     .ended_ns = cases[i].seconds * NSEC_PER_SEC,
					     .others = cases[i].others,
					     .comm = "server"};
		struct gpu_table t = {0};

		/* Four threads of less than half of their time are not one of more. */
		for (int k = 0; k < 4; k++)
			assert_int_equal(array_push(&t.waiters, w), 0);
		assert_int_equal(speaks(&t, "gpu-sync"), cases[i].want);
	}
}

static void test_queues(void **state UNUSED)
{
	/* One alone takes 2 ms. */
	static const struct {
		uint64_t crowded, crowded_ms, from_end_ms, early;
		bool want;
	} cases[] = {
		{100, 800, 200, 0, true},   /* four, one after the other */
		{100, 800, 200, 26, false}, /* … but some end together */
		{100, 800, 400, 0, false},  /* longer, side by side */
		{100, 350, 200, 0, false},  {50, 800, 100, 0, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct gpu_queued q = {
			.key = {GPU_CLASS_RM, GPU_RM_CONTROL, BUILD_VERSION},
			.v = {.alone = 100,
			      .alone_ns = 200 * NSEC_PER_MSEC,
			      .crowded = cases[i].crowded,
			      .crowded_ns = cases[i].crowded_ms * NSEC_PER_MSEC,
			      .judged = cases[i].crowded,
			      .judged_ns = cases[i].from_end_ms * NSEC_PER_MSEC,
			      .early = cases[i].early}};
		struct gpu_table t = {0};

		add_ioctls(&t, GPU_RM_CONTROL, BUILD_VERSION, 200, 1, true);
		assert_int_equal(array_push(&t.queues, q), 0);
		assert_int_equal(speaks(&t, "gpu-driver-lock"), cases[i].want);
	}
}

/* --- objects ---------------------------------------------------------------------------------- */

static uint64_t now_ns;

static void happens(struct gpu_objects *o, struct gpu_event e)
{
	e.key.pid = 1;
	e.start_ns = ++now_ns;
	assert_int_equal(gpu_objects_event(o, &e), 0);
}

static void maps(struct gpu_objects *o, enum gpu_kind kind, uint64_t at, uint64_t n_bytes)
{
	happens(o, (struct gpu_event){.key.kind = (uint8_t)kind,
				      .arg = at,
				      .length_bytes = n_bytes,
				      .range_bytes = n_bytes});
}

static void moves(struct gpu_objects *o, uint64_t from, uint64_t n_bytes, uint64_t to,
		  uint64_t new_bytes, uint32_t flags)
{
	happens(o, (struct gpu_event){.key.kind = GPU_MREMAP,
				      .arg = from,
				      .range_bytes = n_bytes,
				      .result = (int64_t)to,
				      .length_bytes = new_bytes,
				      .remap_flags = flags});
}

static int add_up(void *ctx, const struct gpu_object *one)
{
	uint64_t *sum = ctx;

	sum[0]++;
	sum[1] += one->length_bytes;
	return 0;
}

static void left(struct gpu_objects *o, uint64_t objects, uint64_t bytes)
{
	uint64_t sum[2] = {0};

	assert_int_equal(gpu_objects_each(o, add_up, sum), 0);
	assert_int_equal(sum[0], objects);
	assert_int_equal(sum[1], bytes);
	gpu_objects_free(o);
}

static struct gpu_objects *objects(void)
{
	struct gpu_objects *o = NULL;

	assert_int_equal(gpu_objects_new(&o), 0);
	return o;
}

static void test_mappings(void **state UNUSED)
{
	struct gpu_objects *o = objects();

	/* What is unmapped twice is gone once. */
	maps(o, GPU_MMAP, 1000, 100);
	maps(o, GPU_MUNMAP, 1000, 50);
	maps(o, GPU_MUNMAP, 1025, 50);
	maps(o, GPU_MUNMAP, 1090, 500);
	maps(o, GPU_MUNMAP, 1090, 500);
	left(o, 1, 15);

	o = objects();
	maps(o, GPU_MMAP, 1000, 100);
	maps(o, GPU_MAP_OVER, 1020, 20);
	maps(o, GPU_MMAP, 1080, 100);
	left(o, 2, 160);

	/* A piece in the middle goes, and keeps to the mapping that it was of. */
	o = objects();
	maps(o, GPU_MMAP, 1000, 100);
	moves(o, 1040, 20, 5000, 30, 1);
	maps(o, GPU_MUNMAP, 1000, 100);
	left(o, 1, 30);

	/* Nothing is unmapped there; it only shrinks; it goes to where another was. */
	o = objects();
	maps(o, GPU_MMAP, 1000, 100);
	moves(o, 1000, 100, 3000, 100, 1 | 4);
	left(o, 1, 200);
	o = objects();
	maps(o, GPU_MMAP, 1000, 100);
	moves(o, 1000, 100, 1000, 40, 0);
	left(o, 1, 40);
	o = objects();
	maps(o, GPU_MMAP, 1000, 100);
	maps(o, GPU_MMAP, 2000, 100);
	moves(o, 1000, 100, 2000, 100, 3);
	left(o, 1, 100);
}

/* Several at once, with what lies between them, as since Linux 6.17. */
static void test_moves(void **state UNUSED)
{
	struct gpu_objects *o = objects();

	maps(o, GPU_MMAP, 1010, 10);
	maps(o, GPU_MMAP, 1050, 100);
	moves(o, 1000, 100, 5000, 100, 3);
	maps(o, GPU_MUNMAP, 1000, 100); /* nothing is left there */
	maps(o, GPU_MUNMAP, 5010, 5);
	maps(o, GPU_MUNMAP, 5090, 100);
	left(o, 2, 5 + 40 + 50);
	/* Once more, of no length. */
	o = objects();
	maps(o, GPU_MMAP, 1000, 100);
	moves(o, 1000, 0, 5000, 100, 1);
	left(o, 1, 200);
}

/* The end of a munmap may be told after that of the mmap that took its place. */
static void test_order(void **state UNUSED)
{
	struct gpu_objects *o = objects();
	struct gpu_event late = {.key = {.kind = GPU_MUNMAP, .pid = 1},
				 .arg = 1000,
				 .range_bytes = 100,
				 .start_ns = ++now_ns};

	maps(o, GPU_MMAP, 1000, 100);
	assert_int_equal(gpu_objects_event(o, &late), 0);
	left(o, 1, 100);
}

static void uvm(struct gpu_objects *o, uint32_t number, uint64_t base, uint64_t n_bytes)
{
	struct gpu_event e = {.key = {.kind = GPU_IOCTL,
				      .class = GPU_CLASS_UVM,
				      .number = number,
				      .flags = GPU_HAS_STATUS},
			      .length_bytes = n_bytes,
			      .n_head = 16};

	memcpy(e.head, &base, sizeof(base));
	happens(o, e);
}

/* What is mapped into a range is a part of it, and goes with it. */
static void test_ranges(void **state UNUSED)
{
	struct gpu_objects *o = objects();

	uvm(o, GPU_UVM_CREATE_EXTERNAL_RANGE, 4096, 65536);
	uvm(o, GPU_UVM_MAP_EXTERNAL, 8192, 4096);
	left(o, 1, 65536);
	o = objects();
	uvm(o, GPU_UVM_CREATE_EXTERNAL_RANGE, 4096, 65536);
	uvm(o, GPU_UVM_MAP_EXTERNAL, 8192, 4096);
	uvm(o, GPU_UVM_MAP_EXTERNAL, 1 << 20, 4096);
	uvm(o, GPU_UVM_FREE, 4096, 0);
	left(o, 1, 4096);
}

static void handle(struct gpu_objects *o, uint32_t number, uint32_t client, uint32_t parent,
		   uint32_t object)
{
	struct gpu_event e = {.key = {.kind = GPU_IOCTL,
				      .class = GPU_CLASS_RM,
				      .number = number,
				      .flags = GPU_HAS_STATUS},
			      .n_head = 48};
	const uint32_t fields[] = {client, parent, object};

	memcpy(e.head, fields, sizeof(fields));
	happens(o, e);
}

static void test_handles(void **state UNUSED)
{
	struct gpu_objects *o = objects();

	/* As many as have ever been are no limit, nor slow: what is gone goes. */
	for (uint32_t i = 0; i < 1100000; i++) {
		handle(o, GPU_RM_ALLOC, 0xc1, 0xd0, 0x100 + i);
		if (i >= 50000)
			handle(o, GPU_RM_FREE, 0xc1, 0xd0, 0x100 + i - 50000);
	}
	assert_int_equal(gpu_objects_made(o), 1100000);
	assert_int_equal(gpu_objects_dropped(o), 0);
	left(o, 50000, 0);

	/* A device takes what is below it along, in whichever process that is. A name that comes
	 * again has gone meanwhile. */
	o = objects();
	handle(o, GPU_RM_ALLOC, 0xc1, 0xc1, 0xd0);
	handle(o, GPU_RM_ALLOC, 0xc1, 0xd0, 0x1);
	handle(o, GPU_RM_ALLOC, 0xc1, 0x1, 0x2);
	handle(o, GPU_RM_ALLOC, 0xc1, 0xc1, 0xd1);
	handle(o, GPU_RM_ALLOC, 0xc1, 0xd1, 0x3);
	handle(o, GPU_RM_ALLOC, 0xc1, 0xd1, 0x3);
	handle(o, GPU_RM_FREE, 0xc1, 0xc1, 0xd0);
	assert_int_equal(gpu_objects_made(o), 6);
	left(o, 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pollers), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_waiters), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_queues),  cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_order),   cmocka_unit_test(test_moves),
		cmocka_unit_test(test_ranges),  cmocka_unit_test(test_handles),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
