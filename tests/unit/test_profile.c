/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/saved_names.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint32_t symbol(struct profile *p, const char *name, enum frame_kind kind, bool unknown)
{
	struct symbol s = {.kind = kind, .unknown = unknown};
	uint32_t id;

	assert_int_equal(intern_puts(&p->strings, name, &s.name), 0);
	assert_int_equal(intern_puts(&p->strings, "lib.so", &s.module), 0);
	assert_int_equal(profile_symbol(p, &s, &id), 0);
	return id;
}

static void name_frame(struct profile *p, const char *outer, const char *inner, bool unknown)
{
	uint32_t first = (uint32_t)p->at.n;

	assert_int_equal(array_push(&p->first, first), 0);
	if (outer)
		assert_int_equal(
			array_push(&p->at,
				   (struct symbol_at){
					   .symbol = symbol(p, outer, FRAME_NATIVE, false)}),
			0);
	assert_int_equal(
		array_push(&p->at,
			   (struct symbol_at){.symbol = symbol(p, inner,
							       outer ? FRAME_INLINED : FRAME_NATIVE,
							       unknown),
					      .line = 42}),
		0);
}

/* Two threads: main → work(+inlined step) and main → 0x30 without a name. */
static struct profile *sample_profile(void)
{
	static const struct mmap_event mmap = {.pid = 5,
					       .path = "/usr/lib/lib.so",
					       .build_id = (const uint8_t *)"abcdefgh",
					       .build_id_size = 8};
	struct profile *p;
	uint32_t dso, frames[3], main_stack, work, odd, t1, t2, event;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_event(p, "cpu-clock", "ns", &event), 0);
	assert_int_equal(dso_table_add(&p->processes.dsos, &mmap, 0, &dso), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(profile_frame(p,
					       &(struct frame){0x10 * (i + 1), dso, FRAME_NATIVE},
					       &frames[i]),
				 0);
	assert_int_equal(profile_stack(p, STACK_ROOT, frames[0], &main_stack), 0);
	assert_int_equal(profile_stack(p, main_stack, frames[1], &work), 0);
	assert_int_equal(profile_stack(p, main_stack, frames[2], &odd), 0);
	assert_int_equal(profile_thread(p, 5, 5, "app", 3, &t1), 0);
	assert_int_equal(profile_thread(p, 5, 6, "worker", 6, &t2), 0);
	assert_int_equal(profile_add(p, work, t1, event, 1000, 1), 0);
	assert_int_equal(profile_add(p, work, t1, event, 500, 1), 0);
	assert_int_equal(profile_add(p, odd, t2, event, 250, 1), 0);
	name_frame(p, NULL, "main", false);
	name_frame(p, "work", "step", false);
	name_frame(p, NULL, "[lib.so+0x30]", true);
	assert_int_equal(array_push(&p->first, (uint32_t)p->at.n), 0);
	for (size_t i = 0; i < p->stacks.n; i++)
		assert_int_equal(array_push(&p->cut, i == odd), 0);
	p->truncated_symbol = symbol(p, "[truncated]", FRAME_SYNTHETIC, false);
	return p;
}

static void assert_path(const struct profile *p, const struct profile_row *row,
			const char *const *want, size_t n)
{
	struct symbol_path path = {0};

	assert_int_equal(profile_row_path(p, row, &path), 0);
	assert_int_equal(path.at.n, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(intern_str(&p->strings, p->symbols.v[path.at.v[i].symbol].name),
				    want[i]);
	array_release(&path.at);
}

static void test_rows_add_up(void **state)
{
	struct profile *p = sample_profile();
	uint64_t weight, count;

	(void)state;
	assert_int_equal(p->rows.n, 2);
	assert_int_equal(p->rows.v[0].weight, 1500);
	assert_int_equal(p->rows.v[0].count, 2);
	profile_totals(p, 0, &weight, &count);
	assert_int_equal(weight, 1750);
	assert_int_equal(count, 3);
	profile_totals(p, 1, &weight, &count);
	assert_int_equal(weight, 0);
	profile_free(p);
}

static void test_paths(void **state)
{
	struct profile *p = sample_profile();

	(void)state;
	assert_path(p, &p->rows.v[0], (const char *const[]){"main", "work", "step"}, 3);
	assert_path(p, &p->rows.v[1], (const char *const[]){"[truncated]", "main", "[lib.so+0x30]"},
		    3);
	assert_path(p, &(struct profile_row){.stack = STACK_ROOT}, NULL, 0);
	profile_free(p);
}

static void test_unknown_modules(void **state)
{
	struct profile *p = sample_profile();
	unknown_modules list;

	(void)state;
	assert_int_equal(profile_unknown(p, &list), 0);
	assert_int_equal(list.n, 1);
	assert_string_equal(intern_str(&p->strings, list.v[0].module), "lib.so");
	assert_int_equal(list.v[0].count, 1);
	array_release(&list);
	profile_free(p);
}

static void test_saved_names(void **state)
{
	struct profile *p = sample_profile();
	struct saved_names *s;
	const struct saved_name *names;
	const struct dso *d = p->processes.dsos.dsos.v[DSO_ID_CODE + 1];
	struct dso other = *d;
	uint8_t *bytes;
	size_t size;

	(void)state;
	assert_int_equal(saved_names_encode(p, &bytes, &size), 0);
	assert_int_equal(saved_names_decode(bytes, size, &s), 0);
	assert_int_equal(saved_names_find(s, d, 0x20, &names), 2);
	assert_string_equal(names[0].name, "work");
	assert_string_equal(names[1].name, "step");
	assert_int_equal(names[1].kind, FRAME_INLINED);
	assert_int_equal(names[1].line, 42);
	assert_int_equal(saved_names_find(s, d, 0x10, &names), 1);
	/* What had no name is left for the report to find. */
	assert_int_equal(saved_names_find(s, d, 0x30, &names), 0);
	/* Another file under the same path is not named. */
	other.build_id[0] ^= 1;
	assert_int_equal(saved_names_find(s, &other, 0x10, &names), 0);
	saved_names_free(s);
	free(bytes);
	profile_free(p);
}

/* Any damage is found or harmless; never a crash (run under ASan). */
static void test_saved_names_hostile(void **state)
{
	struct profile *p = sample_profile();
	struct saved_names *s;
	const struct saved_name *names;
	uint8_t *bytes, *copy;
	size_t size;

	(void)state;
	assert_int_equal(saved_names_encode(p, &bytes, &size), 0);
	copy = malloc(size);
	assert_non_null(copy);
	for (size_t n = 0; n < size; n++)
		assert_int_equal(saved_names_decode(bytes, n, &s), -EBADMSG);
	for (size_t i = 0; i < size * 8; i++) {
		memcpy(copy, bytes, size);
		copy[i / 8] ^= (uint8_t)(1 << i % 8);
		if (saved_names_decode(copy, size, &s))
			continue;
		saved_names_find(s, p->processes.dsos.dsos.v[3], 0x20, &names);
		saved_names_free(s);
	}
	free(copy);
	free(bytes);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_add_up),         cmocka_unit_test(test_paths),
		cmocka_unit_test(test_unknown_modules),     cmocka_unit_test(test_saved_names),
		cmocka_unit_test(test_saved_names_hostile),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
