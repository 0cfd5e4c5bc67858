/* SPDX-License-Identifier: BSD-2-Clause */
#include "build_ids.h"
#include "jit_samples.h"
#include "unwinding.h"

#include <fcntl.h>
#include <inspect/elf_file.h>
#include <inspect/symbolize.h>
#include <time.h>

/*
 * The life of a sample: a record comes from a ring or a file (pipeline_record), is put into the
 * order of time (reorder), decoded, and then either changes what is known of processes (apply) or
 * becomes a stack of interned frames with a weight (add_sample). Naming comes after the capture;
 * samples in code that a jitdump names wait for its end (jit_samples.h).
 */

#define CLOCK_PERIOD_MIN_NS 10000ULL

enum { REORDER_BYTES_MAX = 512 << 20, OPEN_FILES_MAX = 1024 };

struct chain_entry {
	uint64_t ip;
	bool kernel, leaf;
};

struct pipeline {
	const struct event_table *events;
	struct profile *profile;
	struct sample_filter filter;
	bool live;
	struct reorder *reorder;
	const struct build_ids *build_ids; /* files held since their mapping was read; or NULL */
	struct unwinder *unwinder;         /* NULL: chains come ready */
	record_fn *output;
	void *output_ctx;
	size_t dsos_seen, files_open, files_max;
	uint64_t lost_records, lost_samples;
	ARRAY(uint32_t) profile_event; /* by index in the event table */
	ARRAY(struct chain_entry) chain;
	ARRAY(struct frame) frames; /* of the chain */
	struct jit_samples *jit;
	struct jit_sources jit_sources;
	site_fn *found; /* or NULL */
	void *found_ctx;
};

static int release_record(void *ctx, const struct perf_event_header *record, size_t size_bytes);

/* Descriptors are needed for events too. */
static size_t files_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return OPEN_FILES_MAX / 4;
	return (size_t)MIN(limit.rlim_cur / 2, (rlim_t)OPEN_FILES_MAX);
}

int pipeline_new(const struct event_table *events, struct profile *profile,
		 const struct sample_filter *filter, bool live, struct pipeline **ret)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->events = events;
	p->profile = profile;
	p->live = live;
	if (filter)
		p->filter = *filter;
	p->jit_sources = (struct jit_sources){.may_open = live};
	p->files_max = files_max();
	err = jit_samples_new(profile, &p->jit);
	if (!err)
		err = reorder_new(REORDER_BYTES_MAX, release_record, p, &p->reorder);
	if (err) {
		jit_samples_free(p->jit);
		free(p);
		return err;
	}
	*ret = p;
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	reorder_free(p->reorder);
	unwinder_free(p->unwinder);
	array_release(&p->profile_event);
	array_release(&p->chain);
	array_release(&p->frames);
	jit_samples_free(p->jit);
	free(p);
}

void pipeline_jit_sources(struct pipeline *p, const struct saved_names *saved, bool local_host)
{
	p->jit_sources = (struct jit_sources){.saved = saved, .may_open = local_host};
}

void pipeline_build_ids(struct pipeline *p, const struct build_ids *b)
{
	p->build_ids = b;
}

void pipeline_sites(struct pipeline *p, pipeline_site_fn *found, void *ctx)
{
	p->found = found;
	p->found_ctx = ctx;
}

int pipeline_unwind(struct pipeline *p, const struct unwinding *u)
{
	p->output = u->output;
	p->output_ctx = u->output_ctx;
	return unwinder_new(u, &p->profile->processes, &p->unwinder);
}

int pipeline_record(struct pipeline *p, const struct perf_event_header *record, size_t size_bytes,
		    bool stable)
{
	uint64_t time_ns;
	int err = decode_time(p->events, record, size_bytes, &time_ns);

	if (err == -EBADMSG) {
		p->profile->losses.damaged++;
		return 0;
	}
	return err ? err : reorder_add(p->reorder, time_ns, record, size_bytes, stable);
}

int pipeline_round(struct pipeline *p)
{
	return reorder_round(p->reorder);
}

