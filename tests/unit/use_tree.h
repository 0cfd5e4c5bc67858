/* SPDX-License-Identifier: BSD-2-Clause */
/* A tree of /proc and /sys in a folder, read twice, ten seconds apart; questions to the report. */
#ifndef TEST_USE_TREE_H
#define TEST_USE_TREE_H

#include "scratch.h"

#include <inspect/use.h>
#include <math.h>
#include <setjmp.h>

#include <cmocka.h>

#define SECONDS 10

static struct use *session;
static struct use_report report;

static inline void put(const char *path, const char *text)
{
	FILE *file;
	char full[512];

	snprintf(full, sizeof(full), "%s%s", scratch, path);
	for (char *at = full + strlen(scratch) + 1; (at = strchr(at, '/')); at++) {
		char made[512];

		snprintf(made, sizeof(made), "mkdir -p '%.*s'", (int)(at - full), full);
		*at = '\0';
		if (access(full, F_OK))
			free(shell("%s", made));
		*at = '/';
	}
	file = fopen(full, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static inline void open_session_of(const pid_t *pids, size_t n, const char *cgroup)
{
	struct use_config config = {.pids = pids,
				    .n_pids = n,
				    .root = scratch,
				    .seconds = SECONDS,
				    .cgroup = cgroup,
				    .tasks_reason = "no BPF"};

	assert_int_equal(use_new(&config, &session), 0);
	assert_int_equal(use_rows(session, &report), -EINVAL);
	assert_int_equal(use_read(session), 0);
}

static inline void open_session(const char *cgroup)
{
	open_session_of(NULL, 0, cgroup);
}

static inline void close_session(void)
{
	assert_int_equal(use_read(session), 0);
	assert_int_equal(use_rows(session, &report), 0);
	use_free(session);
}

static inline const struct use_row *row_of(const char *resource, const char *device)
{
	for (size_t i = 0; i < report.rows.n; i++)
		if (str_eq(report.rows.v[i].resource, resource) &&
		    str_eq(report.rows.v[i].device, device))
			return &report.rows.v[i];
	fail_msg("no row %s %s", resource, device);
	return NULL;
}

static inline const struct use_value *value_of(const char *resource, const char *device,
					       const char *key)
{
	const struct use_value *v = use_row_value(row_of(resource, device), key);

	if (!v)
		fail_msg("%s %s has no %s", resource, device, key);
	return v;
}

static inline void assert_value(const char *resource, const char *device, const char *key,
				double want)
{
	double got = value_of(resource, device, key)->v;

	if (!(fabs(got - want) < 1e-6))
		fail_msg("%s %s: %s is %g, not %g", resource, device, key, got, want);
}

/* No data, with a reason. */
static inline void assert_lacks(const char *resource, const char *device, const char *key)
{
	const struct use_value *v = value_of(resource, device, key);

	assert_true(isnan(v->v));
	assert_non_null(v->reason);
	assert_true(v->reason[0]);
}

/* `shift` ticks more each: CPU 7 all busy, CPU 9 not there, the others a quarter busy. */
static inline char *stat_of(unsigned cpus, unsigned shift, int without)
{
	struct strbuf text = {0};
	char *ret;

	strbuf_puts(&text, "cpu  1 2 3 4 5 6 7 8 0 0\n");
	for (unsigned i = 0; i < cpus; i++) {
		unsigned busy = i == 7 ? shift : shift / 4;

		if ((int)i != without)
			strbuf_printf(&text, "cpu%u %u 0 0 %u 0 0 0 0 0 0\n", i, 100 + busy,
				      100 + shift - busy);
	}
	strbuf_puts(&text, "intr 1 2 3\nctxt 5\nprocs_running 3\n");
	assert_int_equal(strbuf_take(&text, &ret), 0);
	return ret;
}

static inline void put_stat(unsigned cpus, unsigned shift, int without)
{
	char *text = stat_of(cpus, shift, without);

	put("/proc/stat", text);
	free(text);
}

#define IN_SCRATCH(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

#endif
