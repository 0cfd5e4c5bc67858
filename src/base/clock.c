/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/clock.h>
#include <time.h>

static uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

uint64_t clock_boottime_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

uint64_t clock_own_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

struct unit {
	const char *name;
	uint64_t size;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The size of the unit that is named at *at, which is stepped over, or 0. */
static uint64_t take_unit_ns(const char **at, uint64_t bare_unit_ns)
{
	static const struct unit units[] = {
		{"ns", 1},
		{"us", NSEC_PER_USEC},
		{"µs", NSEC_PER_USEC},
		{"ms", NSEC_PER_MSEC},
		{"s", NSEC_PER_SEC},
		{"m", 60 * NSEC_PER_SEC},
		{"h", 3600 * NSEC_PER_SEC},
	};

	if (!**at)
		return bare_unit_ns;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!str_starts(*at, units[i].name))
			continue;
		*at += strlen(units[i].name);
		return units[i].size;
	}
	return 0;
}

/* "1.5s" or ".5" at *at. Integers throughout: exact, and no locale has a say in the point. */
static int take_part(const char **at, uint64_t bare_unit_ns, unsigned __int128 *ret_ns,
		     uint64_t *ret_unit_ns)
{
	uint64_t whole = 0, fraction = 0, scale = 1;
	const char *p = *at;

	if (!is_digit(*p) && (*p != '.' || !is_digit(p[1])))
		return -EINVAL;
	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
			return -EINVAL;
	if (*p == '.') {
		if (!is_digit(*++p))
			return -EINVAL;
		for (; is_digit(*p); p++) {
			if (scale >= 1000000000000ULL)
				continue; /* below any unit's nanosecond */
			fraction = fraction * 10 + (uint64_t)(*p - '0');
			scale *= 10;
		}
	}
	*ret_unit_ns = take_unit_ns(&p, bare_unit_ns);
	if (!*ret_unit_ns)
		return -EINVAL;
	*ret_ns = (unsigned __int128)whole * *ret_unit_ns +
		  (unsigned __int128)fraction * *ret_unit_ns / scale;
	*at = p;
	return 0;
}

int duration_parse(const char *text, uint64_t bare_unit_ns, uint64_t *ret_ns)
{
	uint64_t unit_ns, before_ns = UINT64_MAX;
	unsigned __int128 sum_ns = 0, ns;
	const char *p = text;

	/* 1m30s: each unit smaller than the one before, and none left out. */
	do {
		if (take_part(&p, before_ns == UINT64_MAX ? bare_unit_ns : 0, &ns, &unit_ns) ||
		    unit_ns >= before_ns)
			return -EINVAL;
		before_ns = unit_ns;
		sum_ns += ns;
		if (sum_ns > INT64_MAX)
			return -EINVAL;
	} while (*p);
	if (!sum_ns)
		return -EINVAL;
	*ret_ns = (uint64_t)sum_ns;
	return 0;
}

/* v in units of `unit` with up to `decimals` decimals, fewer as the number grows to 3 digits. */
static void format_scaled(uint64_t v, const struct unit *unit, int decimals, char *buf, size_t size)
{
	static const uint64_t tens[] = {1, 10, 100};
	uint64_t scaled = 0;

	for (; decimals >= 0; decimals--) {
		unsigned __int128 exact = (unsigned __int128)v * tens[decimals];

		scaled = (uint64_t)((exact + unit->size / 2) / unit->size);
		if (scaled < 1000)
			break;
	}
	if (decimals > 0) {
		uint64_t rest = scaled % tens[decimals];

		snprintf(buf, size, "%llu.%s%llu %s", (unsigned long long)(scaled / tens[decimals]),
			 decimals == 2 && rest < 10 ? "0" : "", (unsigned long long)rest,
			 unit->name);
	} else {
		snprintf(buf, size, "%llu %s", (unsigned long long)scaled, unit->name);
	}
}

/* The first of the ascending units in which v, rounded, does not reach the next one. */
static const struct unit *pick_unit(uint64_t v, const struct unit *units, size_t n)
{
	size_t i = 0;

	for (; i + 1 < n; i++) {
		unsigned __int128 rounded =
			((unsigned __int128)v + units[i].size / 2) / units[i].size;

		if (rounded < units[i + 1].size / units[i].size)
			break;
	}
	return &units[i];
}

const char *duration_format(uint64_t ns, char *buf, size_t size)
{
	static const struct unit units[] = {
		{"ns", 1}, {"µs", NSEC_PER_USEC}, {"ms", NSEC_PER_MSEC}, {"s", NSEC_PER_SEC}};
	const struct unit *unit = pick_unit(ns, units, ARRAY_SIZE(units));

	format_scaled(ns, unit, unit->size > 1 ? 2 : 0, buf, size);
	return buf;
}

const char *bytes_format(uint64_t bytes, char *buf, size_t size)
{
	static const struct unit units[] = {{"B", 1},
					    {"KiB", 1ULL << 10},
					    {"MiB", 1ULL << 20},
					    {"GiB", 1ULL << 30},
					    {"TiB", 1ULL << 40}};
	const struct unit *unit = pick_unit(bytes, units, ARRAY_SIZE(units));

	format_scaled(bytes, unit, unit->size > 1 ? 1 : 0, buf, size);
	return buf;
}
