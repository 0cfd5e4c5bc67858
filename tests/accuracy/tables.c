/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tables FILE…: makes the rows of each file three times, from nothing, and prints
 *
 *	FILE ROWS RULES CPU_NS BYTES
 *
 * CPU_NS: of the quickest time. BYTES: of rows and rules in memory.
 */
#include <inspect/unwind.h>

#include <fcntl.h>
#include <time.h>

enum { TIMES = 3 };

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* 0, or -errno. */
static int measure(const char *path, uint64_t *ret_ns, struct unwind_table **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	uint64_t start_ns = cpu_ns();

	if (fd < 0)
		return -errno;
	err = elf_file_open_fd(fd, &f);
	if (!err)
		err = unwind_table_build(f, ret);
	*ret_ns = cpu_ns() - start_ns;
	return err;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		uint64_t least_ns = UINT64_MAX;

		for (int j = 0; j < TIMES; j++) {
			CLEANUP(unwind_table_freep) struct unwind_table *t = NULL;
			uint64_t ns = 0;
			int err = measure(argv[i], &ns, &t);

			if (err) {
				fprintf(stderr, "tables: %s: %s\n", argv[i], strerror(-err));
				return 1;
			}
			least_ns = MIN(least_ns, ns);
			if (j == TIMES - 1)
				printf("%s %zu %zu %llu %zu\n", argv[i], t->rows.n, t->rules.n,
				       (unsigned long long)least_ns,
				       t->rows.n * sizeof(*t->rows.v) +
					       t->rules.n * sizeof(*t->rules.v));
		}
	}
	return 0;
}
