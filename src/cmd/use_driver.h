/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the GPUs' driver for `use`: a summary of what trace --gpu shows. */
#ifndef INSPECT_CMD_USE_DRIVER_H
#define INSPECT_CMD_USE_DRIVER_H

#include <inspect/capture.h>
#include <inspect/driver_calls.h>

struct use_driver;

/* device: a file, or all in a folder; NULL: NVIDIA's. Counting begins. NULL with the reason in
 * *ret_reason: nothing is counted. `why` holds it where it is not constant. 0, or -errno for a
 * device that cannot be had. */
int use_driver_open(const char *device, bool short_run, const struct target *t,
		    const struct host *h, struct use_driver **ret, struct strbuf *why,
		    struct diag *d);
void use_driver_close(struct use_driver *u);

/* A driver_calls_fn; ctx is the struct use_driver. */
int use_driver_read(void *ctx, struct driver_calls *ret);

#endif
