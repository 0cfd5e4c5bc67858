/* SPDX-License-Identifier: BSD-2-Clause */
/* What is allocated by whom, as long as it is: handles, mappings, ranges of managed memory. */
#include "trace_gpu.h"

#include <inspect/hashmap.h>

enum {
	OBJECTS_MAX = 1 << 20,
	COMPACT_FROM = 1 << 12, /* objects, among which those that are gone are looked for */
	EXTENTS_MAX = 1 << 18,  /* a process has 65,530 mappings */
	REMAP_KEEPS = 4,        /* MREMAP_DONTUNMAP */
};

/* What is left of a mapping or a range. */
struct extent {
	enum gpu_object_kind kind;
	uint32_t pid, object;
	uint64_t begin, end;
	uint64_t made_ns; /* what frees it began later */
};

struct gpu_objects {
	ARRAY(struct gpu_object) all; /* also those that are gone, up to `compact_at` */
	struct hashmap by_name;       /* handles */
	ARRAY(struct extent) extents; /* by kind, process and address; none overlap */
	size_t compact_at;
	uint64_t made, dropped;
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
	array_release(&o->extents);
	hashmap_release(&o->by_name);
	free(o);
}

/* Clients have their numbers from the driver: whoever uses one means the same. */
static uint64_t hash_of(uint32_t client, uint64_t name)
{
	return hash_u64(name ^ hash_u64(client));
}

static struct gpu_object *find(const struct gpu_objects *o, uint32_t client, uint64_t name)
{
	uint32_t at, i;

	hashmap_each_candidate(&o->by_name, hash_of(client, name), at, i) {
		struct gpu_object *one = &o->all.v[i];

		if (one->live && one->client == client && one->name == name)
			return one;
	}
	return NULL;
}

static int remember(struct gpu_objects *o, uint32_t index)
{
	const struct gpu_object *one = &o->all.v[index];

	if (one->kind != OBJECT_HANDLE)
		return 0;
	return hashmap_insert(&o->by_name, hash_of(one->client, one->name), index) ? -ENOMEM : 0;
}

/* Without those that are gone. */
static int compact(struct gpu_objects *o)
{
	CLEANUP(freep) uint32_t *moved = calloc(o->all.n + 1, sizeof(*moved));
	size_t n = 0;
	int err = 0;

	if (!moved)
		return -ENOMEM;
	hashmap_release(&o->by_name);
	o->by_name = (struct hashmap){0};
	for (size_t i = 0; i < o->all.n && !err; i++) {
		if (!o->all.v[i].live)
			continue;
		moved[i] = (uint32_t)n;
		o->all.v[n] = o->all.v[i];
		err = remember(o, (uint32_t)n++);
	}
	o->all.n = n;
	for (size_t i = 0; i < o->extents.n; i++)
		o->extents.v[i].object = moved[o->extents.v[i].object];
	o->compact_at = MAX(2 * n, COMPACT_FROM);
	return err;
}

static int add(struct gpu_objects *o, const struct gpu_object *what)
{
	int err = o->all.n >= MAX(o->compact_at, COMPACT_FROM) ? compact(o) : 0;

	if (err)
		return err;
	if (o->all.n >= OBJECTS_MAX) {
		o->dropped++;
		return 0;
	}
	o->made++;
	err = array_push(&o->all, *what) ? -ENOMEM : 0;
	return err ? err : remember(o, (uint32_t)(o->all.n - 1));
}

static void leave_parent(const struct gpu_objects *o, const struct gpu_object *one)
{
	struct gpu_object *parent = find(o, one->client, one->parent);

	if (parent && parent->children)
		parent->children--;
}

/* With what lies below it: a freed client or device takes all of its objects along. */
static void release_handle(struct gpu_objects *o, uint32_t client, uint32_t object)
{
	struct gpu_object *one = find(o, client, object);
	bool has_children = client == object;

	if (one) {
		one->live = false;
		has_children |= one->children;
		leave_parent(o, one);
	}
	for (size_t i = 0; i < o->all.n && has_children; i++) {
		struct gpu_object *below = &o->all.v[i];

		if (!below->live || below->kind != OBJECT_HANDLE || below->client != client)
			continue;
		if (client == object)
			below->live = false;
		else if (below->parent == object && below->name != object)
			release_handle(o, client, (uint32_t)below->name);
	}
}

static int add_handle(struct gpu_objects *o, const struct gpu_object *what)
{
	struct gpu_object *before = find(o, what->client, what->name), *parent;

	/* How it went was not seen: the driver gives no name twice. */
	if (before)
		release_handle(o, what->client, (uint32_t)what->name);
	parent = what->parent == what->name ? NULL : find(o, what->client, what->parent);
	if (parent)
		parent->children++;
	return add(o, what);
}

