/* SPDX-License-Identifier: BSD-2-Clause */
#include "pfm.h"

#include <dlfcn.h>
#include <inspect/perf_sampler.h>
#include <perfmon/pfmlib_perf_event.h>

static const struct {
	int pfm;
	int err;
} errors[] = {
	{PFM_SUCCESS, 0},
	{PFM_ERR_NOTSUPP, -ENOSYS},
	{PFM_ERR_NOMEM, -ENOMEM},
};

static int error_of(int pfm)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].pfm == pfm)
			return errors[i].err;
	return -ENOENT;
}

/* Never closed: it is used again for the next name. */
static void *library_open(void)
{
	return dlopen("libpfm.so.4", RTLD_LAZY | RTLD_LOCAL);
}

bool event_library_found(void)
{
	return library_open() != NULL;
}

int pfm_event_find(const char *text, struct perf_event_attr *attr)
{
	void *library = library_open();
	__typeof__(pfm_initialize) *initialize;
	__typeof__(pfm_get_os_event_encoding) *encode;
	struct perf_event_attr encoded = {.size = sizeof(encoded)};
	pfm_perf_encode_arg_t arg = {.attr = &encoded, .size = sizeof(arg)};
	int err;

	if (!library)
		return -ENOSYS;
	initialize = dlsym(library, "pfm_initialize");
	encode = dlsym(library, "pfm_get_os_event_encoding");
	if (!initialize || !encode)
		return -ENOSYS;
	err = initialize();
	if (err == PFM_SUCCESS)
		err = encode(text, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg);
	if (err != PFM_SUCCESS)
		return error_of(err);
	attr->type = encoded.type;
	attr->config = encoded.config;
	attr->config1 = encoded.config1;
	attr->config2 = encoded.config2;
	attr->exclude_user = encoded.exclude_user;
	attr->exclude_kernel = encoded.exclude_kernel;
	attr->exclude_hv = encoded.exclude_hv;
	attr->exclude_guest = 1;
	return 0;
}
