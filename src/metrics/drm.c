/* SPDX-License-Identifier: BSD-2-Clause */
/* GPUs of other makers. Sources: Documentation/gpu/drm-usage-stats.rst; for cards
 * Documentation/gpu/amdgpu/driver-misc.rst (gpu_busy_percent, mem_info_vram_*). */
#include "readings.h"

#include <dirent.h>

enum { FDS_MAX = 65536, CLIENTS_MAX = 256, CARDS_MAX = 64, TEXT_MAX = 65536 };

static bool is_drm(int dir, const char *fd)
{
	char link[64];
	ssize_t n = readlinkat(dir, fd, link, sizeof(link) - 1);

	if (n <= 0)
		return false;
	link[n] = '\0';
	return str_starts(link, "/dev/dri/");
}

static double bytes_of(const char *value)
{
	double v = line_number(value, 0);

	return strstr(value, "KiB") ? v * 1024 : strstr(value, "MiB") ? v * (1 << 20) : v;
}

static void take_engine(struct drm_client *c, const char *name, double ns)
{
	for (size_t i = 0; i < c->n_engines; i++)
		if (str_eq(c->engines[i].name, name))
			return;
	if (c->n_engines == DRM_ENGINES_MAX || isnan(ns))
		return;
	snprintf(c->engines[c->n_engines].name, sizeof(c->engines[0].name), "%.23s", name);
	c->engines[c->n_engines].capacity = 1;
	c->engines[c->n_engines++].ns = ns;
}

/* "drm-engine-render: 123 ns", "drm-engine-capacity-video: 2", "drm-memory-vram: 12 KiB" */
static void take_line(struct drm_client *c, const char *key, const char *value)
{
	static const char engine[] = "drm-engine-", capacity[] = "drm-engine-capacity-";

	if (str_eq(key, "drm-client-id"))
		c->id = (uint32_t)line_number(value, 0);
	else if (str_eq(key, "drm-driver"))
		sscanf(value, " %63s", c->driver);
	else if (str_eq(key, "drm-pdev"))
		sscanf(value, " %63s", c->device);
	else if (str_starts(key, "drm-memory-vram") || str_starts(key, "drm-resident-vram") ||
		 str_starts(key, "drm-memory-local"))
		c->memory_bytes = fmax(c->memory_bytes, bytes_of(value));
	else if (str_starts(key, capacity)) {
		for (size_t i = 0; i < c->n_engines; i++)
			if (str_eq(c->engines[i].name, key + sizeof(capacity) - 1))
				c->engines[i].capacity = fmax(line_number(value, 0), 1);
	} else if (str_starts(key, engine)) {
		take_engine(c, key + sizeof(engine) - 1, line_number(value, 0));
	}
}

/* Several descriptors may be one client. */
static bool has_client(const struct drm_reading *d, const struct drm_client *c)
{
	for (size_t i = 0; i < d->clients.n; i++)
		if (d->clients.v[i].id == c->id && str_eq(d->clients.v[i].device, c->device))
			return true;
	return false;
}

static void read_client(const char *root, pid_t pid, const char *fd, struct drm_reading *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct drm_client c = {0};
	char line[256];

	root_read(root, &text, TEXT_MAX, "/proc/%d/fdinfo/%s", (int)pid, fd);
	for (const char *at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		char *colon = strchr(line, ':');

		if (!colon)
			continue;
		*colon = '\0';
		take_line(&c, line, colon + 1);
	}
	if (c.driver[0] && !has_client(ret, &c))
		(void)array_push(&ret->clients, c);
}

static void read_clients(const char *root, pid_t pid, struct drm_reading *ret)
{
	char path[PATH_SIZE];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%d/fd", root, (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	for (struct dirent *e; n++ < FDS_MAX && ret->clients.n < CLIENTS_MAX && (e = readdir(dir));)
		if (is_drm(dirfd(dir), e->d_name))
			read_client(root, pid, e->d_name, ret);
	closedir(dir);
}

static void read_cards(const char *root, struct drm_reading *ret)
{
	for (int i = 0; i < CARDS_MAX; i++) {
		static const char dir[] = "/sys/class/drm/card";
		struct drm_card c = {
			.busy_percent = root_number(root, "%s%d/device/gpu_busy_percent", dir, i),
			.memory_used = root_number(root, "%s%d/device/mem_info_vram_used", dir, i),
			.memory_total =
				root_number(root, "%s%d/device/mem_info_vram_total", dir, i),
		};

		snprintf(c.name, sizeof(c.name), "card%d", i);
		if ((!isnan(c.busy_percent) || !isnan(c.memory_total)) &&
		    array_push(&ret->cards, c))
			return;
	}
}

void drm_read(const char *root, const pid_t *pids, size_t n, struct drm_reading *ret)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/sys/class/drm", root);
	if (access(path, F_OK))
		return;
	read_cards(root, ret);
	for (size_t i = 0; i < n; i++)
		read_clients(root, pids[i], ret);
}

void drm_release(struct drm_reading *d)
{
	array_release(&d->clients);
	array_release(&d->cards);
}

/* --- rows ------------------------------------------------------------------------------------- */

static const struct drm_client *find_client(const struct drm_reading *d, const struct drm_client *c)
{
	for (size_t i = 0; i < d->clients.n; i++)
		if (d->clients.v[i].id == c->id && str_eq(d->clients.v[i].device, c->device))
			return &d->clients.v[i];
	return NULL;
}

/* The busiest engine: they work at the same time. */
static double busiest(const struct interval *i, const struct drm_client *now, const char **ret_name)
{
	const struct drm_client *before = find_client(&i->before->drm, now);
	double most = before && now->n_engines ? 0 : NAN;

	*ret_name = "";
	for (size_t k = 0; before && k < MIN(now->n_engines, before->n_engines); k++) {
		double busy = 100 * rate_of(now->engines[k].ns, before->engines[k].ns, i->seconds) /
			      1e9 / now->engines[k].capacity;

		if (busy <= most)
			continue;
		most = busy;
		*ret_name = now->engines[k].name;
	}
	return most;
}

static void client_row(const struct interval *i, const struct drm_client *now, struct use_report *r)
{
	const char *engine;
	double busy = busiest(i, now, &engine);
	struct use_row *row =
		row_add(r, "process", "GPU",
			report_text(r, "%s %s client %u", now->driver, now->device, now->id));
	struct use_value *v = row_put_or(r, row, "drm_busy_percent", busy,
					 "this driver does not tell the time of its engines");

	if (v && !isnan(busy))
		v->text = report_text(r, "%s %.0f %%", engine, busy);
	v = row_put(r, row, "drm_memory_bytes", now->memory_bytes);
	if (v)
		v->text = report_text(r, "%.0f MiB", now->memory_bytes / (1 << 20));
}

void drm_rows(const struct interval *i, struct use_report *r)
{
	for (size_t k = 0; k < i->now->drm.cards.n; k++) {
		const struct drm_card *c = &i->now->drm.cards.v[k];
		struct use_row *row = row_add(r, "gpu", "GPU", c->name);

		row_put_or(r, row, "card_busy_percent", c->busy_percent, "not told by this driver");
		row_put_or(r, row, "card_memory_percent",
			   percent_of(c->memory_used, c->memory_total), "not told by this driver");
	}
	for (size_t k = 0; k < i->now->drm.clients.n; k++)
		client_row(i, &i->now->drm.clients.v[k], r);
}