static int rm_event(struct gpu_objects *o, const struct gpu_event *e)
{
	struct gpu_object made = {
		.key = e->key, .kind = OBJECT_HANDLE, .pid = e->key.pid, .stack_id = e->stack};
	struct gpu_fields f;

	gpu_fields_read(&e->key, e->head, e->n_head, &f);
	if (!(f.have & GPU_OBJECT))
		return 0;
	if (gpu_call_effect(&e->key) == GPU_GIVES)
		release_handle(o, f.client, f.object);
	if (gpu_call_effect(&e->key) != GPU_TAKES)
		return 0;
	/* A client's own handle names the client. */
	made.client = f.parent || f.client ? f.client : f.object;
	made.live = true;
	made.parent = f.parent;
	made.name = f.object;
	made.length_bytes = f.length_bytes;
	made.has_length = f.have & GPU_LENGTH;
	return add_handle(o, &made);
}

/* --- addresses -------------------------------------------------------------------------------- */

/* The first extent of it that ends behind the address, or where it would be. */
static size_t extent_from(const struct gpu_objects *o, enum gpu_object_kind kind, uint32_t pid,
			  uint64_t at)
{
	size_t low = 0, high = o->extents.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct extent *e = &o->extents.v[middle];
		bool before = e->kind != kind ? e->kind < kind
			      : e->pid != pid ? e->pid < pid
					      : e->end <= at;

		low = before ? middle + 1 : low;
		high = before ? high : middle;
	}
	return low;
}

/* The extent at an address; NULL: there is none. */
static const struct extent *extent_at(const struct gpu_objects *o, enum gpu_object_kind kind,
				      uint32_t pid, uint64_t at)
{
	size_t i = extent_from(o, kind, pid, at);
	const struct extent *e = i < o->extents.n ? &o->extents.v[i] : NULL;

	return e && e->kind == kind && e->pid == pid && e->begin <= at ? e : NULL;
}

static int put_extent(struct gpu_objects *o, size_t at, const struct extent *e)
{
	if (o->extents.n >= EXTENTS_MAX) {
		o->dropped++;
		return 0;
	}
	if (array_push(&o->extents, *e))
		return -ENOMEM;
	memmove(&o->extents.v[at + 1], &o->extents.v[at],
		(o->extents.n - 1 - at) * sizeof(*o->extents.v));
	o->extents.v[at] = *e;
	return 0;
}

static void take_extent(struct gpu_objects *o, size_t at)
{
	o->extents.n--;
	memmove(&o->extents.v[at], &o->extents.v[at + 1],
		(o->extents.n - at) * sizeof(*o->extents.v));
}

/* Nothing is there any more of what was made before that time. */
static int cut(struct gpu_objects *o, enum gpu_object_kind kind, uint32_t pid, uint64_t begin,
	       uint64_t end, uint64_t begun_ns)
{
	size_t i = extent_from(o, kind, pid, begin);
	int err = 0;

	while (i < o->extents.n && !err) {
		struct extent *e = &o->extents.v[i];
		uint64_t from = MAX(begin, e->begin), to = MIN(end, e->end);
		struct gpu_object *one = &o->all.v[e->object];
		struct extent rest = *e;

		if (e->kind != kind || e->pid != pid || e->begin >= end)
			break;
		if (e->made_ns > begun_ns) {
			i++;
			continue;
		}
		one->length_bytes -= to - from;
		one->live = one->length_bytes != 0;
		rest.begin = to;
		e->end = from;
		if (e->begin == e->end && rest.begin == rest.end) {
			take_extent(o, i);
		} else if (e->begin == e->end) {
			*e = rest;
		} else {
			i++;
			if (rest.begin < rest.end)
				err = put_extent(o, i, &rest);
		}
	}
	return err;
}

static int place(struct gpu_objects *o, const struct gpu_object *one, uint64_t begin,
		 uint64_t n_bytes, uint64_t made_ns)
{
	const struct extent e = {.kind = one->kind,
				 .pid = one->pid,
				 .object = (uint32_t)(one - o->all.v),
				 .begin = begin,
				 .end = begin + n_bytes,
				 .made_ns = made_ns};

	if (e.end <= e.begin)
		return 0;
	return put_extent(o, extent_from(o, one->kind, one->pid, begin), &e);
}

static int add_range(struct gpu_objects *o, const struct gpu_event *e, enum gpu_object_kind kind,
		     uint64_t begin)
{
	uint64_t n_bytes = MAX(e->length_bytes, 1), end_ns = e->start_ns + e->duration_ns;
	const struct gpu_object made = {.key = e->key,
					.kind = kind,
					.pid = e->key.pid,
					.stack_id = e->stack,
					.name = begin,
					.length_bytes = n_bytes,
					.has_length = e->length_bytes != 0,
					.live = true};
	uint64_t made_before = o->made;
	int err = cut(o, kind, e->key.pid, begin, begin + n_bytes, UINT64_MAX);

	if (!err)
		err = add(o, &made);
	if (err || o->made == made_before)
		return err;
	return place(o, &o->all.v[o->all.n - 1], begin, n_bytes, end_ns);
}

