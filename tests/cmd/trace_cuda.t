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
like "$(jq -r '.notes[]' "$tmp/json")" 'cuMemAlloc: the last of its errors is CUresult 2' '… as text, too'
is "$(row cuMemAlloc bytes),$(row cuMemcpyHtoD bytes),$(row cuMemcpyDtoHAsync bytes)" \
	81920,20000,2000 'bytes, without those that failed'
ok '[ "$(row cuStreamSynchronize p50_ns)" -ge 4800000 ]' 'a wait takes as long as it does'
ok '[ "$(row cuMemcpyDtoHAsync p50_ns)" -lt "$(row cuMemcpyHtoD p50_ns)" ]' \
	'an asynchronous copy is only enqueued'
like "$(jq -r .times "$tmp/json")" 'only enqueued' '… which the output says'
like "$(jq -r '.notes[]' "$tmp/json")" 'has no cuMemAllocAsync.*cuMemFreeAsync' \
	'functions that the library does not have are named'
ok '[ "$(jq .probe_pair_ns "$tmp/json")" -gt 100 ]' 'what the probes cost is measured'

is "$(python3 tests/cmd/schema.py docs/json/trace-cuda.schema.json "$tmp/json" 2>&1)" '' \
	'the JSON fits its schema'

# Where the program says that it lies: found before CMD runs, too.
mkdir "$tmp/cuda"
cp "$W/fake_cuda" "$tmp/cuda/libcuda.so.1"
cp "$calls" "$tmp/cu"
PATH=$tmp:$PATH cuda -- cu libcuda.so.1
is "$(row cuMemAlloc calls),$(jq -c '[.libraries[] | [.path, .unwatched_ns]]' "$tmp/json")" \
	"21,[[\"$tmp/cuda/libcuda.so.1\",null]]" 'a library by RUNPATH is watched from its first call on'

# Launches are asked for, and streams told apart; bytes and streams of each way that arguments have.
LD_LIBRARY_PATH=$tmp cuda --cuda-launch --by stream -- sh -c "'$calls' libcuda.so.1; '$calls' libcuda.so.1 layouts"
is "$(row cuLaunchKernel calls),$(row cuLaunchKernel stream),$(row cuStreamSynchronize stream)" \
	20,0x57,0x57 'launches and their streams'
is "$(jq -r '.rows[] | select(.call | IN("cuMemAllocPitch", "cuMemcpyPeerAsync", "cuMemcpyBatchAsync", "cuMemPrefetchAsync",
	"cuLaunchKernelEx") or test("Memset|[23]D")) | "\(.call) \(.calls) \(.stream) \(.bytes)"' "$tmp/json" | sort)" \
	'cuLaunchKernelEx 1 0x13 null
cuMemAllocPitch 1 null 3000
cuMemPrefetchAsync 1 0x17 300
cuMemPrefetchAsync 1 0x18 400
cuMemcpy2D 2 null 15150
cuMemcpy3DAsync 1 0x12 14000
cuMemcpyBatchAsync 1 0x15 null
cuMemcpyBatchAsync 1 0x16 null
cuMemcpyPeerAsync 1 0x14 777
cuMemsetD16 1 null 2000
cuMemsetD2D32Async 1 0x11 8000' 'bytes and streams in each kind of arguments, of each version'
is "$(row cuMemAlloc bytes)" $((20 * 4096 + 4096)) '… of 32 bits in the first'

LD_LIBRARY_PATH=$tmp cuda --hist -- "$calls" libcuda.so.1
is "$(jq -r '[.histograms[] | select(.name == "cuStreamSynchronize").count] | add' "$tmp/json")" 20 \
	'a distribution has all calls'
is "$(jq '[.histograms[] | select(.name == "cuStreamSynchronize" and .below_ns <= 5000000).count] | add // 0' "$tmp/json")" 0 \
	'… where they are'
is "$(python3 tests/cmd/schema.py docs/json/trace-cuda-hist.schema.json "$tmp/json" 2>&1)" '' '… and its JSON fits its schema'

