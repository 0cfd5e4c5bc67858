#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Frames that newer kernels take and those before 6.13 do not.
set -u
O=${O:-build}
echo 'bpf_frames: each chain of calls in BPF programs has at most 8 frames, of 512 bytes together'
found=$(PYTHONDONTWRITEBYTECODE=1 python3 tests/lint/bpf_frames.py "$O"/bpf/*.o) || exit 1
[ -z "$found" ] || {
	echo "$found"
	exit 1
}
