/* SPDX-License-Identifier: BSD-2-Clause */
/* What is allocated by whom, as long as it is: handles, mappings, ranges of managed memory. */
#include "trace_gpu.h"

#include <inspect/hashmap.h>

enum {
	OBJECTS_MAX = 1 << 20,
	UVM_FREE = 0x22,
	UVM_MAP_EXTERNAL = 0x21,
	UVM_CREATE_EXTERNAL_RANGE = 0x49,
};

struct gpu_objects {
	ARRAY(struct gpu_object) all;
	struct hashmap by_name;
	uint64_t dropped;
};

int gpu_objects_new(struct gpu_objects **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void gpu_objects_free(struct gpu_objects *o)
{
	if (!o)
		return;
	array_release(&o->all);
	hashmap_release(&o->by_name);
	free(o);
}

static uint64_t hash_of(enum gpu_object_kind kind, uint32_t pid, uint32_t client, uint64_t name)
{
	return hash_u64(name ^ hash_u64((uint64_t)client << 32 ^ pid ^ (uint64_t)kind << 60));
}

static struct gpu_object *find(const struct gpu_objects *o, enum gpu_object_kind kind, uint32_t pid,
			       uint32_t client, uint64_t name)
{
	uint32_t at, i;

	hashmap_each_candidate(&o->by_name, hash_of(kind, pid, client, name), at, i) {
		struct gpu_object *one = &o->all.v[i];

		if (one->live && one->kind == kind && one->pid == pid && one->client == client &&
		    one->name == name)
			return one;
	}
	return NULL;
}

static int add(struct gpu_objects *o, const struct gpu_object *what)
{
	if (find(o, what->kind, what->pid, what->client, what->name))
		return 0;
	if (o->all.n >= OBJECTS_MAX) {
		o->dropped++;
		return 0;
	}
	return array_push(&o->all, *what) || hashmap_insert(&o->by_name,
							    hash_of(what->kind, what->pid,
								    what->client, what->name),
							    (uint32_t)(o->all.n - 1))
		       ? -ENOMEM
		       : 0;
}

/* With what lies below it: a freed client or device takes all of its objects along. */
static void release_handle(struct gpu_objects *o, uint32_t pid, uint32_t client, uint32_t object)
{
	struct gpu_object *one = find(o, OBJECT_HANDLE, pid, client, object);

	if (one)
		one->live = false;
	if (client != object && !one)
		return;
	for (size_t i = 0; i < o->all.n; i++) {
		struct gpu_object *below = &o->all.v[i];

		if (!below->live || below->kind != OBJECT_HANDLE || below->pid != pid ||
		    below->client != client)
			continue;
		if (client == object)
			below->live = false;
		else if (below->parent == object && below->name != object)
			release_handle(o, pid, client, (uint32_t)below->name);
	}
}

static int rm_event(struct gpu_objects *o, const struct gpu_event *e)
{
	struct gpu_object made = {
		.key = e->key, .kind = OBJECT_HANDLE, .pid = e->key.pid, .stack_id = e->stack};
	struct gpu_fields f;

	gpu_fields_read(&e->key, e->head, e->n_head, &f);
	if (!(f.have & GPU_OBJECT))
		return 0;
	if (e->key.number == GPU_RM_FREE) {
		release_handle(o, e->key.pid, f.client, f.object);
		return 0;
	}
	if (e->key.number != GPU_RM_ALLOC && e->key.number != GPU_RM_ALLOC_MEMORY &&
	    e->key.number != GPU_RM_ALLOC_OBJECT)
		return 0;
	/* A client's own handle names the client. */
	made.client = f.parent || f.client ? f.client : f.object;
	made.live = true;
	made.parent = f.parent;
	made.name = f.object;
	made.length_bytes = f.length_bytes;
	made.has_length = f.have & GPU_LENGTH;
	return add(o, &made);
}

static int uvm_event(struct gpu_objects *o, const struct gpu_event *e)
{
	struct gpu_object made = {
		.key = e->key, .kind = OBJECT_RANGE, .pid = e->key.pid, .stack_id = e->stack};
	struct gpu_object *freed;
	uint64_t base;

	if (e->n_head < sizeof(base))
		return 0;
	memcpy(&base, e->head, sizeof(base));
	if (e->key.number == UVM_FREE) {
		freed = find(o, OBJECT_RANGE, e->key.pid, 0, base);
		if (freed)
			freed->live = false;
		return 0;
	}
	if (e->key.number != UVM_MAP_EXTERNAL && e->key.number != UVM_CREATE_EXTERNAL_RANGE)
		return 0;
	made.live = true;
	made.name = base;
	made.length_bytes = e->length_bytes;
	made.has_length = e->length_bytes != 0;
	return add(o, &made);
}

/* What of a mapping lies in a range is not mapped any more. */
static void cut_mapping(struct gpu_object *one, uint64_t begin, uint64_t end)
{
	uint64_t from = MAX(begin, one->name), to = MIN(end, one->name + one->span_bytes);

	if (from >= to)
		return;
	one->length_bytes -= MIN(to - from, one->length_bytes);
	one->live = one->length_bytes != 0;
}

static void release_range(struct gpu_objects *o, uint32_t pid, uint64_t begin, uint64_t n_bytes)
{
	struct gpu_object *one = find(o, OBJECT_MAPPING, pid, 0, begin);

	if (one && n_bytes <= one->span_bytes) {
		cut_mapping(one, begin, begin + n_bytes);
		return;
	}
	for (size_t i = 0; i < o->all.n; i++)
		if (o->all.v[i].live && o->all.v[i].kind == OBJECT_MAPPING &&
		    o->all.v[i].pid == pid)
			cut_mapping(&o->all.v[i], begin, begin + n_bytes);
}

static int mapping_event(struct gpu_objects *o, const struct gpu_event *e)
{
	struct gpu_object made = {.key = e->key,
				  .kind = OBJECT_MAPPING,
				  .pid = e->key.pid,
				  .stack_id = e->stack,
				  .name = e->arg,
				  .length_bytes = e->length_bytes,
				  .span_bytes = e->length_bytes,
				  .has_length = true,
				  .live = true};

	if (e->key.kind == GPU_MMAP)
		return add(o, &made);
	release_range(o, e->key.pid, e->arg, e->range_bytes);
	return 0;
}

int gpu_objects_event(struct gpu_objects *o, const struct gpu_event *e)
{
	if (gpu_call_failed(&e->key))
		return 0;
	if (e->key.kind == GPU_MMAP || e->key.kind == GPU_MUNMAP)
		return mapping_event(o, e);
	/* Without its status nobody knows whether it was done. */
	if (e->key.kind != GPU_IOCTL || !(e->key.flags & GPU_HAS_STATUS))
		return 0;
	return e->key.class == GPU_CLASS_RM ? rm_event(o, e) : uvm_event(o, e);
}

bool gpu_objects_class(const struct gpu_objects *o, uint32_t pid, uint32_t client, uint32_t object,
		       uint32_t *ret)
{
	const struct gpu_object *one = find(o, OBJECT_HANDLE, pid, client, object);

	if (!one || !(one->key.flags & GPU_HAS_SELECTOR))
		return false;
	*ret = one->key.selector;
	return true;
}

uint64_t gpu_objects_made(const struct gpu_objects *o)
{
	return o->all.n + o->dropped;
}

uint64_t gpu_objects_dropped(const struct gpu_objects *o)
{
	return o->dropped;
}

int gpu_objects_each(const struct gpu_objects *o, gpu_object_fn *each, void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < o->all.n && !err; i++)
		if (o->all.v[i].live)
			err = each(ctx, &o->all.v[i]);
	return err;
}
