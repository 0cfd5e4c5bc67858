/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the BPF sampler that can be tested without loading a program: what it sends becomes
 * a sample as perf writes it, and where rows and ranges are put. */
#include "../../src/probe/sampler.h"

#include "../../src/probe/unwind_process.h"

#include <bpf/bpf.h>
#include <inspect/clock.h>
#include <inspect/decode.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "skip.h"

/* --- records ---------------------------------------------------------------------------------- */

struct fixture {
	struct bpf_sampler s;
	struct sampler_record raw;
	uint64_t room[RECORD_WORDS];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CALLCHAIN,
		.sample_id_all = 1,
	};

	if (!f || event_table_add(&f->s.events, &attr, NULL) ||
	    event_table_add_id(&f->s.events, 0, 77))
		return -1;
	f->s.record = f->room;
	f->s.setup.with_chain = 1;
	f->raw = (struct sampler_record){
		.event_id = 77,
		.period = 1001001,
		.ip = 0xffffffff81000010,
		.pid = 12,
		.tid = 13,
		.n_kernel = 2,
		.n_user = 3,
		.stop = UNWIND_END,
		.guessed = 1,
		.chain = {0xffffffff81000010, 0xffffffff81000020, 0x1000, 0x2000, 0x3000},
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	event_table_release(&f->s.events);
	free(f);
	return 0;
}

static size_t convert(struct fixture *f, size_t size_bytes)
{
	/* At the alignment that the ring has it: 4 bytes behind a multiple of 8. */
	static uint8_t bytes[sizeof(struct sampler_record) + 4] __attribute__((aligned(8)));

	memcpy(bytes + 4, &f->raw, sizeof(f->raw));
	return probe_convert(&f->s, bytes + 4, size_bytes, 555, 3);
}

static void test_sample_as_perf_writes_it(void **state)
{
	struct fixture *f = *state;
	const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL,
				 0xffffffff81000010,
				 0xffffffff81000020,
				 (uint64_t)PERF_CONTEXT_USER,
				 0x1000,
				 0x2000,
				 0x3000};
	size_t n = convert(f, SAMPLER_HEAD_BYTES + 5 * 8);
	struct event e;

	assert_int_equal(n, 8 * (1 + 6 + 1 + 7));
	assert_int_equal(decode_record(&f->s.events, (void *)f->room, n, &e), 0);
	assert_int_equal(e.type, EVENT_SAMPLE);
	assert_int_equal(e.time_ns, 555);
	assert_int_equal(e.cpu, 3);
	assert_int_equal(e.sample.pid, 12);
	assert_int_equal(e.sample.tid, 13);
	assert_int_equal(e.sample.weight, 1001001);
	assert_int_equal(e.sample.cpumode, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(e.sample.stop, UNWIND_END);
	assert_true(e.sample.guessed);
	assert_int_equal(e.sample.n_chain, 7);
	assert_memory_equal(e.sample.chain, want, sizeof(want));
}

static void test_user_only_and_truncated(void **state)
{
	struct fixture *f = *state;
	struct event e;
	size_t n;

	f->raw.n_kernel = 0;
	f->raw.in_user = 1;
	f->raw.stop = UNWIND_NEW_MAPPING;
	n = convert(f, SAMPLER_HEAD_BYTES + 3 * 8 + 4); /* the kernel pads */
	assert_int_equal(decode_record(&f->s.events, (void *)f->room, n, &e), 0);
	assert_int_equal(e.sample.n_chain, 4);
	assert_int_equal(e.sample.chain[0], (uint64_t)PERF_CONTEXT_USER);
	assert_int_equal(e.sample.cpumode, PERF_RECORD_MISC_USER);
	assert_int_equal(e.sample.stop, UNWIND_NEW_MAPPING);
}

static void test_what_is_no_record(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(convert(f, SAMPLER_HEAD_BYTES - 1), 0);
	assert_int_equal(convert(f, SAMPLER_HEAD_BYTES + 5 * 8 - 1), 0);
	f->raw.n_user = UINT16_MAX;
	assert_int_equal(convert(f, sizeof(f->raw)), 0);
	f->raw.n_user = SAMPLER_USER_FRAMES;
	f->raw.n_kernel = SAMPLER_KERNEL_FRAMES;
	assert_int_equal(convert(f, sizeof(f->raw)), 8 * (1 + 6 + 1 + 2 + SAMPLER_CHAIN));
}

