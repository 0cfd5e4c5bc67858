/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel and its modules as mappings of process -1 (tools/perf/util: machine.c
 * machine__create_kernel_maps, synthetic-events.c). */
#include "synthesize.h"

#include <inspect/perf_sampler.h>

#define MODULES_MAX 4096
#define KERNEL_PID UINT32_MAX

struct kernel_range {
	uint64_t text, stext, etext;
	uint64_t last_text; /* the highest function: for a kernel that does not tell _etext */
};

static void keep_symbol(struct kernel_range *k, uint64_t va, char type, const char *name)
{
	if (str_eq(name, "_text"))
		k->text = va;
	else if (str_eq(name, "_stext"))
		k->stext = va;
	else if (str_eq(name, "_etext"))
		k->etext = va;
	if (type == 't' || type == 'T')
		k->last_text = MAX(k->last_text, va);
}

/*
 * How long the kernel's text is, by the physical memory that it takes; 0: not told, as to users who
 * may not see addresses. To look for _etext means to have the kernel print 100,000 symbols, some 60
 * ms. On x86 alone is this from _text to _etext exactly (setup_arch).
 */
static uint64_t read_text_bytes(const char *iomem_path)
{
#ifdef __x86_64__
	CLEANUP(fclosep) FILE *file = fopen(iomem_path, "re");
	unsigned long long start, last;
	char line[256];
	int at;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " %llx-%llx : %n", &start, &last, &at) == 2 &&
		    str_eq(line + at, "Kernel code\n") && last > start)
			return last - start + 1;
#else
	(void)iomem_path;
#endif
	return 0;
}

/* Lines are "ADDRESS TYPE NAME", and a tab and "[MODULE]" after what is not the kernel's own. */
static int read_kernel_range(const struct kernel_files *files, struct kernel_range *ret)
{
	CLEANUP(fclosep) FILE *file = fopen(files->kallsyms, "re");
	uint64_t text_bytes = read_text_bytes(files->iomem);
	CLEANUP(freep) char *line = NULL;
	size_t cap = 0;

	if (!file)
		return -errno;
	setvbuf(file, NULL, _IOFBF, 16384); /* files of /proc ask for 1 KiB */
	while (getline(&line, &cap, file) > 0) {
		char *end, *name;
		uint64_t va = strtoull(line, &end, 16);

		if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
			continue;
		name = end + 3;
		name[strcspn(name, "\n")] = 0;
		if (!strchr(name, '\t'))
			keep_symbol(ret, va, end[1], name);
		if (ret->text && text_bytes)
			ret->etext = ret->text + text_bytes;
		/* In order of address: nothing that is wanted comes after the end of the text. */
		if (ret->text && ret->etext)
			break;
	}
	return ferror(file) ? -EIO : 0;
}

static int emit_kernel_mapping(struct record_builder *b, uint64_t start, uint64_t len,
			       uint64_t pgoff, const char *name)
{
	struct { /* PERF_RECORD_MMAP up to the file name */
		uint32_t pid, tid;
		uint64_t start, len, pgoff;
	} body = {.pid = KERNEL_PID, .start = start, .len = len, .pgoff = pgoff};

	record_begin(b, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	record_add(b, &body, sizeof(body));
	record_add_string(b, name);
	return record_end(b, KERNEL_PID, 0);
}

/* pgoff is the address of the symbol that the name ends with: a reader who knows another address
 * for it knows how far the kernel was moved. */
static int emit_kernel(struct record_builder *b, const struct kernel_files *files)
{
	struct kernel_range k = {0};
	uint64_t start, end;
	int err = read_kernel_range(files, &k);

	if (err)
		return err == -ENOENT || err == -EACCES || err == -EPERM ? 0 : err;
	start = k.text ? k.text : k.stext;
	end = k.etext > start ? k.etext : (k.last_text | 4095) + 1;
	if (!start || end <= start)
		return 0;
	return emit_kernel_mapping(b, start, end - start, start,
				   k.text ? "[kernel.kallsyms]_text" : "[kernel.kallsyms]_stext");
}

/* Lines are "NAME SIZE USERS USED_BY STATE ADDRESS". No file: a kernel without modules. */
static int emit_modules(struct record_builder *b, const char *modules_path)
{
	CLEANUP(fclosep) FILE *file = fopen(modules_path, "re");
	CLEANUP(freep) char *line = NULL;
	size_t cap = 0, n = 0;
	int err = 0;

	if (!file)
		return errno == ENOMEM ? -ENOMEM : 0;
	while (!err && n++ < MODULES_MAX && getline(&line, &cap, file) > 0) {
		char name[64], mapped[sizeof(name) + 2];
		unsigned long long size, va;

		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &size, &va) != 3 || !va ||
		    !size || va + size < va)
			continue;
		snprintf(mapped, sizeof(mapped), "[%s]", name);
		err = emit_kernel_mapping(b, va, size, 0, mapped);
	}
	return err;
}

int synthesize_kernel_from(const struct kernel_files *files, const struct event_table *events,
			   record_fn *emit, void *ctx)
{
	struct record_builder b;
	int err = record_builder_init(&b, events, emit, ctx);

	if (!err)
		err = emit_kernel(&b, files);
	if (!err)
		err = emit_modules(&b, files->modules);
	record_builder_release(&b);
	return err;
}

int synthesize_kernel(const struct event_table *events, record_fn *emit, void *ctx)
{
	static const struct kernel_files files = {"/proc/kallsyms", "/proc/modules", "/proc/iomem"};

	return synthesize_kernel_from(&files, events, emit, ctx);
}
