/* SPDX-License-Identifier: BSD-2-Clause */
#include "output_pipe.h"

#include <fcntl.h>

#define LINE_BYTES_MAX 65536

int output_pipe_open(struct output_pipe *p, int to_fd, counting_line_fn *each, void *ctx)
{
	int fds[2];

	*p = (struct output_pipe){
		.read_fd = -1, .write_fd = -1, .to_fd = to_fd, .each = each, .ctx = ctx};
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	p->read_fd = fds[0];
	p->write_fd = fds[1];
	return 0;
}

void output_pipe_close(struct output_pipe *p)
{
	closep(&p->read_fd);
	closep(&p->write_fd);
	p->read_fd = p->write_fd = -1;
	strbuf_release(&p->line);
}

static void end_line(struct output_pipe *p)
{
	if (p->line.n)
		p->each(p->ctx, strbuf_str(&p->line));
	strbuf_clear(&p->line);
}

static void take_lines(struct output_pipe *p, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* A progress display ends its lines with \r. */
		if (text[i] == '\n' || text[i] == '\r')
			end_line(p);
		else if (p->line.n < LINE_BYTES_MAX && text[i])
			strbuf_putc(&p->line, text[i]);
	}
}

/* False when it cannot be written: who reads it is gone, and CMD is to notice. */
static bool pass_on(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		text += done;
		n -= (size_t)done;
	}
	return true;
}

bool output_pipe_pass(struct output_pipe *p)
{
	char buf[16384];
	ssize_t n = read(p->read_fd, buf, sizeof(buf));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	take_lines(p, buf, (size_t)n);
	return pass_on(p->to_fd, buf, (size_t)n);
}

void output_pipe_finish(struct output_pipe *p)
{
	char buf[16384];
	ssize_t n;

	if (p->read_fd < 0)
		return;
	while ((n = read(p->read_fd, buf, sizeof(buf))) > 0) {
		take_lines(p, buf, (size_t)n);
		if (!pass_on(p->to_fd, buf, (size_t)n))
			break;
	}
	end_line(p);
}
