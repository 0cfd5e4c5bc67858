/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The document. Its first view is plain SVG, for image viewers and pages without scripts; where
 * scripts run, flame.js draws anew from the data, to the width of the window.
 */
#include "flame.h"
#include "flame_css.h"
#include "flame_draw_js.h"
#include "flame_js.h"
#include "flame_state_js.h"
#include "flame_tree_js.h"
#include "paths.h"
#include <inspect/term.h>

#define NONE UINT32_MAX

enum {
	WIDTH_PX = 1200,
	MARGIN_PX = 12,
	FRAMES_PX = WIDTH_PX - 2 * MARGIN_PX,
	TOP_PX = 62, /* title and subtitle */
	ROW_PX = 17,
	GAP_PX = 14, /* between frames and legend */
	LINE_PX = 18,
	STATIC_MAX = 6000, /* rectangles; the script draws all that are wide enough */
	TITLE_MAX = 400,   /* bytes of a name in the first view; the data has all of it */
	NOTES_MAX = 6,
};

struct picture {
	const struct profile *p;
	const struct flame_options *o;
	const struct flame_tree *tree; /* the one drawn */
	FILE *out;
	uint64_t min_weight; /* narrower is not drawn one by one */
	uint32_t rows;
	bool failed; /* out of memory */
};

/* The text is valid UTF-8 without control characters (term_escape). */
static void put_xml(FILE *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* U+FFFE and U+FFFF are not characters of XML 1.0: U+FFFD instead */
		bool forbidden = n - i >= 3 && !memcmp(s + i, "\xef\xbf", 2) &&
				 (unsigned char)s[i + 2] >= 0xbe;

		if (forbidden) {
			fputs("\xef\xbf\xbd", out);
			i += 2;
		} else if (s[i] == '&') {
			fputs("&amp;", out);
		} else if (s[i] == '<') {
			fputs("&lt;", out);
		} else if (s[i] == '>') {
			fputs("&gt;", out);
		} else if (s[i] == '"') {
			fputs("&quot;", out);
		} else {
			putc_unlocked(s[i], out);
		}
	}
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Cuts the text to `max` bytes, "…" included, at the border of a character. */
static void cut_end(struct strbuf *text, size_t max)
{
	size_t n = max - strlen("…");

	if (text->n <= max)
		return;
	while (n && continues(text->v[n]))
		n--;
	text->n = n;
	strbuf_puts(text, "…");
}

/* A length in px given in hundredths, without the locale's decimal point. */
static void put_px(FILE *out, uint64_t hundredths)
{
	fprintf(out, "%llu", (unsigned long long)(hundredths / 100));
	if (hundredths % 100)
		fprintf(out, ".%02u", (unsigned)(hundredths % 100));
}

/* part / whole in units of 1 / parts, rounded; integers, so that every machine writes the same. */
static uint64_t share(uint64_t part, uint64_t whole, uint64_t parts)
{
	if (!whole)
		return 0;
	part = MIN(part, whole);
	return (uint64_t)(((unsigned __int128)part * parts + whole / 2) / whole);
}

static uint64_t px_of(const struct picture *pic, uint64_t weight)
{
	return share(weight, pic->tree->nodes.v[0].total, FRAMES_PX * 100);
}

/* The smallest width, from `least` px doubling, that leaves no more than STATIC_MAX frames. */
static uint64_t min_weight(const struct flame_tree *t, double least_px)
{
	double px = least_px > 0 ? least_px : 0.5;
	uint64_t total = t->nodes.v[0].total;

	for (;; px *= 2) {
		uint64_t weight = (uint64_t)((double)total * px / FRAMES_PX);
		size_t n = 0;

		for (size_t i = 0; i < t->nodes.n; i++)
			n += t->nodes.v[i].total >= MAX(weight, 1);
		if (n <= STATIC_MAX || px >= FRAMES_PX)
			return MAX(weight, 1);
	}
}

/* The node after i in preorder that is not below it, or NONE. */
static uint32_t after_subtree(const struct flame_tree *t, uint32_t i)
{
	while (i != NONE && t->nodes.v[i].next_sibling == NONE)
		i = t->nodes.v[i].parent;
	return i == NONE ? NONE : t->nodes.v[i].next_sibling;
}

