/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_builder.h"
#include <inspect/decode.h>
#include <sys/mman.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

#define TIME_AND_PLACE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

static struct record_builder b;

static void one_event(struct event_table *t, const struct perf_event_attr *attr)
{
	*t = (struct event_table){0};
	assert_int_equal(event_table_add(t, attr, NULL), 0);
}

static int decode(const struct event_table *t, struct event *e)
{
	return decode_record(t, &b.header, b.n, e);
}

static uint64_t time_of(const struct event_table *t)
{
	uint64_t time_ns = 0;

	assert_int_equal(decode_time(t, &b.header, b.n, &time_ns), 0);
	return time_ns;
}

/* No shorter form of the record in b is read past its end; all are refused, where not a name
 * followed by zeros ends it. */
static void check_shorter(const struct event_table *t, bool ends_in_name)
{
	struct event e;
	uint64_t time_ns;
	size_t whole = b.n;

	for (size_t n = 0; n < whole; n += 4) {
		/* Its own allocation, so that ASan sees a byte too many. */
		struct perf_event_header *cut = malloc(MAX(n, sizeof(*cut)));

		assert_non_null(cut);
		memcpy(cut, b.v, MAX(n, sizeof(*cut)));
		cut->size = (uint16_t)n;
		if (decode_record(t, cut, n, &e) != -EBADMSG)
			assert_true(ends_in_name);
		decode_time(t, cut, n, &time_ns);
		free(cut);
	}
	assert_int_equal(decode_record(t, &b.header, whole - 1, &e), -EBADMSG);
}

/* All fields at once, in the order of perf_output_sample(). */
static void put_full_sample(bool group)
{
	record_begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	record_u64(&b, 77);       /* identifier */
	record_u64(&b, 0x401000); /* ip */
	record_u32(&b, 11);       /* pid, tid */
	record_u32(&b, 12);
	record_u64(&b, 5000);  /* time */
	record_u64(&b, 0xadd); /* addr */
	record_u64(&b, 77);    /* id */
	record_u64(&b, 78);    /* stream id */
	record_u32(&b, 3);     /* cpu */
	record_u32(&b, 0);
	record_u64(&b, 1001); /* period */
	if (group)
		record_u64(&b, 2);
	else
		record_u64(&b, 900); /* value */
	record_u64(&b, 1);           /* time enabled, time running */
	record_u64(&b, 1);
	for (int i = 0; i < (group ? 6 : 2); i++)
		record_u64(&b, 77); /* group: two of value, id, lost; else id, lost */
	record_u64(&b, 3);          /* callchain */
	record_u64(&b, PERF_CONTEXT_USER);
	record_u64(&b, 0x401000);
	record_u64(&b, 0x402000);
	record_u32(&b, 12); /* raw */
	record_put(&b, "raw bytes...", 12);
	record_u64(&b, 2); /* branch stack: hw_idx, two of from, to, flags, then counters */
	for (int i = 0; i < 1 + 2 * 3 + 2; i++)
		record_u64(&b, 0xb);
	record_u64(&b, PERF_SAMPLE_REGS_ABI_64);
	record_u64(&b, 0x111);
	record_u64(&b, 0x222);
	record_u64(&b, 16); /* stack */
	record_put(&b, "0123456789abcdef", 16);
	record_u64(&b, 8);
	record_u64(&b, 1); /* weight, data_src, transaction */
	record_u64(&b, 2);
	record_u64(&b, 3);
	record_u64(&b, PERF_SAMPLE_REGS_ABI_64);
	record_u64(&b, 0x333);
	record_u64(&b, 4); /* phys_addr, cgroup, page sizes */
	record_u64(&b, 5);
	record_u64(&b, 6);
	record_u64(&b, 7);
	record_u64(&b, 8); /* aux */
	record_put(&b, "auxauxau", 8);
}

static void check_full_sample(const struct event *e)
{
	const struct sample *s = &e->sample;

	assert_int_equal(e->type, EVENT_SAMPLE);
	assert_int_equal(e->time_ns, 5000);
	assert_int_equal(e->cpu, 3);
	assert_int_equal(s->ip, 0x401000);
	assert_int_equal(s->pid, 11);
	assert_int_equal(s->tid, 12);
	assert_int_equal(s->event, 0);
	assert_int_equal(s->weight, 1001);
	assert_int_equal(s->cpumode, PERF_RECORD_MISC_USER);
	assert_int_equal(s->n_chain, 3);
	assert_int_equal(s->chain[2], 0x402000);
	assert_int_equal(s->regs.abi, PERF_SAMPLE_REGS_ABI_64);
	assert_int_equal(s->regs.mask, 1U << 7 | 1U << 8);
	assert_int_equal(s->regs.v[1], 0x222);
	assert_int_equal(s->stack_bytes, 8);
	assert_memory_equal(s->stack, "01234567", 8);
	assert_true(s->stack_cut);
}