/* Events are added when their first record comes: those of a pipe appear while it is read. */
static int map_event(struct pipeline *p, uint32_t event, uint32_t *ret)
{
	while (p->profile_event.n <= event) {
		const struct event_desc *e = &p->events->events.v[p->profile_event.n];
		struct profile_event *added;
		uint32_t id;
		int err = profile_add_event(p->profile, e->name, event_unit(e), &id);

		if (!err)
			err = array_push(&p->profile_event, id);
		if (err)
			return err;
		added = &p->profile->events.v[id];
		added->is_time =
			str_eq(added->unit, "ns") && e->attr.config != PERF_COUNT_SW_BPF_OUTPUT;
		added->is_tracepoint = e->attr.type == PERF_TYPE_TRACEPOINT;
		added->freq_hz = e->attr.freq ? e->attr.sample_freq : 0;
		added->period = e->attr.freq ? 0 : e->attr.sample_period;
	}
	*ret = p->profile_event.v[event];
	return 0;
}

/* Splits a chain with its context marks into entries, leaf first. */
static int read_chain(struct pipeline *p, const struct sample *s)
{
	bool kernel = s->cpumode == PERF_RECORD_MISC_KERNEL, known = true, leaf = true;
	int err = 0;

	p->chain.n = 0;
	for (size_t i = 0; i < s->n_chain && !err; i++) {
		uint64_t ip = s->chain[i];

		if (ip >= (uint64_t)-4095) {
			kernel = ip == (uint64_t)PERF_CONTEXT_KERNEL;
			known = kernel || ip == (uint64_t)PERF_CONTEXT_USER;
			leaf = true;
			continue;
		}
		if (known)
			err = array_push(&p->chain, (struct chain_entry){ip, kernel, leaf});
		leaf = false;
	}
	return err;
}

/* Adds the user part of a sample that has registers instead, and hands the sample on with it. */
static int unwind_user(struct pipeline *p, struct sample *s, const struct perf_event_header *record)
{
	const uint64_t *chain = NULL;
	size_t n = 0;
	int err = 0;

	if (p->unwinder && unwinder_wants(s))
		n = unwinder_chain(p->unwinder, s, &chain);
	if (p->output) {
		err = unwinder_rewrite(p->unwinder, record, s, chain, n, &record);
		if (err != -EBADMSG)
			err = p->output(p->output_ctx, record, record->size);
		else
			p->profile->losses.damaged++;
	}
	for (size_t i = 0; i < n && !err; i++)
		err = array_push(&p->chain, (struct chain_entry){chain[i], false, i == 0});
	return err;
}

static struct frame kernel_frame(const struct profile *profile, uint64_t va)
{
	struct frame f = {.loc = va, .dso = DSO_ID_KERNEL, .kind = FRAME_KERNEL};
	uint32_t code;

	if (!profile_kernel_code(profile, va, &code)) {
		f.loc = code;
		f.dso = DSO_ID_CODE;
	}
	return f;
}

static struct frame frame_of(struct profile *profile, uint32_t pid, const struct chain_entry *e)
{
	struct frame f = {.loc = e->ip - (e->leaf ? 0 : 1), .kind = FRAME_NATIVE};
	const struct mapping *m;

	if (e->kernel)
		return kernel_frame(profile, f.loc);
	m = process_table_find(&profile->processes, pid, f.loc);
	f.dso = m ? m->dso : DSO_ID_UNKNOWN;
	if (m && profile->processes.dsos.dsos.v[m->dso]->kind == DSO_JIT)
		f.kind = FRAME_JIT;
	else if (m)
		f.loc += m->pgoff_bytes - m->start_va;
	return f;
}

/* What stands below the outermost frame that was found. */
static int add_truncated_root(struct pipeline *p, enum unwind_stop stop, uint64_t count)
{
	char name[80];
	int n = snprintf(name, sizeof(name), "[truncated: %s]", unwind_stop_text(stop));
	uint32_t frame;
	int err = profile_named_frame(p->profile, FRAME_SYNTHETIC, name, (size_t)n, "", 0, &frame);

	p->profile->losses.truncated_by[stop] += count;
	return err ? err : array_push(&p->frames, p->profile->frames.v[frame]);
}

