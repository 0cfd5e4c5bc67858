/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second waist: typed tables. A command fills a result; table, JSON, CSV and Markdown draw it.
 * Everything printed as a table is available as data, from the same cells.
 */
#ifndef INSPECT_RESULT_H
#define INSPECT_RESULT_H

#include <inspect/arena.h>
#include <inspect/array.h>

enum cell_type {
	CELL_NULL, /* not measured: `text` is the reason */
	CELL_TEXT,
	CELL_COUNT,   /* u64 */
	CELL_NUMBER,  /* double */
	CELL_PERCENT, /* double, 0…100 */
	CELL_NS,      /* u64 nanoseconds */
	CELL_BYTES,   /* u64 */
	CELL_BOOL,
};

struct cell {
	enum cell_type type;
	union {
		uint64_t u;
		double d;
		bool b;
	};
	const char *text; /* TEXT, or the reason of NULL; owned by the result's arena */
};

enum column_flags {
	COLUMN_CUT = 1,       /* the one that shrinks to the terminal's width */
	COLUMN_DATA_ONLY = 2, /* in JSON and CSV, not in the table */
	COLUMN_TABLE_ONLY = 4,
	COLUMN_SIGNED = 8, /* a difference: with sign; integer cells hold an int64_t */
	COLUMN_SPARE = 16, /* left out of a table that is too wide, the last of them first */
};

struct column {
	const char *key;   /* JSON and CSV name, unit at its end: "self_percent", "wall_ns" */
	const char *title; /* table heading: "self" */
	enum cell_type type;
	unsigned flags;
};

/*
 * One table. Rows × columns cells in row order. Sections of one key have the same columns: they
 * are drawn one by one and are one array in JSON and CSV (a table for each event, say). A section
 * whose columns are all DATA_ONLY is detail for JSON alone.
 */
struct section {
	const char *key;              /* JSON name of the array: "functions" */
	const char *title;            /* heading line, "" none */
	const struct column *columns; /* static or of the arena */
	size_t n_columns;
	ARRAY(struct cell) cells;
	size_t limit;     /* rows shown as a table by default; 0 all */
	bool fits;        /* the limit was not asked for: a terminal's height lowers it */
	bool is_object;   /* one row: in JSON an object, not an array */
	bool blocks;      /* texts too long for columns: a row is a paragraph */
	bool sum_first;   /* the first row is the sum: percentages left out for the width tell it */
	const char *more; /* what shows the rest: "--all" */
};

/* Name and value of the report's head (JSON: members of the object). */
struct fact {
	const char *key;   /* "samples"; "" in the header only */
	const char *label; /* in the `#` header; "" data only */
	struct cell value;
};

struct result {
	const char *schema; /* "inspect.report/1" */
	struct arena arena;
	ARRAY(struct fact) facts;  /* in order: printed as `# label: value` */
	ARRAY(const char *) notes; /* `# note: …`; JSON "notes" */
	ARRAY(struct section) sections;
	bool failed; /* out of memory while filling: checked once by the renderers */
};

void result_init(struct result *r, const char *schema);
void result_release(struct result *r);

const char *result_text(struct result *r, const char *fmt, ...) PRINTF(2, 3); /* in the arena */
void result_note(struct result *r, const char *fmt, ...) PRINTF(2, 3);
void result_fact(struct result *r, const char *key, const char *label, struct cell value);
/* Index of the new section (not a pointer: they move). */
size_t result_section(struct result *r, const char *key, const char *title,
		      const struct column *columns, size_t n_columns);
/* Appends one row of n_columns cells. */
void result_row(struct result *r, size_t section, const struct cell *cells);

/* Cells. cell_text copies into the arena. */
struct cell cell_text(struct result *r, const char *s);
static inline struct cell cell_u64(enum cell_type type, uint64_t v)
{
	return (struct cell){.type = type, .u = v};
}
static inline struct cell cell_double(enum cell_type type, double v)
{
	return (struct cell){.type = type, .d = v};
}
static inline struct cell cell_bool(bool v)
{
	return (struct cell){.type = CELL_BOOL, .b = v};
}
struct cell cell_null(struct result *r, const char *reason);

#endif
