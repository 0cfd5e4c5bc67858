/* SPDX-License-Identifier: BSD-2-Clause */
/* The section of names in a recording. */
#include "fuzz.h"

#include <inspect/saved_names.h>

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	struct dso d = {.kind = DSO_ELF, .path = (char *)"/a", .fd = -1};
	struct saved_names *s = NULL;

	if (saved_names_decode(v, n, &s))
		return 0;
	for (uint64_t loc = 0; loc < 64; loc++) {
		const struct saved_name *names;
		size_t found = saved_names_find(s, &d, loc, &names);

		for (size_t i = 0; i < found; i++) {
			fuzz_touch(names[i].name, strlen(names[i].name));
			fuzz_touch(names[i].module, strlen(names[i].module));
			fuzz_touch(names[i].file, strlen(names[i].file));
		}
	}
	saved_names_free(s);
	return 0;
}
