/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/gpu_tracing.h>
#include <inspect/procfs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { FDINFO_BYTES_MAX = 65536, EPOLLS_MAX = 2048, FDS_MAX = 65536, MINOR_BITS = 20 };

/* --- sets made before the attach -------------------------------------------------------------- */

static const struct gpu_device_entry *device_of(const struct gpu_devices *devices, pid_t pid,
						int fd)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	if (stat(path, &st))
		return NULL;
	for (size_t i = 0; i < devices->entries.n; i++) {
		const struct gpu_device_entry *e = &devices->entries.v[i];
		uint32_t rdev = major(st.st_rdev) << MINOR_BITS | minor(st.st_rdev);
		uint32_t dev = major(st.st_dev) << MINOR_BITS | minor(st.st_dev);

		if (e->key.inode
			    ? e->key.inode == st.st_ino && e->key.device == dev
			    : S_ISCHR(st.st_mode) &&
				      (e->key.any_minor
					       ? e->key.device == rdev >> MINOR_BITS << MINOR_BITS
					       : e->key.device == rdev))
			return e;
	}
	return NULL;
}

/* The lines "tfd: 5 events: …" of /proc/PID/fdinfo/FD. */
static int find_in_set(const struct gpu_devices *devices, pid_t pid, int fd, struct gpu_scope *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	if (file_read(path, FDINFO_BYTES_MAX, &text))
		return 0;
	for (at = strstr(strbuf_str(&text), "tfd:"); at; at = strstr(at + 4, "tfd:")) {
		const struct gpu_device_entry *e = device_of(devices, pid, atoi(at + 4));

		if (e)
			return array_push(&ret->epolls,
					  (struct gpu_epoll_entry){(uint32_t)pid, (uint32_t)fd,
								   e->device.id, e->device.class});
	}
	return 0;
}

static int find_sets(const struct gpu_devices *devices, const pid_t *pids, size_t n,
		     struct gpu_scope *ret)
{
	int err = 0;

	for (size_t i = 0; i < n && !err && ret->epolls.n < EPOLLS_MAX; i++)
		for (int fd = 0, missing = 0; fd < FDS_MAX && missing < 64 && !err; fd++) {
			char path[64], target[32];
			ssize_t got;

			snprintf(path, sizeof(path), "/proc/%d/fd/%d", pids[i], fd);
			got = readlink(path, target, sizeof(target) - 1);
			missing = got < 0 ? missing + 1 : 0;
			if (got < 0)
				continue;
			target[got] = '\0';
			if (str_eq(target, "anon_inode:[eventpoll]"))
				err = find_in_set(devices, pids[i], fd, ret);
		}
	return err;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int find_layouts(const struct gpu_version *version, struct gpu_scope *ret)
{
	gpu_layouts layouts = {0};
	int err = gpu_layouts_of(version, &layouts);

	for (size_t i = 0; i < layouts.n && !err; i++)
		err = array_push(&ret->layouts,
				 (struct gpu_layout_entry){layouts.v[i].key, layouts.v[i].layout});
	array_release(&layouts);
	return err;
}

int gpu_scope_find(const struct gpu_devices *devices, const struct gpu_version *version,
		   const struct probe_target *target, struct gpu_scope *ret)
{
	struct pid_list all = {0};
	int err = find_layouts(version, ret);

	if (!err && target->all)
		err = proc_pids(&all);
	if (!err)
		err = target->all ? find_sets(devices, all.v, all.n, ret)
				  : find_sets(devices, target->pids, target->n_pids, ret);
	array_release(&all);
	ret->watch = (struct gpu_watch){
		.devices = devices->entries.v,
		.n_devices = devices->entries.n,
		.layouts = ret->layouts.v,
		.n_layouts = ret->layouts.n,
		.epolls = ret->epolls.v,
		.n_epolls = ret->epolls.n,
	};
	return err;
}

void gpu_scope_release(struct gpu_scope *w)
{
	array_release(&w->layouts);
	array_release(&w->epolls);
	*w = (struct gpu_scope){0};
}
