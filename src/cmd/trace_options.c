/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace.h"

#include <math.h>

/* Whether the n bytes are a word of "a|b|c". */
static bool is_word_of(const char *words, const char *text, size_t n)
{
	for (const char *at = words; *at; at += strcspn(at, "|"), at += *at == '|')
		if (strcspn(at, "|") == n && !strncmp(at, text, n))
			return true;
	return false;
}

int trace_parse_by(const char *arg, uint32_t *ret, struct diag *d)
{
	static const struct {
		const char *name;
		enum syscalls_by by;
	} names[] = {
		{"syscall", SYSCALLS_BY_CALL},  {"call", SYSCALLS_BY_CALL},
		{"thread", SYSCALLS_BY_THREAD}, {"tid", SYSCALLS_BY_THREAD},
		{"comm", SYSCALLS_BY_COMM},     {"fd", SYSCALLS_BY_FD},
		{"path", SYSCALLS_BY_PATH},     {"file", SYSCALLS_BY_PATH},
		{"device", SYSCALLS_BY_DEVICE}, {"errno", SYSCALLS_BY_ERRNO},
		{"cgroup", SYSCALLS_BY_CGROUP},
	};
	uint32_t by = 0;

	for (const char *at = arg ? arg : "syscall";; at++) {
		size_t n = strcspn(at, ","), i = 0;

		while (i < ARRAY_SIZE(names) &&
		       (strlen(names[i].name) != n || strncmp(names[i].name, at, n)))
			i++;
		if (n == 5 && !strncmp(at, "stack", n)) {
			diag_set(d, -EINVAL, "--by: stack goes with -c, and with no other key");
			diag_fix(d, "inspect trace -c --by stack -p PID      (a row for each call "
				    "from each stack)");
			return -EINVAL;
		}
		if (i == ARRAY_SIZE(names))
			return diag_set(d, -EINVAL,
					"--by: '%.*s' is not one of syscall, thread, comm, fd, "
					"path, device, errno, cgroup; or stack, with -c",
					(int)n, at);
		by |= names[i].by;
		at += n;
		if (!*at)
			break;
	}
	if (__builtin_popcount(by & SYSCALLS_BY_FILE) > 1)
		return diag_set(d, -EINVAL, "--by: fd, path and device exclude each other");
	*ret = by;
	return 0;
}

static int parse_limit(void *value, const char *arg, struct diag *d)
{
	struct trace_values *v = (void *)((char *)value - offsetof(struct trace_values, limits));
	const char *equals = strchr(arg, '=');
	char *name, *end;
	double limit = equals ? strtod(equals + 1, &end) : NAN;

	if (!equals || equals == arg || !equals[1] || *end || !isfinite(limit) || limit < 0)
		return diag_set(d, -EINVAL, "not of the form RULE=N");
	name = strndup(arg, (size_t)(equals - arg));
	if (!name || array_push(&v->limits, (struct trace_limit){name, limit})) {
		free(name);
		return diag_errno(d, -ENOMEM, "--limit");
	}
	return 0;
}

/* strace's other qualifiers. */
static int parse_qualifier(struct trace_values *v, const char *arg, size_t n, struct diag *d)
{
	static const struct {
		const char *names, *instead;
	} others[] = {
		{"status|statuses", "-Z      (those that fail)"},
		{"signal|signals|s", "inspect trace --probe t:signal:signal_deliver --by sig"},
		{"inject|fault", "strace -e inject=…      (calls are watched here, never changed)"},
		{"read|reads|write|writes|r|w",
		 "-e read,write -s N      (bytes of buffers to show)"},
		{"abbrev|verbose|raw|a|v|x", "-s N      (bytes of buffers to show)"},
		{"quiet|silent|silence|q", "-q"},
	};

	if (str_eq(arg, "status=failed")) {
		v->failed = true;
		return 0;
	}
	if (n == strlen("decode-fds") && str_starts(arg, "decode-fds"))
		return 0; /* always */
	diag_set(d, -EINVAL, "'%.*s=' is not looked at", (int)n, arg);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (is_word_of(others[i].names, arg, n))
			diag_fix(d, "%s", others[i].instead);
	return -EINVAL;
}

