/* SPDX-License-Identifier: BSD-2-Clause */
#include "result_cell.h"
#include <inspect/render.h>

/* null is never alone: the reason stands beside it. */
static void json_member(struct json_out *j, const char *key, const struct cell *c, unsigned flags)
{
	char reason_key[128];

	json_key(j, key);
	cell_write_json(j, c, flags);
	if (c->type != CELL_NULL || !c->text[0])
		return;
	snprintf(reason_key, sizeof(reason_key), "%s_reason", key);
	json_key(j, reason_key);
	json_string(j, c->text);
}

static void json_row(struct json_out *j, const struct section *s, size_t row)
{
	const struct cell *cells = s->cells.v + row * s->n_columns;

	json_object(j);
	for (size_t i = 0; i < s->n_columns; i++)
		if (!(s->columns[i].flags & COLUMN_TABLE_ONLY))
			json_member(j, s->columns[i].key, &cells[i], s->columns[i].flags);
	json_end_object(j);
}

static void json_rows(struct json_out *j, const struct section *s)
{
	for (size_t row = 0; row < section_rows(s); row++)
		json_row(j, s, row);
}

static int write_json(const struct result *r, bool compact, FILE *out)
{
	struct json_out j;

	if (r->failed)
		return -ENOMEM;
	json_init(&j, out, compact);
	json_object(&j);
	json_key(&j, "schema");
	json_string(&j, r->schema);
	for (size_t i = 0; i < r->facts.n; i++)
		if (r->facts.v[i].key[0])
			json_member(&j, r->facts.v[i].key, &r->facts.v[i].value, 0);
	json_key(&j, "notes");
	json_array(&j);
	for (size_t i = 0; i < r->notes.n; i++)
		json_string(&j, r->notes.v[i]);
	json_end_array(&j);
	for (size_t i = 0; i < r->sections.n; i++) {
		if (section_is_continued(r, i))
			continue;
		json_key(&j, r->sections.v[i].key);
		if (r->sections.v[i].is_object && section_rows(&r->sections.v[i])) {
			json_row(&j, &r->sections.v[i], 0);
			continue;
		}
		json_array(&j);
		for (size_t k = i; k < r->sections.n; k++)
			if (str_eq(r->sections.v[k].key, r->sections.v[i].key))
				json_rows(&j, &r->sections.v[k]);
		json_end_array(&j);
	}
	json_end_object(&j);
	return json_finish(&j);
}

int result_json(const struct result *r, FILE *out)
{
	return write_json(r, false, out);
}

int result_json_line(const struct result *r, FILE *out)
{
	return write_json(r, true, out);
}
