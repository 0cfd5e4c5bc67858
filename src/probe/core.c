/* SPDX-License-Identifier: BSD-2-Clause */
#include "core.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/explain.h>
#include <inspect/procfs.h>
#include <linux/magic.h>
#include <linux/version.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define CGROUP_DEPTH_MAX 8
#define TAKE_NS_MAX (2 * NSEC_PER_SEC)
#define HAS_TASK_STORAGE KERNEL_VERSION(5, 13, 0)
#define ALLOCATES_ANYWHERE KERNEL_VERSION(6, 1, 0)

/* Maps, the kernel's types while loading, and room for rows: with less the kernel would end us. */
#define MEMORY_LEAST (32u << 20)

/* --- whom to measure -------------------------------------------------------------------------- */

int probe_pid_namespace(const struct host *h, __u64 *ret_inode)
{
	struct stat st;

	*ret_inode = 0;
	if (!h->in_pid_namespace)
		return 0;
	if (stat("/proc/self/ns/pid", &st) < 0)
		return -errno;
	*ret_inode = st.st_ino;
	return 0;
}

static int find_owners(struct probe_core *c)
{
	int err = 0;

	for (size_t i = 0; i < c->target->n_tids && !err; i++) {
		pid_t tid = c->target->tids[i], pid = proc_of_thread(tid);

		err = array_push(&c->owners, pid > 0 ? pid : tid); /* itself when it has ended */
	}
	return err;
}

/* A cgroup's id is its inode's number (kernfs, on 64 bits). */
static int find_cgroup(int fd, struct target_setup *setup)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	setup->cgroup_id = st.st_ino;
	setup->cgroup_v1 = fs.f_type == CGROUP_SUPER_MAGIC;
	return 0;
}

static enum target_filter filter_of(const struct probe_target *t, bool by_perf_cgroup)
{
	if (t->cgroup_fd >= 0 && !by_perf_cgroup)
		return TARGET_CGROUP;
	if (t->all || t->cgroup_fd >= 0)
		return TARGET_ALL;
	return t->n_pids || t->child ? TARGET_PROCESSES : t->n_tids ? TARGET_THREADS : TARGET_ALL;
}

/* What libbpf says is for its developers, and its advice is wrong at times: ours is in explain. */
static int say_nothing(enum libbpf_print_level level UNUSED, const char *format UNUSED,
		       va_list args UNUSED)
{
	return 0;
}

int probe_core_init(struct probe_core *c, const struct probe_target *target, bool by_perf_cgroup,
		    const struct host *h, struct diag *d)
{
	int err;

	c->target = target;
	c->targets_fd = -1;
	c->setup = (struct target_setup){.filter = filter_of(target, by_perf_cgroup),
					 .unwinds = target->rows != NULL};
	err = probe_pid_namespace(h, &c->setup.pid_ns_inode);
	if (!err && c->setup.filter == TARGET_CGROUP)
		err = find_cgroup(target->cgroup_fd, &c->setup);
	if (!err)
		err = find_owners(c);
	if (err)
		return diag_errno(d, err, "preparing to measure with BPF");
	libbpf_set_print(say_nothing);
	return 0;
}

/* --- loading ---------------------------------------------------------------------------------- */

int probe_core_map(const struct probe_core *c, const char *name)
{
	int fd = bpf_object__find_map_fd_by_name(c->object, name);

	return fd < 0 ? -ENOENT : fd;
}

static int make_room(struct probe_core *c)
{
	size_t n = MAX(c->target->n_pids, c->target->n_tids);
	struct bpf_map *targets = bpf_object__find_map_by_name(c->object, "targets");

	if (!targets || n <= bpf_map__max_entries(targets) / 2)
		return 0;
	return bpf_map__set_max_entries(targets, (uint32_t)MIN(4 * n, (size_t)1 << 24));
}

static int share_maps(struct probe_core *c)
{
	c->targets_fd = probe_core_map(c, "targets");
	if (!c->setup.unwinds)
		return 0;
	c->maps_fds = (struct unwind_map_fds){
		.rows = probe_core_map(c, "unwind_rows"),
		.ranges = probe_core_map(c, "unwind_ranges"),
		.rules = probe_core_map(c, "unwind_rules"),
		.processes = probe_core_map(c, "unwind_processes"),
		.known = probe_core_map(c, "unwind_known"),
		.requests = probe_core_map(c, "unwind_requests"),
	};
	return unwind_maps_new(&c->maps_fds, c->target->rows, c->target->rows_ctx, &c->maps);
}

