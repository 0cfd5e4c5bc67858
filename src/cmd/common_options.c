/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of options that commands share: one letter means one thing everywhere. */
#include <inspect/options.h>

/* --- target ----------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct target_options, field)
static const struct option target_options[] = {
	{.name = "pid",
	 .letter = 'p',
	 .arg = "PID,…",
	 .type = OPTION_STRING,
	 .offset = AT(pids),
	 .help = "these processes, their threads, and what they start from now on"},
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
	 .help = "the whole system"},
	{.name = "cpu",
	 .letter = 'C',
	 .arg = "CPUS",
	 .type = OPTION_STRING,
	 .offset = AT(cpus),
	 .help = "only on these CPUs: 0-3,8"},
	{.name = "cgroup",
	 .arg = "PATH",
	 .type = OPTION_STRING,
	 .offset = AT(cgroup),
	 .help = "a cgroup (container, service)"},
	{.name = "children",
	 .type = OPTION_FLAG,
	 .offset = AT(children),
	 .help = "with -p: its existing child processes too"},
	{.name = "subprocesses", .type = OPTION_FLAG, .offset = AT(children)},
	{0},
};
#undef AT
const struct option_group target_option_group = {"Target (or CMD)", target_options};

/* --- sampling --------------------------------------------------------------------------------- */

/* A number from 1 to max. */
static int parse_positive(const char *arg, uint64_t max, uint64_t *ret, struct diag *d)
{
	uint64_t v;
	int err = options_number(arg, max, &v);

	if (err == -ERANGE)
		return diag_set(d, -EINVAL, "more than %llu", (unsigned long long)max);
	if (err)
		return diag_set(d, -EINVAL, "not a whole number");
	if (!v)
		return diag_set(d, -EINVAL, "must be at least 1");
	*ret = v;
	return 0;
}

static int parse_freq(void *value, const char *arg, struct diag *d)
{
	int err;

	if (str_eq(arg, "max")) {
		*(uint64_t *)value = FREQ_HZ_MAX;
		return 0;
	}
	err = parse_positive(arg, INT64_MAX, value, d);
	if (err)
		diag_fix(d, "-F 99, or -F max");
	return err;
}

static int parse_period(void *value, const char *arg, struct diag *d)
{
	return parse_positive(arg, INT64_MAX, value, d);
}

/* The kernel's limit on attr.sample_max_stack is a sysctl; the field itself has 16 bits. */
int options_max_stack(void *value, const char *arg, struct diag *d)
{
	uint64_t v = 0;
	int err = parse_positive(arg, UINT16_MAX, &v, d);

	if (!err)
		*(unsigned *)value = (unsigned)v;
	return err;
}

#define MMAP_PAGES_MAX (1u << 20)

int options_mmap_pages(void *value, const char *arg, struct diag *d)
{
	uint64_t v = 0;
	int err = parse_positive(arg, MMAP_PAGES_MAX, &v, d);

	if (err)
		return err;
	if (v & (v - 1)) {
		uint64_t below = 1ULL << (63 - __builtin_clzll(v));

		diag_set(d, -EINVAL, "not a power of two");
		diag_fix(d, "-m %llu, or -m %llu", (unsigned long long)below,
			 (unsigned long long)below * 2);
		return -EINVAL;
	}
	*(unsigned *)value = (unsigned)v;
	return 0;
}

#define AT(field) offsetof(struct sampling_options, field)

/* A record's size has 16 bits, so perf_event_open refuses more; 8 KiB, perf's default, misses most
 * callers of large programs. */
enum { STACK_BYTES_DEFAULT = 32768, STACK_BYTES_MAX = 65528 };

/* dwarf[,bytes] */
static int parse_dwarf(struct sampling_options *o, const char *size, struct diag *d)
{
	uint64_t bytes = STACK_BYTES_DEFAULT;

	if (*size == ',' &&
	    (options_number(size + 1, STACK_BYTES_MAX, &bytes) || bytes < 8 || bytes % 8))
		return diag_set(d, -EINVAL,
				"a stack copy of '%s' bytes: a multiple of 8 up to %d is possible",
				size + 1, STACK_BYTES_MAX);
	o->call_graph = CALL_GRAPH_DWARF;
	o->stack_bytes = (unsigned)bytes;
	return 0;
}

static int parse_call_graph(void *value, const char *arg, struct diag *d)
{
	static const struct {
		const char *name;
		enum call_graph mode;
	} modes[] = {{"auto", CALL_GRAPH_AUTO}, {"fp", CALL_GRAPH_FP}, {"none", CALL_GRAPH_NONE}};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (str_eq(arg, modes[i].name)) {
			*(unsigned *)value = modes[i].mode;
			return 0;
		}
	if (str_eq(arg, "dwarf") || str_starts(arg, "dwarf,"))
		return parse_dwarf((struct sampling_options *)((char *)value - AT(call_graph)),
				   arg + strlen("dwarf"), d);
	if (str_eq(arg, "lbr")) {
		diag_set(d, -EINVAL, "stacks from the CPU's branch records are not built");
		diag_fix(d, "--call-graph auto    (the default: needs no frame pointers)");
	} else {
		diag_set(d, -EINVAL, "not one of auto|fp|dwarf[,bytes]|none");
	}
	return -EINVAL;
}

