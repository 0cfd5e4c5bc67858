/* SPDX-License-Identifier: BSD-2-Clause */
/* Mangled names of C++ and Rust, which come out of any file. */
#include "fuzz.h"

#include <inspect/symbolize.h>

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	CLEANUP(strbuf_release) struct strbuf out = {0};
	char name[4096];

	n = MIN(n, sizeof(name) - 1);
	memcpy(name, v, n);
	name[n] = '\0';
	if (symbol_demangle(name, &out))
		fuzz_touch(strbuf_str(&out), out.n);
	symbol_is_entry(name);
	return 0;
}
