/* SPDX-License-Identifier: BSD-2-Clause */
#include "flags.h"

const char *flag_choice(const struct flag_name *choices, uint64_t value)
{
	for (; choices && choices->name; choices++)
		if (choices->value == value)
			return choices->name;
	return NULL;
}

static void add(struct strbuf *out, bool *first, const char *name)
{
	strbuf_puts(out, *first ? "" : "|");
	strbuf_puts(out, name);
	*first = false;
}

void flags_text(const struct flag_table *t, uint64_t value, struct strbuf *out)
{
	const char *choice = flag_choice(t->choices, value & t->choice_mask);
	uint64_t left = choice ? value & ~t->choice_mask : value;
	bool first = true;
	char number[32];

	if (choice)
		add(out, &first, choice);
	for (const struct flag_name *bit = t->bits; bit && bit->name; bit++) {
		if (!bit->value || (left & bit->value) != bit->value)
			continue;
		add(out, &first, bit->name);
		left &= ~bit->value;
	}
	if (!left && !first)
		return;
	if (!left && t->zero) {
		add(out, &first, t->zero);
		return;
	}
	if (t->is_signed)
		snprintf(number, sizeof(number), "%d", (int)left);
	else
		snprintf(number, sizeof(number), left ? "0x%llx" : "%llu",
			 (unsigned long long)left);
	add(out, &first, number);
}
