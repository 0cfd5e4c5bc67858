/* SPDX-License-Identifier: BSD-2-Clause */
/* tracefs has the names and C types of every call's arguments: events/syscalls/sys_enter_NAME. */
#include <inspect/array.h>
#include <inspect/procfs.h>

#include "text.h"

#define FORMAT_BYTES_MAX 16384
#define CALLS_MAX 1024

struct format {
	char call[SYSCALL_NAME_BYTES];
	unsigned n;
	struct format_arg args[SYSCALL_ARGS];
};

struct syscall_formats {
	char folder[128]; /* "": there is no tracefs */
	ARRAY(struct format) known;
};

int syscall_formats_new(const char *tracefs, struct syscall_formats **ret)
{
	struct syscall_formats *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	if (*tracefs)
		snprintf(f->folder, sizeof(f->folder), "%s/events/syscalls", tracefs);
	*ret = f;
	return 0;
}

void syscall_formats_free(struct syscall_formats *f)
{
	if (f)
		array_release(&f->known);
	free(f);
}

/* "	field:const char * filename;	offset:16;	size:8;	signed:0;" */
static bool parse_field(const char *line, struct format_arg *ret)
{
	const char *end = strchr(line, ';'), *name;
	bool is_int;

	if (!str_starts(line, "\tfield:") || !end)
		return false;
	line += strlen("\tfield:");
	name = end;
	while (name > line && name[-1] != ' ')
		name--;
	if (name == line || str_starts(name, "common_") || str_starts(name, "__"))
		return false;
	is_int =
		str_starts(line, "int ") || str_starts(line, "pid_t ") || str_starts(line, "long ");
	*ret = (struct format_arg){.is_pointer = memchr(line, '*', (size_t)(name - line)) != NULL,
				   .is_signed = is_int};
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - name), name);
	return true;
}

static void read_format(const struct syscall_formats *f, struct format *format)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[256];

	snprintf(path, sizeof(path), "%s/sys_enter_%s/format", f->folder, format->call);
	if (file_read(path, FORMAT_BYTES_MAX, &text))
		return;
	for (const char *line = strbuf_str(&text); line && format->n < SYSCALL_ARGS;) {
		const char *next = strchr(line, '\n');

		if (parse_field(line, &format->args[format->n]))
			format->n++;
		line = next ? next + 1 : NULL;
	}
}

unsigned format_args(struct syscall_formats *f, const char *call,
		     struct format_arg ret[SYSCALL_ARGS])
{
	struct format format = {.n = 0};

	if (!f || !*f->folder)
		return 0;
	for (size_t i = 0; i < f->known.n; i++)
		if (str_eq(f->known.v[i].call, call)) {
			memcpy(ret, f->known.v[i].args, sizeof(f->known.v[i].args));
			return f->known.v[i].n;
		}
	snprintf(format.call, sizeof(format.call), "%s", call);
	read_format(f, &format);
	if (f->known.n < CALLS_MAX && array_push(&f->known, format))
		return 0;
	memcpy(ret, format.args, sizeof(format.args));
	return format.n;
}
