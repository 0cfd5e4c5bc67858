/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: nvml.h of the NVIDIA GPU deployment kit; its numbers and structs are its ABI. */
#include "nvml.h"

#include <dlfcn.h>
#include <limits.h>

enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_NOT_SUPPORTED = 3,
	GPUS_MAX = 64,
	LINKS_MAX = 36,
	INSTANCES_MAX = 16,
	PROCESSES_MAX = 1024,
	XIDS_A_READING = 64,
	PCIE_TX = 0,
	PCIE_RX = 1,
	ERROR_UNCORRECTED = 1,
	COUNTER_VOLATILE = 0,
	TEMPERATURE_GPU = 0,
	EVENT_XID = 8,
	NVLINK_REPLAY = 0,
	NVLINK_RECOVERY = 1,
	FIELD_NVLINK_SPEED_COMMON = 90,
	FIELD_NVLINK_DATA_TX = 138,
	FIELD_NVLINK_DATA_RX = 139,
	FIELD_NVLINK_SPEED = 164,
};

typedef struct nvmlDevice_st *device_t;
typedef struct nvmlEventSet_st *event_set_t;

struct utilization {
	unsigned gpu, memory;
};
struct memory {
	unsigned long long total, free, used;
};
struct process_info {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};
struct event_data {
	device_t device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};
struct field_value {
	unsigned field, scope;
	long long timestamp, latency_us;
	unsigned type;
	int result;
	union {
		double d;
		int i;
		unsigned u;
		unsigned long ul;
		unsigned long long ull;
		unsigned short us;
	} v;
};

/* All return NVML_SUCCESS or an error. A member is NULL when the library has no such function. */
struct functions {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error)(int);
	int (*count)(unsigned *);
	int (*handle)(unsigned, device_t *);
	int (*name)(device_t, char *, unsigned);
	int (*utilization)(device_t, struct utilization *);
	int (*memory)(device_t, struct memory *);
	int (*power)(device_t, unsigned *);
	int (*power_limit)(device_t, unsigned *);
	int (*temperature)(device_t, int, unsigned *);
	int (*reasons)(device_t, unsigned long long *);
	int (*ecc)(device_t, int, int, unsigned long long *);
	int (*remapped)(device_t, unsigned *, unsigned *, unsigned *, unsigned *);
	int (*pcie)(device_t, int, unsigned *);
	int (*generation)(device_t, unsigned *);
	int (*width)(device_t, unsigned *);
	int (*generation_max)(device_t, unsigned *);
	int (*width_max)(device_t, unsigned *);
	int (*replays)(device_t, unsigned *);
	int (*link_state)(device_t, unsigned, unsigned *);
	int (*link_errors)(device_t, unsigned, int, unsigned long long *);
	int (*fields)(device_t, int, struct field_value *);
	int (*mig_mode)(device_t, unsigned *, unsigned *);
	int (*instances)(device_t, unsigned *);
	int (*instance)(device_t, unsigned, device_t *);
	int (*processes)(device_t, unsigned *, struct process_info *);
	int (*events_new)(event_set_t *);
	int (*events_free)(event_set_t);
	int (*events_add)(device_t, unsigned long long, event_set_t);
	int (*events_wait)(event_set_t, struct event_data *, unsigned);
};

