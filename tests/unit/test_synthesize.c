/* SPDX-License-Identifier: BSD-2-Clause */
/* Records are taken apart by hand here: the layouts are those of linux/perf_event.h. */
#include "../../src/perf/synthesize.h"

#include <inspect/perf_sampler.h>
#include <inspect/procfs.h>
#include <inspect/strbuf.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "skip.h"

#define TRAILER (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)
#define TRAILER_BYTES 32
#define MAPS_MAX 256

struct seen {
	uint32_t pid; /* only this one's records are looked at; 0: all */
	size_t n, forks, comms;
	uint32_t fork_ppid, thread_tid, thread_ppid;
	char comm[64], thread_comm[64];
	struct {
		uint64_t start, len, pgoff;
		uint32_t prot, flags, maj, min;
		uint64_t ino;
		uint8_t id[20];
		size_t id_size;
		char path[4096];
	} maps[MAPS_MAX];
	size_t n_maps;
	bool other_pid;
};

static uint32_t u32_at(const struct perf_event_header *record, size_t off)
{
	uint32_t v;

	assert_true(off + sizeof(v) <= record->size);
	memcpy(&v, (const uint8_t *)record + off, sizeof(v));
	return v;
}

static uint64_t u64_at(const struct perf_event_header *record, size_t off)
{
	return u32_at(record, off) | (uint64_t)u32_at(record, off + 4) << 32;
}

static void take_mmap2(struct seen *s, const struct perf_event_header *r)
{
	assert_true(s->n_maps < MAPS_MAX);
	s->maps[s->n_maps].start = u64_at(r, 16);
	s->maps[s->n_maps].len = u64_at(r, 24);
	s->maps[s->n_maps].pgoff = u64_at(r, 32);
	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		s->maps[s->n_maps].id_size = ((const uint8_t *)r)[40];
		memcpy(s->maps[s->n_maps].id, (const uint8_t *)r + 44, 20);
	} else {
		s->maps[s->n_maps].maj = u32_at(r, 40);
		s->maps[s->n_maps].min = u32_at(r, 44);
		s->maps[s->n_maps].ino = u64_at(r, 48);
		assert_int_equal(u64_at(r, 56), 0);
	}
	s->maps[s->n_maps].prot = u32_at(r, 64);
	s->maps[s->n_maps].flags = u32_at(r, 68);
	snprintf(s->maps[s->n_maps].path, sizeof(s->maps[0].path), "%s", (const char *)r + 72);
	assert_int_equal(r->size, 72 + strlen(s->maps[s->n_maps].path) / 8 * 8 + 8 + TRAILER_BYTES);
	assert_int_equal(r->misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_USER);
	s->n_maps++;
}

static void take_task(struct seen *s, const struct perf_event_header *r)
{
	const char *comm = (const char *)r + 16;

	if (r->type == PERF_RECORD_FORK) {
		uint32_t pid = u32_at(r, 8), ppid = u32_at(r, 12), tid = u32_at(r, 16);

		assert_int_equal(r->size, 32 + TRAILER_BYTES);
		assert_true(r->misc & PERF_RECORD_MISC_FORK_EXEC);
		assert_int_equal(ppid, u32_at(r, 20));
		assert_int_equal(u64_at(r, 24), 0);
		*(tid == pid ? &s->fork_ppid : &s->thread_ppid) = ppid;
		s->forks++;
		return;
	}
	s->comms++;
	if (u32_at(r, 8) == u32_at(r, 12)) {
		snprintf(s->comm, sizeof(s->comm), "%s", comm);
	} else {
		s->thread_tid = u32_at(r, 12);
		snprintf(s->thread_comm, sizeof(s->thread_comm), "%s", comm);
	}
}

