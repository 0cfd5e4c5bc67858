/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/json_in.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct parsed {
	struct arena arena;
	const struct json *root;
	struct diag d;
	int err;
};

static struct parsed parse(const char *text)
{
	struct parsed p = {0};

	p.err = json_parse(text, strlen(text), "x.json", &p.arena, &p.root, &p.d);
	return p;
}

static void parsed_release(struct parsed *p)
{
	arena_release(&p->arena);
	diag_release(&p->d);
}

static void test_values(void **state UNUSED)
{
	CLEANUP(parsed_release)
	struct parsed p =
		parse(" {\"a\": [1, -2.5e3, 0.125, true, false, null],\n"
		      "\"b\": {\"c\": \"\\u00e9\\ud83d\\ude00\\n\\\"\\/x\"}, \"e\": []}\n");
	const struct json *a = json_find(p.root, "a")->first;

	assert_int_equal(p.err, 0);
	assert_true(a->type == JSON_NUMBER && a->number == 1);
	a = a->next;
	assert_true(a->number == -2500);
	a = a->next;
	assert_true(a->number == 0.125);
	a = a->next;
	assert_true(a->type == JSON_BOOL && a->b);
	a = a->next;
	assert_true(a->type == JSON_BOOL && !a->b);
	a = a->next;
	assert_true(a->type == JSON_NULL && !a->next);
	assert_string_equal(json_find_string(json_find(p.root, "b"), "c"), "é😀\n\"/x");
	assert_null(json_find(p.root, "e")->first);
	assert_null(json_find(p.root, "z"));
	assert_null(json_find(a, "z"));
	assert_null(json_find(NULL, "z"));
	assert_null(json_find_string(p.root, "a"));
}

static void test_bad_texts(void **state UNUSED)
{
	static const char *const texts[] = {
		"",
		" ",
		"{",
		"[",
		"[1",
		"[1,",
		"[1,]",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{a:1}",
		"\"",
		"\"\\",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u0000\"",
		"\"\\ud800\"",
		"\"\\udc00\"",
		"\"\\ud800\\u0041\"",
		"\"a\nb\"",
		"01",
		"1.",
		"1e",
		"-",
		".5",
		"+1",
		"1e999",
		"nul",
		"truex",
		"1 2",
		"NaN",
		"Infinity",
		"[1}",
		"{\"a\":1]",
		"\"\\u12g4\"",
		"1e+",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(parsed_release) struct parsed p = parse(texts[i]);

		if (p.err != -EBADMSG)
			fail_msg("'%s' is taken (%d)", texts[i], p.err);
		assert_non_null(strstr(p.d.what, "x.json: line 1"));
		assert_null(p.root);
	}
}

static void test_line(void **state UNUSED)
{
	CLEANUP(parsed_release) struct parsed p = parse("{\n\"a\": 1,\n\"b\": x\n}");

	assert_non_null(strstr(p.d.what, "line 3"));
}

/* All of it is bounded: 63 levels are read, a million are refused and not recursed into. */
static void test_depth(void **state UNUSED)
{
	char *text = malloc(1000001);

	assert_non_null(text);
	memset(text, '[', 1000000);
	text[1000000] = 0;
	{
		CLEANUP(parsed_release) struct parsed p = parse(text);

		assert_int_equal(p.err, -EBADMSG);
		assert_non_null(strstr(p.d.what, "nested too deeply"));
	}
	memset(text + 63, ']', 63);
	text[126] = 0;
	{
		CLEANUP(parsed_release) struct parsed p = parse(text);

		assert_int_equal(p.err, 0);
	}
	free(text);
}

/* Every cut of a text, and every byte of it changed: no crash, no value from half a text. */
static void test_every_cut(void **state UNUSED)
{
	static const char text[] = "{\"a\":[1,2.5,\"x\\u00e9\"],\"b\":{\"c\":null,\"d\":true}}";

	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		CLEANUP(parsed_release) struct parsed p = {0};

		p.err = json_parse(text, n, "cut", &p.arena, &p.root, &p.d);
		assert_int_equal(p.err, -EBADMSG);
	}
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		for (int byte = 0; byte < 256; byte += 7) {
			CLEANUP(parsed_release) struct parsed p = {0};
			char changed[sizeof(text)];

			memcpy(changed, text, sizeof(text));
			changed[i] = (char)byte;
			p.err = json_parse(changed, sizeof(text) - 1, "changed", &p.arena, &p.root,
					   &p.d);
			assert_true(p.err == 0 || p.err == -EBADMSG);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),    cmocka_unit_test(test_bad_texts),
		cmocka_unit_test(test_line),      cmocka_unit_test(test_depth),
		cmocka_unit_test(test_every_cut),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
