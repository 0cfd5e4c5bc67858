/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles whose frames are named. */
#ifndef TEST_NAMING_H
#define TEST_NAMING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inspect/symbolize.h>

static inline struct profile *new_profile(void)
{
	struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	return p;
}

static inline uint32_t add_frame(struct profile *p, uint32_t dso, uint64_t loc,
				 enum frame_kind kind)
{
	struct frame f = {.loc = loc, .dso = dso, .kind = kind};
	uint32_t frame = 0;

	assert_int_equal(profile_frame(p, &f, &frame), 0);
	return frame;
}

static inline void symbolize(struct profile *p, bool local_host)
{
	struct symbolize_options o = {.local_host = local_host};

	assert_int_equal(symbolize_profile(p, &o), 0);
	assert_int_equal(p->first.n, p->frames.n + 1);
	assert_int_equal(p->first.v[p->frames.n], p->at.n);
}

static inline const struct symbol *symbol_of(const struct profile *p, uint32_t frame)
{
	assert_int_equal(p->first.v[frame + 1], p->first.v[frame] + 1);
	return &p->symbols.v[p->at.v[p->first.v[frame]].symbol];
}

static inline const char *name_of(const struct profile *p, uint32_t frame)
{
	return intern_str(&p->strings, symbol_of(p, frame)->name);
}

static inline bool has_note(const struct profile *p, const char *part)
{
	for (size_t i = 0; i < p->notes.n; i++)
		if (strstr(p->notes.v[i], part))
			return true;
	return false;
}

#endif