static const struct option sampling_options[] = {
	{.name = "event",
	 .letter = 'e',
	 .arg = "EVENT,…",
	 .type = OPTION_STRING,
	 .offset = AT(events),
	 .help = "what to count, by perf's names (default: CPU time)"},
	{.name = "freq",
	 .letter = 'F',
	 .arg = "HZ",
	 .type = OPTION_CUSTOM,
	 .offset = AT(freq_hz),
	 .help = "samples a second for each thread or CPU (default 99), or max",
	 .parse = parse_freq},
	{.name = "rate",
	 .arg = "HZ",
	 .type = OPTION_CUSTOM,
	 .offset = AT(freq_hz),
	 .parse = parse_freq},
	{.name = "period",
	 .letter = 'c',
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = AT(period),
	 .help = "a sample every N events instead",
	 .parse = parse_period},
	{.name = "count",
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = AT(period),
	 .parse = parse_period},
	{.name = "",
	 .letter = 'g',
	 .type = OPTION_FLAG,
	 .offset = AT(g),
	 .help = "stacks as by --call-graph auto, which is the default"},
	{.name = "call-graph",
	 .arg = "MODE",
	 .type = OPTION_CUSTOM,
	 .offset = AT(call_graph),
	 .help = "stacks: auto (the best that works here), fp, dwarf[,bytes] or none",
	 .parse = parse_call_graph},
	{.name = "user-only",
	 .type = OPTION_FLAG,
	 .offset = AT(user_only),
	 .help = "no kernel samples and stacks"},
	{.name = "all-user", .type = OPTION_FLAG, .offset = AT(user_only)},
	{.name = "kernel-only",
	 .type = OPTION_FLAG,
	 .offset = AT(kernel_only),
	 .help = "no user samples and stacks"},
	{.name = "all-kernel", .type = OPTION_FLAG, .offset = AT(kernel_only)},
	{.name = "max-stack",
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = AT(max_stack),
	 .help = "frames of a stack, up to 1024 (default 127)",
	 .parse = options_max_stack},
	{.name = "wall",
	 .type = OPTION_FLAG,
	 .offset = AT(wall),
	 .help = "all of a thread's time: waits with their reasons too"},
	{.name = "idle", .type = OPTION_FLAG, .offset = AT(wall)},
	{.name = "idle-cpus",
	 .type = OPTION_FLAG,
	 .offset = AT(idle_cpus),
	 .help = "with -a: sample idle CPUs too"},
	{.name = "mmap-pages",
	 .letter = 'm',
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = AT(mmap_pages),
	 .help = "pages of each CPU's ring, a power of two",
	 .parse = options_mmap_pages},
	{0},
};
#undef AT
const struct option_group sampling_option_group = {"Sampling", sampling_options};

/* --- time, input, names, output --------------------------------------------------------------- */

#define AT(field) offsetof(struct duration_options, field)
static const struct option duration_options[] = {
	{.name = "duration",
	 .letter = 'd',
	 .arg = "TIME",
	 .type = OPTION_DURATION,
	 .offset = AT(duration_ns),
	 .help = "stop after 10 (seconds), 10s, 500ms, 5m"},
	{.name = "delay",
	 .arg = "TIME",
	 .type = OPTION_DURATION,
	 .offset = AT(delay_ns),
	 .help = "wait before measuring (warm-up)"},
	{0},
};
#undef AT
const struct option_group duration_option_group = {"Time", duration_options};

static const struct option input_options[] = {
	{.name = "input",
	 .letter = 'i',
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct input_options, file),
	 .help = "the same as FILE; - is stdin"},
	{0},
};
const struct option_group input_option_group = {"Input", input_options};

static const struct option naming_options[] = {
	{.name = "no-demangle",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct naming_options, no_demangle),
	 .help = "C++ and Rust names as the linker sees them"},
	{.name = "no-inline",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct naming_options, no_inline),
	 .help = "leave inlined functions out: what the linker knows only"},
	{.name = "offline",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct naming_options, offline),
	 .help = "ask no server in DEBUGINFOD_URLS for debug files"},
	{.name = "no-cache",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct naming_options, no_cache),
	 .help = "neither read nor keep unwind tables in ~/.cache/inspect"},
	{0},
};
const struct option_group naming_option_group = {"Names", naming_options};

#define AT(field) offsetof(struct common_options, field)
static const struct option common_options[] = {
	{.name = "json",
	 .type = OPTION_FLAG,
	 .offset = AT(json),
	 .help = "JSON instead of text; errors as objects"},
	{.name = "csv", .type = OPTION_FLAG, .offset = AT(csv), .help = "CSV instead of text"},
	{.name = "markdown",
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = AT(markdown),
	 .help = "also write the tables to FILE as Markdown"},
	{.name = "color",
	 .arg = "WHEN",
	 .type = OPTION_CHOICE,
	 .offset = AT(color),
	 .help = "auto, always or never",
	 .choices = "auto|always|never"},
	{.name = "quiet",
	 .letter = 'q',
	 .type = OPTION_FLAG,
	 .offset = AT(quiet),
	 .help = "no progress, summary or notes on stderr"},
	{.name = "verbose", .letter = 'v', .type = OPTION_IGNORED}, /* nothing is held back */
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "this text"},
	{0},
};
#undef AT
const struct option_group common_option_group = {"General", common_options};
