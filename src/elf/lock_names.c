/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/array.h>
#include <inspect/clock.h>
#include <inspect/elf_file.h>
#include <inspect/lock_names.h>
#include <inspect/procfs.h>
#include <sys/uio.h>

#define PROCESSES_MAX 64
#define MAPS_MAX 65536
#define THREADS_MAX 4096
#define REREAD_NS (100 * NSEC_PER_MSEC)
#define NEIGHBOURS_MAX 64
#define NOT_FOUND SIZE_MAX
#define HEAP_BYTES (64ULL << 20) /* HEAP_MAX_SIZE of 64-bit glibc */
#define THREAD_NAME "[end of thread "

/* A mapping; of anonymous memory that follows a file's, `file` is that of the file (its .bss). */
struct area {
	uint64_t start, end;
	uint64_t pgoff_bytes;
	uint64_t ino;
	uint32_t maj, min;
	bool shared, write;
	bool access; /* it has any permission */
	bool bss;    /* anonymous, right behind the area before it, which is of a file */
	char *path;  /* owned */
};

struct areas {
	struct area *v;
	size_t n, cap;
};

struct process_areas {
	pid_t pid;
	uint64_t start_time_ns; /* tells a process from another of the same number */
	uint64_t read_ns;
	struct areas areas;
};

/* The variable that an address lies in. */
struct lock_variable {
	uint64_t offset_bytes, size_bytes;
	size_t name_bytes; /* of the text, up to the end of its name; 0: it lies in none */
};

struct lock_names {
	struct process_areas processes[PROCESSES_MAX];
	size_t next; /* the one to be replaced */
};

static void areas_clear(struct areas *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i].path);
	array_release(a);
}

int lock_names_new(struct lock_names **ret)
{
	struct lock_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	*ret = n;
	return 0;
}

void lock_names_free(struct lock_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		areas_clear(&n->processes[i].areas);
	free(n);
}

/* --- mappings --------------------------------------------------------------------------------- */

static bool has_file(const struct area *a)
{
	return a->ino && a->path[0] == '/';
}

static int add_area(void *ctx, const struct proc_map *map)
{
	struct areas *areas = ctx;
	const struct area *last = areas->n ? &areas->v[areas->n - 1] : NULL;
	struct area a = {
		.start = map->start,
		.end = map->end,
		.pgoff_bytes = map->pgoff_bytes,
		.ino = map->ino,
		.maj = map->maj,
		.min = map->min,
		.shared = map->shared,
		.write = map->write,
		.access = map->read || map->write || map->exec,
	};
	int err;

	if (areas->n >= MAPS_MAX)
		return 1;
	a.bss = last && !map->ino && !*map->path && last->end == map->start && has_file(last) &&
		!last->shared && map->write;
	a.path = strdup(map->path);
	if (!a.path)
		return -ENOMEM;
	err = array_push(areas, a);
	if (err)
		free(a.path);
	return err;
}

static size_t find_area(const struct areas *areas, uint64_t user_va)
{
	size_t low = 0, high = areas->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (areas->v[middle].end <= user_va)
			low = middle + 1;
		else
			high = middle;
	}
	return low < areas->n && areas->v[low].start <= user_va ? low : NOT_FOUND;
}

static int read_areas(struct process_areas *p)
{
	int err;

	areas_clear(&p->areas);
	p->read_ns = clock_now_ns();
	err = proc_maps_each(p->pid, add_area, &p->areas);
	return err == -ENOMEM ? err : 0; /* it may have ended; then nothing is known of it */
}

static struct process_areas *process_of(struct lock_names *n, pid_t pid)
{
	struct process_areas *p;
	struct proc_stat stat = {0};

	proc_stat_read(pid, pid, &stat);
	for (size_t i = 0; i < PROCESSES_MAX; i++) {
		p = &n->processes[i];
		/* Of one that has ended, what was known stays. */
		if (p->pid == pid &&
		    (!stat.start_time_ns || p->start_time_ns == stat.start_time_ns))
			return p;
	}
	p = &n->processes[n->next];
	n->next = (n->next + 1) % PROCESSES_MAX;
	areas_clear(&p->areas);
	*p = (struct process_areas){.pid = pid, .start_time_ns = stat.start_time_ns};
	return p;
}

/* --- names ------------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The variable at an address of a file's data, in the file or in its separate debug file. */
static bool variable_name(struct elf_file *f, const char *path, uint64_t elf_vaddr,
			  struct strbuf *out, struct lock_variable *ret)
{
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;

