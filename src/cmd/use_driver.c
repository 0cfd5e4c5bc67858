/* SPDX-License-Identifier: BSD-2-Clause */
#include "use_driver.h"

#include <inspect/gpu_tracing.h>

enum { STATUS_NO_MEMORY = 0x51 }; /* NV_ERR_NO_MEMORY */

struct use_driver {
	struct gpu_devices devices;
	struct gpu_counts *counts;
};

static int find_devices(const char *device, struct gpu_devices *ret, struct diag *d)
{
	int err = device ? gpu_devices_add(ret, device, d) : gpu_devices_find("", ret);

	if (!err && device && !ret->entries.n)
		err = diag_set(d, -ENODEV, "--device %s: no file there", device);
	/* Without /proc/devices there is none that we could find. */
	return device ? err : 0;
}

static int start(struct use_driver *u, const struct target *t, const struct host *h, struct diag *d)
{
	CLEANUP(gpu_scope_release) struct gpu_scope scope = {0};
	struct gpu_version version = {0};
	struct gpu_counts_config config = {
		.target = {.pids = t->pids.v,
			   .n_pids = t->pids.n,
			   .all = !t->pids.n && !t->cgroup,
			   .cgroup_fd = t->cgroup_fd},
	};
	int err;

	/* Unknown: what all versions have in common is read. */
	(void)gpu_version_read("", &version);
	err = gpu_scope_find(&u->devices, &version, &scope);
	config.watch = scope.watch;
	err = err ? diag_errno(d, err, "GPU driver") : gpu_counts_new(&config, h, &u->counts, d);
	return err ? err : gpu_counts_start(u->counts);
}

int use_driver_open(const char *device, bool short_run, const struct target *t,
		    const struct host *h, struct use_driver **ret, struct strbuf *why,
		    struct diag *d)
{
	struct use_driver *u = calloc(1, sizeof(*u));
	struct diag own = {0};
	int err = u ? find_devices(device, &u->devices, d) : diag_errno(d, -ENOMEM, "use");

	if (err) {
		use_driver_close(u);
		return err;
	}
	if (!u->devices.entries.n)
		strbuf_puts(why, "no NVIDIA device");
	else if (t->cgroup && t->cgroup_fd < 0 && !t->pids.n)
		strbuf_puts(why, "no process was in the cgroup at the start");
	else if (!short_run)
		strbuf_puts(why, "not with --watch: to see its calls costs all calls of the system "
				 "(inspect trace --gpu -c)");
	else if (start(u, t, h, &own))
		strbuf_puts(why, own.what ? own.what : "its calls cannot be traced");
	else
		*ret = u;
	if (!*ret)
		use_driver_close(u);
	diag_release(&own);
	return 0;
}

void use_driver_close(struct use_driver *u)
{
	if (!u)
		return;
	gpu_counts_free(u->counts);
	gpu_devices_release(&u->devices);
	free(u);
}

static bool allocates(const struct gpu_key *key)
{
	return key->class == GPU_CLASS_RM &&
	       (key->number == GPU_RM_ALLOC || key->number == GPU_RM_ALLOC_MEMORY ||
		key->number == GPU_RM_ALLOC_OBJECT || key->number == GPU_RM_VID_HEAP_CONTROL);
}

static void add_row(const struct gpu_count *row, struct driver_calls *ret)
{
	const struct gpu_key *key = &row->key;

	if (row->key.kind != GPU_IOCTL || !row->calls)
		return;
	histogram_merge(&ret->latency, &row->h);
	if (gpu_call_failed(key))
		ret->failed += row->calls;
	if (key->flags & GPU_HAS_STATUS && key->status == STATUS_NO_MEMORY)
		ret->no_memory += row->calls;
	if (allocates(&row->key))
		ret->allocs += row->calls;
}

int use_driver_read(void *ctx, struct driver_calls *ret)
{
	struct use_driver *u = ctx;
	struct gpu_table table = {0};
	int err = gpu_counts_read(u->counts, &table);

	*ret = (struct driver_calls){0};
	for (size_t i = 0; i < table.rows.n && !err; i++)
		add_row(&table.rows.v[i], ret);
	ret->missed = table.losses.rows_full + table.losses.threads_dropped +
		      table.losses.recursion_misses;
	gpu_table_release(&table);
	return err;
}
