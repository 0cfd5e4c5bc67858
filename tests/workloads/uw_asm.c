/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer -mno-red-zone */
/* Hand-written code with its CFA in other registers or in memory, as libcrypto has it. */
#include "uw.h"

#define BURN "mov $3000, %ecx\n1: dec %ecx\njnz 1b\n"

/* CFA = rax + 8, = *(sp + 8) + 8, and = *(sp + 8 + r9 * 8) + 8 */
__asm__(".text\n"
	".type by_rax, @function\nby_rax:\n.cfi_startproc\n"
	"mov %rsp, %rax\n.cfi_def_cfa_register %rax\n"
	"sub $256, %rsp\nand $-64, %rsp\n" BURN
	"mov %rax, %rsp\n.cfi_def_cfa_register %rsp\nret\n.cfi_endproc\n.size by_rax, . - by_rax\n"
	".type by_memory, @function\nby_memory:\n.cfi_startproc\n"
	"mov %rsp, %rax\n.cfi_def_cfa_register %rax\n"
	"sub $256, %rsp\nand $-64, %rsp\nmov %rax, 8(%rsp)\n"
	".cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8\n" BURN
	"mov 8(%rsp), %rsp\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n.size by_memory, . - by_memory\n"
	".type by_index, @function\nby_index:\n.cfi_startproc\n"
	"mov %rsp, %rax\n.cfi_def_cfa_register %rax\n"
	"sub $256, %rsp\nand $-64, %rsp\nmov $4, %r9d\nmov %rax, 8(%rsp,%r9,8)\n"
	".cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8\n" BURN
	"mov 8(%rsp,%r9,8), %rsp\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n"
	".size by_index, . - by_index\n");

NOINLINE static void call_all(void)
{
	__asm__ volatile("call by_rax\ncall by_memory\ncall by_index"
			 :
			 :
			 : "rax", "rcx", "r9", "memory", "cc");
}

int main(int argc, char **argv)
{
	while (uw_time_left(argc, argv))
		call_all();
	return 0;
}
