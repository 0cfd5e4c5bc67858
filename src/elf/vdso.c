/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/code_file.h>
#include <inspect/procfs.h>
#include <sys/auxv.h>

/* A vdso has two pages today, on some architectures four. */
#define VDSO_BYTES_MAX (256U << 10)

struct vdso_search {
	uint64_t start_va;
	uint64_t size_bytes;
};

static int is_vdso(void *ctx, const struct proc_map *map)
{
	struct vdso_search *search = ctx;

	if (map->start != search->start_va)
		return 0;
	search->size_bytes = map->end - map->start;
	return 1;
}

int vdso_open(struct elf_file **ret)
{
	struct vdso_search search = {.start_va = getauxval(AT_SYSINFO_EHDR)};

	if (!search.start_va || proc_maps_each(getpid(), is_vdso, &search) != 1 ||
	    search.size_bytes > VDSO_BYTES_MAX)
		return -ENOENT;
	return elf_file_open_memory((const void *)(uintptr_t)search.start_va,
				    (size_t)search.size_bytes, ret);
}
