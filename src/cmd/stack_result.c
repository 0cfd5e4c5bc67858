/* SPDX-License-Identifier: BSD-2-Clause */
/* Snapshots as tables. Frames are those of a group: its threads have them in common. */
#include "stack.h"

static const struct column process_columns[] = {
	{"snapshot", "snapshot", CELL_COUNT, 0},
	{"pid", "pid", CELL_COUNT, 0},
	{"threads", "threads", CELL_COUNT, 0},
	{"comm", "process", CELL_TEXT, COLUMN_CUT},
};

static const struct column thread_columns[] = {
	{"snapshot", "snapshot", CELL_COUNT, 0},
	{"group", "group", CELL_COUNT, 0},
	{"pid", "pid", CELL_COUNT, 0},
	{"tid", "tid", CELL_COUNT, 0},
	{"comm", "thread", CELL_TEXT, 0},
	{"state", "state", CELL_TEXT, 0},
	{"on_cpu", "on CPU", CELL_BOOL, 0},
	{"frozen", "frozen", CELL_BOOL, COLUMN_DATA_ONLY},
	{"since_ns", "for", CELL_NS, 0},
	{"syscall", "call", CELL_TEXT, 0},
	{"wait", "waits for", CELL_TEXT, COLUMN_CUT},
	{"object", "object", CELL_TEXT, COLUMN_DATA_ONLY},
	{"peer", "other end", CELL_TEXT, COLUMN_DATA_ONLY},
	{"by_design", "by design", CELL_BOOL, COLUMN_DATA_ONLY},
	{"holder_tid", "held by", CELL_COUNT, 0},
	{"holding_readers", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"deadlock", "deadlock", CELL_COUNT, 0},
	{"stack", "stack", CELL_TEXT, 0},
};

static const struct column frame_columns[] = {
	{"snapshot", "snapshot", CELL_COUNT, 0}, {"group", "group", CELL_COUNT, 0},
	{"depth", "depth", CELL_COUNT, 0},       {"function", "function", CELL_TEXT, COLUMN_CUT},
	{"module", "module", CELL_TEXT, 0},      {"kind", "kind", CELL_TEXT, 0},
	{"file", "file", CELL_TEXT, 0},          {"line", "line", CELL_COUNT, 0},
};

void stack_result_begin(struct result *r, struct stack_sections *ret)
{
	ret->processes = result_section(r, "processes", "Processes", process_columns,
					ARRAY_SIZE(process_columns));
	ret->threads =
		result_section(r, "threads", "Threads", thread_columns, ARRAY_SIZE(thread_columns));
	ret->frames = result_section(r, "frames", "Frames, the innermost first", frame_columns,
				     ARRAY_SIZE(frame_columns));
}

static const char *stack_words(const struct snapshot_thread *t)
{
	static const char *const words[] = {
		[SNAPSHOT_STACK_STILL] = "still",
		[SNAPSHOT_STACK_SAMPLED] = "sampled",
		[SNAPSHOT_STACK_MOVED] = "moved",
		[SNAPSHOT_STACK_NONE] = "none",
	};

	return words[t->stack];
}

static void add_thread(struct result *r, size_t section, const struct snapshot *s,
		       const struct snapshot_thread *t, size_t index)
{
	const struct snapshot_wait *w = &t->wait;
	const char *text = w->text[0] ? w->text : stack_in_page_fault(s, t) ? "page fault" : NULL;
	const struct cell cells[] = {
		cell_u64(CELL_COUNT, index),
		cell_u64(CELL_COUNT, t->group),
		cell_u64(CELL_COUNT, (uint64_t)t->task.pid),
		cell_u64(CELL_COUNT, (uint64_t)t->task.tid),
		cell_text(r, t->task.comm),
		cell_text(r, (char[2]){t->task.state, 0}),
		cell_bool(t->task.on_cpu),
		cell_bool(t->task.frozen),
		t->task.since_ns == TASK_STATE_TIME_UNKNOWN
			? cell_null(r, "the kernel does not say")
			: cell_u64(CELL_NS, t->task.since_ns),
		w->call ? cell_text(r, w->call) : cell_null(r, "waits in no system call"),
		text ? cell_text(r, text) : cell_null(r, "not known"),
		w->object ? cell_text(r, w->object) : cell_null(r, "not known"),
		w->peer ? cell_text(r, w->peer) : cell_null(r, "not known"),
		cell_bool(w->by_design),
		w->owner ? cell_u64(CELL_COUNT, (uint64_t)w->owner)
			 : cell_null(r, "the lock does not say, or there is none"),
		w->readers ? cell_u64(CELL_COUNT, w->readers) : cell_null(r, "none is known"),
		t->cycle ? cell_u64(CELL_COUNT, t->cycle) : cell_null(r, "in none"),
		cell_text(r, stack_words(t)),
	};

	_Static_assert(ARRAY_SIZE(cells) == ARRAY_SIZE(thread_columns), "a cell for each column");
	result_row(r, section, cells);
}

static void add_frames(struct result *r, size_t section, const struct snapshot *s, uint32_t group,
		       size_t index)
{
	const struct profile *p = s->profile;
	const struct snapshot_thread *t = &s->threads.v[s->order.v[s->groups.v[group].first]];

	for (size_t i = t->path.at.n; i > 0; i--) {
		const struct symbol_at *at = &t->path.at.v[i - 1];
		const struct symbol *symbol = &p->symbols.v[at->symbol];
		const struct cell cells[] = {
			cell_u64(CELL_COUNT, index),
			cell_u64(CELL_COUNT, group),
			cell_u64(CELL_COUNT, t->path.at.n - i),
			cell_text(r, intern_str(&p->strings, symbol->name)),
			cell_text(r, intern_str(&p->strings, symbol->module)),
			cell_text(r, frame_kind_name((enum frame_kind)symbol->kind)),
			at->file ? cell_text(r, intern_str(&p->strings, at->file))
				 : cell_null(r, "no line is known"),
			at->line ? cell_u64(CELL_COUNT, at->line)
				 : cell_null(r, "no line is known"),
		};

		result_row(r, section, cells);
	}
}

static void add_processes(struct result *r, size_t section, const struct snapshot *s, size_t index)
{
	for (size_t i = 0, n; i < s->threads.n; i += n) {
		const struct task_state *first = &s->threads.v[i].task;

		for (n = 1; i + n < s->threads.n && s->threads.v[i + n].task.pid == first->pid;)
			n++;
		result_row(r, section,
			   (const struct cell[]){cell_u64(CELL_COUNT, index),
						 cell_u64(CELL_COUNT, (uint64_t)first->pid),
						 cell_u64(CELL_COUNT, n),
						 cell_text(r, first->comm)});
	}
}

void stack_result_add(struct result *r, const struct stack_sections *to, const struct snapshot *s,
		      size_t index)
{
	add_processes(r, to->processes, s, index);
	for (uint32_t g = 0; g < s->groups.n; g++) {
		const uint32_t *members = s->order.v + s->groups.v[g].first;

		for (size_t i = 0; i < s->groups.v[g].n; i++)
			add_thread(r, to->threads, s, &s->threads.v[members[i]], index);
		add_frames(r, to->frames, s, g, index);
	}
}
