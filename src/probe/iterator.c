/* SPDX-License-Identifier: BSD-2-Clause */
#include "iterator.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/base.h>

enum { READ_BYTES = 64 << 10 };

/* A read may end within an element. */
static int read_elements(int fd, char *buffer, size_t element_bytes, probe_element_fn *each,
			 void *ctx)
{
	size_t have = 0, at;
	int err = 0;

	while (!err) {
		ssize_t n = read(fd, buffer + have, READ_BYTES - have);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (!each)
			continue;
		have += (size_t)n;
		for (at = 0; at + element_bytes <= have && !err; at += element_bytes)
			err = each(ctx, buffer + at);
		have -= at;
		memmove(buffer, buffer + at, have);
	}
	return err;
}

int probe_iterate_link(const struct bpf_link *link, size_t element_bytes, probe_element_fn *each,
		       void *ctx)
{
	CLEANUP(closep) int fd = bpf_iter_create(bpf_link__fd(link));
	CLEANUP(freep) char *buffer = NULL;

	if (fd < 0)
		return -errno;
	buffer = malloc(READ_BYTES);
	return buffer ? read_elements(fd, buffer, element_bytes, each, ctx) : -ENOMEM;
}

int probe_iterate(const struct bpf_program *program, size_t element_bytes, probe_element_fn *each,
		  void *ctx)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	int err = link ? probe_iterate_link(link, element_bytes, each, ctx) : -errno;

	bpf_link__destroy(link);
	return err;
}