static void test_every_field(void **state UNUSED)
{
	struct perf_event_attr attr = {
		.sample_type = (PERF_SAMPLE_MAX - 1) & ~(uint64_t)PERF_SAMPLE_WEIGHT_STRUCT,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			       PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX | 1ULL << 19,
		.sample_regs_user = 1U << 7 | 1U << 8,
		.sample_regs_intr = 1,
	};
	struct event_table t;
	struct event e;

	for (int group = 0; group < 2; group++) {
		if (group)
			attr.read_format |= PERF_FORMAT_GROUP;
		one_event(&t, &attr);
		put_full_sample(group);
		assert_int_equal(decode(&t, &e), 0);
		check_full_sample(&e);
		assert_int_equal(time_of(&t), 5000);
		check_shorter(&t, false);
		event_table_release(&t);
	}
}

/* A stack or registers that were not there leave their sizes out. */
static void test_empty_user_state(void **state UNUSED)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_REGS_USER |
						      PERF_SAMPLE_STACK_USER |
						      PERF_SAMPLE_WEIGHT_STRUCT,
				       .sample_regs_user = 0xff0fff};
	struct event_table t;
	struct event e;

	one_event(&t, &attr);
	record_begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	record_u64(&b, PERF_SAMPLE_REGS_ABI_NONE);
	record_u64(&b, 0);
	record_u64(&b, 1);
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.sample.regs.abi, 0);
	assert_null(e.sample.regs.v);
	assert_null(e.sample.stack);
	assert_int_equal(e.sample.pid, UINT32_MAX);
	assert_int_equal(e.cpu, UINT32_MAX);
	assert_int_equal(time_of(&t), 0);

	/* More of the stack used than copied. */
	record_begin(&b, PERF_RECORD_SAMPLE, 0);
	record_u64(&b, 0);
	record_u64(&b, 8);
	record_u64(&b, 0);
	record_u64(&b, 9);
	record_u64(&b, 0);
	assert_int_equal(decode(&t, &e), -EBADMSG);
	event_table_release(&t);
}

static void test_hostile_sizes(void **state UNUSED)
{
	static const struct {
		uint64_t type, format;
	} cases[] = {
		{PERF_SAMPLE_CALLCHAIN, 0},
		{PERF_SAMPLE_RAW, 0},
		{PERF_SAMPLE_BRANCH_STACK, 0},
		{PERF_SAMPLE_STACK_USER, 0},
		{PERF_SAMPLE_AUX, 0},
		{PERF_SAMPLE_READ, PERF_FORMAT_GROUP | PERF_FORMAT_ID},
	};
	static const uint64_t sizes[] = {3,          UINT16_MAX,      UINT32_MAX,
					 1ULL << 61, UINT64_MAX / 24, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_event_attr attr = {.sample_type = cases[i].type,
					       .read_format = cases[i].format};
		struct event_table t;
		struct event e;

		one_event(&t, &attr);
		for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
			record_begin(&b, PERF_RECORD_SAMPLE, 0);
			record_u64(&b, sizes[k]);
			if (cases[i].type == PERF_SAMPLE_RAW && (uint32_t)sizes[k] <= 4)
				continue; /* its size has 32 bits, and those do fit */
			assert_int_equal(decode(&t, &e), -EBADMSG);
		}
		event_table_release(&t);
	}
}

