/* SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <inspect/json_out.h>
#include <locale.h>
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

/* What the calls of `body` on j write. */
#define WRITTEN(is_compact, body)                                                                  \
	({                                                                                         \
		char *text_ = NULL;                                                                \
		size_t n_;                                                                         \
		FILE *file_ = open_memstream(&text_, &n_);                                         \
		struct json_out j;                                                                 \
		assert_non_null(file_);                                                            \
		json_init(&j, file_, is_compact);                                                  \
		body;                                                                              \
		assert_int_equal(json_finish(&j), 0);                                              \
		fclose(file_);                                                                     \
		text_;                                                                             \
	})

static void write_document(struct json_out *j)
{
	json_object(j);
	json_key(j, "name");
	json_string(j, "a\"b");
	json_key(j, "rows");
	json_array(j);
	json_u64(j, UINT64_MAX);
	json_i64(j, INT64_MIN);
	json_array(j);
	json_end_array(j);
	json_object(j);
	json_end_object(j);
	json_end_array(j);
	json_key(j, "ok");
	json_bool(j, true);
	json_key(j, "none");
	json_null(j);
	json_end_object(j);
}

static void test_layout(void **state UNUSED)
{
	char *text = WRITTEN(false, write_document(&j));

	assert_string_equal(text, "{\n"
				  "  \"name\": \"a\\\"b\",\n"
				  "  \"rows\": [\n"
				  "    18446744073709551615,\n"
				  "    -9223372036854775808,\n"
				  "    [],\n"
				  "    {}\n"
				  "  ],\n"
				  "  \"ok\": true,\n"
				  "  \"none\": null\n"
				  "}\n");
	free(text);
}

static void test_lines(void **state UNUSED)
{
	char *text = WRITTEN(true, {
		write_document(&j);
		assert_int_equal(json_finish(&j), 0);
		json_array(&j);
		json_u64(&j, 1);
		json_u64(&j, 2);
		json_end_array(&j);
	});

	assert_string_equal(text,
			    "{\"name\":\"a\\\"b\",\"rows\":[18446744073709551615,"
			    "-9223372036854775808,[],{}],\"ok\":true,\"none\":null}\n[1,2]\n");
	free(text);
}

static void check_double(double v, const char *wanted)
{
	char *text = WRITTEN(true, json_double(&j, v));

	text[strlen(text) - 1] = '\0';
	assert_string_equal(text, wanted);
	free(text);
}

static void test_doubles(void **state UNUSED)
{
	check_double(0.1, "0.1");
	check_double(1.0 / 3, "0.3333333333333333");
	check_double(0.1 + 0.2, "0.30000000000000004");
	check_double(100, "100");
	check_double(-2.5, "-2.5");
	check_double(1e300, "1e+300");
	check_double(DBL_MAX, "1.7976931348623157e+308");
	check_double(4.9406564584124654e-324, "5e-324");
	check_double(NAN, "null");
	check_double(-INFINITY, "null");
	/* The comma of a locale never shows; where the machine has none, this tests nothing new. */
	if (setlocale(LC_NUMERIC, "de_DE.UTF-8"))
		check_double(0.5, "0.5");
	setlocale(LC_NUMERIC, "C");
}

static void check_string(const char *s, size_t n, const char *wanted)
{
	char *text = WRITTEN(true, json_string_n(&j, s, n));

	text[strlen(text) - 1] = '\0';
	assert_string_equal(text, wanted);
	free(text);
}

#define CHECK(s, wanted) check_string(s, sizeof(s) - 1, wanted)

static void test_escapes(void **state UNUSED)
{
	CHECK("", "\"\"");
	CHECK("a\\\"/\n\t\r\b\x1b\0\x7f", "\"a\\\\\\\"/\\n\\t\\r\\u0008\\u001b\\u0000\\u007f\"");
	CHECK("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5",
	      "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5\"");
	CHECK("\xc2\x9b[2J", "\"\\u009b[2J\"");
	CHECK("\xe2\x80\xae", "\"\\u202e\"");
	CHECK("\xe2\x80\xa8", "\"\\u2028\"");
	CHECK("vector<int>", "\"vector<int>\"");
	CHECK("]]></script><!-- -->", "\"]]\\u003e\\u003c/script>\\u003c!-- --\\u003e\"");
	/* Lone and cut sequences, an overlong '/', a surrogate, above U+10FFFF: a mark a byte. */
	CHECK("\xff", "\"\xef\xbf\xbd\"");
	CHECK("a\xe2\x82", "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
	CHECK("\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	CHECK("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	CHECK("\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* Every string of one and two bytes and many longer ones, read back by Python: valid JSON, and
 * the same text as Python's own decoding with a U+FFFD for each bad byte. */
static void test_python_agrees(void **state UNUSED)
{
	static const char script[] =
		"import json,sys\n"
		"def mark(e):\n"
		"  return ('\\ufffd' * 1, e.start + 1)\n"
		"import codecs; codecs.register_error('each', mark)\n"
		"n = 0\n"
		"for line in sys.stdin.buffer:\n"
		"  hexed, text = line.split(b' ', 1)\n"
		"  want = bytes.fromhex(hexed.decode()[1:]).decode('utf-8', 'each')\n"
		"  got = json.loads(text.decode('utf-8'))\n"
		"  assert got == want, (hexed, got, want)\n"
		"  n += 1\n"
		"sys.exit(0 if n == 70000 else 3)\n";
	char path[] = "/tmp/inspect-json-XXXXXX", command[64];
	int fd = mkstemp(path);
	FILE *python;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, sizeof(script) - 1), sizeof(script) - 1);
	close(fd);
	snprintf(command, sizeof(command), "python3 %s", path);
	python = popen(command, "w");
	assert_non_null(python);
	srand48(7);
	for (unsigned i = 0; i < 70000; i++) {
		unsigned char s[8] = {(unsigned char)i, (unsigned char)(i >> 8)};
		size_t n = i < 256 ? 1 : 2;

		if (i >= 65536) {
			n = 1 + i % sizeof(s);
			for (size_t k = 0; k < n; k++) /* mostly lead and trail bytes */
				s[k] = (unsigned char)(lrand48() % 4 ? 0x80 | lrand48()
								     : lrand48());
		}
		putc('x', python);
		for (size_t k = 0; k < n; k++)
			fprintf(python, "%02x", s[k]);
		putc(' ', python);
		json_write_escaped(python, (const char *)s, n);
		putc('\n', python);
	}
	assert_int_equal(pclose(python), 0);
	unlink(path);
}

static void test_write_failure(void **state UNUSED)
{
	CLEANUP(fclosep) FILE *full = fopen("/dev/full", "w");
	struct json_out j;

	assert_non_null(full);
	json_init(&j, full, false);
	json_u64(&j, 1);
	assert_int_equal(json_finish(&j), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),        cmocka_unit_test(test_lines),
		cmocka_unit_test(test_doubles),       cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_python_agrees), cmocka_unit_test(test_write_failure),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
