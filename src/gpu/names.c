/* SPDX-License-Identifier: BSD-2-Clause */
#include "tables.h"

#include "nv_escapes.tsv.h"
#include "nvos32_functions.tsv.h"
#include "rm_classes.tsv.h"
#include "rm_ctrl.tsv.h"
#include "rm_status.tsv.h"
#include "uvm_ioctls.tsv.h"

#include <inspect/syscalls.h>

enum {
	LEGACY_CONTROL = 0x8000, /* opaque: what it does is not in its number */
	WARNINGS_FROM = 0x10000, /* NV_WARN_…: it was done */
};

/* All names of a number. */
static bool put_names(const struct gpu_version *v, const struct gpu_name *names, size_t n,
		      uint32_t number, const char *prefix, struct strbuf *out)
{
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		const char *name = names[i].name;

		if (names[i].number != number || !gpu_holds(v, names[i].first, names[i].last))
			continue;
		if (found)
			strbuf_putc(out, '/');
		strbuf_puts(out, str_starts(name, prefix) ? name + strlen(prefix) : name);
		found = true;
	}
	return found;
}

#define PUT(table, number, prefix) put_names(v, table, ARRAY_SIZE(table), number, prefix, out)

bool gpu_put_escape(const struct gpu_version *v, uint32_t number, struct strbuf *out)
{
	return PUT(nv_escapes, number, "NV_ESC_");
}

bool gpu_put_uvm(const struct gpu_version *v, uint32_t number, struct strbuf *out)
{
	return PUT(uvm_ioctls, number, "");
}

/* A class's numbers have aliases: of several the one that others use too, else the first; no
 * message id is one. */
bool gpu_put_class(const struct gpu_version *v, uint32_t number, struct strbuf *out)
{
	const struct gpu_name *best = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rm_classes); i++) {
		const struct gpu_name *name = &rm_classes[i];

		if (name->number != number || !gpu_holds(v, name->first, name->last) ||
		    str_ends(name->name, "_MESSAGE_ID"))
			continue;
		if (!best || (name->preferred && !best->preferred))
			best = name;
	}
	if (best)
		strbuf_puts(out, best->name);
	return best;
}

bool gpu_put_control(const struct gpu_version *v, uint32_t number, struct strbuf *out)
{
	return !(number & LEGACY_CONTROL) && PUT(rm_ctrl, number, "");
}

bool gpu_put_function(const struct gpu_version *v, uint32_t number, struct strbuf *out)
{
	return PUT(nvos32_functions, number, "NVOS32_FUNCTION_");
}

void gpu_put_status(const struct gpu_version *v, uint32_t status, struct strbuf *out)
{
	if (!PUT(rm_status, status, ""))
		strbuf_printf(out, "0x%x unknown", status);
}

/* --- calls ------------------------------------------------------------------------------------ */

typedef bool put_fn(const struct gpu_version *v, uint32_t number, struct strbuf *out);

static put_fn *selector_names(uint32_t escape)
{
	static const struct {
		uint32_t escape;
		put_fn *put;
	} all[] = {
		{GPU_RM_CONTROL, gpu_put_control},
		{GPU_RM_ALLOC, gpu_put_class},
		{GPU_RM_ALLOC_MEMORY, gpu_put_class},
		{GPU_RM_ALLOC_OBJECT, gpu_put_class},
		{0x54, gpu_put_class}, /* RM_ALLOC_CONTEXT_DMA2 */
		{GPU_RM_VID_HEAP_CONTROL, gpu_put_function},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].escape == escape)
			return all[i].put;
	return NULL;
}

static void put_rm(const struct gpu_version *v, const struct gpu_key *key, struct strbuf *out)
{
	put_fn *put = selector_names(key->number);

	if (!gpu_put_escape(v, key->number, out))
		strbuf_printf(out, "ioctl 0x%x unknown", key->number);
	if (!put)
		return;
	if (key->flags & GPU_NO_LAYOUT) {
		strbuf_printf(out, " %u bytes unknown", key->size_bytes);
		return;
	}
	if (!(key->flags & GPU_HAS_SELECTOR))
		return;
	strbuf_putc(out, ' ');
	if (!put(v, key->selector, out))
		strbuf_printf(out, "0x%x unknown", key->selector);
}

/* A number as <asm-generic/ioctl.h> composes it. */
static void put_other(const struct gpu_key *key, struct strbuf *out)
{
	static const char *const directions[] = {"_IO", "_IOW", "_IOR", "_IOWR"};
	uint32_t type = key->number >> 8 & 0xff;

	strbuf_printf(out, "%s(", directions[key->number >> 30]);
	if (type > ' ' && type < 0x7f && type != '\'' && type != '\\')
		strbuf_printf(out, "'%c'", (char)type);
	else
		strbuf_printf(out, "0x%x", type);
	strbuf_printf(out, ", 0x%x, %u)", key->number & 0xff, key->number >> 16 & 0x3fff);
}

void gpu_put_call(const struct gpu_version *v, const struct gpu_key *key, struct strbuf *out)
{
	static const char *const kinds[GPU_KINDS] = {
		[GPU_OPEN] = "open",         [GPU_CLOSE] = "close",      [GPU_MMAP] = "mmap",
		[GPU_MUNMAP] = "munmap",     [GPU_MREMAP] = "mremap",    [GPU_POLL] = "poll",
		[GPU_MAP_OVER] = "map over", [GPU_EPOLL] = "epoll_wait",
	};

	if (key->kind != GPU_IOCTL) {
		strbuf_puts(out, key->kind < GPU_KINDS && kinds[key->kind] ? kinds[key->kind]
									   : "unknown");
	} else if (key->class == GPU_CLASS_RM) {
		put_rm(v, key, out);
	} else if (key->class != GPU_CLASS_UVM) {
		put_other(key, out);
	} else if (!gpu_put_uvm(v, key->number, out)) {
		strbuf_printf(out, "UVM 0x%x unknown", key->number);
	}
}

/* --- results ---------------------------------------------------------------------------------- */

bool gpu_call_failed(const struct gpu_key *key)
{
	if (key->flags & GPU_FAILED)
		return true;
	return key->flags & GPU_HAS_STATUS && key->status && key->status < WARNINGS_FROM;
}

void gpu_put_error(const struct gpu_version *v, const struct gpu_key *key, struct strbuf *out)
{
	const char *name;

	if (!(key->flags & GPU_FAILED)) {
		gpu_put_status(v, key->status, out);
		return;
	}
	name = errno_name((int)key->status);
	strbuf_puts(out, name ? name : "errno");
	if (!name)
		strbuf_printf(out, " %u", key->status);
}
