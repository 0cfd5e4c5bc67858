/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/profile.h>
#include <inspect/waits.h>

/* What is above goes into sites without thread and waker, or to a label for all others. */
enum { PARTS_MAX = 1 << 20, LABELS_MAX = 8192, THROTTLED_MAX = 256 };

void waits_release(struct waits *w)
{
	for (size_t i = 0; i < w->labels.n; i++)
		free(w->labels.v[i].text);
	array_release(&w->labels);
	array_release(&w->sites);
	array_release(&w->parts);
	array_release(&w->threads);
	array_release(&w->loops);
	array_release(&w->throttled);
	hashmap_release(&w->label_map);
	hashmap_release(&w->site_map);
	hashmap_release(&w->part_map);
	*w = (struct waits){0};
}

int waits_label(struct waits *w, const char *text, enum wait_reason reason, uint32_t *ret)
{
	struct wait_label l = {.reason = reason};
	uint64_t hash;
	uint32_t at, i;
	int err;

	if (w->labels.n >= LABELS_MAX)
		text = "other";
	hash = hash_bytes(text, strlen(text)) + reason;
	hashmap_each_candidate(&w->label_map, hash, at, i) {
		if (w->labels.v[i].reason == reason && str_eq(w->labels.v[i].text, text)) {
			*ret = i;
			return 0;
		}
	}
	l.text = strdup(text);
	err = l.text ? array_push(&w->labels, l) : -ENOMEM;
	if (err) {
		free(l.text);
		return err;
	}
	*ret = (uint32_t)w->labels.n - 1;
	return hashmap_insert(&w->label_map, hash, *ret);
}

static int find_site(struct waits *w, uint32_t pid, uint64_t stack_id, uint32_t label,
		     uint32_t *ret)
{
	uint64_t hash = hash_u64(stack_id ^ (uint64_t)label << 32 ^ pid);
	struct wait_site s = {.pid = pid,
			      .label = label,
			      .stack_id = stack_id,
			      .stack = UINT32_MAX,
			      .reason = w->labels.v[label].reason};
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&w->site_map, hash, at, i) {
		const struct wait_site *have = &w->sites.v[i];

		if (have->stack_id == stack_id && have->label == label && have->pid == pid) {
			*ret = i;
			return 0;
		}
	}
	err = array_push(&w->sites, s);
	if (err)
		return err;
	*ret = (uint32_t)w->sites.n - 1;
	return hashmap_insert(&w->site_map, hash, *ret);
}

static int add_part(struct waits *w, const struct wait_part *p)
{
	uint64_t hash = hash_u64((uint64_t)p->site << 32 | p->serial) + p->waker;
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&w->part_map, hash, at, i) {
		struct wait_part *have = &w->parts.v[i];

		if (have->site == p->site && have->serial == p->serial && have->waker == p->waker) {
			have->wait_ns += p->wait_ns;
			have->queue_ns += p->queue_ns;
			have->count += p->count;
			return 0;
		}
	}
	if (w->parts.n >= PARTS_MAX) {
		w->parts_left_out += p->wait_ns + p->queue_ns;
		return 0;
	}
	err = array_push(&w->parts, *p);
	return err ? err : hashmap_insert(&w->part_map, hash, (uint32_t)w->parts.n - 1);
}

static int note_throttled(struct waits *w, uint32_t pid)
{
	for (size_t i = 0; i < w->throttled.n; i++)
		if (w->throttled.v[i] == pid)
			return 0;
	return w->throttled.n < THROTTLED_MAX ? array_push(&w->throttled, pid) : 0;
}

int waits_add(struct waits *w, const struct offcpu_key *key, const struct offcpu_row *row,
	      uint32_t label, uint32_t *ret_site)
{
	struct wait_part part = {.serial = key->thread,
				 .waker = key->waker,
				 .wait_ns = row->wait_ns,
				 .queue_ns = row->queue_ns,
				 .count = row->count};
	struct wait_site *s;
	int err = find_site(w, row->pid, key->stack, label, &part.site);

	if (!err && key->how == OFFCPU_THROTTLED)
		err = note_throttled(w, row->pid);
	if (err)
		return err;
	s = &w->sites.v[part.site];
	s->wait_ns += row->wait_ns;
	s->queue_ns += row->queue_ns;
	s->count += row->count;
	s->max_ns = MAX(s->max_ns, row->max_ns);
	s->errors += row->errors;
	s->bytes += row->bytes;
	s->io += row->io;
	if (key->flags & OFFCPU_OPEN) {
		s->open_ns += row->wait_ns;
		s->n_open += (uint32_t)row->count;
	}
	if (key->flags & OFFCPU_BEFORE) {
		s->before_ns += row->wait_ns;
		s->n_before += (uint32_t)row->count;
	}
	for (size_t i = 0; i < OFFCPU_BUCKETS; i++)
		s->buckets[i] += row->buckets[i];
	*ret_site = part.site;
	return add_part(w, &part);
}

