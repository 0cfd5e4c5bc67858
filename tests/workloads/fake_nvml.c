/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -shared -fPIC */
/*
 * A libnvidia-ml.so.1 that says what the file $FAKE_NVML says: lines "GPU.KEY VALUE" or, for what
 * counts, "GPU.KEY FIRST/STEP", a step more with each call. What is not there is not supported.
 * "init" and "GPU.KEY" may hold "error N". An instance of MIG is GPU "0m1".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, TIMEOUT = 10, GPUS_MAX = 8 };

struct device {
	char name[16];
};
static struct device devices[GPUS_MAX], instances[GPUS_MAX][4];

/* Each key counts its calls. */
static struct {
	char key[64];
	unsigned n;
} calls[256];

static unsigned count_call(const char *key)
{
	int i = 0;

	for (; i < 255 && calls[i].key[0]; i++)
		if (!strcmp(calls[i].key, key))
			return calls[i].n++;
	snprintf(calls[i].key, sizeof(calls[i].key), "%s", key);
	calls[i].n = 1;
	return 0;
}

/* The text behind the key's line, or NULL. */
static const char *find(const char *key, char *line, int size)
{
	const char *path = getenv("FAKE_NVML");
	FILE *file = path ? fopen(path, "r") : NULL;
	size_t n = strlen(key);

	while (file && fgets(line, size, file))
		if (!strncmp(line, key, n) && line[n] == ' ') {
			fclose(file);
			line[strcspn(line, "\n")] = '\0';
			return line + n + 1;
		}
	if (file)
		fclose(file);
	return NULL;
}

static int number(const struct device *d, const char *name, double *ret)
{
	char key[64], line[256];
	const char *text;
	double first, step = 0;
	int err;

	snprintf(key, sizeof(key), "%s%s%s", d ? d->name : "", d ? "." : "", name);
	text = find(key, line, sizeof(line));
	if (!text)
		return NOT_SUPPORTED;
	if (sscanf(text, "error %d", &err) == 1)
		return err;
	if (sscanf(text, "%lf/%lf", &first, &step) < 1)
		return NOT_SUPPORTED;
	*ret = first + step * count_call(key);
	return SUCCESS;
}

#define NUMBER(function, type, key)                                                                \
	int function(struct device *d, type *ret);                                                 \
	int function(struct device *d, type *ret)                                                  \
	{                                                                                          \
		double v;                                                                          \
		int err = number(d, key, &v);                                                      \
                                                                                                   \
		if (!err)                                                                          \
			*ret = (type)v;                                                            \
		return err;                                                                        \
	}

NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power_mw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit_mw")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "reasons")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "generation")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "width")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "generation_max")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "width_max")
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "replays")
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, "instances")

#define FUNCTION(name, ...)                                                                        \
	int name(__VA_ARGS__);                                                                     \
	int name(__VA_ARGS__)

FUNCTION(nvmlInit_v2, void)
{
	double v;
	int err = number(NULL, "init", &v);

	return err == NOT_SUPPORTED ? SUCCESS : err;
}

FUNCTION(nvmlShutdown, void)
{
	return SUCCESS;
}

const char *nvmlErrorString(int err);
const char *nvmlErrorString(int err)
{
	return err == 9 ? "Driver Not Loaded" : err == NOT_SUPPORTED ? "Not Supported" : "Unknown";
}

FUNCTION(nvmlDeviceGetCount_v2, unsigned *ret)
{
	double v;
	int err = number(NULL, "count", &v);

	if (!err)
		*ret = (unsigned)v;
	return err;
}

FUNCTION(nvmlDeviceGetHandleByIndex_v2, unsigned i, struct device **ret)
{
	if (i >= GPUS_MAX)
		return INVALID;
	snprintf(devices[i].name, sizeof(devices[i].name), "%u", i);
	*ret = &devices[i];
	return SUCCESS;
}

FUNCTION(nvmlDeviceGetMigDeviceHandleByIndex, struct device *d, unsigned i, struct device **ret)
{
	int gpu = (int)(d - devices);

	if (i >= 4)
		return INVALID;
	snprintf(instances[gpu][i].name, sizeof(instances[gpu][i].name), "%dm%u", gpu, i);
	*ret = &instances[gpu][i];
	return SUCCESS;
}

FUNCTION(nvmlDeviceGetName, struct device *d, char *name, unsigned size)
{
	snprintf(name, size, "Fake %s", d->name);
	return SUCCESS;
}

FUNCTION(nvmlDeviceGetUtilizationRates, struct device *d, unsigned ret[2])
{
	double v;
	int err = number(d, "busy", &v);

	ret[0] = ret[1] = err ? 0 : (unsigned)v;
	return err;
}

