#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# trace --gpu against a driver of our own (FUSE), which logs how long it took and says what the test
# told it to.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu_lib.sh"

# says RULE REGEX NUMBER TOLERANCE NAME: what a finding says, with the number in its parentheses
says() {
	local evidence
	evidence=$(jq -r --arg r "$1" '.findings[] | select(.rule == $r).evidence' "$tmp/json")
	if [[ $evidence =~ $2 ]]; then
		near "${BASH_REMATCH[1]}" "$3" "$4" "$5"
	else
		like "$evidence" "$2" "$5"
	fi
}
# a_second SELECT: calls of rows; of_time SELECT: their percent of one thread's time
a_second() { jq ".elapsed_ns as \$e | [.rows[] | select($1).calls] | add / \$e * 1e9" "$tmp/json"; }
of_time() { jq ".elapsed_ns as \$e | [.rows[] | select($1).total_ns] | add / \$e * 100" "$tmp/json"; }

# Two that are past their start when they are wanted: one asks all the time, the other allocates and
# frees.
mkfifo "$tmp/gate.asks" "$tmp/gate.allocates"
cp "$calls" "$tmp/nvml_poller"
cp "$calls" "$tmp/starter"
pair="rm 0x2b 48 0:0xc1,4:0xc1,8:0x51,12:0x50a0 20 rm 0x29 16 0:0xc1,4:0xc1,8:0x51 20"
"$tmp/nvml_poller" "$dev" open nvidiactl gate "$tmp/gate.asks" rm 0x2a 32 8:0x101 200 & asks=$!
"$calls" "$dev" open nvidiactl gate "$tmp/gate.allocates" $pair $pair $pair $pair $pair & allocates=$!

# --- latency ---------------------------------------------------------------------------------------

: >"$tmp/log"
GPU_CALLS_FIFO=1 gpu 550.54.14 -c --json -- "$calls" "$dev" answer 5000 28 0 0 open nvidiactl \
	threads 4 rm 0x2a 32 8:0x101 1000
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

# Calls that have not ended, and those that began before.
held 1 '28 0 0' rm 0x2a 32 8:0x102 1 && stays=$held
held 2 '40 0x51 0' xfer 0x2b 48 12:0xc86f 1 && ends=$held
"$calls" "$dev" open nvidiactl set epoll 100000 & waits=$!
"$calls" "$dev" answer 5000 28 0 0 open nvidiactl gate "$tmp/gate" rm 0x2a 32 8:0x101 20 \
	touch "$tmp/log.called" answer hold:1 28 0 0 rm 0x2a 32 8:0x101 1 & caller=$!
until [ -n "$(in_call $waits "$polls")" ]; do sleep 0.02; done
gpu 550.54.14 -c --json -p $caller,$stays,$ends,$waits -- bash -c 'echo >"$1"; : >"$2.2"
	until [ -e "$2.called" ] && [ -n "$(in_call $3 "$5")" ] && [ ! -d /proc/$4 ]; do sleep 0.05; done; sleep 0.1' \
	bash "$tmp/gate" "$tmp/log" $caller $ends "$ioctl"
kill $waits
: >"$tmp/log.1"
wait $caller $stays $ends $waits
is "$(row "$build" calls),$(row "$build" in_flight)" 20,1 'a call in flight at the end is shown as that'
ok '[ "$(row "$build" oldest_ns)" -ge 100000000 ] && [ "$(row "$build" oldest_ns)" -le "$(jq .elapsed_ns "$tmp/json")" ]' \
	'… with how long it has been'
is "$(jq -c '.rows[] | select(.from_before > 0) | [.call, .calls, .errors, .in_flight, .from_before, .p50_ns]' "$tmp/json" | sort | tr '\n' ' ')" \
	'["RM_ALLOC HOPPER_CHANNEL_GPFIFO_A",1,1,0,1,null] ["RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_CPU_INFO",0,0,1,1,null] ["epoll_wait",0,0,1,1,null] ' \
	'calls of before the start: by name, in flight, or counted at their end without a latency'
