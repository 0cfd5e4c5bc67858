/* SPDX-License-Identifier: BSD-2-Clause */
/* CPU time of this thread and process, for workloads that print their own ground truth. */
#ifndef WORKLOAD_CPU_TIME_H
#define WORKLOAD_CPU_TIME_H

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

/* gcc gives a leaf function no frame, whatever -fno-omit-frame-pointer says, and its caller would
 * be missing in its stacks: in functions that burn this asks for one. */
#define KEEP_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* RUSAGE_SELF or RUSAGE_CHILDREN */
static inline uint64_t rusage_cpu_ns(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

#endif
