/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for one test's files, and commands run in it. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <inspect/strbuf.h>
#include <stdarg.h>

static char scratch[256]; /* the folder */

static inline int scratch_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(scratch, sizeof(scratch), "%s/inspect-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return mkdtemp(scratch) && !chdir(scratch) ? 0 : -1;
}

static inline int scratch_teardown(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
	return chdir("/") || system(command);
}

/* Output of a shell command; it has to succeed. */
static inline char *PRINTF(1, 2) shell(const char *fmt, ...)
{
	struct strbuf out = {0};
	char buf[65536], *text = NULL;
	va_list args;
	FILE *pipe;
	size_t n;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		abort();
	va_end(args);
	pipe = popen(text, "r");
	if (!pipe)
		abort();
	while ((n = fread(buf, 1, sizeof(buf), pipe)) > 0)
		strbuf_add(&out, buf, n);
	if (pclose(pipe) != 0) {
		fprintf(stderr, "failed: %s\n", text);
		abort();
	}
	free(text);
	if (strbuf_take(&out, &text))
		abort();
	return text;
}

static inline void write_file(const char *path, const void *v, size_t n)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(v, 1, n, file) != n || fclose(file))
		abort();
}

static inline void write_text(const char *path, const char *text)
{
	write_file(path, text, strlen(text));
}

#endif
