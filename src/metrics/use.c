/* SPDX-License-Identifier: BSD-2-Clause */
/* A session: two readings and what becomes of them. */
#include "readings.h"

#include <inspect/clock.h>
#include <time.h>

enum {
	LIST_AGE_READINGS = 10, /* groups come and go: looked for again after so many */
	TASKS_COST_SHARE = 200, /* reading times of threads takes no more than this part of a CPU */
};

struct use {
	struct use_config config;
	struct reading readings[2];
	unsigned n; /* readings so far */
	struct task_reading tasks[2];
	unsigned n_tasks;
	uint64_t tasks_cost_ns; /* CPU time of the last one */
	uint64_t tasks_wall_ns; /* how long it took */
	bool tasks_read;        /* in this window */
	struct runnable runnable;
	struct oom_log ooms;
	struct user_counts user_counts;
	struct cgroup_list cgroups;
	unsigned cgroups_age;
	struct nvml *nvml;
	const char *no_gpu;
	uint64_t links_wall_ns; /* how long their reading took */
	bool links_read;        /* in this window */
	struct engine_session *engine;
};

static void reading_clear(struct reading *r)
{
	struct gpu_reading *gpu = r->gpu;
	struct engine_reading *engine = r->engine;

	cpu_release(&r->cpu);
	memory_release(&r->memory);
	disk_release(&r->disk);
	filesystem_release(&r->filesystem);
	net_release(&r->net);
	cgroup_release(&r->cgroup);
	process_release(&r->process);
	drm_release(&r->drm);
	*r = (struct reading){.gpu = gpu, .engine = engine};
}

void use_free(struct use *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(u->readings); i++) {
		reading_clear(&u->readings[i]);
		gpu_reading_free(u->readings[i].gpu);
		engine_reading_free(u->readings[i].engine);
		task_table_release(&u->tasks[i].table);
	}
	oom_log_close(&u->ooms);
	cgroup_list_release(&u->cgroups);
	engine_close(u->engine);
	nvml_close(u->nvml);
	free(u);
}

int use_new(const struct use_config *c, struct use **ret)
{
	struct use *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->config = *c;
	oom_log_open(c->root, &u->ooms);
	u->no_gpu = "a recorded tree has none";
	for (size_t i = 0; i < ARRAY_SIZE(u->readings); i++) {
		u->readings[i].gpu = gpu_reading_new();
		u->readings[i].engine = engine_reading_new();
		if (!u->readings[i].gpu || !u->readings[i].engine) {
			use_free(u);
			return -ENOMEM;
		}
	}
	if (c->gpus)
		u->nvml = nvml_open(&u->no_gpu);
	if (c->engine || c->find_engine)
		u->engine = engine_open(&u->config);
	*ret = u;
	return 0;
}

static int find_cgroups(struct use *u)
{
	if (u->n && ++u->cgroups_age < LIST_AGE_READINGS)
		return 0;
	u->cgroups_age = 0;
	cgroup_list_release(&u->cgroups);
	u->cgroups = (struct cgroup_list){0};
	return cgroup_list_find(u->config.root, &u->config, &u->cgroups);
}

static int fill_tasks(const struct use_config *c, struct task_table *t)
{
	int err = c->tasks ? c->tasks(c->tasks_ctx, t) : -ENOSYS;

	if (!err) {
		task_table_sort(t);
		return task_walk_missing(c->root, c->pids, c->n_pids, t);
	}
	task_table_release(t);
	*t = (struct task_table){.no_locks = c->tasks_reason, .no_refusals = c->tasks_reason};
	return c->cgroup && !c->n_pids ? 0 : task_walk(c->root, c->pids, c->n_pids, t);
}

/* Not again before it costs less than a share of a CPU; the first two are needed. */
static bool is_tasks_turn(const struct use *u, uint64_t now_ns)
{
	uint64_t last_ns = u->tasks[(u->n_tasks + 1) % 2].clock_ns;

	return u->n_tasks < 2 || u->tasks_cost_ns * TASKS_COST_SHARE < now_ns - last_ns;
}

/* A walk through /proc takes long where there are thousands of processes: it is made within the
 * window, at its begin the first time, then so that it ends with it. */
static bool walks(const struct use *u)
{
	return !u->config.tasks && !u->config.root[0];
}

static void read_tasks(struct use *u, uint64_t now_ns)
{
	struct task_reading *t = &u->tasks[u->n_tasks % 2];
	uint64_t begin_ns = clock_own_cpu_ns();

	if (!is_tasks_turn(u, now_ns))
		return;
	task_table_release(&t->table);
	*t = (struct task_reading){.clock_ns = now_ns, .boot_ns = clock_boottime_ns()};
	t->err = fill_tasks(&u->config, &t->table);
	u->tasks_cost_ns = clock_own_cpu_ns() - begin_ns;
	u->tasks_wall_ns = clock_now_ns() - now_ns;
	u->n_tasks++;
}

