/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -ldl */
/*
 * A real GPU through CUDA's driver API, without its headers: allocates 64 MiB, copies, launches a
 * kernel from PTX N times, synchronises, frees. Exit 77: there is no CUDA here.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int fn();
enum { BYTES = 64 << 20 };

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry add(.param .u64 at) {\n"
			  ".reg .u64 %a; .reg .u32 %i, %v;\n"
			  "ld.param.u64 %a, [at]; cvta.to.global.u64 %a, %a;\n"
			  "mov.u32 %i, %tid.x; mad.wide.u32 %a, %i, 4, %a;\n"
			  "ld.global.u32 %v, [%a]; add.u32 %v, %v, 1; st.global.u32 [%a], %v; ret;\n}\n";

static void *lib;

static int call(const char *name, void *a, void *b, void *c)
{
	fn *f = (fn *)dlsym(lib, name);
	int rc = f ? f(a, b, c) : -1;

	if (rc) {
		fprintf(stderr, "%s: %d\n", name, rc);
		exit(rc == -1 || rc == 100 ? 77 : 1);
	}
	return rc;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100;
	unsigned *host = calloc(1, BYTES);
	void *context, *at, *module, *function;
	void *params[] = {&at};
	fn *launch;

	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib || !host)
		return 77;
	call("cuInit", 0, 0, 0);
	call("cuDevicePrimaryCtxRetain", &context, 0, 0);
	call("cuCtxSetCurrent", context, 0, 0);
	call("cuMemAlloc_v2", &at, (void *)(size_t)BYTES, 0);
	call("cuMemcpyHtoD_v2", at, host, (void *)(size_t)BYTES);
	call("cuModuleLoadData", &module, (void *)ptx, 0);
	call("cuModuleGetFunction", &function, module, "add");
	launch = (fn *)dlsym(lib, "cuLaunchKernel");
	for (int i = 0; i < n; i++)
		launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
	call("cuCtxSynchronize", 0, 0, 0);
	call("cuMemcpyDtoH_v2", host, at, (void *)(size_t)BYTES);
	call("cuMemFree_v2", at, 0, 0);
	printf("%u\n", host[0]);
	return host[0] == (unsigned)n ? 0 : 1;
}