	if (elf_variable_find(f, elf_vaddr, out, &ret->offset_bytes, &ret->size_bytes)) {
		if (elf_file_has_symtab(f) || elf_debug_file_find(f, path, -1, &debug) ||
		    elf_variable_find(debug, elf_vaddr, out, &ret->offset_bytes, &ret->size_bytes))
			return false;
	}
	ret->name_bytes = out->n;
	strbuf_printf(out, "+0x%llx", (unsigned long long)ret->offset_bytes);
	return true;
}

/* The mapping of a file's beginning, from which its load address is known: the last one at or below
 * the area. NULL: none near. */
static const struct area *first_of_file(const struct areas *areas, const struct area *file)
{
	for (size_t i = (size_t)(file - areas->v) + 1, n = 0; i-- && n < NEIGHBOURS_MAX; n++) {
		const struct area *a = &areas->v[i];

		if (!a->pgoff_bytes && a->ino == file->ino && a->maj == file->maj &&
		    a->min == file->min)
			return a;
	}
	return NULL;
}

/* The file of an area: of a process that has ended, in our own root, if it is the same. */
static int open_area(pid_t pid, const struct area *a)
{
	CLEANUP(closep)
	int fd = elf_open_mapped(pid, a->start, a->end, a->path, a->maj, a->min, a->ino);

	if (fd < 0)
		fd = file_open_regular(a->path);
	return fd >= 0 && file_is_same(fd, a->maj, a->min, a->ino) ? TAKE_FD(fd) : -ENOENT;
}

/* `file` is the area whose file it is; user_va lies in it or in the .bss behind it. */
static bool file_data_name(const struct process_areas *p, const struct area *file, uint64_t user_va,
			   struct strbuf *out, struct lock_variable *ret)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	const struct area *first = first_of_file(&p->areas, file);
	uint64_t elf_vaddr, offset_bytes;
	int fd = first ? open_area(p->pid, file) : -ENOENT;

	if (fd < 0 || elf_file_open_fd(fd, &f) || elf_file_off_to_vaddr(f, 0, &elf_vaddr))
		return false;
	elf_vaddr += user_va - first->start;
	if (variable_name(f, file->path, elf_vaddr, out, ret))
		return true;
	strbuf_printf(out, "%s ", base_name(file->path));
	if (elf_section_at(f, elf_vaddr, out, &offset_bytes))
		strbuf_printf(out, "0x%llx", (unsigned long long)elf_vaddr);
	else
		strbuf_printf(out, "+0x%llx", (unsigned long long)offset_bytes);
	return true;
}

/* The stack pointer of a thread that waits in the kernel: /proc/PID/task/TID/syscall has "nr args
 * sp pc"; of one that runs it is not told. */
static bool stack_pointer(pid_t pid, pid_t tid, uint64_t *ret_va)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[64];
	unsigned long long sp;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	if (file_read(path, 4096, &text))
		return false;
	if (sscanf(strbuf_str(&text), "%*d %*x %*x %*x %*x %*x %*x %llx", &sp) != 1 &&
	    sscanf(strbuf_str(&text), "-1 %llx", &sp) != 1)
		return false;
	*ret_va = sp;
	return true;
}

static void pid_list_release(struct pid_list *list)
{
	array_release(list);
}

/* The thread whose stack lies in an area, or 0. */
static pid_t stack_owner(pid_t pid, const struct area *a)
{
	CLEANUP(pid_list_release) struct pid_list threads = {0};
	uint64_t sp;

	if (proc_threads(pid, &threads))
		return 0;
	for (size_t i = 0; i < threads.n && i < THREADS_MAX; i++)
		if (stack_pointer(pid, threads.v[i], &sp) && sp >= a->start && sp < a->end)
			return threads.v[i];
	return 0;
}

/* The thread whose end is waited for by its id, which the kernel clears there (clone(2),
 * CLONE_CHILD_CLEARTID); 0: another futex. */
