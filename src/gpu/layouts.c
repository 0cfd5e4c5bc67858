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
	{GPU_RM_ALLOC_OBJECT, 0, 4, 8, -1},      {GPU_RM_FREE, 0, 4, 8, -1},
	{GPU_RM_CONTROL, 0, -1, 4, -1},          {GPU_RM_ALLOC, 0, 4, 8, -1},
	{GPU_RM_MAP_MEMORY, 0, 4, 8, 24},        {GPU_RM_UNMAP_MEMORY, 0, 4, 8, -1},
	{GPU_RM_MAP_MEMORY_DMA, 0, 4, 8, 24},    {GPU_RM_UNMAP_MEMORY_DMA, 0, 4, 8, -1},
	{GPU_RM_VID_HEAP_CONTROL, 0, 4, -1, -1},
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

void gpu_fields_read(const struct gpu_key *key, const uint8_t *bytes, size_t n,
		     struct gpu_fields *ret)
{
	*ret = (struct gpu_fields){0};
	if (key->kind != GPU_IOCTL || key->class != GPU_CLASS_RM || key->flags & GPU_NO_LAYOUT)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (fields[i].number != key->number)
			continue;
		ret->client = u32_at(bytes, n, fields[i].client, GPU_CLIENT, &ret->have);
		ret->parent = u32_at(bytes, n, fields[i].parent, GPU_PARENT, &ret->have);
		ret->object = u32_at(bytes, n, fields[i].object, GPU_OBJECT, &ret->have);
		if (fields[i].length < 0 || (size_t)fields[i].length + sizeof(uint64_t) > n)
			return;
		memcpy(&ret->length_bytes, bytes + fields[i].length, sizeof(uint64_t));
		ret->length_bytes += key->number == GPU_RM_ALLOC_MEMORY;
		ret->have |= GPU_LENGTH;
		return;
	}
}
