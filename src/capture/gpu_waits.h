/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done in libcuda below a call that waits for the GPU is no work, and no poll. */
#ifndef CAPTURE_GPU_WAITS_H
#define CAPTURE_GPU_WAITS_H

#include <inspect/profile.h>
#include <inspect/waits.h>

/* In a profile with names: CPU time below such a call (samples, and what runs in "wall") is one
 * frame "[gpu spin wait]" on it; blocked, "[waiting: poll]" becomes "[gpu: cuStreamSynchronize]",
 * also in the labels of waits (NULL: none). 0 or -ENOMEM. */
int gpu_waits_mark(struct profile *p, struct waits *waits);

#endif
