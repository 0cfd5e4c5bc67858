/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded stacks and the output of perf script. */
#include "fuzz.h"

#include <inspect/text_input.h>

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	struct profile *p = NULL;
	struct diag d = {0};

	if (!profile_new(&p))
		text_read((const char *)v, n, "fuzz", p, &d);
	diag_release(&d);
	profile_free(p);
	return 0;
}
