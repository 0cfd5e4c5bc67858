/* SPDX-License-Identifier: BSD-2-Clause */
#include "map_set.h"
#include <inspect/profile.h>
#include <stdarg.h>

static const char *const kind_names[FRAME_KINDS] = {
	[FRAME_NATIVE] = "native", [FRAME_KERNEL] = "kernel", [FRAME_INLINED] = "inlined",
	[FRAME_PYTHON] = "python", [FRAME_JIT] = "jit",       [FRAME_SYNTHETIC] = "synthetic",
};

const char *frame_kind_name(enum frame_kind kind)
{
	return kind < FRAME_KINDS ? kind_names[kind] : "native";
}

int profile_new(struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	err = intern_init(&p->strings);
	if (!err)
		err = process_table_init(&p->processes);
	/* Stack 0 is the empty stack; its frame is never looked at. */
	if (!err)
		err = array_push(&p->stacks, (struct stack_node){STACK_ROOT, UINT32_MAX});
	if (err)
		return err;
	*ret = TAKE_PTR(p);
	return 0;
}

static void release_events(struct profile *p)
{
	for (size_t i = 0; i < p->events.n; i++) {
		free(p->events.v[i].name);
		free(p->events.v[i].unit);
	}
	for (size_t i = 0; i < p->notes.n; i++)
		free(p->notes.v[i]);
	array_release(&p->events);
	array_release(&p->notes);
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	release_events(p);
	intern_release(&p->strings);
	process_table_release(&p->processes);
	array_release(&p->frames);
	array_release(&p->stacks);
	array_release(&p->threads);
	array_release(&p->rows);
	array_release(&p->codes);
	map_set_drop(p->kernel_code);
	array_release(&p->symbols);
	array_release(&p->at);
	array_release(&p->first);
	array_release(&p->ended);
	array_release(&p->cut);
	array_release(&p->losses.lost_by_cpu);
	hashmap_release(&p->frame_map);
	hashmap_release(&p->stack_map);
	hashmap_release(&p->thread_map);
	hashmap_release(&p->row_map);
	hashmap_release(&p->symbol_map);
	free(p->command);
	free(p->hostname);
	free(p->os_release);
	free(p->arch);
	free(p);
}

int profile_add_event(struct profile *p, const char *name, const char *unit, uint32_t *ret_event)
{
	struct profile_event e = {.name = strdup(name), .unit = strdup(unit)};
	int err = e.name && e.unit ? array_push(&p->events, e) : -ENOMEM;

	if (err) {
		free(e.name);
		free(e.unit);
		return err;
	}
	*ret_event = (uint32_t)p->events.n - 1;
	return 0;
}

int profile_note(struct profile *p, const char *fmt, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	for (size_t i = 0; i < p->notes.n; i++) {
		if (str_eq(p->notes.v[i], text)) {
			free(text);
			return 0;
		}
	}
	if (array_push(&p->notes, text)) {
		free(text);
		return -ENOMEM;
	}
	return 0;
}

int profile_frame(struct profile *p, const struct frame *f, uint32_t *ret_frame)
{
	uint64_t hash = hash_u64(f->loc ^ ((uint64_t)f->dso << 48) ^ ((uint64_t)f->kind << 44));
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&p->frame_map, hash, at, i) {
		const struct frame *known = &p->frames.v[i];

		if (known->loc == f->loc && known->dso == f->dso && known->kind == f->kind) {
			*ret_frame = i;
			return 0;
		}
	}
	err = array_push(&p->frames, *f);
	if (!err)
		err = hashmap_insert(&p->frame_map, hash, (uint32_t)p->frames.n - 1);
	if (err)
		return err;
	*ret_frame = (uint32_t)p->frames.n - 1;
	return 0;
}

int profile_named_frame(struct profile *p, enum frame_kind kind, const char *name, size_t name_n,
			const char *module, size_t module_n, uint32_t *ret_frame)
{
	uint32_t name_id, module_id;
	int err = intern_add(&p->strings, name, name_n, &name_id);

	if (!err)
		err = intern_add(&p->strings, module, module_n, &module_id);
	if (err)
		return err;
	return profile_frame(p,
			     &(struct frame){.loc = (uint64_t)module_id << 32 | name_id,
					     .dso = DSO_ID_NAMED,
					     .kind = kind},
			     ret_frame);
}