static int parse_filter(void *value, const char *arg, struct diag *d)
{
	struct trace_values *v = (void *)((char *)value - offsetof(struct trace_values, filter));
	size_t n = strcspn(arg, "=");

	if (!arg[n] || is_word_of("trace|t", arg, n)) {
		v->filter = arg[n] ? arg + n + 1 : arg;
		return 0;
	}
	return parse_qualifier(v, arg, n, d);
}

static int parse_string_bytes(void *value, const char *arg, struct diag *d)
{
	struct trace_values *v =
		(void *)((char *)value - offsetof(struct trace_values, string_bytes));
	uint64_t n;

	if (options_number(arg, SYSCALL_STRING_BYTES_MAX, &n)) {
		diag_set(d, -EINVAL, "not a number of bytes up to %d", SYSCALL_STRING_BYTES_MAX);
		diag_fix(d, "-c      (a summary, as perf trace -s)");
		return -EINVAL;
	}
	v->string_bytes = (uint32_t)n;
	v->string_bytes_given = true;
	return 0;
}

void trace_values_release(struct trace_values *v)
{
	for (size_t i = 0; i < v->limits.n; i++)
		free((char *)v->limits.v[i].rule);
	array_release(&v->limits);
	array_release(&v->gpu_choice.devices);
}

#define OWN(field) offsetof(struct trace_values, field)

static const struct option what_options[] = {
	{.name = "summary",
	 .letter = 'c',
	 .type = OPTION_FLAG,
	 .offset = OWN(summary),
	 .help = "a table: calls, errors, time, percentiles, and what stands out"},
	{.name = "summary-only", .type = OPTION_FLAG, .offset = OWN(summary)},
	{.name = "hist",
	 .type = OPTION_FLAG,
	 .offset = OWN(hist),
	 .help = "the distribution of latencies, for each call or --by"},
	{.name = "of",
	 .arg = "WHAT",
	 .type = OPTION_STRING,
	 .offset = OWN(of),
	 .help = "with --hist: latency or bytes; with --probe: latency, arg1…arg6, retval"},
	{.name = "locks",
	 .type = OPTION_FLAG,
	 .offset = OWN(locks),
	 .help = "a row for each futex: waits, who waits and who wakes"},
	{.name = "lock",
	 .arg = "ADDR|NAME",
	 .type = OPTION_STRING,
	 .offset = OWN(lock),
	 .help = "with --locks: only this one"},
	{.name = "hold",
	 .type = OPTION_FLAG,
	 .offset = OWN(hold),
	 .help = "with --locks: how long mutexes are held instead, by probes of the C library"},
	{.name = "probe",
	 .arg = "POINT",
	 .type = OPTION_STRING,
	 .offset = OWN(probe),
	 .help = "time a function or count events: u:PATH:FUNC, usdt:PATH:PROVIDER:NAME, "
		 "t:CATEGORY:NAME, k:FUNC"},
	{.name = "until",
	 .arg = "POINT",
	 .type = OPTION_STRING,
	 .offset = OWN(until),
	 .help = "with --probe: where it ends, in the same thread"},
	{.name = "if",
	 .arg = "CONDITION",
	 .type = OPTION_STRING,
	 .offset = OWN(condition),
	 .help = "with --probe: only these, such as 'arg3>4096 && retval>=0'"},
	{.name = "expr",
	 .letter = 'e',
	 .arg = "CALLS",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(filter),
	 .parse = parse_filter,
	 .help = "only these: futex,openat or '!futex' or %file,%net,%memory,%process,…"},
	{.name = "trace",
	 .arg = "CALLS",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(filter),
	 .parse = parse_filter},
	{.name = "follow-forks", .letter = 'f', .type = OPTION_IGNORED},
	{.name = "explain",
	 .type = OPTION_FLAG,
	 .offset = OWN(explain),
	 .help = "the rules behind the findings, with their limits and sources"},
	{0},
};
static const struct option_group what_group = {"What", what_options};

