/* SPDX-License-Identifier: BSD-2-Clause */
/* KSYMBOL events: which code lies at a kernel address when, and its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inspect/symbolize.h>

static void ksymbol(struct profile *p, uint64_t at_ns, uint64_t va, const char *name,
		    bool unregister)
{
	struct event e = {.type = EVENT_KSYMBOL,
			  .time_ns = at_ns,
			  .ksymbol = {.addr = va,
				      .len_bytes = 0x40,
				      .type = PERF_RECORD_KSYMBOL_TYPE_BPF,
				      .unregister = unregister,
				      .name = name}};

	assert_int_equal(profile_ksymbol(p, &e), 0);
}

static const char *code_at(const struct profile *p, uint64_t va)
{
	uint32_t code;

	if (profile_kernel_code(p, va, &code))
		return "";
	return intern_str(&p->strings, p->codes.v[code].name);
}

static void comes_and_goes(void **state)
{
	struct profile *p = NULL;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_string_equal(code_at(p, 0xffffffffc0001000), "");
	ksymbol(p, 10, 0xffffffffc0001000, "bpf_prog_1", false);
	ksymbol(p, 10, 0xffffffffc0001000, "bpf_prog_1", false); /* told twice */
	ksymbol(p, 10, 0xffffffffc0001040, "bpf_prog_2", false);
	assert_int_equal(p->codes.n, 2);
	assert_string_equal(code_at(p, 0xffffffffc0001000), "bpf_prog_1");
	assert_string_equal(code_at(p, 0xffffffffc000103f), "bpf_prog_1");
	assert_string_equal(code_at(p, 0xffffffffc0001040), "bpf_prog_2");
	assert_string_equal(code_at(p, 0xffffffffc0001080), "");
	ksymbol(p, 20, 0xffffffffc0001000, "bpf_prog_1", true);
	ksymbol(p, 20, 0xffffffffc0001000, "bpf_prog_1", true);
	assert_string_equal(code_at(p, 0xffffffffc0001000), "");
	assert_int_equal(p->codes.n, 2);
	assert_int_equal(p->codes.v[0].until_ns, 20);
	ksymbol(p, 30, 0xffffffffc0001000, "bpf_prog_3", false);
	assert_string_equal(code_at(p, 0xffffffffc0001000), "bpf_prog_3");
	profile_free(p);
}

static uint32_t kernel_frame(struct profile *p, uint64_t va)
{
	struct frame f = {.loc = va, .dso = DSO_ID_KERNEL, .kind = FRAME_KERNEL};
	uint32_t frame = 0;

	assert_int_equal(profile_frame(p, &f, &frame), 0);
	return frame;
}

static const char *name_of(const struct profile *p, uint32_t frame)
{
	return intern_str(&p->strings, p->symbols.v[p->at.v[p->first.v[frame]].symbol].name);
}

/* Was there before the recording, and left during it: its name came with its end. Also on another
 * host, as the record is in the file. */
static void was_there_before(void **state)
{
	struct symbolize_options o = {.local_host = false};
	struct profile *p = NULL;
	uint32_t inside, behind;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	inside = kernel_frame(p, 0xffffffffc0002010);
	behind = kernel_frame(p, 0xffffffffc0002040);
	ksymbol(p, 50, 0xffffffffc0002000, "bpf_prog_old", true);
	assert_int_equal(symbolize_profile(p, &o), 0);
	assert_string_equal(name_of(p, inside), "bpf_prog_old");
	assert_string_equal(name_of(p, behind), "[kernel] 0xffffffffc0002040");
	profile_free(p);
}

static void hostile(void **state)
{
	struct event e = {.type = EVENT_KSYMBOL,
			  .ksymbol = {.addr = UINT64_MAX - 1, .len_bytes = 0x40, .name = "wraps"}};
	struct profile *p = NULL;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_ksymbol(p, &e), 0);
	e.ksymbol.addr = 0xffffffff81000000;
	e.ksymbol.len_bytes = 0;
	assert_int_equal(profile_ksymbol(p, &e), 0);
	assert_int_equal(p->codes.n, 0);
	for (uint64_t i = 0; i < 40000; i++)
		ksymbol(p, i + 1, 0xffffffffc0000000 + (i * 7919 % 40000) * 0x40, "many", false);
	assert_true(p->codes.n <= 16384);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_and_goes),
		cmocka_unit_test(was_there_before),
		cmocka_unit_test(hostile),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
