/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader.h"
#include <sys/mman.h>

#define WINDOW_BYTES (256U << 10)
#define SLURP_BYTES_FIRST (1U << 20)

int input_open_stream(struct input *in, int fd, const void *head, size_t head_bytes)
{
	size_t cap = MAX(head_bytes, (size_t)WINDOW_BYTES);
	uint8_t *window = malloc(cap);

	if (!window)
		return -ENOMEM;
	if (head_bytes)
		memcpy(window, head, head_bytes);
	*in = (struct input){
		.fd = fd, .window = window, .window_cap = cap, .to = head_bytes, .end = UINT64_MAX};
	return 0;
}

int input_map(struct input *in, int fd, size_t file_bytes)
{
	void *file = mmap(NULL, file_bytes, PROT_READ, MAP_PRIVATE, fd, 0);

	if (file == MAP_FAILED)
		return -errno;
	*in = (struct input){.file = file,
			     .file_bytes = file_bytes,
			     .mapped = true,
			     .fd = -1,
			     .end = file_bytes};
	return 0;
}

void input_release(struct input *in)
{
	if (in->mapped)
		munmap((void *)(uintptr_t)in->file, in->file_bytes);
	else
		free((void *)(uintptr_t)in->file);
	free(in->window);
	*in = (struct input){.fd = -1};
}

/* read() until something came: its size, 0 at the end or after an error. */
static size_t input_read(struct input *in, uint8_t *to, size_t room)
{
	ssize_t got;

	do
		got = read(in->fd, to, room);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		in->err = -errno;
	return got > 0 ? (size_t)got : 0;
}

int input_slurp(struct input *in)
{
	size_t n = in->to - in->from, cap = MAX(n, (size_t)SLURP_BYTES_FIRST), got;
	uint8_t *file = malloc(cap), *larger;

	if (!file)
		return -ENOMEM;
	memcpy(file, in->window + in->from, n);
	while ((got = input_read(in, file + n, cap - n)) > 0) {
		n += got;
		if (n < cap)
			continue;
		larger = cap <= SIZE_MAX / 2 ? realloc(file, cap * 2) : NULL;
		if (!larger) {
			free(file);
			return -ENOMEM;
		}
		file = larger;
		cap *= 2;
	}
	if (in->err) {
		free(file);
		return in->err;
	}
	/* What was reserved too much goes back, so that a byte read past the end is noticed. */
	larger = realloc(file, MAX(n, (size_t)1));
	file = larger ? larger : file;
	free(in->window);
	*in = (struct input){.file = file, .file_bytes = n, .fd = -1, .end = n};
	return 0;
}

const uint8_t *input_need(struct input *in, size_t n)
{
	size_t got;

	if (in->file)
		return n <= in->end - in->pos ? in->file + in->pos : NULL;
	if (in->to - in->from < n && in->from) {
		memmove(in->window, in->window + in->from, in->to - in->from);
		in->to -= in->from;
		in->from = 0;
	}
	while (in->to - in->from < n) {
		got = input_read(in, in->window + in->to, in->window_cap - in->to);
		if (!got)
			return NULL;
		in->to += got;
	}
	return in->window + in->from;
}

void input_advance(struct input *in, size_t n)
{
	in->pos += n;
	if (!in->file)
		in->from += n;
}

bool input_skip(struct input *in, uint64_t n)
{
	if (in->file) {
		if (n > in->end - in->pos)
			return false;
		in->pos += n;
		return true;
	}
	while (n) {
		size_t piece = (size_t)MIN(n, (uint64_t)INPUT_NEED_MAX);

		if (!input_need(in, piece))
			return false;
		input_advance(in, piece);
		n -= piece;
	}
	return true;
}
