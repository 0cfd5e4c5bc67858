/* SPDX-License-Identifier: BSD-2-Clause */
/* Records as the program writes them, and damaged ones: the ring is the kernel's, yet its lengths
 * are not believed. */
#include "../../src/probe/stream.h"

#include <linux/magic.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct record {
	struct stream_head head;
	uint8_t data[1024];
};

static void add(struct record *r, uint8_t arg, uint8_t kind, const void *data, size_t n)
{
	struct stream_chunk c = {.arg = arg, .kind = kind, .n_bytes = (uint16_t)n};

	memcpy(r->data + r->head.n_bytes, &c, sizeof(c));
	memcpy(r->data + r->head.n_bytes + sizeof(c), data, n);
	r->head.n_bytes = (uint16_t)(r->head.n_bytes + sizeof(c) + ALIGN_UP(n, 8));
}

static struct record record_of(void)
{
	return (struct record){.head = {.pid = 1,
					.tid = 2,
					.code = 2 * STREAM_NUMBERS + 39,
					.result = -2,
					.lost_before = 9,
					.comm = "x"}};
}

static size_t size_of(const struct record *r)
{
	return sizeof(r->head) + r->head.n_bytes;
}

static void test_names(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf names = {0};
	struct record r = record_of();
	struct syscall_event e;
	uint64_t lost;
	struct {
		struct stream_file f;
		char names[16];
	} file = {.f = {.mode = S_IFREG | 0644, .deleted = 1}, .names = "leaf\0b\0a"};
	struct {
		struct stream_file f;
		struct stream_socket s;
	} socket = {.f = {.mode = S_IFSOCK, .inode = 5},
		    .s = {.family = AF_INET,
			  .protocol = IPPROTO_TCP,
			  .local_port = 80,
			  .remote_port = 4242,
			  .local = {127, 0, 0, 1},
			  .remote = {10, 0, 0, 7}}};
	struct stream_file pipe = {.mode = S_IFIFO, .magic = PIPEFS_MAGIC, .inode = 77};

	add(&r, 0, STREAM_CHUNK_FD, &file, sizeof(file.f) + 9);
	add(&r, 1, STREAM_CHUNK_MEMORY, "text", 5);
	add(&r, 2, STREAM_CHUNK_FD, &socket, sizeof(socket));
	add(&r, 3, STREAM_CHUNK_FOLDER, &pipe, sizeof(pipe));
	assert_int_equal(stream_decode(&r, size_of(&r), &names, &e, &lost), 0);
	assert_int_equal(e.abi, SYSCALL_X32);
	assert_int_equal(e.nr, 39);
	assert_int_equal(e.result, -2);
	assert_int_equal(lost, 9);
	assert_int_equal(e.n_captures, 4);
	assert_int_equal(e.captures[0].n_bytes, strlen("/a/b/leaf (deleted)"));
	assert_memory_equal(e.captures[0].data, "/a/b/leaf (deleted)", e.captures[0].n_bytes);
	assert_memory_equal(e.captures[1].data, "text", 5);
	assert_int_equal(e.captures[2].n_bytes, strlen("TCP 127.0.0.1:80->10.0.0.7:4242"));
	assert_memory_equal(e.captures[2].data, "TCP 127.0.0.1:80->10.0.0.7:4242",
			    e.captures[2].n_bytes);
	assert_int_equal(e.captures[3].kind, CAPTURE_FOLDER);
	assert_memory_equal(e.captures[3].data, "pipe:[77]", e.captures[3].n_bytes);
}

static void test_damaged(void **state UNUSED)
{
	CLEANUP(strbuf_release) struct strbuf names = {0};
	struct record r = record_of();
	struct syscall_event e;
	uint64_t lost, seed = 1;

	assert_int_equal(stream_decode(&r, sizeof(r.head) - 1, &names, &e, &lost), -EBADMSG);
	add(&r, 0, STREAM_CHUNK_MEMORY, "text", 5);
	((struct stream_chunk *)r.data)->n_bytes = 60000;
	assert_int_equal(stream_decode(&r, size_of(&r), &names, &e, &lost), -EBADMSG);
	((struct stream_chunk *)r.data)->n_bytes = 5;
	((struct stream_chunk *)r.data)->kind = 200;
	assert_int_equal(stream_decode(&r, size_of(&r), &names, &e, &lost), -EBADMSG);
	for (int i = 0; i < 100000; i++) {
		CLEANUP(freep) uint8_t *copy = NULL;
		size_t n = sizeof(r.head) + (seed >> 40) % 300;

		copy = malloc(n); /* its end is known to a sanitizer */
		for (size_t at = 0; at < n; at++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			/* Small numbers, so that many are lengths and kinds that fit. */
			copy[at] = (uint8_t)(seed >> 60 ? seed >> 61 : seed >> 50);
		}
		(void)stream_decode(copy, n, &names, &e, &lost);
		assert_true(e.n_captures <= SYSCALL_CAPTURES_MAX);
		assert_true(e.abi < SYSCALL_ABIS);
	}
}

/* What is taken of a call's arguments. */
static void test_plan(void **state UNUSED)
{
	struct stream_call call;

	stream_plan(SYSCALL_NATIVE, syscall_info_find("renameat2"), &call);
	assert_int_equal(call.args[1].op, STREAM_STRING);
	assert_int_equal(call.args[1].folder, 1);
	assert_int_equal(call.args[3].folder, 3);
	stream_plan(SYSCALL_NATIVE, syscall_info_find("unlink"), &call);
	assert_int_equal(call.args[0].folder, STREAM_FOLDER_CWD);
	stream_plan(SYSCALL_NATIVE, syscall_info_find("write"), &call);
	assert_int_equal(call.args[1].op, STREAM_BYTES);
	assert_int_equal(call.args[1].count, 2);
	assert_int_equal(call.args[1].at_exit, 0);
	stream_plan(SYSCALL_NATIVE, syscall_info_find("accept4"), &call);
	assert_true(call.flags & STREAM_FD_RESULT);
	stream_plan(SYSCALL_NATIVE, syscall_info_find("exit_group"), &call);
	assert_true(call.flags & STREAM_NO_RETURN);
	/* A struct of 64 bits is not what i386 has there. */
	stream_plan(SYSCALL_I386, syscall_info_find("nanosleep"), &call);
	assert_int_equal(call.args[0].op, STREAM_NOTHING);
	stream_plan(SYSCALL_I386, syscall_info_find("open"), &call);
	assert_int_equal(call.args[0].op, STREAM_STRING);
	stream_plan(SYSCALL_NATIVE, NULL, &call);
	assert_int_equal(call.args[0].op, STREAM_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_plan),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
