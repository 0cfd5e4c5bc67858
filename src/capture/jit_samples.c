/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit_samples.h"
#include "jit_timeline.h"

#include <inspect/jitdump.h>

enum { DUMPS_MAX = 256, PROBLEM_NOTES_MAX = 4 };

struct dump {
	uint32_t dso;
	int fd; /* -1: not open; else owned */
	int err;
	ARRAY(uint64_t) ends; /* when a program of its process ended, in order of time */
};

struct jit_samples {
	struct profile *profile;
	struct profile *waiting; /* for its tries of frames and stacks alone */
	ARRAY(struct dump) dumps;
	ARRAY(struct jit_sample) samples;
	struct jit_timeline *timeline;
	unsigned problems;
};

int jit_samples_new(struct profile *profile, struct jit_samples **ret)
{
	struct jit_samples *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->profile = profile;
	if (profile_new(&j->waiting)) {
		free(j);
		return -ENOMEM;
	}
	*ret = j;
	return 0;
}

void jit_samples_free(struct jit_samples *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->dumps.n; i++) {
		closep(&j->dumps.v[i].fd);
		array_release(&j->dumps.v[i].ends);
	}
	profile_free(j->waiting);
	jit_timeline_free(j->timeline);
	array_release(&j->dumps);
	array_release(&j->samples);
	free(j);
}

static const struct dso *dso_of(const struct jit_samples *j, uint32_t dso)
{
	return j->profile->processes.dsos.dsos.v[dso];
}

static void open_dump(const struct jit_samples *j, struct dump *dump)
{
	int fd = jitdump_open(dso_of(j, dump->dso));

	dump->fd = fd < 0 ? -1 : fd;
	dump->err = fd < 0 ? fd : 0;
}

int jit_samples_mapped(struct jit_samples *j, uint32_t dso, bool live)
{
	const struct dso *d = dso_of(j, dso);
	struct dump dump = {.dso = dso, .fd = -1};

	if (d->kind != DSO_ELF || !jitdump_is_marker(d->path) || j->dumps.n >= DUMPS_MAX)
		return 0;
	for (size_t i = 0; i < j->dumps.n; i++)
		if (j->dumps.v[i].dso == dso)
			return 0;
	if (live)
		open_dump(j, &dump);
	if (!array_push(&j->dumps, dump))
		return 0;
	closep(&dump.fd);
	return -ENOMEM;
}

int jit_samples_program_ends(struct jit_samples *j, uint32_t pid, uint64_t time_ns)
{
	int err = 0;

	for (size_t i = 0; i < j->dumps.n && !err; i++)
		if (dso_of(j, j->dumps.v[i].dso)->pid == pid)
			err = array_push(&j->dumps.v[i].ends, time_ns);
	return err;
}

/* Memory that a compiler made executable without a record of it is in no known mapping. */
static bool may_be_jitted(const struct jit_samples *j, const struct frame *f)
{
	return f->dso == DSO_ID_UNKNOWN || dso_of(j, f->dso)->kind == DSO_JIT;
}

bool jit_samples_must_wait(const struct jit_samples *j, const struct frame *frames, size_t n)
{
	for (size_t i = 0; i < n && j->dumps.n; i++)
		if (may_be_jitted(j, &frames[i]))
			return true;
	return false;
}

int jit_samples_add(struct jit_samples *j, const struct jit_sample *s, const struct frame *frames,
		    size_t n)
{
	struct jit_sample waiting = *s;
	int err = 0;

	waiting.stack = STACK_ROOT;
	while (n > 0 && !err) {
		uint32_t frame;

		err = profile_frame(j->waiting, &frames[--n], &frame);
		if (!err)
			err = profile_stack(j->waiting, waiting.stack, frame, &waiting.stack);
	}
	return err ? err : array_push(&j->samples, waiting);
}

/* --- what the dumps say ---------------------------------------------------------------------- */

static int note_problem(struct jit_samples *j, const struct dso *d, const char *problem)
{
	if (j->problems++ >= PROBLEM_NOTES_MAX)
		return 0;
	return profile_note(j->profile, "pid %u: %s is not used: %s", d->pid, d->path, problem);
}

static const char *open_problem(int err)
{
	switch (err) {
	case -EPERM:
		return "it belongs to another user";
	case -ESTALE:
		return "another file has its name now";
	case -ELOOP:
	case -ENOTDIR:
		return "it is reached through a symlink";
	case -EINVAL:
		return "it is no plain file";
	default:
		return strerror(-err);
	}
}

/* The end of the program that wrote of code at a time. The next program of its process may have
 * written to the same file. 0: none */
static uint64_t end_after(const struct dump *d, uint64_t time_ns)
{
	size_t low = 0, high = d->ends.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->ends.v[middle] <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->ends.n ? d->ends.v[low] : 0;
}

static int read_dump(struct jit_samples *j, uint32_t index, bool may_open)
{
	struct dump *dump = &j->dumps.v[index];
	const struct dso *d = dso_of(j, dump->dso);
	const char *problem = NULL;
	jit_loads loads = {0};
	int err;

	if (dump->fd < 0 && may_open && !dump->err)
		open_dump(j, dump);
	if (dump->fd < 0)
		return dump->err ? note_problem(j, d, open_problem(dump->err)) : 0;
	err = jitdump_read(dump->fd, &loads, &problem);
	if (err == -EBADMSG)
		err = note_problem(j, d, problem);
	for (size_t i = 0; i < loads.n && !err; i++) {
		const struct jit_load *l = &loads.v[i];

		err = jit_timeline_add(j->timeline,
				       &(struct jit_place){.start_va = l->start_va,
							   .end_va = l->end_va,
							   .from_ns = l->from_ns,
							   .until_ns = end_after(dump, l->from_ns),
							   .pid = d->pid,
							   .source = index,
							   .name_off = l->name_off,
							   .name_n = l->name_n});
	}
	array_release(&loads);
	return err;
}

