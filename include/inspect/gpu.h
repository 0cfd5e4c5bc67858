/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVIDIA's driver calls by name, for each version of the driver: tables from the headers of its
 * open kernel modules (the TSV files in src/gpu). Nothing is guessed: what no table has for a
 * version is told as a number and "unknown".
 */
#ifndef INSPECT_GPU_H
#define INSPECT_GPU_H

#include <gpu.abi.h>
#include <inspect/array.h>
#include <inspect/strbuf.h>

/* Of the driver. */
struct gpu_version {
	uint32_t number; /* 535.54.03 is 535054003; 0: not known */
	uint32_t table;  /* the newest of the tables' versions that is not newer; 0: none */
	bool assumed;    /* it is newer than all tables: theirs may be wrong for it */
};

/* "535.54.03", also "535.54". 0 or -EINVAL. */
int gpu_version_parse(const char *text, struct gpu_version *ret);

/* The running driver's, below that root ("" for /): -ENOENT: there is none. */
int gpu_version_read(const char *root, struct gpu_version *ret);

/* The oldest and the newest version of the tables, "515.43.04". */
const char *gpu_tables_oldest(void);
const char *gpu_tables_newest(void);

enum gpu_selector {
	GPU_SELECTOR_NONE, /* a field that has no names */
	GPU_SELECTOR_RM_CTRL,
	GPU_SELECTOR_RM_CLASSES,
	GPU_SELECTOR_NVOS32_FUNCTIONS,
};

/* Where the fields of a call are, with its names. */
struct gpu_call_layout {
	struct gpu_layout_key key;
	struct gpu_layout layout;
};
typedef ARRAY(struct gpu_call_layout) gpu_layouts;

/* All layouts that hold for this version; without one, those that are the same in all versions.
 * 0 or -ENOMEM. */
int gpu_layouts_of(const struct gpu_version *v, gpu_layouts *ret);

/* Names are appended. False: there is none, and nothing is appended. Numbers with several names get
 * them all, joined by '/', but for a class's aliases. */
bool gpu_put_escape(const struct gpu_version *v, uint32_t number, struct strbuf *out);
bool gpu_put_uvm(const struct gpu_version *v, uint32_t number, struct strbuf *out);
bool gpu_put_class(const struct gpu_version *v, uint32_t number, struct strbuf *out);
bool gpu_put_control(const struct gpu_version *v, uint32_t number, struct strbuf *out);
bool gpu_put_function(const struct gpu_version *v, uint32_t number, struct strbuf *out);

/* "NV_ERR_NO_MEMORY", "0x1234 unknown". Appended. */
void gpu_put_status(const struct gpu_version *v, uint32_t status, struct strbuf *out);

/* The call: "RM_ALLOC NV50_MEMORY_VIRTUAL", "UVM_FREE", "ioctl 0x77 unknown", "mmap". Appended. */
void gpu_put_call(const struct gpu_version *v, const struct gpu_key *key, struct strbuf *out);

/* Whether the driver, or the kernel, refused. */
bool gpu_call_failed(const struct gpu_key *key);
/* "NV_ERR_NO_MEMORY", "ENOENT", of a call that failed. Appended. */
void gpu_put_error(const struct gpu_version *v, const struct gpu_key *key, struct strbuf *out);

/* What kind of work a call is: "memory", "channels", "events", "queries", "sync", "open" or
 * "other". */
const char *gpu_call_group(const struct gpu_version *v, const struct gpu_key *key);

/* Handles and sizes that the struct of an RM call holds, of `n` bytes of it. Fields that it does
 * not have are 0 and their bit is not set. */
enum gpu_field { GPU_CLIENT = 1, GPU_PARENT = 2, GPU_OBJECT = 4, GPU_LENGTH = 8 };
struct gpu_fields {
	uint32_t have; /* enum gpu_field, or'ed */
	uint32_t client, parent, object;
	uint64_t length_bytes;
};
void gpu_fields_read(const struct gpu_key *key, const uint8_t *bytes, size_t n,
		     struct gpu_fields *ret);

/* What a call does with objects: handles, ranges of managed memory, mappings. */
enum gpu_effect { GPU_NO_EFFECT, GPU_TAKES, GPU_GIVES };
enum gpu_effect gpu_call_effect(const struct gpu_key *key);

enum gpu_escape {
	GPU_RM_ALLOC_MEMORY = 0x27,
	GPU_RM_ALLOC_OBJECT = 0x28,
	GPU_RM_FREE = 0x29,
	GPU_RM_CONTROL = 0x2a,
	GPU_RM_ALLOC = 0x2b,
	GPU_RM_DUP_OBJECT = 0x34,
	GPU_RM_IDLE_CHANNELS = 0x41,
	GPU_RM_VID_HEAP_CONTROL = 0x4a,
	GPU_RM_MAP_MEMORY = 0x4e,
	GPU_RM_UNMAP_MEMORY = 0x4f,
	GPU_RM_GET_EVENT_DATA = 0x52,
	GPU_RM_MAP_MEMORY_DMA = 0x57,
	GPU_RM_UNMAP_MEMORY_DMA = 0x58,
};

enum gpu_heap_function {
	GPU_HEAP_ALLOC_DEPTH_WIDTH_HEIGHT = 1,
	GPU_HEAP_ALLOC_SIZE = 2,
	GPU_HEAP_FREE = 3,
	GPU_HEAP_ALLOC_TILED_PITCH_HEIGHT = 6,
	GPU_HEAP_ALLOC_SIZE_RANGE = 14,
	GPU_HEAP_ALLOC_OS_DESCRIPTOR = 27,
};

enum gpu_uvm_call {
	GPU_UVM_MAP_EXTERNAL = 0x21,
	GPU_UVM_FREE = 0x22,
	GPU_UVM_MAP_DYNAMIC_PARALLELISM = 0x41,
	GPU_UVM_ALLOC_SEMAPHORE_POOL = 0x44,
	GPU_UVM_CREATE_EXTERNAL_RANGE = 0x49,
	GPU_UVM_ALLOC_DEVICE_P2P = 0x4e,
};

#endif
