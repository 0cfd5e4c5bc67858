/* SPDX-License-Identifier: BSD-2-Clause */
#include "debuginfod.h"

#include <dlfcn.h>
#include <inspect/clock.h>

#define ANSWER_NS (10 * NSEC_PER_SEC)
#define TOTAL_NS (60 * NSEC_PER_SEC)

/* <elfutils/debuginfod.h>, whose package is not needed for building. */
typedef struct debuginfod_client *begin_fn(void);
typedef void end_fn(struct debuginfod_client *client);
typedef int find_fn(struct debuginfod_client *client, const unsigned char *id, int id_size,
		    char **ret_path);
typedef int progress_fn(struct debuginfod_client *client, long done, long total);
typedef void set_progress_fn(struct debuginfod_client *client, progress_fn *fn);
typedef void set_data_fn(struct debuginfod_client *client, void *data);
typedef void *get_data_fn(struct debuginfod_client *client);

/* ISO C has no cast from an object's pointer to a function's. */
#define FUNCTION(type, library, name) (*(type **)&(void *){dlsym(library, name)})

/* Called several times a second; other than 0 ends the query. `total` is 0 until a server has
 * begun to send. */
static int is_late(struct debuginfod_client *client, long done UNUSED, long total)
{
	get_data_fn *get_data = FUNCTION(get_data_fn, RTLD_DEFAULT, "debuginfod_get_user_data");
	struct debuginfod *d = get_data ? get_data(client) : NULL;
	uint64_t spent_ns = d ? clock_now_ns() - d->started_ns : 0;

	if (!d)
		return 0;
	d->no_answer = (total <= 0 && spent_ns > ANSWER_NS) || d->spent_ns + spent_ns > TOTAL_NS;
	return d->no_answer;
}

static int start(struct debuginfod *d)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	begin_fn *begin;
	set_progress_fn *set_progress;
	set_data_fn *set_data;

	if (!urls || !urls[strspn(urls, " ")])
		return -ENOENT;
	d->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_GLOBAL);
	d->no_library = !d->library;
	if (!d->library)
		return -ENOENT;
	begin = FUNCTION(begin_fn, d->library, "debuginfod_begin");
	set_progress = FUNCTION(set_progress_fn, d->library, "debuginfod_set_progressfn");
	set_data = FUNCTION(set_data_fn, d->library, "debuginfod_set_user_data");
	d->client = begin ? begin() : NULL;
	if (!d->client)
		return -ENOENT;
	if (set_data && set_progress) {
		set_data(d->client, d);
		set_progress(d->client, is_late);
	}
	return 0;
}

/* A descriptor, or -errno. */
static int query(struct debuginfod *d, const uint8_t *id, size_t id_size)
{
	find_fn *find = FUNCTION(find_fn, d->library, "debuginfod_find_debuginfo");
	int fd;

	if (!find)
		return -ENOENT;
	d->started_ns = clock_now_ns();
	fd = find(d->client, id, (int)id_size, NULL);
	d->spent_ns += clock_now_ns() - d->started_ns;
	d->asked++;
	d->unusable = d->no_answer;
	return fd;
}

int debuginfod_find(struct debuginfod *d, const uint8_t *id, size_t id_size, struct elf_file **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	int fd;

	if (d->unusable || !id_size)
		return -ENOENT;
	if (!d->client && start(d)) {
		d->unusable = true;
		return -ENOENT;
	}
	fd = query(d, id, id_size);
	if (fd < 0 || elf_file_open_fd(fd, &f) || !elf_file_has_build_id(f, id, id_size))
		return -ENOENT;
	d->found++;
	*ret = TAKE_PTR(f);
	return 0;
}

void debuginfod_release(struct debuginfod *d)
{
	end_fn *end = d->library ? FUNCTION(end_fn, d->library, "debuginfod_end") : NULL;

	if (end && d->client)
		end(d->client);
	/* The library stays: libcurl is not made for being unloaded. */
	*d = (struct debuginfod){0};
}
