/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the fields of a call are: by number, size of the struct, and the driver's version. */
#include "tables.h"

#include "decode_rules.tsv.h"
#include "uvm_decode.tsv.h"

enum { NOT_RM_FROM = 0xc8 }; /* NV_ESC_CARD_INFO and what follows has no client */

/* Fields of calls that the tables name in their notes, with sizes of a mapping. */
static const struct {
	uint32_t number;
	int32_t client, parent, object, length;
} fields[] = {
	{GPU_RM_ALLOC_MEMORY, 0, 4, 8, 32}, /* the limit: size - 1 */
	{GPU_RM_ALLOC_OBJECT, 0, 4, 8, -1},   {GPU_RM_FREE, 0, 4, 8, -1},
	{GPU_RM_CONTROL, 0, -1, 4, -1},       {GPU_RM_ALLOC, 0, 4, 8, -1},
	{GPU_RM_MAP_MEMORY, 0, 4, 8, 24},     {GPU_RM_UNMAP_MEMORY, 0, 4, 8, -1},
	{GPU_RM_MAP_MEMORY_DMA, 0, 4, 8, 24}, {GPU_RM_UNMAP_MEMORY_DMA, 0, 4, 8, -1},
	{GPU_RM_DUP_OBJECT, 0, 4, 8, -1},
};

/* NVOS32_PARAMETERS: what follows is by function (nvos.h). The length of a descriptor is its limit:
 * size - 1. */
static const struct {
	uint32_t function;
	int32_t object, length;
} heap_fields[] = {
	{GPU_HEAP_ALLOC_DEPTH_WIDTH_HEIGHT, 44, 88},
	{GPU_HEAP_ALLOC_SIZE, 44, 88},
	{GPU_HEAP_FREE, 44, -1},
	{GPU_HEAP_ALLOC_TILED_PITCH_HEIGHT, 44, 88},
	{GPU_HEAP_ALLOC_SIZE_RANGE, 44, 80},
	{GPU_HEAP_ALLOC_OS_DESCRIPTOR, 40, 72},
};

static int32_t length_of(uint32_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].number == number)
			return fields[i].length;
	return -1;
}

int gpu_layouts_of(const struct gpu_version *v, gpu_layouts *ret)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(decode_rules) && !err; i++) {
		const struct gpu_rule *r = &decode_rules[i];

		if (r->number == GPU_XFER_CMD || !gpu_holds(v, r->first, r->last))
			continue;
		err = array_push(ret,
				 (struct gpu_call_layout){
					 {GPU_CLASS_RM, r->number, r->size_bytes},
					 {r->selector ? r->selector_off : -1, r->status_off,
					  length_of(r->number), r->number < NOT_RM_FROM ? 0 : -1},
				 });
	}
	for (size_t i = 0; i < ARRAY_SIZE(uvm_decode) && !err; i++) {
		const struct gpu_uvm *u = &uvm_decode[i];

		if (!gpu_holds(v, u->first, u->last))
			continue;
		err = array_push(ret, (struct gpu_call_layout){
					      {GPU_CLASS_UVM, u->number, 0},
					      {-1, u->status_off, u->length_off, -1},
				      });
	}
	return err;
}

static uint32_t u32_at(const uint8_t *bytes, size_t n, int32_t off, uint32_t bit, uint32_t *have)
{
	uint32_t value = 0;

	if (off < 0 || (size_t)off + sizeof(value) > n)
		return 0;
	memcpy(&value, bytes + off, sizeof(value));
	*have |= bit;
	return value;
}

static void read_fields(const uint8_t *bytes, size_t n, int32_t client, int32_t parent,
			int32_t object, int32_t length, struct gpu_fields *ret)
{
	ret->client = u32_at(bytes, n, client, GPU_CLIENT, &ret->have);
	ret->parent = u32_at(bytes, n, parent, GPU_PARENT, &ret->have);
	ret->object = u32_at(bytes, n, object, GPU_OBJECT, &ret->have);
	if (length < 0 || (size_t)length + sizeof(uint64_t) > n)
		return;
	memcpy(&ret->length_bytes, bytes + length, sizeof(uint64_t));
	ret->have |= GPU_LENGTH;
}

static void read_heap_fields(const struct gpu_key *key, const uint8_t *bytes, size_t n,
			     struct gpu_fields *ret)
{
	int32_t object = -1, length = -1;

	for (size_t i = 0; i < ARRAY_SIZE(heap_fields); i++) {
		if (!(key->flags & GPU_HAS_SELECTOR) || heap_fields[i].function != key->selector)
			continue;
		object = heap_fields[i].object;
		length = heap_fields[i].length;
	}
	read_fields(bytes, n, 0, 4, object, length, ret);
	ret->length_bytes += key->selector == GPU_HEAP_ALLOC_OS_DESCRIPTOR && length >= 0;
}

void gpu_fields_read(const struct gpu_key *key, const uint8_t *bytes, size_t n,
		     struct gpu_fields *ret)
{
	*ret = (struct gpu_fields){0};
	if (key->kind != GPU_IOCTL || key->class != GPU_CLASS_RM || key->flags & GPU_NO_LAYOUT)
		return;
	if (key->number == GPU_RM_VID_HEAP_CONTROL)
		read_heap_fields(key, bytes, n, ret);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].number == key->number)
			read_fields(bytes, n, fields[i].client, fields[i].parent, fields[i].object,
				    fields[i].length, ret);
	if (ret->have & GPU_LENGTH && key->number == GPU_RM_ALLOC_MEMORY)
		ret->length_bytes++;
}

/* --- effects ---------------------------------------------------------------------------------- */

static enum gpu_effect effect_of_rm(const struct gpu_key *key)
{
	switch (key->number) {
	case GPU_RM_ALLOC:
	case GPU_RM_ALLOC_MEMORY:
	case GPU_RM_ALLOC_OBJECT:
	case GPU_RM_DUP_OBJECT:
		return GPU_TAKES;
	case GPU_RM_FREE:
		return GPU_GIVES;
	case GPU_RM_VID_HEAP_CONTROL:
		break;
	default:
		return GPU_NO_EFFECT;
	}
	for (size_t i = 0; i < ARRAY_SIZE(heap_fields); i++)
		if (key->flags & GPU_HAS_SELECTOR && heap_fields[i].function == key->selector)
			return key->selector == GPU_HEAP_FREE ? GPU_GIVES : GPU_TAKES;
	return GPU_NO_EFFECT;
}

static enum gpu_effect effect_of_uvm(uint32_t number)
{
	switch (number) {
	case GPU_UVM_MAP_EXTERNAL:
	case GPU_UVM_MAP_DYNAMIC_PARALLELISM:
	case GPU_UVM_ALLOC_SEMAPHORE_POOL:
	case GPU_UVM_CREATE_EXTERNAL_RANGE:
	case GPU_UVM_ALLOC_DEVICE_P2P:
		return GPU_TAKES;
	case GPU_UVM_FREE:
		return GPU_GIVES;
	default:
		return GPU_NO_EFFECT;
	}
}

enum gpu_effect gpu_call_effect(const struct gpu_key *key)
{
	switch (key->kind) {
	case GPU_MMAP:
		return GPU_TAKES;
	case GPU_MUNMAP:
	case GPU_MAP_OVER:
		return GPU_GIVES;
	case GPU_IOCTL:
		return key->class == GPU_CLASS_RM    ? effect_of_rm(key)
		       : key->class == GPU_CLASS_UVM ? effect_of_uvm(key->number)
						     : GPU_NO_EFFECT;
	default:
		return GPU_NO_EFFECT;
	}
}
