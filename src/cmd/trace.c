/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace.h"

#include "print_result.h"
#include "target_text.h"

#include <inspect/command.h>
#include <inspect/explain.h>
#include <inspect/procfs.h>
#include <inspect/render.h>
#include <inspect/term.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { WIDTH_OF_ALL_COLUMNS = 110 };

static const char lock_calls[] = "futex,futex_waitv,futex_wait,futex_wake,futex_requeue";

/* One run of -c or --hist. */
struct trace_run {
	const struct trace_values *v;
	struct host host;
	struct target target;
	struct strbuf target_text, target_given;
	struct syscall_set only;
	uint32_t by;
	enum trace_of of;
	note_list notes;
	struct diag *d;
	struct tracing tracing;
	struct trace_locks *locks; /* NULL: no names are wanted */
	struct fd_names *sockets;  /* NULL: rows have no files */
	int cgroups_fd;            /* 0: they are not mounted, or no key */
};

static void trace_run_release(struct trace_run *run)
{
	if (run->cgroups_fd > 0)
		close(run->cgroups_fd);
	trace_locks_free(run->locks);
	fd_names_free(run->sockets);
	tracing_release(&run->tracing);
	target_release(&run->target);
	strbuf_release(&run->target_text);
	strbuf_release(&run->target_given);
	note_list_release(&run->notes);
}