static void test_early_sample_has_registers_and_stack(void **state)
{
	static struct sampler_early early;
	struct fixture *f = *state;
	struct event_desc *desc = &f->s.events.events.v[0];
	size_t head = offsetof(struct sampler_early, stack);
	struct event e;
	size_t n;

	/* sp, then pc, as a made-up machine orders them. */
	f->s.early_regs = 1 << 7 | 1 << 8;
	f->s.early_slots[0] = UNWIND_SLOT_SP;
	f->s.early_slots[1] = UNWIND_REGS;
	desc->attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	desc->attr.sample_regs_user = f->s.early_regs;
	f->raw.early = 1;
	f->raw.n_user = 0;
	f->raw.stop = UNWIND_NEW_MAPPING;
	memcpy(early.head, &f->raw, sizeof(early.head));
	early.pc = 0x4000;
	early.r[UNWIND_SLOT_SP] = 0x7000;
	memcpy(early.kernel, f->raw.chain, 16);
	early.stack[0] = 11;
	early.stack[2 * SAMPLER_STACK_PIECE - 1] = 12;
	n = probe_convert(&f->s, &early, head + 2 * SAMPLER_STACK_PIECE + 4, 555, 3);
	assert_int_equal(decode_record(&f->s.events, (void *)f->s.record, n, &e), 0);
	assert_int_equal(e.sample.n_chain, 3);
	assert_int_equal(e.sample.chain[2], 0xffffffff81000020);
	assert_int_equal(e.sample.stop, UNWIND_CONTINUE); /* not known yet */
	assert_int_equal(e.sample.regs.abi, PERF_SAMPLE_REGS_ABI_64);
	assert_int_equal(e.sample.regs.v[0], 0x7000);
	assert_int_equal(e.sample.regs.v[1], 0x4000);
	assert_int_equal(e.sample.stack_bytes, 2 * SAMPLER_STACK_PIECE);
	assert_int_equal(e.sample.stack[0], 11);
	assert_int_equal(e.sample.stack[2 * SAMPLER_STACK_PIECE - 1], 12);
	/* No stack could be read. */
	n = probe_convert(&f->s, &early, head, 555, 3);
	assert_int_equal(decode_record(&f->s.events, (void *)f->s.record, n, &e), 0);
	assert_int_equal(e.sample.stack_bytes, 0);
	assert_int_equal(probe_convert(&f->s, &early, head - 1, 555, 3), 0);
	assert_true(probe_convert(&f->s, &early, sizeof(early), 555, 3) <= UINT16_MAX);
	/* Any other sample has neither. */
	f->raw.early = 0;
	n = convert(f, SAMPLER_HEAD_BYTES + 5 * 8);
	assert_int_equal(decode_record(&f->s.events, (void *)f->s.record, n, &e), 0);
	assert_int_equal(e.sample.regs.abi, PERF_SAMPLE_REGS_ABI_NONE);
	assert_int_equal(e.sample.stop, UNWIND_NEW_MAPPING);
	/* The program sends them only when they are wanted. */
	f->s.early_regs = 0;
	assert_int_equal(probe_convert(&f->s, &early, sizeof(early), 555, 3), 0);
}

/* --- where rows and ranges are put (with real maps: as root only) ----------------------------- */

static int outer_map(uint32_t element_bytes, uint32_t shift, uint32_t n_max)
{
	LIBBPF_OPTS(bpf_map_create_opts, inner, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, outer);
	int like =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "like", 4, element_bytes, 1u << shift, &inner);
	int fd;

	if (like < 0)
		return -errno;
	outer.inner_map_fd = (uint32_t)like;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", 4, 4, n_max, &outer);
	close(like);
	return fd < 0 ? -errno : fd;
}

/* What a program would find at an index. */
static void look_up(int outer, uint32_t shift, uint64_t index, void *ret)
{
	uint32_t chunk = (uint32_t)(index >> shift), slot = index & ((1u << shift) - 1), id;
	int inner;

	assert_int_equal(bpf_map_lookup_elem(outer, &chunk, &id), 0);
	inner = bpf_map_get_fd_by_id(id);
	assert_true(inner >= 0);
	assert_int_equal(bpf_map_lookup_elem(inner, &slot, ret), 0);
	close(inner);
}