static int take(void *ctx, const struct perf_event_header *r, size_t size_bytes)
{
	struct seen *s = ctx;
	size_t trailer = size_bytes - TRAILER_BYTES;
	/* FORK is pid, ppid, tid; the others are pid, tid. */
	uint32_t tid = u32_at(r, r->type == PERF_RECORD_FORK ? 16 : 12);

	assert_int_equal(r->size, size_bytes);
	assert_int_equal(size_bytes % 8, 0);
	assert_int_equal(u32_at(r, trailer), u32_at(r, 8));
	assert_int_equal(u32_at(r, trailer + 4), tid);
	for (size_t off = 8; off < TRAILER_BYTES; off += 8)
		assert_int_equal(u64_at(r, trailer + off), 0);
	s->n++;
	if (s->pid && u32_at(r, 8) != s->pid) {
		s->other_pid = true;
		return 0;
	}
	if (r->type == PERF_RECORD_MMAP2)
		take_mmap2(s, r);
	else
		take_task(s, r);
	return 0;
}

static void table_init(struct event_table *t)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .sample_id_all = 1,
				       .sample_type = PERF_SAMPLE_IP | TRAILER};

	*t = (struct event_table){0};
	assert_int_equal(event_table_add(t, &attr, "cpu-clock"), 0);
}

/* --- processes -------------------------------------------------------------------------------- */

static void *wait_thread(void *ctx)
{
	prctl(PR_SET_NAME, "a;b\n\xff)");
	__atomic_store_n((int *)ctx, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;)
		pause();
	return NULL;
}

static int count_exec(void *ctx, const struct proc_map *m)
{
	*(size_t *)ctx += m->exec;
	return 0;
}

/* The build-id as `readelf -n` prints it. */
static void readelf_build_id(const char *path, char *ret, size_t size)
{
	char command[4200], line[256];
	FILE *pipe;

	ret[0] = 0;
	snprintf(command, sizeof(command), "readelf -n '%s' 2>/dev/null", path);
	pipe = popen(command, "re");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		const char *id = strstr(line, "Build ID: ");

		if (id)
			snprintf(ret, size, "%.40s", id + strlen("Build ID: "));
	}
	pclose(pipe);
}

static void test_own_process(void **state)
{
	static struct seen s;
	struct event_table events;
	pthread_t thread;
	int tid = 0;
	size_t n_exec = 0;
	pid_t who[2];
	char id[64], hex[41], deleted[] = "/tmp/test_synthesize.XXXXXX";
	int fd = mkstemp(deleted);
	void *gone, *anon;
	bool seen_libc = false, seen_gone = false, seen_anon = false, seen_vdso = false;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	gone = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 4096);
	assert_true(gone != MAP_FAILED);
	unlink(deleted);
	anon = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	assert_int_equal(pthread_create(&thread, NULL, wait_thread, &tid), 0);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		usleep(1000);

	table_init(&events);
	s.pid = (uint32_t)getpid();
	/* A thread stands for its process, which comes once. */
	who[0] = tid;
	who[1] = getpid();
	assert_int_equal(synthesize_processes(who, 2, &events, take, &s), 0);
	assert_false(s.other_pid);
	assert_true(s.forks >= 2 && s.comms == s.forks); /* a sanitizer may have a thread too */
	assert_int_equal(s.fork_ppid, getppid());
	assert_string_equal(s.comm, "test_synthesize");
	assert_int_equal(s.thread_tid, tid);
	assert_int_equal(s.thread_ppid, getpid());
	assert_string_equal(s.thread_comm, "a;b\n\xff)");

	proc_maps_each(getpid(), count_exec, &n_exec);
	assert_int_equal(s.n_maps, n_exec);
	for (size_t i = 0; i < s.n_maps; i++) {
		uint64_t start = s.maps[i].start;
		const char *path = s.maps[i].path;

		if (start == (uint64_t)(uintptr_t)gone) {
			seen_gone = true;
			assert_true(str_starts(path, deleted));
			assert_true(str_ends(path, " (deleted)"));
			assert_int_equal(s.maps[i].pgoff, 4096);
			assert_int_equal(s.maps[i].prot, PROT_READ | PROT_EXEC);
			assert_int_equal(s.maps[i].flags, MAP_SHARED);
			assert_int_equal(s.maps[i].id_size, 0);
			assert_int_not_equal(s.maps[i].ino, 0);
		}
		if (start == (uint64_t)(uintptr_t)anon) {
			seen_anon = true;
			assert_string_equal(path, "//anon");
			assert_int_equal(s.maps[i].len, 4096);
			assert_int_equal(s.maps[i].prot, PROT_READ | PROT_WRITE | PROT_EXEC);
			assert_int_equal(s.maps[i].flags, MAP_PRIVATE);
		}
		seen_vdso |= str_eq(path, "[vdso]");
		if (!strstr(path, "/libc.so"))
			continue;
		seen_libc = true;
		assert_int_equal(s.maps[i].id_size, 20);
		readelf_build_id(path, id, sizeof(id));
		for (int j = 0; j < 20; j++)
			snprintf(hex + 2 * j, 3, "%02x", s.maps[i].id[j]);
		assert_string_equal(hex, id);
	}
	assert_true(seen_libc && seen_gone && seen_anon && seen_vdso);
	event_table_release(&events);
	close(fd);
}

