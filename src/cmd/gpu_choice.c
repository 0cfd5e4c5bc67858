/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu_choice.h"

#include <inspect/result.h>
#include <inspect/shell_words.h>

/* --- options ---------------------------------------------------------------------------------- */

static int parse_device(void *value, const char *arg, struct diag *d)
{
	struct gpu_choice_options *o =
		(void *)((char *)value - offsetof(struct gpu_choice_options, devices));

	return diag_errno(d, array_push(&o->devices, arg), "--device");
}

#define OWN(field) offsetof(struct gpu_choice_options, field)
static const struct option options[] = {
	{.name = "device",
	 .arg = "PATH",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(devices),
	 .parse = parse_device,
	 .help = "with --gpu: this device instead, or all in a folder; other drivers' too"},
	{.name = "nvidia-version",
	 .arg = "VERSION",
	 .type = OPTION_STRING,
	 .offset = OWN(nvidia_version),
	 .help = "with --gpu: the driver's, where it cannot be read: 550.54.14"},
	{0},
};
const struct option_group gpu_choice_group = {"GPU devices", options};

const char *gpu_choice_given(const struct gpu_choice_options *o)
{
	return o->devices.n ? "--device" : o->nvidia_version ? "--nvidia-version" : NULL;
}

void gpu_choice_put(const struct gpu_choice_options *o, struct strbuf *out)
{
	for (size_t i = 0; i < o->devices.n; i++) {
		strbuf_puts(out, " --device ");
		shell_word_put(out, o->devices.v[i]);
	}
	if (!o->nvidia_version)
		return;
	strbuf_puts(out, " --nvidia-version ");
	shell_word_put(out, o->nvidia_version);
}

const char *gpu_choice_title(const struct gpu_choice_options *o)
{
	return o->devices.n ? "Time in the driver" : "Time in the GPU's driver";
}

/* --- what they choose ------------------------------------------------------------------------- */

static int no_device(const char *command, struct diag *d)
{
	diag_set(d, -ENODEV, "no NVIDIA driver is loaded here");
	diag_why(d, "/proc/devices has no nvidia");
	diag_fix(d, "inspect %s --device PATH …      (another driver's device)", command);
	return -ENODEV;
}

static int find_devices(const struct gpu_choice_options *o, const char *command,
			struct gpu_devices *ret, struct diag *d)
{
	int err = 0;

	for (size_t i = 0; i < o->devices.n && !err; i++)
		err = gpu_devices_add(ret, o->devices.v[i], d);
	if (err)
		return err;
	if (!o->devices.n) {
		err = gpu_devices_find("", ret);
		if (err)
			return diag_errno(d, err, "looking for GPUs");
	}
	return ret->entries.n ? 0
	       : o->devices.n ? diag_set(d, -ENODEV, "--device: no file there")
			      : no_device(command, d);
}

bool gpu_choice_has_nvidia(const struct gpu_choice *c)
{
	for (size_t i = 0; i < c->devices.entries.n; i++)
		if (c->devices.entries.v[i].device.class != GPU_CLASS_OTHER)
			return true;
	return false;
}

static int find_version(const char *given, struct gpu_choice *c, note_list *notes, struct diag *d)
{
	struct gpu_version *version = &c->version;

	if (given && gpu_version_parse(given, version))
		return diag_set(d, -EINVAL, "--nvidia-version %s: not of the form 550.54.14",
				given);
	if (!given && gpu_version_read("", version) && gpu_choice_has_nvidia(c))
		return note_add(notes,
				"the driver's version is not known: only what all versions have in "
				"common is decoded; --nvidia-version says it");
	if (version->assumed)
		return note_add(notes,
				"this driver is newer than the tables: the layout and the names "
				"of %s are assumed",
				gpu_tables_newest());
	if (version->number && !version->table)
		return note_add(notes,
				"this driver is older than the tables, which begin at %s: numbers "
				"stay numbers",
				gpu_tables_oldest());
	return 0;
}

int gpu_choose(const struct gpu_choice_options *o, const char *command, note_list *notes,
	       struct gpu_choice *ret, struct diag *d)
{
	int err = find_devices(o, command, &ret->devices, d);

	return err ? err : diag_errno(d, find_version(o->nvidia_version, ret, notes, d), "--gpu");
}

void gpu_choice_release(struct gpu_choice *c)
{
	gpu_devices_release(&c->devices);
}

const char *gpu_version_text(const struct gpu_version *v, struct result *r)
{
	if (!v->number)
		return "unknown";
	return result_text(r, "%u.%02u.%02u%s", v->number / 1000000, v->number / 1000 % 1000,
			   v->number % 1000, v->assumed ? " (assumed)" : "");
}
