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

static bool add_sockets(const char *root, pid_t pid, inode_list *l)
{
	char path[PATH_SIZE];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%d/fd", root, (int)pid);
	dir = opendir(path);
	if (!dir)
		return false;
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
	return true;
}

static const char v6_loopback[] = "00000000000000000000000001000000";

/* Any address, or loopback: as the kernel prints them, each 32 bits in the CPU's byte order. */
static bool is_local(const char *address)
{
	static const char *const known[] = {"00000000", "0100007F",
					    "00000000000000000000000000000000", v6_loopback,
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

static bool has_port(const struct engine_port *ports, size_t n, const struct engine_port *like)
{
	for (size_t i = 0; i < n; i++)
		if (ports[i].port == like->port && ports[i].pid == like->pid)
			return true;
	return false;
}

/* The ports that engines take by themselves are asked first. Source: their documentation. */
static unsigned rank_of(const struct engine_port *p)
{
	static const unsigned usual[] = {8000 /* vLLM, TensorRT-LLM */, 30000 /* SGLang */,
					 8002 /* Triton */, 8080 /* llama.cpp */, 3000 /* TGI */};

	for (unsigned i = 0; i < ARRAY_SIZE(usual); i++)
		if (p->port == usual[i])
			return ARRAY_SIZE(usual) - i;
	return 0;
}

static int compare_ports(const void *a, const void *b)
{
	unsigned x = rank_of(a), y = rank_of(b);

	return (x < y) - (x > y);
}

/* Of more than there is room for those that engines have by themselves are kept. */
static size_t add_port(struct engine_port *ports, size_t n, const struct engine_port *p)
{
	size_t at = n;

	for (size_t i = 0; n == ENGINE_PORTS_MAX && i < n; i++)
		if (rank_of(&ports[i]) < rank_of(at == n ? p : &ports[at]))
			at = i;
	if (at < ENGINE_PORTS_MAX)
		ports[at] = *p;
	return MIN(n + 1, (size_t)ENGINE_PORTS_MAX);
}

/* "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12345 …" */
static size_t add_ports(const char *root, pid_t pid, const char *file, const inode_list *sockets,
			struct engine_port like, struct engine_port *ports, size_t n)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char line[512];

	root_read(root, &text, TEXT_MAX, "/proc/%d/net/%s", (int)pid, file);
	for (const char *at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		char address[33];
		unsigned state;
		unsigned long inode;

		if (sscanf(line, " %*u: %32[0-9A-F]:%x %*s %x %*s %*s %*s %*u %*u %lu", address,
			   &like.port, &state, &inode) != 4 ||
		    state != STATE_LISTEN || !is_local(address) || !has_inode(sockets, inode) ||
		    has_port(ports, n, &like))
			continue;
		like.v6 = str_eq(address, v6_loopback);
		n = add_port(ports, n, &like);
	}
	return n;
}

/* "net:[4026531840]"; 0 not readable. */
static ssize_t read_network(const char *path, char *ret, size_t size)
{
	ssize_t n = readlink(path, ret, size);

	return n > 0 && (size_t)n < size ? n : 0;
}

/* Also when it cannot be told. pid 0: ours. */
static bool is_same_network(const char *root, pid_t pid, pid_t other)
{
	char path[PATH_SIZE], a[64], b[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "%s/proc/%d/ns/net", root, (int)pid);
	n = read_network(path, a, sizeof(a));
	snprintf(path, sizeof(path), "%s/proc/%d/ns/net", root, (int)other);
	m = read_network(other ? path : "/proc/self/ns/net", b, sizeof(b));
	return !n || !m || (n == m && memcmp(a, b, (size_t)n) == 0);
}

size_t engine_ports(const char *root, const pid_t *pids, size_t n, struct engine_port *ret_ports,
		    const char **ret_reason)
{
	size_t n_ports = 0;

	*ret_reason = "the target listens on no local port";
	for (size_t i = 0; i < n; i++) {
		CLEANUP(inodes_release) inode_list sockets = {0};
		struct engine_port like = {.pid = is_same_network(root, pids[i], 0) ? 0 : pids[i]};

		/* Of a network that others of the target are in too the first one will do. */
		for (size_t k = 0; like.pid && k < n_ports; k++)
			if (ret_ports[k].pid && is_same_network(root, ret_ports[k].pid, like.pid))
				like.pid = ret_ports[k].pid;
		if (!add_sockets(root, pids[i], &sockets))
			*ret_reason = "the target's descriptors are not readable for this user: "
				      "which ports it listens on is not known";
		n_ports = add_ports(root, pids[i], "tcp", &sockets, like, ret_ports, n_ports);
		n_ports = add_ports(root, pids[i], "tcp6", &sockets, like, ret_ports, n_ports);
	}
	if (n_ports)
		qsort(ret_ports, n_ports, sizeof(*ret_ports), compare_ports);
	return n_ports;
}
