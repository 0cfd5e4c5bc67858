/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "skip.h"
#include <bpf/btf.h>

#include "../../src/probe/kernel_types.h"

static struct btf *picked_of(int fd)
{
	char path[32];
	struct btf *btf;

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	btf = btf__parse(path, NULL);
	close(fd);
	assert_non_null(btf);
	return btf;
}

static struct btf *pick(const struct btf *from, const char *const *names, size_t n)
{
	uint32_t bytes;
	const void *raw = btf__raw_data(from, &bytes);

	return picked_of(kernel_types_pick(raw, bytes, names, n));
}

/* Names, sizes, and what lies where, through what a type consists of. */
static void same_type(const struct btf *a, int a_id, const struct btf *b, int b_id)
{
	const struct btf_type *x = btf__type_by_id(a, (uint32_t)a_id);
	const struct btf_type *y = btf__type_by_id(b, (uint32_t)b_id);

	assert_string_equal(btf__name_by_offset(a, x->name_off),
			    btf__name_by_offset(b, y->name_off));
	assert_int_equal(x->info, y->info);
	if (btf_kind(x) == BTF_KIND_PTR) {
		assert_int_equal(y->type, 0);
		return;
	}
	if (btf_is_mod(x) || btf_is_typedef(x)) {
		same_type(a, (int)x->type, b, (int)y->type);
		return;
	}
	assert_int_equal(btf__resolve_size(a, (uint32_t)a_id),
			 btf__resolve_size(b, (uint32_t)b_id));
	if (btf_is_array(x)) {
		assert_int_equal(btf_array(x)->nelems, btf_array(y)->nelems);
		same_type(a, (int)btf_array(x)->type, b, (int)btf_array(y)->type);
	}
	for (int i = 0; btf_is_composite(x) && i < btf_vlen(x); i++) {
		const struct btf_member *m = btf_members(x) + i, *n = btf_members(y) + i;

		assert_string_equal(btf__name_by_offset(a, m->name_off),
				    btf__name_by_offset(b, n->name_off));
		assert_int_equal(m->offset, n->offset);
		same_type(a, (int)m->type, b, (int)n->type);
	}
	for (int i = 0; btf_is_enum(x) && i < btf_vlen(x); i++) {
		assert_string_equal(btf__name_by_offset(a, btf_enum(x)[i].name_off),
				    btf__name_by_offset(b, btf_enum(y)[i].name_off));
		assert_int_equal(btf_enum(x)[i].val, btf_enum(y)[i].val);
	}
}