/* Where code does not keep frame pointers, a chain ends in words that are no code: they differ from
 * sample to sample and would tear equal stacks apart. What is left has no entry point, and so is
 * marked as truncated. A process of which no mapping is known keeps all. */
static void drop_garbage(struct pipeline *p, uint32_t pid)
{
	struct process_table *t = &p->profile->processes;
	size_t n = p->chain.n;

	while (n && !p->chain.v[n - 1].kernel && !p->chain.v[n - 1].leaf &&
	       !process_table_find(t, pid, p->chain.v[n - 1].ip - 1))
		n--;
	if (n && !p->chain.v[n - 1].kernel && process_table_find(t, pid, p->chain.v[n - 1].ip - 1))
		p->chain.n = n;
}

/* The frames of a sample, which stands for so many, leaf first, into p->frames. */
static int read_frames(struct pipeline *p, const struct sample *s, uint64_t count)
{
	int err = 0;

	/* NO_ROW: also what a guess by frame pointer found, and led nowhere. */
	if (s->stop == UNWIND_CONTINUE || s->stop == UNWIND_NO_MAPPING || s->stop == UNWIND_NO_ROW)
		drop_garbage(p, s->pid);
	if (!err && !p->chain.n && s->ip)
		err = array_push(&p->chain,
				 (struct chain_entry){s->ip, s->cpumode == PERF_RECORD_MISC_KERNEL,
						      true});
	p->frames.n = 0;
	for (size_t i = 0; i < p->chain.n && !err; i++)
		err = array_push(&p->frames, frame_of(p->profile, s->pid, &p->chain.v[i]));
	if (!err && s->stop > UNWIND_END)
		err = add_truncated_root(p, s->stop, count);
	p->profile->losses.guessed += s->guessed ? count : 0;
	return err;
}

static int stack_of(struct pipeline *p, uint32_t *ret_stack)
{
	uint32_t stack = STACK_ROOT;
	int err = 0;

	for (size_t i = p->frames.n; i > 0 && !err; i--) {
		uint32_t frame;

		err = profile_frame(p->profile, &p->frames.v[i - 1], &frame);
		if (!err)
			err = profile_stack(p->profile, stack, frame, &stack);
	}
	*ret_stack = stack;
	return err;
}

static bool in_time(struct pipeline *p, uint64_t time_ns)
{
	const struct sample_filter *f = &p->filter;
	uint64_t since_ns = time_ns - p->profile->start_ns;

	if (!f->time_from_ns && !f->time_to_ns)
		return true;
	return since_ns >= f->time_from_ns && (!f->time_to_ns || since_ns < f->time_to_ns);
}

static int add_sample(struct pipeline *p, struct event *e, const struct perf_event_header *record)
{
	struct profile *profile = p->profile;
	struct sample *s = &e->sample;
	struct sample_waits waits = sample_waits(s);
	uint32_t event, stack, thread;
	uint64_t weight;
	const char *comm;
	int err;

	if (!profile->start_ns)
		profile->start_ns = e->time_ns;
	profile->end_ns = e->time_ns;
	profile->losses.samples += waits.count;
	err = read_chain(p, s);
	if (!err && !in_time(p, e->time_ns)) {
		profile->losses.filtered += waits.count;
		return 0;
	}
	if (!err)
		err = unwind_user(p, s, record);
	if (!err)
		err = map_event(p, s->event, &event);
	if (!err)
		err = read_frames(p, s, waits.count);
	if (err)
		return err;
	if (!p->frames.n)
		profile->losses.without_stack += waits.count;
	/* The clocks' timer does not run faster than this, whatever period was asked for and is
	 * stated (perf_swevent_start_hrtimer). */
	weight = profile->events.v[event].is_time ? MAX(s->weight, CLOCK_PERIOD_MIN_NS) : s->weight;
	comm = process_table_comm(&profile->processes, s->pid, s->tid);
	err = profile_thread(profile, s->pid, s->tid, comm, strlen(comm), &thread);
	if (err)
		return err;
	if (jit_samples_must_wait(p->jit, p->frames.v, p->frames.n))
		return jit_samples_add(p->jit,
				       &(struct jit_sample){.time_ns = e->time_ns,
							    .weight = weight,
							    .count = waits.count,
							    .site = waits.site,
							    .pid = s->pid,
							    .thread = thread,
							    .event = event,
							    .ended = s->stop != UNWIND_CONTINUE},
				       p->frames.v, p->frames.n);
	err = stack_of(p, &stack);
	if (!err && s->stop != UNWIND_CONTINUE)
		err = profile_stack_ended(profile, stack);
	if (!err && p->found && waits.site != UINT32_MAX)
		p->found(p->found_ctx, waits.site, stack);
	return err ? err : profile_add(profile, stack, thread, event, weight, waits.count);
}

