/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <stdint.h>
#include <sys/ioctl.h>

/* How all later calls are answered. */
struct fake_answer {
	uint64_t delay_ns;
	int32_t status_off; /* -1: none */
	uint32_t status;
	int32_t error;   /* errno */
	uint32_t serial; /* one call at a time, as with a driver's lock */
	uint32_t hold;   /* in place of the delay: until the file LOG.N is there; 0: none */
	int32_t open_error; /* of nodes but null0 */
	uint64_t ready_ns;  /* a device that is polled is ready after that; 0: never */
};

#define FAKE_SET _IOW('T', 1, struct fake_answer)

#endif
