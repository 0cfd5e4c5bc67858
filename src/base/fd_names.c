/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <inspect/clock.h>
#include <inspect/fd_names.h>
#include <inspect/hashmap.h>
#include <inspect/intern.h>
#include <inspect/procfs.h>
#include <limits.h>

#define SOCKETS_MAX (1U << 20)
#define NAMESPACES_MAX 64
#define REREAD_NS (200 * NSEC_PER_MSEC)
/* A socket that had no other end when the table was read may have one by now. */
#define UNCONNECTED_REREAD_NS NSEC_PER_SEC
#define NO_NAMESPACE UINT32_MAX

struct socket_name {
	uint64_t inode;
	uint32_t namespace; /* index in namespaces */
	uint32_t text;      /* in strings */
};

struct net_namespace {
	uint32_t link; /* "net:[4026531840]" in strings */
	uint64_t read_ns;
};

struct fd_names {
	struct intern strings;
	struct hashmap by_inode;
	ARRAY(struct socket_name) sockets;
	ARRAY(struct net_namespace) namespaces;
};

int fd_names_new(struct fd_names **ret)
{
	CLEANUP(fd_names_freep) struct fd_names *n = calloc(1, sizeof(*n));

	if (!n || intern_init(&n->strings))
		return -ENOMEM;
	*ret = TAKE_PTR(n);
	return 0;
}

void fd_names_free(struct fd_names *n)
{
	if (!n)
		return;
	intern_release(&n->strings);
	hashmap_release(&n->by_inode);
	array_release(&n->sockets);
	array_release(&n->namespaces);
	free(n);
}

/* --- addresses -------------------------------------------------------------------------------- */

void inet_address_text(uint16_t family, const uint8_t *address, uint16_t port, struct strbuf *out)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(family, address, text, sizeof(text));
	strbuf_printf(out, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}

void inet_ends_text(const char *protocol, const struct inet_ends *e, struct strbuf *out)
{
	strbuf_printf(out, "%s ", protocol);
	inet_address_text(e->family, e->local, e->local_port, out);
	if (!e->remote_port)
		return;
	strbuf_puts(out, "->");
	inet_address_text(e->family, e->remote, e->remote_port, out);
}

/* "0100007F:1F90": words in the byte order of the machine, the port as a number. */
static bool parse_address(const char *s, uint16_t family, uint8_t out[16], uint16_t *ret_port)
{
	size_t words = family == AF_INET6 ? 4 : 1;
	unsigned port;

	for (size_t i = 0; i < words; i++, s += 8) {
		uint32_t word;

		if (sscanf(s, "%8x", &word) != 1 || strnlen(s, 8) < 8)
			return false;
		memcpy(out + 4 * i, &word, sizeof(word));
	}
	if (sscanf(s, ":%4x", &port) != 1)
		return false;
	*ret_port = (uint16_t)port;
	return true;
}

/* --- the tables of a namespace ---------------------------------------------------------------- */

struct socket_table {
	const char *file;
	const char *protocol;
	uint16_t family;
};

/* One line of /proc/net/tcp and its like: "sl: local remote st tx:rx tr:when retr uid to inode". */
static uint64_t parse_inet(const struct socket_table *t, const char *line, struct strbuf *out)
{
	struct inet_ends e = {.family = t->family};
	unsigned long long inode;
	char local[40], remote[40];

	if (sscanf(line, " %*u: %39s %39s %*x %*s %*s %*x %*u %*u %llu", local, remote, &inode) !=
	    3)
		return 0;
	if (!parse_address(local, t->family, e.local, &e.local_port) ||
	    !parse_address(remote, t->family, e.remote, &e.remote_port))
		return 0;
	inet_ends_text(t->protocol, &e, out);
	return inode;
}

/* "Num: RefCount Protocol Flags Type St Inode Path"; only bound ones have a path. */
static uint64_t parse_unix(const struct socket_table *t, const char *line, struct strbuf *out)
{
	unsigned long long inode;
	int used = 0;

	(void)t;
	if (sscanf(line, "%*x: %*x %*x %*x %*x %*x %llu %n", &inode, &used) != 1 || !used ||
	    !line[used])
		return 0;
	strbuf_puts(out, "unix:");
	strbuf_add(out, line + used, strcspn(line + used, "\n"));
	return inode;
}

static int add_socket(struct fd_names *n, uint32_t namespace, uint64_t inode, const char *text)
{
	struct socket_name s = {.inode = inode, .namespace = namespace};
	uint32_t at, i;
	int err = intern_puts(&n->strings, text, &s.text);

	if (err)
		return err;
	hashmap_each_candidate(&n->by_inode, hash_u64(inode), at, i)
		if (n->sockets.v[i].inode == inode && n->sockets.v[i].namespace == namespace) {
			n->sockets.v[i].text = s.text;
			return 0;
		}
	if (n->sockets.n >= SOCKETS_MAX)
		return 0; /* further ones are shown by their inode */
	err = array_push(&n->sockets, s);
	return err ? err
		   : hashmap_insert(&n->by_inode, hash_u64(inode), (uint32_t)(n->sockets.n - 1));
}

