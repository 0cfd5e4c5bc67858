/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's list of functions. */
#include "fuzz.h"

#include "../../src/symbol/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	struct kallsyms k = {0};

	if (kallsyms_parse((const char *)v, n, &k))
		return 0;
	for (size_t i = 0; i < k.v.n; i++) {
		const struct kallsym *s = kallsyms_find(&k, k.v.v[i].address);

		if (!s)
			continue;
		fuzz_touch(k.text + s->name, s->name_n);
		fuzz_touch(k.text + s->module, s->module_n);
	}
	kallsyms_release(&k);
	return 0;
}
