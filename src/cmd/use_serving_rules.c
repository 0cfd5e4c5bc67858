/* SPDX-License-Identifier: BSD-2-Clause */
/* What rows of GPUs and inference engines mean, alone and together, and what to ask next. */
#include "use_rules.h"

static const char method[] = "B. Gregg, Systems Performance, 2nd ed., 2.5.9 (USE method)";
static const char serving[] = "a GPU that waits while requests wait is fed too slowly";
static const char vllm[] = "vLLM, Optimization and Tuning: Preemption";
static const char watch[] = "inspect use --watch{self}";
static const char feeder[] = "inspect record {thread} -d 10";
static const char driver_calls[] = "inspect trace --gpu -c {target}{gpu} -d 10";
static const char leaks[] = "inspect trace --gpu --leaks {target}{gpu} -d 10";
static const char gpu_xids[] = "dmesg | grep -i xid";
static const char gpu_rows[] = "nvidia-smi -q -d ECC,ROW_REMAPPER";
static const char gpu_heat[] = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER";
static const char gpu_link[] = "nvidia-smi -q | grep -A 12 'GPU Link Info'";
static const char nvlinks[] = "nvidia-smi nvlink -s; nvidia-smi nvlink -e";

static const struct finding_rule rules[] = {
	/* --- errors --- */
	{
		.name = "gpu-fault",
		.tests = {{"gpu_xid_errors", ABOVE, LIMIT, "%.0f XID errors"}},
		.means = "the GPU or its driver reported a fault",
		.next = gpu_xids,
		.source = "NVIDIA, XID Errors",
	},
	{
		.name = "gpu-memory-error",
		.tests = {{"gpu_ecc_uncorrected", ABOVE, LIMIT, "%.0f uncorrected errors"}},
		.means = "data in the GPU's memory was lost: what ran there ended, or is wrong",
		.next = gpu_rows,
		.source = "NVIDIA, GPU Memory Error Management",
	},
	{
		.name = "gpu-memory-error",
		.tests = {{"gpu_remapped_rows", ABOVE, LIMIT, "rows are remapped"}},
		.means = "the GPU's memory has faults that spare rows stand in for: reset it soon",
		.next = gpu_rows,
		.source = "NVIDIA, GPU Memory Error Management: row remapping",
	},
	{
		.name = "gpu-slowed-down",
		.tests = {{"gpu_throttled", ABOVE, LIMIT, "clocks lowered by hardware"}},
		.means = "heat or power supply: the same work takes longer, whatever the software",
		.next = gpu_heat,
		.source = "nvml.h, nvmlClocksEventReason*",
	},
	{
		.name = "requests-fail",
		.tests = {{"requests_failed_per_second", ABOVE, LIMIT, "%.2f a second"}},
		.means = "the engine rejects or aborts requests: its log says why",
		.next = watch,
		.source = "the engine's own counters of aborted and failed requests",
	},

	/* --- who waits for whom --- */
	{
		.name = "kv-cache-full",
		.tests = {{"kv_cache_percent", ABOVE, LIMIT, "KV cache %.0f %%"},
			  {"preemptions_per_second", ABOVE, LIMIT, "%.2f preemptions a second"}},
		.means = "requests are put out of the batch and computed again: fewer at once, "
			 "shorter contexts, or more memory",
		.next = watch,
		.source = vllm,
	},
	{
		.name = "kv-cache-full",
		.tests = {{"preemptions_per_second", ABOVE, LIMIT, "%.2f preemptions a second"}},
		.means = "requests are put out of the batch and computed again: the cache was full "
			 "for a time",
		.next = watch,
		.source = vllm,
	},
	{
		.name = "event-loop-bound",
		.tests = {{"thread_busy_percent", ABOVE, LIMIT, "one thread %.0f %% of a core"},
			  {"gpu_busy_percent", BELOW, 50, "GPU %.0f %% busy"},
			  {"requests_running", ABOVE, 0, NULL}},
		.means = "a single thread feeds the GPU and is full: the GPU waits for it",
		.next = feeder,
		.source = serving,
	},
	{
		.name = "event-loop-bound",
		.tests = {{"thread_busy_percent", ABOVE, LIMIT, "one thread %.0f %% of a core"},
			  {"gpu_busy_percent", BELOW, 50, "GPU %.0f %% busy"},
			  {"gpu_memory_percent", ABOVE, 10, NULL}},
		.means = "the GPU idles while one thread is full: it may be what feeds the GPU",
		.next = feeder,
		.source = serving,
	},
	{
		.name = "gpu-starved",
		.tests = {{"requests_waiting", ABOVE, 0, "%.0f requests wait"},
			  {"gpu_busy_percent", BELOW, 50, "GPU %.0f %% busy"}},
		.means = "requests wait and the GPU does too: what lies between is slow",
		.next = "inspect offcpu {target} -d 10",
		.source = serving,
	},
	{
		.name = "engine-overloaded",
		.tests = {{"waiting_per_running", ABOVE, LIMIT, "%.1f wait for each that runs"}},
		.means = "more requests come than the batch takes: latency is the queue's",
		.next = watch,
		.source = "Little's law: what waits longer than it runs is a queue",
	},
	{
		.name = "gpu-bound",
		.tests = {{"gpu_busy_percent", ABOVE, 90, "GPU %.0f %% busy"},
			  {"waiting_per_running", BELOW, LIMIT, "%.1f wait for each that runs"}},
		.means =
			"the GPU does the work and the queue is short: faster kernels or more GPUs",
		.next = driver_calls,
		.source = "nvml.h, nvmlUtilization_t: share of time with any kernel",
	},
	{
		.name = "kv-cache-full",
		.tests = {{"kv_cache_percent", ABOVE, LIMIT, "KV cache %.0f %%"}},
		.means = "soon requests wait for others to end, or are put out of the batch",
		.next = watch,
		.source = vllm,
	},

	/* --- GPUs --- */
	{
		.name = "gpu-memory",
		.tests = {{"gpu_no_memory", ABOVE, LIMIT, "%.0f calls refused"}},
		.means = "the GPU's driver had no memory to give",
		.next = leaks,
		.source = "nvstatuscodes.h, NV_ERR_NO_MEMORY (0x51)",
	},
	{
		.name = "gpu-driver-slow",
		.tests = {{"gpu_calls_p99_ms", ABOVE, LIMIT, "p99 %.1f ms"}},
		.means =
			"the GPU's driver answers slowly: its callers wait for it, not for the GPU",
		.next = driver_calls,
		.source = "while serving, kernels are launched without the driver",
	},
	{
		.name = "gpu-allocates",
		.tests = {{"gpu_allocs_per_second", ABOVE, LIMIT, "%.0f allocations a second"},
			  {"requests_running", ABOVE, 0, NULL}},
		.means = "memory is taken from the driver while requests are served: it stops the "
			 "GPU each time",
		.next = leaks,
		.source = "engines take their memory ahead",
	},
	{
		.name = "gpu-allocates",
		.tests = {{"gpu_allocs_per_second", ABOVE, LIMIT, "%.0f allocations a second"}},
		.means =
			"memory is taken from the driver again and again: harmless at a start, not "
			"while it serves",
		.next = leaks,
		.source = "engines take their memory ahead",
	},
	{
		.name = "gpu-memory",
		.tests = {{"gpu_memory_percent", ABOVE, LIMIT, "%.0f %% used"}},
		.means = "the next allocation may fail",
		.next = "nvidia-smi",
		.source = "nvml.h, nvmlMemory_t",
	},
	{
		.name = "gpu-memory",
		.tests = {{"card_memory_percent", ABOVE, LIMIT, "%.0f %% used"}},
		.means = "the next allocation may fail",
		.next = "grep . /sys/class/drm/{device}/device/mem_info_*_used",
		.source = "Documentation/gpu/amdgpu/driver-misc.rst, mem_info_vram_*",
	},
	{
		.name = "gpu-engine-full",
		.tests = {{"drm_busy_percent", ABOVE, LIMIT, "%.0f %% of an engine"}},
		.means = "an engine of the GPU works for it all the time: the GPU is the limit",
		.next = "inspect offcpu {target} -d 10",
		.source = "Documentation/gpu/drm-usage-stats.rst",
	},
	{
		.name = "gpu-warm",
		.tests = {{"gpu_thermal", ABOVE, LIMIT, "clocks lowered for heat"}},
		.means = "the driver keeps the GPU from its limit of temperature: cooling is short",
		.next = gpu_heat,
		.source = "nvml.h, nvmlClocksEventReasonSwThermalSlowdown",
	},
	{
		.name = "gpu-power-capped",
		.tests = {{"gpu_power_capped", ABOVE, LIMIT, "clocks lowered for power"}},
		.means = "the GPU is at its power limit: usual under full load, else it is low",
		.next = "nvidia-smi -q -d POWER,CLOCK",
		.source = "nvml.h, nvmlClocksEventReasonSwPowerCap",
	},
	{
		.name = "gpu-link",
		.tests = {{"pcie_percent", ABOVE, LIMIT, "PCIe %.0f %%"}},
		.means = "data is moved to and from the GPU more than it should",
		.next = driver_calls,
		.source = method,
	},
	{
		.name = "gpu-link-slow",
		.tests = {{"pcie_link_reduced", ABOVE, LIMIT, "below its generation or width"}},
		.means = "under load the link should be at its best: slot, riser, or a fault",
		.next = gpu_link,
		.source = "nvml.h, nvmlDeviceGetCurrPcieLinkWidth",
	},
	{
		.name = "gpu-link-slow",
		.tests = {{"pcie_replays_per_second", ABOVE, LIMIT, "%.1f replays a second"}},
		.means = "packets to and from the GPU are sent again: slot, riser, or cable",
		.next = gpu_link,
		.source = "nvml.h, nvmlDeviceGetPcieReplayCounter",
	},
	{
		.name = "nvlink",
		.tests = {{"nvlinks_down", ABOVE, LIMIT, "%.0f links down"}},
		.means = "GPUs talk over fewer links, or over PCIe: collectives are slower",
		.next = nvlinks,
		.source = "nvml.h, nvmlDeviceGetNvLinkState",
	},
	{
		.name = "nvlink",
		.tests = {{"nvlink_errors_per_second", ABOVE, LIMIT, "%.1f errors a second"}},
		.means = "data between GPUs is damaged and sent again",
		.next = nvlinks,
		.source = "nvml.h, nvmlDeviceGetNvLinkErrorCounter",
	},
	{
		.name = "nvlink",
		.tests = {{"nvlink_percent", ABOVE, LIMIT, "NVLink %.0f %%"}},
		.means = "exchange between GPUs is close to what the links carry",
		.next = nvlinks,
		.source = method,
	},
};
const struct use_rules use_serving_rules = {rules, ARRAY_SIZE(rules)};
