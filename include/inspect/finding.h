/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What numbers mean: rules in tables, one engine for all commands that judge. A rule speaks when
 * all its tests hold; a test of a value that was not measured never does.
 */
#ifndef INSPECT_FINDING_H
#define INSPECT_FINDING_H

#include <inspect/result.h>
#include <inspect/strbuf.h>

enum finding_compare { BELOW, ABOVE };

struct finding_test {
	const char *value; /* name of a measured or derived value; NULL ends the tests */
	enum finding_compare compare;
	double limit;
	const char *shown; /* printf format of one double: "IPC %.2f"; NULL: not worth showing */
};

#define FINDING_TESTS_MAX 3

struct finding_rule {
	const char *name; /* "memory-bound" */
	struct finding_test tests[FINDING_TESTS_MAX];
	const char *means;
	const char *next;      /* a command line with {target} in it */
	const char *next_else; /* `use`: where no process is known for a {pid} in `next` */
	const char *source;    /* where rule and limits come from */
};

/* The value of a name; NAN when it was not measured. */
typedef double finding_value_fn(void *ctx, const char *name);

struct finding {
	const struct finding_rule *rule;
	const char *evidence; /* "IPC 0.62 (below 1)"; of the result's arena */
	const char *means;
	const char *next; /* the command line with its target */
};

typedef ARRAY(struct finding) findings;

/* Applies the table in its order. `target` replaces {target}. Texts go into the result's arena.
 * 0 or -ENOMEM. */
int findings_evaluate(const struct finding_rule *rules, size_t n, finding_value_fn *value,
		      void *ctx, const char *target, struct result *r, findings *ret);

/* A number by a printf format of one double from a table of ours; where that would round it down
 * to 0, its first digit: "0.2 drops a second". */
void finding_put_number(struct strbuf *b, const char *format, double v);

/* The section "findings": one line each for people; rule, evidence, means, next as data. */
void findings_section(struct result *r, const char *title, const findings *f);
/* The same data; for people the first FINDINGS_SHOWN stand in the head ("verdict", "also"), where
 * they are on the first screen whatever the length of the table. _below: this verdict first, all
 * findings are "also"; NULL: none. */
enum { FINDINGS_SHOWN = 3 };
void findings_head(struct result *r, const findings *f);
void findings_head_below(struct result *r, const char *verdict, const findings *f);

/* What --explain prints: the rules with their limits and sources. */
void findings_explain(const struct finding_rule *rules, size_t n, struct result *r);

#endif
