/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two kinds of line in what `perf script` prints (perf_sample__fprintf_start and
 * sample__fprintf_callchain in tools/perf):
 *	comm  pid/tid [cpu] seconds.micros:   period event:   [address symbol+0x10 (module)]
 *	<tab>         address symbol+0x10 (module)
 */
#include "text.h"

/* How far in a line the pid may begin: names have 15 bytes in the kernel, perhaps escaped. */
#define COMM_BYTES_MAX 256U

static const char *skip_blanks(const char *s, const char *end)
{
	while (s < end && is_blank(*s))
		s++;
	return s;
}

static const char *skip_word(const char *s, const char *end)
{
	while (s < end && !is_blank(*s))
		s++;
	return s;
}

/* A table: this is asked for every byte of every address. */
static const bool hex_digits[256] = {
	['0'] = true, ['1'] = true, ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true,
	['6'] = true, ['7'] = true, ['8'] = true, ['9'] = true, ['a'] = true, ['b'] = true,
	['c'] = true, ['d'] = true, ['e'] = true, ['f'] = true, ['A'] = true, ['B'] = true,
	['C'] = true, ['D'] = true, ['E'] = true, ['F'] = true,
};

/* Digits at *s as a number that fits 64 bits. */
static bool take_u64(const char **s, const char *end, uint64_t *ret)
{
	const char *at = *s;
	uint64_t v = 0;

	for (; at < end && is_digit(*at); at++)
		if (__builtin_mul_overflow(v, 10U, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*at - '0'), &v))
			return false;
	if (at == *s)
		return false;
	*s = at;
	*ret = v;
	return true;
}

/* A pid; perf prints -1 where none is known. */
static bool take_id(const char **s, const char *end, uint32_t *ret)
{
	const char *at = *s;
	bool negative = at < end && *at == '-';
	uint64_t v;

	at += negative;
	if (!take_u64(&at, end, &v) || v > UINT32_MAX)
		return false;
	*s = at;
	*ret = negative ? UINT32_MAX : (uint32_t)v;
	return true;
}

/* `tid` or `pid/tid`, and the blanks after it. With the tid alone the process is taken for it. */
static bool take_task(const char **s, const char *end, struct sample_header *h)
{
	const char *at = *s;

	if (!take_id(&at, end, &h->pid))
		return false;
	h->tid = h->pid;
	if (at < end && *at == '/') {
		at++;
		if (!take_id(&at, end, &h->tid))
			return false;
	}
	if (at < end && !is_blank(*at))
		return false;
	*s = skip_blanks(at, end);
	return true;
}

/* `[003]` and the blanks after it. */
static bool take_cpu(const char **s, const char *end)
{
	const char *at = *s;
	uint64_t cpu;

	if (at == end || *at != '[')
		return false;
	at++;
	if (!take_u64(&at, end, &cpu) || at == end || *at != ']')
		return false;
	*s = skip_blanks(at + 1, end);
	return true;
}

/* `12345.678901:` and the blanks after it. */
static bool take_time(const char **s, const char *end, struct sample_header *h)
{
	const char *at = *s;
	uint64_t seconds, ns = 0, unit = NSEC_PER_SEC;

	if (!take_u64(&at, end, &seconds) || seconds > UINT64_MAX / NSEC_PER_SEC - 1 || at == end ||
	    *at != '.')
		return false;
	for (at++; at < end && is_digit(*at); at++) {
		unit /= 10;
		ns += unit * (uint64_t)(*at - '0');
	}
	if (unit == NSEC_PER_SEC || at == end || *at != ':')
		return false;
	h->time_ns = seconds * NSEC_PER_SEC + ns;
	h->has_time = true;
	*s = skip_blanks(at + 1, end);
	return true;
}

/* `10101010 cpu-clock:u:`, each part of which may be missing. */
static void take_event(const char **s, const char *end, struct sample_header *h)
{
	const char *at = *s, *word_end;
	uint64_t period = 0;
	bool has_period = take_u64(&at, end, &period) && at < end && is_blank(*at);

	h->event.s = *s;
	at = has_period ? skip_blanks(at, end) : *s;
	word_end = skip_word(at, end);
	if (word_end - at < 2 || word_end[-1] != ':')
		return;
	h->has_period = has_period;
	h->period = has_period ? period : 0;
	h->event = (struct span){at, (size_t)(word_end - 1 - at)};
	*s = skip_blanks(word_end, end);
}

/* What follows the comm. Without CPU and time only a line that then ends, or names an event, is
 * taken for a header. */
static bool take_header(const char *s, const char *end, struct sample_header *h)
{
	bool has_cpu;

	if (!take_task(&s, end, h))
		return false;
	has_cpu = take_cpu(&s, end);
	h->is_sure = take_time(&s, end, h) || has_cpu;
	take_event(&s, end, h);
	h->rest = (struct span){s, (size_t)(end - s)};
	return h->is_sure || h->event.n || !h->rest.n;
}

/*
 * The comm may hold anything, also blanks and digits: it ends where a task with a time follows, or
 * else the first task with a CPU, or else the first task.
 */
bool sample_header_parse(struct span line, struct sample_header *ret)
{
	const char *end = line.s + line.n, *start = skip_blanks(line.s, end);
	struct sample_header unsure = {0};
	bool found = false; /* in `unsure` */

	for (const char *s = start; s < end && s - start < (ptrdiff_t)COMM_BYTES_MAX;) {
		struct sample_header h = {0};
		const char *word_end = skip_word(s, end);

		s = skip_blanks(word_end, end);
		h.comm = (struct span){start, (size_t)(word_end - start)};
		if (s == end || (!is_digit(*s) && *s != '-') || !take_header(s, end, &h))
			continue;
		if (h.has_time) {
			*ret = h;
			return true;
		}
		if (!found || (h.is_sure && !unsure.is_sure))
			unsure = h;
		found = true;
	}
	if (found)
		*ret = unsure;
	return found;
}

bool frame_line_split(struct span line, struct span *ret_tail)
{
	const char *end = line.s + line.n, *s = skip_blanks(line.s, end), *address = s;

	while (s < end && hex_digits[(unsigned char)*s])
		s++;
	if (s == address || (s < end && !is_blank(*s)))
		return false;
	s = skip_blanks(s, end);
	while (end > s && is_blank(end[-1]))
		end--;
	*ret_tail = (struct span){s, (size_t)(end - s)};
	return true;
}
