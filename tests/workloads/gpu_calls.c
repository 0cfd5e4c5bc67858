/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_calls FOLDER STEP…: calls of a fake driver (fake_gpu). Steps, in the order given:
 *	answer DELAY_US STATUS_OFF STATUS ERRNO   how all later calls are answered
 *	answer hold:N …                           … when the file LOG.N is there
 *	open NODE                                 the device of later calls
 *	rm NR SIZE      OFF:VALUE,… COUNT         an ioctl of a struct with those 32-bit fields
 *	xfer NR SIZE OFF:VALUE,… COUNT            the same, by XFER_CMD
 *	uvm NUMBER COUNT   raw COMMAND COUNT     threads N (COUNT is in all)
 *	dup | fork | pass | pipe                  the descriptor becomes another one
 *	serial                                    later answers come one at a time
 *	gate FIFO | touch FILE                    waits for a line; makes a file
 *	from alpha | beta                         later calls are made by that function
 *	poll MS | set, epoll MS | mmap BYTES | leak BYTES | sleep MS
 *	unmap FROM BYTES                          of what was mapped by the last leak
 *	over FROM BYTES | cover FROM BYTES        other memory there, or the device again
 *	remap FROM BYTES NEW                      goes elsewhere
 *	place NODE                                opened and closed as a place (O_PATH)
 *	refuse ERRNO | try NODE                   opens fail from now on; one that may
 *	ready MS                                  a device that is waited for has something then
 *	cold NR SIZE OFF:VALUE,… COUNT            as rm, the struct in a page that is not in memory
 *	plain | others N | join | leave           a set of nothing; N other descriptors into it; the
 *	                                          device into it, out of it
 *	nest | move | drop | shut                 it goes into a new set, which is the set now; its
 *	                                          descriptor becomes another one; it is closed; the
 *	                                          device is
 * Prints "call ns" for each rm call with `threads` or `from`: what it took as seen here.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_gpu.h"

static const char *folder;
static int fd = -1;
static int n_threads = 1;
static int set = -1;
static char *mapped;
static struct fake_answer answers;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int open_node(const char *node)
{
	char path[256];
	int got;

	snprintf(path, sizeof(path), "%s%s%s", node[0] == '/' ? "" : folder,
		 node[0] == '/' ? "" : "/", node);
	got = open(path, O_RDWR);
	if (got < 0) {
		perror(path);
		exit(1);
	}
	return got;
}

static void fill(unsigned char *bytes, char *fields)
{
	for (char *at = strtok(fields, ","); at; at = strtok(NULL, ",")) {
		char *colon = strchr(at, ':');
		uint32_t value = (uint32_t)strtoul(colon + 1, NULL, 0);

		memcpy(bytes + atoi(at), &value, 4);
	}
}

enum { BYTES_MAX = 16384 }; /* more than any struct has */

struct job {
	unsigned command;
	int fd, count;
	size_t n_bytes;
	unsigned char bytes[BYTES_MAX];
};

/* In place of a function, so that whoever uses it is who calls. */
#define MAKE_CALLS(job, told)                                                                      \
	do {                                                                                       \
		for (int i_ = 0; i_ < (job)->count; i_++) {                                        \
			unsigned char bytes[BYTES_MAX];                                            \
			uint64_t start_ns = now_ns();                                              \
                                                                                                   \
			memcpy(bytes, (job)->bytes, (job)->n_bytes);                               \
			ioctl((job)->fd, (job)->command, bytes);                                   \
			if (told)                                                                  \
				printf("call %llu\n", (unsigned long long)(now_ns() - start_ns));  \
		}                                                                                  \
	} while (0)

static void *run_job(void *arg)
{
	const struct job *job = arg;

	MAKE_CALLS(job, n_threads > 1);
	return NULL;
}

/* Two places that calls come from. */
__attribute__((noinline)) static void alpha(const struct job *job)
{
	MAKE_CALLS(job, 1);
}

__attribute__((noinline)) static void beta(const struct job *job)
{
	MAKE_CALLS(job, 1);
}

static void (*from)(const struct job *);

static void run_threads(struct job *job)
{
	pthread_t threads[64];

	if (from) {
		from(job);
		return;
	}
	job->count /= n_threads;
	for (int i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, run_job, job);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
}

