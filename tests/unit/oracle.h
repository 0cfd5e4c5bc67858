/* SPDX-License-Identifier: BSD-2-Clause */
/* libdwfl on a sample's registers and stack copy: a second opinion on user stacks. */
#ifndef ORACLE_H
#define ORACLE_H

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inspect/procfs.h>
#include <inspect/unwind.h>
#include <sys/auxv.h>

#include "scratch.h"

enum { ORACLE_FRAMES_MAX = 512 };

/* One process at one moment: what libdwfl asks for, answered from a sample. */
struct oracle {
	Dwfl *dwfl;
	uint32_t pid;
	bool again; /* a module has come since */
	const struct sample *sample;
	uint64_t sp;
	uint64_t chain[ORACLE_FRAMES_MAX];
	size_t n;
};

static inline pid_t next_thread(Dwfl *dwfl UNUSED, void *arg, void **thread)
{
	struct oracle *o = arg;

	if (*thread)
		return 0;
	*thread = o;
	return (pid_t)o->pid;
}

static inline bool read_stack(Dwfl *dwfl UNUSED, Dwarf_Addr va, Dwarf_Word *ret, void *arg)
{
	const struct oracle *o = arg;
	uint64_t at = va - o->sp;

	if (va < o->sp || o->sample->stack_bytes < 8 || at > o->sample->stack_bytes - 8)
		return false;
	memcpy(ret, o->sample->stack + at, 8);
	return true;
}

static inline uint64_t perf_reg(const struct user_regs *r, unsigned reg)
{
	if (!(r->mask >> reg & 1))
		abort();
	return r->v[__builtin_popcountll(r->mask & ((1ULL << reg) - 1))];
}

static inline bool set_registers(Dwfl_Thread *thread, void *arg)
{
	static const uint8_t perf_of_dwarf[] = {0,  3,  2,  1,  4,  5,  6,  7, 16,
						17, 18, 19, 20, 21, 22, 23, 8};
	const struct oracle *o = arg;
	Dwarf_Word regs[17];

	for (size_t i = 0; i < ARRAY_SIZE(regs); i++)
		regs[i] = perf_reg(&o->sample->regs, perf_of_dwarf[i]);
	return dwfl_thread_state_registers(thread, 0, ARRAY_SIZE(regs), regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_stack,
	.set_initial_registers = set_registers,
};

static inline int find_no_debuginfo(Dwfl_Module *m UNUSED, void **u UNUSED, const char *name UNUSED,
				    Dwarf_Addr base UNUSED, const char *file UNUSED,
				    const char *link UNUSED, GElf_Word crc UNUSED,
				    char **path UNUSED)
{
	return -1;
}

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
					 .find_debuginfo = find_no_debuginfo,
					 .section_address = dwfl_offline_section_address};

static inline void report_module(struct oracle *o, const struct dso *d, const struct mapping *m,
				 uint64_t va)
{
	struct elf_file *f;
	uint64_t vaddr, off = va - m->start_va + m->pgoff_bytes;
	int fd = open(d->kind == DSO_VDSO ? "vdso" : d->path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (elf_file_open_fd(fcntl(fd, F_DUPFD_CLOEXEC, 0), &f)) {
		close(fd);
		return;
	}
	if (elf_file_off_to_vaddr(f, off, &vaddr))
		vaddr = off;
	elf_file_free(f);
	dwfl_report_elf(o->dwfl, d->path, d->path, fd, va - vaddr, false);
}

/* A module is reported when an address in it is met, and the walk is begun again. */
static inline void cover(struct oracle *o, struct process_table *t, uint64_t va)
{
	const struct mapping *m = process_table_find(t, o->pid, va);
	const struct dso *d;

	if (!m || dwfl_addrmodule(o->dwfl, va))
		return;
	d = t->dsos.dsos.v[m->dso];
	if (d->kind != DSO_ELF && d->kind != DSO_VDSO)
		return;
	dwfl_report_begin_add(o->dwfl);
	report_module(o, d, m, va);
	dwfl_report_end(o->dwfl, NULL, NULL);
	o->again = !!dwfl_addrmodule(o->dwfl, va);
}

struct frames {
	struct oracle *o;
	struct process_table *t;
};

static inline int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct frames *f = arg;
	Dwarf_Addr pc;
	bool exact;

	if (!dwfl_frame_pc(frame, &pc, &exact) || f->o->n == ORACLE_FRAMES_MAX)
		return DWARF_CB_ABORT;
	f->o->chain[f->o->n] = f->o->n ? pc + exact : pc;
	f->o->n++;
	cover(f->o, f->t, exact ? pc : pc - 1);
	return DWARF_CB_OK;
}

static inline void oracle_unwind(struct oracle *o, struct process_table *t, const struct sample *s)
{
	struct frames frames = {o, t};

	if (!o->dwfl || o->pid != s->pid) {
		dwfl_end(o->dwfl);
		o->dwfl = dwfl_begin(&callbacks);
		if (!o->dwfl)
			abort();
		o->pid = s->pid;
	}
	o->sample = s;
	o->sp = perf_reg(&s->regs, 7);
	cover(o, t, perf_reg(&s->regs, 8));
	dwfl_attach_state(o->dwfl, NULL, (pid_t)o->pid, &thread_callbacks, o);
	do {
		o->again = false;
		o->n = 0;
		dwfl_getthread_frames(o->dwfl, (pid_t)o->pid, add_frame, &frames);
	} while (o->again);
}

/* What a signal handler returns to is not a return address to libdwfl. */
static inline bool same_frame(uint64_t ours, uint64_t theirs)
{
	return ours == theirs || ours + 1 == theirs;
}

static inline int copy_vdso(void *ctx, const struct proc_map *map)
{
	if (map->start != *(uint64_t *)ctx)
		return 0;
	write_file("vdso", (const void *)(uintptr_t)map->start, map->end - map->start);
	return 1;
}

/* For libdwfl, which wants files. */
static inline int write_vdso(void)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR);

	return proc_maps_each(getpid(), copy_vdso, &start) == 1 ? 0 : -1;
}

#endif
