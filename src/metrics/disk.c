/* SPDX-License-Identifier: BSD-2-Clause */
/* Disks. Source: Documentation/admin-guide/iostats.rst. */
#include "readings.h"

enum { DISKS_MAX = 4096, IOS_JUDGED = 5, TEXT_MAX = 8 << 20 };

/* 4.18 added discards, 5.5 flushes, behind these. */
static bool parse_disk(const char *line, struct disk *ret)
{
	double v[11];

	*ret = (struct disk){0};
	if (sscanf(line, "%*u %*u %63s", ret->name) != 1)
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = line_number(line, 3 + i);
		if (isnan(v[i]))
			return false;
	}
	ret->ios = v[0] + v[4];
	ret->io_ms = v[3] + v[7];
	ret->busy_ms = v[9];
	ret->queue_ms = v[10];
	return true;
}

/* Partitions repeat their disk, and have no entry of their own there. */
static bool is_whole(const char *root, const char *name)
{
	char path[PATH_SIZE], *at;

	snprintf(path, sizeof(path), "%s/sys/block/%s", root, name);
	/* A slash in a name is written as '!' there: cciss/c0d0. */
	for (at = path + strlen(path) - strlen(name); *at; at++)
		if (*at == '/')
			*at = '!';
	return access(path, F_OK) == 0;
}

/* SCSI counts in hexadecimal, NVMe not at all. */
static double errors_of(const char *root, const char *name)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	if (!root_read(root, &text, 64, "/sys/block/%s/device/ioerr_cnt", name))
		return NAN;
	return (double)strtoull(strbuf_str(&text), NULL, 16);
}

void disk_read(const char *root, struct disk_reading *d)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *at;
	char line[512];

	d->readable = root_read(root, &text, TEXT_MAX, "/proc/diskstats");
	for (at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		struct disk disk;

		/* One that never did anything, such as an empty loop device, is none. */
		if (d->disks.n >= DISKS_MAX || !parse_disk(line, &disk) || disk.ios <= 0 ||
		    !is_whole(root, disk.name))
			continue;
		disk.errors = errors_of(root, disk.name);
		if (array_push(&d->disks, disk))
			break;
	}
	pressure_read(root, "/proc/pressure/io", &d->pressure);
}

void disk_release(struct disk_reading *d)
{
	array_release(&d->disks);
}

static const struct disk *find_disk(const struct disk_reading *d, const char *name, size_t hint)
{
	if (hint < d->disks.n && str_eq(d->disks.v[hint].name, name))
		return &d->disks.v[hint];
	for (size_t i = 0; i < d->disks.n; i++)
		if (str_eq(d->disks.v[i].name, name))
			return &d->disks.v[i];
	return NULL;
}

static void disk_row(const struct interval *i, const struct disk *now, const struct disk *before,
		     struct use_report *r)
{
	struct use_row *row = row_add(r, "host", "disk", now->name);
	double ios = fmax(now->ios - before->ios, 0);
	double ms = i->seconds * 1000;
	struct use_value *v;

	row_put(r, row, "disk_busy_percent",
		fmin(percent_of(fmax(now->busy_ms - before->busy_ms, 0), ms), 100));
	v = row_put(r, row, "disk_await_ms",
		    ios > 0 ? fmax(now->io_ms - before->io_ms, 0) / ios : 0);
	if (v && ios < IOS_JUDGED)
		v->not_judged = report_text(r, "fewer than %d I/Os ended", IOS_JUDGED);
	row_put(r, row, "disk_queue", fmax(now->queue_ms - before->queue_ms, 0) / ms);
	v = row_put(r, row, "disk_ios_per_second", ios / i->seconds);
	if (v)
		v->text = "";
	row_put_or(r, row, "disk_errors", rate_of(now->errors, before->errors, 1),
		   "this driver counts none");
}

/* I/O in general: a wait may be for any of them. */
static void pressure_row(const struct interval *i, struct use_report *r)
{
	struct use_row *row = row_add(r, "host", "I/O", "");

	row_put_or(r, row, "io_pressure_percent",
		   pressure_percent(i->now->disk.pressure.some_us, i->before->disk.pressure.some_us,
				    i->seconds),
		   "this kernel has no pressure stall information (psi=1)");
}

void disk_rows(const struct interval *i, struct use_report *r)
{
	size_t rows = 0;

	for (size_t k = 0; k < i->now->disk.disks.n; k++) {
		const struct disk *now = &i->now->disk.disks.v[k];
		const struct disk *before = find_disk(&i->before->disk, now->name, k);

		if (!before)
			continue;
		disk_row(i, now, before, r);
		rows++;
	}
	if (!rows)
		row_lacks(r, row_add(r, "host", "disk", ""), "disk_busy_percent",
			  i->now->disk.readable ? "no disk has been used" : "no /proc/diskstats");
	pressure_row(i, r);
}
