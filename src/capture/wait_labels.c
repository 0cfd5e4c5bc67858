/* SPDX-License-Identifier: BSD-2-Clause */
#include "wait_labels.h"

#include "remote_memory.h"

#include <inspect/clock.h>
#include <inspect/fd_names.h>
#include <inspect/lock_names.h>
#include <inspect/procfs.h>
#include <inspect/syscalls.h>
#include <netinet/in.h>
#include <sys/stat.h>

enum { TEXT_MAX = 160, KNOWN_MAX = 1 << 16, WATCHED_MAX = 16 };

static const char gpu_devices[] = "/dev/nvidia";

/* What an epoll descriptor watches may change. */
#define WATCHED_NS NSEC_PER_SEC

/* What has been looked up: a key without stack, thread and waker. */
struct known {
	uint64_t until_ns; /* then it is looked up again; 0: it stays what it is */
	uint64_t arg, inode;
	uint32_t pid;
	int32_t nr;
	uint16_t file_mode;
	uint8_t how, flags;
	uint32_t label;
};

struct wait_labels {
	struct fd_names *fds;
	struct lock_names *locks;
	ARRAY(struct known) known;
	struct hashmap known_map;
	struct remote_memory memory;
	struct strbuf text, object, watched;
	const struct offcpu_probe *probe; /* of the key that is looked at */
};

int wait_labels_new(struct wait_labels **ret)
{
	struct wait_labels *l = calloc(1, sizeof(*l));
	int err = -ENOMEM;

	if (l) {
		remote_memory_init(&l->memory);
		err = fd_names_new(&l->fds);
	}
	if (!err)
		err = lock_names_new(&l->locks);
	if (err) {
		wait_labels_free(l);
		return err;
	}
	*ret = l;
	return 0;
}

void wait_labels_free(struct wait_labels *l)
{
	if (!l)
		return;
	fd_names_free(l->fds);
	lock_names_free(l->locks);
	array_release(&l->known);
	hashmap_release(&l->known_map);
	strbuf_release(&l->text);
	strbuf_release(&l->object);
	strbuf_release(&l->watched);
	remote_memory_release(&l->memory);
	free(l);
}

/* --- arguments -------------------------------------------------------------------------------- */

