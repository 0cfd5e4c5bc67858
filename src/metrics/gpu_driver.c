/* SPDX-License-Identifier: BSD-2-Clause */
/* How the GPUs' driver answers its callers. */
#include "readings.h"

enum { CALLS_JUDGED = 20 };

static void without(struct histogram *h, const struct histogram *before)
{
	h->n = 0;
	for (size_t i = 0; i < LOG_LINEAR_SLOTS; i++) {
		h->slots[i] -= MIN(h->slots[i], before->slots[i]);
		h->n += h->slots[i];
	}
}

/* The maximum is the session's: of what came in this time the last slot says no more. */
static double p99_ms(const struct interval *i, double *ret_calls)
{
	struct histogram h = i->now->driver.latency;

	without(&h, &i->before->driver.latency);
	*ret_calls = (double)h.n;
	return h.n ? (double)histogram_percentile(&h, 99) / 1e6 : NAN;
}

static double change(uint64_t now, uint64_t before)
{
	return (double)(now - MIN(now, before));
}

/* While an engine serves, its memory was taken long ago. */
static void put_allocs(const struct interval *i, struct use_report *r, struct use_row *row)
{
	const struct driver_calls *now = &i->now->driver, *before = &i->before->driver;
	double rate = change(now->allocs, before->allocs) / i->seconds;
	struct use_value *v = row_put(r, row, "gpu_allocs_per_second", rate);

	if (v && !(engine_running(i->now->engine) > 0))
		v->not_judged = "no engine is known to serve requests";
	if (v && rate <= 0)
		v->text = "";
}

void gpu_driver_row(const struct interval *i, struct use_report *r)
{
	const struct driver_calls *now = &i->now->driver, *before = &i->before->driver;
	struct use_row *row = row_add(r, "gpu", "GPU driver", "");
	double calls, p99;
	struct use_value *v;

	if (!i->now->has_driver || !i->before->has_driver) {
		row_lacks(r, row, "gpu_calls_p99_ms",
			  i->config->driver_reason ? i->config->driver_reason : "not readable");
		return;
	}
	p99 = p99_ms(i, &calls);
	row_put(r, row, "gpu_calls_per_second", calls / i->seconds);
	put_allocs(i, r, row);
	v = row_put_or(r, row, "gpu_calls_p99_ms", p99, "no call ended in this time");
	if (v && calls < CALLS_JUDGED)
		v->not_judged = report_text(r, "fewer than %d calls ended", CALLS_JUDGED);
	row_put(r, row, "gpu_no_memory", change(now->no_memory, before->no_memory));
	row_put(r, row, "gpu_calls_failed_per_second",
		change(now->failed, before->failed) / i->seconds);
	if (now->missed > before->missed)
		report_note(r, "%.0f calls of the GPU's driver were not counted",
			    change(now->missed, before->missed));
}
