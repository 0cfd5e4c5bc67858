/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/process.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void map(struct process_table *t, uint32_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
		const char *path, uint64_t ino)
{
	struct event e = {.type = EVENT_MMAP,
			  .mmap = {.pid = pid,
				   .tid = pid,
				   .start_va = start,
				   .len_bytes = len,
				   .pgoff_bytes = pgoff,
				   .ino = ino,
				   .exec = true,
				   .path = path}};

	assert_int_equal(process_table_apply(t, &e), 0);
}

static void task(struct process_table *t, enum event_type type, uint32_t pid, uint32_t ppid,
		 uint32_t tid, uint32_t ptid)
{
	struct event e = {.type = type,
			  .task = {.pid = pid, .ppid = ppid, .tid = tid, .ptid = ptid}};

	assert_int_equal(process_table_apply(t, &e), 0);
}

static void comm(struct process_table *t, uint32_t pid, uint32_t tid, const char *name, bool exec)
{
	struct event e = {.type = EVENT_COMM,
			  .comm = {.pid = pid, .tid = tid, .exec = exec, .comm = name}};

	assert_int_equal(process_table_apply(t, &e), 0);
}

/* The file and the offset in it that an address stands for; "" when none. */
static const char *at(struct process_table *t, uint32_t pid, uint64_t va, uint64_t *off)
{
	const struct mapping *m = process_table_find(t, pid, va);

	if (!m)
		return "";
	*off = va - m->start_va + m->pgoff_bytes;
	return t->dsos.dsos.v[m->dso]->path;
}

static void test_overlap_cuts_the_older(void **state)
{
	struct process_table t = {0};
	uint64_t off = 0;

	(void)state;
	assert_int_equal(process_table_init(&t), 0);
	map(&t, 1, 0x1000, 0x9000, 0, "/a", 1);
	map(&t, 1, 0x4000, 0x2000, 0x100000, "/b", 2);
	assert_string_equal(at(&t, 1, 0x3fff, &off), "/a");
	assert_int_equal(off, 0x2fff);
	assert_string_equal(at(&t, 1, 0x4000, &off), "/b");
	assert_int_equal(off, 0x100000);
	assert_string_equal(at(&t, 1, 0x6000, &off), "/a");
	assert_int_equal(off, 0x5000);
	assert_string_equal(at(&t, 1, 0xa000, &off), "");
	assert_string_equal(at(&t, 1, 0xfff, &off), "");
	map(&t, 1, 0, 0x10000, 0, "/c", 3);
	assert_string_equal(at(&t, 1, 0x4000, &off), "/c");
	process_table_release(&t);
}

static void test_fork_shares_until_one_changes(void **state)
{
	struct process_table t = {0};
	uint64_t off = 0;

	(void)state;
	assert_int_equal(process_table_init(&t), 0);
	map(&t, 1, 0x1000, 0x1000, 0, "/a", 1);
	comm(&t, 1, 1, "parent", false);
	task(&t, EVENT_FORK, 2, 1, 2, 1);
	assert_string_equal(at(&t, 2, 0x1800, &off), "/a");
	assert_string_equal(process_table_comm(&t, 2, 2), "parent");
	map(&t, 2, 0x1000, 0x1000, 0, "/b", 2);
	assert_string_equal(at(&t, 1, 0x1800, &off), "/a");
	assert_string_equal(at(&t, 2, 0x1800, &off), "/b");
	comm(&t, 2, 2, "child", true);
	/* The caller of exec is still known until the new program is mapped; then nothing is. */
	assert_string_equal(at(&t, 2, 0x1800, &off), "/b");
	map(&t, 2, 0x9000, 0x1000, 0, "/new", 3);
	assert_string_equal(at(&t, 2, 0x1800, &off), "");
	assert_string_equal(at(&t, 2, 0x9800, &off), "/new");
	assert_string_equal(process_table_comm(&t, 2, 2), "child");
	assert_string_equal(process_table_comm(&t, 1, 1), "parent");
	/* The pid comes back as another process, and its samples may follow its exit. */
	task(&t, EVENT_EXIT, 2, 1, 2, 1);
	assert_string_equal(process_table_comm(&t, 2, 2), "child");
	process_table_release(&t);
}

static void test_thread_names(void **state)
{
	struct process_table t = {0};

	(void)state;
	assert_int_equal(process_table_init(&t), 0);
	assert_string_equal(process_table_comm(&t, 7, 7), "");
	comm(&t, 7, 7, "main", false);
	assert_string_equal(process_table_comm(&t, 7, 8), "main");
	task(&t, EVENT_FORK, 7, 7, 8, 7);
	comm(&t, 7, 8, "a;b\n)", false);
	assert_string_equal(process_table_comm(&t, 7, 8), "a;b\n)");
	assert_string_equal(process_table_comm(&t, 7, 7), "main");
	process_table_release(&t);
}

