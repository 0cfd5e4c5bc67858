/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack.h"

#include "print_result.h"

#include <inspect/clock.h>
#include <inspect/command.h>
#include <inspect/term.h>

enum { BINDINGS_MAX = 8, FRAMES_SHOWN = 12 };

struct stack_values {
	struct target_options target;
	struct naming_options naming;
	struct common_options common;
	uint64_t interval_ns;
	unsigned count;
	unsigned max_stack; /* 0: not given */
	bool all;
};

#define AT(field) offsetof(struct target_options, field)
static const struct option target_options[] = {
	{.name = "pid",
	 .letter = 'p',
	 .arg = "PID,…",
	 .type = OPTION_STRING,
	 .offset = AT(pids),
	 .help = "these processes, with all their threads"},
	{.name = "tid",
	 .letter = 't',
	 .arg = "TID,…",
	 .type = OPTION_STRING,
	 .offset = AT(tids),
	 .help = "these threads alone"},
	{.name = "all-cpus",
	 .letter = 'a',
	 .type = OPTION_FLAG,
	 .offset = AT(all),
	 .help = "the whole system, without kernel threads that sleep"},
	{.name = "cgroup",
	 .arg = "PATH",
	 .type = OPTION_STRING,
	 .offset = AT(cgroup),
	 .help = "a cgroup (container, service)"},
	{.name = "children",
	 .type = OPTION_FLAG,
	 .offset = AT(children),
	 .help = "with -p: its child processes too, of all levels"},
	{.name = "subprocesses", .type = OPTION_FLAG, .offset = AT(children)},
	{0},
};
#undef AT
static const struct option_group target_group = {"Target", target_options};

#define OWN(field) offsetof(struct stack_values, field)
static const struct option own_options[] = {
	{.name = "count",
	 .letter = 'n',
	 .arg = "N",
	 .type = OPTION_UNSIGNED,
	 .offset = OWN(count),
	 .help = "so many snapshots (default 1; with -I alone until ^C)"},
	{.name = "interval",
	 .letter = 'I',
	 .arg = "TIME",
	 .type = OPTION_INTERVAL,
	 .offset = OWN(interval_ns),
	 .help = "time between two snapshots (default 1s)"},
	{.name = "max-stack",
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(max_stack),
	 .help = "frames of a stack to print, the innermost (default 12)",
	 .parse = options_max_stack},
	{.name = "all",
	 .type = OPTION_FLAG,
	 .offset = OWN(all),
	 .help = "every thread of a group by name, and whole stacks"},
	{0},
};
static const struct option_group own_group = {"Snapshots", own_options};

static size_t bind(struct stack_values *v, struct option_binding *ret)
{
	size_t n = 0;

	ret[n++] = (struct option_binding){&target_group, &v->target};
	ret[n++] = (struct option_binding){&own_group, v};
	ret[n++] = (struct option_binding){&naming_option_group, &v->naming};
	ret[n++] = (struct option_binding){&common_option_group, &v->common};
	ret[n++] = (struct option_binding){&stack_habit_group, NULL};
	ret[n++] = (struct option_binding){&measuring_habit_group, NULL};
	return n;
}

/* --- output ----------------------------------------------------------------------------------- */

static bool wants_data(const struct stack_values *v)
{
	return v->common.json || v->common.csv || v->common.markdown;
}

static int print_text(const struct stack_values *v, const struct snapshot *s, size_t index,
		      const note_list *notes, struct diag *d)
{
	const struct stack_style style = {
		.width = term_width(STDOUT_FILENO),
		.color = term_use_color(v->common.color, STDOUT_FILENO),
		.ascii = !term_is_utf8(),
		.all = v->all,
		.max_stack = v->max_stack ? v->max_stack : FRAMES_SHOWN,
	};
	int err;

	for (size_t i = 0; i < notes->n && !index && !v->common.quiet; i++)
		fprintf(stderr, "# note: %s\n", notes->v[i]);
	if (index)
		putchar('\n');
	if (v->count > 1 || v->interval_ns)
		printf("# snapshot %zu\n", index + 1);
	errno = 0;
	err = stack_text(s, &style, stdout);
	if (err == -EIO && errno)
		err = -errno;
	return diag_errno(d, err, "cannot write to stdout");
}

struct output {
	struct result r;
	struct stack_sections sections;
};

static int finish_data(const struct stack_values *v, struct output *out, const note_list *notes,
		       const struct snapshot *last, size_t n, struct diag *d)
{
	struct result *r = &out->r;

	result_fact(r, "snapshots", "snapshots", cell_u64(CELL_COUNT, n));
	result_fact(r, "read_by", "read by",
		    cell_text(r, last->by_iterator ? "BPF iterator" : "/proc"));
	result_fact(r, "read_ns", "last read in", cell_u64(CELL_NS, last->read_ns));
	result_fact(r, "total_ns", "", cell_u64(CELL_NS, last->total_ns));
	result_fact(r, "threads_count", "threads", cell_u64(CELL_COUNT, last->threads.n));
	result_fact(r, "deadlocks", "deadlocks", cell_u64(CELL_COUNT, last->n_cycles));
	result_fact(r, "kernel_threads_left_out", "", cell_u64(CELL_COUNT, last->n_left_out));
	for (size_t i = 0; i < notes->n; i++)
		result_note(r, "%s", notes->v[i]);
	return print_result(r, &v->common, true, d);
}

