/* SPDX-License-Identifier: BSD-2-Clause */
/* What the picture of a flame graph and the data below it share: names, kinds and shades. */
#ifndef RENDER_FLAME_H
#define RENDER_FLAME_H

#include <inspect/render.h>
#include <inspect/strbuf.h>

/* Kinds as drawn: those of frames, and a thread's name. */
/* Beside the kinds of frames: threads, and the leaves that say how a thread spent its time. */
enum { FLAME_THREAD = FRAME_KINDS, FLAME_ON_CPU, FLAME_RUNNABLE, FLAME_WAITING, FLAME_KINDS };

struct flame_kind {
	char letter;       /* of the style classes: "n0" … "n5" */
	const char *label; /* in the legend */
	unsigned shades;
};
extern const struct flame_kind flame_kinds[FLAME_KINDS];

/* These take what struct flame_node holds as its symbol, but not the root's. */
uint32_t flame_symbol_kind(const struct profile *p, uint32_t symbol);
/* From the name alone: a function has its shade in every picture. */
unsigned flame_symbol_shade(const struct profile *p, uint32_t symbol);
/* Appends the name with all control characters and invalid bytes escaped. */
void flame_symbol_text(const struct profile *p, uint32_t symbol, struct strbuf *out);
/* String id of the module, 0 if none. */
uint32_t flame_symbol_module(const struct profile *p, uint32_t symbol);

/* What is drawn: the trees of one or several events. */
struct flame_trees {
	const struct profile *p;
	struct flame_tree *tree; /* by position */
	uint32_t *event;         /* the same */
	size_t n;
};

/* 1,234,567 */
void flame_grouped(struct strbuf *out, uint64_t v);
/* The line below the title: what was measured, how much of it, and what is missing. */
void flame_subtitle(const struct profile *p, uint32_t event, struct strbuf *out);

/*
 * Writes the <script> elements that hold the trees:
 *
 * 1. application/json: icicle, reverse; names with their modules, kinds and shades;
 *    the events. A name's kind and shade are one character each in the strings `kinds`, `shades`.
 *    With debug information also `files`, and `lines`: for each name the number of its file and
 *    the line, 0 unknown.
 * 2. for each event text/plain: the tree in preorder. Numbers are written as in Google's encoded
 *    polylines, unsigned: five bits a character, lowest first, 32 added when more follow, 63 added
 *    to be printable (none of these characters means anything to XML). A node is
 *    `name * 4 + up * 2 + own` where `up` tells that the levels to go up from the node before
 *    follow, and `own` that its own weight (in units of the event's `scale`) follows, and after it
 *    the samples unless the event has `per_sample`. The root is not named: its two numbers of own
 *    weight and samples come first.
 *
 * 0 or -ENOMEM.
 */
int flame_data_write(const struct flame_trees *trees, const struct flame_options *o, FILE *out);

#endif
