/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that tracers get wrong, one kind for each mode; prints what is true of them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

/* A path that ends with the last byte before memory that is not mapped. */
static int edge(char **args)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *path;

	(void)args;
	munmap(p + PAGE, PAGE);
	path = p + PAGE - sizeof("/etc/hostname");
	memcpy(path, "/etc/hostname", sizeof("/etc/hostname"));
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY) < 0;
}

/* A path in a page that is not there when the call begins. */
static int lazy(char **args)
{
	int fd = open(args[0], O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *p;

	if (write(fd, "/etc/hostname", sizeof("/etc/hostname")) < 0)
		return 1;
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	return (int)syscall(SYS_openat, AT_FDCWD, p, O_RDONLY) < 0;
}

/* getpid through int $0x80, and mmap's number through it, which is another call there. */
static int int80(char **args)
{
	long result = 0;

	(void)args;
#if defined(__x86_64__)
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(20L)
			 : "memory", "r8", "r9", "r10", "r11");
#endif
	printf("getpid %ld %d\n", result, getpid());
	return 0;
}

static void *exec_true(void *args)
{
	execv("/bin/true", args);
	return NULL;
}

static int thread_exec(char **args)
{
	static char *const argv[] = {"true", NULL};
	pthread_t t;

	(void)args;
	pthread_create(&t, NULL, exec_true, (void *)argv);
	pthread_join(t, NULL);
	return 1;
}

/* One descriptor's number for three files after each other, and a relative path below two folders. */
static int names(char **args)
{
	int dir = open(args[0], O_RDONLY | O_DIRECTORY), fd;
	char buf[8];

	for (int i = 0; i < 3; i++) {
		char path[16];

		snprintf(path, sizeof(path), "file%d", i);
		fd = openat(dir, path, O_RDWR | O_CREAT, 0600);
		(void)!write(fd, path, 5);
		(void)!pread(fd, buf, 5, 0);
		close(fd);
	}
	unlinkat(dir, "file0", 0);
	if (chdir(args[0]))
		return 1;
	fd = open("./file1", O_RDONLY);
	unlink("file1");
	(void)!read(fd, buf, 1);
	close(fd);
	return 0;
}

/* Names that would act on a terminal. */
static int hostile(char **args)
{
	(void)args;
	prctl(PR_SET_NAME, "\x1b]0;owned\x07\n");
	open("/no\x1b[2J\n\x9b\xe2\x80\xae/\"file\"", O_RDONLY);
	(void)!write(99, "\x1b[31m\x00red\xff", 10);
	return 0;
}

/* Reads from a pipe that nobody writes to, for SECONDS; all the time, and begun after it was told so
 * on stdin. */
static int blocked(char **args)
{
	int fds[2], fd = open("/dev/null", O_RDONLY);
	char c;

	(void)args;
	if (pipe(fds))
		return 1;
	printf("%d\n", getpid());
	fflush(stdout);
	(void)!read(0, &c, 1);
	(void)!read(fds[0], &c, 1);
	return fd < 0;
}

/* PROCESSES times CALLS of getppid, nothing else from the first to the last. */
static int storm(char **args)
{
	int processes = atoi(args[0]), calls = atoi(args[1]);

	for (int i = 0; i < processes; i++)
		if (!fork()) {
			for (int j = 0; j < calls; j++)
				syscall(SYS_getppid);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}

/* Forks short children until it is ended. */
/* Sleeps of 1 ms below 60 calls of itself, one after the other. */
static __attribute__((noinline)) int descend(int n)
{
	int below = n ? descend(n - 1) + 1 : usleep(1000);

	__asm__ volatile("" : "+r"(below)); /* not a loop */
	return below;
}

static int deep(char **args)
{
	(void)args;
	while (descend(60) >= 0)
		;
	return 1;
}

static int forks(char **args)
{
	(void)args;
	for (;;) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		if (child > 0)
			waitpid(child, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(char **args);
	} modes[] = {{"edge", edge},
		     {"lazy", lazy},
		     {"int80", int80},
		     {"names", names},
		     {"thread-exec", thread_exec},
		     {"hostile", hostile},
		     {"blocked", blocked},
		     {"storm", storm},
		     {"forks", forks},
		     {"deep", deep}};

	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run(argv + 2);
	return 2;
}
