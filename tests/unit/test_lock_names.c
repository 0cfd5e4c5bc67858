/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of this process whose place is known. */
#include <fcntl.h>
#include <inspect/lock_names.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

char lock_in_bss[100000];
int lock_in_data[64] = {1};
static int hidden_lock[64]; /* in .symtab alone */

static const char *name(struct lock_names *n, const volatile void *p, struct strbuf *out)
{
	strbuf_clear(out);
	assert_int_equal(lock_names_text(n, getpid(), (uintptr_t)p, out), 0);
	return strbuf_str(out);
}

static void test_variables(void **state UNUSED)
{
	CLEANUP(lock_names_freep) struct lock_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};

	assert_int_equal(lock_names_new(&n), 0);
	assert_string_equal(name(n, (char *)lock_in_data + 16, &text), "lock_in_data+0x10");
	assert_string_equal(name(n, lock_in_bss, &text), "lock_in_bss+0x0");
	assert_string_equal(name(n, lock_in_bss + 90000, &text), "lock_in_bss+0x15f90");
	assert_string_equal(name(n, (char *)hidden_lock + 4, &text), "hidden_lock+0x4");
	/* A library's data: stdin and its like are variables of the C library. */
	assert_non_null(strstr(name(n, stdout, &text), "_IO_2_1_stdout_"));
	assert_string_equal(name(n, (void *)8, &text), "0x8");
}

pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
char _PyRuntime[4096];

static const char *object(struct lock_names *n, const volatile void *p, struct strbuf *out,
			  const volatile void *want)
{
	uint64_t user_va;

	strbuf_clear(out);
	assert_int_equal(lock_names_object(n, getpid(), (uintptr_t)p, out, &user_va), 0);
	assert_int_equal(user_va, (uintptr_t)want);
	return strbuf_str(out);
}

/* What is waited for at several words is one. */
static void test_objects(void **state UNUSED)
{
	CLEANUP(lock_names_freep) struct lock_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char *word = (char *)&condition + sizeof(condition) - 8;

	assert_int_equal(lock_names_new(&n), 0);
	assert_string_equal(object(n, word, &text, &condition), "condition");
	assert_string_equal(object(n, word + 4, &text, &condition), "condition");
	word = (char *)&rwlock + 8;
	assert_string_equal(object(n, word, &text, &rwlock), "rwlock");
	assert_string_equal(object(n, word + 4, &text, &rwlock), "rwlock");
	assert_string_equal(object(n, _PyRuntime + 0x1b4, &text, _PyRuntime), "_PyRuntime (GIL)");
	assert_string_equal(object(n, lock_in_bss, &text, lock_in_bss), "lock_in_bss");
	assert_string_equal(object(n, lock_in_bss + 44, &text, lock_in_bss + 44),
			    "lock_in_bss+0x2c");
}

struct worker {
	pid_t tid;
	char *local;
	int ready[2], done[2];
};

static void *work(void *arg)
{
	struct worker *w = arg;
	char local = 0;

	w->tid = (pid_t)syscall(SYS_gettid);
	w->local = &local;
	(void)!write(w->ready[1], "", 1);
	(void)!read(w->done[0], &local, 1);
	return NULL;
}

/* The futex of pthread_join(3) is the id of the thread, which the kernel clears. */
static void test_thread_end(void **state UNUSED)
{
	CLEANUP(lock_names_freep) struct lock_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	pid_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char want[64];

	assert_int_equal(lock_names_new(&n), 0);
	word[8] = getpid();
	snprintf(want, sizeof(want), "[end of thread %d]", getpid());
	assert_string_equal(name(n, word + 8, &text), want);
	assert_true(lock_name_is_thread(want));
	assert_null(strstr(name(n, word + 9, &text), "thread"));
	munmap(word, 4096);
}

