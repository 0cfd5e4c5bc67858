/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers and names, against the headers that this test is compiled with. */
#include <inspect/syscalls.h>
#include <sys/syscall.h>

#include "../../src/base/syscall_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KNOWN(name)                                                                                \
	{                                                                                          \
#name, SYS_##name                                                                  \
	}

static void test_native(void **state UNUSED)
{
	static const struct {
		const char *name;
		int nr;
	} known[] = {KNOWN(read),       KNOWN(openat), KNOWN(futex),
		     KNOWN(execve),     KNOWN(clone3), KNOWN(epoll_pwait),
		     KNOWN(exit_group), KNOWN(statx),  KNOWN(futex_waitv)};
	char buf[SYSCALL_NAME_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_int_equal(syscall_number(SYSCALL_NATIVE, known[i].name), known[i].nr);
		assert_string_equal(syscall_name(SYSCALL_NATIVE, (uint32_t)known[i].nr, buf),
				    known[i].name);
	}
	for (size_t abi = 0; abi < SYSCALL_ABIS; abi++)
		for (uint32_t nr = 0; nr < syscall_numbers_end((enum syscall_abi)abi); nr++) {
			const char *name = syscall_name((enum syscall_abi)abi, nr, buf);

			assert_int_equal(syscall_number((enum syscall_abi)abi, name), nr);
		}
	assert_true(syscall_numbers_end(SYSCALL_NATIVE) >= SYS_futex_waitv + 1);
	assert_string_equal(syscall_name(SYSCALL_NATIVE, 999, buf), "syscall_999");
	assert_int_equal(syscall_number(SYSCALL_NATIVE, "syscall_999"), 999);
	assert_int_equal(syscall_number(SYSCALL_NATIVE, "syscall_1024"), -ENOENT);
	assert_int_equal(syscall_number(SYSCALL_NATIVE, "syscall_-1"), -ENOENT);
	assert_int_equal(syscall_number(SYSCALL_NATIVE, ""), -ENOENT);
}

#if defined(__x86_64__)
static void test_other_abis(void **state UNUSED)
{
	char buf[SYSCALL_NAME_BYTES];

	/* arch/x86/entry/syscalls: 20 is getpid for i386, writev for x86-64. */
	assert_string_equal(syscall_name(SYSCALL_I386, 20, buf), "getpid");
	assert_string_equal(syscall_name(SYSCALL_NATIVE, 20, buf), "writev");
	assert_string_equal(syscall_name(SYSCALL_X32, 515, buf), "readv");
	assert_string_equal(syscall_name(SYSCALL_X32, 39, buf), "getpid");
	assert_int_equal(syscall_number(SYSCALL_I386, "mmap2"), 192);
	assert_int_equal(syscall_number(SYSCALL_NATIVE, "mmap2"), -ENOENT);
	assert_string_equal(syscall_abi_suffix(SYSCALL_I386), " (i386)");
	assert_string_equal(syscall_abi_suffix(SYSCALL_NATIVE), "");
}
#endif

static bool has(const struct syscall_set *s, const char *name)
{
	return syscall_set_has(s, SYSCALL_NATIVE, (uint32_t)syscall_number(SYSCALL_NATIVE, name));
}

static void test_sets(void **state UNUSED)
{
	struct syscall_set s;
	struct diag d = {0};

	assert_int_equal(syscall_set_parse("futex,openat", &s, NULL), 0);
	assert_true(has(&s, "futex") && has(&s, "openat") && !has(&s, "read"));
	assert_int_equal(syscall_set_parse("trace=!futex", &s, NULL), 0);
	assert_true(!has(&s, "futex") && has(&s, "read"));
	assert_int_equal(syscall_set_parse("%file,%net", &s, NULL), 0);
	assert_true(has(&s, "openat") && has(&s, "execve") && has(&s, "recvmsg"));
	assert_false(has(&s, "read"));
	assert_false(has(&s, "futex"));
	assert_int_equal(syscall_set_parse("%memory", &s, NULL), 0);
	assert_true(has(&s, "brk") && has(&s, "madvise") && !has(&s, "openat"));
	assert_int_equal(syscall_set_parse("all", &s, NULL), 0);
	assert_true(has(&s, "read") && syscall_set_has(&s, SYSCALL_NATIVE, 1000));
	assert_false(syscall_set_has(&s, SYSCALL_NATIVE, 1024));
	assert_int_equal(syscall_set_parse("syscall_700", &s, NULL), 0);
	assert_int_equal(syscall_set_count(&s), SYSCALL_ABIS);

	assert_int_equal(syscall_set_parse("openta", &s, &d), -EINVAL);
	assert_string_equal(d.what, "no system call is called 'openta'");
	assert_non_null(strstr(d.fix, "openat"));
	diag_release(&d);
	d = (struct diag){0};
	assert_int_equal(syscall_set_parse("%files", &s, &d), -EINVAL);
	assert_non_null(strstr(d.fix, "%file,"));
	diag_release(&d);
	assert_int_equal(syscall_set_parse("", &s, NULL), -EINVAL);
	assert_int_equal(syscall_set_parse("read,,write", &s, NULL), -EINVAL);
}

/* Each is found, so they are sorted. */
static void test_table(void **state UNUSED)
{
	for (size_t i = 0; i < syscall_info_count; i++) {
		const struct syscall_info *info = &syscall_info_table[i];
		bool known = false;

		assert_ptr_equal(syscall_info_find(info->name), info);
		for (size_t abi = 0; abi < SYSCALL_ABIS; abi++)
			known |= syscall_number((enum syscall_abi)abi, info->name) >= 0;
		assert_true(known);
	}
}

static void test_info(void **state UNUSED)
{
	const struct syscall_info *info = syscall_info_find("openat");

	assert_int_equal(info->args[0], ARG_DIRFD);
	assert_int_equal(info->args[4], ARG_END);
	assert_int_equal(info->result, ARG_FD);
	assert_null(syscall_info_find("no_such_call"));
	assert_true(syscall_classes(SYSCALL_NATIVE, SYS_epoll_pwait) & SYSCALL_WAITS);
	assert_false(syscall_classes(SYSCALL_NATIVE, SYS_read) & SYSCALL_WAITS);
	assert_int_equal(syscall_classes(SYSCALL_NATIVE, 1000), 0);
}

static void test_errno_names(void **state UNUSED)
{
	assert_string_equal(errno_name(ENOENT), "ENOENT");
	assert_string_equal(errno_name(ETIMEDOUT), "ETIMEDOUT");
	assert_string_equal(errno_name(EAGAIN), "EAGAIN");
	assert_string_equal(errno_name(512), "ERESTARTSYS");
	assert_null(errno_name(0));
	assert_null(errno_name(-1));
	assert_null(errno_name(41)); /* a gap in the numbers */
	assert_null(errno_name(100000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_native),
#if defined(__x86_64__)
		cmocka_unit_test(test_other_abis),
#endif
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_errno_names),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
