/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads JSON (RFC 8259) into a tree. Files come from elsewhere: size, depth and number of values
 * are bounded; of a member given twice the first is found. Strings with a \u0000 are refused.
 */
#ifndef INSPECT_JSON_IN_H
#define INSPECT_JSON_IN_H

#include <inspect/arena.h>
#include <inspect/diag.h>

#define JSON_BYTES_MAX (64U << 20)
#define JSON_DEPTH_MAX 64

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_type type;
	bool b;
	double number;
	const char *string;
	const char *key;          /* of a member of an object */
	const struct json *first; /* of an array or object */
	const struct json *next;  /* within it */
};

/* The whole text is one value. All of the tree lies in the arena. 0; -EBADMSG with the line and
 * what is wrong there, -E2BIG, -ENOMEM. `name` is for the diag. */
int json_parse(const char *text, size_t n, const char *name, struct arena *arena,
	       const struct json **ret, struct diag *d);

/* A file. The same, -EFBIG, or -errno. */
int json_read(const char *path, struct arena *arena, const struct json **ret, struct diag *d);

/* NULL when there is none, or `object` is NULL or no object. */
const struct json *json_find(const struct json *object, const char *key);

/* The member's string, or NULL. */
const char *json_find_string(const struct json *object, const char *key);

#endif
