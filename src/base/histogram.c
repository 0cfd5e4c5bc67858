/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/histogram.h>

void histogram_add(struct histogram *h, uint64_t value, uint64_t count)
{
	if (!count)
		return;
	h->slots[log_linear_slot(value)] += count;
	h->n += count;
	h->sum += value * count;
	h->max = MAX(h->max, value);
}

void histogram_merge(struct histogram *h, const struct histogram *other)
{
	for (size_t i = 0; i < LOG_LINEAR_SLOTS; i++)
		h->slots[i] += other->slots[i];
	h->n += other->n;
	h->sum += other->sum;
	h->max = MAX(h->max, other->max);
}

static uint64_t slot_low(uint32_t slot)
{
	uint32_t shift;

	if (slot < LOG_LINEAR_SUB)
		return slot;
	shift = slot / LOG_LINEAR_SUB - 1;
	return (uint64_t)(LOG_LINEAR_SUB + slot % LOG_LINEAR_SUB) << shift;
}

void histogram_slot_range(uint32_t slot, uint64_t *ret_low, uint64_t *ret_high)
{
	*ret_low = slot_low(slot);
	*ret_high = slot + 1 < LOG_LINEAR_SLOTS ? slot_low(slot + 1) : UINT64_MAX;
}

uint64_t histogram_percentile(const struct histogram *h, double percent)
{
	double exact = (double)h->n * percent / 100;
	uint64_t rank = (uint64_t)exact, seen = 0;

	rank += (double)rank < exact || !rank;
	for (uint32_t i = 0; i < LOG_LINEAR_SLOTS && h->n; i++) {
		uint64_t low, high;

		seen += h->slots[i];
		if (seen < rank)
			continue;
		histogram_slot_range(i, &low, &high);
		if (high == UINT64_MAX)
			return h->max;
		return MIN(low + (high - low) / 2, h->max);
	}
	return h->max;
}

uint64_t histogram_mean(const struct histogram *h)
{
	return h->n ? h->sum / h->n : 0;
}

size_t histogram_bars(const struct histogram *h, struct histogram_bar *bars, size_t most)
{
	uint32_t first = 0, last = LOG_LINEAR_SLOTS, join = 1;
	size_t n = 0;

	while (first < LOG_LINEAR_SLOTS && !h->slots[first])
		first++;
	if (first == LOG_LINEAR_SLOTS || !most)
		return 0;
	while (!h->slots[last - 1])
		last--;
	/* Beyond a power of two for each bar they go on doubling: 16, 32… slots. */
	while ((last - 1) / join - first / join + 1 > most)
		join *= 2;
	for (uint32_t at = first / join * join; at < last; at += join) {
		struct histogram_bar bar = {0};
		uint64_t unused;

		histogram_slot_range(at, &bar.low, &unused);
		histogram_slot_range(MIN(at + join, (uint32_t)LOG_LINEAR_SLOTS) - 1, &unused,
				     &bar.high);
		for (uint32_t i = at; i < at + join && i < LOG_LINEAR_SLOTS; i++)
			bar.count += h->slots[i];
		bars[n++] = bar;
	}
	return n;
}

void histogram_put_bar(struct strbuf *out, uint64_t count, uint64_t most, unsigned width,
		       bool ascii)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned parts = ascii ? 1 : 8;
	uint64_t filled = most ? (uint64_t)((unsigned __int128)count * width * parts / most) : 0;
	unsigned columns = 0;

	if (count && !filled)
		filled = 1;
	for (; filled >= parts && columns < width; filled -= parts, columns++)
		strbuf_puts(out, ascii ? "#" : "█");
	if (filled && columns < width) {
		strbuf_puts(out, eighths[filled]);
		columns++;
	}
	for (; columns < width; columns++)
		strbuf_putc(out, ' ');
}
