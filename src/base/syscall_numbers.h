/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of numbers, which a script writes. */
#ifndef BASE_SYSCALL_NUMBERS_H
#define BASE_SYSCALL_NUMBERS_H

#include <inspect/base.h>

struct syscall_numbers {
	const char *name;
	int16_t x86_64, i386, x32, arm64;
};

extern const struct syscall_numbers syscall_numbers_table[]; /* sorted by name */
extern const size_t syscall_numbers_count;

/* By number: index + 1 in the table; 0: no such call. */
extern const uint16_t syscall_rows_x86_64[], syscall_rows_i386[], syscall_rows_x32[],
	syscall_rows_arm64[];
extern const size_t syscall_rows_x86_64_count, syscall_rows_i386_count, syscall_rows_x32_count,
	syscall_rows_arm64_count;

#endif