static pid_t joined_thread(pid_t pid, uint64_t user_va)
{
	char path[64];
	pid_t tid = 0;
	struct iovec to = {&tid, sizeof(tid)};
	struct iovec from = {(void *)(uintptr_t)user_va, sizeof(tid)};

	if (process_vm_readv(proc_living(pid), &to, 1, &from, 1, 0) != sizeof(tid) || tid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return access(path, F_OK) ? 0 : tid;
}

/* Of glibc's malloc, for other threads than the first (malloc/arena.c): it begins at a multiple of
 * its size, and what is not used yet is behind it, without permissions. */
static bool is_heap(const struct areas *areas, const struct area *a)
{
	const struct area *end = areas->v + areas->n, *rest = a + 1 < end ? a + 1 : NULL;

	if (*a->path || a->shared || !a->write || a->start % HEAP_BYTES)
		return false;
	return a->end - a->start == HEAP_BYTES ||
	       (a->end - a->start < HEAP_BYTES && rest && rest->start == a->end && !rest->access &&
		!*rest->path && rest->end >= a->start + HEAP_BYTES);
}

static void anonymous_name(const struct process_areas *p, const struct area *a, uint64_t user_va,
			   struct strbuf *out)
{
	pid_t joined = *a->path ? 0 : joined_thread(p->pid, user_va), owner;

	if (joined) {
		lock_name_put_thread(out, joined);
		return;
	}
	/* Who waits there has access to it: the heap has grown since. */
	if (!a->access && a > p->areas.v && a[-1].end == a->start && is_heap(&p->areas, a - 1))
		a--;
	owner = str_eq(a->path, "[stack]") ? p->pid : *a->path ? 0 : stack_owner(p->pid, a);
	if (owner)
		strbuf_printf(out, "[stack:%d]", owner);
	else if (*a->path)
		strbuf_puts(out, a->path);
	else if (is_heap(&p->areas, a))
		strbuf_printf(out, "[heap:%llx]", (unsigned long long)a->start);
	else
		strbuf_printf(out, "[anon:%llx]", (unsigned long long)a->start);
	strbuf_printf(out, "+0x%llx", (unsigned long long)(user_va - a->start));
}

/* *ret stays as it is where the address lies in no variable. */
static int name_address(struct lock_names *n, pid_t pid, uint64_t user_va, struct strbuf *out,
			struct lock_variable *ret)
{
	struct process_areas *p = process_of(n, pid);
	size_t i = find_area(&p->areas, user_va);
	const struct area *a;

	if (i == NOT_FOUND && clock_now_ns() - p->read_ns >= REREAD_NS) {
		int err = read_areas(p);

		if (err)
			return err;
		i = find_area(&p->areas, user_va);
	}
	a = i == NOT_FOUND ? NULL : &p->areas.v[i];
	if (!a)
		strbuf_printf(out, "0x%llx", (unsigned long long)user_va);
	else if (a->shared && *a->path)
		strbuf_printf(out, "%s+0x%llx", a->path,
			      (unsigned long long)(user_va - a->start + a->pgoff_bytes));
	else if (!(has_file(a) || a->bss) ||
		 !file_data_name(p, has_file(a) ? a : a - 1, user_va, out, ret))
		anonymous_name(p, a, user_va, out);
	return out->failed ? -ENOMEM : 0;
}

int lock_names_text(struct lock_names *n, pid_t pid, uint64_t user_va, struct strbuf *out)
{
	struct lock_variable variable;

	return name_address(n, pid, user_va, out, &variable);
}

/* Variables that are waited for at more than one of their words, by size (glibc's
 * bits/pthreadtypes-arch.h) and where those are: pthread_cond_t, pthread_rwlock_t,
 * pthread_barrier_t. */
static bool is_one_lock(const struct lock_variable *v)
{
	static const struct {
		uint64_t size_bytes, first, end;
	} kinds[] = {{48, 32, 48}, {56, 8, 16}, {32, 4, 8}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (v->size_bytes == kinds[i].size_bytes && v->offset_bytes >= kinds[i].first &&
		    v->offset_bytes < kinds[i].end)
			return true;
	return !v->offset_bytes;
}

int lock_names_object(struct lock_names *n, pid_t pid, uint64_t user_va, struct strbuf *out,
		      uint64_t *ret_va)
{
	struct lock_variable variable = {0};
	size_t from = out->n;
	int err = name_address(n, pid, user_va, out, &variable);
	bool is_gil = !err && lock_name_is_gil(strbuf_str(out) + from);

	*ret_va = user_va;
	if (err || !variable.name_bytes || !(is_gil || is_one_lock(&variable)))
		return err;
	*ret_va = user_va - variable.offset_bytes;
	out->v[out->n = variable.name_bytes] = 0;
	strbuf_puts(out, is_gil ? " (GIL)" : "");
	return out->failed ? -ENOMEM : 0;
}

void lock_name_put_thread(struct strbuf *out, pid_t tid)
{
	strbuf_printf(out, THREAD_NAME "%d]", tid);
}

bool lock_name_is_thread(const char *name)
{
	return str_starts(name, THREAD_NAME);
}

bool lock_name_is_gil(const char *name)
{
	return str_starts(name, "_PyRuntime");
}