is "$(jq .calls_from_before "$tmp/json")" 3 '… which the output says'
is "$(jq '.elapsed_ns as $e | [.rows[] | select(.from_before > 0) | .total_ns] | min > 0 and max <= $e' "$tmp/json")" true \
	'… with the time since the start'
like "$(jq -r '.notes[]' "$tmp/json")" 'epoll_wait: 1 in flight since before the start, for [0-9.]+ ' '… and how long that is at the least'

# --- what the driver says --------------------------------------------------------------------------

# One thread each.
is "$(jq '.elapsed_ns as $e | [.rows[] | select(.total_ns > $e or .wall_percent > 100).call] | length' "$tmp/json")" 0 \
	'no thread is in calls for longer than it was watched'

# The status of every call of every generation: trace_gpu_rules.t.
gpu 535.54.03 -c --json -- "$calls" "$dev" answer 0 24 0x51 0 open nvidiactl rm 0x2b 32 12:0x50a0 3
is "$(jq -r '.errors | length' "$tmp/json")" 0 \
	'what another version has there is no status'
gpu 595.45.04 -c --json -- "$calls" "$dev" answer 0 40 0x51 0 open nvidiactl xfer 0x2b 48 12:0xc86f 2 \
	cold 0x2b 48 12:0x50a0 1
is "$(jq -r '.errors[] | "\(.call) \(.error) \(.count)"' "$tmp/json") lost $(jq -r .lost "$tmp/json")" \
	'RM_ALLOC HOPPER_CHANNEL_GPFIFO_A NV_ERR_NO_MEMORY 2
RM_ALLOC NV50_MEMORY_VIRTUAL NV_ERR_NO_MEMORY 1 lost 0' \
	'a call inside of XFER_CMD; one whose struct comes into memory with it'
gpu 550.54.14 -c --json -- "$calls" "$dev" answer 0 28 0x1234 0 open nvidiactl \
	rm 0x2a 32 8:0x2080fffe 1 rm 0x2b 36 12:1 1 rm 0x2b 48 12:0xfffe 1 rm 0x77 8 0:1 1 open nvidia-uvm uvm 0x7abc 1
is "$(jq -r '[.rows[].call | select(contains("unknown"))] | sort | join("|")' "$tmp/json")" \
	'RM_ALLOC 0xfffe unknown|RM_ALLOC 36 bytes unknown|RM_CONTROL 0x2080fffe unknown|UVM 0x7abc unknown|ioctl 0x77 unknown' \
	'unknown commands, classes, sizes and numbers stay numbers'
is "$(jq -r '.errors[0].error' "$tmp/json")" '0x1234 unknown' '… and so does an unknown status'
gpu 470.57.02 -c --json -- "$calls" "$dev" answer 0 28 0x51 0 open nvidiactl rm 0x2a 32 8:0x101 2
like "$(jq -r '.rows[].call' "$tmp/json" | tr '\n' ' ')$(jq -r '.notes[]' "$tmp/json")" \
	'ioctl 0x2a unknown.*older than the tables' 'a driver older than the tables has no names'

gpu 600.10.01 -c --json -- "$calls" "$dev" answer 0 28 0x51 0 open nvidiactl rm 0x2a 32 8:0x101 2
like "$(jq -r '.driver_version, .notes[], .errors[].call' "$tmp/json" | tr '\n' ' ')" \
	"600.10.01 \(assumed\) .*of 595.45.04 are assumed.* $build" 'one that is newer has the newest names, which it says'

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
# FIOASYNC, FIONBIO and FIOCLEX are the kernel's own, of any file.
gpu 550.54.14 -c --json -- "$calls" "$dev" answer 0 28 0 0 open nvidiactl rm 0x2a 32 8:0x101 2 \
	raw 0x5452 2 raw 0x5421 1 raw 0x5451 1 open card0 raw 0xc0206442 5 open /dev/zero raw 0x5401 3 pipe raw 0x5401 6 \
	refuse 13 try nvidia0 try nvidia-uvm refuse 0 place nvidiactl
is "$(jq -r '[.rows[] | select(.call | startswith("open") | not) | "\(.call) \(.calls)"] | join(",")' "$tmp/json")" \
	"$build 2" "other files' ioctls are not counted, nor the kernel's own"
