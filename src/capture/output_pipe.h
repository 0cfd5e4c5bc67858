/* SPDX-License-Identifier: BSD-2-Clause */
/* What CMD writes passes through here unchanged, and is read line by line on its way. */
#ifndef CAPTURE_OUTPUT_PIPE_H
#define CAPTURE_OUTPUT_PIPE_H

#include <inspect/counting.h>

struct output_pipe {
	int read_fd, write_fd; /* write_fd is CMD's end */
	int to_fd;             /* where it goes on */
	struct strbuf line;
	counting_line_fn *each;
	void *ctx;
};

int output_pipe_open(struct output_pipe *p, int to_fd, counting_line_fn *each, void *ctx);
void output_pipe_close(struct output_pipe *p);

/* Passes on what there is now. False at the end: nobody has the other end open. */
bool output_pipe_pass(struct output_pipe *p);

/* All that is there without waiting, and the last line though it has no newline. */
void output_pipe_finish(struct output_pipe *p);

#endif