static int read_table(struct fd_names *n, pid_t pid, uint32_t namespace,
		      const struct socket_table *t)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	CLEANUP(fclosep) FILE *file = NULL;
	CLEANUP(freep) char *line = NULL;
	size_t size = 0;
	char path[64];
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", proc_living(pid), t->file);
	file = fopen(path, "re");
	if (!file)
		return 0; /* a kernel without it, or the process has ended */
	for (size_t lines = 0; !err && lines < SOCKETS_MAX && getline(&line, &size, file) > 0;
	     lines++) {
		uint64_t inode;

		strbuf_clear(&text);
		inode = t->family == AF_UNIX ? parse_unix(t, line, &text)
					     : parse_inet(t, line, &text);
		if (inode)
			err = text.failed ? -ENOMEM
					  : add_socket(n, namespace, inode, strbuf_str(&text));
	}
	return err;
}

/* The index of pid's namespace, new ones added; NO_NAMESPACE when it cannot be told. */
static uint32_t namespace_of(struct fd_names *n, pid_t pid)
{
	char path[64], link[64];
	struct net_namespace new = {0};
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", proc_living(pid));
	bytes = readlink(path, link, sizeof(link));
	if (bytes <= 0 || intern_add(&n->strings, link, (size_t)bytes, &new.link))
		return NO_NAMESPACE;
	for (uint32_t i = 0; i < n->namespaces.n; i++)
		if (n->namespaces.v[i].link == new.link)
			return i;
	if (n->namespaces.n >= NAMESPACES_MAX || array_push(&n->namespaces, new))
		return NO_NAMESPACE;
	return (uint32_t)n->namespaces.n - 1;
}

static const char *find_socket(const struct fd_names *n, uint32_t namespace, uint64_t inode)
{
	uint32_t at, i;

	hashmap_each_candidate(&n->by_inode, hash_u64(inode), at, i)
		if (n->sockets.v[i].inode == inode && n->sockets.v[i].namespace == namespace)
			return intern_str(&n->strings, n->sockets.v[i].text);
	return NULL;
}

static int reread(struct fd_names *n, pid_t pid, uint32_t namespace, uint64_t max_age_ns)
{
	static const struct socket_table tables[] = {
		{"tcp", "TCP", AF_INET},     {"tcp6", "TCP", AF_INET6},
		{"udp", "UDP", AF_INET},     {"udp6", "UDP", AF_INET6},
		{"udplite", "UDP", AF_INET}, {"udplite6", "UDP", AF_INET6},
		{"raw", "RAW", AF_INET},     {"raw6", "RAW", AF_INET6},
		{"icmp", "ICMP", AF_INET},   {"icmp6", "ICMP", AF_INET6},
		{"unix", "unix", AF_UNIX},
	};
	uint64_t now_ns = clock_now_ns();
	int err = 0;

	if (n->namespaces.v[namespace].read_ns &&
	    now_ns - n->namespaces.v[namespace].read_ns < max_age_ns)
		return 0;
	n->namespaces.v[namespace].read_ns = now_ns;
	for (size_t i = 0; !err && i < ARRAY_SIZE(tables); i++)
		err = read_table(n, pid, namespace, &tables[i]);
	return err;
}

int fd_names_socket(struct fd_names *n, pid_t pid, uint64_t inode, struct strbuf *out)
{
	uint32_t namespace = namespace_of(n, pid);
	const char *text = NULL;

	if (namespace != NO_NAMESPACE) {
		int err = 0;

		text = find_socket(n, namespace, inode);
		if (!text)
			err = reread(n, pid, namespace, REREAD_NS);
		else if (!strstr(text, "->") && !str_starts(text, "unix:"))
			err = reread(n, pid, namespace, UNCONNECTED_REREAD_NS);
		if (err)
			return err;
		text = find_socket(n, namespace, inode);
	}
	if (text)
		strbuf_puts(out, text);
	else
		strbuf_printf(out, "socket:[%llu]", (unsigned long long)inode);
	return out->failed ? -ENOMEM : 0;
}

/* --- links ------------------------------------------------------------------------------------ */

/* "[eventpoll]", or "inotify" on older kernels, to what everybody calls it. */
static void anonymous_text(const char *name, struct strbuf *out)
{
	size_t n = strlen(name);

	if (n > 2 && name[0] == '[' && name[n - 1] == ']') {
		name++;
		n -= 2;
	}
	if (n == strlen("eventpoll") && !memcmp(name, "eventpoll", n))
		strbuf_puts(out, "epoll");
	else
		strbuf_add(out, name, n);
}

int fd_names_link(struct fd_names *n, pid_t pid, const char *link, struct strbuf *out)
{
	unsigned long long inode;
	int used = 0;

	if (sscanf(link, "socket:[%llu]%n", &inode, &used) == 1 && used && !link[used])
		return fd_names_socket(n, pid, inode, out);
	if (str_starts(link, "anon_inode:"))
		anonymous_text(link + strlen("anon_inode:"), out);
	else
		strbuf_puts(out, link);
	return out->failed ? -ENOMEM : 0;
}

int fd_names_text(struct fd_names *n, pid_t pid, int fd, struct strbuf *out)
{
	char path[64], link[PATH_MAX];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", proc_living(pid), fd);
	bytes = readlink(path, link, sizeof(link) - 1);
	if (bytes < 0)
		return -errno;
	link[bytes] = '\0';
	return fd_names_link(n, pid, link, out);
}
