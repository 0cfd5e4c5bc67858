/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu_labels.h"

void gpu_labels_release(struct gpu_labels *l)
{
	array_release(&l->by_number);
	gpu_devices_release(&l->devices);
	strbuf_release(&l->text);
}

int gpu_labels_of_waits(struct gpu_labels *l)
{
	int err = gpu_devices_find("", &l->devices);

	if (err != -ENOMEM)
		err = gpu_devices_find_nodes("/dev", &l->devices);
	if (err || !l->devices.entries.n)
		return err;
	if (gpu_version_read("", &l->version))
		l->version = (struct gpu_version){0};
	l->own = (struct gpu_calls_config){.devices = &l->devices, .version = &l->version};
	l->config = &l->own;
	l->waits = true;
	return 0;
}

void gpu_call_put(const struct gpu_calls_config *config, const struct gpu_key *key,
		  struct strbuf *out)
{
	gpu_put_call(config->version, key, out);
	if (key->kind != GPU_IOCTL) {
		strbuf_putc(out, ' ');
		gpu_device_put(config->devices, key, out);
	}
	if (key->flags & GPU_BEFORE)
		strbuf_puts(out, " (since before the start)");
	if (gpu_call_failed(key)) {
		strbuf_puts(out, " = ");
		gpu_put_error(config->version, key, out);
	}
}

static void put_wait(struct gpu_labels *l, const struct gpu_key *key)
{
	strbuf_puts(&l->text, "[gpu: ");
	gpu_put_call(l->config->version, key, &l->text);
	strbuf_puts(&l->text, "] ");
	gpu_device_put(l->config->devices, key, &l->text);
}

static int remember(struct gpu_labels *l, size_t number, uint32_t label)
{
	int err = 0;

	while (l->by_number.n <= number && !err)
		err = array_push(&l->by_number, 0);
	if (!err)
		l->by_number.v[number] = label + 1;
	return err;
}

int gpu_labels_find(struct gpu_labels *l, struct offcpu_probe *probe, struct waits *w,
		    int32_t number, uint32_t *ret_label)
{
	struct gpu_key key;
	int err;

	if (number > 0 && (size_t)number < l->by_number.n && l->by_number.v[number]) {
		*ret_label = l->by_number.v[number] - 1;
		return 0;
	}
	err = offcpu_gpu_call(probe, number, &key);
	if (err && err != -ENOENT)
		return err;
	strbuf_clear(&l->text);
	if (err)
		strbuf_puts(&l->text, l->waits ? "[gpu: unknown]" : "unknown");
	else if (l->waits)
		put_wait(l, &key);
	else
		gpu_call_put(l->config, &key, &l->text);
	if (l->text.failed)
		return -ENOMEM;
	if (waits_label(w, strbuf_str(&l->text), WAIT_GPU, ret_label))
		return -ENOMEM;
	w->labels.v[*ret_label].is_call = !l->waits;
	w->labels.v[*ret_label].from_before = !err && key.flags & GPU_BEFORE && !l->waits;
	return err ? 0 : remember(l, (size_t)number, *ret_label);
}
