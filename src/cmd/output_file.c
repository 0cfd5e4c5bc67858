/* SPDX-License-Identifier: BSD-2-Clause */
#include "output_file.h"

#include <fcntl.h>
#include <inspect/explain.h>
#include <inspect/perfdata.h>
#include <sys/stat.h>

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool output_is_stdout(const char *path)
{
	struct stat here, there;

	if (!path || str_eq(path, "-"))
		return true;
	/* To open it again would begin at its start, over what was written already. */
	return stat(path, &there) == 0 && fstat(STDOUT_FILENO, &here) == 0 &&
	       is_same(&here, &there);
}

bool output_is_recording(const char *path)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char head[16];
	ssize_t n = fd >= 0 ? read(fd, head, sizeof(head)) : 0;

	return n >= 8 && perfdata_is_header(head, (size_t)n);
}

static bool is_input(const struct stat *output, const char *input)
{
	struct stat st;

	if (!input)
		return false;
	return (str_eq(input, "-") ? fstat(STDIN_FILENO, &st) : stat(input, &st)) == 0 &&
	       S_ISREG(st.st_mode) && is_same(output, &st);
}

int output_file_check(const char *path, const char *const *inputs, size_t n, struct diag *d)
{
	struct stat st;

	if (output_is_stdout(path) || stat(path, &st))
		return 0;
	if (S_ISDIR(st.st_mode))
		return diag_errno(d, -EISDIR, "cannot write %s", path);
	for (size_t i = 0; i < n; i++) {
		if (!is_input(&st, inputs[i]))
			continue;
		diag_set(d, -EINVAL, "%s is the input: it is not overwritten", path);
		diag_fix(d, "another name for what is written");
		return -EINVAL;
	}
	if (!S_ISREG(st.st_mode) || !output_is_recording(path))
		return 0;
	diag_set(d, -EEXIST, "cannot write %s: there is a recording of that name", path);
	diag_why(d, "only `inspect record` replaces recordings (and keeps the old one as .old)");
	diag_fix(d, "another name for what is written, or first: mv %s %s.old", path, path);
	return -EEXIST;
}

static int cannot_write(const struct output_file *f, int err, struct diag *d)
{
	return diag_errno(d, err, "cannot write %s", f->path);
}

/* /dev/full, a FIFO: there is nothing to rename over. */
static bool is_in_place(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

int output_file_open(struct output_file *f, const char *path, struct diag *d)
{
	int fd, err = output_file_check(path, NULL, 0, d);

	*f = (struct output_file){.path = path};
	if (err)
		return err;
	if (output_is_stdout(path)) {
		f->path = "stdout";
		f->out = stdout;
		errno = 0;
		return 0;
	}
	if (is_in_place(path)) {
		f->out = fopen(path, "we");
		return f->out ? 0 : cannot_write(f, -errno, d);
	}
	if (asprintf(&f->part, "%s.%d.part", path, (int)getpid()) < 0) {
		f->part = NULL;
		return cannot_write(f, -ENOMEM, d);
	}
	fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	f->out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (f->out)
		return 0;
	err = explain_create(-errno, path, d);
	closep(&fd);
	free(f->part);
	*f = (struct output_file){0};
	return err;
}

int output_file_try(const char *path, struct diag *d)
{
	struct output_file f;
	int err;

	/* To open a FIFO for nothing would wait, or end whoever reads it. */
	if (output_is_stdout(path) || is_in_place(path))
		return 0;
	err = output_file_open(&f, path, d);
	if (!err)
		output_file_close(&f, -ECANCELED, NULL);
	return err;
}

int output_file_close(struct output_file *f, int err, struct diag *d)
{
	FILE *out = f->out;

	if (!out)
		return err;
	if (!err && (fflush(out) || ferror(out)))
		err = -EIO;
	/* Renderers only know that something failed. */
	if (err == -EIO && errno)
		err = -errno;
	if (out != stdout && fclose(out) && !err)
		err = -errno;
	if (!err && f->part && rename(f->part, f->path))
		err = -errno;
	if (err && f->part)
		unlink(f->part);
	if (err)
		cannot_write(f, err, d);
	free(f->part);
	*f = (struct output_file){0};
	return err;
}
