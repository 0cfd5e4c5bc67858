/* SPDX-License-Identifier: BSD-2-Clause */
#include "flame_profile.h"

static char *drawn(const struct profile *p, const struct flame_options *o)
{
	return WRITTEN(flame_svg(p, o, out));
}

static size_t count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void assert_has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("not in the picture: %s", what);
}

/* The part between two marks, in memory of its own. */
static char *between(const char *text, const char *before, const char *after)
{
	const char *start = strstr(text, before), *end;

	assert_non_null(start);
	start += strlen(before);
	end = strstr(start, after);
	assert_non_null(end);
	return strndup(start, (size_t)(end - start));
}

static void test_quality(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL;

	(void)state;
	add_stack(p, 0, "app", "main|f", 2500000000, 1250);
	p->events.v[0].freq_hz = 499;
	p->losses.lost = 12345;
	p->losses.truncated = 7;
	p->losses.throttled = 1;
	p->duration_ns = 3 * NSEC_PER_SEC;
	p->command = strdup("./app --fast & <loud>");
	assert_int_equal(profile_note(p, "no <PMU>"), 0);
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1});
	assert_has(text, ">cpu-clock at 499 Hz · 1,250 samples = 2.50 s in 3.00 s · lost 12,345"
			 " · truncated 7 · throttled 1</text>");
	assert_has(text, "<title>./app --fast &amp; &lt;loud&gt;</title>");
	assert_has(text, ">no &lt;PMU&gt;</text>");
	assert_has(text, "<title>f · 1,250 samples · 100.00 %</title>");
}

static void test_static_view(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL, *icicle = NULL;

	(void)state;
	add_stack(p, 0, "", "main|left|k:deep", 1, 1);
	add_stack(p, 0, "", "main|right", 3, 3);
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1, .title = "T"});
	/* 1176 px are four samples; rows of 17 px, the root is the fourth */
	assert_has(text, "<rect x=\"12\" y=\"113\" width=\"1175.50\" height=\"16\" class=\"root\"");
	assert_has(text, "<rect x=\"12\" y=\"79\" width=\"293.50\" height=\"16\" class=\"n");
	assert_has(text, "<rect x=\"306\" y=\"79\" width=\"881.50\" height=\"16\" class=\"n");
	assert_has(text, "<rect x=\"12\" y=\"62\" width=\"293.50\" height=\"16\" class=\"k");
	assert_has(text, ">right</text>");
	assert_has(text, ">native</text>");
	assert_has(text, ">kernel</text>");
	assert_null(strstr(text, ">inlined</text>"));
	icicle = drawn(p, &(struct flame_options){.event = -1, .title = "T", .icicle = true});
	assert_has(icicle,
		   "<rect x=\"12\" y=\"62\" width=\"1175.50\" height=\"16\" class=\"root\"");
	assert_has(icicle, "<rect x=\"306\" y=\"96\" width=\"881.50\" height=\"16\" class=\"n");
}

/* 20,000 leaves of a twentieth of a px: not one by one, not left out, and all in the data. */
static void test_narrow(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char stack[32];

		snprintf(stack, sizeof(stack), "main|f%d", i);
		add_stack(p, 0, "", stack, 1, 1);
	}
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1});
	assert_int_equal(count_of(text, "<g><title>"), 2);
	assert_has(text, "width=\"1175.50\" height=\"16\" class=\"rest\"/>");
	assert_has(text, "\"nodes\":20002");
	assert_has(text, "\"f19999\"");
}

static void test_many_wide(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL;
	size_t frames;

	(void)state;
	/* A thousand stacks of 25 calls, all of them wide enough: 25,000 rectangles are too many */
	for (int i = 0; i < 1000; i++) {
		char stack[256], *at = stack;

		at += sprintf(at, "%03d", i);
		for (int k = 0; k < 24; k++)
			at += sprintf(at, "|f%d", k);
		add_stack(p, 0, "", stack, i % 7 ? 10 : 20, 1);
	}
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1});
	frames = count_of(text, "<g><title>");
	assert_in_range(frames, 1000, 6000);
	assert_has(text, "\"nodes\":25001");
}

