#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lines of `strace -f` or `inspect trace` in a form that must be equal for the same calls.

    strace_lines.py strace|inspect FILE

Left out: numbers of processes, addresses, and what one of them shows and the other does not: names
of descriptors (inspect), times (inspect), comments (strace).
"""
import re
import sys

CUT = 32  # strace cuts the strings of argv, inspect shows them whole


def of_strace(text, begun={}):
    match = re.match(r"(\d+) +(.*)", text)
    if not match or match[2].startswith(("+++", "---")):
        return None
    thread, text = match[1], match[2]
    if text.endswith("<unfinished ...>"):
        begun[thread] = text[: -len(" <unfinished ...>")]
        return None
    text = re.sub(r"^<\.\.\. \w+ resumed>", lambda _: begun.pop(thread, ""), text)
    return re.sub(r" /\* \d{4}-[^*]*\*/", "", text)


def of_inspect(text):
    match = re.match(r"\[\d+ [^]]*\] (.*)", text)
    if not match:
        return None
    text = re.sub(r" <\d+\.\d{6}>$", "", match[1])
    text = re.sub(r"(\d|AT_FDCWD)<[^<>]*(?:->[^<>]*)?>", r"\1", text)
    return re.sub(r"([(, ])<[^<>\"]*>\"", r'\1"', text)


def same(text):
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    text = re.sub(r'"([^"]{%d})[^"]*"(?:\.\.\.)?' % CUT, r'"\1"...', text)
    # Numbers of processes.
    text = re.sub(r"^(wait4)\(\d+", r"\1(PID", text)
    text = re.sub(r"^(wait4|v?fork|clone3?|getpid|set_tid_address)\b(.*) = \d{2,}$", r"\1\2 = PID", text)
    text = re.sub(r"\(\) *= ", "() = ", text)
    return re.sub(r"\) +=", ") =", text)


read = {"strace": of_strace, "inspect": of_inspect}[sys.argv[1]]
with open(sys.argv[2], encoding="utf-8", errors="replace") as lines:
    for line in lines:
        line = read(line.rstrip("\n"))
        if line is not None:
            print(same(line))