static void flavours_stand_for_the_name(void **state)
{
	static const struct {
		const char *name;
		size_t n;
	} cases[] = {{"file", 4},      {"file___old", 4}, {"a___b___c", 5}, {"", 0},
		     {"___", 3},       {"a___", 4},       {"a____b", 6},    {"_a__b", 5},
		     {"maple___x", 5}, {"long", 4},       {"x___y", 1},     {"___y", 4}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(kernel_types_name_bytes(cases[i].name), cases[i].n);
}

/* struct outer with an array of structs, a bit field, a pointer, a union without a name and an
 * enum, among types that nobody wants. */
static struct btf *small(void)
{
	struct btf *b = btf__new_empty();
	int other, number, inner, array, pointer, named, onion, sort, constant;

	assert_non_null(b);
	other = btf__add_struct(b, "unwanted", 8);
	number = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
	btf__add_func_proto(b, number);
	inner = btf__add_struct(b, "inner", 16);
	btf__add_field(b, "x", number, 32, 0);
	array = btf__add_array(b, number, inner, 3);
	named = btf__add_typedef(b, "three_t", array);
	sort = btf__add_enum(b, "sort", 4);
	btf__add_enum_value(b, "SORT_A", 7);
	btf__add_enum_value(b, "SORT_B", -1);
	onion = btf__add_union(b, NULL, 8);
	btf__add_field(b, "u", number, 0, 0);
	pointer = btf__add_ptr(b, other);
	constant = btf__add_const(b, sort);
	btf__add_struct(b, "outer", 72);
	btf__add_field(b, "a", named, 0, 0);
	btf__add_field(b, "bits", number, 387, 5);
	btf__add_field(b, "next", pointer, 448, 0);
	btf__add_field(b, NULL, onion, 512, 0);
	btf__add_field(b, "kind", constant, 544, 0);
	btf__add_struct(b, "outer", 4); /* another file's of the same name */
	btf__add_struct(b, "wide", 8);
	btf__add_field(b, "odd", 0xffff, 0, 0); /* a type that is not there */
	btf__add_enum64(b, "wide", 8, false);
	btf__add_enum64_value(b, "WIDE", 1ULL << 40);
	return b;
}

static void picks_what_is_named(void **state)
{
	static const char *const names[] = {"outer___flavour", "wide", "sort", "nowhere"};
	struct btf *from = small(), *got = pick(from, names, ARRAY_SIZE(names));
	int wide, n_outer = 0;

	(void)state;
	same_type(from, btf__find_by_name(from, "outer"), got, btf__find_by_name(got, "outer"));
	same_type(from, btf__find_by_name(from, "sort"), got, btf__find_by_name(got, "sort"));
	wide = btf__find_by_name_kind(got, "wide", BTF_KIND_ENUM64);
	assert_int_equal(btf_enum64_value(btf_enum64(btf__type_by_id(got, (uint32_t)wide))),
			 1ULL << 40);
	assert_true(btf__find_by_name(got, "unwanted") < 0);
	for (uint32_t id = 1; id < btf__type_cnt(got); id++)
		n_outer += !strcmp("outer",
				   btf__name_by_offset(got, btf__type_by_id(got, id)->name_off));
	assert_int_equal(n_outer, 2);
	btf__free(from);
	btf__free(got);
}

static void refuses_what_is_damaged(void **state)
{
	static const char *const names[] = {"outer"}, *const nowhere[] = {"nowhere"};
	struct btf *from = small();
	uint32_t bytes;
	const uint8_t *raw = btf__raw_data(from, &bytes);
	uint8_t *copy = malloc(bytes);

	(void)state;
	assert_non_null(copy);
	assert_int_equal(kernel_types_pick(raw, bytes, nowhere, 1), -ENOENT);
	for (uint32_t n = 0; n < bytes; n++) {
		uint8_t *part = malloc(n ? n : 1);

		assert_non_null(part);
		memcpy(part, raw, n);
		assert_int_equal(kernel_types_pick(part, n, names, 1), -EBADMSG);
		free(part);
	}
	/* Whatever is in the place of a word: some answer. */
	for (uint32_t at = 0; at + 4 <= bytes; at += 4) {
		static const uint32_t words[] = {0, 1, 0x7fffffff, 0xffffffff, 0x04ffffff};

		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			int fd;

			memcpy(copy, raw, bytes);
			memcpy(copy + at, &words[i], 4);
			fd = kernel_types_pick(copy, bytes, names, 1);
			if (fd >= 0)
				close(fd);
		}
	}
	free(copy);
	btf__free(from);
}

/* This kernel's, as libbpf reads it. */
static void this_kernel(void **state)
{
	static const char *const names[] = {"task_struct", "mm_struct", "pid", "bpf_func_id"};
	struct btf *from = btf__load_vmlinux_btf(), *got;

	(void)state;
	if (!from)
		skip_because("no BTF of the kernel here");
	got = pick(from, names, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		same_type(from, btf__find_by_name(from, names[i]), got,
			  btf__find_by_name(got, names[i]));
	assert_true(btf__type_cnt(got) < btf__type_cnt(from) / 10);
	btf__free(from);
	btf__free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flavours_stand_for_the_name),
		cmocka_unit_test(picks_what_is_named),
		cmocka_unit_test(refuses_what_is_damaged),
		cmocka_unit_test(this_kernel),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