static void read_links(struct use *u)
{
	uint64_t begin_ns = clock_now_ns();

	if (u->nvml)
		gpu_read_links(u->nvml);
	u->links_wall_ns = clock_now_ns() - begin_ns;
	u->links_read = true;
}

int use_read(struct use *u)
{
	const struct use_config *c = &u->config;
	struct reading *r = &u->readings[u->n % 2];
	int err = 0;
	pid_t pid;

	reading_clear(r);
	if (c->list_pids)
		err = c->list_pids(c->list_ctx, &u->config.pids, &u->config.n_pids);
	pid = c->n_pids ? c->pids[0] : 0;
	if (!err)
		err = find_cgroups(u);
	if (err)
		return err;
	/* What is asked slowly comes first: the times of the rest are then those of the clock. */
	if (u->engine)
		engine_read(u->engine, r->engine);
	if (u->n && !u->links_read)
		read_links(u);
	u->links_read = false;
	if (u->nvml)
		gpu_read(u->nvml, c->pids, c->n_pids, r->gpu);
	drm_read(c->root, c->pids, c->n_pids, &r->drm);
	filesystem_read(c->root, pid, &r->filesystem);
	r->clock_ns = clock_now_ns();
	r->own_cpu_ns = clock_own_cpu_ns();
	if (!walks(u) || (u->n && !u->tasks_read))
		read_tasks(u, r->clock_ns);
	u->tasks_read = false;
	r->has_driver = c->driver && !c->driver(c->driver_ctx, &r->driver);
	cpu_read(c->root, &r->cpu);
	memory_read(c->root, pid, &u->ooms, &r->memory);
	disk_read(c->root, &r->disk);
	net_read(c->root, pid, &r->net);
	limits_read(c->root, &r->limits);
	cgroup_read(c->root, &u->cgroups, &r->cgroup);
	process_read(c->root, c->pids, c->n_pids, &r->process);
	u->n++;
	return 0;
}

/* How long the walk of this window will take. */
static uint64_t walk_ns(const struct use *u)
{
	return walks(u) && !u->tasks_read ? u->tasks_wall_ns : 0;
}

uint64_t use_lead_ns(const struct use *u)
{
	return walk_ns(u) + (u->nvml && !u->links_read ? u->links_wall_ns : 0);
}

void use_tick(struct use *u, uint64_t left_ns)
{
	runnable_sample(u->config.root, &u->runnable);
	/* The first time shows how long each takes. */
	if (walks(u) && !u->n_tasks)
		read_tasks(u, clock_now_ns());
	if (u->nvml && !u->links_read && (!u->links_wall_ns || left_ns <= use_lead_ns(u))) {
		bool first = !u->links_wall_ns;

		read_links(u);
		u->links_read = !first;
	}
	if (walks(u) && !u->tasks_read && left_ns <= walk_ns(u)) {
		read_tasks(u, clock_now_ns());
		u->tasks_read = true;
	}
}

int use_rows(struct use *u, struct use_report *ret)
{
	CLEANUP(throttles_release) struct throttles throttles = {0};
	struct interval i = {
		.config = &u->config,
		.before = &u->readings[u->n % 2],
		.now = &u->readings[(u->n + 1) % 2],
		.tasks_before = &u->tasks[u->n_tasks % 2],
		.tasks_now = &u->tasks[(u->n_tasks + 1) % 2],
		.runnable = u->runnable,
		.no_gpu = u->no_gpu,
		.nvml = u->nvml,
		.engine = u->engine,
		.cgroups = &u->cgroups,
		.throttles = &throttles,
		.user_counts = &u->user_counts,
	};

	*ret = (struct use_report){0};
	if (u->n < 2)
		return -EINVAL;
	i.seconds = (double)(i.now->clock_ns - i.before->clock_ns) / 1e9;
	i.tasks_seconds = (double)(i.tasks_now->clock_ns - i.tasks_before->clock_ns) / 1e9;
	if (u->config.seconds > 0)
		i.seconds = i.tasks_seconds = u->config.seconds;
	ret->seconds = i.seconds;
	ret->has_target = has_target(&u->config);
	ret->own_cpu_s = (double)(i.now->own_cpu_ns - i.before->own_cpu_ns) / 1e9;
	throttles_find(&i, &throttles);
	cpu_rows(&i, ret);
	task_rows(&i, ret);
	process_rows(&i, ret);
	cgroup_rows(&i, ret);
	memory_rows(&i, ret);
	disk_rows(&i, ret);
	filesystem_rows(&i, ret);
	net_rows(&i, ret);
	limits_rows(&i, ret);
	gpu_rows(&i, ret);
	gpu_driver_row(&i, ret);
	drm_rows(&i, ret);
	engine_rows(&i, ret);
	report_judge(ret, u->config.limits);
	u->runnable = (struct runnable){0};
	return ret->failed ? -ENOMEM : 0;
}