int profile_stack(struct profile *p, uint32_t parent, uint32_t frame, uint32_t *ret_stack)
{
	uint64_t hash = hash_u64((uint64_t)parent << 32 | frame);
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&p->stack_map, hash, at, i) {
		if (p->stacks.v[i].parent == parent && p->stacks.v[i].frame == frame) {
			*ret_stack = i;
			return 0;
		}
	}
	err = array_push(&p->stacks, (struct stack_node){parent, frame});
	if (!err)
		err = hashmap_insert(&p->stack_map, hash, (uint32_t)p->stacks.n - 1);
	if (err)
		return err;
	*ret_stack = (uint32_t)p->stacks.n - 1;
	return 0;
}

int profile_stack_ended(struct profile *p, uint32_t stack)
{
	int err = array_reserve(&p->ended, (size_t)stack + 1);

	if (err)
		return err;
	while (p->ended.n <= stack)
		p->ended.v[p->ended.n++] = 0;
	p->ended.v[stack] = 1;
	return 0;
}

int profile_thread(struct profile *p, uint32_t pid, uint32_t tid, const char *comm, size_t comm_n,
		   uint32_t *ret_thread)
{
	struct profile_thread t = {.pid = pid, .tid = tid};
	uint32_t at, i;
	uint64_t hash;
	int err = intern_add(&p->strings, comm, comm_n, &t.comm);

	if (err)
		return err;
	hash = hash_u64(((uint64_t)tid << 32 | t.comm) ^ hash_u64(pid));
	hashmap_each_candidate(&p->thread_map, hash, at, i) {
		const struct profile_thread *known = &p->threads.v[i];

		if (known->pid == pid && known->tid == tid && known->comm == t.comm) {
			*ret_thread = i;
			return 0;
		}
	}
	err = array_push(&p->threads, t);
	if (!err)
		err = hashmap_insert(&p->thread_map, hash, (uint32_t)p->threads.n - 1);
	if (err)
		return err;
	*ret_thread = (uint32_t)p->threads.n - 1;
	return 0;
}

int profile_add(struct profile *p, uint32_t stack, uint32_t thread, uint32_t event, uint64_t weight,
		uint64_t count)
{
	uint64_t hash = hash_u64(((uint64_t)thread << 32 | stack) + ((uint64_t)event << 60));
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&p->row_map, hash, at, i) {
		struct profile_row *row = &p->rows.v[i];

		if (row->stack == stack && row->thread == thread && row->event == event) {
			row->weight += weight;
			row->count += count;
			return 0;
		}
	}
	err = array_push(&p->rows, (struct profile_row){stack, thread, event, weight, count});
	return err ? err : hashmap_insert(&p->row_map, hash, (uint32_t)p->rows.n - 1);
}

int profile_symbol(struct profile *p, const struct symbol *s, uint32_t *ret_symbol)
{
	uint64_t hash = hash_u64(((uint64_t)s->name << 32 | s->module) ^ ((uint64_t)s->kind << 62));
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&p->symbol_map, hash, at, i) {
		const struct symbol *known = &p->symbols.v[i];

		if (known->name == s->name && known->module == s->module &&
		    known->kind == s->kind) {
			*ret_symbol = i;
			return 0;
		}
	}
	err = array_push(&p->symbols, *s);
	if (!err)
		err = hashmap_insert(&p->symbol_map, hash, (uint32_t)p->symbols.n - 1);
	if (err)
		return err;
	*ret_symbol = (uint32_t)p->symbols.n - 1;
	return 0;
}

void profile_totals(const struct profile *p, uint32_t event, uint64_t *ret_weight,
		    uint64_t *ret_count)
{
	uint64_t weight = 0, count = 0;

	for (size_t i = 0; i < p->rows.n; i++) {
		if (p->rows.v[i].event != event)
			continue;
		weight += p->rows.v[i].weight;
		count += p->rows.v[i].count;
	}
	*ret_weight = weight;
	*ret_count = count;
}
