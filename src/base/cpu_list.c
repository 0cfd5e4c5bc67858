/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/cpu_list.h>
#include <inspect/procfs.h>

#define CPUS_MAX 65536
#define CPU_LIST_BYTES_MAX 65536

int cpu_list_parse(const char *text, cpu_list *ret)
{
	const char *s = text;

	while (*s && *s != '\n') {
		char *end;
		unsigned long first = strtoul(s, &end, 10), last = first;

		if (end == s || *s == '-' || *s == '+' || *s == ' ')
			return -EINVAL;
		if (*end == '-') {
			s = end + 1;
			last = strtoul(s, &end, 10);
			if (end == s || *s == '-' || *s == '+' || *s == ' ')
				return -EINVAL;
		}
		if (last >= CPUS_MAX || first > last || (*end && *end != ',' && *end != '\n'))
			return -EINVAL;
		for (unsigned long cpu = first; cpu <= last; cpu++)
			if (ret->n >= CPUS_MAX || array_push(ret, (int)cpu) < 0)
				return -ENOMEM;
		s = end + (*end == ',');
	}
	return ret->n ? 0 : -EINVAL;
}

int cpu_list_online(cpu_list *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	int err = file_read("/sys/devices/system/cpu/online", CPU_LIST_BYTES_MAX, &text);
	long n;

	if (!err)
		return cpu_list_parse(strbuf_str(&text), ret);
	n = sysconf(_SC_NPROCESSORS_ONLN);
	for (long cpu = 0; cpu < MAX(n, 1); cpu++)
		if (array_push(ret, (int)cpu) < 0)
			return -ENOMEM;
	return 0;
}

bool cpu_list_has(const cpu_list *l, int cpu)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i] == cpu)
			return true;
	return false;
}

bool cpu_is_online(int cpu)
{
	CLEANUP(cpu_list_release) cpu_list online = {0};

	return cpu_list_online(&online) < 0 || cpu_list_has(&online, cpu);
}