static void test_all_processes(void **state)
{
	static struct seen s;
	struct event_table events;

	(void)state;
	table_init(&events);
	s.pid = (uint32_t)getpid();
	assert_int_equal(synthesize_processes(NULL, 0, &events, take, &s), 0);
	assert_true(s.other_pid);
	assert_true(s.n_maps > 3);
	event_table_release(&events);
}

static int refuse(void *ctx, const struct perf_event_header *r UNUSED, size_t n UNUSED)
{
	++*(int *)ctx;
	return -ENOSPC;
}

static void test_ends_and_gone_processes(void **state)
{
	struct event_table events;
	pid_t gone = fork(), self = getpid();
	int n = 0;

	(void)state;
	if (!gone)
		_exit(0);
	waitpid(gone, NULL, 0);
	table_init(&events);
	assert_int_equal(synthesize_processes(&self, 1, &events, refuse, &n), -ENOSPC);
	assert_int_equal(n, 1);
	assert_int_equal(synthesize_processes(&gone, 1, &events, refuse, &n), 0);
	assert_int_equal(n, 1);
	event_table_release(&events);
}

/* --- kernel ----------------------------------------------------------------------------------- */

struct kernel_seen {
	size_t n;
	uint64_t start[4], len[4], pgoff[4];
	char name[4][64];
};