static void test_data(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL, *tree = NULL;

	(void)state;
	add_stack(p, 0, "", "a|b", 20, 2);
	add_stack(p, 0, "", "a|k:c", 10, 1);
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1});
	assert_has(text, "\"scale\":10,\"per_sample\":10");
	assert_has(text, "\"names\":[\"a\",\"b\",\"c\"],\"kinds\":\"nnk\"");
	/* root own 0; a; b (1 * 4 + own), own 2; c (2 * 4 + up + own), up 1, own 1; each + 63 */
	tree = between(text, "text/plain\">", "<");
	assert_string_equal(tree, "??DAJ@@");
}

static uint64_t next_number(const char **at)
{
	uint64_t v = 0, digit;
	unsigned shift = 0;

	do {
		assert_in_range(**at, 63, 126);
		digit = (uint64_t)(*(*at)++ - 63);
		v |= (digit & 31) << shift;
		shift += 5;
	} while (digit & 32);
	return v;
}

static char *name_at(const char *json, uint64_t number)
{
	const char *at = strstr(json, "\"names\":[\"");

	assert_non_null(at);
	at += strlen("\"names\":[\"");
	while (number--) {
		at = strstr(at, "\",\"");
		assert_non_null(at);
		at += 3;
	}
	return strndup(at, strcspn(at, "\""));
}

/* The data, read back by other means, is the tree: weights without a common measure too. */
static void test_data_read_back(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL, *encoded = NULL;
	struct flame_tree t;
	unsigned seed = 3;
	uint32_t depth = 0;
	const char *at;

	(void)state;
	for (int i = 0; i < 300; i++) {
		char stack[128] = "";

		for (int k = 0; k < 1 + rand_r(&seed) % 9; k++)
			sprintf(stack + strlen(stack), "%sf%d", k ? "|" : "", rand_r(&seed) % 40);
		add_stack(p, 0, "", stack, 1ULL << rand_r(&seed) % 50 | 1, 1 + i % 3);
	}
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1});
	assert_has(text, "\"scale\":1,\"per_sample\":0");
	encoded = between(text, "text/plain\">", "<");
	at = encoded;
	assert_int_equal(flame_layout(p, 0, false, true, &t), 0);
	assert_int_equal(next_number(&at), 0);
	assert_int_equal(next_number(&at), 0);
	for (size_t i = 1; i < t.nodes.n; i++) {
		uint64_t head = next_number(&at), count = t.nodes.v[i].count;
		CLEANUP(freep) char *name = name_at(text, head >> 2);

		depth += 1 - (head & 2 ? (uint32_t)next_number(&at) : 0);
		for (uint32_t c = t.nodes.v[i].first_child; c != UINT32_MAX;
		     c = t.nodes.v[c].next_sibling)
			count -= t.nodes.v[c].count;
		assert_string_equal(name, node_name(p, &t.nodes.v[i]));
		assert_int_equal(depth, t.nodes.v[i].depth);
		assert_int_equal(head & 1 ? next_number(&at) : 0, t.nodes.v[i].self);
		assert_int_equal(head & 1 ? next_number(&at) : 0, count);
	}
	assert_int_equal(*at, 0);
	flame_tree_release(&t);
}

