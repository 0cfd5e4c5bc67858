/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files are GPU devices. */
#include <dirent.h>
#include <inspect/gpu_tracing.h>
#include <inspect/procfs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
	DEVICES_BYTES_MAX = 65536,
	DEVICES_MAX = 512,
	GPUS_NAMED = 32, /* whose nodes' opens are known when they fail */
	MINOR_BITS = 20,
	CONTROL_MINOR = 255,
	MODESET_MINOR = 254
};

void gpu_devices_release(struct gpu_devices *d)
{
	for (size_t i = 0; i < d->names.n; i++)
		free(d->names.v[i]);
	array_release(&d->names);
	array_release(&d->entries);
	array_release(&d->paths);
}

/* A path that is too long is not known when it cannot be opened. */
static int add_path(struct gpu_devices *devices, const char *path, uint32_t minor)
{
	const struct gpu_device_entry *of = &devices->entries.v[devices->entries.n - 1];
	struct gpu_path_entry e = {.device = {.device = of->device, .minor = minor}};

	if (strlen(path) + 1 >= sizeof(e.path.text))
		return 0;
	strcpy(e.path.text, path);
	return array_push(&devices->paths, e);
}

static int add(struct gpu_devices *devices, struct gpu_device_key key, enum gpu_class class,
	       const char *name)
{
	struct gpu_device_entry e = {key, {(uint32_t)devices->names.n, (uint32_t) class}};
	char *copy = strdup(name);

	if (!copy || array_push(&devices->names, copy)) {
		free(copy);
		return -ENOMEM;
	}
	return array_push(&devices->entries, e);
}

/* --- NVIDIA's --------------------------------------------------------------------------------- */

/* What its nodes are called in /dev. */
static int add_usual_paths(struct gpu_devices *devices, enum gpu_class class)
{
	static const struct {
		const char *path;
		enum gpu_class class;
		uint32_t minor;
	} nodes[] = {{"/dev/nvidiactl", GPU_CLASS_RM, CONTROL_MINOR},
		     {"/dev/nvidia-modeset", GPU_CLASS_RM, MODESET_MINOR},
		     {"/dev/nvidia-uvm", GPU_CLASS_UVM, 0},
		     {"/dev/nvidia-uvm-tools", GPU_CLASS_UVM, 1}};
	char path[32];
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(nodes) && !err; i++)
		if (nodes[i].class == class)
			err = add_path(devices, nodes[i].path, nodes[i].minor);
	for (uint32_t i = 0; i < GPUS_NAMED && class == GPU_CLASS_RM && !err; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia%u", i);
		err = add_path(devices, path, i);
	}
	return err;
}

/* Lines such as "195 nvidia" under "Character devices:". */
int gpu_devices_find(const char *root, struct gpu_devices *ret)
{
	static const struct {
		const char *name;
		enum gpu_class class;
	} drivers[] = {{"nvidia", GPU_CLASS_RM},
		       {"nvidia-frontend", GPU_CLASS_RM},
		       {"nvidiactl", GPU_CLASS_RM},
		       {"nvidia-uvm", GPU_CLASS_UVM}};
	CLEANUP(strbuf_release) struct strbuf path = {0}, text = {0};
	char *line, *rest;
	int err;

	strbuf_printf(&path, "%s/proc/devices", root);
	err = path.failed ? -ENOMEM : file_read(strbuf_str(&path), DEVICES_BYTES_MAX, &text);
	if (err || !text.n)
		return err;
	rest = text.v;
	while (!err && (line = strsep(&rest, "\n")) && !str_starts(line, "Block")) {
		unsigned major;
		char name[64];

		if (sscanf(line, "%u %63s", &major, name) != 2 || major > 0xfff)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(drivers) && !err; i++) {
			if (!str_eq(name, drivers[i].name))
				continue;
			err = add(ret,
				  (struct gpu_device_key){.device = major << MINOR_BITS,
							  .any_minor = 1},
				  drivers[i].class, "");
			if (!err)
				err = add_usual_paths(ret, drivers[i].class);
		}
	}
	return err;
}

/* --- --device --------------------------------------------------------------------------------- */

static enum gpu_class class_of_name(const char *name)
{
	size_t digits;

