/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of each engine (tests/data/engines), pages that are none, and quantiles. */
#include "../../src/metrics/engine.h"

#include <inspect/procfs.h>
#include <inspect/prometheus.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct engine_page load(const char *name)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct engine_page page;
	char path[256];

	snprintf(path, sizeof(path), "tests/data/engines/%s.prom", name);
	assert_int_equal(file_read(path, 1 << 20, &text), 0);
	assert_int_equal(engine_parse(strbuf_str(&text), text.n, &page), 0);
	assert_int_equal(page.bad_lines, 0);
	return page;
}

static void assert_near(double got, double want)
{
	if (isnan(want))
		assert_true(isnan(got));
	else if (!(fabs(got - want) < 1e-9))
		fail_msg("%g is not %g", got, want);
}

static void test_engines(void **state UNUSED)
{
	static const struct {
		const char *file, *engine;
		double running, waiting, kv, preempted, failed;
	} rows[] = {
		{"vllm", "vLLM", 32, 40, 0.9375, 120, 8},
		{"vllm_old", "vLLM", 3, 2, 0.5, 4, NAN},
		{"vllm_both", "vLLM", 3, 0, 0.5, 4, NAN},
		{"sglang", "SGLang", 12, 30, 0.97, 15, 7},
		{"sglang_ranks", "SGLang", 17, 32, 0.97, 16, NAN},
		{"tgi", "TGI", 4, 9, NAN, NAN, 5},
		{"triton", "Triton", 6, 5, 0.4875, NAN, 1},
		{"triton_old", "Triton", 11, 77, 0.25, NAN, NAN},
		{"trtllm", "TensorRT-LLM", 2, 1, 0.62, NAN, 3},
		{"llamacpp", "llama.cpp", 1, 6, NAN, NAN, NAN},
		{"llamacpp_old", "llama.cpp", 1, 6, 0.42, NAN, NAN},
		{"llamacpp_quoted", "llama.cpp", 1, 6, NAN, NAN, NAN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct engine_page p = load(rows[i].file);

		assert_string_equal(p.engine, rows[i].engine);
		assert_near(p.values[ENGINE_RUNNING], rows[i].running);
		assert_near(p.values[ENGINE_WAITING], rows[i].waiting);
		assert_near(p.values[ENGINE_KV], rows[i].kv);
		assert_near(p.values[ENGINE_PREEMPTED], rows[i].preempted);
		assert_near(p.values[ENGINE_FAILED], rows[i].failed);
	}
}

/* The median of each time by each engine, in its own buckets and units; NAN: it has none. */
static void test_times(void **state UNUSED)
{
	static const struct {
		const char *file;
		double median[ENGINE_TIMES];
	} rows[] = {
		{"vllm", {0.1, 0.0175, 1.5 + 0.5 * 50 / 150, 0.4, 7.5}},
		{"vllm_both", {NAN, 0.0375, NAN, NAN, NAN}},
		{"sglang", {0.3, 0.0175, 0.35, NAN, NAN}},
		{"sglang_ranks", {NAN, 0.0175, NAN, NAN, NAN}},
		{"tgi",
		 {NAN, 0.0001 * 1.25 * 129.746337890625, 0.0001 * 1.25 * 656.8408355712890625, NAN,
		  NAN}},
		{"triton", {0.1 + 0.4 / 4, NAN, NAN, NAN, NAN}},
		{"trtllm", {0.015, 0.0175, 0.15, 0.0375, 0.65}},
		{"llamacpp", {NAN, NAN, NAN, NAN, NAN}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct engine_histogram none = {0};
		struct engine_page p = load(rows[i].file);

		for (size_t k = 0; k < ENGINE_TIMES; k++)
			assert_near(engine_quantile(&p.times[k], &none, 0.5), rows[i].median[k]);
	}
}

/* Worked by hand as PromQL's histogram_quantile does it. */
static void test_quantiles(void **state UNUSED)
{
	struct engine_page p = load("vllm");
	struct engine_histogram none = {0}, before = p.times[ENGINE_FIRST_TOKEN];

	const size_t at = 7; /* the bucket up to 0.1, after which come 0.25 and 0.5 */

	/* 200 in all: the 100th is at the end of that bucket, the 198th in the second behind it. */
	assert_near(engine_quantile(&p.times[ENGINE_FIRST_TOKEN], &none, 0.5), 0.1);
	assert_near(engine_quantile(&p.times[ENGINE_FIRST_TOKEN], &none, 0.99),
		    0.25 + 0.25 * 38 / 40);
	assert_near(engine_quantile(&p.times[ENGINE_PER_TOKEN], &none, 0.5), 0.0175);
	/* Nothing new. */
	assert_near(engine_quantile(&p.times[ENGINE_FIRST_TOKEN], &before, 0.5), NAN);
	/* Only the 40 of that second bucket are new. */
	for (size_t i = at + 2; i < before.n; i++)
		before.count[i] = 160;
	assert_near(engine_quantile(&p.times[ENGINE_FIRST_TOKEN], &before, 0.5), 0.375);
	/* Beyond the last bound nothing is known but that. */
	before = p.times[ENGINE_FIRST_TOKEN];
	p.times[ENGINE_FIRST_TOKEN].count[before.n - 1] += 10;
	assert_near(engine_quantile(&p.times[ENGINE_FIRST_TOKEN], &before, 0.5), 2560);
	/* An engine that began anew. */
	assert_near(engine_quantile(&before, &p.times[ENGINE_FIRST_TOKEN], 0.5), NAN);
}

static struct engine_page parse(const char *text)
{
	struct engine_page p;

	assert_int_equal(engine_parse(text, strlen(text), &p), 0);
	return p;
}

static void test_hostile(void **state UNUSED)
{
	struct engine_page p = parse("vllm:num_requests_running NaN\n"
				     "vllm:num_requests_running -5\n"
				     "vllm:num_requests_running +Inf\n"
				     "vllm:num_requests_waiting{a=\"}\\\"\",b=\"\"} 3 1700000000\n"
				     "vllm:num_requests_waiting{ 9\n"
				     "vllm:kv_cache_usage_perc\n"
				     "= 3\n"
				     "\r\n"
				     "vllm:num_preemptions 0x10z\n"
				     "  vllm:num_preemptions_total\t{}\t2\r\n");

	assert_near(p.values[ENGINE_RUNNING], NAN);
	assert_true(p.is_odd[ENGINE_RUNNING]);
	assert_false(p.is_odd[ENGINE_WAITING]);
	assert_near(p.values[ENGINE_WAITING], 3);
	assert_near(p.values[ENGINE_PREEMPTED], 2);
	assert_int_equal(p.bad_lines, 4);
	/* It is that engine, though it has no value. */
	p = parse("nv_trt_llm_request_metrics{request_type=\"active\"} NaN\n"
		  "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\"} NaN\n");
	assert_string_equal(p.engine, "Triton");
	assert_true(p.is_odd[ENGINE_RUNNING] && p.is_odd[ENGINE_KV] && !p.is_odd[ENGINE_WAITING]);
	p = parse("vllm:kv_cache_usage_perc 93.5\n");
	assert_true(isnan(p.values[ENGINE_KV]) && p.is_odd[ENGINE_KV]);
	p = parse("<html><body>It works!</body></html>");
	assert_null(p.engine);
	p = parse("");
	assert_null(p.engine);
	p = parse("\"llamacpp:requests_processing 4\\nllamacpp:requests_deferred 1");
	assert_near(p.values[ENGINE_RUNNING], 4);
	assert_near(p.values[ENGINE_WAITING], 1);
}

/* More buckets and lines than anybody has. */
static void test_bounds(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct engine_page p;

	for (int i = 0; i < 1000; i++)
		strbuf_printf(&text, "vllm:time_to_first_token_seconds_bucket{le=\"%d\"} %d\n", i,
			      i);
	assert_int_equal(engine_parse(strbuf_str(&text), text.n, &p), 0);
	assert_int_equal(p.times[ENGINE_FIRST_TOKEN].n, ENGINE_BUCKETS_MAX);
	strbuf_clear(&text);
	for (int i = 0; i <= PROMETHEUS_LINES_MAX; i++)
		strbuf_puts(&text, "#\n");
	assert_int_equal(engine_parse(strbuf_str(&text), text.n, &p), -E2BIG);
}

static void take(void *ctx, const struct prometheus_sample *s)
{
	char *value = ctx;

	prometheus_label(s, "le", value, 8);
}

static void test_labels(void **state UNUSED)
{
	static const struct {
		const char *line, *le;
	} rows[] = {
		{"a{le=\"0.5\"} 1", "0.5"},
		{"a{model=\"le\", le = \"1\" ,} 1", "1"},
		{"a{file=\"\\\"le=\\\"9\",le=\"2\"} 1", "2"},
		{"a{le=\"123456789\"} 1", "1234567"},
		{"a{tle=\"3\"} 1", ""},
		{"a{} 1", ""},
		{"a{le} 1", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char value[8] = "";

		assert_int_equal(prometheus_parse(rows[i].line, strlen(rows[i].line), take, value),
				 0);
		assert_string_equal(str_eq(rows[i].le, "") ? "" : value, rows[i].le);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_engines),   cmocka_unit_test(test_times),
		cmocka_unit_test(test_quantiles), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_bounds),    cmocka_unit_test(test_labels),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
