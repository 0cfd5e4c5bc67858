/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/gpu_tracing.h>

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
		   struct gpu_scope *ret)
{
	int err = find_layouts(version, ret);

	ret->watch = (struct gpu_watch){
		.devices = devices->entries.v,
		.n_devices = devices->entries.n,
		.paths = devices->paths.v,
		.n_paths = devices->paths.n,
		.layouts = ret->layouts.v,
		.n_layouts = ret->layouts.n,
	};
	return err;
}

void gpu_scope_release(struct gpu_scope *w)
{
	array_release(&w->layouts);
	*w = (struct gpu_scope){0};
}