/* Weight of i's children that are too narrow. */
static uint64_t narrow_below(const struct picture *pic, size_t i)
{
	const struct flame_node *v = pic->tree->nodes.v;
	uint64_t sum = 0;

	for (uint32_t c = v[i].first_child; c != NONE; c = v[c].next_sibling)
		if (v[c].total < pic->min_weight)
			sum = sum_u64(sum, v[c].total);
	return sum;
}

static uint32_t count_rows(const struct picture *pic)
{
	const struct flame_tree *t = pic->tree;
	uint32_t rows = 1;

	/* A drawn frame's ancestors are at least as wide, so all of them are drawn. */
	for (size_t i = 0; i < t->nodes.n; i++) {
		if (t->nodes.v[i].total < pic->min_weight)
			continue;
		rows = MAX(rows, t->nodes.v[i].depth + 1);
		if (t->nodes.v[i].depth + 2 > rows && narrow_below(pic, i) >= pic->min_weight)
			rows = t->nodes.v[i].depth + 2;
	}
	return rows;
}

static uint32_t row_y(const struct picture *pic, uint32_t depth)
{
	return TOP_PX + ROW_PX * (pic->o->icicle ? depth : pic->rows - 1 - depth);
}

static void put_rect(const struct picture *pic, uint64_t start, uint64_t total, uint32_t depth)
{
	uint64_t x = px_of(pic, start), w = px_of(pic, sum_u64(start, total)) - x;

	fputs("<rect x=\"", pic->out);
	put_px(pic->out, x + MARGIN_PX * 100);
	fprintf(pic->out, "\" y=\"%u\" width=\"", row_y(pic, depth));
	put_px(pic->out, w > 200 ? w - 50 : w);
	fprintf(pic->out, "\" height=\"%d\" class=\"", ROW_PX - 1);
}

static void add_name(const struct picture *pic, uint32_t symbol, struct strbuf *text)
{
	if (symbol == NONE)
		strbuf_puts(text, "all");
	else
		flame_symbol_text(pic->p, symbol, text);
}

/* What fits into w hundredths of a px. Fonts differ: a wide one is reckoned with, 7.3 px. */
static void put_label(const struct picture *pic, struct strbuf *name, const struct flame_node *n)
{
	uint64_t x = px_of(pic, n->start), w = px_of(pic, sum_u64(n->start, n->total)) - x;
	size_t fits = w > 1000 ? (size_t)(w - 800) / 730 : 0, at = 0;

	if (fits < 3)
		return;
	if (term_columns(strbuf_str(name)) > fits) {
		/* Wide characters are 3 bytes or more, 2 columns: bytes are at least columns */
		for (size_t columns = 0; at < name->n && columns + 1 < fits; columns++) {
			columns += (unsigned char)name->v[at] >= 0xe1;
			do
				at++;
			while (at < name->n && continues(name->v[at]));
		}
		name->n = at;
		strbuf_puts(name, "…");
	}
	fputs("<text x=\"", pic->out);
	put_px(pic->out, x + MARGIN_PX * 100 + 400);
	fprintf(pic->out, "\" y=\"%u\">", row_y(pic, n->depth) + 12);
	put_xml(pic->out, strbuf_str(name), name->n);
	fputs("</text>", pic->out);
}

static void put_title(const struct picture *pic, const struct strbuf *name,
		      const struct flame_node *n)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	uint64_t percent = share(n->total, pic->tree->nodes.v[0].total, 10000);

	strbuf_add(&text, strbuf_str(name), name->n);
	cut_end(&text, TITLE_MAX);
	strbuf_puts(&text, " · ");
	flame_grouped(&text, n->count);
	strbuf_printf(&text, " sample%s · %llu.%02llu %%", n->count == 1 ? "" : "s",
		      (unsigned long long)percent / 100, (unsigned long long)percent % 100);
	put_xml(pic->out, strbuf_str(&text), text.n);
}