static void test_weight_without_period(void **state UNUSED)
{
	static const struct {
		struct perf_event_attr attr;
		uint64_t weight;
	} cases[] = {
		{{.type = PERF_TYPE_SOFTWARE, .sample_period = 250000}, 250000},
		{{.type = PERF_TYPE_SOFTWARE, .freq = 1, .sample_freq = 1000}, 1000000},
		{{.type = PERF_TYPE_SOFTWARE, .freq = 1}, 1},
		{{.type = PERF_TYPE_HARDWARE, .freq = 1, .sample_freq = 1000}, 1},
		{{.type = PERF_TYPE_TRACEPOINT}, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct event_table t;
		struct event e;

		one_event(&t, &cases[i].attr);
		record_begin(&b, PERF_RECORD_SAMPLE, 0);
		b.header.size = (uint16_t)b.n;
		assert_int_equal(decode(&t, &e), 0);
		assert_int_equal(e.sample.weight, cases[i].weight);
		event_table_release(&t);
	}
}

/* Two events with different layouts are told apart by the identifier alone. */
static void test_identifier(void **state UNUSED)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP,
				       .sample_id_all = 1};
	struct event_table t;
	struct event e;

	one_event(&t, &attr);
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
	assert_int_equal(event_table_add(&t, &attr, NULL), 0);
	assert_int_equal(event_table_add_id(&t, 0, 100), 0);
	assert_int_equal(event_table_add_id(&t, 1, 200), 0);
	record_begin(&b, PERF_RECORD_SAMPLE, 0);
	record_u64(&b, 200);
	record_u64(&b, 9000);
	record_u64(&b, 4);
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.sample.event, 1);
	assert_int_equal(e.sample.weight, 4);
	assert_int_equal(time_of(&t), 9000);

	record_begin(&b, PERF_RECORD_SAMPLE, 0);
	record_u64(&b, 0); /* no id: the first event */
	record_u64(&b, 0x1234);
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.sample.event, 0);
	assert_int_equal(e.sample.ip, 0x1234);

	b.words[1] = 300; /* nobody's */
	assert_int_equal(decode(&t, &e), -EBADMSG);

	/* The last word of another record says whose trailer it is. */
	record_begin(&b, PERF_RECORD_COMM, 0);
	record_u64(&b, 1);
	record_string(&b, "name");
	record_u64(&b, 8000);
	record_u64(&b, 200);
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.time_ns, 8000);
	event_table_release(&t);
}

static void test_id_position(void **state UNUSED)
{
	struct perf_event_attr attr = {.sample_type =
					       PERF_SAMPLE_IP | PERF_SAMPLE_ID | TIME_AND_PLACE,
				       .sample_id_all = 1};
	struct event_table t;
	struct event e;

	one_event(&t, &attr);
	attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	assert_int_equal(event_table_add(&t, &attr, NULL), 0);
	assert_int_equal(event_table_add_id(&t, 1, 55), 0);
	record_begin(&b, PERF_RECORD_SAMPLE, 0);
	record_u64(&b, 0x1234);
	record_u64(&b, 1);
	record_u64(&b, 70);
	record_u64(&b, 55);
	record_u64(&b, 2);
	record_u64(&b, 0); /* an empty chain */
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.sample.event, 1);
	assert_int_equal(e.cpu, 2);
	assert_int_equal(e.sample.n_chain, 0);

	/* tid, time, id, cpu */
	record_begin(&b, PERF_RECORD_LOST_SAMPLES, 0);
	record_u64(&b, 17);
	record_u64(&b, 1);
	record_u64(&b, 71);
	record_u64(&b, 55);
	record_u64(&b, 2);
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.type, EVENT_LOST_SAMPLES);
	assert_int_equal(e.lost.n, 17);
	assert_int_equal(e.lost.event, 1);
	assert_int_equal(e.time_ns, 71);
	assert_int_equal(e.cpu, 2);
	b.header.misc = 1U << 15; /* left out by a BPF filter */
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.type, EVENT_OTHER);
	event_table_release(&t);
}

static const struct perf_event_attr trailer_attr = {.sample_type = TIME_AND_PLACE,
						    .sample_id_all = 1};

static void put_trailer(void)
{
	record_u64(&b, 1);    /* tid */
	record_u64(&b, 4242); /* time */
	record_u64(&b, 1);    /* cpu */
}

static void check_trailer(const struct event_table *t, const struct event *e)
{
	bool ends_in_name =
		e->type == EVENT_MMAP || e->type == EVENT_COMM || e->type == EVENT_KSYMBOL;

	assert_int_equal(e->time_ns, 4242);
	assert_int_equal(e->cpu, 1);
	assert_int_equal(time_of(t), 4242);
	check_shorter(t, ends_in_name);
}

static void put_mmap_start(uint32_t type, uint16_t misc)
{
	record_begin(&b, type, misc);
	record_u32(&b, 5);
	record_u32(&b, 6);
	record_u64(&b, 0x400000);
	record_u64(&b, 0x1000);
	record_u64(&b, 0x2000);
}

