/* SPDX-License-Identifier: BSD-2-Clause */
/* Where stacks begin, and which of them do not reach that far. */
#include "naming.h"

/* Exact names, by origin; a version ("@@GLIBC_2.34", ".abi0" of Go) is ignored. */
static const char *const entry_names[] = {
	/* crt1.o, and what a program calls its beginning */
	"_start",
	"main",
	"_start_c",
	"_dl_start_user",
	"_dl_start",
	/* glibc: before main */
	"__libc_start_main",
	"__libc_start_main_impl",
	"__libc_start_call_main",
	"generic_start_main",
	/* glibc: threads; start_thread is called by clone, which has no caller */
	"start_thread",
	"clone",
	"__clone",
	"clone3",
	"__clone3",
	"__clone_internal",
	"__GI___clone",
	"__GI___clone3",
	"__GI___clone_internal",
	"thread_start",
	/* musl */
	"libc_start_main_stage2",
	/* bionic */
	"__libc_init",
	"__start_thread",
	"__pthread_start",
	"__bionic_clone",
	/* Go: goroutines return to goexit; the scheduler's own stacks begin in mstart or, where
	 * a goroutine has switched to them, in mcall */
	"runtime.goexit",
	"runtime.mstart",
	"runtime.mstart0",
	"runtime.mstart1",
	"runtime.mcall",
	"runtime.rt0_go",
	"runtime.main",
	"_rt0_amd64",
	"_rt0_amd64_linux",
	"_rt0_arm64_linux",
	"_rt0_386_linux",
	"_rt0_arm_linux",
	"_rt0_riscv64_linux",
	"crosscall_amd64",
	"crosscall1",
	"threadentry",
	"x_cgo_threadentry",
	/* Linux: kernel threads, idle CPUs, booting */
	"ret_from_fork",
	"ret_from_fork_asm",
	"kthread",
	"ret_from_kernel_thread",
	"secondary_startup_64",
	"secondary_startup_64_no_verify",
	"common_startup_64",
	"start_kernel",
	"x86_64_start_kernel",
	"x86_64_start_reservations",
	"start_secondary",
	"cpu_startup_entry",
	"secondary_start_kernel",
	"__secondary_switched",
	"__primary_switched",
	/* Linux: entries from user space */
	"entry_SYSCALL_64_after_hwframe",
	"entry_SYSCALL_64",
	"entry_SYSCALL_64_safe_stack",
	"entry_SYSCALL_compat_after_hwframe",
	"entry_INT80_compat",
	"el0_svc",
	"el0_sync",
	"el0t_64_sync",
	"el0t_64_sync_handler",
	"el0t_64_irq",
	"el0t_64_irq_handler",
	"el0_irq",
};

/* x86: asm_exc_page_fault, asm_sysvec_apic_timer_interrupt, … (DEFINE_IDTENTRY). */
static const char *const entry_prefixes[] = {"asm_exc_", "asm_sysvec_", "asm_common_interrupt"};

static size_t plain_length(const char *name)
{
	static const char *const suffixes[] = {".abi0", ".abiinternal", ".isra.0", ".constprop.0"};
	size_t n = strcspn(name, "@");

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t m = strlen(suffixes[i]);

		if (n > m && memcmp(name + n - m, suffixes[i], m) == 0)
			return n - m;
	}
	return n;
}

bool symbol_is_entry(const char *name)
{
	size_t n = plain_length(name);

	for (size_t i = 0; i < ARRAY_SIZE(entry_names); i++)
		if (strlen(entry_names[i]) == n && memcmp(entry_names[i], name, n) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(entry_prefixes); i++)
		if (str_starts(name, entry_prefixes[i]))
			return true;
	return false;
}

/* Where the code that runs before main and below a thread's function lives. */
static bool is_start_module(const char *module)
{
	static const char *const prefixes[] = {"libc.so",  "libc-2.", "libpthread",
					       "ld-linux", "ld-musl", "libc.musl"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts(module, prefixes[i]))
			return true;
	return false;
}

/* What a frame means at the root of a stack. */
enum root {
	ROOT_CUT,      /* the stack was not followed to its beginning */
	ROOT_COMPLETE, /* an entry point, or nothing to judge by */
	ROOT_START,    /* perhaps nameless start code: complete if another module comes after it */
};

static enum root judge_root(const struct naming *w, uint32_t frame)
{
	const struct profile *p = w->p;
	const struct symbol *s = &p->symbols.v[p->at.v[p->first.v[frame]].symbol];
	const struct dso *d = naming_dso(w, frame);

	/* Text has its stacks from elsewhere. A kernel frame at the root: a kernel thread, or user
	 * stacks were not asked for. */
	if (d->kind == DSO_NAMED || d->kind == DSO_KERNEL ||
	    p->frames.v[frame].kind == FRAME_KERNEL)
		return ROOT_COMPLETE;
	if (w->entry[frame] || symbol_is_entry(intern_str(&p->strings, s->name)))
		return ROOT_COMPLETE;
	return s->unknown && is_start_module(dso_short_name(d)) ? ROOT_START : ROOT_CUT;
}

static bool is_cut(const struct profile *p, const uint8_t *roots, uint32_t stack)
{
	uint32_t root = UINT32_MAX;

	for (uint32_t s = stack; s != STACK_ROOT; s = p->stacks.v[s].parent)
		root = p->stacks.v[s].frame;
	if (root == UINT32_MAX || roots[root] == ROOT_COMPLETE ||
	    (stack < p->ended.n && p->ended.v[stack]))
		return false;
	if (roots[root] == ROOT_CUT)
		return true;
	for (uint32_t s = stack; s != STACK_ROOT; s = p->stacks.v[s].parent) {
		const struct frame *f = &p->frames.v[p->stacks.v[s].frame];

		if (f->kind != FRAME_KERNEL && f->dso != p->frames.v[root].dso)
			return false;
	}
	return true;
}

static int intern_truncated(struct naming *w)
{
	static const char name[] = "[truncated]";

	return naming_symbol(w, name, strlen(name), "", FRAME_SYNTHETIC, false,
			     &w->p->truncated_symbol);
}

int naming_mark_cut(struct naming *w)
{
	struct profile *p = w->p;
	CLEANUP(freep) uint8_t *roots = calloc(p->frames.n ? p->frames.n : 1, 1);
	int err = roots ? array_reserve(&p->cut, p->stacks.n) : -ENOMEM;

	if (!err)
		err = intern_truncated(w);
	if (err)
		return err;
	p->cut.n = p->stacks.n;
	memset(p->cut.v, 0, p->cut.n);
	p->losses.truncated = 0;
	for (size_t i = 0; i < UNWIND_STOPS; i++)
		p->losses.truncated += p->losses.truncated_by[i];
	for (uint32_t i = 1; i < p->stacks.n; i++)
		if (p->stacks.v[i].parent == STACK_ROOT)
			roots[p->stacks.v[i].frame] = judge_root(w, p->stacks.v[i].frame);
	for (size_t i = 0; i < p->rows.n && !p->no_stacks; i++) {
		const struct profile_row *row = &p->rows.v[i];

		if (!is_cut(p, roots, row->stack))
			continue;
		p->cut.v[row->stack] = 1;
		p->losses.truncated += row->count;
	}
	return 0;
}
