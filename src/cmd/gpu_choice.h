/* SPDX-License-Identifier: BSD-2-Clause */
/* Which GPU drivers' calls are watched: options, and what they choose. */
#ifndef INSPECT_CMD_GPU_CHOICE_H
#define INSPECT_CMD_GPU_CHOICE_H

#include <inspect/gpu.h>
#include <inspect/gpu_tracing.h>
#include <inspect/options.h>

struct gpu_choice_options {
	ARRAY(const char *) devices; /* --device, borrowed */
	const char *nvidia_version;
};
extern const struct option_group gpu_choice_group;

/* The name of an option that was given, for refusals; NULL: none was. */
const char *gpu_choice_given(const struct gpu_choice_options *o);

/* As they were given, for a shell, each after a space: " --device /dev/dri/card0". Appended. */
void gpu_choice_put(const struct gpu_choice_options *o, struct strbuf *out);
/* Of a flame graph of these calls. */
const char *gpu_choice_title(const struct gpu_choice_options *o);

struct gpu_choice {
	struct gpu_devices devices;
	struct gpu_version version;
};

/* NVIDIA's devices, or those of --device, and the driver's version; what is assumed is noted. 0 or
 * -errno, explained; `command` is for the advice: "trace --gpu". */
int gpu_choose(const struct gpu_choice_options *o, const char *command, note_list *notes,
	       struct gpu_choice *ret, struct diag *d);
void gpu_choice_release(struct gpu_choice *c);
bool gpu_choice_has_nvidia(const struct gpu_choice *c);

/* "550.54.14", "unknown"; of the result's arena. */
struct result;
const char *gpu_version_text(const struct gpu_version *v, struct result *r);

#endif
