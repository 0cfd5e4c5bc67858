/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzz targets share. */
#ifndef FUZZ_H
#define FUZZ_H

#include <inspect/base.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n);

/* A file in memory with these bytes; its offset is at the start. */
static inline int fuzz_file(const uint8_t *v, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || (n && pwrite(fd, v, n, 0) != (ssize_t)n))
		abort();
	return fd;
}

/* Reads every byte of a text, so that one which is not there is noticed. */
static inline void fuzz_touch(const char *s, size_t n)
{
	static volatile unsigned char sink;

	for (size_t i = 0; i < n; i++)
		sink = sink + (unsigned char)s[i];
}

#endif
