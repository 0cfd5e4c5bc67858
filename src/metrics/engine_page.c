/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of each engine's metrics, exactly as it has them. */
#include "engine.h"

#include <inspect/prometheus.h>

enum { GROUPS_MAX = 256 };

#define KV_MOST 1.01 /* a share, with what rounding adds */

/* Over the label sets. Ranks of one model say all the same; those of other data-parallel ranks, and
 * other models, add up. */
enum combine { SUM, MAXIMUM, RANKS };

static const struct {
	const char *engine, *name;
	enum engine_value value;
	enum combine combine;
	const char *label, *is; /* only samples with it; NULL all */
} names[] = {
	{"vLLM", "vllm:num_requests_running", ENGINE_RUNNING, SUM, NULL, NULL},
	{"vLLM", "vllm:num_requests_waiting", ENGINE_WAITING, SUM, NULL, NULL},
	{"vLLM", "vllm:num_requests_swapped", ENGINE_WAITING, SUM, NULL, NULL},
	{"vLLM", "vllm:num_requests_waiting_by_reason", ENGINE_WAITING_ELSE, SUM, NULL, NULL},
	{"vLLM", "vllm:kv_cache_usage_perc", ENGINE_KV, MAXIMUM, NULL, NULL},
	{"vLLM", "vllm:gpu_cache_usage_perc", ENGINE_KV, MAXIMUM, NULL, NULL},
	{"vLLM", "vllm:num_preemptions", ENGINE_PREEMPTED, SUM, NULL, NULL},
	{"vLLM", "vllm:request_success", ENGINE_FAILED, SUM, "finished_reason", "abort"},
	{"vLLM", "vllm:request_success", ENGINE_FAILED, SUM, "finished_reason", "error"},
	{"SGLang", "sglang:num_running_reqs", ENGINE_RUNNING, RANKS, "priority", ""},
	{"SGLang", "sglang:num_queue_reqs", ENGINE_WAITING, RANKS, "priority", ""},
	{"SGLang", "sglang:token_usage", ENGINE_KV, MAXIMUM, NULL, NULL},
	{"SGLang", "sglang:num_retracted_requests", ENGINE_PREEMPTED, RANKS, "priority", ""},
	{"SGLang", "sglang:num_aborted_requests", ENGINE_FAILED, SUM, NULL, NULL},
	{"TGI", "tgi_batch_current_size", ENGINE_RUNNING, SUM, NULL, NULL},
	{"TGI", "tgi_queue_size", ENGINE_WAITING, SUM, NULL, NULL},
	{"TGI", "tgi_request_failure", ENGINE_FAILED, SUM, NULL, NULL},
	{"Triton", "nv_trt_llm_request_metrics", ENGINE_RUNNING, SUM, "request_type", "scheduled"},
	{"Triton", "nv_trt_llm_request_metrics", ENGINE_RUNNING_ELSE, SUM, "request_type",
	 "active"},
	{"Triton", "nv_trt_llm_request_metrics", ENGINE_WAITING, SUM, "request_type", "waiting"},
	{"Triton", "nv_inference_pending_request_count", ENGINE_WAITING_ELSE, SUM, NULL, NULL},
	{"Triton", "nv_trt_llm_kv_cache_block_metrics", ENGINE_KV, MAXIMUM, "kv_cache_block_type",
	 "fraction"},
	{"Triton", "nv_trt_llm_kv_cache_block_metrics", ENGINE_KV_USED, SUM, "kv_cache_block_type",
	 "used"},
	{"Triton", "nv_trt_llm_kv_cache_block_metrics", ENGINE_KV_ALL, SUM, "kv_cache_block_type",
	 "max"},
	{"Triton", "nv_inference_request_failure", ENGINE_FAILED, SUM, NULL, NULL},
	{"TensorRT-LLM", "trtllm_num_requests_running", ENGINE_RUNNING, SUM, NULL, NULL},
	{"TensorRT-LLM", "trtllm_num_requests_waiting", ENGINE_WAITING, SUM, NULL, NULL},
	{"TensorRT-LLM", "trtllm_kv_cache_utilization", ENGINE_KV, MAXIMUM, NULL, NULL},
	{"TensorRT-LLM", "trtllm_request_error", ENGINE_FAILED, SUM, NULL, NULL},
	{"llama.cpp", "llamacpp:kv_cache_usage_ratio", ENGINE_KV, MAXIMUM, NULL, NULL},
	{"llama.cpp", "llamacpp:requests_processing", ENGINE_RUNNING, SUM, NULL, NULL},
	{"llama.cpp", "llamacpp:requests_deferred", ENGINE_WAITING, SUM, NULL, NULL},
};

