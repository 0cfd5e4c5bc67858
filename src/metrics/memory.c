/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory, swap, NUMA nodes. Sources: proc(5), Documentation/admin-guide/numastat.rst,
 * Documentation/admin-guide/ras.rst (EDAC). */
#include "readings.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/vfs.h>

enum { NODES_MAX = 1024, CONTROLLERS_MAX = 64, TEXT_MAX = 1 << 20, PAGES_JUDGED = 1000 };

static double kib(double v)
{
	return v * 1024;
}

static void read_meminfo(const char *root, struct memory_reading *m)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *s;

	root_read(root, &text, TEXT_MAX, "/proc/meminfo");
	s = strbuf_str(&text);
	m->total = kib(text_field(s, "MemTotal"));
	m->available = kib(text_field(s, "MemAvailable"));
	m->swap_total = kib(text_field(s, "SwapTotal"));
	m->swap_free = kib(text_field(s, "SwapFree"));
	m->shmem = kib(text_field(s, "Shmem"));
}

/* Kernels name several counters of one thing: allocstall by zone, workingset_refault by kind. */
static double sum_of(const char *text, const char *prefix)
{
	double sum = NAN;

	for (const char *line = text; line && *line;) {
		if (str_starts(line, prefix)) {
			double v = line_number(line, 1);

			sum = (isnan(sum) ? 0 : sum) + (isnan(v) ? 0 : v);
		}
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return sum;
}

static void read_vmstat(const char *root, struct memory_reading *m)
{
	static const char *const prefixes[VM_COUNTERS] = {
		[VM_SWAP_IN] = "pswpin ",
		[VM_SWAP_OUT] = "pswpout ",
		[VM_REFAULT] = "workingset_refault",
		[VM_STALL] = "allocstall",
		[VM_SCAN_KSWAPD] = "pgscan_kswapd",
		[VM_SCAN_DIRECT] = "pgscan_direct",
		[VM_OOM] = "oom_kill ",
	};
	CLEANUP(strbuf_release) struct strbuf text = {0};

	root_read(root, &text, TEXT_MAX, "/proc/vmstat");
	for (size_t i = 0; i < VM_COUNTERS; i++)
		m->vm[i] = sum_of(strbuf_str(&text), prefixes[i]);
}

static void read_edac(const char *root, struct memory_reading *m)
{
	m->corrected = m->uncorrected = NAN;
	for (int i = 0; i < CONTROLLERS_MAX; i++) {
		double ce = root_number(root, "/sys/devices/system/edac/mc/mc%d/ce_count", i);
		double ue = root_number(root, "/sys/devices/system/edac/mc/mc%d/ue_count", i);

		if (isnan(ce) || isnan(ue))
			return;
		m->corrected = (i ? m->corrected : 0) + ce;
		m->uncorrected = (i ? m->uncorrected : 0) + ue;
	}
}

static bool read_node(const char *root, unsigned node, struct numa_node *ret)
{
	static const char dir[] = "/sys/devices/system/node/node";
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *at;
	char line[256];

	*ret = (struct numa_node){.node = node, .total_bytes = NAN, .free_bytes = NAN};
	if (!root_read(root, &text, TEXT_MAX, "%s%u/numastat", dir, node))
		return false;
	ret->local = text_field(strbuf_str(&text), "local_node");
	ret->other = text_field(strbuf_str(&text), "other_node");
	ret->miss = text_field(strbuf_str(&text), "numa_miss");
	ret->has_cpus = !root_read(root, &text, TEXT_MAX, "%s%u/cpulist", dir, node) ||
			strbuf_str(&text)[0] != '\n';
	if (!root_read(root, &text, TEXT_MAX, "%s%u/meminfo", dir, node))
		return true;
	/* "Node 0 MemTotal:   123 kB" */
	for (at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		if (strstr(line, " MemTotal:"))
			ret->total_bytes = kib(line_number(line, 3));
		if (strstr(line, " MemFree:"))
			ret->free_bytes = kib(line_number(line, 3));
	}
	return true;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct numa_node *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

static void read_nodes(const char *root, struct memory_reading *m)
{
	char path[PATH_SIZE];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/devices/system/node", root);
	dir = opendir(path);
	if (!dir)
		return;
	for (struct dirent *e; m->nodes.n < NODES_MAX && (e = readdir(dir));) {
		struct numa_node node;
		unsigned number;
		int n = 0;

		if (sscanf(e->d_name, "node%u%n", &number, &n) == 1 && !e->d_name[n] &&
		    read_node(root, number, &node) && array_push(&m->nodes, node))
			break;
	}
	closedir(dir);
	if (m->nodes.n)
		qsort(m->nodes.v, m->nodes.n, sizeof(*m->nodes.v), compare_nodes);
}

/* A container has its own, and a small one; or a plain folder, which is no memory. */
static void read_shm(const char *root, pid_t pid, struct memory_reading *m)
{
	char path[PATH_SIZE];
	struct statfs fs = {0};

	m->shm_size = m->shm_used = NAN;
	if (pid)
		snprintf(path, sizeof(path), "%s/proc/%d/root/dev/shm", root, (int)pid);
	else
		snprintf(path, sizeof(path), "%s/dev/shm", root);
	m->shm_denied = statfs(path, &fs) != 0 && errno == EACCES;
	if (m->shm_denied || !fs.f_blocks || (pid && fs.f_type != TMPFS_MAGIC))
		return;
	m->shm_size = (double)fs.f_blocks * (double)fs.f_frsize;
	m->shm_used = (double)(fs.f_blocks - fs.f_bfree) * (double)fs.f_frsize;
}

void memory_read(const char *root, pid_t pid, struct oom_log *ooms, struct memory_reading *m)
{
	read_meminfo(root, m);
	read_vmstat(root, m);
	/* After the counter, which the kernel writes first: no kill is in that alone. */
	m->group_kills = oom_log_read(ooms);
	read_edac(root, m);
	read_nodes(root, m);
	read_shm(root, pid, m);
	pressure_read(root, "/proc/pressure/memory", &m->pressure);
}

void memory_release(struct memory_reading *m)
{
	array_release(&m->nodes);
}

/* --- rows ------------------------------------------------------------------------------------- */

/*
 * Memory of a GPU that is a node of its own (Grace) is full as soon as an engine runs: it is left
 * out of the host's. Such nodes have no CPUs.
 */
static void without_devices(const struct memory_reading *m, double *total, double *available)
{
	*total = m->total;
	*available = m->available;
	for (size_t i = 0; i < m->nodes.n; i++) {
		const struct numa_node *n = &m->nodes.v[i];

		if (n->has_cpus || isnan(n->total_bytes) || isnan(n->free_bytes))
			continue;
		*total -= n->total_bytes;
		*available -= n->free_bytes;
	}
	*available = fmin(fmax(*available, 0), *total);
}

/* Of the kills that /proc/vmstat counts, those for want of the host's memory. */
static void put_kills(const struct interval *i, struct use_report *r, struct use_row *row)
{
	const struct memory_reading *now = &i->now->memory, *before = &i->before->memory;
	double all = rate_of(now->vm[VM_OOM], before->vm[VM_OOM], 1);
	double of_groups = rate_of(now->group_kills, before->group_kills, 1);
	struct use_value *v;

	if (isnan(of_groups))
		of_groups = cgroup_limit_kills(i);
	v = row_put_or(r, row, "oom_kills", isnan(all) ? all : fmax(all - of_groups, 0),
		       "not in /proc/vmstat (before Linux 4.13)");
	if (v && !isnan(v->v) && isnan(now->group_kills))
		v->source = "/proc/vmstat (oom_kill), without those of cgroups at their limits";
}

/* What waits in a cgroup at its limit is pressure of the host too, by PSI. When the host itself
 * looks for memory, it scans pages: these counters have no reclaim of a group (mm/vmscan.c). */
static bool host_reclaims(const struct interval *i)
{
	const double *now = i->now->memory.vm, *before = i->before->memory.vm;

	return !(now[VM_SCAN_KSWAPD] <= before[VM_SCAN_KSWAPD] &&
		 now[VM_SCAN_DIRECT] <= before[VM_SCAN_DIRECT]);
}

static const char no_edac[] = "no memory controller tells of errors (EDAC)";

static void put_memory(const struct interval *i, struct use_report *r, struct use_row *row)
{
	static const struct {
		const char *key;
		enum vm_counter counter;
	} rates[] = {{"swap_in_per_second", VM_SWAP_IN},
		     {"swap_out_per_second", VM_SWAP_OUT},
		     {"direct_reclaim_per_second", VM_STALL},
		     {"refault_per_second", VM_REFAULT}};
	const struct memory_reading *now = &i->now->memory, *before = &i->before->memory;
	double total, available, used;
	struct use_value *v;

	without_devices(now, &total, &available);
	used = percent_of(total - available, total);
	v = row_put_or(r, row, "memory_used_percent", used, "no MemAvailable in /proc/meminfo");
	if (v && !isnan(used))
		v->text = report_text(r, "%.0f %% of %.1f GiB", used, total / (1 << 30));
	v = row_put_or(r, row, "memory_pressure_percent",
		       pressure_percent(now->pressure.full_us, before->pressure.full_us,
					i->seconds),
		       "this kernel has no pressure stall information (psi=1)");
	if (v)
		v->not_judged = host_reclaims(i) ? NULL
						 : "the host itself looked for no memory: "
						   "a cgroup at its limit makes it wait";
	for (size_t k = 0; k < ARRAY_SIZE(rates); k++)
		row_put_or(r, row, rates[k].key,
			   rate_of(now->vm[rates[k].counter], before->vm[rates[k].counter],
				   i->seconds),
			   "not in /proc/vmstat");
	put_kills(i, r, row);
	row_put_or(r, row, "memory_corrected", rate_of(now->corrected, before->corrected, 1),
		   no_edac);
	row_put_or(r, row, "memory_uncorrected", rate_of(now->uncorrected, before->uncorrected, 1),
		   no_edac);
}

static void swap_row(const struct interval *i, struct use_report *r)
{
	const struct memory_reading *m = &i->now->memory;
	struct use_row *row = row_add(r, "host", "swap", "");

	row_put_or(r, row, "swap_used_percent",
		   percent_of(m->swap_total - m->swap_free, m->swap_total),
		   "no swap is configured");
}

static void shm_row(const struct interval *i, struct use_report *r)
{
	const struct memory_reading *m = &i->now->memory;
	struct use_row *row = row_add(r, "host", "/dev/shm", "");

	row_put_or(r, row, "shm_used_percent", percent_of(m->shm_used, m->shm_size),
		   m->shm_denied ? "not reachable for this user" : "/dev/shm is not mounted");
}

static const struct numa_node *find_node(const struct memory_reading *m, unsigned node)
{
	for (size_t i = 0; i < m->nodes.n; i++)
		if (m->nodes.v[i].node == node)
			return &m->nodes.v[i];
	return NULL;
}

/* All nodes together, then each one: only for --all, as how full one is says little. */
static void numa_rows(const struct interval *i, struct use_report *r)
{
	double local = 0, other = 0, miss = 0;
	struct use_value *v;
	struct use_row *row;

	for (size_t k = 0; k < i->now->memory.nodes.n; k++) {
		const struct numa_node *now = &i->now->memory.nodes.v[k];
		const struct numa_node *before = find_node(&i->before->memory, now->node);
		bool device = !now->has_cpus;

		row = row_add(r, "host", "NUMA",
			      report_text(r, "node%u%s", now->node, device ? " (no CPUs)" : ""));
		if (!row)
			return;
		row->detail = true;
		row_put_or(r, row, "node_used_percent",
			   percent_of(now->total_bytes - now->free_bytes, now->total_bytes),
			   "no meminfo of this node");
		if (!before || device)
			continue;
		local += rate_of(now->local, before->local, i->seconds);
		other += rate_of(now->other, before->other, i->seconds);
		miss += rate_of(now->miss, before->miss, i->seconds);
	}
	row = row_add(r, "host", "NUMA", "");
	if (i->now->memory.nodes.n < 2) {
		row_lacks(r, row, "numa_other_percent", "there is one memory node");
		return;
	}
	v = row_put_or(r, row, "numa_other_percent", percent_of(other, local + other),
		       "no page was taken in this time");
	if (v && local + other < PAGES_JUDGED)
		v->not_judged = report_text(r, "fewer than %d pages were taken", PAGES_JUDGED);
	row_put(r, row, "numa_miss_per_second", miss);
}

void memory_rows(const struct interval *i, struct use_report *r)
{
	struct use_row *row = row_add(r, "host", "memory", "");

	if (row)
		put_memory(i, r, row);
	swap_row(i, r);
	shm_row(i, r);
	numa_rows(i, r);
}
