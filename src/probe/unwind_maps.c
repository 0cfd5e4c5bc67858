/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind_maps.h"

#include "unwind_preload.h"

#include <bpf/libbpf.h>
#include <inspect/clock.h>
#include <inspect/procfs.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define BUDGET_BYTES_MOST (512u << 20)
#define SWEEP_MS 1000
#define ANSWER_NICE (-10)
#define LIMIT_TEXT_BYTES 4096

struct unwind_maps {
	struct unwind_processes processes;
	struct ring_buffer *requests;
	uint64_t budget_bytes;
	int wake_fd;
	pthread_t thread;
	bool running;
	/* Between the threads. */
	pthread_mutex_t lock;
	bool stopping;
	ARRAY(pid_t) changed;
	/* The thread's own. */
	ARRAY(pid_t) taken;
	ARRAY(pid_t) later;
};

/* --- how much memory there may be ------------------------------------------------------------- */

/* What the memory controller of our own cgroup still allows, or UINT64_MAX. BPF maps are charged
 * to it (kernel/bpf/syscall.c: bpf_map_save_memcg). */
static uint64_t left_in(const char *dir, const char *limit, const char *usage)
{
	char path[LIMIT_TEXT_BYTES + 64];
	int64_t most, used;

	snprintf(path, sizeof(path), "%s/%s", dir, limit);
	if (file_read_i64(path, &most) || most <= 0) /* "max" is no number */
		return UINT64_MAX;
	snprintf(path, sizeof(path), "%s/%s", dir, usage);
	if (file_read_i64(path, &used) || used < 0)
		used = 0;
	return most > used ? (uint64_t)(most - used) : 0;
}

/* One line of /proc/self/cgroup: "0::/PATH" (v2) or "N:memory:/PATH" (v1). */
static uint64_t left_by_line(char *line)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	char dir[LIMIT_TEXT_BYTES];
	uint64_t left = UINT64_MAX, here;

	if (!path)
		return UINT64_MAX;
	*path++ = '\0';
	if (controllers[1] == '\0') {
		for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
			snprintf(dir, sizeof(dir), "%s%s", roots[i], path);
			here = left_in(dir, "memory.max", "memory.current");
			left = MIN(left, here);
		}
	} else if (str_eq(controllers + 1, "memory")) {
		snprintf(dir, sizeof(dir), "/sys/fs/cgroup/memory%s", path);
		left = left_in(dir, "memory.limit_in_bytes", "memory.usage_in_bytes");
	}
	return left;
}

uint64_t unwind_maps_memory_left(void)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	uint64_t left = UINT64_MAX;
	char *line, *rest;

	if (file_read("/proc/self/cgroup", LIMIT_TEXT_BYTES, &text))
		return UINT64_MAX;
	strbuf_putc(&text, '\0');
	if (!text.v)
		return UINT64_MAX;
	for (line = strtok_r(text.v, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		uint64_t here = left_by_line(line);

		left = MIN(left, here);
	}
	return left;
}

/* --- what programs ask for -------------------------------------------------------------------- */

static int take_request(void *ctx, void *data, size_t size_bytes)
{
	struct unwind_maps *m = ctx;
	const struct unwind_request *r = data;

	if (size_bytes < sizeof(*r))
		return 0;
	return array_push(&m->taken, (pid_t)r->pid);
}

/* Whoever has ended meanwhile, or may not be read, goes without: its frames say so. */
static void refresh(struct unwind_maps *m, pid_t pid)
{
	if (unwind_process_refresh(&m->processes, pid, true) <= 0)
		return;
	for (size_t i = 0; i < m->later.n; i++)
		if (m->later.v[i] == pid)
			return;
	/* Without memory for it, the next request brings it back. */
	if (array_push(&m->later, pid))
		return;
}

/* One process with large files, when nobody else waits. */
static void refresh_later(struct unwind_maps *m)
{
	if (!m->later.n)
		return;
	unwind_process_refresh(&m->processes, m->later.v[0], false);
	m->later.n--;
	memmove(m->later.v, m->later.v + 1, m->later.n * sizeof(*m->later.v));
}

static bool answer(struct unwind_maps *m)
{
	bool stopping;
	uint64_t n;

	if (read(m->wake_fd, &n, sizeof(n)) < 0)
		n = 0;
	m->taken.n = 0;
	ring_buffer__consume(m->requests);
	for (size_t i = 0; i < m->taken.n; i++)
		refresh(m, m->taken.v[i]);
	m->taken.n = 0;
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->changed.n; i++)
		if (array_push(&m->taken, m->changed.v[i]))
			break;
	m->changed.n = 0;
	stopping = m->stopping;
	pthread_mutex_unlock(&m->lock);
	for (size_t i = 0; i < m->taken.n && !stopping; i++)
		if (unwind_process_is_used(&m->processes, m->taken.v[i]))
			refresh(m, m->taken.v[i]);
	return !stopping;
}

