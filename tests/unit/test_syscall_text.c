/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of calls that are made up: their shape, and that nothing a target does reaches the terminal
 * raw or is read beyond its end. That they are strace's is tested by tests/cmd/trace_stream.t. */
#include <fcntl.h>
#include <inspect/syscall_text.h>
#include <sys/syscall.h>

#include "../../src/base/syscall_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct syscall_event event_of(long nr)
{
	return (struct syscall_event){.pid = 4711,
				      .tid = 4712,
				      .comm = "worker",
				      .nr = (uint32_t)nr,
				      .start_ns = 3 * NSEC_PER_SEC + 5 * NSEC_PER_USEC,
				      .duration_ns = 21234};
}

static void add(struct syscall_event *e, unsigned arg, enum syscall_capture_kind kind,
		const void *data, size_t n)
{
	e->captures[e->n_captures++] = (struct syscall_capture){
		.arg = (uint8_t)arg, .kind = (uint8_t)kind, .data = data, .n_bytes = (uint32_t)n};
}

static const char *line(const struct syscall_event *e, const struct syscall_text_options *o,
			struct strbuf *out)
{
	strbuf_clear(out);
	assert_int_equal(syscall_text_line(e, o, out), 0);
	return strbuf_str(out);
}

static void test_shape(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf out = {0};
	struct syscall_text_options o = {.with_duration = true};
	struct syscall_event e = event_of(SYS_openat);

	e.args[0] = (uint64_t)AT_FDCWD;
	e.args[1] = 0x1000;
	e.args[2] = O_RDONLY | O_CLOEXEC;
	e.result = 3;
	assert_string_equal(
		line(&e, &o, &out),
		"[4712 worker] openat(AT_FDCWD, 0x1000, O_RDONLY|O_CLOEXEC) = 3 <0.000021>");
	add(&e, 1, CAPTURE_MEMORY, "a/b", 4);
	add(&e, 1, CAPTURE_FOLDER, "/home/x", 7);
	e.result = -ENOENT;
	e.own_tid = 7;
	o.time = SYSCALL_TIME_RELATIVE;
	o.first_ns = NSEC_PER_SEC;
	assert_string_equal(line(&e, &o, &out),
			    "     2.000005 [4712(7) worker] openat(AT_FDCWD</home/x>, \"a/b\", "
			    "O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory) "
			    "<0.000021>");
	strbuf_clear(&out);
	assert_true(syscall_text_path(&e, &out));
	assert_string_equal(strbuf_str(&out), "/home/x/a/b");
	e.result = -512;
	strbuf_clear(&out);
	syscall_text_result(&e, &out);
	assert_string_equal(strbuf_str(&out),
			    " = ? ERESTARTSYS (To be restarted if SA_RESTART is set)");
	e.end = SYSCALL_IN_FLIGHT;
	e.duration_ns = 1500 * NSEC_PER_MSEC;
	strbuf_clear(&out);
	syscall_text_result(&e, &out);
	assert_string_equal(strbuf_str(&out), " <in flight for 1.500000 s>");
}

static void test_other_calls(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf out = {0};
	struct syscall_event e = event_of(20);

	e.abi = SYSCALL_I386;
	syscall_text_call(&e, NULL, &out);
#if defined(__x86_64__)
	assert_string_equal(strbuf_str(&out), "getpid (i386)()");
#endif
	e = event_of(1000);
	e.args[1] = 0x20;
	strbuf_clear(&out);
	syscall_text_call(&e, NULL, &out);
	assert_string_equal(strbuf_str(&out), "syscall_1000(0, 0x20, 0, 0, 0, 0)");
	assert_false(syscall_text_path(&e, &out));
}

/* What bytes a program has in its buffers is shown as strace shows it. */
static void test_bytes(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf out = {0};
	struct syscall_event e = event_of(SYS_write);

	e.args[0] = 1;
	e.args[1] = 0x1000;
	e.args[2] = 9;
	add(&e, 1, CAPTURE_MEMORY, "\t\"\\\0001\033z\xc3\xa4", 9);
	add(&e, 0, CAPTURE_NAME, "/tmp/\xc3\xa4\x1b", 8);
	syscall_text_call(&e, NULL, &out);
	assert_string_equal(
		strbuf_str(&out),
		"write(1</tmp/\xc3\xa4\\x1b>, \"\\t\\\"\\\\\\0001\\33z\\303\\244\", 9)");
}

/* A small generator, so that a failure can be repeated. */
static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void fill(struct syscall_event *e, uint8_t *bytes, size_t n, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)next(seed);
	for (unsigned i = 0; i < SYSCALL_ARGS; i++)
		e->args[i] = next(seed) >> next(seed) % 64;
	e->result = (int64_t)next(seed) >> next(seed) % 64;
	e->end = (uint8_t)(next(seed) % 4);
	for (size_t i = next(seed) % 12; i > 0; i--) {
		size_t at = next(seed) % n;

		/* Each in memory of its own, that a sanitizer sees the end of. */
		add(e, next(seed) % (SYSCALL_ARGS + 1),
		    (enum syscall_capture_kind)(next(seed) % (CAPTURE_COUNT + 1)), bytes + at,
		    n - at);
	}
}

/* Whatever comes with any call: a line of text without controls, of bounded length. */
static void test_hostile(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf out = {0};
	struct syscall_text_options o = {.with_duration = true};
	uint64_t seed = 88172645463325252ULL;

	for (int round = 0; round < 40; round++)
		for (uint32_t nr = 0; nr < syscall_numbers_end(SYSCALL_NATIVE); nr++) {
			CLEANUP(freep) uint8_t *bytes = malloc(96);
			struct syscall_event e = event_of(nr);
			const char *text;

			memcpy(e.comm,
			       "\x1b]0;\x07\n\xe2\x80\xae"
			       "12345678",
			       16);
			fill(&e, bytes, 96, &seed);
			text = line(&e, &o, &out);
			for (const char *at = text; *at; at++)
				assert_true((uint8_t)*at >= 0x20 && *at != 0x7f);
			assert_null(strstr(text, "\xe2\x80\xae"));
			assert_true(strlen(text) < 16384);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_other_calls),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_hostile),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
