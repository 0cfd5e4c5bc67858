/* SPDX-License-Identifier: BSD-2-Clause */

#include <inspect/clock.h>
#include <inspect/near_miss.h>
#include <inspect/options.h>
#include <limits.h>
#include <math.h>

#define INTERVAL_MIN_NS (10 * NSEC_PER_MSEC)

/* --- values ----------------------------------------------------------------------------------- */

static int bad_value(const char *shown, const char *arg, const char *why, struct diag *d)
{
	return diag_set(d, -EINVAL, "%s %s: %s", shown, arg, why);
}

int options_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	/* strtoull itself would take spaces and signs. */
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

static int set_string(const struct option *o UNUSED, const char *shown UNUSED, const char *arg,
		      void *value, struct diag *d UNUSED)
{
	*(const char **)value = arg;
	return 0;
}

static int set_number(const char *shown, const char *arg, uint64_t max, uint64_t *ret,
		      struct diag *d)
{
	int err = options_number(arg, max, ret);

	if (err == -ERANGE) {
		return diag_set(d, -EINVAL, "%s %s: more than %llu", shown, arg,
				(unsigned long long)max);
	}
	return err ? bad_value(shown, arg, "not a whole number", d) : 0;
}

static int set_u64(const struct option *o UNUSED, const char *shown, const char *arg, void *value,
		   struct diag *d)
{
	return set_number(shown, arg, UINT64_MAX - 1, value, d);
}

static int set_unsigned(const struct option *o UNUSED, const char *shown, const char *arg,
			void *value, struct diag *d)
{
	uint64_t v = 0;
	int err = set_number(shown, arg, UINT_MAX, &v, d);

	if (!err)
		*(unsigned *)value = (unsigned)v;
	return err;
}

static int set_duration(const struct option *o UNUSED, const char *shown, const char *arg,
			void *value, struct diag *d)
{
	if (duration_parse(arg, NSEC_PER_SEC, value))
		return bad_value(shown, arg, "not a time such as 10 (seconds), 500ms, .5s or 1m30s",
				 d);
	return 0;
}

static int set_interval(const struct option *o UNUSED, const char *shown, const char *arg,
			void *value, struct diag *d)
{
	uint64_t ns;

	if (duration_parse(arg, NSEC_PER_MSEC, &ns))
		return bad_value(shown, arg, "not a time such as 500 (milliseconds), 500ms or 1s",
				 d);
	if (ns < INTERVAL_MIN_NS)
		return bad_value(shown, arg, "below 10 ms (a bare number is milliseconds)", d);
	*(uint64_t *)value = ns;
	return 0;
}

static int set_percent(const struct option *o UNUSED, const char *shown, const char *arg,
		       void *value, struct diag *d)
{
	char *end;
	double v;

	if (*arg != '.' && (*arg < '0' || *arg > '9'))
		return bad_value(shown, arg, "not a percentage such as 0.5", d);
	v = strtod(arg, &end);
	if (*end == '%')
		end++;
	if (*end || !isfinite(v) || v < 0 || v > 100)
		return bad_value(shown, arg, "not a percentage from 0 to 100", d);
	*(double *)value = v;
	return 0;
}

/* Index of the word in "a|b|c", or -1. */
static int find_choice(const char *choices, const char *word)
{
	size_t n = strlen(word);
	int index = 0;

	for (const char *at = choices; at; index++) {
		size_t len = strcspn(at, "|");

		if (n == len && strncmp(at, word, n) == 0)
			return index;
		at = at[len] ? at + len + 1 : NULL;
	}
	return -1;
}

static int set_choice(const struct option *o, const char *shown, const char *arg, void *value,
		      struct diag *d)
{
	int index = find_choice(o->choices, arg);

	if (index < 0)
		return diag_set(d, -EINVAL, "%s %s: not one of %s", shown, arg, o->choices);
	*(unsigned *)value = (unsigned)index;
	return 0;
}

