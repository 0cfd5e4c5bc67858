/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log-linear histograms as BPF fills them (lib/log_linear.h): a percentile is at most 3.2 % off,
 * whatever the values. Storage is the caller's; all zero is empty.
 */
#ifndef INSPECT_HISTOGRAM_H
#define INSPECT_HISTOGRAM_H

#include <inspect/strbuf.h>
#include <lib/log_linear.h>

struct histogram {
	uint64_t slots[LOG_LINEAR_SLOTS];
	uint64_t n, sum;
	uint64_t max; /* exact */
};

void histogram_add(struct histogram *h, uint64_t value, uint64_t count);
void histogram_merge(struct histogram *h, const struct histogram *other);

/* The values that a slot holds: from *ret_low up to below *ret_high (UINT64_MAX: no end). */
void histogram_slot_range(uint32_t slot, uint64_t *ret_low, uint64_t *ret_high);

/* The value that `percent` % of all values do not exceed, never above max. 0 when empty. */
uint64_t histogram_percentile(const struct histogram *h, double percent);

/* Sum over n; 0 when empty. */
uint64_t histogram_mean(const struct histogram *h);

/* One line of a drawing: values from low up to below high. */
struct histogram_bar {
	uint64_t low, high, count;
};

/*
 * Neighbouring slots joined, so that at most `most` bars (at least 1) cover all values: whole
 * powers of two, or halves, quarters, eighths or sixteenths of them, as fine as fits. Empty bars
 * in between are given, those at the ends are not. Returns how many of bars[most] are filled.
 */
size_t histogram_bars(const struct histogram *h, struct histogram_bar *bars, size_t most);

/* `width` columns, of which count/most are filled, in eighths of a column (ASCII: whole '#'). What
 * is not 0 shows at least the smallest mark. */
void histogram_put_bar(struct strbuf *out, uint64_t count, uint64_t most, unsigned width,
		       bool ascii);

#endif
