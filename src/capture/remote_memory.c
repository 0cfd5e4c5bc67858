/* SPDX-License-Identifier: BSD-2-Clause */
#include "remote_memory.h"

#include <fcntl.h>
#include <inspect/procfs.h>
#include <lib/unwind_step.h>
#include <sys/uio.h>

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT (1ULL << 63)
#define PAGEMAP_SWAPPED (1ULL << 62)

void remote_memory_init(struct remote_memory *m)
{
	m->pid = m->living = 0;
	m->pagemap_fd = -1;
}

void remote_memory_release(struct remote_memory *m)
{
	closep(&m->pagemap_fd);
	m->pagemap_fd = -1;
}

void remote_memory_begin(struct remote_memory *m, pid_t pid)
{
	char path[64];

	if (pid != m->pid) {
		remote_memory_release(m);
		m->living = proc_living(pid);
		snprintf(path, sizeof(path), "/proc/%d/pagemap", m->living);
		m->pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	m->pid = pid;
	m->copy_bytes = 0;
	m->err = 0;
	for (size_t i = 0; i < REMOTE_PAGES; i++)
		m->page_va[i] = UINT64_MAX;
}

/* Of a page that is swapped out the disk is waited for, as for one of our own. Where the kernel
 * does not say (no CONFIG_PROC_PAGE_MONITOR), pages are taken to be there. */
static bool is_present(const struct remote_memory *m, uint64_t page_va)
{
	uint64_t entry, system_page = page_va / (uint64_t)sysconf(_SC_PAGESIZE);

	if (m->pagemap_fd < 0)
		return true;
	if (pread(m->pagemap_fd, &entry, sizeof(entry), (off_t)(system_page * sizeof(entry))) !=
	    (ssize_t)sizeof(entry))
		return false;
	return entry & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED);
}

static int read_page(struct remote_memory *m, uint64_t page_va, uint8_t *to)
{
	struct iovec local = {to, REMOTE_PAGE_BYTES};
	struct iovec remote = {(void *)(uintptr_t)page_va, REMOTE_PAGE_BYTES};
	ssize_t n;

	if (!is_present(m, page_va))
		return -EFAULT;
	n = process_vm_readv(m->living, &local, 1, &remote, 1, 0);
	if (n == REMOTE_PAGE_BYTES)
		return 0;
	return n < 0 ? -errno : -EFAULT;
}

static const uint8_t *page_at(struct remote_memory *m, uint64_t user_va)
{
	uint64_t page_va = user_va & ~(uint64_t)(REMOTE_PAGE_BYTES - 1);
	size_t slot = page_va / REMOTE_PAGE_BYTES % REMOTE_PAGES;

	if (m->page_va[slot] == page_va)
		return m->pages[slot];
	m->page_va[slot] = UINT64_MAX;
	m->err = read_page(m, page_va, m->pages[slot]);
	if (m->err)
		return NULL;
	m->page_va[slot] = page_va;
	return m->pages[slot];
}

int remote_memory_read(struct remote_memory *m, uint64_t user_va, void *ret, size_t n)
{
	uint64_t at = user_va - m->copy_va;

	if (user_va >= m->copy_va && n <= m->copy_bytes && at <= m->copy_bytes - n) {
		memcpy(ret, m->copy + at, n);
		return 0;
	}
	for (size_t done = 0; done < n;) {
		size_t in_page = (user_va + done) % REMOTE_PAGE_BYTES;
		size_t part = MIN(n - done, REMOTE_PAGE_BYTES - in_page);
		const uint8_t *page = page_at(m, user_va + done);

		if (!page)
			return m->err;
		memcpy((uint8_t *)ret + done, page + in_page, part);
		done += part;
	}
	return 0;
}

int remote_memory_word(void *ctx, unsigned long long user_va, unsigned long long *ret_word)
{
	return remote_memory_read(ctx, user_va, ret_word, sizeof(*ret_word)) ? UNWIND_UNREADABLE
									     : 0;
}