static void put_frame(struct picture *pic, const struct flame_node *n)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};

	add_name(pic, n->symbol, &name);
	fputs("<g><title>", pic->out);
	put_title(pic, &name, n);
	fputs("</title>", pic->out);
	put_rect(pic, n->start, n->total, n->depth);
	if (n->symbol == NONE)
		fputs("root\"", pic->out);
	else
		fprintf(pic->out, "%c%u\"",
			flame_kinds[flame_symbol_kind(pic->p, n->symbol)].letter,
			flame_symbol_shade(pic->p, n->symbol));
	fputs(px_of(pic, n->total) >= 1000 ? " rx=\"2\"/>" : "/>", pic->out);
	put_label(pic, &name, n);
	fputs("</g>\n", pic->out);
	pic->failed |= name.failed;
}

/* Siblings too narrow to be drawn, from node i on, as one rectangle. Returns the next in preorder
 * that is not among or below them. */
static uint32_t put_narrow(struct picture *pic, uint32_t i)
{
	const struct flame_node *v = pic->tree->nodes.v;
	uint64_t start = v[i].start, total = 0;
	uint32_t last = i, depth = v[i].depth;

	for (; i != NONE && v[i].total < pic->min_weight; i = v[i].next_sibling) {
		total = sum_u64(total, v[i].total);
		last = i;
	}
	if (total >= pic->min_weight) {
		put_rect(pic, start, total, depth);
		fputs("rest\"/>\n", pic->out);
	}
	return after_subtree(pic->tree, last);
}

static void put_frames(struct picture *pic)
{
	const struct flame_tree *t = pic->tree;

	fputs("<g class=\"frames\">\n", pic->out);
	if (!t->nodes.v[0].total)
		fprintf(pic->out, "<text x=\"%d\" y=\"%d\">no samples</text>\n", MARGIN_PX,
			TOP_PX + 12);
	for (uint32_t i = 0; t->nodes.v[0].total && i < t->nodes.n;) {
		const struct flame_node *n = &t->nodes.v[i];

		if (n->total < pic->min_weight) {
			i = put_narrow(pic, i);
			continue;
		}
		put_frame(pic, n);
		i++;
	}
	fputs("</g>\n", pic->out);
}

static void put_line(struct picture *pic, const char *class, uint32_t y, const char *s, size_t n,
		     size_t max)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	term_escape(&text, s, n);
	cut_end(&text, max);
	fprintf(pic->out, "<text class=\"%s\" x=\"%d\" y=\"%u\">", class, MARGIN_PX, y);
	put_xml(pic->out, strbuf_str(&text), text.n);
	fputs("</text>\n", pic->out);
	pic->failed |= text.failed;
}

static void put_head(struct picture *pic, const char *title, uint32_t event)
{
	CLEANUP(strbuf_release) struct strbuf subtitle = {0};

	flame_subtitle(pic->p, event, &subtitle);
	fprintf(pic->out, "<g class=\"head\"><rect class=\"bar\" width=\"100%%\" height=\"%d\"/>\n",
		TOP_PX - 6);
	put_line(pic, "title", 26, title, strlen(title), 120);
	put_line(pic, "subtitle", 46, strbuf_str(&subtitle), subtitle.n, 300);
	fputs("</g>\n", pic->out);
	pic->failed |= subtitle.failed;
}

static void put_legend(const struct picture *pic, const struct flame_trees *trees, uint32_t y)
{
	bool present[FLAME_KINDS] = {false};
	unsigned x = 0;

	for (size_t t = 0; t < trees->n; t++)
		for (size_t i = 1; i < trees->tree[t].nodes.n; i++)
			present[flame_symbol_kind(pic->p, trees->tree[t].nodes.v[i].symbol)] = true;
	fprintf(pic->out, "<g class=\"legend\" transform=\"translate(%d %u)\">", MARGIN_PX, y);
	for (size_t k = 0; k < FLAME_KINDS; k++) {
		if (!present[k])
			continue;
		fprintf(pic->out,
			"<rect x=\"%u\" width=\"12\" height=\"12\" rx=\"3\" class=\"%c%u\"/>"
			"<text x=\"%u\" y=\"10\">%s</text>",
			x, flame_kinds[k].letter, flame_kinds[k].shades / 2, x + 17,
			flame_kinds[k].label);
		x += 17 + 8 * (unsigned)strlen(flame_kinds[k].label) + 16;
	}
	fputs("</g>\n", pic->out);
}