static const struct option gpu_options[] = {
	{.name = "gpu",
	 .type = OPTION_FLAG,
	 .offset = OWN(gpu),
	 .help = "calls of NVIDIA's driver by name and status; -c, --hist, --by as above"},
	{.name = "leaks",
	 .type = OPTION_FLAG,
	 .offset = OWN(leaks),
	 .help = "with --gpu: what was allocated and not freed"},
	{.name = "cuda",
	 .type = OPTION_FLAG,
	 .offset = OWN(cuda),
	 .help = "a table of CUDA driver API calls: waits, memory, copies; --by thread, stream"},
	{.name = "cuda-launch",
	 .type = OPTION_FLAG,
	 .offset = OWN(cuda_launch),
	 .help = "with --cuda: launches of kernels and graphs too"},
	{0},
};
static const struct option_group gpu_group = {"GPU drivers", gpu_options};

static const struct option stream_options[] = {
	{.name = "min-latency",
	 .arg = "TIME",
	 .type = OPTION_DURATION,
	 .offset = OWN(min_latency_ns),
	 .help = "calls that take at least this long: 10ms"},
	{.name = "failed",
	 .letter = 'Z',
	 .type = OPTION_FLAG,
	 .offset = OWN(failed),
	 .help = "calls that fail"},
	{.name = "string-limit",
	 .letter = 's',
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(string_bytes),
	 .parse = parse_string_bytes,
	 .help = "bytes of buffers to show (32, at most 1024); paths are whole"},
	{.name = "stack",
	 .letter = 'k',
	 .type = OPTION_FLAG,
	 .offset = OWN(stack),
	 .help = "the stack of each call below it: where it slept in the kernel, and the user's"},
	{.name = "timestamps",
	 .type = OPTION_FLAG,
	 .offset = OWN(timestamps),
	 .help = "the time of day before each call"},
	{.name = "relative",
	 .type = OPTION_FLAG,
	 .offset = OWN(relative),
	 .help = "the seconds since the start before each call"},
	{.name = "syscall-times", .letter = 'T', .type = OPTION_IGNORED},
	{.name = "opens",
	 .type = OPTION_FLAG,
	 .offset = OWN(opens),
	 .help = "a table instead: which files are opened, with what result"},
	{.name = "hot-files",
	 .type = OPTION_FLAG,
	 .offset = OWN(hot_files),
	 .help = "a table instead: which files and sockets are read and written most"},
	{0},
};
static const struct option_group stream_group = {"Without -c and --hist: a line for each call",
						 stream_options};

static const struct option table_options[] = {
	{.name = "by",
	 .arg = "KEY,…",
	 .type = OPTION_STRING,
	 .offset = OWN(by),
	 .help = "a row for each syscall, thread, comm, fd, path, device, errno, cgroup; or stack"},
	{.name = "output",
	 .letter = 'o',
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(output),
	 .help = "with --by stack: a perf.data file too, for report, flame, diff, perf"},
	{.name = "flame",
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(flame),
	 .help = "with --by stack: a flame graph (SVG) of the time in calls"},
	{.name = "sort",
	 .arg = "KEY",
	 .type = OPTION_CHOICE,
	 .offset = OWN(sort),
	 .choices = trace_sort_names,
	 .help = "by total time (default), calls, errors, avg, p50, p99, max, bytes, in-flight"},
	{.name = "top",
	 .arg = "N",
	 .type = OPTION_U64,
	 .offset = OWN(top),
	 .help = "rows (histograms with --hist) to show"},
	{.name = "all", .type = OPTION_FLAG, .offset = OWN(all_rows), .help = "all of them"},
	{.name = "interval",
	 .letter = 'I',
	 .arg = "TIME",
	 .type = OPTION_INTERVAL,
	 .offset = OWN(interval_ns),
	 .help = "a table for each interval: 1s; a bare number is ms; lines with --json"},
	{.name = "count",
	 .letter = 'n',
	 .arg = "N",
	 .type = OPTION_UNSIGNED,
	 .offset = OWN(count),
	 .help = "with -I: how many"},
	{.name = "limit",
	 .arg = "RULE=N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(limits),
	 .parse = parse_limit,
	 .help = "when a finding speaks: small-writes=5000 (see --explain)"},
	{.name = "verbose",
	 .letter = 'v',
	 .type = OPTION_FLAG,
	 .offset = OWN(verbose),
	 .help = "how calls are watched, and what others pay for it"},
	{0},
};
static const struct option_group table_group = {"Table", table_options};

