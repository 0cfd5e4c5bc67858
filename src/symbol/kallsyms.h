/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/kallsyms: functions of the kernel, its modules and BPF programs. */
#ifndef KALLSYMS_H
#define KALLSYMS_H

#include <inspect/array.h>
#include <inspect/strbuf.h>

#define KALLSYMS_BYTES_MAX (256U << 20)

struct kallsym {
	uint64_t address;
	uint32_t name; /* offset in the text */
	uint32_t name_n;
	uint32_t module; /* of "[ext4]", brackets included; the kernel itself: module_n 0 */
	uint32_t module_n;
};

struct kallsyms {
	const char *text;        /* borrowed */
	ARRAY(struct kallsym) v; /* by address; functions only */
	bool hidden;             /* there are symbols, and all addresses are zero */
};

/* Parses n bytes, which must outlive the table. Lines of another form are skipped.
 * 0, -EFBIG or -ENOMEM. */
int kallsyms_parse(const char *text, size_t n, struct kallsyms *ret);
void kallsyms_release(struct kallsyms *k);

/* The function at an address, or NULL. It reaches to the next one; the last of a module, or of the
 * kernel, to the end of the page after its own. */
const struct kallsym *kallsyms_find(const struct kallsyms *k, uint64_t address);

/* Why the addresses are zero, and what helps, by kallsyms_show_value() of the kernel. */
void kallsyms_explain_hidden(int64_t kptr_restrict, int64_t perf_event_paranoid,
			     struct strbuf *out);

#endif