static void test_hostile(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL;

	(void)state;
	add_stack(p, 0, "<b>&\"", "</script><script>|]]>|--><!--|\x1b[0m|a\xff|\xef\xbf\xbf", 1, 1);
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1, .title = "</title>\n\x01"});
	assert_has(text, "<title>&lt;/title&gt;\\n\\x01</title>");
	assert_has(text, ">&lt;b&gt;&amp;&quot;</text>");
	assert_has(text, ">]]&gt;</text>");
	assert_has(text, ">\\x1b[0m</text>");
	assert_has(text, ">a\\xff</text>");
	assert_has(text, ">\xef\xbf\xbd</text>");
	/* The sections that we open are the only ones that end: styles, data, script */
	assert_int_equal(count_of(text, "]]>"), 3);
	assert_int_equal(count_of(text, "</script>"), 3);
	assert_int_equal(count_of(text, "<script"), 4); /* one in the data, harmless within CDATA */
	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n' || *c == '\t');
}

static void test_long_name(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *text = NULL;
	char name[5001];

	(void)state;
	for (size_t i = 0; i < 5000; i += 2)
		memcpy(name + i, "é", 2);
	name[5000] = 0;
	add_stack(p, 0, "", name, 1, 1);
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1});
	/* Whole in the data, cut between characters elsewhere */
	assert_int_equal(count_of(text, name), 1);
	assert_has(text, "é…</text>");
	assert_has(text, "é… · 1 sample · 100.00 %</title>");
}

static void test_events(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(freep) char *all = NULL, *one = NULL;
	uint32_t event;

	(void)state;
	assert_int_equal(profile_add_event(p, "faults", "count", &event), 0);
	add_stack(p, 0, "", "f", 10, 1);
	add_stack(p, event, "", "g", 3, 3);
	name_frames(p);
	all = drawn(p, &(struct flame_options){.event = -1});
	one = drawn(p, &(struct flame_options){.event = 1});
	assert_int_equal(count_of(all, "<script type=\"text/plain\">"), 2);
	assert_has(all, "class=\"subtitle\" x=\"12\" y=\"46\">cpu-clock · 1 sample");
	assert_int_equal(count_of(one, "<script type=\"text/plain\">"), 1);
	assert_has(one, "class=\"subtitle\" x=\"12\" y=\"46\">faults · 3 samples");
	assert_null(strstr(one, "cpu-clock"));
}

/* Neither the order of the samples nor a second run changes a byte. */
static void test_same_bytes(void **state)
{
	static const char *const stacks[] = {"main|a|x", "main|b|y", "z", "main|b", "main|a|x|y"};
	CLEANUP(freep) char *first = NULL;

	(void)state;
	for (size_t turn = 0; turn < 10; turn++) {
		CLEANUP(profile_freep) struct profile *p = new_profile();
		CLEANUP(freep) char *text = NULL;

		for (size_t i = 0; i < 5; i++) {
			size_t k = turn < 5 ? (i + turn) % 5 : (turn - i) % 5;

			add_stack(p, 0, k % 2 ? "odd" : "even", stacks[k], 10 + k, 1);
		}
		name_frames(p);
		text = drawn(p, &(struct flame_options){.event = -1});
		if (!first)
			first = TAKE_PTR(text);
		else
			assert_string_equal(text, first);
	}
}

static void test_nothing(void **state)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(freep) char *text = NULL;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	name_frames(p);
	text = drawn(p, &(struct flame_options){.event = -1});
	assert_has(text, ">no samples</text>");
	assert_has(text, "<title>Flame Graph</title>");
	assert_has(text, ">0 samples · lost 0 · truncated 0</text>");
}

static void test_full_disk(void **state)
{
	CLEANUP(profile_freep) struct profile *p = new_profile();
	CLEANUP(fclosep) FILE *full = fopen("/dev/full", "w");

	(void)state;
	add_stack(p, 0, "", "f", 10, 1);
	name_frames(p);
	assert_non_null(full);
	assert_int_equal(flame_svg(p, &(struct flame_options){.event = -1}, full), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quality), cmocka_unit_test(test_static_view),
		cmocka_unit_test(test_narrow),  cmocka_unit_test(test_many_wide),
		cmocka_unit_test(test_data),    cmocka_unit_test(test_data_read_back),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_events),  cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_full_disk),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