is "$(row open calls)" 3 '… nor an open that calls no driver (O_PATH), nor its close'
is "$(jq -r .ioctls_of_other_files "$tmp/json")" 21 '… but known'
is "$(jq -r '.errors[] | "\(.call) \(.error) \(.count)"' "$tmp/json")" 'open EACCES 2' 'opens that fail are shown'
"$INSPECT" trace --gpu --device "$dev/card0" -c --json -- "$calls" "$dev" open card0 \
	raw 0xc0206442 5 >"$tmp/json"
is "$(jq -r '.errors[] | "\(.call) \(.error) \(.count)"' "$tmp/json")" "_IOWR('d', 0x42, 32) ENOTTY 5" \
	"another driver's calls, by number"
unlike "$("$INSPECT" trace --gpu --device /dev/null -c -- true 2>&1)" 'GPU|launches' '… of which nothing is said of GPUs'

# --- what is no ioctl ------------------------------------------------------------------------------

# Waits that count: 100 ms at a set within one that has 100 others and came over a socket, all made
# before; 2, 3 and 4 ms at one that has the device, another one, one of two. What does not: the empty
# set, one that the device has left, was closed in, and a new one in the place of one that had it.
"$calls" "$dev" open nvidiactl plain others 100 join move nest leak 65536 gate "$tmp/gate" epoll 100 \
	unmap 16384 8192 unmap 0 65536 plain epoll 400 join epoll 2 leave epoll 400 \
	open nvidia0 plain join epoll 3 shut epoll 400 open nvidia-uvm join drop plain epoll 400 \
	join open nvidiactl join leave epoll 4 poll 100 mmap 65000 &
caller=$!
gpu 550.54.14 -c --json -p $caller "${let_go[@]}" $caller -
wait $caller
is "$(jq -r '[.rows[] | select(.calls > 0) | "\(.call) \(.calls)"] | sort | join(",")' "$tmp/json")" \
	'close 1,epoll_wait 4,mmap 1,munmap 3,open 3,poll 1' \
	'waits at sets that hold a device, polls, mappings, opens'
ok '[ "$(row epoll_wait total_ns)" -ge 99000000 ] && [ "$(row epoll_wait max_ns)" -lt 400000000 ]' '… with their time'
is "$(row mmap bytes),$(row munmap bytes)" 65536,131072 'bytes of whole pages; unmapped ones of a mapping made before, in parts'
says gpu-open-slow "([0-9]+) ms" "$(($(row open max_ns) / 1000000))" 1 'a slow first open is told, with its time'

# --- the stream, and what is not freed -------------------------------------------------------------

steps=(answer 0 40 0 0 open nvidiactl rm 0x2b 48 0:0xc1,4:0xc1,8:0x51,12:0x50a0 1
	rm 0x2b 48 0:0xc1,4:0x51,8:0x52,12:0xc86f 1 rm 0x2b 48 0:0xc1,4:0xc1,8:0x53,12:0x50a0 1)
gpu 550.54.14 --timestamps -- "$calls" "$dev" "${steps[@]}" answer 0 12 0 0 rm 0x29 16 0:0xc1,4:0xc1,8:0x51 1 mmap 65536
like "$(cat "$tmp/json")" \
	'[0-9]{2}:[0-9]{2}\.[0-9]{6} \[[0-9]+ gpu_calls\] nvidiactl RM_ALLOC HOPPER_CHANNEL_GPFIFO_A client=0xc1 parent=0x51 object=0x52 = NV_OK <0\.' \
	'a line for each call'
like "$(cat "$tmp/json")" 'RM_FREE NV50_MEMORY_VIRTUAL client=0xc1 parent=0xc1 object=0x51 = NV_OK' \
	'what RM_FREE frees'