static void test_rows_grow_and_share_rules(void **state)
{
	int rows_fd = outer_map(sizeof(struct unwind_row), UNWIND_ROW_SHIFT, UNWIND_ROW_CHUNKS);
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	int rules_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rules", 4, sizeof(struct unwind_rule),
				      UNWIND_RULES_MAX, &mapped);
	struct unwind_rule rules[] = {{.kind = UNWIND_RULE_NONE},
				      {.kind = UNWIND_RULE_CFA, .reg = 7, .off = 8, .ra = -1},
				      {.kind = UNWIND_RULE_END}};
	enum { N = (1 << UNWIND_ROW_SHIFT) - 2 };
	struct unwind_row *many = calloc(N + 8, sizeof(*many));
	const struct unwind_row few[] = {{0, 1}, {5, 2}, {9, 1}, {12, 0}}, bad[] = {{0, 3}};
	struct unwind_rows a = {many, N, rules, 3, 0}, b = {few, 4, rules + 1, 2, 0};
	struct row_store s;
	struct unwind_row row;
	uint32_t first, n, again;

	(void)state;
	if (rows_fd < 0 || rules_fd < 0)
		skip_because("no right to make BPF maps");
	for (uint32_t i = 0; i < N; i++)
		many[i] = (struct unwind_row){2 * i, i % 3};
	assert_int_equal(row_store_init(&s, rows_fd, rules_fd, 1 << 20), 0);
	assert_int_equal(row_store_add(&s, &a, &first, &n), 0);
	assert_int_equal(first, 0);
	assert_int_equal(n, N);
	b.rows = bad;
	b.n_rows = 1;
	assert_int_equal(row_store_add(&s, &b, &first, &n), -EBADMSG);
	/* Over the end of the first chunk; of its own numbers 0 and 1 the same rules as 1 and 2. */
	rules[0] = rules[1];
	rules[1] = rules[2];
	b = (struct unwind_rows){few + 1, 0, rules, 2, 0};
	b.rows = (const struct unwind_row[]){{0, 0}, {5, 1}, {9, 0}};
	b.n_rows = 3;
	assert_int_equal(row_store_add(&s, &b, &first, &n), 0);
	assert_int_equal(first, N);
	assert_int_equal(s.n_rules, UNWIND_RULE_INDEX_FIRST + 2);
	look_up(rows_fd, UNWIND_ROW_SHIFT, N + 1, &row);
	assert_int_equal(row.off, 5);
	assert_int_equal(s.rules[row.rule].kind, UNWIND_RULE_END);
	look_up(rows_fd, UNWIND_ROW_SHIFT, N + 2, &row);
	assert_int_equal(row.off, 9);
	assert_int_equal(s.rules[row.rule].kind, UNWIND_RULE_CFA);
	look_up(rows_fd, UNWIND_ROW_SHIFT, 4, &row);
	assert_int_equal(row.off, 8);
	assert_int_equal(s.rules[row.rule].reg, 7);
	look_up(rows_fd, UNWIND_ROW_SHIFT, 3, &row);
	assert_int_equal(row.rule, UNWIND_RULE_INDEX_NONE);
	/* The same file again costs nothing, and a third chunk is over the budget. */
	assert_int_equal(row_store_add(&s, &a, &again, &n), 0);
	assert_int_equal(again, 0);
	assert_int_equal(s.n_rows, N + 3);
	a.rows = many + 1;
	a.n_rows = N + 4;
	a.rules = (const struct unwind_rule[]){rules[0], rules[1], rules[1]};
	assert_int_equal(row_store_add(&s, &a, &first, &n), -ENOSPC);
	row_store_release(&s);
	free(many);
	close(rows_fd);
	close(rules_fd);
}

static void test_ranges_rest_before_they_are_used_again(void **state)
{
	int fd = outer_map(sizeof(struct unwind_range), UNWIND_RANGE_SHIFT, UNWIND_RANGE_CHUNKS);
	struct unwind_range v[6] = {{.start_va = 1, .generation = 1},
				    {.start_va = 2},
				    {.start_va = 3},
				    {.start_va = 4},
				    {.start_va = 5}};
	struct unwind_range got;
	struct range_place a, b, c;
	struct range_store s;

	(void)state;
	if (fd < 0)
		skip_because("no right to make BPF maps");
	range_store_init(&s, fd, 1 << 20);
	assert_int_equal(range_store_put(&s, v, 5, &a), 0);
	assert_int_equal(a.class, 3);
	assert_int_equal(range_store_put(&s, v, 5, &b), 0);
	assert_int_equal(b.first, a.first + 8);
	look_up(fd, UNWIND_RANGE_SHIFT, b.first + 4u, &got);
	assert_int_equal(got.start_va, 5);
	assert_int_equal(range_store_drop(&s, a, clock_now_ns()), 0);
	assert_int_equal(range_store_put(&s, v, 5, &c), 0);
	assert_int_not_equal(c.first, a.first);
	s.resting.v[0].since_ns -= NSEC_PER_SEC;
	assert_int_equal(range_store_put(&s, v, 6, &c), 0);
	assert_int_equal(c.first, a.first);
	assert_int_equal(range_store_put(&s, v, (size_t)1 << 21, &c), -ENOSPC);
	range_store_release(&s);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sample_as_perf_writes_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_user_only_and_truncated, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_early_sample_has_registers_and_stack, setup,
						teardown),
		cmocka_unit_test(test_rows_grow_and_share_rules),
		cmocka_unit_test(test_ranges_rest_before_they_are_used_again),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
