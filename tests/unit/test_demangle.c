/* SPDX-License-Identifier: BSD-2-Clause */
/* Demangling and entry points, against c++filt and the names rustc says it gave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "skip.h"
#include <inspect/clock.h>
#include <inspect/symbolize.h>

#include "scratch.h"

/* Lines of `file` and what c++filt makes of them (-i: std::string, without Rust's hashes). */
static unsigned compare_file(const char *file)
{
	struct strbuf out = {0};
	char *names = shell("cat %s", file), *want = shell("c++filt -i < %s", file);
	char *name_at = names, *want_at = want, *name;
	unsigned demangled = 0;

	while ((name = strsep(&name_at, "\n")) && *name) {
		char *line = strsep(&want_at, "\n");

		assert_non_null(line);
		if (symbol_demangle(name, &out)) {
			assert_string_equal(out.v, line);
			demangled++;
		} else {
			assert_string_equal(name, line);
		}
	}
	strbuf_release(&out);
	free(names);
	free(want);
	return demangled;
}

static void cxx_program_equals_cxxfilt(void **state)
{
	(void)state;
	write_text(
		"t.cc",
		"#include <algorithm>\n#include <functional>\n#include <map>\n"
		"#include <string>\n#include <vector>\n"
		"namespace ns { namespace { template <typename T, int N> struct box {\n"
		"  T v[N]; template <class F> void each(F f) const & { for (auto &x : v) f(x); }\n"
		"  operator bool() const { return N; } box operator+(box &&o) { return o; } }; }\n"
		"inline namespace v1 { std::map<std::string, std::vector<int>> table; }\n"
		"int run(int n, ...) { box<long, 7> b{}; int s = 0;\n"
		"  b.each([&s](const long &x) { s += x; [&] { s++; }(); });\n"
		"  b = b + box<long, 7>{}; table[\"a\"].push_back(s);\n"
		"  std::function<int(int)> f = [s](auto x) { return x + s; };\n"
		"  std::sort(table[\"a\"].begin(), table[\"a\"].end(), std::greater<>());\n"
		"  return f(n) + (b ? 1 : 2); } }\n"
		"int main() { return ns::run(3); }\n");
	free(shell("c++ -std=c++17 -O0 -o t t.cc && nm --defined-only t | awk '{print $3}' |"
		   " grep -v @ > names"));
	assert_true(compare_file("names") > 100);
}

static void library_equals_cxxfilt(void **state)
{
	(void)state;
	free(shell("nm -D --defined-only $(c++ -print-file-name=libstdc++.so.6) |"
		   " awk '{print $3}' | sed 's/@.*//' > names"));
	assert_true(compare_file("names") > 3000);
}

static void demangles(const char *name, const char *want)
{
	struct strbuf out = {0};

	if (want) {
		assert_true(symbol_demangle(name, &out));
		assert_string_equal(out.v, want);
	} else {
		assert_false(symbol_demangle(name, &out));
	}
	strbuf_release(&out);
}

static void rust_and_suffixes(void **state)
{
	(void)state;
	/* Legacy, with its hash; examples of the Rust RFC 2603 and of rustc-demangle. */
	demangles("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	demangles("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
		  "3bar17h930b740aa94f1d3aE",
		  "<Test + 'static as foo::Bar<Test>>::bar");
	demangles("_RNvC6_123foo3bar", "123foo::bar");
	demangles("_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}");
	demangles("_ZN3foo3barEi.isra.0", "foo::bar(int) [clone .isra.0]");
	demangles("_ZN3foo3barEi@plt", "foo::bar(int)@plt");
	demangles("_ZNSt6thread6detachEv@@GLIBCXX_3.4.11", "std::thread::detach()@@GLIBCXX_3.4.11");
	demangles("main", NULL);
	demangles("_start", NULL);
	demangles("_Z", NULL);
	demangles("_R", NULL);
	demangles("_Zebra", NULL);
	demangles("", NULL);
}

/* ABI tags, lambdas, parts and copies that compilers make of functions, long templates. */
static void parts_and_tags_equal_cxxfilt(void **state)
{
	struct strbuf out = {0};

	(void)state;
	write_text(
		"names",
		"_ZN3foo3barB5cxx11Ei\n_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1Ev\n"
		"_ZZ4mainENKUliE_clEi\n_ZZN3foo3barEvENKUlvE0_clEv\n_ZZ4mainENKUlT_E_clIiEEDaS_\n"
		"_ZN3foo3barEi.cold\n_ZN3foo3barEi.part.0\n_ZN3foo3barEi.constprop.0\n"
		"_ZN3foo3barEi.constprop.0.isra.0\n_ZN3foo3barEi.part.0.cold\n"
		"_ZN3foo3barEi.lto_priv.0\n_ZN3foo3barEi.llvm.1234567890\n"
		"_ZNKSt5ctypeIcE8do_widenEc.localalias\n_ZTv0_n24_NSoD1Ev\n_ZThn8_N3foo3barEv\n"
		"_ZN12_GLOBAL__N_13fooEv\n_ZNSt8functionIFvvEEC2IZ4mainEUlvE_vEEOT_\n");
	assert_int_equal(compare_file("names"), 17);
	/* C has only the suffix. */
	assert_false(symbol_demangle("main.cold", &out));
	assert_false(symbol_demangle("work.constprop.0", &out));
	strbuf_release(&out);
	demangles("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.1234567890",
		  "core::fmt::Formatter::pad");
	demangles("_RNvC6_123foo3bar.llvm.9D1C9369", "123foo::bar");
}