static bool is_any(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

static uint8_t argument_of(const char *name)
{
	static const char *const addresses[] = {"futex", "futex_wait"};
	static const char *const numbers[] = {"wait4"};
	static const char *const epolls[] = {"epoll_wait", "epoll_pwait", "epoll_pwait2"};
	static const char *const polls[] = {"poll", "ppoll"};
	static const char *const selects[] = {"select", "pselect6"};
	const struct syscall_info *info = syscall_info_find(name);

	if (str_eq(name, "ioctl"))
		return OFFCPU_ARG_IOCTL;
	if (str_eq(name, "futex_waitv"))
		return OFFCPU_ARG_WAITV;
	if (is_any(name, addresses, ARRAY_SIZE(addresses)))
		return OFFCPU_ARG_ADDRESS;
	if (is_any(name, numbers, ARRAY_SIZE(numbers)))
		return OFFCPU_ARG_NUMBER;
	if (is_any(name, epolls, ARRAY_SIZE(epolls)))
		return OFFCPU_ARG_EPOLL;
	if (is_any(name, polls, ARRAY_SIZE(polls)))
		return OFFCPU_ARG_POLL;
	if (is_any(name, selects, ARRAY_SIZE(selects)))
		return OFFCPU_ARG_SELECT;
	return info && info->args[0] == ARG_FD ? OFFCPU_ARG_FD : OFFCPU_ARG_NONE;
}

void wait_labels_arguments(uint8_t *ret)
{
	uint32_t end = syscall_numbers_end(SYSCALL_NATIVE);

	memset(ret, OFFCPU_ARG_NONE, OFFCPU_SYSCALLS);
	for (uint32_t nr = 0; nr < MIN(end, (uint32_t)OFFCPU_SYSCALLS); nr++) {
		char buffer[SYSCALL_NAME_BYTES];

		ret[nr] = argument_of(syscall_name(SYSCALL_NATIVE, nr, buffer));
	}
}

static bool is_descriptor(uint8_t argument)
{
	return argument == OFFCPU_ARG_FD || argument == OFFCPU_ARG_IOCTL ||
	       argument == OFFCPU_ARG_EPOLL;
}

/* --- texts ------------------------------------------------------------------------------------ */

struct mapping_search {
	uint64_t user_va;
	struct strbuf *out;
};

static int find_mapping(void *ctx, const struct proc_map *map)
{
	struct mapping_search *s = ctx;

	if (s->user_va < map->start || s->user_va >= map->end)
		return 0;
	strbuf_puts(s->out, map->path);
	return 1;
}

/* "TCP 10.0.0.1:80->…": the one peer that an epoll descriptor watches beside what has no name. */
static int find_watched(struct wait_labels *l, pid_t pid, int fd, struct strbuf *out)
{
	CLEANUP(strbuf_release) struct strbuf text = {0}, name = {0};
	char path[64];
	size_t n = 0, n_named = 0;
	int err = 0, target;

	strbuf_clear(out);
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", proc_living(pid), fd);
	if (file_read(path, 1 << 16, &text))
		return 0;
	for (const char *at = strbuf_str(&text); (at = strstr(at, "tfd:")) && !err; at++) {
		if (++n > WATCHED_MAX || sscanf(at, "tfd: %d", &target) != 1)
			break;
		strbuf_clear(&name);
		err = fd_names_text(l->fds, pid, target, &name);
		err = err == -ENOMEM ? err : 0;
		if (!str_starts(strbuf_str(&name), "TCP ") &&
		    !str_starts(strbuf_str(&name), "UDP ") &&
		    !str_starts(strbuf_str(&name), "unix:") &&
		    !str_starts(strbuf_str(&name), gpu_devices))
			continue;
		n_named++;
		strbuf_clear(out);
		strbuf_puts(out, strbuf_str(&name));
	}
	if (n > WATCHED_MAX || n_named > 1)
		strbuf_clear(out);
	return err ? err : out->failed ? -ENOMEM : 0;
}

/* From the root down. A part that fills its room was longer. */
static void put_path(const struct offcpu_file *file, struct strbuf *out)
{
	uint32_t n = MIN(file->parts, (uint32_t)OFFCPU_FILE_PARTS);

	if (file->parts > OFFCPU_FILE_PARTS)
		strbuf_puts(out, "/…");
	for (uint32_t i = n; i-- > 0;) {
		size_t bytes = strnlen(file->part[i], OFFCPU_FILE_BYTES);

		strbuf_putc(out, '/');
		strbuf_add(out, file->part[i], bytes);
		if (bytes == OFFCPU_FILE_BYTES - 1)
			strbuf_puts(out, "…");
	}
}

static void put_socket(const struct offcpu_file *file, uint64_t inode, struct strbuf *out)
{
	struct inet_ends ends = {.family = file->family,
				 .local_port = file->local_port,
				 .remote_port = file->remote_port};
	bool inet = file->family == AF_INET || file->family == AF_INET6;

	memcpy(ends.local, file->local, sizeof(ends.local));
	memcpy(ends.remote, file->remote, sizeof(ends.remote));
	if (inet && (file->protocol == IPPROTO_TCP || file->protocol == IPPROTO_UDP))
		inet_ends_text(file->protocol == IPPROTO_TCP ? "TCP" : "UDP", &ends, out);
	else
		strbuf_printf(out, "socket:[%llu]", (unsigned long long)inode);
}

/* A descriptor that is not there any more: what it was at a switch, or its number alone. */
static void put_gone(const struct wait_labels *l, const struct offcpu_key *key, uint8_t argument,
		     int fd, struct strbuf *out)
{
	struct offcpu_file file = {0};
	bool kept = key->inode && !offcpu_file(l->probe, key->arg, key->inode, &file);

	if (key->inode && S_ISSOCK(key->file_mode))
		put_socket(&file, key->inode, out);
	else if (kept && file.parts)
		put_path(&file, out);
	else if (key->inode && S_ISFIFO(key->file_mode))
		strbuf_printf(out, "pipe:[%llu]", (unsigned long long)key->inode);
	else if (argument == OFFCPU_ARG_EPOLL)
		strbuf_puts(out, "epoll");
	else
		strbuf_printf(out, "fd %d", fd);
}

/* The descriptor's name, also where it was closed since, or is another file by now. */
static int find_descriptor(struct wait_labels *l, const struct offcpu_key *key, pid_t pid,
			   uint8_t argument, int fd)
{
	struct stat now;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", proc_living(pid), fd);
	err = stat(path, &now) ? -errno : 0;
	if (!err && key->inode && key->inode != now.st_ino)
		err = -ESTALE;
	if (!err)
		err = fd_names_text(l->fds, pid, fd, &l->object);
	if (err && err != -ENOMEM)
		put_gone(l, key, argument, fd, &l->object);
	return err == -ENOMEM ? err : 0;
}

/* What poll(2) waits for. */
static int find_polled(struct wait_labels *l, const struct offcpu_key *key, pid_t pid)
{
	uint64_t arg = key->arg;
	int fd = (int)arg;

	/* The bits of a descriptor's file have none of these. */
	if (arg & OFFCPU_POLL_SEVERAL) {
		if ((uint32_t)arg)
			strbuf_printf(&l->object, "%u fds", (uint32_t)arg);
		return 0;
	}
	if (arg & OFFCPU_POLL_AT) {
		remote_memory_begin(&l->memory, pid);
		if (remote_memory_read(&l->memory, arg & ~OFFCPU_POLL_AT, &fd, sizeof(fd)))
			return 0;
	}
	return find_descriptor(l, key, pid, OFFCPU_ARG_POLL, fd);
}

static int name_lock(struct wait_labels *l, pid_t pid, uint64_t user_va)
{
	uint64_t object_va;
	uint32_t tid = offcpu_thread_at(l->probe, (uint32_t)pid, user_va);

	if (tid) {
		lock_name_put_thread(&l->object, (pid_t)tid);
		return 0;
	}
	return lock_names_object(l->locks, pid, user_va, &l->object, &object_va);
}

/* What futex_waitv(2) waits for. */
static int find_futexes(struct wait_labels *l, const struct offcpu_key *key, pid_t pid)
{
	uint64_t arg = key->arg;
	struct {
		uint64_t value, user_va;
	} waiter = {.user_va = arg};

	if (arg & OFFCPU_POLL_SEVERAL) {
		strbuf_printf(&l->object, "%u futexes", (uint32_t)arg);
		return 0;
	}
	if (arg & OFFCPU_POLL_AT) {
		remote_memory_begin(&l->memory, pid);
		if (remote_memory_read(&l->memory, arg & ~OFFCPU_POLL_AT, &waiter, sizeof(waiter)))
			return 0;
	}
	return name_lock(l, pid, waiter.user_va);
}

/* What the call works on, into l->object; nothing where it can't be said. */
static int find_object(struct wait_labels *l, const struct offcpu_key *key, uint32_t pid,
		       uint8_t argument)
{
	int err = 0;

	strbuf_clear(&l->object);
	/* A descriptor that was none at the switch is being closed, or another one by now. */
	if (is_descriptor(argument) && !key->inode)
		strbuf_printf(&l->object, "fd %d", (int)key->arg);
	else if (is_descriptor(argument))
		err = find_descriptor(l, key, (pid_t)pid, argument, (int)key->arg);
	else if (argument == OFFCPU_ARG_ADDRESS)
		err = name_lock(l, (pid_t)pid, key->arg);
	else if (argument == OFFCPU_ARG_WAITV)
		err = find_futexes(l, key, (pid_t)pid);
	else if (argument == OFFCPU_ARG_NUMBER && (int32_t)key->arg > 0)
		strbuf_printf(&l->object, "%d", (int32_t)key->arg);
	else if (argument == OFFCPU_ARG_POLL)
		err = find_polled(l, key, (pid_t)pid);
	else if (key->nr == OFFCPU_NO_SYSCALL && key->arg)
		proc_maps_each((pid_t)pid, find_mapping,
			       &(struct mapping_search){key->arg, &l->object});
	if (argument == OFFCPU_ARG_EPOLL && !err) {
		err = find_watched(l, (pid_t)pid, (int)key->arg, &l->watched);
		if (l->watched.n) {
			strbuf_clear(&l->object);
			strbuf_add(&l->object, l->watched.v, l->watched.n);
		}
	}
	if (err == -ENOMEM || l->object.failed)
		return -ENOMEM;
	return 0;
}

static int label_blocked(struct wait_labels *l, struct waits *w, const struct offcpu_key *key,
			 uint32_t pid, uint32_t *ret)
{
	char buffer[SYSCALL_NAME_BYTES];
	struct wait_facts f = {
		.fd_mode = key->file_mode,
		.io = key->flags & OFFCPU_IO,
		.uninterruptible = key->flags & OFFCPU_UNINTERRUPTIBLE,
		.fault = key->nr == OFFCPU_NO_SYSCALL && !(key->flags & OFFCPU_KTHREAD),
	};
	uint8_t argument = OFFCPU_ARG_NONE;
	enum wait_reason reason;
	struct wait_label *label;
	bool on_gpu;
	int err;

	strbuf_clear(&l->text);
	if (key->nr >= 0) {
		f.call = syscall_name(SYSCALL_NATIVE, (uint32_t)key->nr, buffer);
		argument = argument_of(f.call);
	}
	err = find_object(l, key, pid, argument);
	if (err)
		return err;
	if (is_descriptor(argument) || argument == OFFCPU_ARG_POLL)
		f.fd = strbuf_str(&l->object);
	on_gpu = f.fd && str_starts(f.fd, gpu_devices);
	/* The probe could not look at it: in a set with many members, or since before the start. */
	if (on_gpu)
		strbuf_printf(&l->text, "[gpu: %s] %s", f.call, strrchr(f.fd, '/') + 1);
	else
		strbuf_puts(&l->text, f.call ? f.call : f.fault ? "page fault" : "kernel");
	if (l->object.n && !on_gpu) {
		strbuf_putc(&l->text, ' ');
		strbuf_add(&l->text, l->object.v, MIN(l->object.n, (size_t)TEXT_MAX));
	}
	if (l->text.failed)
		return -ENOMEM;
	reason = wait_reason_of(&f);
	if (reason == WAIT_LOCK && lock_name_is_thread(strbuf_str(&l->object)))
		reason = WAIT_JOIN;
	err = waits_label(w, strbuf_str(&l->text), reason, ret);
	if (err)
		return err;
	label = &w->labels.v[*ret];
	label->idle = wait_is_idle(f.call) && !on_gpu;
	label->by_stack = f.uninterruptible || f.fault || label->reason == WAIT_OTHER ||
			  (reason == WAIT_LOCK && !lock_name_is_gil(strbuf_str(&l->object)));
	return 0;
}

static int label_call(struct waits *w, uint32_t code, uint32_t *ret)
{
	enum { NUMBERS = OFFCPU_CALL_CODES / 4 };
	enum syscall_abi abi = MIN(code / NUMBERS, SYSCALL_ABIS - 1U);
	char buffer[SYSCALL_NAME_BYTES], text[SYSCALL_NAME_BYTES + 16];
	const char *name = syscall_name(abi, code % NUMBERS, buffer);
	int err;

	snprintf(text, sizeof(text), "%s%s", name, syscall_abi_suffix(abi));
	err = waits_label(w, text, WAIT_OTHER, ret);
	if (err)
		return err;
	w->labels.v[*ret].is_call = true;
	w->labels.v[*ret].idle = wait_is_idle(name);
	return 0;
}

static int label_of(struct wait_labels *l, struct waits *w, const struct offcpu_key *key,
		    uint32_t pid, uint32_t *ret)
{
	switch (key->how) {
	case OFFCPU_BLOCKED:
		return label_blocked(l, w, key, pid, ret);
	case OFFCPU_IN_CALL:
		return label_call(w, (uint32_t)key->nr, ret);
	case OFFCPU_ON_CPU:
		return waits_label(w, "on-cpu", WAIT_RUNNING, ret);
	case OFFCPU_THROTTLED:
		return waits_label(w, "throttled", WAIT_THROTTLED, ret);
	case OFFCPU_FROZEN:
		return waits_label(w, "frozen", WAIT_STOPPED, ret);
	case OFFCPU_STOPPED:
		return waits_label(w, "stopped", WAIT_STOPPED, ret);
	default:
		return waits_label(w, "runnable", WAIT_RUNNABLE, ret);
	}
}

static bool is_watched(const struct offcpu_key *key)
{
	char buffer[SYSCALL_NAME_BYTES];

	return key->how == OFFCPU_BLOCKED && key->nr >= 0 &&
	       argument_of(syscall_name(SYSCALL_NATIVE, (uint32_t)key->nr, buffer)) ==
		       OFFCPU_ARG_EPOLL;
}

/* Until when what has just been looked up holds, see struct known. */
static uint64_t valid_until(const struct wait_labels *l, const struct offcpu_key *key)
{
	if (is_watched(key))
		return clock_now_ns() + WATCHED_NS;
	return key->how == OFFCPU_BLOCKED && lock_name_is_thread(strbuf_str(&l->object)) ? 1 : 0;
}

static int look_again(struct wait_labels *l, struct waits *w, const struct offcpu_key *key,
		      uint32_t pid, struct known *k, uint32_t *ret_label)
{
	int err = label_of(l, w, key, pid, &k->label);

	if (err)
		return err;
	k->until_ns = valid_until(l, key);
	*ret_label = k->label;
	return 0;
}

int wait_labels_find(struct wait_labels *l, const struct offcpu_probe *probe, struct waits *w,
		     const struct offcpu_key *key, uint32_t pid, uint32_t *ret_label)
{
	struct known k = {
		.arg = key->arg,
		.inode = key->inode,
		.pid = pid,
		.nr = key->nr,
		.file_mode = key->file_mode,
		.how = key->how,
		.flags = key->flags & (OFFCPU_IO | OFFCPU_UNINTERRUPTIBLE | OFFCPU_KTHREAD),
	};
	uint64_t hash;
	uint32_t at, i;
	int err;

	l->probe = probe;
	if (key->how != OFFCPU_BLOCKED) {
		k.arg = k.inode = 0;
		k.nr = key->how == OFFCPU_IN_CALL ? key->nr : 0;
		k.pid = k.file_mode = 0;
	}
	hash = hash_u64(k.arg ^ hash_u64(k.inode ^ (uint64_t)k.pid << 32 ^ (uint32_t)k.nr)) +
	       k.how + ((uint64_t)k.flags << 8);
	hashmap_each_candidate(&l->known_map, hash, at, i) {
		const struct known *have = &l->known.v[i];

		k.label = have->label;
		k.until_ns = have->until_ns;
		if (memcmp(have, &k, sizeof(k)) != 0)
			continue;
		*ret_label = k.label;
		return have->until_ns && clock_now_ns() > have->until_ns
			       ? look_again(l, w, key, pid, &l->known.v[i], ret_label)
			       : 0;
	}
	err = label_of(l, w, key, pid, &k.label);
	if (err)
		return err;
	k.until_ns = valid_until(l, key);
	*ret_label = k.label;
	if (l->known.n >= KNOWN_MAX)
		return 0;
	err = array_push(&l->known, k);
	return err ? err : hashmap_insert(&l->known_map, hash, (uint32_t)l->known.n - 1);
}
