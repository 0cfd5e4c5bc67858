/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: proc(5), Documentation/admin-guide/pm/cpufreq.rst, Documentation/ABI/testing/
 * sysfs-devices-system-cpu. */
#include <fcntl.h>
#include <inspect/environment.h>
#include <inspect/procfs.h>
#include <inspect/strbuf.h>
#include <math.h>

#define CPU_DIR "/sys/devices/system/cpu"
#define CPUS_READ_MAX 4    /* reading a frequency may take the kernel milliseconds */
#define CPUINFO_BYTES 8192 /* the block of the first CPU */

static bool read_text(const char *root, const char *path, size_t max_bytes, struct strbuf *text)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return file_read(full, max_bytes, text) == 0;
}

static bool read_head(const char *root, const char *path, char *buf, size_t size)
{
	char full[512];
	CLEANUP(closep) int fd = -1;
	ssize_t n;

	snprintf(full, sizeof(full), "%s%s", root, path);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (n < 0)
		return false;
	buf[n] = '\0';
	return true;
}

/* The rest of the first line that begins with one of the names, behind its colon. */
static bool cpuinfo_field(const char *text, const char *name, char *ret, size_t size)
{
	const char *line = strstr(text, name), *value;
	size_t n;

	if (!line || (line != text && line[-1] != '\n'))
		return false;
	value = line + strlen(name);
	value += strspn(value, " \t");
	if (*value++ != ':')
		return false;
	value += strspn(value, " \t");
	n = strcspn(value, "\n");
	snprintf(ret, size, "%.*s", (int)n, value);
	return n > 0;
}

/* x86 and others name the model; ARM has numbers of the implementer and the part. */
static void read_cpu(struct environment *e, const char *root)
{
	static const char *const names[] = {"model name", "cpu model", "Processor", "cpu\t",
					    "uarch"};
	char text[CPUINFO_BYTES], implementer[32], part[32];

	if (!read_head(root, "/proc/cpuinfo", text, sizeof(text)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (cpuinfo_field(text, names[i], e->cpu, sizeof(e->cpu)))
			return;
	if (cpuinfo_field(text, "CPU implementer", implementer, sizeof(implementer)) &&
	    cpuinfo_field(text, "CPU part", part, sizeof(part)))
		snprintf(e->cpu, sizeof(e->cpu), "ARM %s part %s", implementer, part);
}

static void read_governor(struct environment *e, const char *root)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	if (read_text(root, CPU_DIR "/cpu0/cpufreq/scaling_governor", 64, &text))
		snprintf(e->governor, sizeof(e->governor), "%.*s",
			 (int)strcspn(strbuf_str(&text), "\n"), strbuf_str(&text));
}

static void read_smt(struct environment *e, const char *root)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	e->smt = -1;
	if (read_text(root, CPU_DIR "/smt/active", 16, &text))
		e->smt = strbuf_str(&text)[0] == '1';
}

static void read_load(struct environment *e, const char *root)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	e->load_1m = -1;
	if (read_text(root, "/proc/loadavg", 256, &text))
		e->load_1m = strtod(strbuf_str(&text), NULL);
}

static void read_steal(struct environment *e, const char *root)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	unsigned long long v[8] = {0}, total = 0;
	double tick_ns = 1e9 / (double)MAX(sysconf(_SC_CLK_TCK), 1L);

	if (!read_text(root, "/proc/stat", 8 << 20, &text))
		return;
	sscanf(strbuf_str(&text), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
	       &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		total += v[i];
	e->steal_ns = (double)v[7] * tick_ns;
	e->total_ns = (double)total * tick_ns;
}

static void read_frequency(struct environment *e, const char *root)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	double sum = 0;
	int n = 0;

	e->freq_khz = -1;
	for (int cpu = 0; cpu < CPUS_READ_MAX; cpu++) {
		char path[128];

		snprintf(path, sizeof(path), CPU_DIR "/cpu%d/cpufreq/scaling_cur_freq", cpu);
		if (!read_text(root, path, 64, &text))
			break;
		sum += strtod(strbuf_str(&text), NULL);
		n++;
	}
	if (n)
		e->freq_khz = sum / n;
}

void environment_read(struct environment *e, const char *root)
{
	*e = (struct environment){0};
	read_cpu(e, root);
	read_governor(e, root);
	read_smt(e, root);
	read_load(e, root);
	read_steal(e, root);
	read_frequency(e, root);
}

void environment_noise(const struct environment *start, const struct environment *end,
		       uint32_t cpus_online, struct noise *ret)
{
	double total = end->total_ns - start->total_ns;

	*ret = (struct noise){.load_per_cpu = -1};
	if (start->load_1m >= 0 && cpus_online)
		ret->load_per_cpu = start->load_1m / cpus_online;
	if (total > 0)
		ret->steal_percent = 100 * (end->steal_ns - start->steal_ns) / total;
	if (start->freq_khz > 0 && end->freq_khz > 0)
		ret->freq_percent = 100 * fabs(end->freq_khz - start->freq_khz) / start->freq_khz;
}
