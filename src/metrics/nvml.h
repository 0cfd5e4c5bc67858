/* SPDX-License-Identifier: BSD-2-Clause */
/* GPUs as NVIDIA's management library has them. It is loaded where it is installed. */
#ifndef INSPECT_METRICS_NVML_H
#define INSPECT_METRICS_NVML_H

#include "readings.h"

enum { GPU_REASON_SIZE = 96 };

struct gpu {
	unsigned index;
	int instance; /* of MIG; -1: the whole GPU */
	char name[96];
	bool mig;                                       /* it is divided */
	double busy_percent, memory_used, memory_total; /* bytes */
	char no_busy[GPU_REASON_SIZE];                  /* why busy is NAN */
	double power_mw, power_limit_mw, celsius;
	double clock_reasons; /* bits */
	double ecc, remapped;
	double pcie_bytes, link_bytes, link_max_bytes; /* a second */
	double replays;
	double nvlink_kib, nvlink_bytes_max; /* a counter of the busier direction; a second */
	double nvlinks, nvlinks_down, nvlink_errors;
	double xids;          /* seen since the session began */
	double process_bytes; /* of the target; NAN: it does not use this GPU */
};

struct gpu_reading {
	ARRAY(struct gpu) v;
};

#endif
