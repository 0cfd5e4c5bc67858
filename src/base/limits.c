/* SPDX-License-Identifier: BSD-2-Clause */
/* How users write limits and budgets. */
#include <inspect/baseline.h>
#include <math.h>

static const char *const unit_names[] = {
	[UNIT_COUNT] = "count",     [UNIT_NS] = "ns",         [UNIT_BYTES] = "bytes",
	[UNIT_PERCENT] = "percent", [UNIT_NUMBER] = "number",
};

const char *unit_name(enum unit u)
{
	return unit_names[u];
}

int unit_find(const char *name, enum unit *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(unit_names); i++)
		if (str_eq(name, unit_names[i])) {
			*ret = (enum unit)i;
			return 0;
		}
	return -ENOENT;
}

static const struct {
	const char *suffix;
	enum unit unit;
	double factor;
} suffixes[] = {
	{"", UNIT_NUMBER, 1},         {"k", UNIT_NUMBER, 1e3},      {"M", UNIT_NUMBER, 1e6},
	{"G", UNIT_NUMBER, 1e9},      {"ns", UNIT_NS, 1},           {"us", UNIT_NS, 1e3},
	{"µs", UNIT_NS, 1e3},         {"ms", UNIT_NS, 1e6},         {"s", UNIT_NS, 1e9},
	{"m", UNIT_NS, 60e9},         {"min", UNIT_NS, 60e9},       {"h", UNIT_NS, 3600e9},
	{"B", UNIT_BYTES, 1},         {"kB", UNIT_BYTES, 1e3},      {"KB", UNIT_BYTES, 1e3},
	{"MB", UNIT_BYTES, 1e6},      {"GB", UNIT_BYTES, 1e9},      {"KiB", UNIT_BYTES, 1 << 10},
	{"MiB", UNIT_BYTES, 1 << 20}, {"GiB", UNIT_BYTES, 1 << 30}, {"%", UNIT_PERCENT, 1},
};

/* A number without sign and its unit, up to one of the bytes in `ends` or the end. */
static int parse_amount(const char **at, const char *ends, double *ret, enum unit *ret_unit)
{
	char *end;
	double v;
	size_t n;

	if (**at != '.' && (**at < '0' || **at > '9'))
		return -EINVAL;
	v = strtod(*at, &end);
	n = strcspn(end, ends);
	if (!isfinite(v))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (strlen(suffixes[i].suffix) != n || memcmp(end, suffixes[i].suffix, n) != 0)
			continue;
		*ret = v * suffixes[i].factor;
		*ret_unit = suffixes[i].unit;
		*at = end + n;
		return 0;
	}
	return -EINVAL;
}

/* --- limits ----------------------------------------------------------------------------------- */

static int bad_limit(const char *text, const char *why, struct diag *d)
{
	diag_set(d, -EINVAL, "--fail-on '%s': %s", text, why);
	diag_fix(d, "--fail-on 'instructions:+2%%'");
	diag_fix(d, "--fail-on 'wall:+5%%&+2ms'      (both must be exceeded)");
	return -EINVAL;
}

/* Names of events have colons too ("cycles:u"): the last one with a sign behind it counts. */
static const char *find_separator(const char *text)
{
	const char *found = NULL;

	for (const char *at = text; *at; at++)
		if (*at == ':' && (at[1] == '+' || at[1] == '-'))
			found = at;
	return found;
}

static int parse_one_limit(const char **at, struct limit *l, struct diag *d)
{
	bool falling = **at == '-';
	enum unit unit;
	double v;

	if (**at != '+' && **at != '-')
		return bad_limit(l->text, "a limit begins with + or -", d);
	++*at;
	if (parse_amount(at, "&", &v, &unit))
		return bad_limit(l->text, "not a number with %, a unit, or nothing behind it", d);
	if ((l->has_percent || l->has_absolute) && falling != l->falling)
		return bad_limit(l->text, "+ and - exclude each other", d);
	l->falling = falling;
	if (unit == UNIT_PERCENT) {
		if (l->has_percent)
			return bad_limit(l->text, "two percentages", d);
		l->has_percent = true;
		l->percent = v;
	} else {
		if (l->has_absolute)
			return bad_limit(l->text, "two amounts", d);
		l->has_absolute = true;
		l->absolute = v;
		l->unit = unit;
	}
	return 0;
}

int limit_parse(const char *text, struct limit *ret, struct diag *d)
{
	const char *at = find_separator(text);
	struct limit l = {.text = text};
	int err;

	if (!at || at == text)
		return bad_limit(text, "not METRIC:LIMIT", d);
	at++;
	do {
		err = parse_one_limit(&at, &l, d);
		if (err)
			return err;
	} while (*at == '&' && *++at);
	if (*at || at[-1] == '&')
		return bad_limit(text, "a limit is missing after &", d);
	l.metric = strndup(text, (size_t)(find_separator(text) - text));
	if (!l.metric)
		return diag_errno(d, -ENOMEM, "--fail-on");
	*ret = l;
	return 0;
}

void limit_release(struct limit *l)
{
	free(l->metric);
}

/* --- budgets ---------------------------------------------------------------------------------- */

static int bad_budget(const char *text, const char *why, struct diag *d)
{
	diag_set(d, -EINVAL, "--budget '%s': %s", text, why);
	diag_fix(d, "--budget 'max-rss<=200MB'");
	diag_fix(d, "--budget 'wall<1.5s'");
	return -EINVAL;
}

int budget_parse(const char *text, struct budget *ret, struct diag *d)
{
	static const enum budget_compare compares[2][2] = {{BUDGET_LT, BUDGET_LE},
							   {BUDGET_GT, BUDGET_GE}};
	size_t n = strcspn(text, "<>");
	struct budget b = {.text = text};
	const char *at = text + n;

	if (!n || !*at)
		return bad_budget(text, "not METRIC<=VALUE", d);
	b.compare = compares[*at == '>'][at[1] == '='];
	at += 1 + (at[1] == '=');
	if (parse_amount(&at, "", &b.value, &b.unit) || *at)
		return bad_budget(text, "not a number with a unit behind the comparison", d);
	b.metric = strndup(text, n);
	if (!b.metric)
		return diag_errno(d, -ENOMEM, "--budget");
	*ret = b;
	return 0;
}

void budget_release(struct budget *b)
{
	free(b->metric);
}

int unit_check(const char *text, enum unit given, enum unit metric, struct diag *d)
{
	static const char *const wanted[] = {
		[UNIT_COUNT] = "a bare number",      [UNIT_NS] = "a time such as 2ms",
		[UNIT_BYTES] = "a size such as 2MB", [UNIT_PERCENT] = "a percentage",
		[UNIT_NUMBER] = "a bare number",
	};
	enum unit want = metric == UNIT_COUNT ? UNIT_NUMBER : metric;

	if (given == want || (given == UNIT_NUMBER && metric == UNIT_PERCENT))
		return 0;
	return diag_set(d, -EINVAL, "'%s': this metric is compared with %s", text, wanted[metric]);
}