#define AT(member) offsetof(struct functions, member)
static const struct {
	size_t offset;
	const char *name, *older; /* tried in this order */
	bool needed;
} names[] = {
	{AT(init), "nvmlInit_v2", "nvmlInit", true},
	{AT(shutdown), "nvmlShutdown", NULL, true},
	{AT(error), "nvmlErrorString", NULL, true},
	{AT(count), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", true},
	{AT(handle), "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", true},
	{AT(name), "nvmlDeviceGetName", NULL, true},
	{AT(utilization), "nvmlDeviceGetUtilizationRates", NULL, false},
	{AT(memory), "nvmlDeviceGetMemoryInfo", NULL, false},
	{AT(power), "nvmlDeviceGetPowerUsage", NULL, false},
	{AT(power_limit), "nvmlDeviceGetEnforcedPowerLimit", NULL, false},
	{AT(temperature), "nvmlDeviceGetTemperature", NULL, false},
	{AT(reasons), "nvmlDeviceGetCurrentClocksEventReasons",
	 "nvmlDeviceGetCurrentClocksThrottleReasons", false},
	{AT(ecc), "nvmlDeviceGetTotalEccErrors", NULL, false},
	{AT(remapped), "nvmlDeviceGetRemappedRows", NULL, false},
	{AT(pcie), "nvmlDeviceGetPcieThroughput", NULL, false},
	{AT(generation), "nvmlDeviceGetCurrPcieLinkGeneration", NULL, false},
	{AT(width), "nvmlDeviceGetCurrPcieLinkWidth", NULL, false},
	{AT(generation_max), "nvmlDeviceGetMaxPcieLinkGeneration", NULL, false},
	{AT(width_max), "nvmlDeviceGetMaxPcieLinkWidth", NULL, false},
	{AT(replays), "nvmlDeviceGetPcieReplayCounter", NULL, false},
	{AT(link_state), "nvmlDeviceGetNvLinkState", NULL, false},
	{AT(link_errors), "nvmlDeviceGetNvLinkErrorCounter", NULL, false},
	{AT(fields), "nvmlDeviceGetFieldValues", NULL, false},
	{AT(mig_mode), "nvmlDeviceGetMigMode", NULL, false},
	{AT(instances), "nvmlDeviceGetMaxMigDeviceCount", NULL, false},
	{AT(instance), "nvmlDeviceGetMigDeviceHandleByIndex", NULL, false},
	/* Older versions have another struct. */
	{AT(processes), "nvmlDeviceGetComputeRunningProcesses_v3", NULL, false},
	{AT(events_new), "nvmlEventSetCreate", NULL, false},
	{AT(events_free), "nvmlEventSetFree", NULL, false},
	{AT(events_add), "nvmlDeviceRegisterEvents", NULL, false},
	{AT(events_wait), "nvmlEventSetWait_v2", NULL, false},
};
#undef AT

struct nvml {
	struct functions f;
	device_t devices[GPUS_MAX];
	unsigned n_devices;
	event_set_t events;
	double xids[GPUS_MAX]; /* seen; NAN: not told */
	double pcie_bytes[GPUS_MAX];
};

static bool load(struct functions *f)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	for (size_t i = 0; library && i < ARRAY_SIZE(names); i++) {
		void *function = dlsym(library, names[i].name);

		if (!function && names[i].older)
			function = dlsym(library, names[i].older);
		if (!function && names[i].needed)
			return false;
		memcpy((char *)f + names[i].offset, &function, sizeof(function));
	}
	return library != NULL;
}

static void watch_events(struct nvml *n)
{
	bool can = n->f.events_new && n->f.events_free && n->f.events_add && n->f.events_wait &&
		   n->f.events_new(&n->events) == NVML_SUCCESS;

	for (unsigned i = 0; i < n->n_devices; i++)
		n->xids[i] =
			can && n->f.events_add(n->devices[i], EVENT_XID, n->events) == NVML_SUCCESS
				? 0
				: NAN;
	if (!can)
		n->events = NULL;
}

struct nvml *nvml_open(const char **ret_reason)
{
	struct nvml *n = calloc(1, sizeof(*n));
	unsigned count = 0;
	int err;

	*ret_reason = "no NVIDIA driver (no libnvidia-ml.so.1)";
	if (!n || !load(&n->f)) {
		free(n);
		return NULL;
	}
	err = n->f.init();
	if (err == NVML_SUCCESS)
		err = n->f.count(&count);
	for (unsigned i = 0; !err && i < MIN(count, (unsigned)GPUS_MAX); i++)
		if (n->f.handle(i, &n->devices[n->n_devices]) == NVML_SUCCESS)
			n->n_devices++;
	if (err || !n->n_devices) {
		const char *text = err ? n->f.error(err) : NULL;

		*ret_reason = text ? text : "NVML has no GPU for this user";
		free(n);
		return NULL;
	}
	watch_events(n);
	for (unsigned i = 0; i < GPUS_MAX; i++)
		n->pcie_bytes[i] = NAN;
	*ret_reason = NULL;
	return n;
}

void nvml_close(struct nvml *n)
{
	if (!n)
		return;
	if (n->events)
		n->f.events_free(n->events);
	n->f.shutdown();
	free(n);
}

struct gpu_reading *gpu_reading_new(void)
{
	return calloc(1, sizeof(struct gpu_reading));
}

void gpu_reading_free(struct gpu_reading *g)
{
	if (!g)
		return;
	array_release(&g->v);
	free(g);
}

/* --- one GPU ---------------------------------------------------------------------------------- */

/* Of functions that give one unsigned; NAN where there is none. */
static double number(int (*f)(device_t, unsigned *), device_t d)
{
	unsigned v;

	return f && f(d, &v) == NVML_SUCCESS ? v : NAN;
}