/* Whether tracing programs have task storage, as HAS_TASK_STORAGE of the programs. */
static bool has_task_storage(const struct host *h)
{
	struct btf *btf;
	const struct btf_type *t = NULL;
	bool has = false;
	int id;

	if (!h->kernel_version || h->kernel_version >= HAS_TASK_STORAGE)
		return true;
	btf = btf__load_vmlinux_btf();
	id = btf ? btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM) : -1;
	if (id > 0)
		t = btf__type_by_id(btf, (uint32_t)id);
	for (uint32_t i = 0; t && i < btf_vlen(t); i++)
		has |= str_eq(btf__name_by_offset(btf, btf_enum(t)[i].name_off),
			      "BPF_FUNC_for_each_map_elem");
	btf__free(btf);
	return has;
}

/* Of the two maps that keep states of tasks, the one that can be (task_states.bpf.h). */
static int choose_task_states(const struct probe_core *c, const struct host *h)
{
	static const char by_task[] = "_by_task";
	bool storage = has_task_storage(h);
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, c->object)
	{
		const char *name = bpf_map__name(map);
		size_t n = strlen(name);

		if (bpf_map__type(map) == BPF_MAP_TYPE_TASK_STORAGE && !storage)
			err = bpf_map__set_autocreate(map, false);
		else if (n > strlen(by_task) && str_eq(name + n - strlen(by_task), by_task) &&
			 storage)
			err = bpf_map__set_autocreate(map, false);
		if (err)
			return err;
	}
	return 0;
}

int probe_core_load(struct probe_core *c, struct bpf_object_skeleton *skeleton,
		    const struct host *h, struct diag *d)
{
	int err;

	if (!skeleton)
		return explain_bpf_load(-errno, h, d);
	if (unwind_maps_memory_left() < MEMORY_LEAST) {
		diag_set(d, -ENOMEM, "not enough memory for BPF");
		diag_why(d, "this program's cgroup allows less than %u MiB more",
			 MEMORY_LEAST >> 20);
		diag_fix(d, "raise the cgroup's memory limit");
		return -ENOMEM;
	}
	c->object = *skeleton->obj;
	err = make_room(c);
	if (!err)
		err = choose_task_states(c, h);
	if (!err)
		err = bpf_object__load_skeleton(skeleton);
	if (!err)
		err = share_maps(c);
	return err ? explain_bpf_load(err, h, d) : 0;
}

bool probe_may_allocate(const struct host *h)
{
	return !h->kernel_version || h->kernel_version >= ALLOCATES_ANYWHERE;
}

int probe_core_keep(struct probe_core *c, struct bpf_link *link)
{
	int err = link ? array_push(&c->links, link) : -errno;

	if (err && link)
		bpf_link__destroy(link);
	return err;
}

void probe_core_detach(struct probe_core *c, size_t n)
{
	while (c->links.n > n)
		bpf_link__destroy(c->links.v[--c->links.n]);
}

int probe_core_attach(struct probe_core *c, const char *program, struct diag *d)
{
	const struct bpf_program *p = bpf_object__find_program_by_name(c->object, program);

	if (!p)
		return diag_errno(d, -ENOENT, "attaching '%s'", program);
	return diag_errno(d, probe_core_keep(c, bpf_program__attach(p)), "attaching with BPF (%s)",
			  bpf_program__section_name(p));
}

int probe_core_attach_event(struct probe_core *c, const char *program, int event_fd)
{
	const struct bpf_program *p = bpf_object__find_program_by_name(c->object, program);
	int fd = fcntl(event_fd, F_DUPFD_CLOEXEC, 0); /* the link closes it */
	struct bpf_link *link;

	if (!p || fd < 0) {
		closep(&fd);
		return p ? -EMFILE : -ENOENT;
	}
	link = bpf_program__attach_perf_event(p, fd);
	if (!link) {
		closep(&fd);
		return -errno;
	}
	return probe_core_keep(c, link);
}

int probe_core_follow(struct probe_core *c, struct diag *d)
{
	static const char *const programs[] = {"on_fork", "on_exec", "on_exit"};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(programs) && !err; i++)
		err = probe_core_attach(c, programs[i], d);
	return err;
}

int probe_core_start(struct probe_core *c)
{
	int err = c->maps ? unwind_maps_start(c->maps) : 0;

	if (!err)
		__atomic_store_n(&c->shared->active, 1, __ATOMIC_RELEASE);
	return err;
}

