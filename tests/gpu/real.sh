#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# trace --gpu and --cuda on a real GPU: a CUDA program that allocates, copies, launches, waits and
# frees. What the driver was asked is kept in tests/data/gpu/VERSION.json. Not part of `make test`.
if ! grep -qs nvidia /proc/devices || ! [ -e /dev/nvidiactl ]; then
	echo "1..0 # SKIP skipped: no NVIDIA device"
	exit 0
fi
. "$(dirname "$0")/../cmd/lib.sh"
program=$W/cuda_real
[ -x "$program" ] || { echo "Bail out! no $program: make $program"; exit 1; }
"$program" 10 >"$tmp/out" 2>&1 || skip_all "CUDA does not work here: $(cat "$tmp/out")"
version=$(cat /sys/module/nvidia/version)

"$INSPECT" trace --gpu -c --all --json -- "$program" 100 >"$tmp/gpu.json" 2>"$tmp/err"
is $? 0 'the program runs to its end under --gpu'
calls() { jq -r '.rows[].call' "$tmp/gpu.json"; }
for call in 'RM_ALLOC [A-Z]+_CHANNEL_GPFIFO_A' 'RM_ALLOC NV01_DEVICE_0' 'RM_ALLOC FERMI_VASPACE_A' \
	'RM_CONTROL NV0080_CTRL_|RM_CONTROL NV2080_CTRL_' 'RM_FREE' 'UVM_INITIALIZE' 'UVM_REGISTER_GPU' \
	'UVM_MAP_EXTERNAL_ALLOCATION' '^open$' '^mmap$'; do
	ok "calls | grep -qE '$call'" "the driver is asked for $call"
done
is "$(jq .driver_version "$tmp/gpu.json" | tr -d '"' | sed 's/ .*//')" "$version" "the driver's version"
unknown=$(jq '[.rows[] | select(.call | contains("unknown")) | .calls] | add // 0' "$tmp/gpu.json")
all=$(jq '[.rows[].calls] | add' "$tmp/gpu.json")
ok "[ $((unknown * 20)) -lt $all ]" "at most 5 % of the calls are unknown ($unknown of $all)"

# strace sees the same number of ioctls.
strace -f -c -e trace=ioctl -o "$tmp/strace" "$program" 100 >/dev/null 2>&1
theirs=$(awk '$NF == "ioctl" { print $4 }' "$tmp/strace")
ours=$(jq '[.rows[] | select(.call | test("^(RM_|UVM|ioctl|[A-Z_]+$)")) | .calls] | add' "$tmp/gpu.json")
near "$ours" "$theirs" "$((theirs / 20 + 5))" 'as many ioctls as strace counts'

"$INSPECT" trace --cuda --cuda-launch --json -- "$program" 100 >"$tmp/cuda.json" 2>"$tmp/err"
is $? 0 'the program runs to its end under --cuda'
cuda() { jq -r ".rows[] | select(.call == \"$1\") | .$2" "$tmp/cuda.json"; }
is "$(cuda cuLaunchKernel calls)" 100 'every launch'
is "$(cuda cuCtxSynchronize calls)" 1 'the synchronisation'
is "$(cuda cuMemcpyHtoD bytes),$(cuda cuMemcpyDtoH bytes)" 67108864,67108864 'copies, with their bytes'
is "$(cuda cuMemAlloc calls),$(cuda cuMemAlloc bytes)" 1,67108864 'the allocation'

mkdir -p "tests/data/gpu"
jq '{version: $v, calls: [.rows[] | {call, calls, errors}]}' --arg v "$version" "$tmp/gpu.json" \
	>"tests/data/gpu/$version.json"
diag "kept tests/data/gpu/$version.json; p50 of RM_CONTROL, ns: $(jq '[.rows[] |
	select(.call | startswith("RM_CONTROL")) | .p50_ns] | add / length | floor' "$tmp/gpu.json")"
diag "two probes cost a call $(jq .probe_pair_ns "$tmp/cuda.json") ns"
