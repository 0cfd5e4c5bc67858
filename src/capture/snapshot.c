/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A snapshot: tasks are read, their user stacks walked, what they wait for is looked up while it is
 * true, and then stacks become frames and names as those of samples do, through the pipeline.
 */
#include "memory_probe.h"
#include "signals.h"
#include "snapshot_holders.h"
#include "unwinding.h"

#include <inspect/clock.h>
#include <inspect/procfs.h>
#include <inspect/symbolize.h>
#include <poll.h>

#define PATIENCE_NS (2 * NSEC_PER_SEC)
#define SAMPLE_FIELDS (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN)

/* --- the session ------------------------------------------------------------------------------ */

int snapshot_session_new(const struct snapshot_config *c, struct snapshot_session **ret,
			 struct diag *d)
{
	CLEANUP(snapshot_session_freep) struct snapshot_session *s = calloc(1, sizeof(*s));
	CLEANUP(diag_release) struct diag refusal = {0};
	int err;

	if (!s)
		return diag_errno(d, -ENOMEM, "preparing a snapshot");
	s->config = c;
	remote_memory_init(&s->memory);
	s->signal_fd = c->several ? signals_open() : -1;
	if (c->several && s->signal_fd < 0)
		return diag_errno(d, s->signal_fd, "cannot receive signals");
	err = unwind_tables_new(!c->naming.no_cache, &s->tables);
	if (err)
		return diag_errno(d, err, "preparing to unwind");
	if (task_reader_new(c->host, &s->reader, &refusal)) {
		size_t fix = refusal.fix ? strcspn(refusal.fix, "\n") : 0;

		err = note_add(c->notes, "read from /proc: %s%s%s%s%.*s",
			       refusal.what ? refusal.what : "BPF failed", refusal.why ? "; " : "",
			       refusal.why ? refusal.why : "", fix ? " → " : "", (int)fix,
			       refusal.fix ? refusal.fix : "");
	}
	if (err)
		return diag_errno(d, err, "preparing a snapshot");
	*ret = TAKE_PTR(s);
	return 0;
}

void snapshot_session_free(struct snapshot_session *s)
{
	if (!s)
		return;
	task_reader_free(s->reader);
	unwind_tables_free(s->tables);
	signals_close(s->signal_fd);
	remote_memory_release(&s->memory);
	free(s);
}

bool snapshot_wait_until(struct snapshot_session *s, uint64_t at_ns)
{
	struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};
	uint64_t now_ns = clock_now_ns();
	uint64_t left_ns = at_ns > now_ns ? at_ns - now_ns : 0;

	return poll(&fd, 1,
		    (int)MIN((left_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, (uint64_t)INT32_MAX)) <=
	       0;
}

int snapshot_read_tasks(struct snapshot_session *s, bool with_stacks, task_states *ret)
{
	const struct target *t = s->config->target;
	const struct task_selection which = {
		.pids = t->pids.v,
		.n_pids = t->pids.n,
		.tids = t->tids.v,
		.n_tids = t->tids.n,
		.with_stacks = with_stacks,
	};

	return s->reader ? task_reader_read(s->reader, &which, ret)
			 : snapshot_proc_read(&which, ret);
}

/* --- frames ----------------------------------------------------------------------------------- */

/* A sample record as perf would have written it. */
static int emit_stack(struct snapshot_work *w, size_t index, struct pipeline *p)
{
	const struct task_state *t = &w->result->threads.v[index].task;
	const struct snapshot_chain *c = &w->chains.v[index];
	struct {
		struct perf_event_header header;
		uint64_t ip;
		uint32_t pid, tid;
		uint64_t n;
		uint64_t chain[2 + TASK_STATE_KERNEL_FRAMES + UNWIND_MAX_STACK];
	} r = {.header = {.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER},
	       .pid = (uint32_t)t->pid,
	       .tid = (uint32_t)t->tid};

	if (t->n_kernel) {
		r.chain[r.n++] = (uint64_t)PERF_CONTEXT_KERNEL;
		memcpy(r.chain + r.n, t->kernel, t->n_kernel * sizeof(*r.chain));
		r.n += t->n_kernel;
	}
	if (c->n) {
		r.chain[r.n++] = (uint64_t)PERF_CONTEXT_USER;
		memcpy(r.chain + r.n, c->v, c->n * sizeof(*r.chain));
		r.n += c->n;
	}
	r.header.misc |= sample_misc_of_stop(c->n ? c->stop : UNWIND_END, c->guessed);
	r.header.size = (uint16_t)(offsetof(__typeof__(r), chain) + r.n * sizeof(*r.chain));
	return pipeline_record(p, &r.header, r.header.size, true);
}

