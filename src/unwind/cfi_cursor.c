/* SPDX-License-Identifier: BSD-2-Clause */
#include "cfi.h"

#include <dwarf.h>

uint64_t cfi_fixed(struct cfi_cursor *c, unsigned bytes)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < bytes) {
		c->bad = true;
		c->p = c->end;
		return 0;
	}
	/* Both architectures are little-endian, as are the hosts that this is built for. */
	memcpy(&v, c->p, bytes);
	c->p += bytes;
	return v;
}

uint64_t cfi_uleb(struct cfi_cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; c->p < c->end; shift += 7) {
		uint8_t byte = *c->p++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

int64_t cfi_sleb(struct cfi_cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; c->p < c->end; shift += 7) {
		uint8_t byte = *c->p++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			v |= ~0ULL << (shift + 7);
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

struct cfi_expr cfi_block(struct cfi_cursor *c)
{
	struct cfi_expr e = {.n = cfi_uleb(c)};

	if (c->bad || e.n > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		c->p = c->end;
		e.n = 0;
	}
	e.p = c->p;
	c->p += e.n;
	return e;
}

static uint64_t pointer_value(struct cfi_cursor *c, uint8_t format, unsigned address_bytes)
{
	switch (format) {
	case DW_EH_PE_absptr:
		return cfi_fixed(c, address_bytes);
	case DW_EH_PE_uleb128:
		return cfi_uleb(c);
	case DW_EH_PE_sleb128:
		return (uint64_t)cfi_sleb(c);
	case DW_EH_PE_udata2:
		return cfi_fixed(c, 2);
	case DW_EH_PE_udata4:
		return cfi_fixed(c, 4);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)cfi_fixed(c, 2);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)cfi_fixed(c, 4);
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return cfi_fixed(c, 8);
	default:
		c->bad = true;
		return 0;
	}
}

uint64_t cfi_pointer(struct cfi_cursor *c, uint8_t encoding, unsigned address_bytes,
		     uint64_t at_vaddr)
{
	uint64_t v = pointer_value(c, encoding & 0x0f, address_bytes);

	switch (encoding & 0xf0) {
	case DW_EH_PE_absptr:
		return v;
	case DW_EH_PE_pcrel:
		return v + at_vaddr;
	default: /* relative to text, data or function, or indirect: made by no linker for code */
		c->bad = true;
		return 0;
	}
}