uint64_t probe_core_stop(struct probe_core *c)
{
	__atomic_store_n(&c->shared->active, 0, __ATOMIC_SEQ_CST);
	c->shared->stopped_ns = clock_now_ns();
	if (c->maps)
		unwind_maps_stop(c->maps);
	return c->shared->stopped_ns;
}

void probe_core_release(struct probe_core *c)
{
	probe_core_detach(c, 0);
	unwind_maps_free(c->maps);
	array_release(&c->links);
	array_release(&c->owners);
	array_release(&c->ended);
	array_release(&c->ended_before);
	*c = (struct probe_core){0};
}

/* --- whose records are passed on -------------------------------------------------------------- */

bool probe_wants(const struct probe_core *c, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	uint8_t state;

	if (c->setup.filter == TARGET_ALL || c->setup.filter == TARGET_CGROUP)
		return true;
	if (c->setup.filter == TARGET_PROCESSES)
		return bpf_map_lookup_elem(c->targets_fd, &key, &state) == 0;
	for (size_t i = 0; i < c->owners.n; i++)
		if (c->owners.v[i] == pid)
			return true;
	return false;
}

bool probe_core_alive(const struct probe_core *c)
{
	if (c->setup.filter == TARGET_ALL || c->setup.filter == TARGET_CGROUP)
		return true;
	return (int64_t)__atomic_load_n(&c->shared->live, __ATOMIC_ACQUIRE) > 0;
}

/* What has ended is forgotten a round later, when every ring has been read past its end. */
void probe_forget_ended(struct probe_core *c)
{
	for (size_t i = 0; i < c->ended_before.n; i++) {
		uint32_t key = (uint32_t)c->ended_before.v[i];
		uint8_t state;

		if (bpf_map_lookup_elem(c->targets_fd, &key, &state) == 0 && state == TARGET_ENDED)
			bpf_map_delete_elem(c->targets_fd, &key);
	}
	c->ended_before.n = 0;
	for (size_t i = 0; i < c->ended.n; i++)
		if (array_push(&c->ended_before, c->ended.v[i]))
			break;
	c->ended.n = 0;
}

/* --- naming the target ------------------------------------------------------------------------ */

static int add_target(struct probe_core *c, pid_t pid, uint8_t state)
{
	uint32_t key = (uint32_t)pid;

	if (bpf_map_update_elem(c->targets_fd, &key, &state, BPF_NOEXIST) < 0)
		return errno == EEXIST ? 0 : -errno;
	__atomic_fetch_add(&c->shared->live, 1, __ATOMIC_ACQ_REL);
	/* Had it ended before, the program would not have seen that. */
	if (kill(pid, 0) == 0 || errno != ESRCH)
		return 0;
	state = TARGET_ENDED;
	__atomic_fetch_sub(&c->shared->live, 1, __ATOMIC_ACQ_REL);
	return bpf_map_update_elem(c->targets_fd, &key, &state, BPF_EXIST) < 0 ? -errno : 0;
}

/* What a process may end with while it is read is its own affair. */
static int take_process(struct probe_core *c, pid_t pid, bool put_off)
{
	int err = c->setup.unwinds ? unwind_maps_take(c->maps, pid, put_off) : 0;

	return err == -ENOMEM ? err : 0;
}

static int add_targets(struct probe_core *c)
{
	const struct probe_target *t = c->target;
	int err = 0;

	if (c->setup.filter == TARGET_ALL || c->setup.filter == TARGET_CGROUP)
		return 0;
	for (size_t i = 0; i < t->n_pids && !err; i++)
		err = add_target(c, t->pids[i], TARGET_LIVE);
	if (!err && t->child)
		err = add_target(c, t->child, t->child_runs ? TARGET_LIVE : TARGET_AT_EXEC);
	for (size_t i = 0; i < t->n_tids && !err && c->setup.filter == TARGET_THREADS; i++)
		err = add_target(c, t->tids[i], TARGET_LIVE);
	return err;
}

struct busy_process {
	pid_t pid;
	uint64_t cpu_ns;
};

