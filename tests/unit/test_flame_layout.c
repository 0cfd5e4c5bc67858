/* SPDX-License-Identifier: BSD-2-Clause */
#include "flame_profile.h"

#define NONE UINT32_MAX

/* "depth name start+total self count", a node a line */
static void assert_tree(const struct profile *p, bool reverse, bool by_comm, const char *want)
{
	struct flame_tree t;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(flame_layout(p, 0, reverse, by_comm, &t), 0);
	for (size_t i = 0; i < t.nodes.n; i++) {
		const struct flame_node *n = &t.nodes.v[i];

		fprintf(out, "%u %s %lu+%lu %lu %lu\n", n->depth, node_name(p, n), n->start,
			n->total, n->self, n->count);
	}
	fclose(out);
	assert_string_equal(text, want);
	free(text);
	flame_tree_release(&t);
}

static void test_merge(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();

	(void)state;
	add_stack(p, 0, "", "main|b|x", 30, 3);
	add_stack(p, 0, "", "main|a", 20, 2);
	add_stack(p, 0, "", "main|b", 10, 1);
	add_stack(p, 0, "", "main|b|x|y", 5, 1);
	add_stack(p, 0, "", "", 7, 1);
	name_frames(p);
	assert_tree(p, false, false,
		    "0 all 0+72 7 8\n"
		    "1 main 0+65 0 7\n"
		    "2 a 0+20 20 2\n"
		    "2 b 20+45 10 5\n"
		    "3 x 20+35 30 4\n"
		    "4 y 20+5 5 1\n");
	assert_tree(p, true, false,
		    "0 all 0+72 7 8\n"
		    "1 a 0+20 0 2\n"
		    "2 main 0+20 20 2\n"
		    "1 b 20+10 0 1\n"
		    "2 main 20+10 10 1\n"
		    "1 x 30+30 0 3\n"
		    "2 b 30+30 0 3\n"
		    "3 main 30+30 30 3\n"
		    "1 y 60+5 0 1\n"
		    "2 x 60+5 0 1\n"
		    "3 b 60+5 0 1\n"
		    "4 main 60+5 5 1\n");
}

static void test_names_and_kinds(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();

	(void)state;
	/* One name in two kinds is two functions, native first; a name comes before a longer one */
	add_stack(p, 0, "", "k:f", 1, 1);
	add_stack(p, 0, "", "ff", 2, 1);
	add_stack(p, 0, "", "f", 4, 1);
	add_stack(p, 0, "", "\xff", 8, 1);
	name_frames(p);
	assert_tree(p, false, false,
		    "0 all 0+15 0 4\n"
		    "1 f 0+4 4 1\n"
		    "1 f 4+1 1 1\n"
		    "1 ff 5+2 2 1\n"
		    "1 \xff 7+8 8 1\n");
}

static void test_comm(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();

	(void)state;
	add_stack(p, 0, "worker", "main|f", 10, 1);
	add_stack(p, 0, "main", "main|f", 20, 1);
	add_stack(p, 0, "", "main|f", 40, 1);
	add_stack(p, 0, "idle", "", 80, 1);
	name_frames(p);
	/* A thread called like a function is not that function */
	assert_tree(p, false, true,
		    "0 all 0+150 0 4\n"
		    "1 main 0+40 0 1\n"
		    "2 f 0+40 40 1\n"
		    "1 idle 40+80 80 1\n"
		    "1 main 120+20 0 1\n"
		    "2 main 120+20 0 1\n"
		    "3 f 120+20 20 1\n"
		    "1 worker 140+10 0 1\n"
		    "2 main 140+10 0 1\n"
		    "3 f 140+10 10 1\n");
	assert_tree(p, true, true,
		    "0 all 0+150 0 4\n"
		    "1 f 0+70 0 3\n"
		    "2 main 0+70 40 3\n"
		    "3 main 0+20 20 1\n"
		    "3 worker 20+10 10 1\n"
		    "1 idle 70+80 80 1\n");
}

static void test_inlined(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	uint32_t inner;

	(void)state;
	add_stack(p, 0, "", "main|outer", 10, 1);
	add_frame(p, "i:inner", 7);
	name_frames(p);
	/* The frame of `outer` (1) becomes two functions, outermost first */
	inner = p->at.v[2].symbol;
	p->at.n = 2;
	assert_int_equal(array_push(&p->at, (struct symbol_at){.symbol = inner}), 0);
	p->first.v[2] = 3;
	assert_tree(p, false, false,
		    "0 all 0+10 0 1\n"
		    "1 main 0+10 0 1\n"
		    "2 outer 0+10 0 1\n"
		    "3 inner 0+10 10 1\n");
}

static void test_nothing(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();

	(void)state;
	add_stack(p, 1, "x", "main", 10, 1); /* another event */
	name_frames(p);
	assert_tree(p, false, true, "0 all 0+0 0 0\n");
}

static void test_overflow(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	struct flame_tree t;

	(void)state;
	add_stack(p, 0, "", "a", UINT64_MAX - 1, 1);
	add_stack(p, 0, "", "b", 5, 1);
	add_stack(p, 0, "", "c", 5, UINT64_MAX);
	name_frames(p);
	assert_int_equal(flame_layout(p, 0, false, false, &t), 0);
	assert_true(t.nodes.v[0].total == UINT64_MAX);
	assert_true(t.nodes.v[0].count == UINT64_MAX);
	assert_true(t.nodes.v[2].start == UINT64_MAX - 1);
	assert_true(t.nodes.v[3].start == UINT64_MAX);
	flame_tree_release(&t);
}

