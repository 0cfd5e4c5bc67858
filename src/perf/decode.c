/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts: the comments at enum perf_event_type in include/uapi/linux/perf_event.h, and
 * perf_output_sample() in kernel/events/core.c for the order of a sample's fields. */
#include <inspect/decode.h>
#include <sys/mman.h>

/* LOST_SAMPLES: a BPF program dropped them on purpose (tools/lib/perf/include/perf/event.h). */
#define MISC_LOST_SAMPLES_BPF (1U << 15)
/* Newer than the headers of our oldest supported system. */
#define BRANCH_COUNTERS (1ULL << 19)

#define TRAILER_FIELDS                                                                             \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* The unread bytes of a record. `bad` sticks: one check at the end of a record is enough. */
struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The next n bytes, or NULL. */
static const uint8_t *cursor_take(struct cursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (c->bad || n > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return p;
}

static uint64_t cursor_u64(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 8);

	return p ? load_u64(p) : 0;
}

static uint32_t cursor_u32(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

/* n 64-bit words that are used where they lie. */
static const uint64_t *cursor_words(struct cursor *c, uint64_t n)
{
	const uint8_t *p;

	if (n > UINT16_MAX || (uintptr_t)c->p % 8) {
		c->bad = true;
		return NULL;
	}
	p = cursor_take(c, n * 8);
	return (const uint64_t *)(const void *)p;
}

/* A NUL-terminated string that takes the rest of the body. */
static const char *cursor_string(struct cursor *c)
{
	const uint8_t *p = c->p;

	if (!c->bad && !memchr(p, '\0', (size_t)(c->end - p)))
		c->bad = true;
	return c->bad ? "" : (const char *)p;
}

/* --- the fields of a sample ------------------------------------------------------------------ */

typedef void field_fn(struct cursor *c, const struct perf_event_attr *attr, struct event *e);

static void read_ip(struct cursor *c, const struct perf_event_attr *attr UNUSED, struct event *e)
{
	e->sample.ip = cursor_u64(c);
}

static void read_tid(struct cursor *c, const struct perf_event_attr *attr UNUSED, struct event *e)
{
	e->sample.pid = cursor_u32(c);
	e->sample.tid = cursor_u32(c);
}

static void read_time(struct cursor *c, const struct perf_event_attr *attr UNUSED, struct event *e)
{
	e->time_ns = cursor_u64(c);
}

static void read_cpu(struct cursor *c, const struct perf_event_attr *attr UNUSED, struct event *e)
{
	e->cpu = cursor_u32(c);
	cursor_take(c, 4);
}

static void read_period(struct cursor *c, const struct perf_event_attr *attr UNUSED,
			struct event *e)
{
	e->sample.weight = cursor_u64(c);
}

static void skip_read_format(struct cursor *c, const struct perf_event_attr *attr,
			     struct event *e UNUSED)
{
	uint64_t format = attr->read_format;
	uint64_t times = format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t per_value = format & (PERF_FORMAT_ID | PERF_FORMAT_LOST);
	uint64_t n = 1, words = 1 + (uint64_t)__builtin_popcountll(per_value);

	if (format & PERF_FORMAT_GROUP)
		n = cursor_u64(c);
	cursor_words(c, (uint64_t)__builtin_popcountll(times));
	if (n > UINT16_MAX)
		c->bad = true;
	else
		cursor_words(c, n * words);
}

static void read_callchain(struct cursor *c, const struct perf_event_attr *attr UNUSED,
			   struct event *e)
{
	uint64_t n = cursor_u64(c);

	e->sample.chain = cursor_words(c, n);
	e->sample.n_chain = c->bad ? 0 : n;
}

static void read_raw(struct cursor *c, const struct perf_event_attr *attr UNUSED, struct event *e)
{
	e->sample.raw_bytes = cursor_u32(c);
	e->sample.raw = cursor_take(c, e->sample.raw_bytes);
	if (!e->sample.raw)
		e->sample.raw_bytes = 0;
}

static void skip_branch_stack(struct cursor *c, const struct perf_event_attr *attr,
			      struct event *e UNUSED)
{
	uint64_t n = cursor_u64(c);
	uint64_t words = 3 + !!(attr->branch_sample_type & BRANCH_COUNTERS); /* from, to, flags */

	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		cursor_u64(c);
	if (n > UINT16_MAX)
		c->bad = true;
	else
		cursor_words(c, n * words);
}

static void read_regs_user(struct cursor *c, const struct perf_event_attr *attr, struct event *e)
{
	struct user_regs *regs = &e->sample.regs;

	regs->abi = cursor_u64(c);
	if (regs->abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	regs->mask = attr->sample_regs_user;
	regs->v = cursor_words(c, (uint64_t)__builtin_popcountll(regs->mask));
}

static void read_stack_user(struct cursor *c, const struct perf_event_attr *attr UNUSED,
			    struct event *e)
{
	uint64_t size_bytes = cursor_u64(c), used_bytes;
	const uint8_t *stack;

	if (!size_bytes)
		return; /* no used size follows */
	stack = cursor_take(c, size_bytes);
	used_bytes = cursor_u64(c);
	if (used_bytes > size_bytes)
		c->bad = true;
	if (c->bad)
		return;
	e->sample.stack = used_bytes ? stack : NULL;
	e->sample.stack_bytes = used_bytes;
	e->sample.stack_cut = used_bytes < size_bytes;
}

static void skip_regs_intr(struct cursor *c, const struct perf_event_attr *attr,
			   struct event *e UNUSED)
{
	if (cursor_u64(c) != PERF_SAMPLE_REGS_ABI_NONE)
		cursor_words(c, (uint64_t)__builtin_popcountll(attr->sample_regs_intr));
}

static void skip_aux(struct cursor *c, const struct perf_event_attr *attr UNUSED,
		     struct event *e UNUSED)
{
	cursor_take(c, cursor_u64(c));
}

static void skip_word(struct cursor *c, const struct perf_event_attr *attr UNUSED,
		      struct event *e UNUSED)
{
	cursor_u64(c);
}

static const struct {
	uint64_t bits;
	field_fn *read;
} sample_fields[] = {
	{PERF_SAMPLE_IDENTIFIER, skip_word},
	{PERF_SAMPLE_IP, read_ip},
	{PERF_SAMPLE_TID, read_tid},
	{PERF_SAMPLE_TIME, read_time},
	{PERF_SAMPLE_ADDR, skip_word},
	{PERF_SAMPLE_ID, skip_word},
	{PERF_SAMPLE_STREAM_ID, skip_word},
	{PERF_SAMPLE_CPU, read_cpu},
	{PERF_SAMPLE_PERIOD, read_period},
	{PERF_SAMPLE_READ, skip_read_format},
	{PERF_SAMPLE_CALLCHAIN, read_callchain},
	{PERF_SAMPLE_RAW, read_raw},
	{PERF_SAMPLE_BRANCH_STACK, skip_branch_stack},
	{PERF_SAMPLE_REGS_USER, read_regs_user},
	{PERF_SAMPLE_STACK_USER, read_stack_user},
	{PERF_SAMPLE_WEIGHT_TYPE, skip_word},
	{PERF_SAMPLE_DATA_SRC, skip_word},
	{PERF_SAMPLE_TRANSACTION, skip_word},
	{PERF_SAMPLE_REGS_INTR, skip_regs_intr},
	{PERF_SAMPLE_PHYS_ADDR, skip_word},
	{PERF_SAMPLE_CGROUP, skip_word},
	{PERF_SAMPLE_DATA_PAGE_SIZE, skip_word},
	{PERF_SAMPLE_CODE_PAGE_SIZE, skip_word},
	{PERF_SAMPLE_AUX, skip_aux},
};

/* What a sample without a period stands for. A clock's period is in nanoseconds. */
static uint64_t implied_weight(const struct perf_event_attr *attr)
{
	if (!attr->freq)
		return attr->sample_period ? attr->sample_period : 1;
	return event_is_clock(attr) && attr->sample_freq ? NSEC_PER_SEC / attr->sample_freq : 1;
}

/* --- which event, when ----------------------------------------------------------------------- */

static size_t trailer_bytes(const struct perf_event_attr *attr)
{
	if (!attr->sample_id_all)
		return 0;
	return 8 * (size_t)__builtin_popcountll(attr->sample_type & TRAILER_FIELDS);
}

/* Index of the event that a record belongs to, or -EBADMSG. An id of 0 (records that perf writes
 * itself) means the first event. */
static int event_of(const struct event_table *events, const struct perf_event_header *record)
{
	bool is_sample = record->type == PERF_RECORD_SAMPLE;
	const uint8_t *body = (const uint8_t *)(record + 1);
	size_t body_bytes = record->size - sizeof(*record), word;
	int place = is_sample ? events->sample_id_word : events->trailer_id_word, event;
	uint64_t id;

	if (!events->events.n)
		return -EBADMSG;
	if (events->events.n == 1 || place < 0 ||
	    (!is_sample && !events->events.v[0].attr.sample_id_all))
		return 0;
	word = (size_t)place;
	if (body_bytes / 8 < word + is_sample)
		return -EBADMSG;
	id = load_u64(is_sample ? body + word * 8 : body + body_bytes - word * 8);
	if (!id)
		return 0;
	event = event_table_find_id(events, id);
	if (event >= 0)
		return event;
	return is_sample ? -EBADMSG : 0;
}

static bool record_is_sane(const struct perf_event_header *record, size_t size_bytes)
{
	return (uintptr_t)record % 8 == 0 && size_bytes >= sizeof(*record) &&
	       record->size >= sizeof(*record) && record->size <= size_bytes;
}

/* The trailer's time and CPU; without one, events keep what their body said. */
static void read_trailer(const uint8_t *trailer, const struct perf_event_attr *attr,
			 struct event *e)
{
	const uint8_t *p = trailer;

	if (!attr->sample_id_all)
		return;
	if (attr->sample_type & PERF_SAMPLE_TID)
		p += 8;
	if (attr->sample_type & PERF_SAMPLE_TIME) {
		e->time_ns = load_u64(p);
		p += 8;
	}
	p += 8 * __builtin_popcountll(attr->sample_type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
	if (attr->sample_type & PERF_SAMPLE_CPU)
		memcpy(&e->cpu, p, sizeof(e->cpu));
}

int decode_time(const struct event_table *events, const struct perf_event_header *record,
		size_t size_bytes, uint64_t *ret_time_ns)
{
	static const uint64_t before_time =
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	const struct perf_event_attr *attr;
	struct event e;
	size_t at;
	int event, err;

	if (!record_is_sane(record, size_bytes))
		return -EBADMSG;
	if (record->type != PERF_RECORD_SAMPLE) {
		err = decode_record(events, record, size_bytes, &e);
		if (!err)
			*ret_time_ns = e.time_ns;
		return err;
	}
	event = event_of(events, record);
	if (event < 0)
		return event;
	attr = &events->events.v[event].attr;
	at = sizeof(*record) + 8 * (size_t)__builtin_popcountll(attr->sample_type & before_time);
	if (!(attr->sample_type & PERF_SAMPLE_TIME)) {
		*ret_time_ns = 0;
		return 0;
	}
	if (at + 8 > record->size)
		return -EBADMSG;
	*ret_time_ns = load_u64((const uint8_t *)record + at);
	return 0;
}

/* --- the other records ----------------------------------------------------------------------- */

typedef void record_decoder(const struct event_table *events,
			    const struct perf_event_header *record, struct cursor *c,
			    struct event *e);

static bool is_kernel(const struct perf_event_header *record)
{
	return (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
}

static void decode_mmap_start(const struct perf_event_header *record, struct cursor *c,
			      struct event *e)
{
	struct mmap_event *m = &e->mmap;

	e->type = EVENT_MMAP;
	m->pid = cursor_u32(c);
	m->tid = cursor_u32(c);
	m->start_va = cursor_u64(c);
	m->len_bytes = cursor_u64(c);
	m->pgoff_bytes = cursor_u64(c);
	m->kernel = is_kernel(record);
}

static void decode_mmap(const struct event_table *events UNUSED,
			const struct perf_event_header *record, struct cursor *c, struct event *e)
{
	decode_mmap_start(record, c, e);
	e->mmap.exec = !(record->misc & PERF_RECORD_MISC_MMAP_DATA);
	e->mmap.path = cursor_string(c);
}

/*
 * Whether the union of an MMAP2 holds a build-id (size, 3 zero bytes, id) and not the inode. Its
 * misc bit alone does not tell: the kernel (perf_event_mmap_output(), seen in 6.18) leaves it set
 * for every event that is told of a mapping after one that asked for build-ids, so another
 * recording on the same machine sets it in this one. A device's major is never as large as the
 * build-ids that linkers make.
 */
static bool has_build_id(const struct perf_event_attr *attr, const struct perf_event_header *record,
			 const struct cursor *c)
{
	const uint8_t *v = c->p;

	if (!(record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || c->bad || c->end - c->p < 24)
		return false;
	if (!v[0] || v[0] > 20 || v[1] | v[2] | v[3])
		return false;
	return attr->build_id || v[0] >= RECORD_BUILD_ID_MIN;
}

static void decode_mmap2(const struct event_table *events, const struct perf_event_header *record,
			 struct cursor *c, struct event *e)
{
	const struct perf_event_attr *attr = &events->events.v[event_of(events, record)].attr;
	struct mmap_event *m = &e->mmap;
	uint32_t prot;

	decode_mmap_start(record, c, e);
	if (has_build_id(attr, record, c)) {
		m->build_id_size = *c->p;
		m->build_id = cursor_take(c, 24) + 4;
	} else {
		m->maj = cursor_u32(c);
		m->min = cursor_u32(c);
		m->ino = cursor_u64(c);
		m->ino_generation = cursor_u64(c);
	}
	prot = cursor_u32(c);
	cursor_u32(c);
	/* perf leaves prot empty where it writes the kernel's own mapping. */
	m->exec = prot & PROT_EXEC || (!prot && !(record->misc & PERF_RECORD_MISC_MMAP_DATA));
	m->path = cursor_string(c);
}

static void decode_comm(const struct event_table *events UNUSED,
			const struct perf_event_header *record, struct cursor *c, struct event *e)
{
	e->type = EVENT_COMM;
	e->comm.pid = cursor_u32(c);
	e->comm.tid = cursor_u32(c);
	e->comm.exec = record->misc & PERF_RECORD_MISC_COMM_EXEC;
	e->comm.comm = cursor_string(c);
}

static void decode_task(const struct event_table *events UNUSED,
			const struct perf_event_header *record, struct cursor *c, struct event *e)
{
	e->type = record->type == PERF_RECORD_FORK ? EVENT_FORK : EVENT_EXIT;
	e->task.own_maps = record->misc & PERF_RECORD_MISC_FORK_EXEC;
	e->task.pid = cursor_u32(c);
	e->task.ppid = cursor_u32(c);
	e->task.tid = cursor_u32(c);
	e->task.ptid = cursor_u32(c);
	e->time_ns = cursor_u64(c);
}

static void decode_lost(const struct event_table *events,
			const struct perf_event_header *record UNUSED, struct cursor *c,
			struct event *e)
{
	int event = event_table_find_id(events, cursor_u64(c));

	e->type = EVENT_LOST;
	e->lost.n = cursor_u64(c);
	if (event < 0)
		event = events->events.n == 1 ? 0 : -1;
	e->lost.event = (uint32_t)event;
}

static void decode_lost_samples(const struct event_table *events,
				const struct perf_event_header *record, struct cursor *c,
				struct event *e)
{
	bool named = events->events.n == 1 ||
		     (events->events.v[0].attr.sample_id_all && events->trailer_id_word > 0);
	int event = named ? event_of(events, record) : -1;

	if (record->misc & MISC_LOST_SAMPLES_BPF)
		return;
	e->type = EVENT_LOST_SAMPLES;
	e->lost.n = cursor_u64(c);
	e->lost.event = event < 0 ? UINT32_MAX : (uint32_t)event;
}

static void decode_throttle(const struct event_table *events UNUSED,
			    const struct perf_event_header *record UNUSED, struct cursor *c,
			    struct event *e)
{
	e->type = EVENT_THROTTLE;
	e->time_ns = cursor_u64(c);
}

static void decode_ksymbol(const struct event_table *events UNUSED,
			   const struct perf_event_header *record UNUSED, struct cursor *c,
			   struct event *e)
{
	uint32_t type_and_flags;

	e->type = EVENT_KSYMBOL;
	e->ksymbol.addr = cursor_u64(c);
	e->ksymbol.len_bytes = cursor_u32(c);
	type_and_flags = cursor_u32(c);
	e->ksymbol.type = (uint16_t)type_and_flags;
	e->ksymbol.unregister = type_and_flags >> 16 & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	e->ksymbol.name = cursor_string(c);
}

static record_decoder *const decoders[] = {
	[PERF_RECORD_MMAP] = decode_mmap,         [PERF_RECORD_LOST] = decode_lost,
	[PERF_RECORD_COMM] = decode_comm,         [PERF_RECORD_EXIT] = decode_task,
	[PERF_RECORD_THROTTLE] = decode_throttle, [PERF_RECORD_FORK] = decode_task,
	[PERF_RECORD_MMAP2] = decode_mmap2,       [PERF_RECORD_LOST_SAMPLES] = decode_lost_samples,
	[PERF_RECORD_KSYMBOL] = decode_ksymbol,
};

static int decode_sample(const struct event_table *events, int event, struct cursor *c,
			 uint16_t misc, struct event *e)
{
	const struct perf_event_attr *attr = &events->events.v[event].attr;
	unsigned stop = (misc & SAMPLE_MISC_STOP_MASK) >> SAMPLE_MISC_STOP_SHIFT;

	e->type = EVENT_SAMPLE;
	e->sample.event = (uint32_t)event;
	e->sample.cpumode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
	e->sample.stop = stop < UNWIND_STOPS ? (enum unwind_stop)stop : UNWIND_CONTINUE;
	e->sample.guessed = misc & SAMPLE_MISC_GUESSED;
	e->sample.pid = e->sample.tid = UINT32_MAX;
	e->sample.weight = implied_weight(attr);
	for (size_t i = 0; i < ARRAY_SIZE(sample_fields) && !c->bad; i++)
		if (attr->sample_type & sample_fields[i].bits)
			sample_fields[i].read(c, attr, e);
	return c->bad ? -EBADMSG : 0;
}

/*
 * A KSYMBOL record that several events are told of grows by a trailer for each of them
 * (perf_event_ksymbol_output() in Linux adds to one header, seen in 6.18): the true one follows
 * the name at once, what is behind it means nothing.
 */
static const uint8_t *trailer_of(const struct event *e, const uint8_t *at_end)
{
	const uint8_t *trailer;

	if (e->type != EVENT_KSYMBOL)
		return at_end;
	trailer = (const uint8_t *)e->ksymbol.name + ALIGN_UP(strlen(e->ksymbol.name) + 1, 8);
	return trailer < at_end ? trailer : at_end;
}

int decode_record(const struct event_table *events, const struct perf_event_header *record,
		  size_t size_bytes, struct event *ret)
{
	struct event e = {.type = EVENT_OTHER, .cpu = UINT32_MAX};
	const struct perf_event_attr *attr;
	struct cursor c;
	int event, err;

	if (!record_is_sane(record, size_bytes))
		return -EBADMSG;
	if (record->type >= RECORD_HEADER_ATTR) {
		*ret = e;
		return 0;
	}
	event = event_of(events, record);
	if (event < 0)
		return event;
	c = (struct cursor){.p = (const uint8_t *)(record + 1),
			    .end = (const uint8_t *)record + record->size};
	if (record->type == PERF_RECORD_SAMPLE) {
		err = decode_sample(events, event, &c, record->misc, &e);
		if (!err)
			*ret = e;
		return err;
	}
	attr = &events->events.v[event].attr;
	if (trailer_bytes(attr) > (size_t)(c.end - c.p))
		return -EBADMSG;
	c.end -= trailer_bytes(attr);
	if (record->type < ARRAY_SIZE(decoders) && decoders[record->type])
		decoders[record->type](events, record, &c, &e);
	if (c.bad)
		return -EBADMSG;
	read_trailer(trailer_of(&e, c.end), attr, &e);
	*ret = e;
	return 0;
}
