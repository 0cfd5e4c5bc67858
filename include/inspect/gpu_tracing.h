/* SPDX-License-Identifier: BSD-2-Clause */
/* One measurement of GPU calls: devices, target, child, the loop, the table at its end. */
#ifndef INSPECT_GPU_TRACING_H
#define INSPECT_GPU_TRACING_H

#include <inspect/capture.h>
#include <inspect/gpu.h>
#include <inspect/gpu_counts.h>

/* Devices that are watched, with names for what is shown: "nvidiactl". */
struct gpu_devices {
	ARRAY(struct gpu_device_entry) entries;
	ARRAY(char *) names; /* by id; "" a major: the minor says the name */
	ARRAY(struct gpu_path_entry) paths;
};
void gpu_devices_release(struct gpu_devices *d);

/* NVIDIA's, by the majors that the kernel has registered (/proc/devices below root). 0 or -errno;
 * none is no failure. */
int gpu_devices_find(const char *root, struct gpu_devices *ret);
/* Besides, files in a folder, and in folders "nvidia…" there, that are called as NVIDIA's nodes:
 * "/dev/nvidia0". Those of majors that are known are not added again. 0 or -ENOMEM. */
int gpu_devices_find_nodes(const char *folder, struct gpu_devices *devices);
/* A device node or file, or all in a folder; its name says which calls it understands. */
int gpu_devices_add(struct gpu_devices *devices, const char *path, struct diag *d);
/* "nvidia0", appended. */
void gpu_device_put(const struct gpu_devices *devices, const struct gpu_key *key,
		    struct strbuf *out);

/* What a program is told before it watches: devices, and where the fields of calls are. */
struct gpu_scope {
	struct gpu_watch watch; /* borrows from the rest, and from the devices */
	ARRAY(struct gpu_layout_entry) layouts;
};
/* The devices stay the caller's. 0 or -errno; *ret must be released in both cases. */
int gpu_scope_find(const struct gpu_devices *devices, const struct gpu_version *version,
		   struct gpu_scope *ret);
void gpu_scope_release(struct gpu_scope *s);

/* A recording of calls by the stack that made them (waits_config.gpu). All is borrowed. */
struct gpu_calls_config {
	const struct gpu_devices *devices;
	const struct gpu_version *version;
	gpu_event_fn *event; /* each call; NULL: only the profile. What it returns ends it. */
	void *ctx;
};
/* What its waits (struct wait_label) are called: "RM_ALLOC NV50_MEMORY_VIRTUAL", "poll nvidiactl",
 * with " = NV_ERR_NO_MEMORY" behind it when it failed. Appended. */
void gpu_call_put(const struct gpu_calls_config *config, const struct gpu_key *key,
		  struct strbuf *out);

struct gpu_tracing_config {
	const struct target *target;
	const struct host *host;
	const struct gpu_devices *devices;
	const struct gpu_version *version;
	uint32_t by;                    /* enum gpu_by */
	uint64_t duration_ns, delay_ns; /* 0: none */
	bool stdout_taken;              /* what CMD writes to stdout goes to stderr */
	gpu_event_fn *event;            /* NULL: only the table */
	int (*idle)(void *ctx);         /* nothing more has come yet; with events */
	void *ctx;
};

struct gpu_tracing {
	struct gpu_table table;
	struct watched watched;
};

/* 0; on failure CMD has not run, or was ended. *ret must be released in both cases. An event that
 * returns -ECANCELED ends it quietly. */
int gpu_tracing_run(const struct gpu_tracing_config *c, note_list *notes, struct gpu_tracing *ret,
		    struct diag *d);
void gpu_tracing_release(struct gpu_tracing *t);

#endif
