#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# trace --gpu against a driver of our own (FUSE), which logs how long it took and says what the test
# told it to.
. "$(dirname "$0")/lib.sh"

calls=$O/workloads/gpu_calls
dev=$tmp/dev
mkdir "$dev"
"$O/workloads/fake_gpu" "$dev" "$tmp/log" 2>"$tmp/server" &
server=$!
on_exit "fusermount3 -qu $dev; kill $server 2>/dev/null; wait $server"
for ((i = 0; i < 100; i++)); do
	[ -e "$dev/nvidiactl" ] && break
	sleep 0.05
done
[ -e "$dev/nvidiactl" ] || skip_all "no FUSE here: $(cat "$tmp/server")"


# gpu VERSION OPTION… -- STEP…: JSON into $tmp/json, of all devices but null0 and card0
gpu() {
	local version=$1
	shift
	"$INSPECT" trace --gpu --device "$dev/nvidiactl" --device "$dev/nvidia0" \
		--device "$dev/nvidia-uvm" --nvidia-version "$version" "$@" >"$tmp/json" 2>"$tmp/err"
}

# fits SCHEMA NAME: the JSON is as docs/json says
fits() { is "$(python3 tests/cmd/schema.py "docs/json/$1.schema.json" "$tmp/json" 2>&1)" '' "$2"; }

# --- latency ---------------------------------------------------------------------------------------

: >"$tmp/log"
GPU_CALLS_FIFO=1 gpu 550.54.14 -c --json -- "$calls" "$dev" answer 5000 28 0 0 open nvidiactl \
	threads 4 rm 0x2a 32 8:0x101 1000
row() { jq -r ".rows[] | select(.call == \"$1\") | .$2" "$tmp/json"; }
build='RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION'
is "$(row "$build" calls)" 1000 'all 1,000 calls of four threads'
# of TEXT PERCENT: that percentile of the numbers
of() { sort -n | awk -v p="$1" '{ v[NR] = $1 } END { i = int(NR * p / 100 + 0.999); print v[i] }'; }
# What the caller saw beyond that is the way through the kernel and back, on a busy machine too.
for p in 50 99; do
	served=$(awk '$1 == 42 { print $2 }' "$tmp/log" | of $p)
	seen=$(awk '$1 == "call" { print $2 }' "$tmp/err" | of $p)
	got=$(row "$build" "p${p}_ns")
	near "$got" "$seen" "$(awk "BEGIN { print $seen * 0.04 + 100000 }")" \
		"p$p is what the caller saw, within 4 % and 100 µs"
	near "$got" "$served" "$(awk -v way=$((seen > served ? seen - served : 0)) \
		"BEGIN { print $served * 0.04 + 100000 + way }")" "… and the server's, but for the way to it"
done
near "$(row "$build" total_ns)" "$(awk '$1 == 42 { s += $2 } END { print s }' "$tmp/log")" \
	"$(awk '$1 == 42 { s += $2 } END { print s * 0.04 + 1e8 }' "$tmp/log")" 'and so is the total'

fits trace-gpu 'the JSON fits its schema'
GPU_CALLS_FIFO=1 gpu 550.54.14 --hist --json -- "$calls" "$dev" answer 1000 28 0 0 open nvidiactl \
	rm 0x2a 32 8:0x101 50
