/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls of GPU drivers are called where they are counted by the stack that made them. */
#ifndef CAPTURE_GPU_LABELS_H
#define CAPTURE_GPU_LABELS_H

#include <inspect/gpu_tracing.h>
#include <inspect/waits.h>

struct gpu_labels {
	const struct gpu_calls_config *config; /* borrowed */
	bool waits;                            /* within such calls, not the calls: */
	struct gpu_devices devices;            /* … of these */
	struct gpu_version version;
	struct gpu_calls_config own;
	ARRAY(uint32_t) by_number; /* label + 1; 0: none yet */
	struct strbuf text;
};

/* Waits are told by the calls that they are in, of the devices here, if there are any (`waits`).
 * Without the driver's version by what all versions have in common. 0 or -ENOMEM. */
int gpu_labels_of_waits(struct gpu_labels *l);
void gpu_labels_release(struct gpu_labels *l);

/* The label of the call that the probe has given that number, by gpu_call_put; of waits
 * "[gpu: RM_CONTROL NV2080_…] nvidia0". 0 or -ENOMEM. */
int gpu_labels_find(struct gpu_labels *l, struct offcpu_probe *probe, struct waits *w,
		    int32_t number, uint32_t *ret_label);

#endif