like "$(cat "$tmp/json")" 'nvidiactl mmap bytes=65536 = 0x7[0-9a-f]+ <' 'what is mapped, with its size'
like "$(cat "$tmp/err")" 'launches need no system call: --cuda' 'what cannot be seen is said'
gpu 550.54.14 --json -- "$calls" "$dev" answer 0 28 0 0 open nvidiactl rm 0x2a 32 8:0x101 1
schema=docs/json/trace-gpu-stream.schema.json
jq '."$defs".call' $schema >"$tmp/schema"
head -1 "$tmp/json" >"$tmp/object"
is "$(python3 tests/cmd/schema.py "$tmp/schema" "$tmp/object" 2>&1)" '' 'a line of JSON for each call is as docs/json says'
tail -1 "$tmp/json" >"$tmp/object"
is "$(python3 tests/cmd/schema.py $schema "$tmp/object" 2>&1) $(jq -c '[.calls, .lost, .losses.unreadable]' "$tmp/object")" \
	' [2,0,0]' '… and the last one, with what was lost'
gpu 550.54.14 -c --by client,call --json -- "$calls" "$dev" answer 0 28 0 0 open nvidiactl \
	rm 0x2a 32 0:0xc1,8:0x101 3 rm 0x2a 32 0:0xc2,8:0x101 4 epoll 100
is "$(jq -r '.rows[] | select(.call != "open") | "\(.client) \(.calls)"' "$tmp/json" | sort | tr '\n' ,)" \
	'- 1,0xc1 3,0xc2 4,' "rows by the driver's client; a set that is made while we watch"

# --- what stands out -------------------------------------------------------------------------------

gpu 550.54.14 -c --by thread,call --json -- "$calls" "$dev" answer 0 28 0x51 0 open nvidiactl \
	rm 0x2a 32 8:0x101 3000
says gpu-failing-calls "^$build = NV_ERR_NO_MEMORY: ([0-9]+) times a second" "$(a_second '.errors > 0')" 1 \
	'a call that fails again and again is told, with its rate'
unlike "$(jq -r '.findings[].rule' "$tmp/json")" 'gpu-driver-lock|gpu-sync|gpu-open' '… and nothing else of it'
next=$(jq -r '.findings[] | select(.rule == "gpu-failing-calls").next' "$tmp/json")
is "$(PATH=$(dirname "$INSPECT"):$PATH bash -c "$next" 2>"$tmp/err" | grep -c 'NV_ERR_NO_MEMORY')" 3000 \
	'… with a command that shows these calls as it stands'
like "$(jq -r '.rows[0].thread' "$tmp/json")" '^[0-9]+ gpu_calls$' 'rows by thread'
gpu 550.54.14 -c --by group,device --json -- "$calls" "$dev" answer 0 28 0 0 open nvidiactl \
	rm 0x2a 32 8:0x101 20 poll 300
is "$(jq -r '.rows[] | select(.group == "sync" or .group == "queries") | "\(.group) \(.device) \(.calls)"' \
	"$tmp/json" | sort | tr '\n' ,)" 'queries nvidiactl 20,sync nvidiactl 1,' 'rows by group and device'
unlike "$(jq -r '.findings[].rule' "$tmp/json")" gpu-sync 'a wait that ends by its time is none for the GPU'
gpu 550.54.14 -c --json -- "$calls" "$dev" ready 30 open nvidiactl poll 9000 poll 9000 poll 9000 set epoll 9000 \
	epoll 9000 epoll 9000 ready 0
says gpu-sync "^gpu_calls: ([0-9]+) % of this thread" "$(of_time '.call | test("poll")')" 1 \
	'waiting for the GPU is told, with its share'

# Beside them a program that starts: what it asks and allocates is how it comes to what it has.
until [ "$(ps -o etimes= -p $asks)" -ge 11 ]; do sleep 0.2; done
"$calls" "$dev" answer 5000 28 0 0
gpu 550.54.14 -c --by call,comm --json -a -- bash -c 'echo >"$1"; echo >"$2"
	"$5" "$6" open nvidiactl rm 0x2a 32 8:0x101 90 rm 0x2b 48 12:0x50a0 90
	while [ -d /proc/$3 ] || [ -d /proc/$4 ]; do sleep 0.02; done' \
	bash "$tmp/gate.asks" "$tmp/gate.allocates" $asks $allocates "$tmp/starter" "$dev"
