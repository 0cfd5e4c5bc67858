/* SPDX-License-Identifier: BSD-2-Clause */
/* A jitdump and the names of all that it loads. */
#include "fuzz.h"

#include <inspect/jitdump.h>

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	CLEANUP(closep) int fd = fuzz_file(v, n);
	CLEANUP(strbuf_release) struct strbuf name = {0};
	const char *problem = "";
	jit_loads loads = {0};

	if (jitdump_read(fd, &loads, &problem) == -EBADMSG)
		fuzz_touch(problem, strlen(problem));
	for (size_t i = 0; i < loads.n; i++) {
		if (loads.v[i].start_va >= loads.v[i].end_va)
			abort();
		if (!jitdump_name(fd, &loads.v[i], &name))
			fuzz_touch(strbuf_str(&name), name.n);
	}
	array_release(&loads);
	return 0;
}
