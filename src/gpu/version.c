/* SPDX-License-Identifier: BSD-2-Clause */
#include "tables.h"

#include <inspect/procfs.h>

enum { VERSION_BYTES_MAX = 4096, PART_MAX = 999 };

/* The tags whose headers the tables were read from. In between, a branch keeps its layouts. */
static const uint32_t tags[] = {
	515043004, 525047004, 525147005, 530041003, 535043002, 535054003, 535288001,
	545029006, 550054014, 550163001, 555058002, 560035003, 565077000, 570086015,
	570211001, 575064005, 580065006, 580142000, 590048001, 595045004,
};

const char *gpu_tables_oldest(void)
{
	return "515.43.04";
}

const char *gpu_tables_newest(void)
{
	return "595.45.04";
}

static void find_table(struct gpu_version *v)
{
	v->table = 0;
	v->assumed = v->number > GPU_TABLES_NEWEST;
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (tags[i] <= v->number)
			v->table = tags[i];
}

/* The number that a text begins with; *ret_end: behind it. */
static bool parse_at(const char *text, uint32_t *ret, const char **ret_end)
{
	uint32_t parts[3] = {0};

	for (int i = 0; i < 3; i++) {
		char *end;
		unsigned long n;

		if (*text < '0' || *text > '9')
			return false;
		n = strtoul(text, &end, 10);
		if (n > PART_MAX)
			return false;
		parts[i] = (uint32_t)n;
		text = end;
		if (*text != '.')
			break;
		if (i < 2)
			text++;
	}
	*ret = parts[0] * 1000000 + parts[1] * 1000 + parts[2];
	*ret_end = text;
	return parts[0] != 0;
}

int gpu_version_parse(const char *text, struct gpu_version *ret)
{
	struct gpu_version v = {0};
	const char *end;

	if (!parse_at(text, &v.number, &end) || *end || !strchr(text, '.'))
		return -EINVAL;
	find_table(&v);
	*ret = v;
	return 0;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue …": the first word like it. */
static bool find_version(const char *text, struct gpu_version *ret)
{
	for (const char *at = text; *at; at++) {
		const char *end;
		uint32_t number;

		if (at != text && at[-1] != ' ' && at[-1] != '\t')
			continue;
		if (!parse_at(at, &number, &end) || !strchr(" \t\n", *end) ||
		    !memchr(at, '.', (size_t)(end - at)))
			continue;
		ret->number = number;
		find_table(ret);
		return true;
	}
	return false;
}

int gpu_version_read(const char *root, struct gpu_version *ret)
{
	static const char *const files[] = {"/sys/module/nvidia/version",
					    "/proc/driver/nvidia/version"};
	CLEANUP(strbuf_release) struct strbuf path = {0}, text = {0};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		strbuf_clear(&path);
		strbuf_printf(&path, "%s%s", root, files[i]);
		if (path.failed)
			return -ENOMEM;
		if (!file_read(strbuf_str(&path), VERSION_BYTES_MAX, &text) &&
		    find_version(strbuf_str(&text), ret))
			return 0;
	}
	return -ENOENT;
}