asked='.comm == "nvml_poller" and (.call | startswith("RM_"))' allocated='.comm == "gpu_calls" and (.call | startswith("RM_"))'
says gpu-pollers "^nvml_poller: ([0-9]+) queries a second" "$(a_second "$asked")" 1 'who asks all the time is told'
says gpu-pollers "together ([0-9.]+) % of one thread" "$(of_time "$asked")" 0.1 '… and what that costs'
says gpu-memory-calls "^gpu_calls: ([0-9]+) a second" "$(a_second "($allocated) and (.call | startswith(\"RM_ALLOC\"))")" 1 \
	'memory that comes and goes is told, not that of a start'
says gpu-memory-calls "together ([0-9.]+) % of one thread" "$(of_time "$allocated")" 0.1 '… with its share of a thread'

# A driver with one lock: what takes 2 ms alone takes 8 beside three other threads.
GPU_CALLS_FIFO=1 gpu 550.54.14 -c --json -- "$calls" "$dev" serial answer 2000 28 0 0 open nvidiactl \
	rm 0x2a 32 8:0x101 60 threads 4 rm 0x2a 32 8:0x101 200
like "$(jq -r '.findings[] | "\(.rule) \(.evidence)"' "$tmp/json")" "gpu-driver-lock $build: calls take [2-5]\." \
	'calls that queue behind each other are told'
gpu 550.54.14 -c --json -- "$calls" "$dev" answer 2000 28 0 0 open nvidiactl \
	rm 0x2a 32 8:0x101 60 answer 8000 28 0 0 threads 4 rm 0x2a 32 8:0x101 200
unlike "$(jq -r '.findings[].rule' "$tmp/json")" gpu-driver-lock '… and those that take longer side by side, but do not, are not'

# --- waits ---------------------------------------------------------------------------------------

# What lies in /dev/nvidia… and is called as its nodes are is a GPU.
mkdir /dev/nvidia-test-$$ && on_exit "umount -l /dev/nvidia-test-$$; rmdir /dev/nvidia-test-$$"
mount --bind "$dev" /dev/nvidia-test-$$
dev=/dev/nvidia-test-$$ started answer 20000 28 0 0 rm 0x2a 32 8:0x101 30 epoll 300 poll 500
"$INSPECT" offcpu --json -p $caller "${begun[@]}" "$tmp/begun" $caller - >"$tmp/json" 2>"$tmp/err" &
waits=$!
until [ -e "$tmp/begun" ] || [ ! -d /proc/$waits ]; do sleep 0.05; done
"$INSPECT" flame --wall --folded -o "$tmp/folded" -p $caller "${let_go[@]}" $caller - 2>"$tmp/err"
wait $caller $waits
like "$(jq -r '[.waits[].for] | join("\n")' "$tmp/json")$(cat "$tmp/err")" \
	'\[gpu: RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION\] nvidiactl' 'offcpu names waits in the driver'
like "$(jq -r '[.waits[] | select(.reason == "gpu").for] | sort | join("\n")' "$tmp/json")" \
	'\[gpu: epoll_wait\] nvidiactl.*\[gpu: poll\] nvidiactl' '… also by poll and epoll'
near "$(grep -F "ioctl;" "$tmp/folded" | grep -F "[gpu: $build] nvidiactl" |
	awk '{ s += $NF } END { printf "%d", s }')" "$(awk '$1 == 42 { print $2 }' "$tmp/log" | tail -n 30 |
	awk '{ s += $1 } END { printf "%d", s }')" 100000000 '… and so do flame and record --wall, with their time'

# --- refusals --------------------------------------------------------------------------------------

if grep -q nvidia /proc/devices; then
	skip 'there is an NVIDIA driver'
else
	exits 125 'without a driver it refuses' "$INSPECT" trace --gpu -c -- true
fi
like "$("$INSPECT" trace --gpu --explain --limit gpu-sync=77)" 'gpu-driver-lock.*sync-wall-percent > 77' \
	'its rules, with a limit that was given'
exits 2 '… and no others' "$INSPECT" trace --gpu --limit small-writes=1 -c -- true
exits 2 'what it cannot do is refused, not left out' "$INSPECT" trace --gpu --device /dev/null --stack -- true
