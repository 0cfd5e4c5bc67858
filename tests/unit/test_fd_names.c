/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of this process, made here: what they are is known. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inspect/fd_names.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "skip.h"

static const char *name(struct fd_names *n, int fd, struct strbuf *out)
{
	strbuf_clear(out);
	assert_int_equal(fd_names_text(n, getpid(), fd, out), 0);
	return strbuf_str(out);
}

static void test_files(void **state UNUSED)
{
	CLEANUP(fd_names_freep) struct fd_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char want[64];
	struct stat st;
	int fds[2], fd = open("/etc/hostname", O_RDONLY);

	assert_int_equal(fd_names_new(&n), 0);
	assert_string_equal(name(n, fd, &text), "/etc/hostname");
	close(fd);
	assert_int_equal(fd_names_text(n, getpid(), fd, &text), -ENOENT);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fstat(fds[0], &st), 0);
	snprintf(want, sizeof(want), "pipe:[%lu]", (unsigned long)st.st_ino);
	assert_string_equal(name(n, fds[1], &text), want);
	close(fds[0]);
	close(fds[1]);
	fd = eventfd(0, 0);
	assert_string_equal(name(n, fd, &text), "eventfd");
	close(fd);
	fd = epoll_create1(0);
	assert_string_equal(name(n, fd, &text), "epoll");
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	assert_string_equal(name(n, fd, &text), "/dev/null");
	close(fd);
}

static void test_links(void **state UNUSED)
{
	CLEANUP(fd_names_freep) struct fd_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};

	assert_int_equal(fd_names_new(&n), 0);
	assert_int_equal(fd_names_link(n, getpid(), "socket:[18446744073709551615]", &text), 0);
	assert_string_equal(strbuf_str(&text), "socket:[18446744073709551615]");
	strbuf_clear(&text);
	assert_int_equal(fd_names_link(n, getpid(), "socket:[1]x", &text), 0);
	assert_string_equal(strbuf_str(&text), "socket:[1]x"); /* a file of that name */
	strbuf_clear(&text);
	assert_int_equal(fd_names_link(n, getpid(), "anon_inode:inotify", &text), 0);
	assert_string_equal(strbuf_str(&text), "inotify");
	strbuf_clear(&text);
	assert_int_equal(fd_names_link(n, getpid(), "anon_inode:[io_uring]", &text), 0);
	assert_string_equal(strbuf_str(&text), "io_uring");
	strbuf_clear(&text);
	assert_int_equal(fd_names_link(n, getpid(), "/memfd:a\nb (deleted)", &text), 0);
	assert_string_equal(strbuf_str(&text), "/memfd:a\nb (deleted)");
}

static int listener(int family, uint16_t *ret_port)
{
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	bool v6 = family == AF_INET6;
	socklen_t size = v6 ? sizeof(a6) : sizeof(a4);
	struct sockaddr *a = v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, a, size) || listen(fd, 4) || getsockname(fd, a, &size))
		return -1;
	*ret_port = ntohs(v6 ? a6.sin6_port : a4.sin_port);
	return fd;
}

static void check_tcp(int family, const char *host)
{
	CLEANUP(fd_names_freep) struct fd_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct sockaddr_storage own;
	socklen_t size = sizeof(own);
	char want[128];
	uint16_t port = 0;
	int fd = listener(family, &port), client, server;

	assert_int_equal(fd_names_new(&n), 0);
	assert_true(fd >= 0);
	snprintf(want, sizeof(want), "TCP %s:%u", host, port);
	assert_string_equal(name(n, fd, &text), want);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
	client = socket(family, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&own, size), 0);
	server = accept(fd, NULL, NULL);
	size = sizeof(own);
	assert_int_equal(getsockname(client, (struct sockaddr *)&own, &size), 0);
	/* Not in the table of a moment ago, which may be read again only after a while. */
	usleep(250000);
	snprintf(want, sizeof(want), "TCP %s:%u->%s:%u", host, port, host,
		 ntohs(((struct sockaddr_in *)&own)->sin_port));
	assert_string_equal(name(n, server, &text), want);
	close(client);
	close(server);
	close(fd);
}

static void test_tcp(void **state UNUSED)
{
	uint16_t port;
	int probe = listener(AF_INET6, &port);

	check_tcp(AF_INET, "127.0.0.1");
	if (probe >= 0) {
		close(probe);
		check_tcp(AF_INET6, "[::1]");
	}
}

static void test_unix(void **state UNUSED)
{
	CLEANUP(fd_names_freep) struct fd_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/inspect-fd-XXXXXX", want[128];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_non_null(mkdtemp(dir));
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/a b", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(fd_names_new(&n), 0);
	snprintf(want, sizeof(want), "unix:%s", a.sun_path);
	assert_string_equal(name(n, fd, &text), want);
	unlink(a.sun_path);
	rmdir(dir);
	close(fd);
}

/* The tables are those of the process's network namespace, not of ours. */
static void test_namespace(void **state)
{
	CLEANUP(fd_names_freep) struct fd_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	int up[2], down[2], ready[2] = {-1, 0};
	char want[64];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(up) | pipe(down), 0);
	pid = fork();
	if (!pid) {
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(5353)};
		int fd = unshare(CLONE_NEWNET) ? -1 : socket(AF_INET, SOCK_DGRAM, 0);
		int message[2] = {fd, 0};

		if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)))
			message[0] = -1;
		(void)!write(up[1], message, sizeof(message));
		(void)!read(down[0], message, 1);
		_exit(0);
	}
	assert_int_equal(read(up[0], ready, sizeof(ready)), sizeof(ready));
	assert_int_equal(fd_names_new(&n), 0);
	if (ready[0] >= 0) {
		snprintf(want, sizeof(want), "UDP 0.0.0.0:%d", 5353);
		assert_int_equal(fd_names_text(n, pid, ready[0], &text), 0);
		assert_string_equal(strbuf_str(&text), want);
	}
	(void)!write(down[1], "", 1);
	waitpid(pid, NULL, 0);
	if (ready[0] < 0)
		skip_because("no right to make a namespace");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),     cmocka_unit_test(test_links),
		cmocka_unit_test(test_tcp),       cmocka_unit_test(test_unix),
		cmocka_unit_test(test_namespace),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