/* What the ring's LOST records say, and what the events themselves counted (LOST_SAMPLES at the
 * end), describe the same drops: the larger is nearer the truth. */
static int add_lost(struct pipeline *p, const struct event *e)
{
	struct losses *l = &p->profile->losses;

	if (e->type == EVENT_LOST_SAMPLES) {
		p->lost_samples += e->lost.n;
	} else {
		p->lost_records += e->lost.n;
		if (e->cpu < 1 << 16) {
			int err = array_reserve(&l->lost_by_cpu, e->cpu + 1);

			if (err)
				return err;
			while (l->lost_by_cpu.n <= e->cpu)
				l->lost_by_cpu.v[l->lost_by_cpu.n++] = 0;
			l->lost_by_cpu.v[e->cpu] += e->lost.n;
		}
	}
	l->lost = MAX(p->lost_records, p->lost_samples);
	return 0;
}

/* Of an open file, which stays open; its size, 0 none. */
static size_t build_id_of(int file_fd, uint8_t ret_id[BUILD_ID_MAX])
{
	struct elf_file *f;
	size_t size = 0;
	int fd = fcntl(file_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0 || elf_file_open_fd(fd, &f))
		return 0;
	if (elf_file_build_id(f, ret_id, &size) || size > BUILD_ID_MAX)
		size = 0;
	elf_file_free(f);
	return size;
}

static bool has_build_id(int fd, const struct dso *d)
{
	uint8_t id[BUILD_ID_MAX];
	size_t size = build_id_of(fd, id);

	return size && size == d->build_id_size && memcmp(id, d->build_id, size) == 0;
}

/* A process that has ended already took its root along: the path is tried in ours, and the file
 * there taken if it is the one that was mapped. -1: none. */
static int open_by_path(const struct dso *d)
{
	CLEANUP(closep) int fd = file_open_regular(d->path);

	if (fd < 0)
		return -1;
	if (d->ino ? file_is_same(fd, d->maj, d->min, d->ino) : has_build_id(fd, d))
		return TAKE_FD(fd);
	return -1;
}

/* 1 when a descriptor was opened. */
static int open_file(const struct pipeline *p, struct dso *d)
{
	if (d->kind == DSO_JIT)
		return !symbolize_hold_process(d);
	if (d->kind != DSO_ELF)
		return 0;
	if (p->build_ids)
		d->fd = build_ids_open(p->build_ids, d->build_id, d->build_id_size);
	if (d->fd >= 0)
		return 1;
	d->fd = elf_open_mapped((pid_t)d->pid, d->start_va, d->end_va, d->path, d->maj, d->min,
				d->ino);
	if (d->fd < 0)
		d->fd = open_by_path(d);
	if (d->fd < 0)
		return 0;
	if (!d->build_id_size)
		d->build_id_size = (uint8_t)build_id_of(d->fd, d->build_id);
	return 1;
}

/* Live, files are opened while they are mapped, by the target's own root: their names then survive
 * the process, an upgrade on disk, and another mount namespace. */
