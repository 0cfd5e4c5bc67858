#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints the tables of src/base/syscall_numbers.c from the kernel's exported headers.

    scripts/syscall_numbers.py /usr/lib/linux/uapi      # of a recent linux-libc-dev
"""
import os
import re
import sys
import textwrap


def numbers(path):
    line = re.compile(r"#define __NR_(\w+)\s+(?:\(__X32_SYSCALL_BIT \+ )?(\d+)")
    with open(os.path.join(sys.argv[1], path), encoding="ascii") as header:
        found = (line.match(text) for text in header)
        return {m[1]: int(m[2]) for m in found if m}


x86_64 = numbers("x86/asm/unistd_64.h")
i386 = numbers("x86/asm/unistd_32.h")
x32 = numbers("x86/asm/unistd_x32.h")
arm64 = numbers("arm64/asm/unistd_64.h")
names = sorted(set(x86_64) | set(i386) | set(arm64))
tables = (x86_64, i386, x32, arm64)

print("/* Sorted by name; -1: that ABI has no such call. */")
print("const struct syscall_numbers syscall_numbers_table[] = {")
print("\t/* name, x86-64, i386, x32, arm64 */")
for name in names:
    row = [table.get(name, -1) for table in tables]
    print('\t{"%s", %s},' % (name, ", ".join(map(str, row))))
print("};\n\nconst size_t syscall_numbers_count = ARRAY_SIZE(syscall_numbers_table);")
for title, table in zip(("x86_64", "i386", "x32", "arm64"), tables):
    rows = {number: names.index(name) + 1 for name, number in table.items()}
    cells = ", ".join(str(rows.get(n, 0)) for n in range(max(rows) + 1))
    print("\nconst uint16_t syscall_rows_%s[] = {" % title)
    print("\n".join(textwrap.wrap(cells + ",", 92, initial_indent="\t", subsequent_indent="\t")))
    print("};")
    print("const size_t syscall_rows_%s_count = ARRAY_SIZE(syscall_rows_%s);" % (title, title))
