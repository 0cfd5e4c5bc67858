/* SPDX-License-Identifier: BSD-2-Clause */
#include "chunks.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

enum { CHUNKS_AT_ONCE = 16 };

static size_t chunk_bytes(const struct chunks *c)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	return ALIGN_UP((size_t)c->element_bytes << c->shift, page_bytes);
}

void chunks_release(struct chunks *c)
{
	for (size_t i = 0; i < c->mapped.n; i++)
		munmap(c->mapped.v[i], chunk_bytes(c));
	array_release(&c->mapped);
}

/* A chunk of its own, mapped; *ret_fd is to be put into the outer map and closed. */
static int make_chunk(const struct chunks *c, uint8_t **ret_mapped, int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	CLEANUP(closep)
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, c->name, sizeof(uint32_t), c->element_bytes,
				1u << c->shift, &options);
	void *base;

	if (fd < 0)
		return -errno;
	base = mmap(NULL, chunk_bytes(c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*ret_mapped = base;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* The kernel waits for running programs once for a batch, else once for each: 30 ms on a busy
 * machine (kernel/bpf/syscall.c: maybe_wait_bpf_programs). */
static int publish(const struct chunks *c, const uint32_t *keys, const int *fds, uint32_t n)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	uint32_t done = n;

	if (n > 1 && bpf_map_update_batch(c->outer_fd, keys, fds, &done, &options) == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (bpf_map_update_elem(c->outer_fd, &keys[i], &fds[i], BPF_ANY) < 0)
			return -errno;
	return 0;
}

static int add_chunks(struct chunks *c, uint32_t n)
{
	uint32_t keys[CHUNKS_AT_ONCE], first = (uint32_t)c->mapped.n, made = 0;
	int fds[CHUNKS_AT_ONCE];
	int err = array_reserve(&c->mapped, c->mapped.n + n);

	while (made < n && !err) {
		keys[made] = first + made;
		err = make_chunk(c, &c->mapped.v[first + made], &fds[made]);
		made += !err;
	}
	if (!err)
		err = publish(c, keys, fds, n);
	for (uint32_t i = 0; i < made; i++) {
		close(fds[i]);
		if (err)
			munmap(c->mapped.v[first + i], chunk_bytes(c));
	}
	if (!err)
		c->mapped.n += n;
	return err;
}

int chunks_reserve(struct chunks *c, uint64_t end)
{
	uint64_t wanted = (end + (1u << c->shift) - 1) >> c->shift;

	if (wanted > c->n_max || wanted * chunk_bytes(c) > c->budget_bytes)
		return -ENOSPC;
	while (c->mapped.n < wanted) {
		uint64_t missing = wanted - c->mapped.n;
		int err = add_chunks(c, (uint32_t)MIN(missing, (uint64_t)CHUNKS_AT_ONCE));

		if (err)
			return err;
	}
	return 0;
}

void chunks_write(struct chunks *c, uint64_t first, const void *elements, size_t n)
{
	const uint8_t *from = elements;

	while (n) {
		uint64_t slot = first & ((1u << c->shift) - 1);
		size_t fits = MIN(n, ((size_t)1 << c->shift) - slot);

		memcpy(c->mapped.v[first >> c->shift] + slot * c->element_bytes, from,
		       fits * c->element_bytes);
		from += fits * c->element_bytes;
		first += fits;
		n -= fits;
	}
}
