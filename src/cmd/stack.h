/* SPDX-License-Identifier: BSD-2-Clause */
/* What `stack` makes of snapshots: text for people, and a result for --json, --csv, --markdown. */
#ifndef INSPECT_CMD_STACK_H
#define INSPECT_CMD_STACK_H

#include <inspect/result.h>
#include <inspect/snapshot.h>

struct stack_style {
	unsigned width; /* columns; 0: nothing is cut */
	bool color, ascii;
	bool all;         /* name every thread of a group, and show whole stacks */
	size_t max_stack; /* user frames of a stack, else */
};

/* 0, -ENOMEM, or -EIO when a write failed. */
int stack_text(const struct snapshot *s, const struct stack_style *style, FILE *out);

/* Adds one snapshot, the index-th, to a result that has the sections of stack_result_begin. */
struct stack_sections {
	size_t processes, threads, frames;
};
void stack_result_begin(struct result *r, struct stack_sections *ret);
void stack_result_add(struct result *r, const struct stack_sections *to, const struct snapshot *s,
		      size_t index);

/* "runs", "waits", "is stopped", … for the letter of a state. */
const char *stack_state_words(const struct task_state *t);

/* Whether the kernel's frames say that a page is being brought in. */
bool stack_in_page_fault(const struct snapshot *s, const struct snapshot_thread *t);

#endif
