/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind_preload.h"

#include <inspect/clock.h>
#include <inspect/elf_file.h>
#include <inspect/procfs.h>
#include <sys/mman.h>

#define PRELOAD_NS_MOST (50 * NSEC_PER_MSEC)

struct preload {
	struct unwind_processes *u;
	struct proc_map map; /* of the file that is being looked at */
};

/* As if it were mapped. */
static int add_code(void *ctx, uint64_t file_off, uint64_t size_bytes)
{
	struct preload *p = ctx;

	p->map.pgoff_bytes = file_off;
	p->map.start = p->map.end - size_bytes;
	return unwind_process_learn(p->u, &p->map);
}

static int take_numbers(void *ctx, const struct proc_map *m)
{
	struct proc_map *map = ctx;

	if (m->start != map->start)
		return 0;
	map->ino = m->ino;
	map->maj = m->maj;
	map->min = m->min;
	return 1;
}

/* Device and inode as they are in mappings: on some file systems stat(2) has others. */
static bool find_numbers(struct proc_map *map, int fd)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, page_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	int found;

	if (page == MAP_FAILED)
		return false;
	map->start = (uintptr_t)page;
	found = proc_maps_each(getpid(), take_numbers, map);
	munmap(page, page_bytes);
	return found == 1;
}

static int look_at(void *ctx, const char *path, int fd, struct elf_file *f)
{
	struct preload *p = ctx;

	p->map = (struct proc_map){.exec = true, .path = (char *)path};
	if (!find_numbers(&p->map, fd))
		return 0;
	p->map.end = INT64_MAX & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	return elf_code_each(f, add_code, p);
}

int unwind_preload(struct unwind_processes *u, const char *command)
{
	struct preload p = {.u = u};
	int err = elf_program_each(command, NULL, clock_now_ns() + PRELOAD_NS_MOST, look_at, &p);

	return err == -ENOMEM ? err : 0;
}