/* parse() speaks of the value alone; the option's name is put before it here. */
static int set_custom(const struct option *o, const char *shown, const char *arg, void *value,
		      struct diag *d)
{
	CLEANUP(diag_release) struct diag own = {0};
	int err = o->parse(value, arg, &own);

	if (!err)
		return 0;
	diag_set(d, err, "%s %s: %s", shown, arg, own.what ? own.what : strerror(-err));
	if (own.why)
		diag_why(d, "%s", own.why);
	for (const char *at = own.fix; at && *at;) {
		int n = (int)strcspn(at, "\n");

		diag_fix(d, "%.*s", n, at);
		at += n + (at[n] == '\n');
	}
	return err;
}

static int ignore(const struct option *o UNUSED, const char *shown UNUSED, const char *arg UNUSED,
		  void *value UNUSED, struct diag *d UNUSED)
{
	return 0;
}

typedef int set_fn(const struct option *o, const char *shown, const char *arg, void *value,
		   struct diag *d);

static set_fn *const setters[] = {
	[OPTION_STRING] = set_string,     [OPTION_U64] = set_u64,
	[OPTION_UNSIGNED] = set_unsigned, [OPTION_DURATION] = set_duration,
	[OPTION_INTERVAL] = set_interval, [OPTION_PERCENT] = set_percent,
	[OPTION_CHOICE] = set_choice,     [OPTION_CUSTOM] = set_custom,
	[OPTION_IGNORED] = ignore,
};

/* --- options ---------------------------------------------------------------------------------- */

struct parser {
	const struct option_binding *bindings;
	size_t n_bindings;
	int argc;
	char **argv;
	int at;          /* next argument */
	int operands_at; /* operands found so far lie right before `at` */
	struct diag *d;
};

struct found {
	const struct option *option; /* NULL: none */
	void *value;
};

static bool has_name(const struct option *o, const char *name, size_t n, char letter)
{
	if (letter)
		return o->letter == letter;
	return *o->name && strncmp(o->name, name, n) == 0 && !o->name[n];
}

/* By letter, or when that is 0 by the first n bytes of name. */
static struct found find(const struct parser *p, const char *name, size_t n, char letter)
{
	for (size_t i = 0; i < p->n_bindings; i++) {
		const struct option_binding *b = &p->bindings[i];

		for (const struct option *o = b->group->options; o->name; o++)
			if (has_name(o, name, n, letter))
				return (struct found){o, b->values ? (char *)b->values + o->offset
								   : NULL};
	}
	return (struct found){0};
}

static int unknown_option(const struct parser *p, const char *shown, const char *name)
{
	struct near_misses near = {.word = name};

	for (size_t i = 0; i < p->n_bindings; i++)
		for (const struct option *o = p->bindings[i].group->options; o->name; o++)
			if (o->help && *o->name && o->type != OPTION_REJECTED)
				near_misses_add(&near, o->name);
	diag_set(p->d, -EINVAL, "unknown option %s", shown);
	if (near.n)
		diag_fix(p->d, "--%s", near.best[0].name);
	diag_fix(p->d, "inspect %s --help      (all options)", p->argv[0]);
	return -EINVAL;
}

static int rejected_option(const struct parser *p, const struct option *o, const char *shown)
{
	diag_set(p->d, -EINVAL, "inspect %s has no %s", p->argv[0], shown);
	diag_fix(p->d, "%s", o->help);
	return -EINVAL;
}

/* One option without a value; `arg` is what a long one was given all the same. */
static int apply_flag(const struct parser *p, const struct found *f, const char *shown,
		      const char *arg)
{
	switch (f->option->type) {
	case OPTION_REJECTED:
		return rejected_option(p, f->option, shown);
	case OPTION_HELP:
		return diag_set(p->d, -ECANCELED, "help is asked for");
	case OPTION_IGNORED:
		/* The letter takes a value in another tool, and here is one of those. */
		if (f->option->choices && p->at < p->argc &&
		    find_choice(f->option->choices, p->argv[p->at]) >= 0)
			return rejected_option(p, f->option, shown);
		return 0;
	default:
		if (arg)
			return diag_set(p->d, -EINVAL, "%s takes no value, but has '%s'", shown,
					arg);
		*(bool *)f->value = true;
		return 0;
	}
}