/* --- the loop --------------------------------------------------------------------------------- */

static int check_snapshot(const struct snapshot *s, const struct target *t, struct diag *d)
{
	if (s->threads.n || t->all || t->cgroup)
		return 0;
	diag_set(d, -ESRCH, "no thread of %s %d is to be seen: it has ended, or is hidden",
		 t->pids.n ? "process" : "thread", t->pids.n ? t->pids.v[0] : t->tids.v[0]);
	diag_fix(d, "inspect use      (the hottest thread, and its process)");
	return -ESRCH;
}

static int run_snapshots(const struct stack_values *v, struct snapshot_session *session,
			 const struct target *target, const note_list *notes, struct output *out,
			 struct diag *d)
{
	size_t wanted = v->count ? v->count : v->interval_ns ? SIZE_MAX : 1;
	uint64_t step_ns = v->interval_ns ? v->interval_ns : NSEC_PER_SEC;
	uint64_t start_ns = clock_now_ns();
	struct snapshot s = {0};
	size_t n = 0;
	int err = 0;

	while (n < wanted && !err) {
		struct snapshot next;

		if (n && !snapshot_wait_until(session, start_ns + n * step_ns))
			break;
		err = snapshot_take(session, &next, d);
		if (!err && n && !next.threads.n) { /* the target has ended */
			snapshot_release(&next);
			break;
		}
		if (err)
			break;
		snapshot_release(&s);
		s = next;
		err = check_snapshot(&s, target, d);
		if (!err && wants_data(v))
			stack_result_add(&out->r, &out->sections, &s, n);
		else if (!err)
			err = print_text(v, &s, n, notes, d);
		n++;
	}
	if (!err && wants_data(v))
		err = finish_data(v, out, notes, &s, n, d);
	snapshot_release(&s);
	return err;
}

static int resolve(struct stack_values *v, const struct operands *operands, const struct host *host,
		   note_list *notes, struct target *ret, struct diag *d)
{
	CLEANUP(note_list_release) note_list unused = {0}; /* they speak of recordings */
	const struct operands none = {0};
	int err;

	if (operands->n) {
		diag_set(d, -EINVAL, "inspect stack takes no operand, but has '%s'",
			 operands->v[0]);
		diag_fix(d, "inspect stack -p %s",
			 strspn(operands->v[0], "0123456789") == strlen(operands->v[0])
				 ? operands->v[0]
				 : "PID");
		return -EINVAL;
	}
	if (!v->target.pids && !v->target.tids && !v->target.all && !v->target.cgroup) {
		diag_set(d, -EINVAL, "nothing to look at: no target is given");
		diag_fix(d, "inspect stack -p PID, or -t TID, -a, --cgroup PATH");
		return -EINVAL;
	}
	v->target.with_zombies = true;
	err = target_resolve(&v->target, &none, host, v->target.cgroup ? &unused : notes, ret, d);
	if (!err && ret->cgroup && !ret->pids.n)
		err = target_list_cgroup(ret, &unused, d);
	return err;
}

static int stack(struct stack_values *v, const struct operands *operands, struct diag *d)
{
	CLEANUP(snapshot_session_freep) struct snapshot_session *session = NULL;
	CLEANUP(note_list_release) note_list notes = {0};
	struct target target = {.cgroup_fd = -1};
	struct host host;
	const struct snapshot_config config = {
		.target = &target,
		.host = &host,
		.naming = v->naming,
		.several = v->count > 1 || v->interval_ns,
		.notes = &notes,
	};
	struct output out;
	int err;

	host_read(&host, "");
	err = resolve(v, operands, &host, &notes, &target, d);
	if (err)
		return err;
	result_init(&out.r, "inspect.stack/1");
	stack_result_begin(&out.r, &out.sections);
	err = snapshot_session_new(&config, &session, d);
	if (!err)
		err = run_snapshots(v, session, &target, &notes, &out, d);
	result_release(&out.r);
	target_release(&target);
	return err;
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	struct stack_values v = {0};
	struct option_binding bindings[BINDINGS_MAX];
	struct operands operands;
	int err = options_parse(bindings, bind(&v, bindings), argc, argv, false, &operands, d);

	*json = v.common.json;
	if (!err)
		err = options_conflict("--json", v.common.json, "--csv", v.common.csv, d);
	if (!err)
		err = stack(&v, &operands, d);
	return err ? EXIT_OWN_FAILURE : 0;
}

static void help(FILE *out)
{
	struct stack_values v = {0};
	struct option_binding bindings[BINDINGS_MAX];

	options_help(bindings, bind(&v, bindings), out);
}

const struct command command_stack = {
	.name = "stack",
	.summary = "what every thread is at now: its stack, and what it waits for since when",
	.question = "Why does it hang?",
	.usage = "stack [OPTIONS] -p PID,… | -t TID,… | -a | --cgroup PATH [-n N] [-I TIME]",
	.help = help,
	.run = run,
};
