/* SPDX-License-Identifier: BSD-2-Clause */
/* What a cell of the report says of a row's values. */
#include "use_cells.h"

#include <math.h>

/* Half of the last digit that the format shows. */
static double least_shown(const char *format)
{
	const char *at = strstr(format, "%.");

	return at ? 0.5 * pow(10, '0' - at[2]) : 0;
}

const char *use_value_text(struct result *r, const struct use_value *v)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	const char *format = use_metrics[v->metric].shown;

	if (v->text && (!v->text[0] || v->verdict != USE_NOT_JUDGED))
		return v->text;
	if (v->text)
		strbuf_puts(&b, v->text);
	else /* What is well may as well be 0. */
		finding_put_number(&b, format,
				   v->verdict < USE_WARN && v->v < least_shown(format) ? 0 : v->v);
	if (v->verdict == USE_NOT_JUDGED)
		strbuf_puts(&b, " (not judged)");
	r->failed |= b.failed;
	return result_text(r, "%s", strbuf_str(&b));
}

static bool is_of(const struct use_value *v, enum use_kind kind)
{
	return use_metrics[v->metric].kind == kind;
}

bool use_is_shown(const struct use_value *v, enum use_kind kind)
{
	if (!is_of(v, kind) || isnan(v->v) || (v->text && !v->text[0]))
		return false;
	return kind == USE_UTILISATION || v->verdict >= USE_WARN ||
	       (v->v > 0 && v->v >= least_shown(use_metrics[v->metric].shown));
}

/* The next value to show: the worst verdict first, else in order. `done` has a bit for each. */
static const struct use_value *next_value(const struct use_row *row, enum use_kind kind,
					  unsigned *done)
{
	const struct use_value *best = NULL;

	for (size_t i = 0; i < row->n_values; i++) {
		const struct use_value *v = &row->values[i];

		if (use_is_shown(v, kind) && !(*done & 1u << i) &&
		    (!best || v->verdict > best->verdict))
			best = v;
	}
	if (best)
		*done |= 1u << (best - row->values);
	return best;
}

const char *use_values_text(struct result *r, const struct use_row *row, enum use_kind kind,
			    unsigned most)
{
	const struct use_value *v;
	const char *text = "";
	unsigned done = 0;

	for (unsigned n = 0; (v = next_value(row, kind, &done)); n++) {
		const char *comma = n ? ", " : "";

		if (n == most)
			return result_text(r, "%s%s…", text, comma);
		text = result_text(r, "%s%s%s", text, comma, use_value_text(r, v));
	}
	return text;
}

struct cell use_kind_cell(struct result *r, const struct use_row *row, enum use_kind kind,
			  unsigned most, bool reasons)
{
	const char *text = use_values_text(r, row, kind, most);
	const struct use_value *lacking = NULL;
	bool known = false;

	for (size_t i = 0; i < row->n_values; i++) {
		if (!is_of(&row->values[i], kind))
			continue;
		if (!isnan(row->values[i].v))
			known = true;
		else if (!lacking)
			lacking = &row->values[i];
	}
	if (*text)
		return cell_text(r, text);
	if (known)
		return cell_text(r, "0");
	if (!lacking)
		return cell_text(r, "");
	return reasons ? cell_null(r, lacking->reason ? lacking->reason : "") : cell_text(r, "-");
}

const struct use_value *use_telling_value(const struct use_row *row)
{
	const struct use_value *first = NULL;

	for (enum use_kind kind = 0; kind < USE_KINDS; kind++) {
		unsigned done = 0;
		const struct use_value *v = next_value(row, kind, &done);

		if (v && v->verdict == row->verdict && row->verdict >= USE_WARN)
			return v;
		first = first ? first : v;
	}
	return first;
}