struct tid_index {
	uint32_t tid, index;
};

static int by_tid(const void *a, const void *b)
{
	const struct tid_index *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* From /proc the kernel's frames come as names: "[<0>] futex_wait+0x12/0x34". */
static int add_kernel_text(struct snapshot *s, struct snapshot_thread *t, const char *text)
{
	struct profile *p = s->profile;
	size_t from = t->path.at.n;
	int err = 0;

	for (const char *at = text; *at && !err;) {
		size_t n = strcspn(at, "\n"), head = strcspn(at, " ") + 1, name;
		struct symbol symbol = {.kind = FRAME_KERNEL};
		uint32_t id;

		if (head < n) {
			name = strcspn(at + head, "+\n");
			err = intern_add(&p->strings, at + head, name, &symbol.name);
			if (!err)
				err = intern_add(&p->strings, "[kernel]", 8, &symbol.module);
			if (!err)
				err = profile_symbol(p, &symbol, &id);
			if (!err)
				err = array_push(&t->path.at, (struct symbol_at){.symbol = id});
		}
		at += n + (at[n] == '\n');
	}
	/* They come leaf first. */
	for (size_t i = from, j = t->path.at.n; i + 1 < j; i++) {
		struct symbol_at swap = t->path.at.v[i];

		t->path.at.v[i] = t->path.at.v[--j];
		t->path.at.v[j] = swap;
	}
	return err;
}

static int take_paths(struct snapshot_work *w)
{
	struct snapshot *s = w->result;
	struct profile *p = s->profile;
	CLEANUP(freep) struct tid_index *index = calloc(s->threads.n + 1, sizeof(*index));
	int err = 0;

	if (!index)
		return -ENOMEM;
	for (size_t i = 0; i < s->threads.n; i++)
		index[i] = (struct tid_index){(uint32_t)s->threads.v[i].task.tid, (uint32_t)i};
	qsort(index, s->threads.n, sizeof(*index), by_tid);
	for (size_t i = 0; i < p->rows.n && !err; i++) {
		const struct tid_index key = {.tid = p->threads.v[p->rows.v[i].thread].tid};
		const struct tid_index *found =
			bsearch(&key, index, s->threads.n, sizeof(*index), by_tid);

		if (found)
			err = profile_row_path(p, &p->rows.v[i], &s->threads.v[found->index].path);
	}
	for (size_t i = 0; i < s->threads.n && !err; i++)
		if (w->kernel_text.n && w->kernel_text.v[i])
			err = add_kernel_text(s, &s->threads.v[i], w->kernel_text.v[i]);
	return err;
}

static int name(struct snapshot_work *w, struct pipeline *p)
{
	const struct naming_options *naming = &w->session->config->naming;
	const struct symbolize_options o = {
		.no_demangle = naming->no_demangle,
		.no_inline = naming->no_inline,
		.offline = naming->offline,
		.local_host = true,
	};
	int err = 0;

	for (size_t i = 0; i < w->result->threads.n && !err; i++)
		err = emit_stack(w, i, p);
	if (!err)
		err = pipeline_finish(p);
	if (!err)
		err = symbolize_profile(w->result->profile, &o);
	return err ? err : take_paths(w);
}

/* --- the steps -------------------------------------------------------------------------------- */

/* Of the whole system: this program, and what the kernel has for later. */
static bool tells_nothing(const struct task_state *t)
{
	return t->pid == getpid() || (t->is_kernel && strchr("SIP", t->state));
}

static int list_threads(struct snapshot_work *w)
{
	CLEANUP(task_states_release) task_states tasks = {0};
	int err = snapshot_read_tasks(w->session, false, &tasks);

	for (size_t i = 0; i < tasks.n && !err; i++) {
		if (w->session->config->target->all && tells_nothing(&tasks.v[i])) {
			w->result->n_left_out += tasks.v[i].pid != getpid();
			continue;
		}
		err = array_push(&w->result->threads,
				 (struct snapshot_thread){.task = tasks.v[i],
							  .wait = {.text = ""}});
	}
	return err;
}

static int read_kernel_texts(struct snapshot_work *w)
{
	int err = 0;

	for (size_t i = 0; i < w->result->threads.n && !err && !w->session->reader; i++)
		err = array_push(&w->kernel_text,
				 snapshot_proc_kernel(&w->result->threads.v[i].task));
	return err;
}

static int take_record(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	return pipeline_record(ctx, record, size_bytes, false);
}

bool snapshot_is_locked(const struct snapshot_work *w, pid_t pid)
{
	for (size_t i = 0; i < w->locked.n; i++)
		if (w->locked.v[i] == pid)
			return true;
	return false;
}

/* Leaves those out whose memory can't be looked at, and keeps them as such. */
static int drop_locked(struct snapshot_work *w, struct pid_list *pids)
{
	CLEANUP(freep) bool *stuck = calloc(pids->n + 1, sizeof(*stuck));
	size_t n = 0;
	int err = stuck ? memory_probe(pids->v, pids->n, memory_try, PATIENCE_NS, stuck) : -ENOMEM;

	for (size_t i = 0; i < pids->n && !err; i++) {
		if (!stuck[i]) {
			pids->v[n++] = pids->v[i];
			continue;
		}
		err = array_push(&w->locked, pids->v[i]);
		if (!err)
			err = note_add(w->session->config->notes,
				       "process %d: a thread hangs with the lock of its memory "
				       "map: no user stacks, and no names of locks",
				       pids->v[i]);
	}
	pids->n = n;
	return err;
}

/* What the processes of the threads have mapped. */
static int read_processes(struct snapshot_work *w, const struct event_table *events,
			  struct pipeline *p)
{
	const struct snapshot *s = w->result;
	struct pid_list pids = {0};
	int err = 0;

	for (size_t i = 0; i < s->threads.n && !err; i++) {
		pid_t pid = s->threads.v[i].task.pid;

		if (!pids.n || pids.v[pids.n - 1] != pid)
			err = array_push(&pids, pid);
	}
	if (!err)
		err = drop_locked(w, &pids);
	if (!err && pids.n)
		err = synthesize_processes(pids.v, pids.n, events, take_record, p);
	array_release(&pids);
	return err;
}

static void work_release(struct snapshot_work *w)
{
	for (size_t i = 0; i < w->chains.n; i++)
		free(w->chains.v[i].v);
	for (size_t i = 0; i < w->kernel_text.n; i++)
		free(w->kernel_text.v[i]);
	array_release(&w->locked);
	array_release(&w->guesses);
	array_release(&w->chains);
	array_release(&w->kernel_text);
}

static void pipeline_freep(struct pipeline **p)
{
	pipeline_free(*p);
}

static int take(struct snapshot_work *w, const struct event_table *events)
{
	struct snapshot *s = w->result;
	CLEANUP(pipeline_freep) struct pipeline *p = NULL;
	uint64_t start_ns = clock_now_ns();
	int err = profile_new(&s->profile);

	if (!err)
		err = pipeline_new(events, s->profile, NULL, true, &p);
	if (!err)
		err = list_threads(w);
	if (!err)
		err = read_processes(w, events, p);
	w->walk = (struct unwind_walk){
		.tables = w->session->tables,
		.processes = &s->profile->processes,
		.arch = unwinding_host_arch(),
		.local_host = true,
	};
	if (!err)
		err = snapshot_walk(w);
	if (!err)
		err = read_kernel_texts(w);
	if (!err)
		err = snapshot_waits(w);
	s->read_ns = clock_now_ns() - start_ns;
	if (!err)
		err = name(w, p);
	if (!err) {
		snapshot_confirm_holders(w);
		err = snapshot_find_cycles(s);
	}
	if (!err)
		err = snapshot_group(s);
	s->total_ns = clock_now_ns() - start_ns;
	return err;
}

int snapshot_take(struct snapshot_session *session, struct snapshot *ret, struct diag *d)
{
	CLEANUP(event_table_release) struct event_table events = {0};
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = SAMPLE_FIELDS,
		.sample_period = 1,
	};
	struct snapshot_work *w = calloc(1, sizeof(*w));
	int err = w ? event_table_add(&events, &attr, "threads") : -ENOMEM;

	*ret = (struct snapshot){.by_iterator = session->reader, .wall_ns = clock_realtime_ns()};
	if (!err) {
		w->session = session;
		w->result = ret;
		err = take(w, &events);
	}
	if (w)
		work_release(w);
	free(w);
	if (err)
		snapshot_release(ret);
	return err ? diag_errno(d, err, "taking a snapshot") : 0;
}

void snapshot_release(struct snapshot *s)
{
	for (size_t i = 0; i < s->threads.n; i++)
		array_release(&s->threads.v[i].path.at);
	array_release(&s->threads);
	array_release(&s->groups);
	array_release(&s->order);
	arena_release(&s->arena);
	profile_free(s->profile);
	*s = (struct snapshot){0};
}