/* _bucket follows. Of several names of one time the first that is there counts: they are of the
 * same requests, with other buckets. */
static const struct {
	const char *name;
	enum engine_time time;
	double unit; /* seconds */
} times[] = {
	{"vllm:time_to_first_token_seconds", ENGINE_FIRST_TOKEN, 1},
	{"vllm:inter_token_latency_seconds", ENGINE_PER_TOKEN, 1},
	{"vllm:time_per_output_token_seconds", ENGINE_PER_TOKEN, 1},
	{"vllm:request_queue_time_seconds", ENGINE_QUEUE, 1},
	{"vllm:request_prefill_time_seconds", ENGINE_PREFILL, 1},
	{"vllm:request_decode_time_seconds", ENGINE_DECODE, 1},
	{"sglang:time_to_first_token_seconds", ENGINE_FIRST_TOKEN, 1},
	{"sglang:inter_token_latency_seconds", ENGINE_PER_TOKEN, 1},
	{"sglang:time_per_output_token_seconds", ENGINE_PER_TOKEN, 1},
	{"sglang:queue_time_seconds", ENGINE_QUEUE, 1},
	{"tgi_request_queue_duration", ENGINE_QUEUE, 1},
	{"tgi_request_mean_time_per_token_duration", ENGINE_PER_TOKEN, 1},
	{"nv_inference_first_response_histogram_ms", ENGINE_FIRST_TOKEN, 1e-3},
	{"trtllm_time_to_first_token_seconds", ENGINE_FIRST_TOKEN, 1},
	{"trtllm_time_per_output_token_seconds", ENGINE_PER_TOKEN, 1},
	{"trtllm_request_queue_time_seconds", ENGINE_QUEUE, 1},
	{"trtllm_request_prefill_time_seconds", ENGINE_PREFILL, 1},
	{"trtllm_request_decode_time_seconds", ENGINE_DECODE, 1},
};

/* What one group of ranks says. */
struct group {
	size_t name;
	uint64_t who;
	double v;
};

struct parse {
	struct engine_page *page;
	struct group groups[GROUPS_MAX];
	size_t n_groups;
};

/* `_total` may follow: what is a counter in the newer format ends in it. */
static bool is_name(const struct prometheus_sample *s, const char *name)
{
	static const char total[] = "_total";
	size_t n = strlen(name), more = sizeof(total) - 1;

	if (s->name_bytes == n + more && memcmp(s->name + n, total, more) == 0)
		return memcmp(s->name, name, n) == 0;
	return prometheus_is_name(s, name);
}

static bool has_label(const struct prometheus_sample *s, const char *label, const char *is)
{
	char value[64] = "";

	/* "": a label that is empty, or not there. */
	return !label ||
	       (prometheus_label(s, label, value, sizeof(value)) ? str_eq(value, is) : !*is);
}

/* FNV-1a over the labels that tell groups of ranks apart. */
static uint64_t group_of(const struct prometheus_sample *s)
{
	static const char *const labels[] = {"dp_rank", "model_name", "engine_type"};
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		char value[256] = "";

		prometheus_label(s, labels[i], value, sizeof(value));
		for (const char *c = value;; c++) {
			hash = (hash ^ (unsigned char)*c) * 1099511628211u;
			if (!*c)
				break;
		}
	}
	return hash;
}

/* What the sample adds to the sum over the groups: the excess over what another rank has said. */
static double excess(struct parse *p, size_t name, const struct prometheus_sample *s)
{
	struct group g = {.name = name, .who = group_of(s), .v = s->v};

	for (size_t i = 0; i < p->n_groups; i++) {
		struct group *at = &p->groups[i];
		double before = at->v;

		if (at->name != name || at->who != g.who)
			continue;
		at->v = fmax(before, s->v);
		return at->v - before;
	}
	if (p->n_groups < GROUPS_MAX)
		p->groups[p->n_groups++] = g;
	return s->v;
}

static void add_value(struct parse *p, size_t i, const struct prometheus_sample *s)
{
	double *at = &p->page->values[names[i].value];

	p->page->engine = names[i].engine;
	if (!isfinite(s->v) || s->v < 0 || (names[i].value == ENGINE_KV && s->v > KV_MOST)) {
		p->page->odd[names[i].value] = s->v;
		p->page->is_odd[names[i].value] = true;
		return;
	}
	if (names[i].combine == MAXIMUM)
		*at = fmax(*at, s->v);
	else
		*at = (isnan(*at) ? 0 : *at) + (names[i].combine == RANKS ? excess(p, i, s) : s->v);
}

