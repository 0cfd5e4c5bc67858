/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks as text: what the folded and the perf-script reader share. */
#ifndef TEXT_TEXT_H
#define TEXT_TEXT_H

#include <inspect/text_input.h>

/* A stack with more frames than this loses those nearest to the root. */
#define TEXT_FRAMES_MAX 16384U

/* Sums of weights stay below this: no total of a profile overflows. */
#define TEXT_WEIGHT_MAX (1ULL << 62)

#define TEXT_BAD_LINES_NAMED 3U

/* A piece of the input. */
struct span {
	const char *s;
	size_t n;
};

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

#define KEY_INLINE_BYTES 48U

/* The bytes of one frame as they stood in the text, and the frame made of them: in one cache line,
 * because the text that a key would point to is spread over many pages. */
struct frame_slot {
	uint64_t hash;
	uint32_t frame;
	uint32_t key_n; /* 0: free */
	union {
		char key[KEY_INLINE_BYTES];
		const char *long_key; /* in the input, when key_n is larger */
	};
};

/* Hashed and asked to be fetched as soon as it is read, looked up when its stack is complete. */
struct frame_text {
	uint64_t hash;
	struct span text;
};

/* A stack's child that was used last. */
struct stack_child {
	uint32_t frame, stack; /* stack 0: none */
};

/* Makes a frame of its text; called for what the reader has not seen lately. */
typedef int text_frame_fn(struct profile *p, struct span text, uint32_t *ret_frame);

struct text_reader {
	struct profile *p;
	text_frame_fn *make_frame;
	const char *at, *end; /* what is left of the input */
	uint64_t line;        /* number of the line at hand, from 1 */

	/* Frames repeat a lot: most are found here and never parsed. */
	struct frame_slot *slots;
	ARRAY(struct frame_text) frames; /* of the stack at hand */
	/* By stack: most have one child, and lie in memory as they are walked. */
	ARRAY(struct stack_child) children;

	uint64_t weight_total;
	uint64_t samples; /* read: stacks with a weight above 0 */
	uint64_t bad_lines, cut_stacks;
	uint64_t bad_line[TEXT_BAD_LINES_NAMED]; /* numbers of the first ones */
};

int text_reader_init(struct text_reader *r, struct profile *p, const char *s, size_t n);
void text_reader_release(struct text_reader *r);

/* The next line without its end (LF or CR LF); false at the end of the text. */
bool text_next_line(struct text_reader *r, struct span *ret);

void text_bad_line(struct text_reader *r);

/* Appends the frame that `text` stands for to r->frames. */
int text_push_frame(struct text_reader *r, struct span text);

/* The stack of r->frames, which are leaf first or root first, and are emptied. */
int text_take_stack(struct text_reader *r, bool leaf_first, uint32_t *ret_stack);

/* Adds a row, and to the losses' number of samples. -EOVERFLOW: the sums are too large. */
int text_add(struct text_reader *r, uint32_t stack, uint32_t thread, uint32_t event,
	     uint64_t weight, uint64_t count);

int folded_read(struct text_reader *r);
int perf_script_read(struct text_reader *r);

/* The stack and the count of a folded line. False: it is no such line. */
struct folded_line {
	struct span stack;
	struct span count;    /* digits, perhaps with a fraction */
	bool is_differential; /* two counts: the second is taken */
};
bool folded_line_parse(struct span line, struct folded_line *ret);

/* First line of a sample in perf-script text. Spans are empty where nothing is stated. */
struct sample_header {
	struct span comm, event, rest; /* rest: after the event */
	uint32_t pid, tid;
	uint64_t time_ns, period;
	bool has_time, has_period;
	bool is_sure; /* CPU or time stood where they belong: no other text looks so */
};
bool sample_header_parse(struct span line, struct sample_header *ret);

/* `  ffffffff81000000 func+0x10 (module)`: what follows the address. False: no such line. */
bool frame_line_split(struct span line, struct span *ret_tail);

/* A frame from `func+0x10 (module)`. */
text_frame_fn perf_frame_make;

#endif
