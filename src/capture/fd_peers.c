/* SPDX-License-Identifier: BSD-2-Clause */
#include "fd_peers.h"

#include <dirent.h>
#include <fcntl.h>
#include <inspect/array.h>
#include <inspect/procfs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

enum { FDS_MAX = 1 << 18, ANSWER_BYTES = 8192, FDINFO_BYTES_MAX = 4096, SHOWN = 2 };

/* A descriptor of a pipe or socket. */
struct end {
	uint64_t inode;
	pid_t pid;
	int fd;
	bool is_pipe;
};

struct fd_peers {
	bool listed;
	ARRAY(struct end) ends; /* by inode */
};

int fd_peers_new(struct fd_peers **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void fd_peers_free(struct fd_peers *p)
{
	if (!p)
		return;
	array_release(&p->ends);
	free(p);
}

/* --- listing ---------------------------------------------------------------------------------- */

static bool parse_link(const char *link, struct end *ret)
{
	unsigned long long inode;

	ret->is_pipe = str_starts(link, "pipe:[");
	if (sscanf(link, "pipe:[%llu]", &inode) != 1 && sscanf(link, "socket:[%llu]", &inode) != 1)
		return false;
	ret->inode = inode;
	return true;
}

/* living: proc_living() of the process. */
static bool read_end(pid_t pid, pid_t living, int fd, struct end *ret)
{
	char path[64], link[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", living, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = 0;
	*ret = (struct end){.pid = pid, .fd = fd};
	return parse_link(link, ret);
}

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int list_process(struct fd_peers *p, pid_t pid, size_t *left)
{
	pid_t living = proc_living(pid);
	char path[64];
	CLEANUP(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", living);
	dir = opendir(path);
	while (dir && *left && !err && (entry = readdir(dir))) {
		struct end end;

		if (entry->d_name[0] == '.')
			continue;
		--*left;
		if (read_end(pid, living, atoi(entry->d_name), &end))
			err = array_push(&p->ends, end);
	}
	return err;
}

static int by_inode(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : x->fd - y->fd;
}

static int list_all(struct fd_peers *p)
{
	struct pid_list pids = {0};
	size_t left = FDS_MAX;
	int err = proc_pids(&pids);

	p->listed = true;
	for (size_t i = 0; i < pids.n && left && !err; i++)
		err = list_process(p, pids.v[i], &left);
	array_release(&pids);
	if (p->ends.n)
		qsort(p->ends.v, p->ends.n, sizeof(*p->ends.v), by_inode);
	return err == -ENOMEM ? err : 0;
}

/* --- the other socket ------------------------------------------------------------------------- */

/* Of an answer of the kernel; 0: none. */
static uint64_t peer_of_answer(const struct nlmsghdr *h, size_t n)
{
	const struct unix_diag_msg *m;
	int left;

	if (!NLMSG_OK(h, n) || h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return 0;
	m = NLMSG_DATA(h);
	left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof(*m)));
	for (const struct rtattr *a = (const struct rtattr *)(m + 1); RTA_OK(a, left);
	     a = RTA_NEXT(a, left)) {
		uint32_t peer;

		if (a->rta_type != UNIX_DIAG_PEER || RTA_PAYLOAD(a) < sizeof(peer))
			continue;
		memcpy(&peer, RTA_DATA(a), sizeof(peer));
		return peer;
	}
	return 0;
}

/* sock_diag(7), of our own network namespace. 0: not known, or not a Unix socket. */
static uint64_t unix_peer(uint64_t inode)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req body;
	} request = {
		.head = {.nlmsg_len = sizeof(request),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = AF_UNIX,
			 .udiag_states = UINT32_MAX,
			 .udiag_ino = (uint32_t)inode,
			 .udiag_show = UDIAG_SHOW_PEER,
			 .udiag_cookie = {UINT32_MAX, UINT32_MAX}},
	};
	CLEANUP(closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	ssize_t n;

	if (fd < 0 || send(fd, &request, sizeof(request), 0) != (ssize_t)sizeof(request))
		return 0;
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	return n > 0 ? peer_of_answer((const struct nlmsghdr *)answer, (size_t)n) : 0;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* O_RDONLY, O_WRONLY or O_RDWR, or -1. */
static int access_mode(pid_t pid, int fd)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[64];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", proc_living(pid), fd);
	if (file_read(path, FDINFO_BYTES_MAX, &text))
		return -1;
	at = strstr(strbuf_str(&text), "flags:");
	return at ? (int)(strtoul(at + strlen("flags:"), NULL, 8) & O_ACCMODE) : -1;
}

static bool is_other_end(const struct end *mine, int mode, const struct end *e)
{
	int other;

	if (!mine->is_pipe)
		return true;
	if (e->pid == mine->pid && e->fd == mine->fd)
		return false;
	other = access_mode(e->pid, e->fd);
	return other >= 0 && (other == O_RDWR || other != mode);
}

static void add_end(const struct end *e, size_t n, struct strbuf *out)
{
	CLEANUP(strbuf_release) struct strbuf comm = {0};

	if (proc_comm_read(e->pid, 0, &comm))
		strbuf_clear(&comm);
	strbuf_printf(out, "%s%d %s (fd %d)", n ? ", " : "", e->pid, strbuf_str(&comm), e->fd);
}

int fd_peers_text(struct fd_peers *p, pid_t pid, int fd, struct strbuf *out)
{
	struct end mine;
	uint64_t inode;
	size_t low = 0, high, n = 0;
	int mode, err = p->listed ? 0 : list_all(p);

	if (err || !read_end(pid, proc_living(pid), fd, &mine))
		return err;
	mode = access_mode(pid, fd);
	inode = mine.is_pipe ? mine.inode : unix_peer(mine.inode);
	for (high = p->ends.n; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (p->ends.v[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	for (; inode && low < p->ends.n && p->ends.v[low].inode == inode; low++) {
		if (!is_other_end(&mine, mode, &p->ends.v[low]))
			continue;
		if (n < SHOWN)
			add_end(&p->ends.v[low], n, out);
		n++;
	}
	if (n > SHOWN)
		strbuf_printf(out, " and %zu more", n - SHOWN);
	return out->failed ? -ENOMEM : 0;
}