static void test_stacks(void **state UNUSED)
{
	CLEANUP(lock_names_freep) struct lock_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct worker w = {0};
	char want[64], local;
	pthread_t thread;

	assert_int_equal(lock_names_new(&n), 0);
	snprintf(want, sizeof(want), "[stack:%d]+0x", getpid());
	assert_memory_equal(name(n, &local, &text), want, strlen(want));
	assert_int_equal(pipe(w.ready) | pipe(w.done), 0);
	assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
	assert_int_equal(read(w.ready[0], &local, 1), 1);
	while (true) { /* until it waits in its read */
		CLEANUP(strbuf_release) struct strbuf path = {0};
		char first = 'r';
		FILE *file;

		strbuf_printf(&path, "/proc/self/task/%d/syscall", w.tid);
		file = fopen(strbuf_str(&path), "re");
		assert_non_null(file);
		assert_int_equal(fread(&first, 1, 1, file), 1);
		fclose(file);
		if (first != 'r')
			break;
		usleep(1000);
	}
	usleep(110000);
	snprintf(want, sizeof(want), "[stack:%d]+0x", w.tid);
	assert_memory_equal(name(n, w.local, &text), want, strlen(want));
	(void)!write(w.done[1], "", 1);
	pthread_join(thread, NULL);
}

#define HEAP_BYTES (64UL << 20)

static void test_memory(void **state UNUSED)
{
	CLEANUP(lock_names_freep) struct lock_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[64], want[96];
	int fd;
	char *p, *anonymous, *arena, *heap;

	snprintf(path, sizeof(path), "/dev/shm/inspect-lock-%d", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 16384), 0);
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 8192);
	assert_true(p != MAP_FAILED);
	/* Alone between pages that can't be touched, so that it is no part of another. */
	anonymous = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(anonymous != MAP_FAILED);
	assert_int_equal(mprotect(anonymous + 4096, 4096, PROT_READ | PROT_WRITE), 0);
	arena = mmap(NULL, 3 * HEAP_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(arena != MAP_FAILED);
	arena += HEAP_BYTES - (uintptr_t)arena % HEAP_BYTES;
	assert_int_equal(mprotect(arena, 8192, PROT_READ | PROT_WRITE), 0);
	heap = sbrk(4096); /* of no allocator */
	assert_true(heap != (void *)-1);
	assert_int_equal(lock_names_new(&n), 0);
	snprintf(want, sizeof(want), "%s+0x2080", path);
	assert_string_equal(name(n, p + 0x80, &text), want);
	snprintf(want, sizeof(want), "[anon:%lx]+0x10", (unsigned long)(uintptr_t)anonymous + 4096);
	assert_string_equal(name(n, anonymous + 4096 + 16, &text), want);
	snprintf(want, sizeof(want), "[heap:%lx]+0x20", (unsigned long)(uintptr_t)arena);
	assert_string_equal(name(n, arena + 0x20, &text), want);
	snprintf(want, sizeof(want), "[heap:%lx]+0x2000", (unsigned long)(uintptr_t)arena);
	assert_string_equal(name(n, arena + 8192, &text), want);
	assert_memory_equal(name(n, heap, &text), "[heap]+0x", strlen("[heap]+0x"));
	unlink(path);
	close(fd);
}

/* The mappings are read once more for an address in none of them. */
static void test_new_mapping(void **state UNUSED)
{
	CLEANUP(lock_names_freep) struct lock_names *n = NULL;
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char *p = mmap(NULL, 1 << 22, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *again;

	assert_true(p != MAP_FAILED);
	munmap(p, 1 << 22);
	assert_int_equal(lock_names_new(&n), 0);
	assert_memory_equal(name(n, p, &text), "0x", 2);
	again = mmap(p, 1 << 22, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(again, p);
	usleep(110000);
	assert_memory_equal(name(n, p, &text), "[anon:", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),  cmocka_unit_test(test_objects),
		cmocka_unit_test(test_thread_end), cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_memory),     cmocka_unit_test(test_new_mapping),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