static int read_saved(struct jit_samples *j, const struct saved_names *saved)
{
	int err = 0;

	for (size_t i = 0; i < saved_names_codes(saved) && !err; i++) {
		struct saved_code c = saved_names_code(saved, i);

		err = jit_timeline_add(j->timeline,
				       &(struct jit_place){.start_va = c.start_va,
							   .end_va = c.end_va,
							   .from_ns = c.from_ns,
							   .until_ns = c.until_ns,
							   .pid = c.pid,
							   .source = UINT32_MAX,
							   .name = c.name,
							   .name_n = (uint32_t)strlen(c.name)});
	}
	return err;
}

static int read_sources(struct jit_samples *j, const struct jit_sources *sources)
{
	int err = 0;

	if (sources->saved && saved_names_codes(sources->saved))
		return read_saved(j, sources->saved);
	for (uint32_t i = 0; i < j->dumps.n && !err; i++)
		err = read_dump(j, i, sources->may_open);
	return err;
}

/* --- from addresses to code ------------------------------------------------------------------ */

static int code_name(struct jit_samples *j, const struct jit_place *place, uint32_t *ret_name)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	int err;

	if (place->source == UINT32_MAX)
		return intern_add(&j->profile->strings, place->name, place->name_n, ret_name);
	err = jitdump_name(j->dumps.v[place->source].fd,
			   &(struct jit_load){.name_off = place->name_off, .name_n = place->name_n},
			   &text);
	if (err == -ENOMEM)
		return err;
	return intern_add(&j->profile->strings, text.v ? text.v : "", text.n, ret_name);
}

/* The code of a place, added when it is first hit: also one without a name, as the recording has
 * to say that nothing lies there any more. */
static int code_of(struct jit_samples *j, struct jit_place *place, uint32_t *ret_code)
{
	struct code c = {.start_va = place->start_va,
			 .end_va = place->end_va,
			 .from_ns = place->from_ns,
			 .until_ns = place->until_ns,
			 .pid = place->pid};
	int err;

	if (place->code) {
		*ret_code = place->code - 1;
		return 0;
	}
	err = place->name_n ? code_name(j, place, &c.name) : 0;
	if (!err)
		err = intern_puts(&j->profile->strings, "[jit]", &c.module);
	if (!err)
		err = array_push(&j->profile->codes, c);
	if (err)
		return err;
	place->code = (uint32_t)j->profile->codes.n;
	*ret_code = place->code - 1;
	return 0;
}

static int resolve_frame(struct jit_samples *j, const struct jit_sample *s, uint64_t time_ns,
			 struct frame *f)
{
	const struct dso *d = dso_of(j, f->dso);
	struct jit_place *place;
	uint32_t code;
	int err;

	if (!may_be_jitted(j, f))
		return 0;
	place = jit_timeline_find(j->timeline, d->kind == DSO_JIT ? d->pid : s->pid, f->loc,
				  time_ns);
	if (!place)
		return 0;
	err = code_of(j, place, &code);
	if (!err && j->profile->codes.v[code].name)
		*f = (struct frame){.loc = code, .dso = DSO_ID_CODE, .kind = FRAME_JIT};
	return err;
}

static int add_to_profile(struct jit_samples *j, const struct jit_sample *s, uint64_t time_ns,
			  uint32_t *ret_stack)
{
	const struct profile *from = j->waiting;
	ARRAY(uint32_t) frames = {0};
	uint32_t stack = STACK_ROOT;
	int err = 0;

	for (uint32_t at = s->stack; at != STACK_ROOT && !err; at = from->stacks.v[at].parent)
		err = array_push(&frames, from->stacks.v[at].frame);
	while (frames.n && !err) {
		struct frame f = from->frames.v[frames.v[--frames.n]];
		uint32_t frame;

		err = resolve_frame(j, s, time_ns, &f);
		if (!err)
			err = profile_frame(j->profile, &f, &frame);
		if (!err)
			err = profile_stack(j->profile, stack, frame, &stack);
	}
	array_release(&frames);
	if (!err && s->ended)
		err = profile_stack_ended(j->profile, stack);
	*ret_stack = stack;
	return err ? err : profile_add(j->profile, stack, s->thread, s->event, s->weight, s->count);
}

static int ask_for_addresses(struct jit_samples *j)
{
	int err = 0;

	for (size_t i = 0; i < j->waiting->frames.n && !err; i++)
		if (may_be_jitted(j, &j->waiting->frames.v[i]))
			err = jit_timeline_ask(j->timeline, j->waiting->frames.v[i].loc);
	return err;
}

int jit_samples_finish(struct jit_samples *j, const struct jit_sources *sources, site_fn *found,
		       void *ctx)
{
	int err = 0;

	if (!j->samples.n)
		return 0;
	err = jit_timeline_new(&j->timeline);
	if (!err)
		err = read_sources(j, sources);
	if (!err)
		err = ask_for_addresses(j);
	if (!err)
		err = jit_timeline_sort(j->timeline);
	if (!err && !j->profile->monotonic)
		err = profile_note(
			j->profile,
			"recorded without -k mono: code made at run time is named by what "
			"lay at its address last");
	for (size_t i = 0; i < j->samples.n && !err; i++) {
		const struct jit_sample *s = &j->samples.v[i];
		uint32_t stack;

		err = add_to_profile(j, s, j->profile->monotonic ? s->time_ns : UINT64_MAX, &stack);
		if (!err && found && s->site != UINT32_MAX)
			found(ctx, s->site, stack);
	}
	j->samples.n = 0;
	return err;
}