/* On a busy machine a new program runs for many ticks before this thread would have its turn. */
static void go_first(void)
{
	/* Not everyone may. */
	if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), ANSWER_NICE) < 0)
		return;
}

static void *run(void *ctx)
{
	struct unwind_maps *m = ctx;
	struct pollfd fds[] = {
		{.fd = ring_buffer__epoll_fd(m->requests), .events = POLLIN},
		{.fd = m->wake_fd, .events = POLLIN},
	};
	uint64_t swept_ns = clock_now_ns();

	go_first();
	while (answer(m)) {
		/* Without room for more, the next file says so. */
		row_store_prepare(&m->processes.row_store);
		if (clock_now_ns() - swept_ns > SWEEP_MS * NSEC_PER_MSEC) {
			unwind_processes_sweep(&m->processes);
			swept_ns = clock_now_ns();
		}
		if (poll(fds, ARRAY_SIZE(fds), m->later.n ? 0 : SWEEP_MS) == 0)
			refresh_later(m);
	}
	return NULL;
}

/* --- from outside ----------------------------------------------------------------------------- */

int unwind_maps_new(const struct unwind_map_fds *fds, unwind_rows_fn *rows, void *rows_ctx,
		    struct unwind_maps **ret)
{
	struct unwind_maps *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	/* Half: rows are made in our own memory before they are copied. */
	m->budget_bytes = MIN(unwind_maps_memory_left() / 2, (uint64_t)BUDGET_BYTES_MOST);
	m->processes.processes_fd = fds->processes;
	m->processes.known_fd = fds->known;
	m->processes.rows = rows;
	m->processes.rows_ctx = rows_ctx;
	range_store_init(&m->processes.range_store, fds->ranges, m->budget_bytes / 4);
	m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = m->wake_fd < 0 ? -errno
			     : row_store_init(&m->processes.row_store, fds->rows, fds->rules,
					      m->budget_bytes / 4 * 3);
	if (!err) {
		m->requests = ring_buffer__new(fds->requests, take_request, m, NULL);
		err = m->requests ? 0 : -errno;
	}
	if (!err) {
		/* Less is refused later, file by file. */
		err = row_store_prepare(&m->processes.row_store);
		err = err == -ENOSPC ? 0 : err;
	}
	if (err) {
		unwind_maps_free(m);
		return err;
	}
	*ret = m;
	return 0;
}

int unwind_maps_take(struct unwind_maps *m, pid_t pid, bool put_off)
{
	int err = unwind_process_refresh(&m->processes, pid, put_off);

	return MIN(err, 0);
}

int unwind_maps_preload(struct unwind_maps *m, const char *command)
{
	return unwind_preload(&m->processes, command);
}

int unwind_maps_start(struct unwind_maps *m)
{
	int err = pthread_create(&m->thread, NULL, run, m);

	m->running = !err;
	return -err;
}

void unwind_maps_wake(struct unwind_maps *m)
{
	uint64_t one = 1;

	/* The counter can't overflow, and nothing else can be wrong with it. */
	if (write(m->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void unwind_maps_stop(struct unwind_maps *m)
{
	if (!m->running)
		return;
	pthread_mutex_lock(&m->lock);
	m->stopping = true;
	pthread_mutex_unlock(&m->lock);
	unwind_maps_wake(m);
	pthread_join(m->thread, NULL);
	m->running = false;
}

int unwind_maps_changed(struct unwind_maps *m, pid_t pid)
{
	int err = 0;

	pthread_mutex_lock(&m->lock);
	if (!m->changed.n || m->changed.v[m->changed.n - 1] != pid)
		err = array_push(&m->changed, pid);
	pthread_mutex_unlock(&m->lock);
	return err;
}

size_t unwind_maps_refused(const struct unwind_maps *m)
{
	return m->processes.refused;
}

uint64_t unwind_maps_budget_bytes(const struct unwind_maps *m)
{
	return m->budget_bytes;
}

void unwind_maps_free(struct unwind_maps *m)
{
	if (!m)
		return;
	unwind_maps_stop(m);
	ring_buffer__free(m->requests);
	unwind_processes_release(&m->processes);
	if (m->wake_fd >= 0)
		close(m->wake_fd);
	array_release(&m->changed);
	array_release(&m->taken);
	array_release(&m->later);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
