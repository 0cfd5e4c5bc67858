/* SPDX-License-Identifier: BSD-2-Clause */
#include "input.h"

#include <inspect/clock.h>
#include <sys/stat.h>
#include <time.h>

/* A pipe, or a file that is not at its end. */
static bool stdin_has_text(void)
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st))
		return false;
	if (S_ISREG(st.st_mode))
		return lseek(STDIN_FILENO, 0, SEEK_CUR) < st.st_size;
	return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
}

const char *default_input(const char *command, bool quiet)
{
	if (stdin_has_text()) {
		if (!quiet)
			fprintf(stderr, "inspect %s: reading stacks or a recording from stdin\n",
				command);
		return "-";
	}
	if (access("inspect.data", F_OK) && access("perf.data", F_OK) == 0)
		return "perf.data";
	return "inspect.data";
}

/* One fact; those that the input does not state are data only, with the reason. */
static void text_fact(struct result *r, const char *prefix, const char *key, const char *label,
		      const char *value)
{
	result_fact(r, result_text(r, "%s%s", prefix, key), value ? label : "",
		    value ? cell_text(r, value) : cell_null(r, "the input does not say"));
}

/* In the time zone of the reader, with its offset. */
static const char *wall_time(struct result *r, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	char text[64];
	struct tm tm;

	if (!wall_ns || !localtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm))
		return NULL;
	return result_text(r, "%s", text);
}

void input_facts(struct result *r, const struct profile *p, const char *path, const char *prefix)
{
	const char *shown = str_eq(path, "-") ? "stdin" : path;

	text_fact(r, prefix, "file", prefix[0] ? "" : "file", shown);
	text_fact(r, prefix, "command", prefix[0] ? "" : "command", p->command);
	if (p->hostname && !prefix[0])
		result_fact(r, "", "host",
			    cell_borrowed(result_text(r, "%s%s%s%s%s", p->hostname,
						      p->os_release ? ", Linux " : "",
						      p->os_release ? p->os_release : "",
						      p->arch ? " " : "", p->arch ? p->arch : "")));
	text_fact(r, prefix, "hostname", "", p->hostname);
	text_fact(r, prefix, "os_release", "", p->os_release);
	text_fact(r, prefix, "arch", "", p->arch);
	text_fact(r, prefix, "start_time", prefix[0] ? "" : "when", wall_time(r, p->wall_start_ns));
}

const char *weight_text(struct result *r, const struct profile_event *e, uint64_t weight)
{
	char buf[32];

	if (str_eq(e->unit, "ns"))
		return result_text(r, "%s", duration_format(weight, buf, sizeof(buf)));
	return result_text(r, "%llu %s", (unsigned long long)weight, e->unit);
}
