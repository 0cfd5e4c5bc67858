/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accuracy SAMPLES COMMAND: runs a shell command under the BPF sampler until it has ended or SAMPLES
 * were taken. Of every tick there are two samples: ours with its chain, and perf's with registers
 * and a stack copy, which libdwfl unwinds. Prints how many chains agree frame by frame, and for the
 * rest why not:
 *
 *	SAMPLES EQUAL LONGER DIFFERENT reason=N…
 *
 * LONGER: all that libdwfl found is ours too, and ours goes on (the copy ended, or it has no CFI).
 */
#include <inspect/bpf_sampler.h>
#include <inspect/capture.h>

#include "../unit/oracle.h"

#include <time.h>

enum { COPY_BYTES = 65000 / 8 * 8, RING_PAGES = 2048, CPUS_MAX = 1024, HZ = 499 };

/* Our sample of a CPU, until the copy of the same tick comes. */
struct pending {
	uint32_t tid;
	size_t n;
	enum unwind_stop stop;
	uint64_t chain[UNWIND_MAX_STACK];
	/* As it came from the ring, until it is known when the copy says that it was. */
	uint64_t record[UNWIND_MAX_STACK * 2];
	size_t record_bytes;
};

struct score {
	const struct event_table *events;
	struct process_table processes;
	struct unwind_tables *tables;
	struct oracle oracle;
	struct reorder *reorder;
	struct pending *pending; /* by CPU */
	size_t wanted, samples, equal, longer, differ;
	size_t by_stop[UNWIND_STOPS]; /* of those that differ */
	unsigned shown;
};

static int rows_of(void *ctx, const struct dso *d, bool quick UNUSED, struct unwind_rows *ret)
{
	const struct unwind_table *t;
	int err = unwind_tables_get(ctx, d, true, &t);

	if (!err)
		*ret = (struct unwind_rows){t->rows.v, t->rows.n, t->rules.v, t->rules.n,
					    t->base_off};
	return err;
}

static void keep(struct score *s, const struct event *e)
{
	struct pending *p = &s->pending[e->cpu % CPUS_MAX];
	bool user = false;

	p->n = 0;
	p->tid = e->sample.tid;
	p->stop = e->sample.stop;
	for (size_t i = 0; i < e->sample.n_chain && p->n < UNWIND_MAX_STACK; i++) {
		if (e->sample.chain[i] >= (uint64_t)-4095)
			user = e->sample.chain[i] == (uint64_t)PERF_CONTEXT_USER;
		else if (user)
			p->chain[p->n++] = e->sample.chain[i];
	}
}

static void show(struct score *s, const struct pending *p, size_t same)
{
	const char *verbose = getenv("V");

	if (!verbose || s->shown++ >= 20)
		return;
	fprintf(stderr, "# pid %u: %zu frames, then %s; libdwfl has %zu\n", s->oracle.pid, p->n,
		unwind_stop_text(p->stop), s->oracle.n);
	for (size_t i = same > 2 ? same - 2 : 0; i < same + 3; i++)
		fprintf(stderr, "#   %2zu %12llx %12llx\n", i,
			i < p->n ? (unsigned long long)p->chain[i] : 0ULL,
			i < s->oracle.n ? (unsigned long long)s->oracle.chain[i] : 0ULL);
}

static void compare(struct score *s, const struct event *e)
{
	struct pending *p = &s->pending[e->cpu % CPUS_MAX];
	size_t same = 0;

	if (p->tid != e->sample.tid || !p->tid || s->samples == s->wanted)
		return;
	p->tid = 0;
	if (!e->sample.regs.abi || !e->sample.stack)
		return;
	oracle_unwind(&s->oracle, &s->processes, &e->sample);
	while (same < p->n && same < s->oracle.n &&
	       same_frame(p->chain[same], s->oracle.chain[same]))
		same++;
	s->samples++;
	if (same == p->n && same == s->oracle.n) {
		s->equal++;
	} else if (same == s->oracle.n) {
		s->longer++;
	} else {
		s->differ++;
		s->by_stop[p->stop]++;
		show(s, p, same);
	}
}

