#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# trace --cuda on a libcuda.so.1 whose functions take a known time.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
cp "$W/fake_cuda" "$tmp/libcuda.so.1"
calls=$W/cuda_calls

cuda() {
	"$INSPECT" trace --cuda --json "$@" >"$tmp/json" 2>"$tmp/err" || diag "$(cat "$tmp/err")"
}
row() { jq -r ".rows[] | select(.call == \"$1\") | .$2" "$tmp/json"; }

# Where the loader looks: there before CMD runs.
LD_LIBRARY_PATH=$tmp cuda -- "$calls" libcuda.so.1
is "$(jq -r '[.rows[] | "\(.call) \(.calls) \(.errors)"] | sort | join(",")' "$tmp/json")" \
	'cuCtxSynchronize 1 0,cuMemAlloc 21 1,cuMemFree 20 0,cuMemcpyDtoHAsync 20 0,cuMemcpyHtoD 20 0,cuStreamSynchronize 20 0' \
	'every call of every variant, and no other function'
is "$(row cuMemAlloc last_error)" 2 'what a failed call returned'
is "$(row cuMemAlloc bytes),$(row cuMemcpyHtoD bytes),$(row cuMemcpyDtoHAsync bytes)" \
	81920,20000,2000 'bytes, without those that failed'
ok '[ "$(row cuStreamSynchronize p50_ns)" -ge 4800000 ]' 'a wait takes as long as it does'
ok '[ "$(row cuMemcpyDtoHAsync p50_ns)" -lt "$(row cuMemcpyHtoD p50_ns)" ]' \
	'an asynchronous copy is only enqueued'
like "$(jq -r .times "$tmp/json")" 'only enqueued' '… which the output says'
like "$(jq -r '.notes[]' "$tmp/json")" 'has no cuEventSynchronize.*cuMemFreeAsync' \
	'functions that the library does not have are named'
ok '[ "$(jq .probe_pair_ns "$tmp/json")" -gt 100 ]' 'what the probes cost is measured'

is "$(python3 tests/cmd/schema.py docs/json/trace-cuda.schema.json "$tmp/json" 2>&1)" '' \
	'the JSON fits its schema'

# Launches are asked for, and streams told apart.
LD_LIBRARY_PATH=$tmp cuda --cuda-launch --by stream -- "$calls" libcuda.so.1
is "$(row cuLaunchKernel calls),$(row cuLaunchKernel stream),$(row cuStreamSynchronize stream)" \
	20,0x57,0x57 'launches and their streams'

# A library that a running process loads later.
"$calls" "$tmp/libcuda.so.1" 1000 &
pid=$!
cuda -p $pid
wait $pid
is "$(row cuCtxSynchronize calls)" 1 'a library that is loaded while we watch'
like "$(jq -r .library "$tmp/json")" "libcuda.so.1: 6 functions, 12 probes" '… with all its functions'

cuda -- true
like "$(jq -r '.notes[]' "$tmp/json")" 'nothing of the target has loaded libcuda' 'a program without CUDA'