size_t trace_bind(struct trace_values *v, struct option_binding *bindings)
{
	const struct option_binding all[] = {
		{&what_group, v},
		{&gpu_group, v},
		{&gpu_choice_group, &v->gpu_choice},
		{&stream_group, v},
		{&table_group, v},
		{&target_option_group, &v->target},
		{&duration_option_group, &v->duration},
		{&common_option_group, &v->common},
		{&syscall_habit_group, NULL},
		{&measuring_habit_group, NULL},
	};

	_Static_assert(ARRAY_SIZE(all) <= TRACE_BINDINGS_MAX, "room of the callers");
	memcpy(bindings, all, sizeof(all));
	return ARRAY_SIZE(all);
}

bool trace_is_stream(const struct trace_values *v)
{
	return !v->summary && !v->hist && !v->probe && !v->locks && !v->leaks && !v->cuda &&
	       !v->hot_files && !v->by && !v->sort && !v->interval_ns;
}

/* --hot-files is a table by path of what reads and writes. */
static void choose_hot_files(struct trace_values *v)
{
	v->by = "path";
	v->sort = TRACE_SORT_BYTES;
	if (!v->filter)
		v->filter = "read,write,pread64,pwrite64,readv,writev,preadv,pwritev,preadv2,"
			    "pwritev2,sendto,recvfrom,sendmsg,recvmsg,sendfile,copy_file_range,"
			    "fsync,fdatasync,sync_file_range";
}

static int check_stream(const struct trace_values *v, struct diag *d)
{
	bool stream = trace_is_stream(v);
	const struct {
		const char *name;
		bool given;
	} own[] = {{"--min-latency", v->min_latency_ns != 0},
		   {"--failed", v->failed},
		   {"-s", v->string_bytes_given},
		   {"--stack", v->stack},
		   {"--timestamps", v->timestamps},
		   {"--relative", v->relative},
		   {"--opens", v->opens}};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(own) && !err && !stream; i++)
		if (own[i].given)
			err = diag_set(d, -EINVAL, "%s is for the stream, without a table",
				       own[i].name);
	if (!err && stream && !v->opens && (v->common.csv || v->common.markdown)) {
		err = diag_set(d, -EINVAL, "a stream has lines, no table");
		diag_fix(d, "--json for a JSON object a line, or -c for a table");
	}
	return err;
}

