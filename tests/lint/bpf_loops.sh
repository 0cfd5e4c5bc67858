#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A loop that Linux before 6.8 takes for an error makes a program that loads here fail there.
set -u
O=${O:-build}
echo 'bpf_loops: loops of BPF programs end in a jump, as kernels before 6.8 want it'
found=$(PYTHONDONTWRITEBYTECODE=1 python3 tests/lint/bpf_loops.py "$O"/bpf/*.o) || exit 1
[ -z "$found" ] || {
	echo "$found"
	echo 'as claim_row in bpf/syscalls_rows.bpf.h does'
	exit 1
}