static int by_cpu_time(const void *a, const void *b)
{
	const struct busy_process *x = a, *y = b;

	return (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

/* All there are, those first that have used most CPU time, for a while: the others' turn comes with
 * their first sample. */
static int take_everyone(struct probe_core *c)
{
	ARRAY(struct busy_process) busy = {0};
	struct pid_list pids = {0};
	uint64_t end_ns = clock_now_ns() + TAKE_NS_MAX;
	int err = c->setup.unwinds ? proc_pids(&pids) : 0;

	for (size_t i = 0; i < pids.n && !err; i++) {
		struct proc_stat stat;

		if (!proc_stat_read(pids.v[i], 0, &stat))
			err = array_push(&busy, (struct busy_process){
							pids.v[i], stat.utime_ns + stat.stime_ns});
	}
	if (busy.n)
		qsort(busy.v, busy.n, sizeof(*busy.v), by_cpu_time);
	/* First what takes no time: the rows of a browser must not keep all others out. */
	for (int put_off = 1; put_off >= 0; put_off--)
		for (size_t i = 0; i < busy.n && !err && clock_now_ns() < end_ns; i++)
			err = take_process(c, busy.v[i].pid, put_off);
	array_release(&busy);
	array_release(&pids);
	return err;
}

/* The processes in a cgroup and those below it. */
static int take_cgroup(struct probe_core *c, int cgroup_fd, unsigned depth)
{
	CLEANUP(closep) int procs = openat(cgroup_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	CLEANUP(fclosep) FILE *file = procs >= 0 ? fdopen(procs, "r") : NULL;
	int fd = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0, pid;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (file)
		procs = -1;
	while (file && !err && fscanf(file, "%9d", &pid) == 1)
		err = take_process(c, pid, false);
	while (dir && !err && depth < CGROUP_DEPTH_MAX && (entry = readdir(dir))) {
		CLEANUP(closep) int below = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(cgroup_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = below >= 0 ? take_cgroup(c, below, depth + 1) : 0;
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return err;
}

static int take_targets(struct probe_core *c)
{
	const struct probe_target *t = c->target;
	int err = t->all ? take_everyone(c) : 0;

	if (!err && t->cgroup_fd >= 0 && c->setup.unwinds)
		err = take_cgroup(c, t->cgroup_fd, 0);
	for (size_t i = 0; i < t->n_pids && !err; i++)
		err = take_process(c, t->pids[i], false);
	for (size_t i = 0; i < c->owners.n && !err; i++)
		err = take_process(c, c->owners.v[i], false);
	if (!err && t->child)
		err = take_process(c, t->child, false);
	if (!err && t->child && !t->child_runs && t->command && c->setup.unwinds)
		err = unwind_maps_preload(c->maps, t->command);
	return err;
}

int probe_core_targets(struct probe_core *c, struct diag *d)
{
	int err = add_targets(c);

	if (!err)
		err = take_targets(c);
	c->target = NULL;
	return err ? diag_errno(d, err, "naming the target to BPF") : 0;
}

int probe_core_sums(const struct probe_core *c, const char *map, const struct probe_sum *v,
		    size_t n)
{
	int n_possible = libbpf_num_possible_cpus(), fd = probe_core_map(c, map);
	CLEANUP(freep)
	uint64_t *by_cpu = n_possible > 0 ? calloc((size_t)n_possible, sizeof(*by_cpu)) : NULL;

	if (!by_cpu)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t sum = 0;

		if (bpf_map_lookup_elem(fd, &v[i].which, by_cpu))
			return -errno;
		for (int cpu = 0; cpu < n_possible; cpu++)
			sum += by_cpu[cpu];
		*v[i].to = sum;
	}
	return 0;
}

uint64_t probe_core_missed(const struct probe_core *c)
{
	struct bpf_program *p;
	uint64_t sum = 0;

	bpf_object__for_each_program(p, c->object)
	{
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (bpf_program__fd(p) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size))
			sum += info.recursion_misses;
	}
	return sum;
}

int probe_core_notes(const struct probe_core *c, note_list *notes)
{
	uint64_t unfollowed = __atomic_load_n(&c->shared->unfollowed, __ATOMIC_ACQUIRE);
	size_t refused = c->maps ? unwind_maps_refused(c->maps) : 0;
	char size[32];
	int err = 0;

	if (unfollowed)
		err = note_add(notes, "%llu child processes were not followed: too many at once",
			       (unsigned long long)unfollowed);
	if (!err && refused)
		err = note_add(notes,
			       "%zu files are not unwound: their rows need more than the %s that "
			       "memory limits leave",
			       refused,
			       bytes_format(unwind_maps_budget_bytes(c->maps), size, sizeof(size)));
	return err;
}