# What has not returned, and what never will: two threads that wait for good, then killed.
mkfifo "$tmp/gate"
for then in : 'kill $2; while [ -d /proc/$2 ]; do sleep 0.05; done'; do
	"$calls" "$tmp/libcuda.so.1" 0 "$tmp/gate" for-good &
	pid=$!
	until grep -q libcuda /proc/$pid/maps; do sleep 0.02; done
	cuda --by thread -p $pid -- sh -c "echo >\"\$1\"; until [ \$(ls /proc/\$2/task | wc -l) = 3 ]; do sleep 0.05; done
		sleep 0.2; $then" sh "$tmp/gate" $pid
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	case $then in
	:)	is "$(jq -c '[.in_flight, (.rows[] | [.call, .calls, .in_flight, .unreturned])]' "$tmp/json")" \
			'[2,["cuStreamSynchronize",0,1,0],["cuStreamSynchronize",0,1,0]]' 'calls in flight at the end, by thread'
		ok '[ "$(jq "[.rows[] | .oldest_ns] | min" "$tmp/json")" -ge 150000000 ] &&
			[ "$(jq "[.rows[] | .total_ns] | max" "$tmp/json")" -le "$(jq .elapsed_ns "$tmp/json")" ]' '… with how long they have been'
		;;
	*)	is "$(jq -c '[.in_flight, (.rows[] | [.call, .calls, .in_flight, .unreturned])]' "$tmp/json")" \
			'[0,["cuStreamSynchronize",0,0,1],["cuStreamSynchronize",0,0,1]]' 'calls whose threads ended in them'
		like "$(jq -r '.notes[]' "$tmp/json")" '2 calls never returned' '… which a note says'
		;;
	esac
done

# A library that a running process loads later.
"$calls" "$tmp/libcuda.so.1" 1000 &
pid=$!
cuda -p $pid
wait $pid
is "$(row cuCtxSynchronize calls)" 1 'a library that is loaded while we watch'
is "$(jq ".libraries[0] | .pid == $pid and .unwatched_ns > 0" "$tmp/json") $(jq '.libraries[0].unwatched_ns < .elapsed_ns' "$tmp/json")" 'true true' \
	'… with how long it went unwatched at most'
like "$(jq -r '.notes[]' "$tmp/json")" "libcuda.so.1 of $pid was mapped up to [0-9.]+ .?s before it was watched" '… which a note says'
like "$(jq -r .library "$tmp/json")" "libcuda.so.1: 15 functions, 38 probes" '… with all its functions'

# A library at a path that only the target has, in its own mount namespace; and not even that: another
# file has been put in its place, as by an upgrade.
mkdir "$tmp/ns"
unshare -m sh -c 'mount -t tmpfs none "$1/ns" && cp "$1/libcuda.so.1" "$1/ns" && exec "$2" "$1/ns/libcuda.so.1" 0 "$1/gate"' \
	sh "$tmp" "$calls" >/dev/null &
pid=$!
until grep -q libcuda /proc/$pid/maps; do sleep 0.02; done
ok '[ ! -e "$tmp/ns/libcuda.so.1" ]' 'a library that is not here'
nsenter -t $pid -m sh -c 'rm "$1" && cp /bin/sh "$1"' sh "$tmp/ns/libcuda.so.1"
cuda -p $pid -- sh -c 'echo >"$1"; while [ -d /proc/$2 ]; do sleep 0.05; done' sh "$tmp/gate" $pid
wait $pid
like "$(jq -r '.notes[]' "$tmp/json")" 'calls that began before the start are not seen' '… and what is not seen is told'
is "$(row cuEventSynchronize calls),$(row cuStreamSynchronize calls)" 25,25 '… nor there any more, but mapped by the target'

cuda -- true
like "$(jq -r '.notes[]' "$tmp/json")" 'nothing of the target has loaded libcuda' 'a program without CUDA'