/* --- how a descriptor is come by -------------------------------------------------------------- */

static int pass(int what)
{
	char data = 0, control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&data, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2], got;

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &what, sizeof(int));
	sendmsg(pair[0], &m, 0);
	recvmsg(pair[1], &m, 0);
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	close(what);
	return got;
}

static void make_set(void)
{
	struct epoll_event e = {.events = EPOLLIN};

	set = epoll_create1(0);
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

/* Steps of one word about the set; false: it is none. */
static int change_set(const char *what)
{
	struct epoll_event e = {.events = EPOLLIN};
	int inner = set;

	if (!strcmp(what, "plain")) {
		set = epoll_create1(0);
	} else if (!strcmp(what, "join")) {
		epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
	} else if (!strcmp(what, "leave")) {
		epoll_ctl(set, EPOLL_CTL_DEL, fd, &e);
	} else if (!strcmp(what, "nest")) {
		set = epoll_create1(0);
		epoll_ctl(set, EPOLL_CTL_ADD, inner, &e);
	} else if (!strcmp(what, "move")) {
		set = pass(set);
	} else if (!strcmp(what, "drop")) {
		close(set);
	} else {
		return 0;
	}
	return 1;
}

static void wait_for(int ms, int with_epoll)
{
	struct pollfd p = {fd, POLLIN, 0};
	struct epoll_event e;

	if (!with_epoll) {
		poll(&p, 1, ms);
		return;
	}
	if (set < 0)
		make_set();
	epoll_wait(set, &e, 1, ms);
}

static void tell_driver(void)
{
	int null = open_node("null0");

	ioctl(null, FAKE_SET, &answers);
	close(null);
}

/* The struct lies in a file that nobody has read yet. */
static void call_cold(const struct job *job)
{
	int file = memfd_create("struct", 0);

	write(file, job->bytes, job->n_bytes);
	for (int i = 0; i < job->count; i++) {
		void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);

		ioctl(job->fd, job->command, at);
		munmap(at, 4096);
	}
	close(file);
}