/* Kept by bound, in order. Label sets are added up. */
static void add_bucket(struct engine_histogram *h, double bound, double count)
{
	size_t i = 0;

	if (isnan(bound) || bound < 0 || !isfinite(count) || count < 0)
		return;
	while (i < h->n && h->bound[i] < bound)
		i++;
	if (i < h->n && h->bound[i] == bound) {
		h->count[i] += count;
		return;
	}
	if (h->n == ENGINE_BUCKETS_MAX)
		return;
	memmove(h->bound + i + 1, h->bound + i, (h->n - i) * sizeof(h->bound[0]));
	memmove(h->count + i + 1, h->count + i, (h->n - i) * sizeof(h->count[0]));
	h->bound[i] = bound;
	h->count[i] = count;
	h->n++;
}

static void take_time(struct engine_histogram *h, size_t from, double bound, double count)
{
	if (h->n && from > h->from)
		return;
	if (from < h->from)
		h->n = 0;
	h->from = from;
	add_bucket(h, bound * times[from].unit, count);
}

static void take_bucket(struct engine_page *p, const struct prometheus_sample *s)
{
	static const char suffix[] = "_bucket";
	struct prometheus_sample base = *s;
	char bound[64];

	if (s->name_bytes < sizeof(suffix) ||
	    memcmp(s->name + s->name_bytes - (sizeof(suffix) - 1), suffix, sizeof(suffix) - 1) != 0)
		return;
	base.name_bytes -= sizeof(suffix) - 1;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (prometheus_is_name(&base, times[i].name) &&
		    prometheus_label(s, "le", bound, sizeof(bound)))
			take_time(&p->times[times[i].time], i, strtod(bound, NULL), s->v);
}

static void take_sample(void *ctx, const struct prometheus_sample *s)
{
	struct parse *p = ctx;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (is_name(s, names[i].name) && has_label(s, names[i].label, names[i].is))
			add_value(p, i, s);
	take_bucket(p->page, s);
}

static void take_else(struct engine_page *p, enum engine_value of, enum engine_value other)
{
	if (!isnan(p->values[of]))
		return;
	p->values[of] = p->values[other];
	if (!p->is_odd[other])
		return;
	p->is_odd[of] = true;
	p->odd[of] = p->odd[other];
}

int engine_parse(const char *text, size_t n, struct engine_page *ret)
{
	struct parse p = {.page = ret};
	double *v = ret->values;
	int bad;

	*ret = (struct engine_page){0};
	for (size_t i = 0; i < ENGINE_VALUES; i++)
		ret->values[i] = NAN;
	bad = prometheus_parse(text, n, take_sample, &p);
	take_else(ret, ENGINE_RUNNING, ENGINE_RUNNING_ELSE);
	take_else(ret, ENGINE_WAITING, ENGINE_WAITING_ELSE);
	if (isnan(v[ENGINE_KV]) && v[ENGINE_KV_ALL] > 0)
		v[ENGINE_KV] = v[ENGINE_KV_USED] / v[ENGINE_KV_ALL];
	if (ret->is_odd[ENGINE_KV_USED] || ret->is_odd[ENGINE_KV_ALL]) {
		ret->is_odd[ENGINE_KV] = true;
		ret->odd[ENGINE_KV] = NAN;
	}
	ret->bad_lines = MAX(bad, 0);
	return bad < 0 ? bad : 0;
}

/* How many came up to that bucket. */
static double grown(const struct engine_histogram *now, const struct engine_histogram *before,
		    size_t i)
{
	for (size_t k = 0; k < before->n; k++)
		if (before->bound[k] == now->bound[i])
			return fmax(now->count[i] - before->count[k], 0);
	return now->count[i];
}

double engine_quantile(const struct engine_histogram *now, const struct engine_histogram *before,
		       double quantile)
{
	double total = now->n ? grown(now, before, now->n - 1) : 0, rank = quantile * total;
	double below = 0, from = 0;

	if (total <= 0)
		return NAN;
	for (size_t i = 0; i < now->n; i++) {
		double count = grown(now, before, i);

		/* Beyond the last bound nothing is known but that. */
		if (isinf(now->bound[i]))
			return from;
		if (count >= rank && count > below)
			return from + (now->bound[i] - from) * (rank - below) / (count - below);
		below = fmax(below, count);
		from = now->bound[i];
	}
	return from;
}