static int take(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct score *s = ctx;
	struct event e;

	if (decode_record(s->events, record, size_bytes, &e))
		return 0;
	if (e.type != EVENT_SAMPLE)
		return process_table_apply(&s->processes, &e);
	if (e.sample.event == 0)
		keep(s, &e);
	else
		compare(s, &e);
	return 0;
}

/* perf takes a sample's time before programs run, and ours is taken after: the two go together under
 * the copy's time, ours first. */
static int sort(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct score *s = ctx;
	struct pending *p;
	struct event e;
	int err = 0;

	if (decode_record(s->events, record, size_bytes, &e))
		return 0;
	p = &s->pending[e.cpu % CPUS_MAX];
	if (e.type == EVENT_SAMPLE && e.sample.event == 0) {
		p->record_bytes = size_bytes <= sizeof(p->record) ? size_bytes : 0;
		memcpy(p->record, record, p->record_bytes);
		return 0;
	}
	if (e.type == EVENT_SAMPLE && p->record_bytes)
		err = reorder_add(s->reorder, e.time_ns, (void *)p->record, p->record_bytes, false);
	if (e.type == EVENT_SAMPLE)
		p->record_bytes = 0;
	return err ? err : reorder_add(s->reorder, e.time_ns, record, size_bytes, false);
}

static int fail(struct diag *d)
{
	diag_print(d, "accuracy", stderr);
	return 2;
}

/* Reads until the command has ended or enough was compared. */
static int follow(struct score *s, struct source *source, struct child *child, struct diag *d)
{
	struct timespec pause = {0, 50 * NSEC_PER_MSEC};
	int more = 1;

	while (more > 0 && s->samples < s->wanted) {
		bool ended = child_poll(child);

		more = source->ops->read(source, sort, s, d);
		if (more < 0 || reorder_round(s->reorder))
			return fail(d);
		if (ended)
			break;
		nanosleep(&pause, NULL);
	}
	source->ops->stop(source);
	child_end(child);
	return 0;
}

int main(int argc, char **argv)
{
	char *command[] = {"sh", "-c", argc > 2 ? argv[2] : "", NULL};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.freq = 1,
		.sample_freq = HZ,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_idle = 1,
	};
	const char *name = "cpu-clock";
	struct score s = {.wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 0};
	CLEANUP(diag_release) struct diag d = {0};
	note_list notes = {0};
	struct child child;
	struct source *source;
	struct host host;
	int rc;

	if (argc != 3 || scratch_setup(NULL) || write_vdso() || chdir("/"))
		return 2;
	host_read(&host, "");
	s.pending = calloc(CPUS_MAX, sizeof(*s.pending));
	if (!s.pending || unwind_tables_new(true, &s.tables) || process_table_init(&s.processes) ||
	    reorder_new(1 << 30, take, &s, &s.reorder))
		return 2;
	if (child_prepare(command, true, &child, &d))
		return fail(&d);
	struct bpf_sampler_config config = {
		.attrs = &attr,
		.names = &name,
		.n_events = 1,
		.callchain = true,
		.max_stack = ORACLE_FRAMES_MAX,
		.ring_pages = RING_PAGES,
		.target = {.cgroup_fd = -1,
			   .child = child.pid,
			   .rows = rows_of,
			   .rows_ctx = s.tables},
		.copy_regs = unwind_perf_regs(UNWIND_X86_64),
		.copy_bytes = COPY_BYTES,
	};
	if (bpf_sampler_new(&config, &host, &notes, &source, &d)) {
		child_cancel(&child);
		return fail(&d);
	}
	s.events = source->events;
	if (chdir(scratch) || source->ops->start(source, &d) || child_go(&child, &d))
		return fail(&d);
	rc = follow(&s, source, &child, &d);
	reorder_flush(s.reorder);
	printf("%zu %zu %zu %zu", s.samples, s.equal, s.longer, s.differ);
	for (size_t i = 0; i < UNWIND_STOPS; i++)
		if (s.by_stop[i])
			printf(" %s=%zu", unwind_stop_text((enum unwind_stop)i), s.by_stop[i]);
	printf("\n");
	source->ops->free(source);
	reorder_free(s.reorder);
	dwfl_end(s.oracle.dwfl);
	unwind_tables_free(s.tables);
	process_table_release(&s.processes);
	note_list_release(&notes);
	free(s.pending);
	scratch_teardown(NULL);
	return rc;
}
