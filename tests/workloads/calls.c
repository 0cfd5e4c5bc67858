/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one system call of each kind that is decoded, with arguments that a tracer must show. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALL(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

static void files(void)
{
	struct timespec times[2] = {{1, 2}, {0, UTIME_OMIT}};
	struct iovec out[3] = {{"ab", 2}, {"cd\n", 3}, {"\1\0011\377", 4}};
	char in[64], link[64];
	struct iovec back[2] = {{in, 4}, {in + 8, 40}};
	struct stat st;
	int fd = (int)CALL(openat, AT_FDCWD, "calls.tmp", O_RDWR | O_CREAT | O_TRUNC, 0640);

	CALL(openat, AT_FDCWD, "/no/such/file", O_RDONLY | O_CLOEXEC);
	CALL(writev, fd, out, 3);
	CALL(lseek, fd, 0, SEEK_SET);
	CALL(read, fd, in, 3);
	CALL(readv, fd, back, 2);
	CALL(pread64, fd, in, 5, 1);
	CALL(pwrite64, fd, "xyz", 3, 7);
	CALL(fsync, fd);
	CALL(fdatasync, fd);
	CALL(ftruncate, fd, 4);
	CALL(newfstatat, fd, "", &st, AT_EMPTY_PATH);
	CALL(newfstatat, AT_FDCWD, "/dev/null", &st, 0);
	CALL(newfstatat, AT_FDCWD, "/no/such", &st, AT_SYMLINK_NOFOLLOW);
	CALL(fcntl, fd, F_GETFL);
	CALL(fcntl, fd, F_SETFL, O_RDWR | O_APPEND | O_NONBLOCK);
	CALL(fcntl, fd, F_SETFD, FD_CLOEXEC);
	CALL(flock, fd, LOCK_EX | LOCK_NB);
	CALL(utimensat, fd, NULL, times, 0);
	CALL(dup, 99);
	CALL(close, fd);
	CALL(symlink, "target of it", "calls.link");
	CALL(readlink, "calls.link", link, sizeof(link));
	CALL(rename, "calls.link", "calls.new");
	CALL(unlink, "calls.new");
	CALL(unlinkat, AT_FDCWD, "calls.tmp", 0);
	CALL(mkdir, "calls.dir", 0750);
	CALL(unlinkat, AT_FDCWD, "calls.dir", AT_REMOVEDIR);
	CALL(access, "/etc/passwd", R_OK | W_OK);
	CALL(write, 99, "a\tb\n\"q\"\\ and more than thirty-two bytes of it", 46);
	CALL(ioctl, 99, FIONREAD, in);
	CALL(getcwd, in, 1);
}

static void memory(void)
{
	char *p = (char *)CALL(mmap, NULL, 8192, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CALL(mprotect, p, 4096, PROT_NONE);
	CALL(mprotect, p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	CALL(madvise, p, 8192, MADV_DONTNEED);
	CALL(madvise, p, 8192, MADV_HUGEPAGE);
	CALL(mremap, p, 8192, 4096, MREMAP_MAYMOVE);
	CALL(munmap, p, 4096);
	CALL(msync, p, 4096, MS_SYNC);
	CALL(membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static void waits(void)
{
	struct timespec ns = {0, 1000}, zero = {0, 0};
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 7}, got[4];
	uint64_t one = 1;
	struct pollfd polled[2];
	struct timeval tv = {0, 1000};
	int word = 5, ep, ev = (int)CALL(eventfd2, 0, EFD_NONBLOCK | EFD_CLOEXEC);
	fd_set set;

	CALL(futex, &word, FUTEX_WAIT_PRIVATE, 4, NULL);
	CALL(futex, &word, FUTEX_WAIT_PRIVATE, 5, &ns);
	CALL(futex, &word, FUTEX_WAKE_PRIVATE, 1);
	CALL(futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 4, NULL, NULL,
	     FUTEX_BITSET_MATCH_ANY);
	CALL(futex, &word, FUTEX_REQUEUE, 1, 2, &word);
	ep = (int)CALL(epoll_create1, EPOLL_CLOEXEC);
	CALL(epoll_ctl, ep, EPOLL_CTL_ADD, ev, &event);
	CALL(epoll_wait, ep, got, 4, 0);
	CALL(write, ev, &one, 8);
	CALL(epoll_wait, ep, got, 4, -1);
	polled[0] = (struct pollfd){.fd = ev, .events = POLLIN | POLLOUT};
	polled[1] = (struct pollfd){.fd = ep, .events = POLLIN};
	CALL(poll, polled, 2, 1000);
	CALL(read, ev, &one, 8);
	polled[0].events = POLLIN;
	CALL(poll, polled, 1, 1);
	CALL(ppoll, polled, 1, &zero, NULL, 8);
	FD_ZERO(&set);
	FD_SET(ev, &set);
	CALL(select, ev + 1, &set, NULL, NULL, &tv);
	CALL(nanosleep, &ns, NULL);
	CALL(clock_nanosleep, CLOCK_MONOTONIC, 0, &ns, NULL);
	CALL(clock_gettime, CLOCK_MONOTONIC, 1);
	CALL(sched_yield);
	CALL(close, ep);
	CALL(close, ev);
}

static void sockets(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/no/such/socket"};
	struct iovec iov = {"hello", 5};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	int one = 1, fds[2], fd = (int)CALL(socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 4;
	char buf[32];

	CALL(setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, 4);
	CALL(setsockopt, fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &one, 4);
	CALL(getsockopt, fd, SOL_SOCKET, SO_ERROR, &one, &size);
	CALL(bind, fd, &in, sizeof(in));
	CALL(listen, fd, 5);
	in.sin_port = htons(1);
	CALL(connect, fd, &in, sizeof(in));
	CALL(accept4, 99, NULL, NULL, SOCK_NONBLOCK);
	CALL(shutdown, fd, SHUT_RDWR);
	CALL(close, fd);
	fd = (int)CALL(socket, AF_UNIX, SOCK_DGRAM, 0);
	CALL(connect, fd, &un, 18);
	CALL(close, fd);
	CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, fds);
	CALL(sendto, fds[0], "abc", 3, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	CALL(recvfrom, fds[1], buf, sizeof(buf), 0, NULL, NULL);
	CALL(sendmsg, fds[0], &message, MSG_DONTWAIT);
	iov = (struct iovec){buf, sizeof(buf)};
	CALL(recvmsg, fds[1], &message, 0);
	CALL(close, fds[0]);
	CALL(close, fds[1]);
	CALL(pipe2, fds, O_CLOEXEC);
	CALL(close, fds[0]);
	CALL(close, fds[1]);
}

static void processes(void)
{
	uint64_t mask = 1 << (SIGUSR1 - 1) | 1 << (SIGCHLD - 1);
	char *argv[] = {"prog", "an arg", NULL}, *envp[] = {"A=b", NULL};
	struct rlimit64 limit;
	int status;
	pid_t child;

	CALL(rt_sigprocmask, SIG_BLOCK, &mask, NULL, 8);
	CALL(prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	CALL(execve, "/no/such/prog", argv, envp);
	CALL(kill, 0, 0);
	child = (pid_t)CALL(vfork);
	if (!child)
		CALL(exit_group, 3);
	CALL(wait4, child, &status, 0, NULL);
	CALL(wait4, -1, &status, WNOHANG, NULL);
	CALL(getpid);
}

int main(void)
{
	files();
	memory();
	waits();
	sockets();
	processes();
	return 0;
}
