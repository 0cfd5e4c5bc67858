/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles for the tests of drawing, written as stacks of names. */
#ifndef TEST_FLAME_PROFILE_H
#define TEST_FLAME_PROFILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inspect/render.h>

static inline struct profile *new_profile(void)
{
	struct profile *p = NULL;
	uint32_t event;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_event(p, "cpu-clock", "ns", &event), 0);
	return p;
}

/* Names are told apart at '|'; "k:", "i:", "p:", "j:", "s:" before one give its kind. */
static inline uint32_t add_frame(struct profile *p, const char *name, size_t n)
{
	static const char letters[] = "nkipjs";
	const char *found = n > 2 && name[1] == ':' ? strchr(letters, name[0]) : NULL;
	size_t skip = found ? 2 : 0;
	uint32_t frame = UINT32_MAX;

	assert_int_equal(profile_named_frame(p, found ? (uint32_t)(found - letters) : 0,
					     name + skip, n - skip, "", 0, &frame),
			 0);
	return frame;
}

static inline void add_stack(struct profile *p, uint32_t event, const char *comm, const char *names,
			     uint64_t weight, uint64_t count)
{
	uint32_t stack = STACK_ROOT, thread;

	while (*names) {
		size_t n = strcspn(names, "|");

		assert_int_equal(profile_stack(p, stack, add_frame(p, names, n), &stack), 0);
		names += n + (names[n] == '|');
	}
	assert_int_equal(profile_thread(p, 1, 1, comm, strlen(comm), &thread), 0);
	assert_int_equal(profile_add(p, stack, thread, event, weight, count), 0);
}

/* What symbolization does with frames that have their names. */
static inline void name_frames(struct profile *p)
{
	assert_int_equal(array_push(&p->first, 0), 0);
	for (size_t i = 0; i < p->frames.n; i++) {
		struct symbol s = {.name = (uint32_t)p->frames.v[i].loc,
				   .module = (uint32_t)(p->frames.v[i].loc >> 32),
				   .kind = p->frames.v[i].kind};
		struct symbol_at at = {0};

		assert_int_equal(profile_symbol(p, &s, &at.symbol), 0);
		assert_int_equal(array_push(&p->at, at), 0);
		assert_int_equal(array_push(&p->first, (uint32_t)p->at.n), 0);
	}
}

static inline const char *node_name(const struct profile *p, const struct flame_node *n)
{
	if (n->symbol == UINT32_MAX)
		return "all";
	if (n->symbol & FLAME_COMM)
		return intern_str(&p->strings, n->symbol & ~FLAME_COMM);
	return intern_str(&p->strings, p->symbols.v[n->symbol].name);
}

/* What a function wrote into the FILE it was given; the caller frees it. */
#define WRITTEN(call)                                                                              \
	({                                                                                         \
		char *text_ = NULL;                                                                \
		size_t size_ = 0;                                                                  \
		FILE *out = open_memstream(&text_, &size_);                                        \
		assert_non_null(out);                                                              \
		assert_int_equal((call), 0);                                                       \
		fclose(out);                                                                       \
		text_;                                                                             \
	})

#endif
