/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One option table for parsing, --help, man page SYNOPSIS checks and "did you mean".
 */
#ifndef INSPECT_OPTIONS_H
#define INSPECT_OPTIONS_H

#include <inspect/array.h>
#include <inspect/diag.h>
#include <sys/types.h>

enum option_type {
	OPTION_FLAG,     /* bool */
	OPTION_STRING,   /* const char * (borrowed from argv) */
	OPTION_U64,      /* uint64_t */
	OPTION_UNSIGNED, /* unsigned */
	OPTION_DURATION, /* uint64_t ns; bare number = seconds */
	OPTION_INTERVAL, /* uint64_t ns; bare number = milliseconds, below 10 ms refused */
	OPTION_PERCENT,  /* double; "0.5" or "0.5%" */
	OPTION_CHOICE,   /* unsigned, index in `choices` ("auto|fp|none") */
	OPTION_CUSTOM,   /* parse() */
	OPTION_HELP,     /* ends the parse: main prints the command's help */
	OPTION_IGNORED,  /* accepted from habit, means nothing here */
	OPTION_REJECTED, /* another tool's option: `help` is our spelling, put into the message */
};

struct option {
	const char *name; /* "freq"; NULL ends a group */
	char letter;      /* 'F', or 0 */
	const char *arg;  /* "HZ"; NULL: takes none */
	enum option_type type;
	size_t offset;       /* of the value in the group's struct */
	const char *help;    /* one line; NULL: works but is not listed */
	const char *choices; /* IGNORED: refused as if REJECTED when one of these words follows */
	int (*parse)(void *value, const char *arg, struct diag *d);
};

struct option_group {
	const char *title; /* "Target"; heading in --help */
	const struct option *options;
};

/* A group and the struct of this run that its options fill. */
struct option_binding {
	const struct option_group *group;
	void *values;
};

/*
 * Parses argv[1…] (GNU style: --name=value, --name value, -Fvalue, bundled flags, unique prefixes
 * of long names refused; options end at "--"; with stop_at_operand at the first operand, as in
 * perf, so that CMD's own options stay his). Operands are collected in order; `after_dashes` is the
 * index in operands of the first one after "--", or SIZE_MAX.
 * Usage errors: -EINVAL with the option, the reason, and the nearest name. --help: -ECANCELED,
 * also in the diag: the command returns as for any failure, and main prints its help. Of an option
 * given twice the last wins. argv is permuted, so that options come before operands.
 */
struct operands {
	char **v; /* borrowed from argv */
	size_t n;
	size_t after_dashes;
};
int options_parse(const struct option_binding *bindings, size_t n_bindings, int argc, char **argv,
		  bool stop_at_operand, struct operands *ret, struct diag *d);

/* A whole decimal number, without sign or space. 0, -EINVAL, or -ERANGE when above max. */
int options_number(const char *text, uint64_t max, uint64_t *ret);

/* Of -m: an `unsigned`, a power of two. */
int options_mmap_pages(void *value, const char *arg, struct diag *d);
/* Of --max-stack: an `unsigned`, at least 1. */
int options_max_stack(void *value, const char *arg, struct diag *d);

/* Refuses two options of which only one makes sense, by the names that are given. 0 or -EINVAL. */
int options_conflict(const char *a, bool a_given, const char *b, bool b_given, struct diag *d);

/* The option list of --help, group by group, in columns. */
void options_help(const struct option_binding *bindings, size_t n_bindings, FILE *out);

/* Shared groups and their values (design.md, "One option table"). */
struct target_options {
	const char *pids, *tids, *cpus, *cgroup; /* as given */
	bool all, children;
	bool cgroup_later; /* set by a command that lists a cgroup's processes itself, or none */
	bool no_threads;   /* set by a command without -t */
	bool with_zombies; /* set by a command that has something to say of them */
};
extern const struct option_group target_option_group;

#define FREQ_HZ_MAX UINT64_MAX /* -F max: the highest rate that the kernel allows */

struct sampling_options {
	const char *events;
	uint64_t freq_hz, period; /* 0: not given */
	unsigned call_graph;      /* enum call_graph */
	unsigned stack_bytes;     /* of CALL_GRAPH_DWARF */
	bool g;
	bool user_only, kernel_only, idle_cpus;
	bool wall;                      /* what threads wait for too */
	unsigned max_stack, mmap_pages; /* 0: not given; pages a power of two */
};
enum call_graph { CALL_GRAPH_AUTO, CALL_GRAPH_FP, CALL_GRAPH_DWARF, CALL_GRAPH_NONE };
extern const struct option_group sampling_option_group;

struct duration_options {
	uint64_t duration_ns, delay_ns;
};
extern const struct option_group duration_option_group;

/* -i is an alias for the FILE operand. */
struct input_options {
	const char *file;
};
extern const struct option_group input_option_group;

/* --json --csv --markdown --color -q and --help: every command has it. */
struct common_options {
	const char *markdown;
	bool json, csv, quiet;
	unsigned color; /* enum color_mode */
};
extern const struct option_group common_option_group;

/*
 * Options that people know from other tools and that mean nothing here (ignored) or are spelled
 * otherwise (refused, with our spelling). Bound last, without values: what a command has itself
 * comes first. One group for commands that measure, one for those that read a file; before them,
 * of those who did the same work: strace, offcputime, pstack, top.
 */
extern const struct option_group measuring_habit_group, reading_habit_group;
extern const struct option_group syscall_habit_group, wait_habit_group, stack_habit_group,
	resource_habit_group;

/* --no-demangle --no-inline --offline --no-cache */
struct naming_options {
	bool no_demangle, no_inline, offline;
	bool no_cache; /* of unwind tables, on disk */
};
extern const struct option_group naming_option_group;

#endif