static void read_busy(const struct nvml *n, device_t d, struct gpu *g)
{
	struct utilization u = {0};
	int err = n->f.utilization ? n->f.utilization(d, &u) : NVML_ERROR_NOT_SUPPORTED;
	const char *text;

	if (err == NVML_SUCCESS) {
		g->busy_percent = u.gpu;
		return;
	}
	text = n->f.error(err);
	if (g->mig || g->instance >= 0)
		text = "MIG: NVML has no utilisation of instances";
	snprintf(g->no_busy, sizeof(g->no_busy), "%s", text ? text : "not supported");
}

static void read_memory(const struct nvml *n, device_t d, struct gpu *g)
{
	struct memory m;

	if (!n->f.memory || n->f.memory(d, &m) != NVML_SUCCESS)
		return;
	g->memory_used = (double)m.used;
	g->memory_total = (double)m.total;
}

static void read_health(const struct nvml *n, device_t d, struct gpu *g)
{
	unsigned corrected, uncorrected, pending, failed, celsius;
	unsigned long long v;

	g->power_mw = number(n->f.power, d);
	g->power_limit_mw = number(n->f.power_limit, d);
	if (n->f.temperature && n->f.temperature(d, TEMPERATURE_GPU, &celsius) == NVML_SUCCESS)
		g->celsius = celsius;
	if (n->f.reasons && n->f.reasons(d, &v) == NVML_SUCCESS)
		g->clock_reasons = (double)v;
	if (n->f.ecc && n->f.ecc(d, ERROR_UNCORRECTED, COUNTER_VOLATILE, &v) == NVML_SUCCESS)
		g->ecc = (double)v;
	if (n->f.remapped &&
	    n->f.remapped(d, &corrected, &uncorrected, &pending, &failed) == NVML_SUCCESS)
		g->remapped = (double)uncorrected + (pending ? 1 : 0) + (failed ? 1 : 0);
}

/* Bytes a second and lane by generation, without the coding (PCI-SIG). */
static double link_bytes(double generation, double width)
{
	static const double lane[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};

	if (isnan(generation) || isnan(width) || generation >= ARRAY_SIZE(lane))
		return NAN;
	return lane[(size_t)generation] * width;
}

void gpu_read_links(struct nvml *n)
{
	for (unsigned i = 0; i < n->n_devices && n->f.pcie; i++) {
		unsigned tx, rx;

		n->pcie_bytes[i] = NAN;
		if (n->f.pcie(n->devices[i], PCIE_TX, &tx) == NVML_SUCCESS &&
		    n->f.pcie(n->devices[i], PCIE_RX, &rx) == NVML_SUCCESS)
			n->pcie_bytes[i] = 1e3 * MAX(tx, rx);
	}
}

static void read_pcie(const struct nvml *n, unsigned index, struct gpu *g)
{
	device_t d = n->devices[index];

	g->link_bytes = link_bytes(number(n->f.generation, d), number(n->f.width, d));
	g->link_max_bytes = link_bytes(number(n->f.generation_max, d), number(n->f.width_max, d));
	g->replays = number(n->f.replays, d);
	g->pcie_bytes = n->pcie_bytes[index];
}

static double field_number(const struct field_value *v)
{
	if (v->result != NVML_SUCCESS)
		return NAN;
	switch (v->type) {
	case 0:
		return v->v.d;
	case 1:
		return v->v.u;
	case 2:
		return (double)v->v.ul;
	default:
		return (double)v->v.ull;
	}
}

static double field(const struct nvml *n, device_t d, unsigned id, unsigned scope)
{
	struct field_value v = {.field = id, .scope = scope, .result = NVML_ERROR_NOT_SUPPORTED};

	if (!n->f.fields || n->f.fields(d, 1, &v) != NVML_SUCCESS)
		return NAN;
	return field_number(&v);
}

