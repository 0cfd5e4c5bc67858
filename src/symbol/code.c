/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of code that lay somewhere for a time: by jitdumps, and of BPF programs. */
#include "naming.h"

int naming_code(struct naming *w, const uint32_t *frames, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		const struct frame *f = &w->p->frames.v[frames[i]];
		const struct code *c = &w->p->codes.v[f->loc];
		struct intern_string name = w->p->strings.strings.v[c->name];
		const char *module = intern_str(&w->p->strings, c->module);
		uint32_t symbol;

		strbuf_clear(&w->text);
		if (!w->o->no_demangle && symbol_demangle(name.s, &w->text))
			name = (struct intern_string){w->text.v, (uint32_t)w->text.n};
		err = naming_symbol(w, name.s, name.n, module, f->kind, false, &symbol);
		if (!err)
			err = naming_set(w, frames[i], symbol);
	}
	return err;
}
