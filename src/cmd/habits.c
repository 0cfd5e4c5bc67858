/* SPDX-License-Identifier: BSD-2-Clause */
/* What hands used to perf, py-spy, strace, bcc, top and FlameGraph type. */
#include <inspect/options.h>

#define IGNORED(long_name, short_letter)                                                           \
	{                                                                                          \
		.name = (long_name), .letter = (short_letter), .type = OPTION_IGNORED              \
	}
#define IGNORED_VALUE(long_name)                                                                   \
	{                                                                                          \
		.name = (long_name), .arg = "VALUE", .type = OPTION_IGNORED                        \
	}
#define INSTEAD(long_name, short_letter, spelling)                                                 \
	{                                                                                          \
		.name = (long_name), .letter = (short_letter), .type = OPTION_REJECTED,            \
		.help = (spelling)                                                                 \
	}

#define FORMATS_INSTEAD "inspect flame > out.svg, or inspect flame --folded > out.folded"

static const struct option measuring_habits[] = {
	/* perf record: what is always so here */
	{.name = "force",
	 .letter = 'f',
	 .type = OPTION_IGNORED,
	 .choices = "flamegraph|raw|speedscope|chrometrace", /* py-spy's -f */
	 .help = FORMATS_INSTEAD},
	IGNORED("no-buildid", 'B'),
	IGNORED("no-buildid-cache", 'N'),
	IGNORED("raw-samples", 'R'),
	IGNORED("timestamp", 'T'),
	IGNORED("sample-cpu", 0),
	IGNORED("buildid-all", 0),
	IGNORED("no-bpf-event", 0),
	IGNORED("", 'P'),
	/* py-spy record */
	IGNORED("native", 'n'),
	IGNORED("nonblocking", 0),

	INSTEAD("uid", 'u', "-p $(pgrep -d, -u USER)"),
	INSTEAD("", 'G', "--cgroup PATH"),
	INSTEAD("", 'D', "--delay TIME      (500ms; a bare number is seconds)"),
	INSTEAD("realtime", 'r',
		"-F HZ for a sampling rate; for a realtime recorder: chrt -f 1 inspect …"),
	INSTEAD("stat", 's', "--children for py-spy's -s (child processes); perf's: leave it out"),
	INSTEAD("no-inherit", 0, "-t TID,…      (threads alone)"),
	INSTEAD("compression-level", 'z', "leave it out: files are written uncompressed"),
	INSTEAD("branch-any", 'b', "leave it out: branch records are not recorded"),
	INSTEAD("branch-filter", 'j', "leave it out: branch records are not recorded"),
	INSTEAD("intr-regs", 'I', "leave it out: registers are not recorded"),
	INSTEAD("user-regs", 0, "leave it out: registers are not recorded"),
	INSTEAD("weight", 'W', "leave it out: memory weights are not recorded"),
	INSTEAD("data", 0, "leave it out: data addresses are not recorded"),
	INSTEAD("clockid", 'k', "leave it out: times are always CLOCK_MONOTONIC"),
	INSTEAD("switch-output", 0, "-d TIME -o FILE, once for each file"),
	INSTEAD("overwrite", 0, "-d TIME -o FILE, once for each file"),
	INSTEAD("filter", 0, "leave it out: filters of tracepoints are not built"),
	INSTEAD("format", 0, FORMATS_INSTEAD),
	INSTEAD("idle", 0, "inspect record --wall, or inspect offcpu"),
	INSTEAD("wall", 0, "inspect record --wall, or inspect offcpu"),
	INSTEAD("off-cpu", 0, "inspect record --wall, or inspect offcpu"),
	INSTEAD("gil", 0, "leave it out: Python's lock is not looked at yet"),
	INSTEAD("threads", 0, "inspect report --sort comm,tid,symbol"),
	{0},
};
const struct option_group measuring_habit_group = {"", measuring_habits};