static int take_new_files(struct pipeline *p)
{
	struct dso_table *t = &p->profile->processes.dsos;
	int err = 0;

	for (; p->dsos_seen < t->dsos.n && !err; p->dsos_seen++) {
		struct dso *d = t->dsos.v[p->dsos_seen];

		if (p->live && p->files_open < p->files_max)
			p->files_open += (size_t)open_file(p, d);
		err = jit_samples_mapped(p->jit, d->id, p->live);
	}
	return err;
}

/* A file that could not be opened through the first process that had it, nor by its path: by this
 * one then. */
static void open_missed(struct pipeline *p, const struct mmap_event *e)
{
	const struct mapping *m = process_table_find(&p->profile->processes, e->pid, e->start_va);
	struct dso *d = m ? p->profile->processes.dsos.dsos.v[m->dso] : NULL;

	if (!d || d->kind != DSO_ELF || d->fd >= 0 || d->pid == e->pid ||
	    p->files_open >= p->files_max)
		return;
	d->pid = e->pid;
	d->start_va = e->start_va;
	d->end_va = e->start_va + e->len_bytes;
	p->files_open += (size_t)open_file(p, d);
}

static int apply(struct pipeline *p, const struct event *e)
{
	int err = process_table_apply(&p->profile->processes, e);

	if (err)
		return err;
	if (e->type == EVENT_MMAP && e->mmap.kernel &&
	    str_starts(e->mmap.path, "[kernel.kallsyms]"))
		p->profile->kernel_start_va = e->mmap.start_va;
	if (e->type == EVENT_COMM && e->comm.exec)
		err = jit_samples_program_ends(p->jit, e->comm.pid, e->time_ns);
	if (e->type == EVENT_FORK && e->task.pid != e->task.ppid && !e->task.own_maps)
		err = jit_samples_program_ends(p->jit, e->task.pid, e->time_ns);
	if (err)
		return err;
	if (e->type == EVENT_KSYMBOL)
		return profile_ksymbol(p->profile, e);
	if (e->type != EVENT_MMAP)
		return 0;
	err = take_new_files(p);
	if (!err && p->live && !e->mmap.kernel)
		open_missed(p, &e->mmap);
	return err;
}

static int release_record(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct pipeline *p = ctx;
	struct event e;
	int err = decode_record(p->events, record, size_bytes, &e);

	if (err == -EBADMSG) {
		p->profile->losses.damaged++;
		return 0;
	}
	if (err)
		return err;
	if (p->output && e.type != EVENT_SAMPLE)
		err = p->output(p->output_ctx, record, size_bytes);
	if (err)
		return err;
	switch (e.type) {
	case EVENT_SAMPLE:
		return add_sample(p, &e, record);
	case EVENT_LOST:
	case EVENT_LOST_SAMPLES:
		return add_lost(p, &e);
	case EVENT_THROTTLE:
		p->profile->losses.throttled++;
		return 0;
	default:
		return apply(p, &e);
	}
}

/* Every event's times are those of CLOCK_MONOTONIC. */
static bool is_monotonic(const struct event_table *t)
{
	for (size_t i = 0; i < t->events.n; i++) {
		const struct perf_event_attr *attr = &t->events.v[i].attr;

		if (!attr->use_clockid || attr->clockid != CLOCK_MONOTONIC)
			return false;
	}
	return true;
}

static bool has_stacks(const struct event_table *t)
{
	for (size_t i = 0; i < t->events.n; i++)
		if (t->events.v[i].attr.sample_type & PERF_SAMPLE_CALLCHAIN)
			return true;
	return false;
}

int pipeline_finish(struct pipeline *p)
{
	int err = reorder_flush(p->reorder);
	uint32_t last;

	p->profile->monotonic = is_monotonic(p->events);
	if (!err)
		err = jit_samples_finish(p->jit, &p->jit_sources, p->found, p->found_ctx);

	p->profile->losses.late = reorder_late(p->reorder);
	p->profile->no_stacks = !has_stacks(p->events);
	/* Events without a sample are shown too, as empty. */
	if (!err && p->events->events.n)
		err = map_event(p, (uint32_t)p->events->events.n - 1, &last);
	return err;
}