static uint32_t add(struct dso_table *t, const char *path, uint64_t ino, const char *build_id)
{
	uint32_t id;
	struct mmap_event m = {.pid = 1,
			       .ino = ino,
			       .path = path,
			       .build_id = (const uint8_t *)build_id,
			       .build_id_size = build_id ? strlen(build_id) : 0};

	assert_int_equal(dso_table_add(t, &m, 0, &id), 0);
	return id;
}

static void test_files_of_one_path(void **state)
{
	struct process_table t = {0};
	uint32_t a, b, c;

	(void)state;
	assert_int_equal(process_table_init(&t), 0);
	a = add(&t.dsos, "/bin/x", 10, NULL);
	assert_int_equal(add(&t.dsos, "/bin/x", 10, NULL), a);
	b = add(&t.dsos, "/bin/x", 11, NULL);
	assert_int_not_equal(a, b);
	c = add(&t.dsos, "/bin/x", 0, "01234567890123456789");
	assert_int_equal(add(&t.dsos, "/bin/x (deleted)", 0, "01234567890123456789"), c);
	assert_true(t.dsos.dsos.v[c]->deleted);
	assert_false(t.dsos.dsos.v[a]->deleted);
	assert_int_not_equal(add(&t.dsos, "/bin/x", 0, "91234567890123456789"), c);
	assert_string_equal(dso_short_name(t.dsos.dsos.v[c]), "x");
	process_table_release(&t);
}

static void test_memory_without_a_file(void **state)
{
	static const char *const names[] = {
		"", "//anon", "[heap]", "/memfd:jit (deleted)", "[anon:v8]", "/dev/zero (deleted)"};
	struct process_table t = {0};
	uint32_t jit;

	(void)state;
	assert_int_equal(process_table_init(&t), 0);
	jit = add(&t.dsos, names[0], 0, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(add(&t.dsos, names[i], 0, NULL), jit);
	assert_int_equal(t.dsos.dsos.v[jit]->kind, DSO_JIT);
	assert_int_equal(t.dsos.dsos.v[jit]->began_ns, 0);
	assert_int_equal(t.dsos.dsos.v[add(&t.dsos, "[vdso]", 0, NULL)]->kind, DSO_VDSO);
	process_table_release(&t);
}

static const struct dso *jit_at(struct process_table *t, uint32_t pid, uint64_t va)
{
	return t->dsos.dsos.v[process_table_find(t, pid, va)->dso];
}

/* Code made at run time is its program's, and ends with it. */
static void test_programs_of_a_process(void **state)
{
	struct event exec = {.type = EVENT_COMM,
			     .time_ns = 500,
			     .comm = {.pid = 1, .tid = 1, .exec = true, .comm = "next"}};
	struct event fork = {.type = EVENT_FORK,
			     .time_ns = 900,
			     .task = {.pid = 1, .ppid = 3, .tid = 1, .ptid = 3}};
	struct process_table t = {0};
	const struct dso *first, *second, *third;

	(void)state;
	assert_int_equal(process_table_init(&t), 0);
	map(&t, 1, 0x1000, 0x1000, 0, "", 0);
	first = jit_at(&t, 1, 0x1000);
	task(&t, EVENT_FORK, 2, 1, 2, 1);
	assert_ptr_equal(jit_at(&t, 2, 0x1000), first);
	assert_int_equal(process_table_apply(&t, &exec), 0);
	assert_ptr_equal(jit_at(&t, 1, 0x1000), first); /* until the new program is mapped */
	map(&t, 1, 0x1000, 0x1000, 0, "", 0);
	second = jit_at(&t, 1, 0x1000);
	assert_ptr_not_equal(second, first);
	assert_int_equal(first->ended_ns, 500);
	assert_int_equal(second->began_ns, 500);
	assert_int_equal(second->ended_ns, 0);
	assert_ptr_equal(jit_at(&t, 2, 0x1000), first); /* a child's copy */
	/* The pid comes back as another process. */
	assert_int_equal(process_table_apply(&t, &fork), 0);
	map(&t, 1, 0x1000, 0x1000, 0, "", 0);
	third = jit_at(&t, 1, 0x1000);
	assert_int_equal(second->ended_ns, 900);
	assert_int_equal(third->began_ns, 900);
	process_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlap_cuts_the_older),
		cmocka_unit_test(test_fork_shares_until_one_changes),
		cmocka_unit_test(test_thread_names),
		cmocka_unit_test(test_files_of_one_path),
		cmocka_unit_test(test_memory_without_a_file),
		cmocka_unit_test(test_programs_of_a_process),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
