/* SPDX-License-Identifier: BSD-2-Clause */
/* On which ports processes listen. Source: proc_net(5), proc_pid_fd(5). */
#include "engine.h"

#include <dirent.h>

enum { SOCKETS_MAX = 4096, TEXT_MAX = 16 << 20, STATE_LISTEN = 0x0a };

typedef ARRAY(unsigned long) inode_list;

static void inodes_release(inode_list *l)
{
	array_release(l);
}

static void add_sockets(const char *root, pid_t pid, inode_list *l)
{
	char path[PATH_SIZE];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%d/fd", root, (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	for (struct dirent *e; l->n < SOCKETS_MAX && (e = readdir(dir));) {
		char link[64];
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		unsigned long inode;

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (sscanf(link, "socket:[%lu]", &inode) == 1 && array_push(l, inode))
			break;
	}
	closedir(dir);
}

/* Any address, or loopback: as the kernel prints them, each 32 bits in the CPU's byte order. */
static bool is_local(const char *address)
{
	static const char *const known[] = {"00000000", "0100007F",
					    "00000000000000000000000000000000",
					    "00000000000000000000000001000000",
					    "0000000000000000FFFF00000100007F"};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eq(address, known[i]))
			return true;
	return false;
}

static bool has_inode(const inode_list *l, unsigned long inode)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i] == inode)
			return true;
	return false;
}

static bool has_port(const unsigned *ports, size_t n, unsigned port)
{
	for (size_t i = 0; i < n; i++)
		if (ports[i] == port)
			return true;
	return false;
}

/* "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12345 …" */
static size_t add_ports(const char *root, pid_t pid, const char *file, const inode_list *sockets,
			unsigned *ports, size_t n)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char line[512];

	root_read(root, &text, TEXT_MAX, "/proc/%d/net/%s", (int)pid, file);
	for (const char *at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		char address[33];
		unsigned port, state;
		unsigned long inode;

		if (n == ENGINE_PORTS_MAX ||
		    sscanf(line, " %*u: %32[0-9A-F]:%x %*s %x %*s %*s %*s %*u %*u %lu", address,
			   &port, &state, &inode) != 4 ||
		    state != STATE_LISTEN || !is_local(address) || !has_inode(sockets, inode) ||
		    has_port(ports, n, port))
			continue;
		ports[n++] = port;
	}
	return n;
}

static bool is_our_network(const char *root, pid_t pid)
{
	char path[PATH_SIZE], ours[64], theirs[64];
	ssize_t a, b;

	snprintf(path, sizeof(path), "%s/proc/%d/ns/net", root, (int)pid);
	a = readlink("/proc/self/ns/net", ours, sizeof(ours));
	b = readlink(path, theirs, sizeof(theirs));
	return b < 0 || (a == b && memcmp(ours, theirs, (size_t)a) == 0);
}

size_t engine_ports(const char *root, const pid_t *pids, size_t n, unsigned *ret_ports,
		    const char **ret_reason)
{
	size_t n_ports = 0;

	*ret_reason = "the target listens on no local port";
	for (size_t i = 0; i < n && n_ports < ENGINE_PORTS_MAX; i++) {
		CLEANUP(inodes_release) inode_list sockets = {0};

		if (!is_our_network(root, pids[i])) {
			*ret_reason = "the target is in another network namespace: nsenter -n -t "
				      "PID inspect use --engine URL";
			continue;
		}
		add_sockets(root, pids[i], &sockets);
		n_ports = add_ports(root, pids[i], "tcp", &sockets, ret_ports, n_ports);
		n_ports = add_ports(root, pids[i], "tcp6", &sockets, ret_ports, n_ports);
	}
	return n_ports;
}