fits trace-gpu-hist '… and so do distributions'
is "$(jq "[.histograms[] | select(.name == \"$build\") | .count] | add" "$tmp/json")" 50 '… with all calls'

# A call that has not ended.
"$calls" "$dev" answer 2000000 28 0 0 open nvidiactl rm 0x2a 32 8:0x101 1 &
caller=$!
sleep 0.5
is "$(cat /proc/$caller/comm 2>/dev/null)" gpu_calls 'a call is in the driver'
kill $caller
wait $caller 2>/dev/null
"$calls" "$dev" answer 1500000 28 0 0 open nvidiactl sleep 700 rm 0x2a 32 8:0x101 1 &
caller=$!
gpu 550.54.14 -c --json -p $caller -d 1.5
wait $caller
is "$(row "$build" calls),$(row "$build" in_flight)" 0,1 'a call in flight at the end is shown as that'
ok '[ "$(row "$build" oldest_ns)" -gt 100000000 ]' '… with how long it has been'

# --- what the driver says --------------------------------------------------------------------------

# Version, size of RM_ALLOC's struct, where its status is
while read -r version size off; do
	gpu "$version" -c --json -- "$calls" "$dev" answer 0 "$off" 0x51 0 open nvidiactl \
		rm 0x2b "$size" 12:0x50a0 3
	is "$(jq -r '.errors[] | "\(.call) \(.error) \(.count)"' "$tmp/json")" \
		'RM_ALLOC NV50_MEMORY_VIRTUAL NV_ERR_NO_MEMORY 3' \
		"$version: RM_ALLOC of $size bytes fails, though ioctl returns 0"
done <<'END'
530.41.03 32 24
535.54.03 32 28
520.61.05 40 32
530.41.03 40 36
595.45.04 48 40
END
gpu 535.54.03 -c --json -- "$calls" "$dev" answer 0 24 0x51 0 open nvidiactl rm 0x2b 32 12:0x50a0 3
is "$(jq -r '.errors | length' "$tmp/json")" 0 \
	'what another version has there is no status'
gpu 530.41.03 -c --json -- "$calls" "$dev" answer 0 16 0x1f 0 open nvidia-uvm uvm 34 2 \
	answer 0 8 0x1f 0 uvm 34 2
is "$(row UVM_FREE calls),$(row UVM_FREE errors)" 4,2 "UVM's status, whose place differs by version"
gpu 595.45.04 -c --json -- "$calls" "$dev" answer 0 16 0x1f 0 open nvidia-uvm uvm 34 2 \
	answer 0 8 0x1f 0 uvm 34 3
is "$(row UVM_FREE calls),$(row UVM_FREE errors)" 5,3 '… and another version has it elsewhere'
gpu 595.45.04 -c --json -- "$calls" "$dev" answer 0 40 0x51 0 open nvidiactl xfer 0x2b 48 12:0xc86f 2
is "$(jq -r '.errors[] | "\(.call) \(.error) \(.count)"' "$tmp/json")" \
	'RM_ALLOC HOPPER_CHANNEL_GPFIFO_A NV_ERR_NO_MEMORY 2' 'a call inside of XFER_CMD'
gpu 550.54.14 -c --json -- "$calls" "$dev" answer 0 28 0x1234 0 open nvidiactl \
	rm 0x2a 32 8:0x2080fffe 1 rm 0x2b 36 12:1 1 rm 0x77 8 0:1 1 open nvidia-uvm uvm 0x7abc 1
is "$(jq -r '[.rows[].call | select(contains("unknown"))] | sort | join("|")' "$tmp/json")" \
	'RM_ALLOC 36 bytes unknown|RM_CONTROL 0x2080fffe unknown|UVM 0x7abc unknown|ioctl 0x77 unknown' \
	'unknown commands, sizes and numbers stay numbers'
is "$(jq -r '.errors[0].error' "$tmp/json")" '0x1234 unknown' '… and so does an unknown status'
gpu 470.57.02 -c --json -- "$calls" "$dev" answer 0 28 0x51 0 open nvidiactl rm 0x2a 32 8:0x101 2
like "$(jq -r '.rows[].call' "$tmp/json" | tr '\n' ' ')$(jq -r '.notes[]' "$tmp/json")" \
	'ioctl 0x2a unknown.*older than the tables' 'a driver older than the tables has no names'

# --- which descriptors -----------------------------------------------------------------------------

for how in dup fork pass; do
	gpu 550.54.14 -c --json -- "$calls" "$dev" answer 0 28 0 0 open nvidiactl $how \
		rm 0x2a 32 8:0x101 7
	is "$(row "$build" calls)" 7 "a descriptor come by by $how"
done
ln -s "$dev/nvidiactl" "$tmp/another"
gpu 550.54.14 -c --json -- "$calls" "$dev" answer 0 28 0 0 open "$tmp/another" rm 0x2a 32 8:0x101 7
is "$(row "$build" calls)" 7 'a node by another name'
mknod "$tmp/renamed" c 1 7
"$INSPECT" trace --gpu --device "$tmp/renamed" -c --json -- "$calls" "$dev" open /dev/full \
	raw 0x5401 4 open /dev/zero raw 0x5401 9 >"$tmp/json"
is "$(row "_IO('T', 0x1, 0)" calls)" 4 'a device is known by its number'
gpu 550.54.14 -c --json -- "$calls" "$dev" answer 0 28 0 0 open nvidiactl rm 0x2a 32 8:0x101 2 \
	open card0 raw 0xc0206442 5 open /dev/zero raw 0x5401 3 pipe raw 0x5401 6
is "$(jq -r '[.rows[] | select(.call | startswith("RM_") or startswith("_IO")) | .calls] | add' \
	"$tmp/json"),$(jq -r .ioctls_of_other_files "$tmp/json")" 2,15 "other files' ioctls are not counted"
"$INSPECT" trace --gpu --device "$dev/card0" -c --json -- "$calls" "$dev" open card0 \
	raw 0xc0206442 5 >"$tmp/json"
is "$(jq -r '.errors[] | "\(.call) \(.error) \(.count)"' "$tmp/json")" "_IOWR('d', 0x42, 32) ENOTTY 5" \
	"another driver's calls, by number"

# --- what is no ioctl ------------------------------------------------------------------------------

"$calls" "$dev" open nvidiactl set sleep 700 epoll 100 poll 100 mmap 65536 open nvidia0 &
caller=$!
sleep 0.2
gpu 550.54.14 -c --json -p $caller
wait $caller
is "$(jq -r '[.rows[] | select(.calls > 0) | "\(.call) \(.calls)"] | sort | join(",")' "$tmp/json")" \
	'epoll_wait 1,mmap 1,munmap 1,open 1,poll 1' \
	'waits at a set made before, polls, mappings, opens'
ok '[ "$(row epoll_wait total_ns)" -ge 99000000 ]' '… with their time'
like "$(jq -r '.findings[].rule' "$tmp/json")" gpu-open-slow 'a slow first open is told'

# --- the stream, and what is not freed -------------------------------------------------------------

steps=(answer 0 40 0 0 open nvidiactl rm 0x2b 48 0:0xc1,4:0xc1,8:0x51,12:0x50a0 1
	rm 0x2b 48 0:0xc1,4:0x51,8:0x52,12:0xc86f 1 rm 0x2b 48 0:0xc1,4:0xc1,8:0x53,12:0x50a0 1)
gpu 550.54.14 -- "$calls" "$dev" "${steps[@]}" answer 0 12 0 0 rm 0x29 16 0:0xc1,4:0xc1,8:0x51 1
like "$(cat "$tmp/json")" \
	'gpu_calls\] nvidiactl RM_ALLOC HOPPER_CHANNEL_GPFIFO_A client=0xc1 parent=0x51 object=0x52 = NV_OK <0\.' \
	'a line for each call'
like "$(cat "$tmp/json")" 'RM_FREE NV50_MEMORY_VIRTUAL client=0xc1 parent=0xc1 object=0x51 = NV_OK' \
	'what RM_FREE frees'
gpu 550.54.14 --leaks --json -- "$calls" "$dev" "${steps[@]}" answer 0 12 0 0 \
	rm 0x29 16 0:0xc1,4:0xc1,8:0x51 1
is "$(jq -r '.allocated, (.leaks[] | "\(.call) \(.objects)")' "$tmp/json" | tr '\n' ,)" \
	'3,RM_ALLOC NV50_MEMORY_VIRTUAL 1,' 'freeing an object frees those below it: one is left'

fits trace-gpu-leaks "the leaks' JSON fits its schema"

# --- what stands out -------------------------------------------------------------------------------

gpu 550.54.14 -c --by thread,call --json -- "$calls" "$dev" answer 0 28 0x51 0 open nvidiactl \
	rm 0x2a 32 8:0x101 3000
like "$(jq -r '.findings[].evidence' "$tmp/json")" "$build = NV_ERR_NO_MEMORY" \
	'a call that fails again and again is told'
unlike "$(jq -r '.findings[].rule' "$tmp/json")" 'gpu-driver-lock|gpu-sync|gpu-open' '… and nothing else of it'
like "$(jq -r '.rows[0].thread' "$tmp/json")" '^[0-9]+ gpu_calls$' 'rows by thread'
gpu 550.54.14 -c --by group,device --json -- "$calls" "$dev" answer 0 28 0 0 open nvidiactl \
	rm 0x2a 32 8:0x101 20 poll 300
is "$(jq -r '.rows[] | select(.group == "sync" or .group == "queries") | "\(.group) \(.device) \(.calls)"' \
	"$tmp/json" | sort | tr '\n' ,)" 'queries nvidiactl 20,sync nvidiactl 1,' 'rows by group and device'
like "$(jq -r '.findings[].rule' "$tmp/json")" gpu-sync 'waiting for the GPU is told'

# A driver with one lock: what takes 2 ms alone takes 8 beside three other threads.
GPU_CALLS_FIFO=1 gpu 550.54.14 -c --json -- "$calls" "$dev" serial answer 2000 28 0 0 open nvidiactl \
	rm 0x2a 32 8:0x101 60 threads 4 rm 0x2a 32 8:0x101 200
like "$(jq -r '.findings[] | "\(.rule) \(.evidence)"' "$tmp/json")" "gpu-driver-lock $build: calls take [2-5]\." \
	'calls that queue behind each other are told'
gpu 550.54.14 -c --json -- "$calls" "$dev" answer 2000 28 0 0 open nvidiactl \
	rm 0x2a 32 8:0x101 60 threads 4 rm 0x2a 32 8:0x101 200
unlike "$(jq -r '.findings[].rule' "$tmp/json")" gpu-driver-lock '… and those that do not are not'

# --- waits ---------------------------------------------------------------------------------------

# Descriptors are named by their path there: what begins with /dev/nvidia is a GPU.
mkdir /dev/nvidia-test-$$ && on_exit "umount -l /dev/nvidia-test-$$; rmdir /dev/nvidia-test-$$"
mount --bind "$dev" /dev/nvidia-test-$$
"$calls" /dev/nvidia-test-$$ answer 20000 28 0 0 open nvidiactl rm 0x2a 32 8:0x101 1000 &
caller=$!
"$INSPECT" record -q --wall -o "$tmp/wall.data" -p $caller -d 1 2>"$tmp/wall.err" &
recorder=$!
"$INSPECT" offcpu --json -p $caller -d 1 >"$tmp/json" 2>"$tmp/err"
wait $recorder
kill $caller
wait $caller
like "$(jq -r '[.waits[].for] | join("\n")' "$tmp/json")$(cat "$tmp/err")" \
	"\[gpu: RM_CONTROL\] /dev/nvidia-test-$$/nvidiactl" 'offcpu names waits in the driver'
ok '"$INSPECT" flame --folded "$tmp/wall.data" 2>/dev/null | grep -qF "[waiting: [gpu: RM_CONTROL] /dev/nvidia-test-$$/nvidiactl]"' \
	'and so does record --wall'

# --- refusals --------------------------------------------------------------------------------------

if grep -q nvidia /proc/devices; then
	skip 'there is an NVIDIA driver'
else
	exits 125 'without a driver it refuses' "$INSPECT" trace --gpu -c -- true
fi
