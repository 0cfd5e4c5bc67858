/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `inspect trace --gpu` share. */
#ifndef INSPECT_CMD_TRACE_GPU_H
#define INSPECT_CMD_TRACE_GPU_H

#include "trace.h"

/* The parts of --by, in the order of their columns. */
enum gpu_part {
	GPU_PART_CALL,
	GPU_PART_GROUP,
	GPU_PART_THREAD,
	GPU_PART_COMM,
	GPU_PART_DEVICE,
	GPU_PART_CLIENT,
	GPU_PARTS,
};

struct gpu_run {
	const struct trace_values *v;
	struct host host;
	struct target target;
	struct strbuf target_text, target_given;
	struct gpu_choice choice;
	struct gpu_calls_config calls; /* of a recording */
	uint32_t parts;                /* bits of enum gpu_part */
	note_list notes;
	struct gpu_tracing tracing;
	struct gpu_objects *objects; /* what was allocated; NULL: not kept */
	uint64_t lost_told;          /* events, of those that were lost */
	struct diag *d;
};

/* A row of the table: counts of all keys that have the same parts. */
struct gpu_line {
	const char *part[GPU_PARTS]; /* NULL: not asked for */
	uint64_t calls, errors, bytes;
	struct histogram h;
	uint64_t in_flight, open_ns, oldest_ns; /* as in gpu_count */
	uint64_t before, before_open;
};
typedef ARRAY(struct gpu_line) gpu_lines;

/* The fact that launches are not among these calls, where they are NVIDIA's. */
void gpu_not_seen(const struct gpu_run *run, struct result *r);

/* What is missing, by cause. */
struct gpu_loss {
	const char *key;
	uint64_t n;
	const char *text; /* behind the number */
};
enum { GPU_LOSSES = 7 };
void gpu_losses_each(const struct gpu_losses *l, struct gpu_loss ret[GPU_LOSSES]);
/* "2 calls of dropped rows, …", or "0"; appended. */
void gpu_losses_put(const struct gpu_losses *l, struct strbuf *out);
/* "NV_ERR_NO_MEMORY", "ENOENT"; of the result's arena. */
const char *gpu_error_text(const struct gpu_run *run, const struct gpu_key *key, struct result *r);

/* Rows by those parts, greatest first (--sort). Texts are of the result's arena. 0 or -ENOMEM. */
int gpu_lines_of(const struct gpu_run *run, uint32_t parts, struct result *r, gpu_lines *ret);
int gpu_summary(const struct gpu_run *run, struct result *r); /* -c, and --by */
int gpu_hist(const struct gpu_run *run, struct result *r);
int gpu_findings(const struct gpu_run *run, struct result *r);
/* Of a recording: calls with a slow tail, and who makes them. */
int gpu_stack_findings(const struct trace_values *v, const struct recording *rec,
		       const char *target, struct result *r);

/* --- objects (trace_gpu_objects.c) ------------------------------------------------------------ */

int gpu_objects_new(struct gpu_objects **ret);
void gpu_objects_free(struct gpu_objects *o);
/* Learns what a call allocates and frees. 0 or -ENOMEM. */
int gpu_objects_event(struct gpu_objects *o, const struct gpu_event *e);
/* The class of a handle of a client. False: not allocated while we watched. */
bool gpu_objects_class(const struct gpu_objects *o, uint32_t client, uint32_t object,
		       uint32_t *ret);

enum gpu_object_kind { OBJECT_HANDLE, OBJECT_MAPPING, OBJECT_RANGE };

struct gpu_object {
	struct gpu_key key; /* of the call that made it */
	enum gpu_object_kind kind;
	uint32_t pid, client, parent;
	uint32_t children; /* handles right below it */
	uint64_t stack_id;
	uint64_t name;         /* handle, or address */
	uint64_t length_bytes; /* of a mapping or range: what of it is left */
	bool has_length, live;
};

uint64_t gpu_objects_made(const struct gpu_objects *o);    /* while it was watched */
uint64_t gpu_objects_dropped(const struct gpu_objects *o); /* … of them, for want of room */
/* Those that are left. What each returns ends it when not 0. */
typedef int gpu_object_fn(void *ctx, const struct gpu_object *object);
int gpu_objects_each(const struct gpu_objects *o, gpu_object_fn *each, void *ctx);

/* --- by stack (trace_gpu_stacks.c, trace_gpu_leaks.c) ----------------------------------------- */

/* -c --by stack, and --leaks: recordings. */
int gpu_by_stack(struct gpu_run *run, const struct operands *operands, int argc, char **argv,
		 int *exit_code);
/* --leaks: what is left, by who made it. 0 or -ENOMEM. */
int gpu_leaks(const struct gpu_run *run, const struct recording *rec, struct result *r);

/* --- the stream (trace_gpu_stream.c) ---------------------------------------------------------- */

/* gpu_event_fn and idle of a stream; ctx is the run. */
int gpu_stream_event(void *ctx, const struct gpu_event *e);
int gpu_stream_idle(void *ctx);
int gpu_stream_end(struct gpu_run *run);

#endif