static void test_deep(void **state)
{
	enum { DEPTH = 200000 };
	CLEANUP(profile_freep) struct profile *p = new_profile();
	struct flame_tree t;
	uint32_t frame, stack = STACK_ROOT, thread;

	(void)state;
	frame = add_frame(p, "recurse", 7);
	for (int i = 0; i < DEPTH; i++)
		assert_int_equal(profile_stack(p, stack, frame, &stack), 0);
	assert_int_equal(profile_thread(p, 1, 1, "", 0, &thread), 0);
	/* Many equal stacks and their callers: the sort descends through all of them */
	for (uint32_t s = stack; s > stack - 20; s--)
		assert_int_equal(profile_add(p, s, thread, 0, 1, 1), 0);
	name_frames(p);
	assert_int_equal(flame_layout(p, 0, false, false, &t), 0);
	assert_int_equal(t.depth, DEPTH);
	assert_int_equal(t.nodes.n, DEPTH + 1);
	assert_int_equal(t.nodes.v[1].total, 20);
	assert_int_equal(t.nodes.v[DEPTH].self, 1);
	flame_tree_release(&t);
}

enum { ROWS = 3000, CALLS = 12, FUNCTIONS = 5 };

/* Every third stack is a start of the one before it. */
static void random_stack(unsigned *seed, int i, char *text)
{
	size_t n = 1 + (size_t)rand_r(seed) % CALLS;

	if (i % 3 == 1) {
		text[strlen(text) / 4 * 2 + 1] = 0;
		return;
	}
	for (size_t k = 0; k < n; k++) {
		text[2 * k] = (char)('a' + rand_r(seed) % FUNCTIONS);
		text[2 * k + 1] = '|';
	}
	text[2 * n - 1] = 0;
}

/* "a|b|c" of a node */
static void path_of(const struct profile *p, const struct flame_tree *t, uint32_t i, char *ret)
{
	char *at = ret + 2 * t->nodes.v[i].depth;

	*--at = 0;
	for (; i; i = t->nodes.v[i].parent) {
		*--at = node_name(p, &t->nodes.v[i])[0];
		if (at > ret)
			*--at = '|';
	}
}

static void assert_sums(const struct profile *p, const struct flame_tree *t, char (*stacks)[64],
			const uint64_t *weights)
{
	for (uint32_t i = 1; i < t->nodes.n; i++) {
		const struct flame_node *n = &t->nodes.v[i];
		uint64_t total = 0, self = 0, next = n->start;
		const char *last = "";
		char path[64];

		path_of(p, t, i, path);
		for (size_t k = 0; k < ROWS; k++) {
			size_t length = strlen(path);

			self += str_eq(stacks[k], path) ? weights[k] : 0;
			if (str_starts(stacks[k], path) && strchr("|", stacks[k][length]))
				total += weights[k];
		}
		assert_int_equal(n->total, total);
		assert_int_equal(n->self, self);
		for (uint32_t c = n->first_child; c != NONE; c = t->nodes.v[c].next_sibling) {
			assert_int_equal(t->nodes.v[c].start, next);
			assert_true(strcmp(last, node_name(p, &t->nodes.v[c])) < 0);
			last = node_name(p, &t->nodes.v[c]);
			next += t->nodes.v[c].total;
		}
		assert_int_equal(next + n->self, n->start + n->total);
	}
}

/* Against sums made stack by stack; rows in another order give the same tree. */
static void test_random(void **state)
{
	static char stacks[ROWS][64];
	static uint64_t weights[ROWS];
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(profile_freep) struct profile *q = new_profile();
	struct flame_tree t, u;
	unsigned seed = 17;
	char text[64] = "a";

	(void)state;
	for (int i = 0; i < ROWS; i++) {
		random_stack(&seed, i, text);
		strcpy(stacks[i], text);
		weights[i] = (uint64_t)rand_r(&seed) % 1000;
		add_stack(p, 0, "", text, weights[i], 1);
	}
	for (int i = ROWS - 1; i >= 0; i--)
		add_stack(q, 0, "", stacks[i], weights[i], 1);
	name_frames(p);
	name_frames(q);
	assert_int_equal(flame_layout(p, 0, false, false, &t), 0);
	assert_int_equal(flame_layout(q, 0, false, false, &u), 0);
	assert_true(t.nodes.n > 3000);
	assert_sums(p, &t, stacks, weights);
	assert_int_equal(t.nodes.n, u.nodes.n);
	for (size_t i = 0; i < t.nodes.n; i++) {
		assert_string_equal(node_name(p, &t.nodes.v[i]), node_name(q, &u.nodes.v[i]));
		assert_int_equal(t.nodes.v[i].start, u.nodes.v[i].start);
		assert_int_equal(t.nodes.v[i].total, u.nodes.v[i].total);
	}
	flame_tree_release(&t);
	flame_tree_release(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),   cmocka_unit_test(test_names_and_kinds),
		cmocka_unit_test(test_comm),    cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_deep),    cmocka_unit_test(test_random),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
