/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait in known ways, for `inspect stack`. Prints one line for each, `NAME TID STATE
 * CALL`, and then `ready PID`; ends when its standard input does.
 *
 *	waits [deadlock] [recv] [sleep] [spin] [vfork] [fault] [int80] [pi] [rwlock] [pool=N]
 *	      [raw] [waitv] [leave]
 *
 * raw: two threads wait for each other's futex, of which neither is a mutex though both look like
 * one; leave: the main thread ends before the others.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both_hold, started;
static int sockets[2];
static volatile int pool_jobs;
volatile uint64_t spins;

static void begin(const char *name, char state, const char *call)
{
	prctl(PR_SET_NAME, name);
	printf("%s %ld %c %s\n", name, syscall(SYS_gettid), state, call);
	fflush(stdout);
}

__attribute__((noinline)) void take_second(pthread_mutex_t *second)
{
	pthread_mutex_lock(second);
	__asm__ volatile("" ::: "memory");
}

static void *hold_a(void *arg)
{
	(void)arg;
	begin("hold_a", 'S', "futex");
	pthread_mutex_lock(&lock_a);
	pthread_barrier_wait(&both_hold);
	take_second(&lock_b);
	return NULL;
}

static void *hold_b(void *arg)
{
	(void)arg;
	begin("hold_b", 'S', "futex");
	pthread_mutex_lock(&lock_b);
	pthread_barrier_wait(&both_hold);
	take_second(&lock_a);
	return NULL;
}

__attribute__((noinline)) void wait_for_bytes(int fd)
{
	char bytes[16];

	recv(fd, bytes, sizeof(bytes), 0);
	__asm__ volatile("" ::: "memory");
}

static void *receive(void *arg)
{
	(void)arg;
	begin("recv", 'S', "recvfrom");
	pthread_barrier_wait(&started);
	wait_for_bytes(sockets[0]);
	return NULL;
}

__attribute__((noinline)) void sleep_long(void)
{
	nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
	__asm__ volatile("" ::: "memory");
}

static void *sleeper(void *arg)
{
	(void)arg;
	begin("sleep", 'S', "clock_nanosleep");
	pthread_barrier_wait(&started);
	sleep_long();
	return NULL;
}

__attribute__((noinline)) void spin_forever(void)
{
	for (;;)
		spins++;
}

static void *spinner(void *arg)
{
	(void)arg;
	begin("spin", 'R', "-");
	pthread_barrier_wait(&started);
	spin_forever();
	return NULL;
}

/* The parent of a vfork waits for its child's exec or end, uninterruptibly. */
__attribute__((noinline)) void vfork_and_wait(void)
{
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void *vforker(void *arg)
{
	(void)arg;
	begin("vfork", 'D', "vfork");
	pthread_barrier_wait(&started);
	vfork_and_wait();
	return NULL;
}

__attribute__((noinline)) void wait_for_work(void)
{
	pthread_mutex_lock(&pool_lock);
	while (!pool_jobs)
		pthread_cond_wait(&pool_work, &pool_lock);
	pthread_mutex_unlock(&pool_lock);
}

static void *worker(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&started);
	wait_for_work();
	return NULL;
}

__attribute__((noinline)) char touch_page(const volatile char *page)
{
	return *page;
}

/* A page that nobody brings in, as one of a dead file server. */
static void *faulter(void *arg)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {(uintptr_t)page, 4096},
					.mode = UFFDIO_REGISTER_MODE_MISSING};

	(void)arg;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		perror("userfaultfd");
	begin("fault", 'S', "-");
	pthread_barrier_wait(&started);
	touch_page(page);
	return NULL;
}

/* The system calls of i386 from 64-bit code. */
__attribute__((noinline)) void pause_by_int80(void)
{
#ifdef __x86_64__
	int ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(29) : "memory", "r8", "r9", "r10", "r11");
#else
	pause();
#endif
}

static void *int80(void *arg)
{
	(void)arg;
	begin("int80", 'S', "pause");
	pthread_barrier_wait(&started);
	pause_by_int80();
	return NULL;
}

static pthread_mutex_t pi_lock, robust_lock;
static pthread_barrier_t held;

static void make_pi_locks(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&pi_lock, &attr);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust_lock, &attr);
	pthread_barrier_init(&held, NULL, 3);
}

static void *hold_both(void *arg)
{
	(void)arg;
	begin("hold_both", 'S', "pause");
	pthread_mutex_lock(&pi_lock);
	pthread_mutex_lock(&robust_lock);
	pthread_barrier_wait(&held);
	for (;;)
		pause();
	return NULL;
}

static void *want_pi(void *arg)
{
	(void)arg;
	begin("want_pi", 'S', "futex");
	pthread_barrier_wait(&held);
	take_second(&pi_lock);
	return NULL;
}

static void *want_robust(void *arg)
{
	(void)arg;
	begin("want_robust", 'S', "futex");
	pthread_barrier_wait(&held);
	take_second(&robust_lock);
	return NULL;
}

pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER, read_only = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t rwlocks_held;

