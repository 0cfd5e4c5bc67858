/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "skip.h"
#include <inspect/clock.h>
#include <inspect/procfs.h>

#include "../../src/symbol/kallsyms.h"

static struct kallsyms parse(const char *text)
{
	struct kallsyms k = {0};

	assert_int_equal(kallsyms_parse(text, strlen(text), &k), 0);
	return k;
}

static void found(const struct kallsyms *k, uint64_t address, const char *name, const char *module)
{
	const struct kallsym *s = kallsyms_find(k, address);

	if (!name) {
		assert_null(s);
		return;
	}
	assert_non_null(s);
	assert_int_equal(s->name_n, strlen(name));
	assert_memory_equal(k->text + s->name, name, s->name_n);
	assert_int_equal(s->module_n, strlen(module));
	assert_memory_equal(k->text + s->module, module, s->module_n);
}

static void finds_functions(void **state)
{
	struct kallsyms k = parse("0000000000000000 A fixed_percpu_data\n"
				  "ffffffff81000000 T _text\n"
				  "ffffffff81000000 T _stext\n"
				  "ffffffff81000040 t helper\n"
				  "ffffffff81000060 t __pfx_padded\n"
				  "ffffffff81000070 t padded\n"
				  "ffffffff81000080 D variable\n"
				  "ffffffff81000100 W weak_one\n"
				  "ffffffffc0002000 t ext4_b\t[ext4]\n"
				  "ffffffffc0001000 t ext4_a\t[ext4]\n"
				  "ffffffffc0009000 t bpf_prog_1_x\t[bpf]\n"
				  "ffff800001000000 t below\t[module]\n");

	(void)state;
	found(&k, 0xffffffff80ffffff, NULL, NULL);
	found(&k, 0xffffffff81000000, "_stext", ""); /* the last of two, as perf does */
	found(&k, 0xffffffff8100003f, "_stext", "");
	found(&k, 0xffffffff81000040, "helper", "");
	found(&k, 0xffffffff8100005f, "helper", "");
	found(&k, 0xffffffff8100006f, "padded", ""); /* its padding is its own */
	found(&k, 0xffffffff810000ff, "padded", ""); /* data is not code */
	found(&k, 0xffffffff81000100, "weak_one", "");
	found(&k, 0xffffffff81001fff, "weak_one", ""); /* the kernel's last: one page more */
	found(&k, 0xffffffff81002000, NULL, NULL);
	found(&k, 0xffffffffc0001fff, "ext4_a", "[ext4]"); /* modules are not in order */
	found(&k, 0xffffffffc0002010, "ext4_b", "[ext4]");
	found(&k, 0xffffffffc0008fff, NULL, NULL);
	found(&k, 0xffffffffc0009fff, "bpf_prog_1_x", "[bpf]");
	found(&k, UINT64_MAX, NULL, NULL);
	found(&k, 0xffff800001000010, "below", "[module]"); /* as those of arm64 */
	assert_false(k.hidden);
	kallsyms_release(&k);
}

static void odd_lines_are_skipped(void **state)
{
	struct kallsyms k = parse("\n\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
				  "zzz T bad\nffffffff8100000012345 T long\n T x\n"
				  "ffffffff81000010 t tab_only\t\nffffffff81000020 t cut");

	(void)state;
	assert_int_equal(k.v.n, 2);
	found(&k, 0xffffffff81000010, "tab_only", "");
	found(&k, 0xffffffff81000021, "cut", "");
	kallsyms_release(&k);
	k = parse("");
	assert_false(k.hidden);
	found(&k, 1, NULL, NULL);
	kallsyms_release(&k);
}

static void hidden_addresses_are_noticed(void **state)
{
	static const struct {
		int64_t kptr_restrict, paranoid;
		const char *want;
	} cases[] = {
		{1, 1,
		 "kernel names hidden: kernel.kptr_restrict=1; "
		 "fix: sudo sysctl kernel.kptr_restrict=0"},
		{2, 2,
		 "kernel names hidden: kernel.kptr_restrict=2; "
		 "fix: sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"},
		{0, 2,
		 "kernel names hidden: kernel.perf_event_paranoid=2 and no CAP_SYSLOG; "
		 "fix: sudo sysctl kernel.perf_event_paranoid=1"},
	};
	struct kallsyms k = parse("0000000000000000 T _text\n0000000000000000 t f\t[m]\n");

	(void)state;
	assert_true(k.hidden);
	found(&k, 0, NULL, NULL);
	found(&k, 0xffffffff81000000, NULL, NULL);
	kallsyms_release(&k);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf out = {0};

		kallsyms_explain_hidden(cases[i].kptr_restrict, cases[i].paranoid, &out);
		assert_string_equal(strbuf_str(&out), cases[i].want);
		strbuf_release(&out);
	}
}

/* Every line of the running kernel, read by sscanf: the function at an address is one listed
 * there, and the middle of the way to the next one is still its own. */
static void this_kernel(void **state)
{
	struct strbuf text = {0}, copy = {0};
	struct kallsyms k = {0};
	unsigned long long address;
	unsigned checked = 0;
	char type, *at, *line;
	uint64_t before;

	(void)state;
	assert_int_equal(file_read("/proc/kallsyms", KALLSYMS_BYTES_MAX, &text), 0);
	before = clock_own_cpu_ns();
	assert_int_equal(kallsyms_parse(text.v, text.n, &k), 0);
	assert_true(clock_own_cpu_ns() - before < 150 * NSEC_PER_MSEC);
	if (k.hidden) {
		kallsyms_release(&k);
		strbuf_release(&text);
		skip_because("kernel addresses are hidden from this user");
	}
	strbuf_add(&copy, text.v, text.n);
	at = copy.v;
	while ((line = strsep(&at, "\n"))) {
		char name[512];
		const struct kallsym *s;

		if (sscanf(line, "%llx %c %511s", &address, &type, name) != 3 ||
		    !strchr("tTwW", type))
			continue;
		s = kallsyms_find(&k, address);
		assert_non_null(s);
		assert_int_equal(s->address, address);
		checked++;
	}
	assert_int_equal(checked, k.v.n);
	assert_true(checked > 1000);
	for (size_t i = 1; i < k.v.n; i++) {
		uint64_t room = k.v.v[i].address - k.v.v[i - 1].address;

		if (room > 1 && room < 4096)
			assert_ptr_equal(kallsyms_find(&k, k.v.v[i - 1].address + room / 2),
					 &k.v.v[i - 1]);
	}
	kallsyms_release(&k);
	strbuf_release(&text);
	strbuf_release(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions),
		cmocka_unit_test(odd_lines_are_skipped),
		cmocka_unit_test(hidden_addresses_are_noticed),
		cmocka_unit_test(this_kernel),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