static void put_foot(struct picture *pic, const struct flame_trees *trees, uint32_t y)
{
	size_t n = MIN(pic->p->notes.n, (size_t)NOTES_MAX);

	fputs("<g class=\"foot\">\n", pic->out);
	put_legend(pic, trees, y);
	y += 12 + LINE_PX;
	for (size_t i = 0; i < n; i++, y += LINE_PX)
		put_line(pic, "note", y, pic->p->notes.v[i], strlen(pic->p->notes.v[i]), 180);
	fprintf(pic->out,
		"<text class=\"hint\" x=\"%d\" y=\"%u\">"
		"Open this file in a browser to zoom, search and read every name.</text>\n</g>\n",
		MARGIN_PX, y);
}

/* The page's title is what a tab or a file manager shows. */
static void put_start(struct picture *pic, const char *title, uint32_t height_px)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	term_escape(&text, title, strlen(title));
	cut_end(&text, 200);
	fprintf(pic->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" width=\"100%%\" "
		"viewBox=\"0 0 %d %u\">\n<title>",
		WIDTH_PX, height_px);
	put_xml(pic->out, strbuf_str(&text), text.n);
	fprintf(pic->out,
		"</title>\n<style><![CDATA[\n%s]]></style>\n"
		"<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
		"patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
		"<rect class=\"hatch\" width=\"6\" height=\"6\"/>"
		"<path class=\"hatch-line\" d=\"M0 0v6\" stroke-width=\"3\"/></pattern></defs>\n"
		"<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n",
		flame_css);
	pic->failed |= text.failed;
}

static int draw(const struct flame_trees *trees, const struct flame_options *o, FILE *out)
{
	const struct profile *p = trees->p;
	const char *title = o->title && *o->title ? o->title : p->command;
	struct picture pic = {.p = p, .o = o, .tree = &trees->tree[0], .out = out};
	uint32_t foot;
	int err;

	title = title && *title ? title : "Flame Graph";
	pic.min_weight = min_weight(pic.tree, o->min_width_px);
	pic.rows = count_rows(&pic);
	foot = TOP_PX + ROW_PX * pic.rows + GAP_PX;
	put_start(&pic, title,
		  foot + 12 + LINE_PX * (2 + (uint32_t)MIN(p->notes.n, (size_t)NOTES_MAX)));
	put_frames(&pic);
	put_foot(&pic, trees, foot);
	put_head(&pic, title, trees->event[0]);
	err = flame_data_write(trees, o, out);
	if (err || pic.failed)
		return err ? err : -ENOMEM;
	fprintf(out,
		"<script><![CDATA[\n(function () {\n'use strict';\n%s%s%s%s})();\n]]></script>\n",
		flame_tree_js, flame_state_js, flame_draw_js, flame_js);
	fputs("</svg>\n", out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

static void trees_release(struct flame_trees *trees)
{
	for (size_t i = 0; trees->tree && i < trees->n; i++)
		flame_tree_release(&trees->tree[i]);
	free(trees->tree);
	free(trees->event);
}

int flame_svg(const struct profile *p, const struct flame_options *o, FILE *out)
{
	CLEANUP(trees_release) struct flame_trees trees = {.p = p};
	bool all = o->event < 0;

	trees.n = all ? MAX(p->events.n, (size_t)1) : 1;
	trees.tree = calloc(trees.n, sizeof(*trees.tree));
	trees.event = calloc(trees.n, sizeof(*trees.event));
	if (!trees.tree || !trees.event)
		return -ENOMEM;
	for (size_t i = 0; i < trees.n; i++) {
		int err;

		trees.event[i] = all ? (uint32_t)i : (uint32_t)o->event;
		err = flame_layout(p, trees.event[i], o->reverse, true, &trees.tree[i]);
		if (err)
			return err;
	}
	return draw(&trees, o, out);
}