static void rust_compiler_equals_itself(void **state)
{
	static const char *const versions[] = {"legacy", "v0"};
	struct strbuf out = {0};
	char *have = shell("command -v rustc || true");

	(void)state;
	if (!*have) {
		free(have);
		skip_because("no rustc here");
	}
	free(have);
	write_text("r.rs",
		   "mod deep { pub struct S<T>(pub T);\n"
		   "  impl<T: Copy + Into<u64>> S<T> { #[inline(never)] pub fn method(&self) -> "
		   "u64 { self.0.into() } }\n"
		   "  #[inline(never)] pub fn plain(x: u64) -> u64 { std::hint::black_box(x) } }\n"
		   "fn main() { let c = std::env::args().count() as u32;\n"
		   "  println!(\"{}\", deep::S(c).method() + deep::plain(3)); }\n");
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		char *names, *at, *name;
		bool plain = false, method = false;

		free(shell("rustc -C symbol-mangling-version=%s -o r r.rs 2>/dev/null || "
			   "rustc -Z unstable-options -C symbol-mangling-version=%s -o r r.rs "
			   "2>/dev/null || rustc -o r r.rs",
			   versions[i], versions[i]));
		names = shell("nm r | awk '{print $3}' | grep deep");
		at = names;
		while ((name = strsep(&at, "\n")) && *name) {
			if (!symbol_demangle(name, &out))
				continue;
			plain |= str_eq(out.v, "r::deep::plain");
			method |= str_eq(out.v, "r::deep::S<T>::method") ||
				  str_eq(out.v, "<r::deep::S<u32>>::method");
			assert_null(strstr(out.v, "::h"));
		}
		assert_true(plain);
		assert_true(method);
		free(names);
	}
	strbuf_release(&out);
}

static void hostile_names_end(void **state)
{
	struct strbuf name = {0}, out = {0};
	uint64_t before = clock_own_cpu_ns();

	(void)state;
	/* Each argument doubles the one before by back reference. */
	strbuf_puts(&name, "_Z1fI1aE1bIS_S_E1cIS0_S0_E");
	for (int i = 0; i < 40; i++) {
		if (i < 34)
			strbuf_printf(&name, "1xIS%c_S%c_E",
				      "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
				      "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
	}
	symbol_demangle(name.v, &out);
	/* The same in Rust v0: tuples of back references. */
	strbuf_clear(&name);
	strbuf_puts(&name, "_RIC1aTTTTTTTTTTTTTTTTTTTTTTTThhEB5_EB4_EB3_EB2_EB1_EB0_EB_E");
	symbol_demangle(name.v, &out);
	/* Deep, and long. */
	strbuf_clear(&name);
	strbuf_puts(&name, "_Z1f");
	for (int i = 0; i < 100000; i++)
		strbuf_putc(&name, 'P');
	strbuf_putc(&name, 'i');
	assert_false(symbol_demangle(name.v, &out));
	for (uint32_t i = 0, x = 1; i < 20000; i++) {
		strbuf_clear(&name);
		strbuf_puts(&name, i % 2 ? "_Z" : "_R");
		for (int k = 0; k < 30; k++) {
			x = x * 1664525 + 1013904223;
			strbuf_putc(&name, "NISTEPKRiBC0123_hvLXZLstTA5fooQ."[x >> 27]);
		}
		symbol_demangle(name.v, &out);
	}
	assert_true(clock_own_cpu_ns() - before < 20 * NSEC_PER_SEC);
	strbuf_release(&name);
	strbuf_release(&out);
}

/* A name of 100 bytes that stands for one of 2^30 is given up. */
static void exponential_names_are_given_up(void **state)
{
	struct strbuf name = {0}, out = {0};
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	(void)state;
	strbuf_puts(&name, "_Z1f1aIiiE"); /* S_ is a, S0_ is a<int, int> */
	for (int i = 0; i < 30; i++)
		strbuf_printf(&name, "S_IS%c_S%c_E", digits[i], digits[i]);
	assert_false(symbol_demangle(name.v, &out));
	assert_int_equal(out.n, 0);
	strbuf_clear(&name);
	strbuf_puts(&name, "_Z1f1aIiiES_IS0_S0_E");
	assert_true(symbol_demangle(name.v, &out));
	assert_string_equal(out.v, "f(a<int, int>, a<a<int, int>, a<int, int> >)");
	strbuf_release(&name);
	strbuf_release(&out);
}

static void entry_points(void **state)
{
	static const char *const entries[] = {
		"_start",
		"main",
		"__libc_start_main@@GLIBC_2.34",
		"__libc_start_call_main",
		"start_thread",
		"clone3",
		"runtime.goexit",
		"runtime.goexit.abi0",
		"runtime.mcall",
		"ret_from_fork_asm",
		"entry_SYSCALL_64_after_hwframe",
		"asm_exc_page_fault",
		"asm_sysvec_apic_timer_interrupt",
		"secondary_startup_64_no_verify",
	};
	static const char *const others[] = {
		"",  "main.main",      "mainly",          "start",   "qsort",
		"@", "restart_thread", "runtime.goexit0", "_startup"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		assert_true(symbol_is_entry(entries[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(symbol_is_entry(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cxx_program_equals_cxxfilt),
		cmocka_unit_test(library_equals_cxxfilt),
		cmocka_unit_test(rust_and_suffixes),
		cmocka_unit_test(parts_and_tags_equal_cxxfilt),
		cmocka_unit_test(rust_compiler_equals_itself),
		cmocka_unit_test(hostile_names_end),
		cmocka_unit_test(exponential_names_are_given_up),
		cmocka_unit_test(entry_points),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
