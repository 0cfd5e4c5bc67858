/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a descriptor of a process is, as text: a path, `TCP 127.0.0.1:80->127.0.0.1:4242` (looked up
 * in the network namespace of that process), `unix:/path`, `pipe:[123]`, `eventfd`, `epoll`. Names
 * are the target's: the raw bytes, to be escaped on their way out.
 */
#ifndef INSPECT_FD_NAMES_H
#define INSPECT_FD_NAMES_H

#include <inspect/strbuf.h>
#include <sys/types.h>

struct fd_names;

/* The tables of sockets are read when the first one is asked for, and again for one that is not in
 * them, at most five times a second. 0 or -ENOMEM. */
int fd_names_new(struct fd_names **ret);
void fd_names_free(struct fd_names *n);
static inline void fd_names_freep(struct fd_names **n)
{
	fd_names_free(*n);
}

/* Appends the name of pid's descriptor now. 0 or -errno: nothing was appended. */
int fd_names_text(struct fd_names *n, pid_t pid, int fd, struct strbuf *out);

/* Appends what the text of a link in /proc/PID/fd means. 0 or -ENOMEM. */
int fd_names_link(struct fd_names *n, pid_t pid, const char *link, struct strbuf *out);

/* Appends the socket of that inode in pid's network namespace, or `socket:[INODE]`. 0, -ENOMEM. */
int fd_names_socket(struct fd_names *n, pid_t pid, uint64_t inode, struct strbuf *out);

/* An internet socket's end points. Addresses in network order: 4 bytes, or 16 for AF_INET6. */
struct inet_ends {
	uint16_t family;
	uint16_t local_port, remote_port; /* host order; remote 0: not connected */
	uint8_t local[16], remote[16];
};

/* `TCP 127.0.0.1:80->127.0.0.1:4242`, `TCP [::1]:80`; protocol is "TCP", "UDP", … */
void inet_ends_text(const char *protocol, const struct inet_ends *e, struct strbuf *out);

/* `127.0.0.1:80`, `[::1]:80`, in the order of the network. */
void inet_address_text(uint16_t family, const uint8_t *address, uint16_t port, struct strbuf *out);

#endif
