/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/kernel_names.h>

#include "kallsyms.h"

#include <inspect/procfs.h>

struct kernel_names {
	struct strbuf text;
	struct kallsyms symbols;
};

int kernel_names_new(struct kernel_names **ret)
{
	struct kernel_names *k = calloc(1, sizeof(*k));
	int err = k ? file_read("/proc/kallsyms", KALLSYMS_BYTES_MAX, &k->text) : -ENOMEM;

	if (!err)
		err = kallsyms_parse(strbuf_str(&k->text), k->text.n, &k->symbols);
	if (err) {
		kernel_names_free(k);
		return err;
	}
	*ret = k;
	return 0;
}

void kernel_names_free(struct kernel_names *k)
{
	if (!k)
		return;
	kallsyms_release(&k->symbols);
	strbuf_release(&k->text);
	free(k);
}

void kernel_names_put(const struct kernel_names *k, uint64_t va, struct strbuf *out)
{
	const struct kallsym *s = k->symbols.hidden ? NULL : kallsyms_find(&k->symbols, va);
	const char *text = k->symbols.text;

	if (s && s->module_n)
		strbuf_add(out, text + s->module, s->module_n);
	else
		strbuf_puts(out, "[kernel]");
	if (s)
		strbuf_printf(out, "(%.*s+0x%llx)", (int)s->name_n, text + s->name,
			      (unsigned long long)(va - s->address));
	strbuf_printf(out, " [0x%llx]", (unsigned long long)va);
}