static void test_mmap(void **state UNUSED)
{
	static const uint8_t build_id[20] = {0xaa, 0xbb, 19};
	struct event_table t;
	struct event e;

	one_event(&t, &trailer_attr);
	put_mmap_start(PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	record_string(&b, "[kernel.kallsyms]_text");
	put_trailer();
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.type, EVENT_MMAP);
	assert_true(e.mmap.kernel);
	assert_true(e.mmap.exec);
	assert_string_equal(e.mmap.path, "[kernel.kallsyms]_text");
	check_trailer(&t, &e);
	b.header.misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA;
	assert_int_equal(decode(&t, &e), 0);
	assert_false(e.mmap.exec);
	assert_false(e.mmap.kernel);

	put_mmap_start(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	record_u32(&b, 8);
	record_u32(&b, 1);
	record_u64(&b, 999);
	record_u64(&b, 4);
	record_u32(&b, PROT_READ | PROT_EXEC);
	record_u32(&b, MAP_PRIVATE);
	record_string(&b, "/usr/bin/x");
	put_trailer();
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.mmap.pid, 5);
	assert_int_equal(e.mmap.tid, 6);
	assert_int_equal(e.mmap.start_va, 0x400000);
	assert_int_equal(e.mmap.len_bytes, 0x1000);
	assert_int_equal(e.mmap.pgoff_bytes, 0x2000);
	assert_int_equal(e.mmap.maj, 8);
	assert_int_equal(e.mmap.min, 1);
	assert_int_equal(e.mmap.ino, 999);
	assert_int_equal(e.mmap.ino_generation, 4);
	assert_true(e.mmap.exec);
	assert_null(e.mmap.build_id);
	assert_string_equal(e.mmap.path, "/usr/bin/x");
	check_trailer(&t, &e);

	put_mmap_start(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
	record_u32(&b, 16); /* the size, and reserved bytes */
	record_put(&b, build_id, sizeof(build_id));
	record_u32(&b, PROT_READ);
	record_u32(&b, MAP_PRIVATE);
	record_string(&b, "/usr/bin/y");
	put_trailer();
	assert_int_equal(decode(&t, &e), 0);
	assert_false(e.mmap.exec);
	assert_int_equal(e.mmap.build_id_size, 16);
	assert_memory_equal(e.mmap.build_id, build_id, 16);
	assert_int_equal(e.mmap.ino, 0);
	check_trailer(&t, &e);
	/* The bit alone, left over from another recording: 8 is the major of a disk, unless
	 * this recording did ask for build-ids. */
	b.v[40] = 8;
	assert_int_equal(decode(&t, &e), 0);
	assert_null(e.mmap.build_id);
	assert_int_equal(e.mmap.maj, 8);
	assert_int_equal(e.mmap.min, 0x13bbaa);
	t.events.v[0].attr.build_id = 1;
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.mmap.build_id_size, 8);
	b.v[40] = 21; /* larger than any build-id */
	assert_int_equal(decode(&t, &e), 0);
	assert_null(e.mmap.build_id);
	memset(b.v + 72, 'x', b.n - 72 - 24); /* no NUL before the trailer */
	assert_int_equal(decode(&t, &e), -EBADMSG);
	event_table_release(&t);
}

static void test_tasks(void **state UNUSED)
{
	struct event_table t;
	struct event e;

	one_event(&t, &trailer_attr);
	record_begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	record_u32(&b, 10);
	record_u32(&b, 11);
	record_string(&b, "worker; \n<b>");
	put_trailer();
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.type, EVENT_COMM);
	assert_int_equal(e.comm.pid, 10);
	assert_int_equal(e.comm.tid, 11);
	assert_true(e.comm.exec);
	assert_string_equal(e.comm.comm, "worker; \n<b>");
	check_trailer(&t, &e);

	for (uint32_t type = PERF_RECORD_EXIT; type <= PERF_RECORD_FORK; type += 3) {
		record_begin(&b, type, 0);
		record_u32(&b, 20);
		record_u32(&b, 1);
		record_u32(&b, 21);
		record_u32(&b, 2);
		record_u64(&b, 4000);
		put_trailer();
		assert_int_equal(decode(&t, &e), 0);
		assert_int_equal(e.type, type == PERF_RECORD_FORK ? EVENT_FORK : EVENT_EXIT);
		assert_int_equal(e.task.pid, 20);
		assert_int_equal(e.task.ppid, 1);
		assert_int_equal(e.task.tid, 21);
		assert_int_equal(e.task.ptid, 2);
		check_trailer(&t, &e);
	}
	event_table_release(&t);
}