static int take_kernel(void *ctx, const struct perf_event_header *r, size_t size_bytes)
{
	struct kernel_seen *s = ctx;

	assert_true(s->n < 4);
	assert_int_equal(r->type, PERF_RECORD_MMAP);
	assert_int_equal(r->misc, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(r->size, size_bytes);
	assert_int_equal(u32_at(r, 8), UINT32_MAX);
	assert_int_equal(u32_at(r, 12), 0);
	s->start[s->n] = u64_at(r, 16);
	s->len[s->n] = u64_at(r, 24);
	s->pgoff[s->n] = u64_at(r, 32);
	snprintf(s->name[s->n++], sizeof(s->name[0]), "%s", (const char *)r + 40);
	return 0;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_kernel_and_modules(void **state)
{
	struct kernel_seen s = {0};
	const struct kernel_files nowhere = {"/nowhere", "/nowhere", "/nowhere"};
	struct event_table events;
	char folder[] = "/tmp/test_synthesize.XXXXXX", kallsyms[64], modules[64], iomem[64];
	const struct kernel_files files = {kallsyms, modules, iomem};

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(kallsyms, sizeof(kallsyms), "%s/kallsyms", folder);
	snprintf(modules, sizeof(modules), "%s/modules", folder);
	snprintf(iomem, sizeof(iomem), "%s/iomem", folder);
	table_init(&events);
	write_text(kallsyms, "0000000000000000 A fixed_percpu_data\n"
			     "ffffffff81000000 T _stext\n"
			     "ffffffff81000000 T _text\n"
			     "broken line\n\n"
			     "ffffffff8220bb08 T _etext\n"
			     "ffffffff83000000 D _edata\n"
			     "ffffffffc0a00000 t _etext\t[mod]\n");
	write_text(modules, "nf_tables 303104 5 nft_ct,nft_compat, Live 0xffffffffc0a00000 (OE)\n"
			    "hidden 4096 0 - Live 0x0000000000000000\n"
			    "bad line\n"
			    "huge 18446744073709551615 0 - Live 0xffffffffc0b00000\n"
			    "loop 40960 0 - Live 0xffffffffc0c00000\n");
	assert_int_equal(synthesize_kernel_from(&files, &events, take_kernel, &s), 0);
	assert_int_equal(s.n, 3);
	/* As perf 6.1 writes it for such a kernel. */
	assert_string_equal(s.name[0], "[kernel.kallsyms]_text");
	assert_true(s.start[0] == 0xffffffff81000000 && s.len[0] == 0x120bb08);
	assert_true(s.pgoff[0] == s.start[0]);
	assert_string_equal(s.name[1], "[nf_tables]");
	assert_true(s.start[1] == 0xffffffffc0a00000 && s.len[1] == 303104 && !s.pgoff[1]);
	assert_string_equal(s.name[2], "[loop]");

#ifdef __x86_64__
	/* The end is told elsewhere, and what follows in kallsyms is not read. */
	s = (struct kernel_seen){0};
	write_text(iomem, "00001000-0009fbff : System RAM\n"
			  "00100000-3fffffff : System RAM\n"
			  "  01000000-02276987 : Kernel code\n"
			  "  02400000-02e0afff : Kernel rodata\n");
	assert_int_equal(synthesize_kernel_from(&files, &events, take_kernel, &s), 0);
	assert_true(s.start[0] == 0xffffffff81000000 && s.len[0] == 0x1276988);
#endif
	/* To a user who may not see them, all addresses are 0. */
	write_text(iomem, "00000000-00000000 : System RAM\n  00000000-00000000 : Kernel code\n");
	s = (struct kernel_seen){0};
	assert_int_equal(synthesize_kernel_from(&files, &events, take_kernel, &s), 0);
	assert_true(s.len[0] == 0x120bb08);
	s = (struct kernel_seen){0};
	write_text(kallsyms, "0000000000000000 T _text\n0000000000000000 T _etext\n");
	write_text(modules, "loop 40960 0 - Live 0x0000000000000000\n");
	assert_int_equal(synthesize_kernel_from(&files, &events, take_kernel, &s), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(synthesize_kernel_from(&nowhere, &events, take_kernel, &s), 0);
	assert_int_equal(s.n, 0);

	/* Without _etext the kernel ends behind its last function. */
	unlink(modules);
	write_text(kallsyms, "ffff800080010000 T _stext\nffff800081234567 t last\n");
	assert_int_equal(synthesize_kernel_from(&files, &events, take_kernel, &s), 0);
	assert_string_equal(s.name[0], "[kernel.kallsyms]_stext");
	assert_true(s.start[0] + s.len[0] == 0xffff800081235000);
	unlink(kallsyms);
	unlink(iomem);
	rmdir(folder);
	event_table_release(&events);
}

/* perf itself says what the record of this kernel is. */
static void test_kernel_as_perf_writes_it(void **state)
{
	struct kernel_seen s = {0};
	struct event_table events;
	char line[512], expected[128] = "";
	FILE *pipe;

	(void)state;
	table_init(&events);
	assert_int_equal(synthesize_kernel(&events, take_kernel, &s), 0);
	event_table_release(&events);
	pipe = popen("perf record -q -e cpu-clock -o - -- true 2>/dev/null | "
		     "perf script -i - --show-mmap-events 2>/dev/null",
		     "re");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe))
		if (strstr(line, "[kernel.kallsyms]") && !expected[0])
			snprintf(expected, sizeof(expected), "%s", strstr(line, "MMAP "));
	pclose(pipe);
	if (!expected[0] || !s.n) {
		skip_because("no perf here, or kernel addresses are hidden");
	}
	snprintf(line, sizeof(line), "MMAP -1/0: [0x%llx(0x%llx) @ 0x%llx]: x %s\n",
		 (unsigned long long)s.start[0], (unsigned long long)s.len[0],
		 (unsigned long long)s.pgoff[0], s.name[0]);
	assert_string_equal(line, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_all_processes),
		cmocka_unit_test(test_ends_and_gone_processes),
		cmocka_unit_test(test_kernel_and_modules),
		cmocka_unit_test(test_kernel_as_perf_writes_it),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
