/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor_probe.h"
#include "print_result.h"

#include <inspect/command.h>
#include <inspect/explain.h>
#include <inspect/options.h>

/* --- facts ------------------------------------------------------------------------------------ */

/* A text in the `#` header and, under the same key, as data. */
static void add_text(struct result *r, const char *key, const char *label, const char *text)
{
	result_fact(r, key, label, text && *text ? cell_text(r, text) : cell_null(r, "unknown"));
}

/* A number, perhaps negative or unknown: as such in the data, without decimals in the header. */
static void add_number(struct result *r, const char *key, const char *label, int64_t v)
{
	bool known = v != HOST_UNKNOWN;

	result_fact(r, key, "",
		    known ? cell_double(CELL_NUMBER, (double)v) : cell_null(r, "not readable"));
	result_fact(r, "", label,
		    known ? cell_text(r, result_text(r, "%lld", (long long)v))
			  : cell_null(r, "not readable"));
}

static void add_user(struct result *r, const struct host *h)
{
	static const struct {
		const char *name;
		int cap;
	} caps[] = {{"CAP_PERFMON", 38},    {"CAP_BPF", 39},    {"CAP_SYS_ADMIN", 21},
		    {"CAP_SYS_PTRACE", 19}, {"CAP_SYSLOG", 34}, {"CAP_IPC_LOCK", 14}};
	const char *list = "";

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
		if (host_has_cap(h, caps[i].cap))
			list = result_text(r, "%s%s%s", list, *list ? " " : "", caps[i].name);
	result_fact(r, "uid", "", cell_u64(CELL_COUNT, h->euid));
	result_fact(r, "capabilities", "", cell_text(r, list));
	result_fact(r, "", "user",
		    cell_text(r, result_text(r, "uid %u, %s%s", h->euid,
					     *list ? list : "no capability that matters here",
					     h->no_new_privs ? " (no_new_privs)" : "")));
}

static const char *seccomp_text(const struct host *h)
{
	static const char *const modes[] = {"none", "strict", "a filter is active"};

	if (h->seccomp_mode < 0 || (size_t)h->seccomp_mode >= ARRAY_SIZE(modes))
		return "";
	return modes[h->seccomp_mode];
}

static const char *container_text(struct result *r, const struct host *h)
{
	const char *name = h->container[0] ? h->container : h->in_pid_namespace ? "yes" : "no";

	return h->in_user_namespace ? result_text(r, "%s, in a user namespace", name) : name;
}

static const char *tracefs_text(struct result *r, const struct host *h)
{
	if (!h->tracefs_mounted)
		return h->tracefs[0] ? "not mounted (a private one is used)" : "not mounted";
	return h->tracefs[0] ? h->tracefs : result_text(r, "%s (not readable)", h->tracefs_point);
}

static void add_facts(struct result *r, const struct host *h)
{
	add_text(r, "kernel", "kernel", h->kernel_release);
	add_text(r, "machine", "machine", h->machine);
	result_fact(r, "cpus", "CPUs", cell_u64(CELL_COUNT, h->cpus_online));
	result_fact(r, "virtual_machine", "virtual machine", cell_bool(h->virtual_machine));
	result_fact(r, "pmu", "hardware counters (PMU)", cell_bool(h->has_pmu));
	add_user(r, h);
	add_number(r, "perf_event_paranoid", "kernel.perf_event_paranoid", h->perf_event_paranoid);
	add_number(r, "perf_event_mlock_kb", "kernel.perf_event_mlock_kb", h->perf_event_mlock_kb);
	add_number(r, "perf_event_max_sample_rate", "kernel.perf_event_max_sample_rate",
		   h->perf_event_max_sample_rate);
	add_number(r, "perf_event_max_stack", "kernel.perf_event_max_stack",
		   h->perf_event_max_stack);
	add_number(r, "kptr_restrict", "kernel.kptr_restrict", h->kptr_restrict);
	add_text(r, "seccomp", "seccomp", seccomp_text(h));
	add_text(r, "lockdown", "lockdown", h->lockdown_mode[0] ? h->lockdown_mode : "none");
	add_text(r, "container", "container", container_text(r, h));
	add_text(r, "tracefs", "tracefs", tracefs_text(r, h));
	result_fact(r, "btf", "kernel types (BTF)", cell_bool(h->has_btf));
	result_fact(r, "open_files_limit", "open files (ulimit -n)",
		    cell_u64(CELL_COUNT, h->nofile_soft));
}

