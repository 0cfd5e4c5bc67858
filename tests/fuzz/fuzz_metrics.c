/* SPDX-License-Identifier: BSD-2-Clause */
/* A page of metrics, with quantiles of whatever histograms it has. */
#include "fuzz.h"

#include "../../src/metrics/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	static struct engine_page page;
	const struct engine_histogram none = {0};

	if (engine_parse((const char *)v, n, &page))
		return 0;
	for (size_t i = 0; i < ENGINE_TIMES; i++) {
		double q = engine_quantile(&page.times[i], &none, 0.99);

		fuzz_touch((const char *)&q, sizeof(q));
	}
	return 0;
}