int trace_check_options(struct trace_values *v, const struct operands *operands UNUSED,
			struct diag *d)
{
	const struct {
		const char *a, *b;
		bool a_given, b_given;
	} pairs[] = {
		{"--json", "--csv", v->common.json, v->common.csv},
		{"-c", "--hist", v->summary, v->hist},
		{"-c", "--probe", v->summary, v->probe != NULL},
		{"-c", "--locks", v->summary, v->locks},
		{"--hist", "--locks", v->hist, v->locks},
		{"--probe", "--locks", v->probe != NULL, v->locks},
		{"-e", "--locks", v->filter != NULL, v->locks},
		{"--by", "--locks", v->by != NULL, v->locks},
		{"-e", "--probe", v->filter != NULL, v->probe != NULL},
		{"-I", "--csv", v->interval_ns != 0, v->common.csv},
		{"--timestamps", "--relative", v->timestamps, v->relative},
		{"--opens", "--hot-files", v->opens, v->hot_files},
		{"--gpu", "--cuda", v->gpu, v->cuda},
		{"--cuda", "--probe", v->cuda, v->probe != NULL},
		{"--cuda", "--locks", v->cuda, v->locks},
		{"--cuda", "--opens", v->cuda, v->opens},
		{"--cuda", "--hot-files", v->cuda, v->hot_files},
		{"--cuda", "-e", v->cuda, v->filter != NULL},
		{"--cuda", "-I", v->cuda, v->interval_ns != 0},
		{"--gpu", "--probe", v->gpu, v->probe != NULL},
		{"--gpu", "--locks", v->gpu, v->locks},
		{"--gpu", "--opens", v->gpu, v->opens},
		{"--gpu", "--hot-files", v->gpu, v->hot_files},
		{"--gpu", "-e", v->gpu, v->filter != NULL},
		{"--gpu", "-I", v->gpu, v->interval_ns != 0},
		{"--gpu", "--stack", v->gpu, v->stack},
		{"--gpu", "-s", v->gpu, v->string_bytes_given},
		{"--cuda", "--sort", v->cuda, v->sort != 0},
		{"--cuda", "--limit", v->cuda, v->limits.n != 0},
		{"--cuda", "--explain", v->cuda, v->explain},
		{"--leaks", "--by", v->leaks, v->by != NULL},
		{"--leaks", "--sort", v->leaks, v->sort != 0},
		{"-c", "--leaks", v->summary, v->leaks},
		{"--hist", "--leaks", v->hist, v->leaks},
		{"-e", "--opens", v->filter != NULL, v->opens},
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pairs) && !err; i++)
		err = options_conflict(pairs[i].a, pairs[i].a_given, pairs[i].b, pairs[i].b_given,
				       d);
	if (!err && !v->gpu && (v->leaks || gpu_choice_given(&v->gpu_choice)))
		err = diag_set(d, -EINVAL, "%s needs --gpu",
			       v->leaks ? "--leaks" : gpu_choice_given(&v->gpu_choice));
	if (!err && v->cuda_launch && !v->cuda)
		err = diag_set(d, -EINVAL, "--cuda-launch needs --cuda");
	if (!err && (v->output || v->flame) && !trace_is_by_stack(v)) {
		err = diag_set(d, -EINVAL, "%s is for -c --by stack", v->output ? "-o" : "--flame");
		diag_fix(d, "inspect trace … > FILE      (CMD's own output: CMD > OTHER)");
	}
	if (!err && (v->lock || v->hold) && !v->locks)
		err = diag_set(d, -EINVAL, "%s needs --locks", v->hold ? "--hold" : "--lock");
	if (!err && v->count && !v->interval_ns)
		err = diag_set(d, -EINVAL, "-n needs -I TIME");
	if (!err && v->of && !v->hist && !v->probe)
		err = diag_set(d, -EINVAL, "--of needs --hist or --probe");
	if (!err && (v->gpu || v->cuda) && v->of && !str_eq(v->of, "latency"))
		err = diag_set(d, -EINVAL, "%s: a distribution is of latencies",
			       v->gpu ? "--gpu" : "--cuda");
	if (!err && v->hist && !v->probe && v->of && !str_eq(v->of, "latency") &&
	    !str_eq(v->of, "bytes"))
		err = diag_set(d, -EINVAL, "--of %s: not one of latency, bytes", v->of);
	if (!err && (v->until || v->condition) && !v->probe)
		err = diag_set(d, -EINVAL, "%s needs --probe POINT", v->until ? "--until" : "--if");
	if (!err && v->target.cpus) {
		err = diag_set(d, -EINVAL, "-C: calls belong to threads, not to CPUs");
		diag_fix(d, "-a, -p PID or -t TID");
		diag_fix(d, "-c, for a table      (strace's -C, beside the lines: run it twice)");
	}
	/* strace's -t, -tt and -ttt. */
	if (!err && v->target.tids && (*v->target.tids < '0' || *v->target.tids > '9')) {
		err = diag_set(d, -EINVAL, "-t %s: not a thread's number", v->target.tids);
		diag_fix(d, "--timestamps      (the time of day before each call)");
	}
	if (!err && v->hot_files)
		choose_hot_files(v);
	if (!err)
		err = check_stream(v, d);
	return err ? err : trace_check_limits(v, d);
}

int trace_parse_filter(const char *text, struct syscall_set *ret, struct diag *d)
{
	int err = syscall_set_parse(text, ret, d);

	if (!err && !syscall_set_count(ret))
		err = diag_set(d, -EINVAL, "-e %s: names no call", text);
	return err;
}
