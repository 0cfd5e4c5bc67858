/* SPDX-License-Identifier: BSD-2-Clause */
/* Times and durations. All times are CLOCK_MONOTONIC nanoseconds unless a name says otherwise. */
#ifndef INSPECT_CLOCK_H
#define INSPECT_CLOCK_H

#include <inspect/base.h>

uint64_t clock_now_ns(void);      /* CLOCK_MONOTONIC */
uint64_t clock_realtime_ns(void); /* CLOCK_REALTIME */
uint64_t clock_boottime_ns(void); /* CLOCK_BOOTTIME */
uint64_t clock_own_cpu_ns(void);  /* CPU time of this process so far */

/* `10`, `10s`, `.5s`, `1m30s`, `500ms`, `2h`, `100us`; a bare number counts `bare_unit_ns`
 * each. 0 or -EINVAL (also on 0, negative, overflow). */
int duration_parse(const char *text, uint64_t bare_unit_ns, uint64_t *ret_ns);

/* "1.23 s", "45.6 ms", "780 µs", "12 ns" into buf (at least 32 bytes); returns buf. */
const char *duration_format(uint64_t ns, char *buf, size_t size);

/* "1.2 MiB" and the like, the same way. */
const char *bytes_format(uint64_t bytes, char *buf, size_t size);

#endif
