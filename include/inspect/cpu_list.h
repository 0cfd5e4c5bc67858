/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CPU_LIST_H
#define INSPECT_CPU_LIST_H

#include <inspect/array.h>

typedef ARRAY(int) cpu_list;

static inline void cpu_list_release(cpu_list *l)
{
	array_release(l);
}

/* The kernel's list format, "0-3,8" (lib/bitmap.c: bitmap_parselist). 0, -EINVAL, or -ENOMEM. */
int cpu_list_parse(const char *text, cpu_list *ret);

/* /sys/devices/system/cpu/online, or where there is no sysfs as many as sysconf says. */
int cpu_list_online(cpu_list *ret);

bool cpu_list_has(const cpu_list *l, int cpu);
bool cpu_is_online(int cpu); /* now; also true when it cannot be known */

#endif