static int uvm_event(struct gpu_objects *o, const struct gpu_event *e)
{
	const struct extent *at;
	uint64_t base;

	if (e->n_head < sizeof(base))
		return 0;
	memcpy(&base, e->head, sizeof(base));
	at = extent_at(o, OBJECT_RANGE, e->key.pid, base);
	switch (gpu_call_effect(&e->key)) {
	case GPU_TAKES:
		/* What is mapped into a range goes with it. */
		return at && e->key.number == GPU_UVM_MAP_EXTERNAL
			       ? 0
			       : add_range(o, e, OBJECT_RANGE, base);
	case GPU_GIVES:
		return at ? cut(o, OBJECT_RANGE, e->key.pid, at->begin, at->end, UINT64_MAX) : 0;
	default:
		return 0;
	}
}

/* A part of what is moved, from the begin of the range on. */
struct piece {
	uint32_t object;
	uint64_t begin, end;
};
typedef ARRAY(struct piece) pieces;

static int find_pieces(const struct gpu_objects *o, const struct gpu_event *e, pieces *ret)
{
	uint64_t begin = e->arg, kept = MIN(e->range_bytes, e->length_bytes);
	size_t i = extent_from(o, OBJECT_MAPPING, e->key.pid, begin);
	int err = 0;

	for (; i < o->extents.n && !err; i++) {
		const struct extent *x = &o->extents.v[i];
		struct piece p = {.object = x->object};

		if (x->kind != OBJECT_MAPPING || x->pid != e->key.pid || x->begin >= begin + kept)
			break;
		p.begin = MAX(x->begin, begin) - begin;
		p.end = MIN(x->end - begin, kept);
		/* One that grows is one alone; so is one that is mapped once more. */
		if (p.end == e->range_bytes)
			p.end = MAX(p.end, e->length_bytes);
		err = array_push(ret, p);
	}
	if (!err && !e->range_bytes) {
		const struct extent *x = extent_at(o, OBJECT_MAPPING, e->key.pid, begin);

		if (x)
			err = array_push(ret, ((struct piece){x->object, 0, e->length_bytes}));
	}
	return err ? -ENOMEM : 0;
}

/* Mappings go elsewhere, shrink, or grow. */
static int remap_event(struct gpu_objects *o, const struct gpu_event *e)
{
	uint64_t to = (uint64_t)e->result, end_ns = e->start_ns + e->duration_ns;
	uint32_t pid = e->key.pid;
	pieces all = {0};
	int err = find_pieces(o, e, &all);

	if (!err && !(e->remap_flags & REMAP_KEEPS))
		err = cut(o, OBJECT_MAPPING, pid, e->arg, e->arg + e->range_bytes, e->start_ns);
	if (!err)
		err = cut(o, OBJECT_MAPPING, pid, to, to + e->length_bytes, UINT64_MAX);
	for (size_t i = 0; i < all.n && !err; i++) {
		struct gpu_object *one = &o->all.v[all.v[i].object];
		uint64_t n_bytes = all.v[i].end - all.v[i].begin;

		one->length_bytes += n_bytes;
		one->live = true;
		err = place(o, one, to + all.v[i].begin, n_bytes, end_ns);
	}
	array_release(&all);
	return err;
}

static int mapping_event(struct gpu_objects *o, const struct gpu_event *e)
{
	switch (e->key.kind) {
	case GPU_MMAP:
		return add_range(o, e, OBJECT_MAPPING, e->arg);
	case GPU_MREMAP:
		return remap_event(o, e);
	default:
		return cut(o, OBJECT_MAPPING, e->key.pid, e->arg, e->arg + e->range_bytes,
			   e->start_ns);
	}
}

int gpu_objects_event(struct gpu_objects *o, const struct gpu_event *e)
{
	if (gpu_call_failed(&e->key))
		return 0;
	if (e->key.kind == GPU_MMAP || e->key.kind == GPU_MUNMAP || e->key.kind == GPU_MREMAP ||
	    e->key.kind == GPU_MAP_OVER)
		return mapping_event(o, e);
	/* Without its status nobody knows whether it was done. */
	if (e->key.kind != GPU_IOCTL || !(e->key.flags & GPU_HAS_STATUS))
		return 0;
	return e->key.class == GPU_CLASS_RM ? rm_event(o, e) : uvm_event(o, e);
}

bool gpu_objects_class(const struct gpu_objects *o, uint32_t client, uint32_t object, uint32_t *ret)
{
	const struct gpu_object *one = find(o, client, object);

	if (!one || one->key.number == GPU_RM_VID_HEAP_CONTROL ||
	    !(one->key.flags & GPU_HAS_SELECTOR))
		return false;
	*ret = one->key.selector;
	return true;
}

uint64_t gpu_objects_made(const struct gpu_objects *o)
{
	return o->made + o->dropped;
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