	if (str_starts(name, "nvidia-uvm"))
		return GPU_CLASS_UVM;
	if (str_eq(name, "nvidiactl"))
		return GPU_CLASS_RM;
	if (!str_starts(name, "nvidia"))
		return GPU_CLASS_OTHER;
	digits = strspn(name + 6, "0123456789");
	return digits && !name[6 + digits] ? GPU_CLASS_RM : GPU_CLASS_OTHER;
}

static int add_file(struct gpu_devices *devices, const char *path, const struct stat *st)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct gpu_device_key key = {.inode = st->st_ino,
				     .device = major(st->st_dev) << MINOR_BITS | minor(st->st_dev)};
	CLEANUP(freep) char *real = realpath(path, NULL);
	int err;

	if (S_ISCHR(st->st_mode))
		key = (struct gpu_device_key){.device = major(st->st_rdev) << MINOR_BITS |
							minor(st->st_rdev)};
	err = add(devices, key, class_of_name(name), name);
	if (!err)
		err = add_path(devices, path, minor(st->st_rdev));
	return err || !real || str_eq(real, path) ? err
						  : add_path(devices, real, minor(st->st_rdev));
}

static int add_folder(struct gpu_devices *devices, const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	int err = dir ? 0 : -errno;

	while (!err && devices->names.n < DEVICES_MAX && (entry = readdir(dir))) {
		CLEANUP(strbuf_release) struct strbuf file = {0};
		struct stat st;

		strbuf_printf(&file, "%s/%s", path, entry->d_name);
		if (file.failed)
			err = -ENOMEM;
		else if (!stat(strbuf_str(&file), &st) &&
			 (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
			err = add_file(devices, strbuf_str(&file), &st);
	}
	if (dir)
		closedir(dir);
	return err;
}

int gpu_devices_add(struct gpu_devices *devices, const char *path, struct diag *d)
{
	struct stat st;
	int err = stat(path, &st) ? -errno : 0;

	if (!err)
		err = S_ISDIR(st.st_mode) ? add_folder(devices, path)
					  : add_file(devices, path, &st);
	return diag_errno(d, err, "--device %s", path);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static bool is_known(const struct gpu_devices *devices, const struct stat *st)
{
	for (size_t i = 0; i < devices->entries.n; i++)
		if (devices->entries.v[i].key.any_minor && S_ISCHR(st->st_mode) &&
		    devices->entries.v[i].key.device >> MINOR_BITS == major(st->st_rdev))
			return true;
	return false;
}

static int add_nodes(struct gpu_devices *devices, const char *folder, bool within)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int err = 0;

	while (dir && !err && devices->names.n < DEVICES_MAX && (entry = readdir(dir))) {
		CLEANUP(strbuf_release) struct strbuf path = {0};
		struct stat st;

		if (!str_starts(entry->d_name, "nvidia"))
			continue;
		strbuf_printf(&path, "%s/%s", folder, entry->d_name);
		if (path.failed)
			err = -ENOMEM;
		else if (stat(strbuf_str(&path), &st) || is_known(devices, &st))
			continue;
		else if (S_ISDIR(st.st_mode) && !within)
			err = add_nodes(devices, strbuf_str(&path), true);
		else if (!S_ISDIR(st.st_mode) && class_of_name(entry->d_name) != GPU_CLASS_OTHER)
			err = add_file(devices, strbuf_str(&path), &st);
	}
	if (dir)
		closedir(dir);
	return err;
}

int gpu_devices_find_nodes(const char *folder, struct gpu_devices *devices)
{
	return add_nodes(devices, folder, false);
}

/* --- names ------------------------------------------------------------------------------------ */

void gpu_device_put(const struct gpu_devices *devices, const struct gpu_key *key,
		    struct strbuf *out)
{
	if (key->device >= devices->names.n)
		strbuf_puts(out, "unknown");
	else if (devices->names.v[key->device][0])
		strbuf_puts(out, devices->names.v[key->device]);
	else if (key->class == GPU_CLASS_UVM)
		strbuf_puts(out, key->minor ? "nvidia-uvm-tools" : "nvidia-uvm");
	else if (key->minor == CONTROL_MINOR)
		strbuf_puts(out, "nvidiactl");
	else if (key->minor == MODESET_MINOR)
		strbuf_puts(out, "nvidia-modeset");
	else
		strbuf_printf(out, "nvidia%u", key->minor);
}
