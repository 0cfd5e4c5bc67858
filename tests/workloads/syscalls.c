/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls whose numbers are known: `syscalls WHAT [N]`. Whatever it needs besides is done before
 * `ready` is printed and a line is read from stdin (when stdin is a pipe), or not counted by the
 * tests.
 *
 *   storm N       16 processes with N getppid each
 *   abi N         N getpid by int 0x80, N by x32 numbers, N by the native ones
 *   exec-thread   a thread that is not the leader executes /bin/true, with others waiting
 *   threads N     N threads alive at once, 10 getppid each
 *   fds N         N descriptors of one pipe, a write of a byte to each
 *   vforks N      N vforked children that exit at once
 *   blocked S     a thread in read of an empty pipe, another in nanosleep, for S seconds
 *   maps N        N times mmap and munmap of 1 MiB
 *   yields N      N sched_yield
 *   writes N      N writes of 10 bytes to one descriptor of /dev/null
 *   polls N       N epoll_wait with time-out 0 and nothing to see
 *   missing N     N openat of a name that does not exist
 *   failing N     N close of a bad descriptor
 *   syncs N       N writes with fdatasync to a file in the current directory
 *   accepts N     N connections, a thread for each
 *   lock S        4 threads that fight for a mutex for S seconds
 *   shared-lock S 2 processes that fight for a mutex in the file `shared` for S seconds
 *   pi-lock S     the same as lock with a mutex of PTHREAD_PRIO_INHERIT
 *   deadlock S    2 threads, each with one mutex waits for the other's
 *   futex2 N      N waits of 1 ms by futex_waitv at `several`, N by futex_wait (455) at `one`;
 *                 ends with 1 where the kernel has not both
 *   gpu N         N ioctls as NVIDIA's library makes them to allocate, on a file `nvidia0`; opening
 *                 `nvidiactl`, a FIFO, takes 150 ms
 *   healthy N     N bytes written to a pipe and read by a thread with epoll
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long n;
static int fds[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;

static void storm(void)
{
	for (int i = 0; i < 16; i++)
		if (fork() == 0) {
			for (long k = 0; k < n; k++)
				syscall(SYS_getppid);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void abi(void)
{
#ifdef __x86_64__
	for (long i = 0; i < n; i++) {
		long result;

		__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
		syscall(0x40000000 | SYS_getpid);
		syscall(SYS_getpid);
	}
#endif
}

static void *wait_long(void *unused)
{
	(void)unused;
	sleep(100);
	return NULL;
}

static void *exec_true(void *unused)
{
	(void)unused;
	execl("/bin/true", "true", NULL);
	return NULL;
}

static void start(void *(*run)(void *), long how_many, int join)
{
	pthread_t *threads = calloc((size_t)how_many, sizeof(*threads));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (long i = 0; i < how_many; i++)
		if (pthread_create(&threads[i], &attr, run, (void *)i))
			abort();
	for (long i = 0; i < how_many && join; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

static void exec_thread(void)
{
	start(wait_long, 3, 0);
	start(exec_true, 1, 0);
	pause();
}

static pthread_barrier_t barrier;

static void *ten_calls(void *unused)
{
	for (int i = 0; i < 10; i++)
		syscall(SYS_getppid);
	pthread_barrier_wait(&barrier);
	return unused;
}

static void threads(void)
{
	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	start(ten_calls, n, 1);
}

static void many_fds(void)
{
	struct rlimit limit = {(rlim_t)n + 100, (rlim_t)n + 100};

	if (setrlimit(RLIMIT_NOFILE, &limit) || pipe(fds) ||
	    fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) < 0)
		abort();
	for (long i = 0; i < n; i++)
		if (write(dup(fds[1]), "x", 1) != 1)
			abort();
}

static void vforks(void)
{
	for (long i = 0; i < n; i++) {
		if (vfork() == 0)
			_exit(0);
		wait(NULL);
	}
}

static void *read_forever(void *unused)
{
	char c;

	while (read(fds[0], &c, 1) < 0)
		;
	return unused;
}

static void blocked(void)
{
	if (pipe(fds))
		abort();
	start(read_forever, 1, 0);
	sleep((unsigned)n);
}

static void maps(void)
{
	for (long i = 0; i < n; i++)
		munmap(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 20);
}

static void yields(void)
{
	for (long i = 0; i < n; i++)
		sched_yield();
}

static void writes(void)
{
	int fd = open("/dev/null", O_WRONLY);

	for (long i = 0; i < n; i++)
		if (write(fd, "0123456789", 10) != 10)
			abort();
}

static void polls(void)
{
	struct epoll_event event;
	int fd = epoll_create1(0);

	for (long i = 0; i < n; i++)
		epoll_wait(fd, &event, 1, 0);
}

static void missing(void)
{
	for (long i = 0; i < n; i++)
		open("/nonexistent/file", O_RDONLY);
}

static void failing(void)
{
	for (long i = 0; i < n; i++)
		close(-1);
}

static void syncs(void)
{
	int fd = open("synced", O_WRONLY | O_CREAT, 0600);

	for (long i = 0; i < n; i++)
		if (write(fd, "x", 1) != 1 || fdatasync(fd))
			abort();
}

static void *nothing(void *unused)
{
	return unused;
}

static void accepts(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int server = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(server, (struct sockaddr *)&a, sizeof(a)) || listen(server, 10) ||
	    getsockname(server, (struct sockaddr *)&a, &size))
		abort();
	for (long i = 0; i < n; i++) {
		int client = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(client, (struct sockaddr *)&a, sizeof(a)))
			abort();
		close(accept(server, NULL, NULL));
		close(client);
		start(nothing, 1, 1);
	}
}

static void *fight(void *unused)
{
	while (!over) {
		pthread_mutex_lock(&mutex);
		usleep(2000);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static void *end_later(void *unused)
{
	sleep((unsigned)n);
	over = 1;
	return unused;
}

static void lock(void)
{
	start(end_later, 1, 0);
	start(fight, 4, 1);
}

static void pi_lock(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &attr);
	lock();
}

static void shared_lock(void)
{
	int fd = open("shared", O_RDWR | O_CREAT, 0600);
	pthread_mutexattr_t attr;
	pthread_mutex_t *shared;
	struct timespec begin, now;

	if (fd < 0 || ftruncate(fd, 8192))
		abort();
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pthread_mutex_init(shared + 100, &attr);
	if (fork() == 0) /* mapped a second time, elsewhere */
		shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		pthread_mutex_lock(shared + 100);
		usleep(2000);
		pthread_mutex_unlock(shared + 100);
		usleep(200); /* the other's turn: at once, it would be this one's again */
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9 < (double)n);
	while (wait(NULL) > 0)
		;
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void *second_then_first(void *unused)
{
	pthread_mutex_lock(&second);
	usleep(100000);
	pthread_mutex_lock(&first);
	return unused;
}

static void *first_then_second(void *unused)
{
	pthread_mutex_lock(&first);
	usleep(100000);
	pthread_mutex_lock(&second);
	return unused;
}

static void deadlock(void)
{
	start(second_then_first, 1, 0);
	start(first_then_second, 1, 0);
	sleep((unsigned)n);
}

static void *open_late(void *unused)
{
	usleep(150000);
	open("nvidiactl", O_WRONLY);
	return unused;
}

static void gpu(void)
{
	int fd = open("nvidia0", O_RDWR | O_CREAT, 0600);
	char buffer[32];

	if (mkfifo("nvidiactl", 0600))
		abort();
	start(open_late, 1, 0);
	open("nvidiactl", O_RDONLY);
	for (long i = 0; i < n; i++)
		ioctl(fd, _IOWR('F', 0x2b, buffer), buffer);
}

static void *drain(void *unused)
{
	int fd = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};
	char c;

	epoll_ctl(fd, EPOLL_CTL_ADD, fds[0], &event);
	do
		epoll_wait(fd, &event, 1, -1);
	while (read(fds[0], &c, 1) == 1);
	return unused;
}

static void *feed(void *unused)
{
	for (long i = 0; i < n; i++) {
		if (write(fds[1], "x", 1) != 1)
			abort();
		usleep(1000);
	}
	close(fds[1]);
	return unused;
}

static void healthy(void)
{
	pthread_t feeder;

	if (pipe(fds) || pthread_create(&feeder, NULL, feed, NULL))
		abort();
	start(drain, 1, 1);
	pthread_join(feeder, NULL);
}

uint32_t several, one;

/* By number: headers are older than the calls. */
static void futex2(void)
{
	enum { SYS_WAITV = 449, SYS_WAIT = 455, SIZE_U32 = 2, PRIVATE = 128 };
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} waiter = {.address = (uintptr_t)&several, .flags = SIZE_U32 | PRIVATE};

	for (long i = 0; i < 2 * n; i++) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (i < n)
			syscall(SYS_WAITV, &waiter, 1, 0, &until, CLOCK_MONOTONIC);
		else
			syscall(SYS_WAIT, &one, 0UL, ~0U, SIZE_U32 | PRIVATE, &until,
				CLOCK_MONOTONIC);
		if (errno == ENOSYS)
			exit(1);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{"storm", storm},
		{"abi", abi},
		{"exec-thread", exec_thread},
		{"threads", threads},
		{"fds", many_fds},
		{"vforks", vforks},
		{"blocked", blocked},
		{"maps", maps},
		{"yields", yields},
		{"writes", writes},
		{"polls", polls},
		{"missing", missing},
		{"failing", failing},
		{"syncs", syncs},
		{"accepts", accepts},
		{"futex2", futex2},
		{"lock", lock},
		{"healthy", healthy},
		{"shared-lock", shared_lock},
		{"pi-lock", pi_lock},
		{"deadlock", deadlock},
		{"gpu", gpu},
	};

	n = argc > 2 ? atol(argv[2]) : 1000;
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i].name, argv[1])) {
			all[i].run();
			return 0;
		}
	fprintf(stderr, "usage: syscalls WHAT [N]\n");
	return 2;
}
