/* SPDX-License-Identifier: BSD-2-Clause */
/* File systems: how full. Source: proc_pid_mountinfo(5), statvfs(3). */
#include "readings.h"

#include <sys/statvfs.h>

enum { FILESYSTEMS_MAX = 512, SEEN_MAX = 1024, TEXT_MAX = 8 << 20 };

/* Asking a server that does not answer would hang: it is not asked. */
static const char *const remote[] = {"nfs", "nfs4",   "cifs", "smb3",   "9p",    "ceph",
				     "afs", "lustre", "gpfs", "beegfs", "autofs"};
/* Nothing can be stored there, or as little as memory allows. */
static const char *const virtual[] = {
	"proc",      "sysfs",       "devtmpfs", "devpts",     "cgroup",   "cgroup2",   "securityfs",
	"debugfs",   "tracefs",     "configfs", "fusectl",    "mqueue",   "pstore",    "bpf",
	"hugetlbfs", "binfmt_misc", "nsfs",     "rpc_pipefs", "efivarfs", "selinuxfs", "squashfs",
	"iso9660",   "ramfs",       "erofs",    "overlay"};

static bool is_in(const char *const *list, size_t n, const char *type)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i], type))
			return true;
	return false;
}

/* \040 and the like, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		unsigned code;

		if (*s == '\\' && sscanf(s + 1, "%3o", &code) == 1 && code && code < 256 && s[1] &&
		    s[2] && s[3]) {
			*to++ = (char)code;
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static bool has_option(const char *options, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = options; at && *at;) {
		if (strncmp(at, name, n) == 0 && strchr(", \n", at[n]))
			return true;
		at = strchr(at, ',');
		at += at != NULL;
	}
	return false;
}

/* "36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/root rw,errors=remount-ro" */
static bool parse_mount(const char *line, struct filesystem *ret, unsigned device[2])
{
	char options[256], super[512] = "";
	const char *dash = strstr(line, " - ");

	*ret = (struct filesystem){.blocks_percent = NAN, .inodes_percent = NAN};
	if (!dash ||
	    sscanf(line, "%*u %*u %u:%u %*s %255s %255s", &device[0], &device[1], ret->point,
		   options) != 4 ||
	    sscanf(dash, " - %31s %*s %511s", ret->type, super) < 1)
		return false;
	unescape(ret->point);
	/* Mounted read-only by somebody, both say so; after an error the file system alone does. */
	ret->went_read_only = has_option(options, "rw") &&
			      (has_option(super, "ro") || has_option(super, "emergency_ro"));
	return true;
}

/* Layers of a container repeat the file system below, but for the root of our own. /dev/shm has a
 * row of its own. */
static bool is_left_out(const struct filesystem *f)
{
	return is_in(virtual, ARRAY_SIZE(virtual), f->type) || str_eq(f->point, "/dev/shm") ||
	       (str_eq(f->type, "overlay") && !str_eq(f->point, "/"));
}

static void ask(const char *root, pid_t pid, struct filesystem *f)
{
	char path[PATH_SIZE];
	struct statvfs fs;

	if (is_in(remote, ARRAY_SIZE(remote), f->type) || str_starts(f->type, "fuse")) {
		f->skipped = "on a server, which might not answer";
		return;
	}
	if (pid)
		snprintf(path, sizeof(path), "%s/proc/%d/root%s", root, (int)pid, f->point);
	else
		snprintf(path, sizeof(path), "%s%s", root, f->point);
	if (statvfs(path, &fs)) {
		f->skipped = "not reachable for this user";
		return;
	}
	/* As df: what root alone may use counts as used for the others. */
	f->blocks_percent = percent_of((double)(fs.f_blocks - fs.f_bfree),
				       (double)(fs.f_blocks - fs.f_bfree + fs.f_bavail));
	f->inodes_percent = percent_of((double)(fs.f_files - fs.f_ffree), (double)fs.f_files);
}

void filesystem_read(const char *root, pid_t pid, struct filesystem_reading *f)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	unsigned seen[SEEN_MAX][2];
	size_t n_seen = 0;
	char line[2048], who[16] = "self";

	if (pid)
		snprintf(who, sizeof(who), "%d", (int)pid);
	root_read(root, &text, TEXT_MAX, "/proc/%s/mountinfo", who);
	for (const char *at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		struct filesystem fs;
		unsigned device[2];
		size_t i = 0;

		if (!parse_mount(line, &fs, device) || is_left_out(&fs) ||
		    f->v.n >= FILESYSTEMS_MAX)
			continue;
		/* The same file system, mounted again. */
		while (i < n_seen && (seen[i][0] != device[0] || seen[i][1] != device[1]))
			i++;
		if (i < n_seen || n_seen == SEEN_MAX)
			continue;
		memcpy(seen[n_seen++], device, sizeof(device));
		ask(root, pid, &fs);
		/* What is mounted over another one is what is there. */
		for (i = 0; i < f->v.n && !str_eq(f->v.v[i].point, fs.point);)
			i++;
		if (i < f->v.n)
			f->v.v[i] = fs;
		else if (array_push(&f->v, fs))
			break;
	}
}

void filesystem_release(struct filesystem_reading *f)
{
	array_release(&f->v);
}

void filesystem_rows(const struct interval *i, struct use_report *r)
{
	for (size_t k = 0; k < i->now->filesystem.v.n; k++) {
		const struct filesystem *f = &i->now->filesystem.v.v[k];
		struct use_row *row = row_add(r, "host", "file system", f->point);
		const char *none = f->skipped ? f->skipped : "it has no size";

		row_put_or(r, row, "filesystem_used_percent", f->blocks_percent, none);
		if (!f->skipped && !isnan(f->inodes_percent))
			row_put(r, row, "inodes_used_percent", f->inodes_percent);
		row_put(r, row, "went_read_only", f->went_read_only);
	}
}
