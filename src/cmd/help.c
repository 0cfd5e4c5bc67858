/* SPDX-License-Identifier: BSD-2-Clause */

#include <bpf/libbpf.h>
#include <elfutils/version.h>
#include <inspect/command.h>
#include <inspect/near_miss.h>
#include <inspect/perf_sampler.h>
#include <inspect/term.h>
#include <inspect/version.h>
#include <zlib.h>
#include <zstd.h>

/* What lines that go on begin with. */
#define USAGE_MARGIN "          "
#define SUMMARY_MARGIN "                    "

void help_overview(FILE *out)
{
	fputs("inspect: where a program's time goes\n"
	      "\n"
	      "usage: inspect COMMAND [OPTIONS] …\n"
	      "       inspect COMMAND --help\n"
	      "\n"
	      "The question, and the command that answers it:\n",
	      out);
	for (size_t i = 0; commands[i]; i++) {
		CLEANUP(strbuf_release) struct strbuf line = {0}, wrapped = {0};

		strbuf_printf(&line, "    inspect %-8s %s", commands[i]->name,
			      commands[i]->summary);
		term_wrap(&wrapped, strbuf_str(&line), term_width(fileno(out)), 0, SUMMARY_MARGIN);
		fprintf(out, "\n  %s\n%s\n", commands[i]->question, strbuf_str(&wrapped));
	}
	fputs("\n"
	      "To begin with, on a process that is slow now, and on one that hangs:\n"
	      "    inspect record -p PID -d 10 && inspect report\n"
	      "    inspect stack -p PID\n"
	      "\n"
	      "inspect --version -v lists what this build can do.\n",
	      out);
}

void help_command(const struct command *c, FILE *out)
{
	unsigned columns = term_width(fileno(out));
	const char *prefix = "usage:";

	for (const char *line = c->usage; *line;) {
		CLEANUP(strbuf_release) struct strbuf text = {0}, wrapped = {0};
		size_t n = strcspn(line, "\n");

		strbuf_printf(&text, "%-6s %s%.*s", prefix,
			      str_starts(line, c->name) ? "inspect " : "", (int)n, line);
		term_wrap(&wrapped, strbuf_str(&text), columns, 0, USAGE_MARGIN);
		fprintf(out, "%s\n", strbuf_str(&wrapped));
		prefix = "   or:";
		line += n + (line[n] == '\n');
	}
	fprintf(out, "\n%s\n%s\n", c->question, c->summary);
	c->help(out);
}

void help_version(bool verbose, FILE *out)
{
	fprintf(out, "inspect %s\n", INSPECT_VERSION);
	if (!verbose)
		return;
	fprintf(out, "  samplers:   BPF, perf_event_open\n");
	fprintf(out, "  stacks:     .eh_frame and .debug_frame (in BPF, or from copies), frame "
		     "pointers\n");
	fprintf(out, "  libelf:     elfutils %d.%d\n", _ELFUTILS_VERSION / 1000,
		_ELFUTILS_VERSION % 1000);
	fprintf(out, "  libdw:      elfutils %d.%d\n", _ELFUTILS_VERSION / 1000,
		_ELFUTILS_VERSION % 1000);
	fprintf(out, "  libbpf:     %u.%u\n", libbpf_major_version(), libbpf_minor_version());
	fprintf(out, "  libpfm4:    %s\n",
		event_library_found() ? "loaded for event names" : "not here (libpfm.so.4)");
	fprintf(out, "  zlib:       %s\n", zlibVersion());
	fprintf(out, "  zstd:       %s (reads perf record -z)\n", ZSTD_versionString());
	fprintf(out, "  demangler:  libiberty (C++, Rust)\n");
#ifdef __clang__
	fprintf(out, "  compiler:   %s\n", __VERSION__);
#else
	fprintf(out, "  compiler:   gcc %s\n", __VERSION__);
#endif
#if defined(__x86_64__)
	fprintf(out, "  machine:    x86_64\n");
#elif defined(__aarch64__)
	fprintf(out, "  machine:    aarch64\n");
#else
	fprintf(out, "  machine:    other than x86_64 and aarch64\n");
#endif
}

/* Commands of perf, py-spy, strace, bcc and others, and how to come to the same end here. */
static const struct {
	const char *names, *fix;
} elsewhere[] = {
	{"top|htop|atop|iostat|vmstat|mpstat|sar|pidstat|iotop|nvidia-smi|dstat|glances",
	 "inspect use --watch      (-p PID: as one process sees it)"},
	{"top|profile", "inspect record -p PID -d 10 && inspect report      (by function)"},
	{"strace|syscount|truss",
	 "inspect trace -c -p PID -d 10      (without -c: a line for each call)"},
	{"opensnoop|statsnoop", "inspect trace --opens -p PID -d 10"},
	{"filetop|fileslower", "inspect trace --hot-files -p PID -d 10"},
	{"ltrace|uprobe|probe|funclatency|funccount|argdist|bpftrace|bpf",
	 "inspect trace --probe u:PATH:FUNC -p PID -d 10      (also usdt:, t: and k:)"},
	{"lock|klockstat", "inspect trace --locks -p PID -d 10"},
	{"sched|offcputime|offwaketime|wakeuptime|runqlat|runqslower|cpudist|timechart",
	 "inspect offcpu -p PID -d 10      (--wakers: with who ended each wait)"},
	{"biolatency|biosnoop|ext4slower",
	 "inspect use      (await of each disk), inspect trace --hist -e fsync,read,write -p PID"},
	{"dump|pstack|gstack|eu-stack|jstack|gdb|pystack|wchan", "inspect stack -p PID"},
	{"script", "inspect flame --folded      (stacks as text; perf script reads our files too)"},
	{"annotate",
	 "inspect report      (functions; instructions: perf annotate -i inspect.data)"},
	{"list",
	 "inspect doctor      (kinds of events that work here; names are those of perf list)"},
	{"flamegraph|stackcollapse", "inspect flame > out.svg"},
	{"archive|buildid-cache", "nothing is needed: names travel in the recording"},
	{"mem|c2c", "perf mem record, perf c2c record      (data addresses are not recorded here)"},
	{"version", "inspect --version -v"},
};

/* Whether name is one of those between the bars of names. */
static bool is_one_of(const char *names, const char *name)
{
	size_t n;

	for (const char *at = names;; at += n + 1) {
		n = strcspn(at, "|");
		if (strlen(name) == n && !strncmp(at, name, n))
			return true;
		if (!at[n])
			return false;
	}
}

int help_unknown_command(const char *name, struct diag *d)
{
	struct near_misses near = {.word = name};
	bool known = false;

	if (name[0] == '-') {
		diag_set(d, -EINVAL, "a command comes before the options: %s", name);
		diag_fix(d, "inspect record %s …", name);
		diag_fix(d, "inspect --help");
		return -EINVAL;
	}
	diag_set(d, -EINVAL, "there is no command '%s'", name);
	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
		if (is_one_of(elsewhere[i].names, name)) {
			diag_fix(d, "%s", elsewhere[i].fix);
			known = true;
		}
	for (size_t i = 0; commands[i]; i++)
		near_misses_add(&near, commands[i]->name);
	if (near.n && !known)
		diag_fix(d, "inspect %s", near.best[0].name);
	diag_fix(d, "inspect --help      (all commands)");
	return -EINVAL;
}
