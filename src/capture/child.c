/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/capture.h>
#include <inspect/explain.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* What stands for its stdout and stderr; -1: as they are. */
struct child_fds {
	int out, err;
};

/*
 * The child waits in a read before its exec. When that read ends without a byte - because the
 * measurement could not be started or this tool died - it leaves without having run anything.
 */
static void child_main(char **argv, struct child_fds fds, int go_fd, int error_fd)
	__attribute__((noreturn));
static void child_main(char **argv, struct child_fds fds, int go_fd, int error_fd)
{
	sigset_t none;
	char go;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (read(go_fd, &go, 1) != 1)
		_exit(0);
	if (fds.out >= 0)
		dup2(fds.out, STDOUT_FILENO);
	if (fds.err >= 0)
		dup2(fds.err, STDERR_FILENO);
	execvp(argv[0], argv);
	err = errno;
	if (write(error_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(err == ENOENT ? 127 : 126);
}

int child_prepare(char **argv, bool stdout_taken, struct child *ret, struct diag *d)
{
	return child_prepare_to(argv, stdout_taken ? STDERR_FILENO : -1, -1, ret, d);
}

int child_prepare_to(char **argv, int stdout_fd, int stderr_fd, struct child *ret, struct diag *d)
{
	struct child_fds fds = {stdout_fd, stderr_fd};
	int go[2], error[2], err;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return diag_errno(d, -errno, "cannot start '%s'", argv[0]);
	if (pipe2(error, O_CLOEXEC) < 0) {
		err = -errno;
		close(go[0]);
		close(go[1]);
		return diag_errno(d, err, "cannot start '%s'", argv[0]);
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		child_main(argv, fds, go[0], error[1]);
	}
	err = pid < 0 ? -errno : 0;
	close(go[0]);
	close(error[1]);
	if (err) {
		close(go[1]);
		close(error[0]);
		return diag_errno(d, err, "cannot start '%s'", argv[0]);
	}
	*ret = (struct child){.pid = pid, .go_fd = go[1], .error_fd = error[0]};
	ret->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	ret->name = argv[0];
	return 0;
}

static void close_pipes(struct child *c)
{
	closep(&c->go_fd);
	closep(&c->error_fd);
	c->go_fd = c->error_fd = -1;
}

static void reap(struct child *c)
{
	while (wait4(c->pid, &c->status, 0, &c->usage) < 0)
		if (errno != EINTR) {
			c->status = 0;
			break;
		}
	c->reaped = true;
	closep(&c->pidfd);
	c->pidfd = -1;
}

static bool is_live_pid(const char *word)
{
	char path[64];

	if (!*word || word[strspn(word, "0123456789")])
		return false;
	snprintf(path, sizeof(path), "/proc/%.20s/stat", word);
	return access(path, F_OK) == 0;
}

int child_go(struct child *c, struct diag *d)
{
	int exec_err = 0;
	ssize_t n;

	if (write(c->go_fd, "g", 1) != 1)
		return diag_errno(d, -errno, "cannot start '%s'", c->name);
	/* Ends with the exec (close on exec), or brings its error. */
	do
		n = read(c->error_fd, &exec_err, sizeof(exec_err));
	while (n < 0 && errno == EINTR);
	close_pipes(c);
	if (n != sizeof(exec_err))
		return 0;
	reap(c);
	c->exec_failed = true;
	explain_exec(-exec_err, c->name, d);
	if (exec_err == ENOENT && is_live_pid(c->name))
		diag_fix(d, "-p %s      (the process of that number)", c->name);
	return -exec_err;
}

bool child_poll(struct child *c)
{
	pid_t pid;

	if (!c->pid || c->reaped)
		return true;
	do
		pid = wait4(c->pid, &c->status, WNOHANG, &c->usage);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	c->reaped = true;
	closep(&c->pidfd);
	c->pidfd = -1;
	return true;
}

void child_end(struct child *c)
{
	if (!c->pid || c->reaped)
		return;
	close_pipes(c);
	kill(c->pid, SIGTERM);
	for (int i = 0; i < 200 && !child_poll(c); i++)
		usleep(10 * 1000);
	if (!c->reaped)
		kill(c->pid, SIGKILL);
	if (!c->reaped)
		reap(c);
}

void child_cancel(struct child *c)
{
	if (!c->pid || c->reaped)
		return;
	close_pipes(c);
	reap(c);
}

int child_exit_code(const struct child *c)
{
	if (!c->reaped)
		return 0;
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}