/* One option with a value, which is `arg` or else the next argument. */
static int apply_value(struct parser *p, const struct found *f, const char *shown, const char *arg)
{
	const struct option *o = f->option;

	if (!arg && p->at < p->argc)
		arg = p->argv[p->at++];
	if (!arg)
		return diag_set(p->d, -EINVAL, "%s needs a value: %s %s", shown, shown, o->arg);
	return setters[o->type](o, shown, arg, f->value, p->d);
}

static bool takes_value(const struct option *o)
{
	return o->arg && o->type != OPTION_REJECTED && o->type != OPTION_FLAG;
}

static int parse_long(struct parser *p, const char *text)
{
	const char *name = text + 2, *equals = strchr(name, '=');
	size_t n = equals ? (size_t)(equals - name) : strlen(name);
	struct found f = find(p, name, n, 0);
	CLEANUP(freep) char *shown = strndup(text, n + 2);

	if (!shown)
		return diag_errno(p->d, -ENOMEM, "%s", text);
	if (!f.option)
		return unknown_option(p, shown, shown + 2);
	if (takes_value(f.option))
		return apply_value(p, &f, shown, equals ? equals + 1 : NULL);
	return apply_flag(p, &f, shown, equals ? equals + 1 : NULL);
}

/* -g, -F99, -F 99, and flags together: -gv */
static int parse_letters(struct parser *p, const char *text)
{
	for (const char *at = text + 1; *at; at++) {
		char shown[] = {'-', *at, '\0'};
		struct found f = find(p, NULL, 0, *at);
		int err;

		if (!f.option)
			return unknown_option(p, (unsigned char)*at < 0x80 ? shown : text,
					      text + 1);
		if (takes_value(f.option))
			return apply_value(p, &f, shown, at[1] ? at + 1 : NULL);
		err = apply_flag(p, &f, shown, NULL);
		if (err)
			return err;
	}
	return 0;
}

/* Moves the arguments from..at-1 before the operands that were found so far. */
static void move_before_operands(struct parser *p, int from)
{
	for (int i = from; i < p->at; i++) {
		char *moved = p->argv[i];

		memmove(&p->argv[p->operands_at + 1], &p->argv[p->operands_at],
			(size_t)(i - p->operands_at) * sizeof(*p->argv));
		p->argv[p->operands_at++] = moved;
	}
}

int options_parse(const struct option_binding *bindings, size_t n_bindings, int argc, char **argv,
		  bool stop_at_operand, struct operands *ret, struct diag *d)
{
	struct parser p = {bindings, n_bindings, argc, argv, 1, 1, d};
	size_t after_dashes = SIZE_MAX;

	while (p.at < argc) {
		const char *text = argv[p.at];
		int from = p.at, err;

		if (text[0] != '-' || !text[1]) {
			if (stop_at_operand)
				break;
			p.at++;
			continue;
		}
		p.at++;
		if (str_eq(text, "--")) {
			after_dashes = (size_t)(from - p.operands_at);
			move_before_operands(&p, from);
			break;
		}
		err = text[1] == '-' ? parse_long(&p, text) : parse_letters(&p, text);
		if (err)
			return err;
		move_before_operands(&p, from);
	}
	*ret = (struct operands){
		.v = argv + p.operands_at,
		.n = (size_t)(argc - p.operands_at),
		.after_dashes = after_dashes,
	};
	return 0;
}

int options_conflict(const char *a, bool a_given, const char *b, bool b_given, struct diag *d)
{
	if (!a_given || !b_given)
		return 0;
	return diag_set(d, -EINVAL, "%s and %s exclude each other", a, b);
}
