/* SPDX-License-Identifier: BSD-2-Clause */
/* -e of a counting command: lists of events, with {…} around those that belong together. */
#include <inspect/counters.h>

void counter_events_release(struct counter_events *e)
{
	event_specs_release(&e->specs);
	array_release(&e->groups);
}

static int parse_part(char *part, bool is_group, const struct host *host, struct counter_events *e,
		      struct diag *d)
{
	size_t before = e->specs.n;
	unsigned next = e->groups.n ? e->groups.v[e->groups.n - 1] + 1 : 0;
	int err = event_specs_parse(part, host, &e->specs, d);

	for (size_t i = before; i < e->specs.n && !err; i++)
		err = array_push(&e->groups, is_group ? next : next + (unsigned)(i - before));
	return err == -ENOMEM ? diag_errno(d, err, "reading the list of events") : err;
}

static int bad_braces(const char *text, struct diag *d)
{
	diag_set(d, -EINVAL, "-e %s: braces do not match", text);
	diag_fix(d, "-e '{cycles,instructions},branches'");
	return -EINVAL;
}

/* The part at *at: the inside of {…}, or what comes before the next brace. Cuts it off. */
static int next_part(const char *text, char **at, char **ret_part, bool *ret_group, struct diag *d)
{
	char *part = *at;
	size_t n;

	*ret_group = *part == '{';
	if (*ret_group) {
		n = strcspn(++part, "{}");
		if (part[n] != '}' || !n)
			return bad_braces(text, d);
		*at = part + n + 1;
		if (**at && **at != ',')
			return bad_braces(text, d);
		*at += **at == ',';
	} else {
		n = strcspn(part, "{}");
		if (part[n] == '}' || (part[n] == '{' && (!n || part[n - 1] != ',')))
			return bad_braces(text, d);
		*at = part + n;
		n -= part[n] == '{';
	}
	part[n] = '\0';
	*ret_part = part;
	return 0;
}

int counter_events_parse(const char *text, const struct host *host, struct counter_events *ret,
			 struct diag *d)
{
	CLEANUP(freep) char *copy = strdup(text);
	struct counter_events e = {0};
	char *at = copy;
	int err = 0;

	if (!copy)
		return diag_errno(d, -ENOMEM, "reading the list of events");
	do {
		char *part;
		bool is_group;

		err = next_part(text, &at, &part, &is_group, d);
		if (!err)
			err = parse_part(part, is_group, host, &e, d);
	} while (!err && *at);
	if (!err)
		err = array_reserve(&ret->specs, ret->specs.n + e.specs.n);
	if (!err)
		err = array_reserve(&ret->groups, ret->groups.n + e.groups.n);
	if (err) {
		counter_events_release(&e);
		return diag_errno(d, err, "reading the list of events");
	}
	for (size_t i = 0; i < e.specs.n; i++) {
		unsigned base = ret->groups.n ? ret->groups.v[ret->groups.n - 1] + 1 : 0;
		bool same = i && e.groups.v[i] == e.groups.v[i - 1];

		ret->groups.v[ret->groups.n++] = same ? base - 1 : base;
		ret->specs.v[ret->specs.n++] = e.specs.v[i];
	}
	array_release(&e.specs);
	array_release(&e.groups);
	return 0;
}
