/* SPDX-License-Identifier: BSD-2-Clause */
/* Who has the other end of a pipe or of a Unix socket, on this host. */
#ifndef CAPTURE_FD_PEERS_H
#define CAPTURE_FD_PEERS_H

#include <inspect/strbuf.h>
#include <sys/types.h>

struct fd_peers;

/* Descriptors are listed when the first one is asked for, those of all processes that may be looked
 * at. 0 or -ENOMEM. */
int fd_peers_new(struct fd_peers **ret);
void fd_peers_free(struct fd_peers *p);
static inline void fd_peers_freep(struct fd_peers **p)
{
	fd_peers_free(*p);
}

/* Appends `4711 server (fd 5)`, and how many more there are. Nothing when nobody is known, or it is
 * another kind of file. 0 or -ENOMEM. */
int fd_peers_text(struct fd_peers *p, pid_t pid, int fd, struct strbuf *out);

#endif
