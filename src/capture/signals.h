/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CAPTURE_SIGNALS_H
#define INSPECT_CAPTURE_SIGNALS_H

/* SIGINT, SIGTERM and SIGHUP become readable on a descriptor instead of ending the tool: the first
 * ends the measurement and saves. A descriptor or -errno. */
int signals_open(void);

/* Back to normal: a second ^C while names are looked up ends the tool at once. */
void signals_close(int fd);

#endif
