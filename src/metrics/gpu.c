/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of NVIDIA GPUs: compute, memory, links, power. */
#include "nvml.h"

enum {
	REASON_POWER_CAP = 0x4,
	REASON_HARDWARE = 0x8 | 0x40 | 0x80, /* slowdown, thermal, power brake */
	REASON_THERMAL = 0x20,
	BUSY_PERCENT = 20, /* an idle GPU lowers its clocks and its link by itself */
};

static const char *name_of(struct use_report *r, const struct gpu *g)
{
	if (g->instance >= 0)
		return report_text(r, "%u MIG %d", g->index, g->instance);
	return report_text(r, "%u", g->index);
}

/* With a target, GPUs that it does not use are for --all. */
static struct use_row *add(const struct interval *i, const struct gpu *g, const char *resource,
			   struct use_report *r)
{
	struct use_row *row = row_add(r, "gpu", resource, name_of(r, g));
	bool used = false;

	for (size_t k = 0; k < i->now->gpu->v.n; k++)
		used |= !isnan(i->now->gpu->v.v[k].process_bytes);
	if (row)
		row->foreign = row->detail = i->config->n_pids && used && isnan(g->process_bytes);
	return row;
}

static bool has_reason(const struct gpu *g, unsigned bits)
{
	return !isnan(g->clock_reasons) && ((unsigned long long)g->clock_reasons & bits);
}

static void busy_row(const struct interval *i, const struct gpu *now, const struct gpu *before,
		     struct use_report *r)
{
	struct use_row *row = add(i, now, "GPU", r);

	row_put_or(r, row, "gpu_busy_percent", now->busy_percent,
		   report_text(r, "%s", now->no_busy));
	if (now->instance >= 0)
		return;
	row_put_or(r, row, "gpu_throttled",
		   isnan(now->clock_reasons) ? NAN : has_reason(now, REASON_HARDWARE),
		   "not told by this GPU");
	row_put_or(r, row, "gpu_thermal",
		   isnan(now->clock_reasons) ? NAN : has_reason(now, REASON_THERMAL),
		   "not told by this GPU");
	row_put_or(r, row, "gpu_xid_errors", rate_of(now->xids, before->xids, 1),
		   "XID events are not told to this user");
}

static void memory_row(const struct interval *i, const struct gpu *now, struct use_report *r)
{
	struct use_row *row = add(i, now, "GPU memory", r);
	double used = percent_of(now->memory_used, now->memory_total);
	struct use_value *v = row_put_or(r, row, "gpu_memory_percent", used, "not told by NVML");

	if (v && !isnan(used))
		v->text =
			report_text(r, "%.0f %% of %.0f GiB", used, now->memory_total / (1 << 30));
	if (!isnan(now->process_bytes)) {
		v = row_put(r, row, "gpu_process_bytes", now->process_bytes);
		if (v)
			v->text =
				report_text(r, "%.1f GiB its own", now->process_bytes / (1 << 30));
	}
	if (now->instance >= 0)
		return;
	row_put_or(r, row, "gpu_ecc_uncorrected", now->ecc, "no ECC, or switched off");
	if (!isnan(now->remapped))
		row_put(r, row, "gpu_remapped_rows", now->remapped);
}

static void pcie_row(const struct interval *i, const struct gpu *now, const struct gpu *before,
		     struct use_report *r)
{
	struct use_row *row = add(i, now, "GPU PCIe", r);
	bool reduced = now->link_bytes < now->link_max_bytes;
	struct use_value *v;

	row_put_or(r, row, "pcie_percent", percent_of(now->pcie_bytes, now->link_max_bytes),
		   "not told by NVML");
	v = row_put_or(r, row, "pcie_link_reduced",
		       isnan(now->link_bytes) || isnan(now->link_max_bytes) ? NAN : reduced,
		       "not told by NVML");
	if (v && reduced) {
		v->text = report_text(r, "%.0f %% of its link",
				      percent_of(now->link_bytes, now->link_max_bytes));
		if (!(now->busy_percent > BUSY_PERCENT)) {
			v->not_judged = "the GPU was idle: it lowers its link by itself";
			v->text = "";
		}
	}
	row_put_or(r, row, "pcie_replays_per_second",
		   rate_of(now->replays, before->replays, i->seconds), "not told by NVML");
}

static void nvlink_row(const struct interval *i, const struct gpu *now, const struct gpu *before,
		       struct use_report *r)
{
	struct use_row *row;

	if (isnan(now->nvlinks))
		return;
	row = add(i, now, "GPU NVLink", r);
	row_put_or(r, row, "nvlink_percent",
		   percent_of(1024 * rate_of(now->nvlink_kib, before->nvlink_kib, i->seconds),
			      now->nvlink_bytes_max),
		   "throughput is not told by this GPU");
	row_put(r, row, "nvlinks_down", now->nvlinks_down);
	row_put(r, row, "nvlink_errors_per_second",
		rate_of(now->nvlink_errors, before->nvlink_errors, i->seconds));
}

static void power_row(const struct interval *i, const struct gpu *now, struct use_report *r)
{
	struct use_row *row = add(i, now, "GPU power", r);
	double used = percent_of(now->power_mw, now->power_limit_mw);
	struct use_value *v = row_put_or(r, row, "gpu_power_percent", used, "not told by NVML");

	if (v && !isnan(used))
		v->text = report_text(r, "%.0f of %.0f W", now->power_mw / 1e3,
				      now->power_limit_mw / 1e3);
	row_put_or(r, row, "gpu_power_capped",
		   isnan(now->clock_reasons) ? NAN : has_reason(now, REASON_POWER_CAP),
		   "not told by this GPU");
	if (!isnan(now->celsius))
		row_put(r, row, "gpu_celsius", now->celsius);
}

static const struct gpu *find_gpu(const struct gpu_reading *g, const struct gpu *like)
{
	for (size_t i = 0; i < g->v.n; i++)
		if (g->v.v[i].index == like->index && g->v.v[i].instance == like->instance)
			return &g->v.v[i];
	return like;
}

void gpu_rows(const struct interval *i, struct use_report *r)
{
	struct use_row *row;

	if (!i->nvml) {
		row = row_add(r, "gpu", "GPU", "");
		row_lacks(r, row, "gpu_busy_percent", i->no_gpu);
		return;
	}
	for (size_t k = 0; k < i->now->gpu->v.n; k++) {
		const struct gpu *now = &i->now->gpu->v.v[k];
		const struct gpu *before = find_gpu(i->before->gpu, now);

		busy_row(i, now, before, r);
		memory_row(i, now, r);
		if (now->instance >= 0)
			continue;
		pcie_row(i, now, before, r);
		nvlink_row(i, now, before, r);
		power_row(i, now, r);
	}
	if (i->config->n_pids && i->config->in_pid_namespace)
		report_note(r,
			    "NVML tells pids of the host, and this is a pid namespace: which GPU "
			    "the target uses is not known");
}