/* Where systemd mounts version 2: alone, or beside version 1. */
static int open_cgroups(void)
{
	static const char *const points[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		CLEANUP(closep) int fd = open(points[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct statfs fs;

		if (fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return TAKE_FD(fd);
	}
	return 0;
}

static struct trace_view view_of(const struct trace_run *run, const struct syscall_counts *counts,
				 const struct syscall_table *t)
{
	unsigned width = term_width(STDOUT_FILENO);

	return (struct trace_view){
		.v = run->v,
		.counts = counts,
		.table = t,
		.locks = run->locks,
		.sockets = run->sockets,
		.cgroups_fd = run->cgroups_fd,
		.by = run->by,
		.of = run->of,
		.narrow = width && width < WIDTH_OF_ALL_COLUMNS,
	};
}

static const char *schema_of(const struct trace_values *v)
{
	return v->locks  ? "inspect.trace-locks/1"
	       : v->hist ? "inspect.trace-hist/1"
			 : "inspect.trace-summary/1";
}

static int fill(const struct trace_view *view, const char *target, struct result *r)
{
	if (view->v->locks)
		return trace_lock_table(view, target, r);
	return view->v->hist ? trace_hist(view, r) : trace_summary(view, target, r);
}

/* --- intervals -------------------------------------------------------------------------------- */

static int print_interval(void *ctx, const struct syscall_counts *counts, struct syscall_table *t)
{
	struct trace_run *run = ctx;
	CLEANUP(result_release) struct result r;
	struct trace_view view = view_of(run, counts, t);
	int err = run->v->locks ? trace_locks_merge(run->locks, counts, t) : 0;

	result_init(&r, schema_of(run->v));
	result_fact(&r, "elapsed_ns", "interval", cell_u64(CELL_NS, t->elapsed_ns));
	view.is_interval = true;
	if (!err)
		err = fill(&view, strbuf_str(&run->target_text), &r);
	if (!err && run->v->common.json)
		err = result_json_line(&r, stdout);
	else if (!err)
		err = print_result(&r, &run->v->common, run->v->all_rows, run->d);
	if (!err && fflush(stdout))
		err = -errno;
	return err;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int learn_locks(void *ctx, struct syscall_counts *counts)
{
	const struct trace_run *run = ctx;

	return trace_locks_learn(run->locks, counts, run->v->locks);
}

static int measure(struct trace_run *run)
{
	const struct trace_values *v = run->v;
	struct tracing_config config = {
		.target = &run->target,
		.host = &run->host,
		.only = v->filter || v->locks ? &run->only : NULL,
		.by = run->by,
		.of_bytes = run->of == TRACE_OF_BYTES,
		.details = run->locks != NULL,
		.with_stacks = v->locks,
		.duration_ns = v->duration.duration_ns,
		.delay_ns = v->duration.delay_ns,
		.interval_ns = v->interval_ns,
		.intervals_max = v->count,
		.stdout_taken = v->common.json || v->common.csv,
		.interval = print_interval,
		.tick = run->locks ? learn_locks : NULL,
		.ctx = run,
	};

	return tracing_run(&config, &run->notes, &run->tracing, run->d);
}

/* Why there is nothing, where that is known. */
static void note_unseen(const struct trace_run *run, struct result *r)
{
	const struct syscall_table *table = &run->tracing.table;
	const struct target *t = &run->target;
	pid_t pid = t->pids.n ? t->pids.v[0] : t->tids.n ? t->tids.v[0] : 0;
	struct proc_stat stat;

	if (!pid || table->threads.n || table->ended_threads)
		return;
	if (!proc_stat_read(pid, 0, &stat) && stat.of_kernel)
		result_note(r, "process %d is the kernel's own: it makes no system calls", pid);
	else
		result_note(r, "no thread of process %d was seen: it has ended, or is hidden", pid);
}

static int report(struct trace_run *run)
{
	CLEANUP(result_release) struct result r;
	struct trace_view view = view_of(run, run->tracing.counts, &run->tracing.table);
	const char *target = strbuf_str(&run->target_text);
	int err = run->v->locks
			  ? trace_locks_merge(run->locks, run->tracing.counts, &run->tracing.table)
			  : 0;

	result_init(&r, schema_of(run->v));
	trace_facts(&view, &run->tracing, strbuf_str(&run->target_given), &r);
	for (size_t i = 0; i < run->notes.n; i++)
		result_note(&r, "%s", run->notes.v[i]);
	for (size_t i = 0; i < run->target.hints.n && !run->v->common.quiet; i++)
		result_note(&r, "%s", run->target.hints.v[i]);
	note_unseen(run, &r);
	if (!err)
		err = fill(&view, target, &r);
	if (err)
		return diag_errno(run->d, err, "trace");
	if (run->v->interval_ns && run->v->common.json)
		return diag_errno(run->d, result_json_line(&r, stdout), "cannot write to stdout");
	return print_result(&r, &run->v->common, run->v->all_rows, run->d);
}

static int run_counts(const struct trace_values *v, const struct operands *operands, int *exit_code,
		      struct diag *d)
{
	CLEANUP(trace_run_release)
	struct trace_run run = {.v = v, .target = {.cgroup_fd = -1}, .d = d};
	int err = trace_parse_by(v->by, &run.by, d);

	host_read(&run.host, "");
	run.of = v->hist && v->of && str_eq(v->of, "bytes") ? TRACE_OF_BYTES : TRACE_OF_LATENCY;
	if (v->locks)
		run.by = SYSCALLS_BY_LOCK;
	if (!err && (v->filter || v->locks))
		err = trace_parse_filter(v->locks ? lock_calls : v->filter, &run.only, d);
	if (run.by & SYSCALLS_BY_CGROUP)
		run.cgroups_fd = open_cgroups();
	if (!err && run.by & SYSCALLS_BY_FILE)
		err = diag_errno(d, fd_names_new(&run.sockets), "trace");
	/* What findings and --locks speak of. */
	if (!err && (v->locks || (!v->hist && run.by == SYSCALLS_BY_CALL)))
		err = diag_errno(d, trace_locks_new(&run.locks), "trace");
	if (!err)
		err = explain_bpf_tracing(&run.host, TRACING_SINCE_5_10, "count system calls",
					  "strace -c -f -p PID", d);
	if (!err)
		err = target_resolve(&v->target, operands, &run.host, &run.notes, &run.target, d);
	if (err)
		return err;
	target_text_put(&v->target, v->duration.duration_ns, operands, &run.target,
			&run.target_text);
	target_text_given(&v->target, v->duration.duration_ns, operands, &run.target,
			  &run.target_given);
	err = measure(&run);
	if (!err)
		err = report(&run);
	watched_exit_code(&run.tracing.watched, &run.target, err, exit_code);
	return err;
}

/* A line for each call, or the table of --opens. */
static int run_stream(const struct trace_values *v, const struct operands *operands, int *exit_code,
		      struct diag *d)
{
	CLEANUP(trace_run_release)
	struct trace_run run = {.v = v, .target = {.cgroup_fd = -1}, .d = d};
	struct trace_stream_run stream = {.v = v,
					  .host = &run.host,
					  .target = &run.target,
					  .only = v->filter ? &run.only : NULL,
					  .notes = &run.notes,
					  .d = d};
	int err;

	host_read(&run.host, "");
	err = v->filter ? trace_parse_filter(v->filter, &run.only, d) : 0;
	if (!err)
		err = explain_bpf_tracing(&run.host, TRACING_SINCE_5_13, "trace each system call",
					  "inspect trace -c, or strace -f -p PID", d);
	if (!err)
		err = target_resolve(&v->target, operands, &run.host, &run.notes, &run.target, d);
	return err ? err : trace_stream_run(&stream, exit_code);
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	CLEANUP(trace_values_release) struct trace_values v = {0};
	struct option_binding bindings[TRACE_BINDINGS_MAX];
	struct operands operands;
	int exit_code = 0;
	int err = options_parse(bindings, trace_bind(&v, bindings), argc, argv, true, &operands, d);

	*json = v.common.json;
	if (!err)
		err = trace_check_options(&v, &operands, d);
	if (err)
		return EXIT_USAGE;
	if (v.explain)
		err = trace_explain(&v, d);
	else if (v.cuda)
		err = trace_cuda(&v, &operands, &exit_code, d);
	else if (v.gpu)
		err = trace_gpu(&v, &operands, argc, argv, &exit_code, d);
	else if (v.hold)
		err = trace_holds(&v, &operands, &exit_code, d);
	else if (trace_is_by_stack(&v))
		err = trace_stacks(&v, &operands, argc, argv, &exit_code, d);
	else if (v.probe)
		err = trace_probe(&v, &operands, &exit_code, d);
	else if (trace_is_stream(&v))
		err = run_stream(&v, &operands, &exit_code, d);
	else
		err = run_counts(&v, &operands, &exit_code, d);
	return err && !exit_code ? EXIT_OWN_FAILURE : exit_code;
}

static void help(FILE *out)
{
	struct trace_values v = {0};
	struct option_binding bindings[TRACE_BINDINGS_MAX];

	options_help(bindings, trace_bind(&v, bindings), out);
}

const struct command command_trace = {
	.name = "trace",
	.summary = "system calls, counted and timed: strace -c at a fraction of the cost",
	.question = "What does it ask of the kernel, and what does it wait for?",
	.usage = "trace [OPTIONS] [-e CALLS] -p PID,… | -t TID,… | -a | --cgroup PATH [-d TIME]\n"
		 "trace [OPTIONS] [-e CALLS] [--] CMD…\n"
		 "trace -c [OPTIONS] -p PID,… | -t TID,… | -a | --cgroup PATH [-d TIME]\n"
		 "trace -c [OPTIONS] [--] CMD…\n"
		 "trace -c --by stack [-o FILE] [--flame FILE] -p PID,… | [--] CMD…\n"
		 "trace --hist [--of bytes] [-e CALLS] [--by KEY,…] -p PID,… | [--] CMD…\n"
		 "trace --locks [--hold] [--lock ADDR|NAME] -p PID,… | [--] CMD…\n"
		 "trace --opens | --hot-files -p PID,… | [--] CMD…\n"
		 "trace --gpu [-c | --hist | --leaks] [--by KEY,…] [--device PATH] "
		 "-p PID,… | -a | [--] CMD…\n"
		 "trace --cuda [--hist] [--cuda-launch] [--by KEY,…] -p PID,… | -a | [--] CMD…\n"
		 "trace --probe POINT [--until POINT] [--if CONDITION] [--by KEY,…] "
		 "[--of VALUE] -p PID,… | [--] CMD…\n"
		 "trace --explain",
	.help = help,
	.run = run,
};
