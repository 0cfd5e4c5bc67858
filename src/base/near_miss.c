/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/near_miss.h>

#include <ctype.h>
#include <inspect/strbuf.h>

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

unsigned edit_distance(const char *a, const char *b)
{
	/* Optimal string alignment: the two rows above are enough for swapped neighbours. */
	unsigned rows[3][NEAR_MISS_NAME_MAX + 1];
	size_t n = strnlen(a, NEAR_MISS_NAME_MAX), m = strnlen(b, NEAR_MISS_NAME_MAX);

	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3];
		const unsigned *above2 = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = above[j - 1] + !same_letter(a[i - 1], b[j - 1]);

			best = MIN(best, above[j] + 1);
			best = MIN(best, row[j - 1] + 1);
			if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
			    same_letter(a[i - 2], b[j - 1]))
				best = MIN(best, above2[j - 2] + 1);
			row[j] = best;
		}
	}
	return rows[n % 3][m];
}

void near_misses_add(struct near_misses *m, const char *candidate)
{
	size_t len = strlen(m->word), at;
	unsigned distance;

	if (strlen(candidate) >= NEAR_MISS_NAME_MAX)
		return;
	distance = edit_distance(m->word, candidate);
	/* What merely goes on is meant as often as what is misspelt ("cache-miss", "LLC-load"). */
	if (len >= 3 && strncasecmp(candidate, m->word, len) == 0)
		distance = 1;
	if (distance > MAX(len / 3, 1))
		return;
	for (at = m->n; at && m->best[at - 1].distance > distance; at--)
		if (at < NEAR_MISS_BEST)
			m->best[at] = m->best[at - 1];
	if (at == NEAR_MISS_BEST)
		return;
	snprintf(m->best[at].name, sizeof(m->best[at].name), "%s", candidate);
	m->best[at].distance = distance;
	m->n = MIN(m->n + 1, NEAR_MISS_BEST);
}

void near_misses_advise(const struct near_misses *m, const char *prefix, struct diag *d)
{
	CLEANUP(strbuf_release) struct strbuf names = {0};

	for (size_t i = 0; i < m->n; i++)
		strbuf_printf(&names, "%s%s%s", i ? ", " : "", prefix, m->best[i].name);
	if (m->n)
		diag_fix(d, "did you mean %s?", strbuf_str(&names));
}
