/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON text, written as it comes, with commas, indentation and escaping done here. Strings that
 * are not valid UTF-8 have each bad byte written as U+FFFD, so the output always parses. Controls
 * (C0, DEL, C1, bidi overrides) are written as \u escapes: safe on a terminal.
 * Numbers ignore the locale; a NaN or infinity is written as null.
 */
#ifndef INSPECT_JSON_OUT_H
#define INSPECT_JSON_OUT_H

#include <inspect/base.h>

struct json_out {
	FILE *file;
	int depth;
	bool needs_comma;
	bool after_key;
	bool compact; /* one line, no spaces (JSON lines) */
};

void json_init(struct json_out *j, FILE *file, bool compact);
void json_object(struct json_out *j);
void json_end_object(struct json_out *j);
void json_array(struct json_out *j);
void json_end_array(struct json_out *j);
void json_key(struct json_out *j, const char *key);
void json_string(struct json_out *j, const char *s);
void json_string_n(struct json_out *j, const char *s, size_t n);
void json_u64(struct json_out *j, uint64_t v);
void json_i64(struct json_out *j, int64_t v);
void json_double(struct json_out *j, double v); /* shortest form that reads back equal */
void json_bool(struct json_out *j, bool v);
void json_null(struct json_out *j);

/* The newline at the end. 0, or -EIO when any write failed. */
int json_finish(struct json_out *j);

/* `"s"` with quotes and escapes; also what the SVG's embedded data uses: `]]>`, `-->`, `</` and
 * `<!` never appear, so the text can stand in a CDATA section or an HTML script. */
void json_write_escaped(FILE *file, const char *s, size_t n);

#endif