/* In GiB, as {total, free, used} bytes. */
FUNCTION(nvmlDeviceGetMemoryInfo, struct device *d, unsigned long long ret[3])
{
	double used, total;

	if (number(d, "memory_gib", &total) || number(d, "used_gib", &used))
		return NOT_SUPPORTED;
	ret[0] = (unsigned long long)(total * (1 << 30));
	ret[2] = (unsigned long long)(used * (1 << 30));
	ret[1] = ret[0] - ret[2];
	return SUCCESS;
}

FUNCTION(nvmlDeviceGetTemperature, struct device *d, int sensor, unsigned *ret)
{
	double v;
	int err = sensor ? INVALID : number(d, "celsius", &v);

	if (!err)
		*ret = (unsigned)v;
	return err;
}

FUNCTION(nvmlDeviceGetTotalEccErrors, struct device *d, int type, int counter,
	 unsigned long long *ret)
{
	double v;
	int err = type == 1 && counter == 0 ? number(d, "ecc", &v) : INVALID;

	if (!err)
		*ret = (unsigned long long)v;
	return err;
}

FUNCTION(nvmlDeviceGetRemappedRows, struct device *d, unsigned *corrected, unsigned *uncorrected,
	 unsigned *pending, unsigned *failed)
{
	double v;
	int err = number(d, "remapped", &v);

	*corrected = 1;
	*uncorrected = err ? 0 : (unsigned)v;
	*pending = *failed = 0;
	return err;
}

FUNCTION(nvmlDeviceGetPcieThroughput, struct device *d, int counter, unsigned *ret)
{
	double v, ms = 0;
	int err = number(d, counter ? "pcie_rx_kb" : "pcie_tx_kb", &v);

	if (!number(d, "pcie_ms", &ms))
		usleep((useconds_t)(ms * 1e3)); /* it measures while it is asked */
	if (!err)
		*ret = (unsigned)v;
	return err;
}

FUNCTION(nvmlDeviceGetNvLinkState, struct device *d, unsigned link, unsigned *ret)
{
	double links, down = 0;

	if (number(d, "links", &links) || link >= links)
		return INVALID;
	number(d, "links_down", &down);
	*ret = link >= down;
	return SUCCESS;
}

FUNCTION(nvmlDeviceGetNvLinkErrorCounter, struct device *d, unsigned link, int counter,
	 unsigned long long *ret)
{
	double v = 0;

	if (link == 1 && counter == 0)
		number(d, "link_errors", &v);
	*ret = (unsigned long long)v;
	return SUCCESS;
}

struct field {
	unsigned id, scope;
	long long timestamp, latency_us;
	unsigned type;
	int result;
	unsigned long long v;
};

FUNCTION(nvmlDeviceGetFieldValues, struct device *d, int n, struct field *f)
{
	for (int i = 0; i < n; i++) {
		const char *key = f[i].id == 138   ? "nvlink_tx_kib"
				  : f[i].id == 139 ? "nvlink_rx_kib"
				  : f[i].id == 90  ? "link_mbytes"
						   : "none";
		double v = 0;

		f[i].type = 3;
		f[i].result = number(d, key, &v);
		f[i].v = (unsigned long long)v;
	}
	return SUCCESS;
}

FUNCTION(nvmlDeviceGetMigMode, struct device *d, unsigned *current, unsigned *pending)
{
	double v;
	int err = number(d, "mig", &v);

	*current = *pending = err ? 0 : (unsigned)v;
	return err;
}

struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

FUNCTION(nvmlDeviceGetComputeRunningProcesses_v3, struct device *d, unsigned *n, struct process *p)
{
	double pid, gib = 0;

	if (number(d, "process", &pid)) {
		*n = 0;
		return SUCCESS;
	}
	number(d, "process_gib", &gib);
	*n = 1;
	p[0] = (struct process){(unsigned)pid, (unsigned long long)(gib * (1 << 30)), 0, 0};
	return SUCCESS;
}

struct event {
	struct device *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};
static int event_set;

FUNCTION(nvmlEventSetCreate, int **ret)
{
	*ret = &event_set;
	return SUCCESS;
}

FUNCTION(nvmlEventSetFree, int *set)
{
	return set == &event_set ? SUCCESS : INVALID;
}

FUNCTION(nvmlDeviceRegisterEvents, struct device *d, unsigned long long types, int *set)
{
	return d && types == 8 && set == &event_set ? SUCCESS : INVALID;
}

/* "xid_at N GPU": event number N of all waits, so that the session has begun. */
FUNCTION(nvmlEventSetWait_v2, int *set, struct event *e, unsigned timeout_ms)
{
	char line[256];
	const char *text = find("xid_at", line, sizeof(line));
	unsigned at, gpu;

	if (set != &event_set || timeout_ms || !text || sscanf(text, "%u %u", &at, &gpu) != 2 ||
	    count_call("wait") != at)
		return TIMEOUT;
	*e = (struct event){&devices[gpu], 8, 79, 0, 0};
	return SUCCESS;
}