static void read_nvlink(const struct nvml *n, device_t d, struct gpu *g)
{
	double links = 0, down = 0, errors = 0, speed = 0;

	for (unsigned i = 0; n->f.link_state && i < LINKS_MAX; i++) {
		unsigned active;
		unsigned long long replay = 0, recovery = 0;
		double mbytes;

		if (n->f.link_state(d, i, &active) != NVML_SUCCESS)
			break;
		links++;
		if (!active) {
			down++;
			continue;
		}
		mbytes = field(n, d, FIELD_NVLINK_SPEED, i);
		if (isnan(mbytes))
			mbytes = field(n, d, FIELD_NVLINK_SPEED_COMMON, 0);
		speed += mbytes * 1e6;
		if (n->f.link_errors &&
		    n->f.link_errors(d, i, NVLINK_REPLAY, &replay) == NVML_SUCCESS &&
		    n->f.link_errors(d, i, NVLINK_RECOVERY, &recovery) == NVML_SUCCESS)
			errors += (double)(replay + recovery);
	}
	if (links == 0 || links == down)
		return; /* none is connected: no cable, or no such hardware */
	g->nvlinks = links;
	g->nvlinks_down = down;
	g->nvlink_errors = errors;
	g->nvlink_bytes_max = speed;
	g->nvlink_kib = fmax(field(n, d, FIELD_NVLINK_DATA_TX, UINT_MAX),
			     field(n, d, FIELD_NVLINK_DATA_RX, UINT_MAX));
}

static void read_processes(const struct nvml *n, device_t d, const pid_t *pids, size_t n_pids,
			   struct gpu *g)
{
	struct process_info *all = calloc(PROCESSES_MAX, sizeof(*all));
	unsigned count = PROCESSES_MAX;

	if (all && n->f.processes && n->f.processes(d, &count, all) == NVML_SUCCESS)
		for (unsigned i = 0; i < MIN(count, (unsigned)PROCESSES_MAX); i++)
			for (size_t k = 0; k < n_pids; k++) {
				if (all[i].pid != (unsigned)pids[k])
					continue;
				if (isnan(g->process_bytes))
					g->process_bytes = 0;
				/* ULLONG_MAX: not available */
				if (all[i].used_bytes != ULLONG_MAX)
					g->process_bytes += (double)all[i].used_bytes;
			}
	free(all);
}

static void unknown(struct gpu *g, unsigned index, int instance)
{
	*g = (struct gpu){.index = index, .instance = instance};
	for (double *v = &g->busy_percent; v < &g->memory_total + 1; v++)
		*v = NAN;
	for (double *v = &g->power_mw; v < &g->process_bytes + 1; v++)
		*v = NAN;
}

static void read_instances(struct nvml *n, unsigned index, const pid_t *pids, size_t n_pids,
			   struct gpu_reading *ret)
{
	unsigned count = 0;

	if (!n->f.instances || !n->f.instance ||
	    n->f.instances(n->devices[index], &count) != NVML_SUCCESS)
		return;
	for (unsigned i = 0; i < MIN(count, (unsigned)INSTANCES_MAX); i++) {
		struct gpu g;
		device_t d;

		if (n->f.instance(n->devices[index], i, &d) != NVML_SUCCESS)
			continue;
		unknown(&g, index, (int)i);
		n->f.name(d, g.name, sizeof(g.name));
		read_busy(n, d, &g);
		read_memory(n, d, &g);
		read_processes(n, d, pids, n_pids, &g);
		if (array_push(&ret->v, g))
			return;
	}
}

static void read_gpu(struct nvml *n, unsigned index, const pid_t *pids, size_t n_pids,
		     struct gpu_reading *ret)
{
	device_t d = n->devices[index];
	unsigned current = 0, pending;
	struct gpu g;

	unknown(&g, index, -1);
	n->f.name(d, g.name, sizeof(g.name));
	g.name[sizeof(g.name) - 1] = '\0';
	g.mig = n->f.mig_mode && n->f.mig_mode(d, &current, &pending) == NVML_SUCCESS && current;
	read_busy(n, d, &g);
	read_memory(n, d, &g);
	read_health(n, d, &g);
	read_pcie(n, index, &g);
	read_nvlink(n, d, &g);
	read_processes(n, d, pids, n_pids, &g);
	g.xids = n->xids[index];
	if (array_push(&ret->v, g))
		return;
	if (g.mig)
		read_instances(n, index, pids, n_pids, ret);
}

static void take_events(struct nvml *n)
{
	struct event_data e;

	for (unsigned i = 0; n->events && i < XIDS_A_READING; i++) {
		if (n->f.events_wait(n->events, &e, 0) != NVML_SUCCESS)
			return;
		for (unsigned k = 0; k < n->n_devices; k++)
			if (n->devices[k] == e.device && e.type == EVENT_XID)
				n->xids[k]++;
	}
}

void gpu_read(struct nvml *n, const pid_t *pids, size_t n_pids, struct gpu_reading *ret)
{
	ret->v.n = 0;
	take_events(n);
	for (unsigned i = 0; i < n->n_devices; i++)
		read_gpu(n, i, pids, n_pids, ret);
}
