/* SPDX-License-Identifier: BSD-2-Clause */
#include "dummy_events.h"

static bool is_dummy(const struct event_desc *e)
{
	return e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config == PERF_COUNT_SW_DUMMY;
}

static bool has_rows(const struct profile *p, uint32_t event)
{
	for (size_t i = 0; i < p->rows.n; i++)
		if (p->rows.v[i].event == event)
			return true;
	return false;
}

static void drop_event(struct profile *p, uint32_t event)
{
	free(p->events.v[event].name);
	free(p->events.v[event].unit);
	p->events.n--;
	memmove(&p->events.v[event], &p->events.v[event + 1],
		(p->events.n - event) * sizeof(*p->events.v));
	for (size_t i = 0; i < p->rows.n; i++)
		p->rows.v[i].event -= p->rows.v[i].event > event;
	hashmap_release(&p->row_map);
}

void dummy_events_drop(struct profile *p, const struct event_table *table)
{
	size_t n = MIN(table->events.n, p->events.n);

	/* From the end, so that the numbers still to come stay. The last one left is kept. */
	for (size_t i = n; i-- > 0 && p->events.n > 1;)
		if (is_dummy(&table->events.v[i]) && !has_rows(p, (uint32_t)i))
			drop_event(p, (uint32_t)i);
}