static void add_btf_note(struct result *r, const struct host *h)
{
	CLEANUP(diag_release) struct diag d = {0};

	if (explain_btf(h, &d))
		result_note(r, "%s: %s", d.what ? d.what : "no BTF", d.why ? d.why : "");
}

/* --- abilities -------------------------------------------------------------------------------- */

static const struct column ability_columns[] = {
	{"ability", "what", CELL_TEXT, 0},
	{"options", "by", CELL_TEXT, 0},
	{"state", "works", CELL_TEXT, 0},
	{"commands", "commands", CELL_TEXT, 0},
};

static const struct column advice_columns[] = {
	{"ability", "what", CELL_TEXT, 0},
	{"kind", "", CELL_TEXT, 0},
	{"text", "why it does not, and what helps", CELL_TEXT, 0},
};

static void add_advice(struct result *r, size_t section, const char *ability, const char *kind,
		       const char *text)
{
	const struct cell cells[] = {cell_text(r, ability), cell_text(r, kind), cell_text(r, text)};

	result_row(r, section, cells);
}

static void add_diag(struct result *r, size_t section, const char *ability, const struct diag *d)
{
	const char *kind = "fix";

	add_advice(r, section, ability, "why", d->why ? d->why : d->what ? d->what : "");
	for (const char *at = d->fix; at && *at;) {
		int n = (int)strcspn(at, "\n");

		add_advice(r, section, ability, kind, result_text(r, "%.*s", n, at));
		kind = "or";
		at += n + (at[n] == '\n');
	}
}

static void add_abilities(struct result *r, const struct host *h)
{
	static const char *const states[] = {
		[ABILITY_YES] = "yes", [ABILITY_LIMITED] = "limited", [ABILITY_NO] = "no"};
	size_t table =
		result_section(r, "abilities", "", ability_columns, ARRAY_SIZE(ability_columns));
	size_t advice = result_section(r, "advice", "", advice_columns, ARRAY_SIZE(advice_columns));

	if (!r->failed)
		r->sections.v[advice].blocks = true;
	for (const struct ability *a = abilities; a->name; a++) {
		CLEANUP(diag_release) struct diag d = {0};
		enum ability_state state = a->probe(h, &d);
		const struct cell cells[] = {cell_text(r, a->name), cell_text(r, a->options),
					     cell_text(r, states[state]),
					     cell_text(r, a->commands)};

		result_row(r, table, cells);
		if (state != ABILITY_YES)
			add_diag(r, advice, a->name, &d);
	}
}

/* --- the command ------------------------------------------------------------------------------ */

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	CLEANUP(result_release) struct result r;
	struct common_options o = {0};
	const struct option_binding bindings[] = {{&common_option_group, &o}};
	struct operands operands;
	struct host h;
	int err = options_parse(bindings, ARRAY_SIZE(bindings), argc, argv, false, &operands, d);

	result_init(&r, "inspect.doctor/1");
	*json = o.json;
	if (!err)
		err = options_conflict("--json", o.json, "--csv", o.csv, d);
	if (!err && operands.n)
		err = diag_set(d, -EINVAL, "inspect doctor takes no operand, but has '%s'",
			       operands.v[0]);
	if (err)
		return EXIT_OWN_FAILURE;
	host_read(&h, "");
	host_open_tracefs(&h);
	add_facts(&r, &h);
	add_btf_note(&r, &h);
	add_abilities(&r, &h);
	return print_result(&r, &o, false, d) ? EXIT_OWN_FAILURE : 0;
}

static void help(FILE *out)
{
	struct common_options o;
	const struct option_binding bindings[] = {{&common_option_group, &o}};

	options_help(bindings, ARRAY_SIZE(bindings), out);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "try what this host and user allow, and say how to get the rest",
	.question = "Why does it not work here?",
	.usage = "doctor [OPTIONS]",
	.help = help,
	.run = run,
};