static void *hold_rwlocks(void *arg)
{
	(void)arg;
	begin("hold_rw", 'S', "pause");
	pthread_rwlock_wrlock(&written);
	pthread_rwlock_rdlock(&read_only);
	pthread_barrier_wait(&rwlocks_held);
	for (;;)
		pause();
	return NULL;
}

static void *want_read(void *arg)
{
	(void)arg;
	begin("want_read", 'S', "futex");
	pthread_barrier_wait(&rwlocks_held);
	pthread_rwlock_rdlock(&written);
	return NULL;
}

static void *want_write(void *arg)
{
	(void)arg;
	begin("want_write", 'S', "futex");
	pthread_barrier_wait(&rwlocks_held);
	pthread_rwlock_wrlock(&read_only);
	return NULL;
}

/* The words of a plain mutex: locked, and by whom. */
struct looks_held {
	uint32_t word, count, tid, users;
} raw_a = {.word = 2}, raw_b = {.word = 2};

static void wait_raw(struct looks_held *mine, struct looks_held *other)
{
	mine->tid = (uint32_t)syscall(SYS_gettid);
	pthread_barrier_wait(&started);
	syscall(SYS_futex, &other->word, FUTEX_WAIT_PRIVATE, 2, NULL);
}

static void *raw_one(void *arg)
{
	begin("raw_one", 'S', "futex");
	wait_raw(&raw_a, &raw_b);
	return arg;
}

static void *raw_two(void *arg)
{
	begin("raw_two", 'S', "futex");
	wait_raw(&raw_b, &raw_a);
	return arg;
}

/* struct futex_waitv */
static struct {
	uint64_t value, address;
	uint32_t flags, reserved;
} waiters[3];
uint32_t any_a, any_b, any_c;

static void *wait_for_any(void *arg)
{
	uint32_t *const words[] = {&any_a, &any_b, &any_c};

	begin("waitv", 'S', "futex_waitv");
	for (int i = 0; i < 3; i++) {
		waiters[i].address = (uintptr_t)words[i];
		waiters[i].flags = 2 | FUTEX_PRIVATE_FLAG; /* FUTEX_32 */
	}
	pthread_barrier_wait(&started);
	syscall(449, waiters, 3, 0, NULL, 0);
	return arg;
}

static void *reader(void *arg)
{
	char byte;

	begin("reader", 'S', "read");
	pthread_barrier_wait(&started);
	while (read(0, &byte, 1) > 0)
		;
	_exit(arg != NULL);
}

static const struct {
	const char *name;
	void *(*run)(void *);
} kinds[] = {
	{"recv", receive},       {"sleep", sleeper}, {"spin", spinner}, {"vfork", vforker},
	{"fault", faulter},      {"int80", int80},   {"raw", raw_one},  {"raw", raw_two},
	{"waitv", wait_for_any}, {"leave", reader},
};

static void create(void *(*run)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	if (pthread_create(&thread, &attr, run, NULL)) {
		perror("pthread_create");
		exit(1);
	}
}

/* Whether a thread is, or may still be, on its way to where it waits. */
static int is_on_its_way(const char *tid)
{
	char path[300], line[200] = "", *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	state = strrchr(line, ')');
	if (!state || atoi(tid) == getpid() || strstr(line, "(spin)"))
		return 0;
	return state[2] != (strstr(line, "(vfork)") ? 'D' : 'S');
}

/* However long it takes on a busy machine. */
static void settle(void)
{
	for (int quiet = 0; quiet < 2; quiet++) {
		DIR *dir = opendir("/proc/self/task");
		const struct dirent *entry;

		usleep(50000);
		while (dir && (entry = readdir(dir)))
			if (entry->d_name[0] != '.' && is_on_its_way(entry->d_name))
				quiet = -1;
		if (dir)
			closedir(dir);
	}
}

int main(int argc, char **argv)
{
	unsigned pool = 0, waiting = 1;
	int leaves = 0;
	char byte;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "pool=", 5) == 0)
			pool = (unsigned)atoi(argv[i] + 5);
		waiting += strcmp(argv[i], "deadlock") && strcmp(argv[i], "pi") &&
			   strcmp(argv[i], "rwlock") && strncmp(argv[i], "pool=", 5);
		waiting += !strcmp(argv[i], "raw");
		leaves |= !strcmp(argv[i], "leave");
	}
	pthread_barrier_init(&both_hold, NULL, 2);
	pthread_barrier_init(&started, NULL, waiting + pool);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	for (int i = 1; i < argc; i++) {
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if (strcmp(argv[i], kinds[k].name) == 0)
				create(kinds[k].run);
		if (strcmp(argv[i], "deadlock") == 0) {
			create(hold_a);
			create(hold_b);
		}
		if (strcmp(argv[i], "pi") == 0) {
			make_pi_locks();
			create(hold_both);
			create(want_pi);
			create(want_robust);
		}
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "rwlock"))
			continue;
		pthread_barrier_init(&rwlocks_held, NULL, 3);
		create(hold_rwlocks);
		create(want_read);
		create(want_write);
	}
	for (unsigned i = 0; i < pool; i++)
		create(worker);
	pthread_barrier_wait(&started);
	settle();
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (leaves)
		pthread_exit(NULL);
	while (read(0, &byte, 1) > 0)
		;
	_exit(0);
}
