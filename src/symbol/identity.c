/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity.h"
#include <inspect/procfs.h>
#include <sys/stat.h>

#define STATUS_BYTES_MAX (64U << 10)

int process_identity(pid_t pid, uint32_t *ret_ns_pid, uint32_t *ret_user)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *line;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	err = file_read(path, STATUS_BYTES_MAX, &text);
	if (err)
		return err;
	*ret_ns_pid = (uint32_t)pid; /* kernels before 4.1 do not say */
	*ret_user = NO_USER;
	line = strstr(strbuf_str(&text), "\nUid:");
	if (line)
		sscanf(line, "\nUid: %*u %u", ret_user);
	line = strstr(strbuf_str(&text), "\nNSpid:");
	if (line) {
		size_t n = strcspn(line + 1, "\n");
		const char *last = memrchr(line + 1, '\t', n);

		if (last)
			*ret_ns_pid = (uint32_t)strtoul(last, NULL, 10);
	}
	return 0;
}

int check_owner(int fd, uint32_t user)
{
	struct stat st;

	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && (st.st_uid == 0 || (user != NO_USER && st.st_uid == user)))
		return fd;
	close(fd);
	return -EPERM;
}