static void remap(char *from, size_t n_bytes, size_t new_bytes)
{
	void *to = mmap(NULL, new_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	to = mremap(from, n_bytes, new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (to == MAP_FAILED) {
		perror("mremap");
		exit(1);
	}
	mapped = from == mapped ? to : mapped;
}

static int step(char **v)
{
	struct job job = {.fd = fd};
	const char *what = v[0];

	if (!strcmp(what, "answer")) {
		bool held = !strncmp(v[1], "hold:", 5);

		answers.delay_ns = held ? 0 : strtoull(v[1], NULL, 0) * 1000;
		answers.status_off = atoi(v[2]);
		answers.status = (uint32_t)strtoul(v[3], NULL, 0);
		answers.error = atoi(v[4]);
		answers.hold = held ? (uint32_t)atoi(v[1] + 5) : 0;
		tell_driver();
		return 5;
	}
	if (!strcmp(what, "refuse") || !strcmp(what, "ready")) {
		answers.open_error = what[2] == 'f' ? atoi(v[1]) : answers.open_error;
		answers.ready_ns =
			what[2] == 'a' ? strtoull(v[1], NULL, 0) * 1000000 : answers.ready_ns;
		tell_driver();
		return 2;
	}
	if (!strcmp(what, "try") || !strcmp(what, "place")) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", folder, v[1]);
		close(open(path, what[0] == 't' ? O_RDWR : O_PATH));
		return 2;
	}
	if (!strcmp(what, "open")) {
		fd = open_node(v[1]);
		return 2;
	}
	if (!strcmp(what, "rm") || !strcmp(what, "cold")) {
		job.command = _IOC(_IOC_READ | _IOC_WRITE, 'F', strtoul(v[1], NULL, 0), atoi(v[2]));
		fill(job.bytes, v[3]);
		job.n_bytes = (size_t)atoi(v[2]);
		job.count = atoi(v[4]);
		if (what[0] == 'c')
			call_cold(&job);
		else
			run_threads(&job);
		return 5;
	}
	if (!strcmp(what, "xfer")) {
		unsigned char real[256] = {0};
		uint64_t at = (uint64_t)(uintptr_t)real;
		uint32_t head[2] = {(uint32_t)strtoul(v[1], NULL, 0), (uint32_t)atoi(v[2])};

		fill(real, v[3]);
		memcpy(job.bytes, head, 8);
		memcpy(job.bytes + 8, &at, 8);
		job.n_bytes = 16;
		job.command = _IOC(_IOC_READ | _IOC_WRITE, 'F', 0xd3, 16);
		job.count = atoi(v[4]);
		run_job(&job);
		return 5;
	}
	if (!strcmp(what, "uvm") || !strcmp(what, "raw")) {
		job.command = (unsigned)strtoul(v[1], NULL, 0);
		job.n_bytes = BYTES_MAX;
		job.count = atoi(v[2]);
		run_job(&job);
		return 3;
	}
	if (!strcmp(what, "gate")) {
		char line[16];
		int gate = open(v[1], O_RDONLY);

		if (gate < 0 || read(gate, line, sizeof(line)) <= 0)
			exit(1);
		close(gate);
		return 2;
	}
	if (!strcmp(what, "touch")) {
		close(open(v[1], O_WRONLY | O_CREAT, 0600));
		return 2;
	}
	if (!strcmp(what, "from")) {
		from = !strcmp(v[1], "alpha") ? alpha : beta;
		return 2;
	}
	if (!strcmp(what, "threads")) {
		n_threads = atoi(v[1]);
		return 2;
	}
	if (!strcmp(what, "poll") || !strcmp(what, "epoll")) {
		wait_for(atoi(v[1]), what[0] == 'e');
		return 2;
	}
	if (!strcmp(what, "mmap") || !strcmp(what, "leak")) {
		size_t n = strtoul(v[1], NULL, 0);
		void *at = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);

		if (at != MAP_FAILED && what[0] == 'm')
			munmap(at, n);
		else
			mapped = at;
		return 2;
	}
	if (!strcmp(what, "unmap")) {
		munmap(mapped + strtol(v[1], NULL, 0), strtoul(v[2], NULL, 0));
		return 3;
	}
	if (!strcmp(what, "over") || !strcmp(what, "cover")) {
		bool anonymous = what[0] == 'o';

		mmap(mapped + strtol(v[1], NULL, 0), strtoul(v[2], NULL, 0), PROT_READ,
		     MAP_PRIVATE | MAP_FIXED | (anonymous ? MAP_ANONYMOUS : 0), anonymous ? -1 : fd,
		     0);
		return 3;
	}
	if (!strcmp(what, "remap")) {
		remap(mapped + strtol(v[1], NULL, 0), strtoul(v[2], NULL, 0),
		      strtoul(v[3], NULL, 0));
		return 4;
	}
	if (!strcmp(what, "sleep")) {
		usleep((unsigned)atoi(v[1]) * 1000);
		return 2;
	}
	if (!strcmp(what, "others")) {
		struct epoll_event e = {.events = EPOLLIN};

		for (int i = 0; i < atoi(v[1]); i++)
			epoll_ctl(set, EPOLL_CTL_ADD, eventfd(0, 0), &e);
		return 2;
	}
	if (change_set(what))
		return 1;
	if (!strcmp(what, "shut"))
		close(fd);
	else if (!strcmp(what, "serial"))
		answers.serial = 1;
	else if (!strcmp(what, "set"))
		make_set();
	else if (!strcmp(what, "dup"))
		fd = dup2(fd, 77);
	else if (!strcmp(what, "pass"))
		fd = pass(fd);
	else if (!strcmp(what, "fork")) {
		pid_t pid = fork();

		if (pid) {
			waitpid(pid, NULL, 0);
			exit(0);
		}
	} else if (!strcmp(what, "pipe")) {
		int p[2];

		pipe(p);
		fd = p[0];
	} else {
		fprintf(stderr, "gpu_calls: %s?\n", what);
		exit(2);
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct sched_param fifo = {.sched_priority = 9};

	setlinebuf(stdout); /* it may be killed */
	folder = argv[1];
	if (getenv("GPU_CALLS_FIFO"))
		sched_setscheduler(0, SCHED_FIFO, &fifo);
	for (int i = 2; i < argc;)
		i += step(argv + i);
	return 0;
}