/* --- event loops ------------------------------------------------------------------------------ */

static int by_length(const void *a, const void *b)
{
	const struct wait_gap *x = a, *y = b;

	if (x->gap_ns != y->gap_ns)
		return x->gap_ns < y->gap_ns ? 1 : -1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int by_longest_gap(const void *a, const void *b)
{
	const struct wait_loop *x = a, *y = b;

	if (x->gaps.max != y->gaps.max)
		return x->gaps.max < y->gaps.max ? 1 : -1;
	return (x->serial > y->serial) - (x->serial < y->serial);
}

int waits_add_loop(struct waits *w, uint32_t serial, const struct offcpu_loop *loop)
{
	struct wait_loop l = {.serial = serial,
			      .pid = loop->pid,
			      .tid = loop->tid,
			      .waits = loop->waits,
			      .polls = loop->polls,
			      .gaps = {.n = loop->n, .sum = loop->sum, .max = loop->max}};
	char buffer[SYSCALL_NAME_BYTES];

	snprintf(l.call, sizeof(l.call), "%s",
		 syscall_name(SYSCALL_NATIVE, (uint32_t)loop->nr, buffer));
	memcpy(l.gaps.slots, loop->slots, sizeof(l.gaps.slots));
	for (size_t i = 0; i < OFFCPU_LOOP_GAPS; i++) {
		const struct offcpu_gap *g = &loop->longest[i];

		if (g->gap_ns)
			l.longest[l.n_longest++] = (struct wait_gap){.begin_ns = g->begin_ns,
								     .gap_ns = g->gap_ns,
								     .ran_ns = g->ran_ns,
								     .stack_id = g->stack,
								     .stack = UINT32_MAX,
								     .waited = g->waited,
								     .open = g->is_open};
	}
	if (l.n_longest)
		qsort(l.longest, l.n_longest, sizeof(*l.longest), by_length);
	return array_push(&w->loops, l);
}

/* --- at the end ------------------------------------------------------------------------------- */

static int by_serial(const void *a, const void *b)
{
	const struct wait_thread *x = a, *y = b;

	return (x->serial > y->serial) - (x->serial < y->serial);
}

static struct wait_thread *find_thread(const struct waits *w, uint32_t serial)
{
	struct wait_thread key = {.serial = serial};

	return w->threads.n ? bsearch(&key, w->threads.v, w->threads.n, sizeof(key), by_serial)
			    : NULL;
}

const struct wait_thread *waits_thread(const struct waits *w, uint32_t serial)
{
	return find_thread(w, serial);
}

static int by_site_and_thread(const void *a, const void *b)
{
	const struct wait_part *x = a, *y = b;

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return (x->serial > y->serial) - (x->serial < y->serial);
}

int waits_finish(struct waits *w, const struct offcpu_ended *threads, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = array_push(&w->threads, (struct wait_thread){.totals = threads[i].totals,
								   .serial = threads[i].serial});
	if (err)
		return err;
	if (w->threads.n)
		qsort(w->threads.v, w->threads.n, sizeof(*w->threads.v), by_serial);
	if (w->loops.n)
		qsort(w->loops.v, w->loops.n, sizeof(*w->loops.v), by_longest_gap);
	/* Their order no longer matters to the map of parts: all have come. */
	if (w->parts.n)
		qsort(w->parts.v, w->parts.n, sizeof(*w->parts.v), by_site_and_thread);
	for (size_t i = 0; i < w->parts.n; i++) {
		const struct wait_part *p = &w->parts.v[i];

		w->sites.v[p->site].n_threads +=
			!i || p[-1].site != p->site || p[-1].serial != p->serial;
	}
	return 0;
}

static bool is_waker(const struct profile *p, const struct symbol *s)
{
	return str_starts(intern_str(&p->strings, s->name), "[woken by ");
}

/* By the names of the functions on the site's stack: the kernel's, and of locks the program's. */
static int classify_site(struct wait_site *s, const struct profile *p, struct symbol_path *path)
{
	const struct profile_row row = {.stack = s->stack};
	ARRAY(const char *) functions = {0};
	bool is_lock = s->reason == WAIT_LOCK;
	int err = profile_row_path(p, &row, path);
	size_t n = 0;

	while (!err && n < path->at.n && !is_waker(p, &p->symbols.v[path->at.v[n].symbol]))
		n++;
	for (size_t i = n; i-- > 0 && !err;) {
		const struct symbol *symbol = &p->symbols.v[path->at.v[i].symbol];

		if ((symbol->kind == FRAME_KERNEL) != is_lock)
			err = array_push(&functions, intern_str(&p->strings, symbol->name));
	}
	if (!err && is_lock)
		s->use = lock_use_of(functions.v, functions.n);
	if (!err)
		s->reason = is_lock ? wait_reason_of_lock(s->use)
				    : wait_reason_by_stack(s->reason, functions.v, functions.n);
	array_release(&functions);
	return err;
}

int waits_classify(struct waits *w, const struct profile *p)
{
	struct symbol_path path = {0};
	int err = 0;

	for (size_t i = 0; i < w->sites.n && !err; i++) {
		struct wait_site *s = &w->sites.v[i];

		if (w->labels.v[s->label].by_stack && s->stack != UINT32_MAX)
			err = classify_site(s, p, &path);
	}
	array_release(&path.at);
	for (size_t i = 0; i < w->parts.n && !err; i++) {
		const struct wait_part *part = &w->parts.v[i];
		struct wait_thread *t = find_thread(w, part->serial);
		const struct wait_site *s = &w->sites.v[part->site];

		if (!t)
			continue;
		t->by_reason[s->reason] += part->wait_ns;
		t->by_reason[WAIT_RUNNABLE] += part->queue_ns;
		t->idle_ns += w->labels.v[s->label].idle ? part->wait_ns : 0;
	}
	return err;
}

uint32_t waits_stuck(const struct waits *w)
{
	for (size_t i = 0; i < w->sites.n; i++) {
		const struct wait_site *s = &w->sites.v[i];

		if ((s->use == LOCK_USE_MUTEX || s->use == LOCK_USE_RWLOCK) && s->count &&
		    s->n_before == s->count && s->n_open == s->count)
			return s->pid;
	}
	return 0;
}

/* --- what is missing -------------------------------------------------------------------------- */

void waits_losses(const struct waits *w, struct wait_loss ret[WAIT_LOSSES])
{
	const struct offcpu_lost *l = &w->lost;
	const struct gpu_losses *g = &w->gpu_lost;
	const struct wait_loss all[] = {
		{"waits", l->rows_full, "waits are in no row: too many different ones at once"},
		{"stacks", w->without_stack,
		 l->stacks_full ? "waits have no stack: there are too many different ones"
				: "waits have no stack: it did not fit into the ring "
				  "(offcpu and record: --mmap-pages)"},
		{"waker_stacks", w->without_link,
		 "waits do not say where their waker was: its stack did not fit into the ring"},
		{"chains", l->chains_lost,
		 "waits do not say who woke whom: too many different ones, or the ring was full"},
		{"ended_threads", l->totals_full,
		 "threads that ended are missing from the summary: too many at once"},
		{"threads", l->threads_full, "threads were not watched: no memory for them"},
		{"gaps", l->loops_full,
		 "gaps of event loops are in no row: too many threads have a loop"},
		{"records", l->side_records,
		 "records about processes and their mappings were lost: some names may be "
		 "missing"},
		{"names", g->rows_full, "calls have no name: too many different ones"},
		{"gpu_threads", g->threads_dropped,
		 "calls were not watched: no memory for their threads"},
		{"fields", g->reads_failed,
		 "fields of calls could not be read: their names lack them"},
		{"gpu_events", g->events,
		 "calls are missing from what was allocated and freed: the ring was full"},
	};

	_Static_assert(ARRAY_SIZE(all) == WAIT_LOSSES, "all of them");
	memcpy(ret, all, sizeof(all));
}

uint64_t waits_lost(const struct waits *w)
{
	struct wait_loss all[WAIT_LOSSES];
	uint64_t n = 0;

	waits_losses(w, all);
	for (size_t i = 0; i < WAIT_LOSSES; i++)
		n += all[i].n;
	return n;
}

uint64_t wait_site_percentile(const struct wait_site *s, double percent)
{
	uint64_t n = 0, below = 0;

	for (size_t i = 0; i < OFFCPU_BUCKETS; i++)
		n += s->buckets[i];
	for (unsigned i = 0; i < OFFCPU_BUCKETS; i++) {
		uint64_t low = offcpu_bucket_low_ns(i), high = offcpu_bucket_low_ns(i + 1);

		below += s->buckets[i];
		if (!s->buckets[i] || (double)below < percent / 100 * (double)n)
			continue;
		/* The middle; where it is the last, no more than the longest was. */
		return MIN(low + (high - low) / 2, s->max_ns);
	}
	return s->max_ns;
}
