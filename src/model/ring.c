/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/ring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* header.size is 16 bits. */
#define RECORD_BYTES_MAX 65536

int perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int ring_map(struct ring *r, int fd, unsigned pages)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *base;

	base = mmap(NULL, (1 + (size_t)pages) * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (base == MAP_FAILED)
		return -errno;
	*r = (struct ring){
		.page = base,
		.data = (uint8_t *)base + page_bytes,
		.data_bytes = pages * page_bytes,
	};
	return 0;
}

void ring_unmap(struct ring *r)
{
	if (r->page)
		munmap(r->page, (size_t)(r->data - (uint8_t *)r->page) + r->data_bytes);
	free(r->whole);
	*r = (struct ring){0};
}

/* The record at an offset that counts on without end: in place, or put together from the ring's
 * end and its beginning. NULL when memory is out. */
static const struct perf_event_header *record_at(struct ring *r, uint64_t at, size_t size_bytes)
{
	size_t off = at & (r->data_bytes - 1), before_end = r->data_bytes - off;

	if (size_bytes <= before_end)
		return (const void *)(r->data + off);
	if (!r->whole)
		r->whole = malloc(RECORD_BYTES_MAX);
	if (!r->whole)
		return NULL;
	memcpy(r->whole, r->data + off, before_end);
	memcpy(r->whole + before_end, r->data, size_bytes - before_end);
	return (const void *)r->whole;
}

static void count_lost(struct ring *r, const struct perf_event_header *h, size_t size_bytes)
{
	struct { /* PERF_RECORD_LOST */
		struct perf_event_header header;
		uint64_t id, lost;
	} record;

	if (h->type != PERF_RECORD_LOST || size_bytes < sizeof(record))
		return;
	memcpy(&record, h, sizeof(record));
	r->lost += record.lost;
}

int ring_read(struct ring *r, record_fn *emit, void *ctx)
{
	/* Pairs with the barrier between records and data_head in perf_output_put_handle. */
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	int err = 0;

	while (tail != head) {
		const struct perf_event_header *h =
			(void *)(r->data + (tail & (r->data_bytes - 1)));
		uint64_t left = head - tail;
		size_t size_bytes;

		/* Records are multiples of 8, so that a header itself never wraps around. */
		if (left > r->data_bytes || left < sizeof(*h) || tail % 8 || h->size < sizeof(*h) ||
		    h->size % 8 || h->size > left) {
			r->broken++;
			tail = head;
			break;
		}
		size_bytes = h->size;
		h = record_at(r, tail, size_bytes);
		err = h ? emit(ctx, h, size_bytes) : -ENOMEM;
		if (err)
			break;
		count_lost(r, h, size_bytes);
		tail += size_bytes;
		__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	return err;
}