static void test_losses(void **state UNUSED)
{
	struct event_table t;
	struct event e;

	one_event(&t, &trailer_attr);
	assert_int_equal(event_table_add_id(&t, 0, 31), 0);
	record_begin(&b, PERF_RECORD_LOST, 0);
	record_u64(&b, 31);
	record_u64(&b, 12345);
	put_trailer();
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.type, EVENT_LOST);
	assert_int_equal(e.lost.n, 12345);
	assert_int_equal(e.lost.event, 0);
	check_trailer(&t, &e);

	for (uint32_t type = PERF_RECORD_THROTTLE; type <= PERF_RECORD_UNTHROTTLE; type++) {
		record_begin(&b, type, 0);
		record_u64(&b, 1);
		record_u64(&b, 2);
		record_u64(&b, 3);
		put_trailer();
		assert_int_equal(decode(&t, &e), 0);
		assert_int_equal(e.type,
				 type == PERF_RECORD_THROTTLE ? EVENT_THROTTLE : EVENT_OTHER);
		assert_int_equal(e.time_ns, 4242);
	}

	record_begin(&b, PERF_RECORD_KSYMBOL, 0);
	record_u64(&b, 0xffffffffa0000000);
	record_u32(&b, 96);
	record_u32(&b, 1U << 16 | PERF_RECORD_KSYMBOL_TYPE_BPF);
	record_string(&b, "bpf_prog_1");
	put_trailer();
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.type, EVENT_KSYMBOL);
	assert_int_equal(e.ksymbol.addr, 0xffffffffa0000000);
	assert_int_equal(e.ksymbol.len_bytes, 96);
	assert_int_equal(e.ksymbol.type, PERF_RECORD_KSYMBOL_TYPE_BPF);
	assert_true(e.ksymbol.unregister);
	assert_string_equal(e.ksymbol.name, "bpf_prog_1");
	check_trailer(&t, &e);
	/* Told to a second event, the kernel has added room for one more trailer. */
	for (int i = 0; i < 6; i++)
		record_u64(&b, 0);
	assert_int_equal(decode(&t, &e), 0);
	check_trailer(&t, &e);
	event_table_release(&t);
}

/* Files from before sample_id_all: a body's own time counts. */
static void test_without_trailer(void **state UNUSED)
{
	struct perf_event_attr attr = {.sample_type = TIME_AND_PLACE};
	struct event_table t;
	struct event e;

	one_event(&t, &attr);
	record_begin(&b, PERF_RECORD_FORK, 0);
	record_u64(&b, 1);
	record_u64(&b, 2);
	record_u64(&b, 700);
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.time_ns, 700);
	assert_int_equal(time_of(&t), 700);
	record_begin(&b, PERF_RECORD_COMM, 0);
	record_u64(&b, 1);
	record_string(&b, "x");
	assert_int_equal(decode(&t, &e), 0);
	assert_int_equal(e.time_ns, 0);
	assert_false(e.comm.exec);
	event_table_release(&t);
}

static void test_others(void **state UNUSED)
{
	static const uint32_t types[] = {0,  PERF_RECORD_SWITCH, 22 /* deferred chain */,
					 63, RECORD_HEADER_ATTR, RECORD_FINISHED_ROUND,
					 84, UINT32_MAX};
	struct event_table t, empty = {0};
	struct event e;

	one_event(&t, &trailer_attr);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		record_begin(&b, types[i], 0);
		put_trailer();
		assert_int_equal(decode(&t, &e), 0);
		assert_int_equal(e.type, EVENT_OTHER);
		assert_int_equal(e.time_ns, types[i] < RECORD_HEADER_ATTR ? 4242 : 0);
	}
	/* Nothing can be read without an event, and nothing at an odd address. */
	record_begin(&b, PERF_RECORD_SAMPLE, 0);
	put_trailer();
	assert_int_equal(decode(&empty, &e), -EBADMSG);
	memmove(b.v + 4, b.v, b.n);
	assert_int_equal(decode_record(&t, (void *)(b.v + 4), b.n, &e), -EBADMSG);
	event_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field),   cmocka_unit_test(test_empty_user_state),
		cmocka_unit_test(test_hostile_sizes), cmocka_unit_test(test_weight_without_period),
		cmocka_unit_test(test_identifier),    cmocka_unit_test(test_id_position),
		cmocka_unit_test(test_mmap),          cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_losses),        cmocka_unit_test(test_without_trailer),
		cmocka_unit_test(test_others),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