/* strace and perf trace */
static const struct option syscall_habits[] = {
	IGNORED("decode-fds", 'y'),
	IGNORED("summary-wall-clock", 'w'),
	INSTEAD("relative-timestamps", 'r', "--relative"),
	INSTEAD("absolute-timestamps", 0, "--timestamps"),
	INSTEAD("summary-sort-by", 'S', "--sort KEY"),
	INSTEAD("trace-path", 'P', "--by path, or --hot-files      (rows for all paths)"),
	INSTEAD("successful-only", 'z', "leave it out, or -Z for those that fail"),
	INSTEAD("failed-only", 0, "-Z"),
	INSTEAD("instruction-pointer", 'i', "-k      (the stack of each call)"),
	INSTEAD("strings-in-hex", 'x', "leave it out: bytes that are not text are escaped"),
	INSTEAD("pf", 'F', "inspect record -e page-faults -p PID"),
	INSTEAD("with-summary", 0, "-c"),
	INSTEAD("inject", 0, "strace --inject      (calls are watched here, never changed)"),
	{0},
};
const struct option_group syscall_habit_group = {"", syscall_habits};

/* offcputime */
static const struct option wait_habits[] = {
	INSTEAD("folded", 'f',
		"inspect offcpu -o wait.data -p PID, then inspect flame --folded wait.data"),
	INSTEAD("kernel-stacks-only", 'K', "--kernel-only"),
	INSTEAD("user-stacks-only", 'U', "--user-only"),
	INSTEAD("min-block-time", 'm', "--min-wait TIME      (1ms; a bare number is seconds)"),
	INSTEAD("max-block-time", 'M', "--max-wait TIME      (1ms; a bare number is seconds)"),
	INSTEAD("kernel-threads-only", 'k', "-a --kthreads"),
	{0},
};
const struct option_group wait_habit_group = {"", wait_habits};

/* py-spy dump, jstack, eu-stack */
static const struct option stack_habits[] = {
	INSTEAD("locals", 'l', "leave it out: variables are not read"),
	INSTEAD("source", 's', "leave it out: lines are shown where debug information is"),
	{0},
};
const struct option_group stack_habit_group = {"", stack_habits};

/* top, vmstat, iostat */
static const struct option resource_habits[] = {
	IGNORED("batch-mode", 'b'),
	IGNORED("extended", 'x'),
	INSTEAD("delay", 'i', "--watch -d TIME"),
	INSTEAD("threads", 'H', "-p PID: the hottest thread is a row"),
	INSTEAD("user", 'u', "-p $(pgrep -d, -u USER)"),
	{0},
};
const struct option_group resource_habit_group = {"", resource_habits};

static const struct option reading_habits[] = {
	/* perf report and perf script */
	IGNORED("stdio", 0),
	IGNORED("stdio2", 0),
	IGNORED("tui", 0),
	IGNORED("force", 'f'),
	IGNORED("header", 'I'),
	IGNORED("show-nr-samples", 'n'),
	IGNORED("show-total-period", 0),
	IGNORED("no-children", 0),
	IGNORED("children", 0),
	IGNORED("no-inline", 0),
	IGNORED("demangle", 0),
	/* flamegraph.pl: colours and sizes come by themselves */
	IGNORED("hash", 0),
	IGNORED("cp", 0),
	IGNORED_VALUE("colors"),
	IGNORED_VALUE("width"),
	IGNORED_VALUE("height"),
	IGNORED_VALUE("fonttype"),
	IGNORED_VALUE("fontsize"),
	IGNORED_VALUE("countname"),

	INSTEAD("gtk", 0, "inspect flame > out.svg"),
	INSTEAD("fields", 'F', "--sort KEY,…"),
	INSTEAD("percent-limit", 0, "inspect report --min-percent P, or --top N"),
	INSTEAD("call-graph", 'g', "inspect report --tree, --callers FUNC or --callees FUNC"),
	INSTEAD("parent", 0, "inspect report --callers FUNC"),
	INSTEAD("symfs", 0, "leave it out: names travel in the recording"),
	INSTEAD("vmlinux", 'k', "leave it out: names travel in the recording"),
	INSTEAD("kallsyms", 0, "leave it out: names travel in the recording"),
	INSTEAD("inverted", 0, "--icicle"),
	INSTEAD("minwidth", 0, "leave it out: narrow frames appear as you zoom"),
	INSTEAD("flamechart", 0, "leave it out: stacks are merged, not drawn along time"),
	{0},
};
const struct option_group reading_habit_group = {"", reading_habits};
