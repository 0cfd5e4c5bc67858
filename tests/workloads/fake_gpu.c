/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -I/usr/include/fuse3 -D_FILE_OFFSET_BITS=64 -lfuse3 */
/*
 * fake_gpu FOLDER LOG: a folder with nvidiactl, nvidia0, nvidia-uvm, card0 and null0 that answer
 * ioctls as a driver would. What is to happen stands in the caller's struct, from byte 56 of 64 on
 * or in the number of the call, so that the client decides: see gpu_calls.c. Each ioctl's own
 * duration goes to LOG: "nr ns".
 */
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fake_gpu.h"

static const char *const names[] = {"nvidiactl", "nvidia0", "nvidia-uvm", "card0", "null0"};
static FILE *log_file;
static const char *log_path;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER,
		       driver_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_answer answer; /* set by FAKE_SET */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int find(const char *path)
{
	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		if (!strcmp(path + 1, names[i]))
			return i;
	return -1;
}

static int get_attr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	memset(st, 0, sizeof(*st));
	st->st_nlink = 1;
	st->st_mode = strcmp(path, "/") ? S_IFREG | 0666 : S_IFDIR | 0755;
	st->st_size = 1 << 20;
	return strcmp(path, "/") && find(path) < 0 ? -ENOENT : 0;
}

static int read_dir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
		    struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	(void)path, (void)off, (void)fi, (void)flags;
	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		fill(buf, names[i], NULL, 0, 0);
	return 0;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
	fi->fh = (uint64_t)find(path);
	if (answer.open_error && fi->fh != 4)
		return -answer.open_error;
	if (fi->fh == 1) /* a GPU is initialized at its first open */
		usleep(150000);
	return 0;
}

/* The driver's answer, into the struct. */
static int answer_to(struct fake_answer a, unsigned cmd, void *arg, void *data, uint64_t fh)
{
	if (fh == 2) { /* no size in the command: the caller's memory */
		struct iovec from = {&a.status, 4}, to = {(char *)arg + a.status_off, 4};

		if (a.status_off >= 0 &&
		    process_vm_writev(fuse_get_context()->pid, &from, 1, &to, 1, 0) != 4)
			return -EFAULT;
		return 0;
	}
	if (fh >= 3)
		return -ENOTTY;
	if (data && a.status_off >= 0 && a.status_off + 4 <= (int)_IOC_SIZE(cmd))
		memcpy((char *)data + a.status_off, &a.status, 4);
	return -a.error;
}

/* Until the file LOG.N is there. */
static void hold(uint32_t n)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.%u", log_path, n);
	while (access(path, F_OK))
		usleep(2000);
}

static int do_ioctl(const char *path, unsigned cmd, void *arg, struct fuse_file_info *fi,
		    unsigned flags, void *data)
{
	uint64_t start_ns = now_ns(), end_ns;
	struct fake_answer a = answer;
	struct timespec delay;
	int rc;

	(void)path, (void)flags;
	if (cmd == FAKE_SET) {
		memcpy(&answer, data, sizeof(answer));
		return 0;
	}
	delay = (struct timespec){(time_t)(a.delay_ns / 1000000000),
				  (long)(a.delay_ns % 1000000000)};
	if (a.serial)
		pthread_mutex_lock(&driver_lock);
	if (a.hold)
		hold(a.hold);
	else if (a.delay_ns)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &delay, NULL);
	if (a.serial)
		pthread_mutex_unlock(&driver_lock);
	if ((cmd & 0xff) == 0xd3 && fi->fh < 2) { /* XFER_CMD: the real struct is elsewhere */
		struct iovec from = {&a.status, 4}, to;
		uint64_t at;

		memcpy(&at, (char *)data + 8, 8);
		to = (struct iovec){(void *)(at + (uint64_t)a.status_off), 4};
		rc = process_vm_writev(fuse_get_context()->pid, &from, 1, &to, 1, 0) == 4 ? 0
											  : -EFAULT;
	} else {
		rc = answer_to(a, cmd, arg, data, fi->fh);
	}
	end_ns = now_ns();
	pthread_mutex_lock(&log_lock);
	fprintf(log_file, "%u %llu\n", cmd & 0xff, (unsigned long long)(end_ns - start_ns));
	fflush(log_file);
	pthread_mutex_unlock(&log_lock);
	return rc;
}

static int read_file(const char *path, char *buf, size_t n, off_t off, struct fuse_file_info *fi)
{
	(void)path, (void)off, (void)fi;
	memset(buf, 0, n);
	return (int)n;
}

static uint64_t ready_at_ns; /* 0: nobody has asked */

static void *tell(void *handle)
{
	usleep((unsigned)(answer.ready_ns / 1000));
	fuse_notify_poll(handle);
	fuse_pollhandle_destroy(handle);
	return NULL;
}

static int poll_file(const char *path, struct fuse_file_info *fi, struct fuse_pollhandle *handle,
		     unsigned *events)
{
	uint64_t now = now_ns();
	pthread_t thread;

	(void)path, (void)fi;
	*events = 0;
	pthread_mutex_lock(&log_lock);
	if (answer.ready_ns && ready_at_ns && now >= ready_at_ns) {
		*events = POLLIN;
		ready_at_ns = 0;
	} else if (answer.ready_ns && !ready_at_ns && handle) {
		ready_at_ns = now + answer.ready_ns;
		pthread_create(&thread, NULL, tell, handle);
		pthread_detach(thread);
		handle = NULL;
	}
	pthread_mutex_unlock(&log_lock);
	if (handle)
		fuse_pollhandle_destroy(handle);
	return 0;
}

static const struct fuse_operations operations = {
	.getattr = get_attr,
	.readdir = read_dir,
	.open = open_file,
	.ioctl = do_ioctl,
	.read = read_file,
	.poll = poll_file,
};

int main(int argc, char **argv)
{
	struct sched_param fifo = {.sched_priority = 10};
	char *fuse[] = {argv[0], argv[1], "-f", "-o", "allow_other"};

	if (argc != 3 || !(log_file = fopen(log_path = argv[2], "w")))
		return 2;
	/* What it sleeps for is what a call takes, on a busy machine too. */
	sched_setscheduler(0, SCHED_FIFO, &fifo);
	return fuse_main(5, fuse, &operations, NULL);
}
