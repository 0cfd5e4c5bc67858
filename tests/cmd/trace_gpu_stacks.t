#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Driver calls by the stack that made them: trace --gpu -c --by stack, --leaks, flame --gpu. The
# calling program says how long each call took it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu_lib.sh"

# of FUNCTION CALL COLUMN: the sum over rows of that call that the function is on the stack of
of() {
	jq --arg f "$1" --arg c "$2" '([.stacks[] | select(.function == $f) | .wait] | unique) as $n |
		[.rows[] | select(.call == $c and (.row as $r | $n | index($r))).'"$3"'] | add // 0' "$tmp/json"
}
# told FROM N: what that many calls took, as the caller saw it
told() { awk '$1 == "call"' "$tmp/told" | tail -n +"$1" | head -n "$2" | awk '{ s += $2 } END { printf "%d", s }'; }

# --- by stack --------------------------------------------------------------------------------------

# 95 quick calls and 5 slow ones of beta: that is where the slow tail comes from. Beside it, two calls
# of beta of before, of which one ends.
held 1 '28 0 0' from beta rm 0x2a 32 8:0x102 1 && stays=$held
held 2 '28 0 0' from beta rm 0x2a 32 8:0x102 1 && ends=$held
started touch "$tmp/log.2" answer 500 28 0 0 from alpha rm 0x2a 32 8:0x101 100 \
	from beta rm 0x2a 32 8:0x101 95 answer 20000 28 0 0 rm 0x2a 32 8:0x101 5 \
	answer 0 28 0x51 0 rm 0x2a 32 8:0x101 3 touch "$tmp/done" \
	answer 1500000 28 0 0 from alpha rm 0x2a 32 8:0x102 1
# A flame graph of the same calls.
"$INSPECT" flame --gpu --folded -o "$tmp/folded" --device "$dev/nvidiactl" --nvidia-version 550.54.14 \
	-p $caller "${begun[@]}" "$tmp/begun" $caller "$tmp/done" 2>"$tmp/err" &
flame=$!
until [ -e "$tmp/begun" ] || [ ! -d /proc/$flame ]; do sleep 0.05; done
gpu 550.54.14 -c --by stack --sort max -o "$tmp/x.data" --flame "$tmp/x.svg" --json -p $caller,$stays,$ends \
	"${let_go[@]}" $caller "$tmp/done"
wait $flame
is "$(of alpha "$build" calls) $(of beta "$build" calls) $(of beta "$build = NV_ERR_NO_MEMORY" calls)" \
	'100 100 3' 'calls of each function, and those that failed, exactly'
for part in 'alpha 1 100' 'beta 101 100'; do
	set -- $part
	near "$(of $1 "$build" total_ns)" "$(told $2 $3)" "$(($(told $2 $3) / 25 + 100000 * $3))" \
		"… of $1 with the time that it saw, within 4 % and 100 µs a call"
done
is "$(jq -r '[.rows[] | select(.call | startswith("RM_")).caller] | unique | join(" ")' "$tmp/json")" \
	'alpha beta' 'called by: the function outside of libc'
is "$(jq -c '.rows[] | select(.in_flight > 0 and (.call | contains("before") | not)) | [.calls, .in_flight, .caller]' "$tmp/json")" \
	'[0,1,"alpha"]' 'what has not returned is in flight, with its stack'
is "$(jq -c '.rows[] | select(.call | contains("before")) | [.call, .calls, .in_flight, .caller, .p99_ns, .max_ns]' "$tmp/json" | sort | tr '\n' ' ')" \
	"$(printf '["RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_CPU_INFO (since before the start)",%s,"beta",null,null] ' 0,1 1,0)" \
	'… and so is what began before, by name, and counted when it has, without a latency'
like "$(jq -r '.findings[] | "\(.rule) \(.evidence)"' "$tmp/json")" "gpu-slow-tail $build from beta < " \
	'a slow tail is told with the stack that it comes from'
is "$(jq .lost "$tmp/json")" 0 'nothing is lost'
fits trace-gpu-stacks 'the JSON fits its schema'
"$INSPECT" report --json "$tmp/x.data" >"$tmp/report" 2>/dev/null
is "$(jq -r '.events[0] | .event, .unit, .weight' "$tmp/report" | tr '\n' ' ')" \
	"gpu-driver ns $(jq '[.rows[].total_ns] | add' "$tmp/json") " 'the file has the same time, as event gpu-driver'
ok 'grep -qF "[gpu: $build]" "$tmp/x.svg"' 'and so has the picture'
kill $caller 2>/dev/null # it ends when the driver has answered
: >"$tmp/log.1"
wait $stays $ends
near "$(awk -v call="$build]" '/;main;.*alpha;/ && index($0, call) { s += $NF } END { printf "%d", s }' "$tmp/folded")" \
	"$(told 1 100)" "$(($(told 1 100) / 25 + 10000000))" 'flame --gpu: time in the driver by stack'
exits 2 '… without samples' "$INSPECT" flame --gpu -e cycles -- true
exits 2 '… and not of a file' "$INSPECT" flame --gpu --folded "$tmp/x.data"

# --- what is not freed -----------------------------------------------------------------------------

made='answer 0 40 0 0 rm 0x2b 48'
started from alpha $made 0:0xc1,4:0xc1,8:0x51,12:0x50a0 1 \
	$made 0:0xc1,4:0x51,8:0x52,12:0xc86f 1 $made 0:0xc1,4:0xc1,8:0x53,12:0x50a0 1 \
	from beta $made 0:0xc1,4:0xc1,8:0x54,12:0x50a0 1 $made 0:0xc1,4:0xc1,8:0x55,12:0x50a0 1 \
	answer 0 12 0 0 rm 0x29 16 0:0xc1,4:0xc1,8:0x51 1 leak 32768 unmap 0 32768 leak 65536 \
	unmap 0 4096 unmap 16384 12288 unmap 8192 12288 over 40960 4096 leak 32768 remap 0 32768 16384 unmap 0 4096 \
	cover 4096 8192 answer 0 20 0 0 rm 0x4a 184 4:0xc1,8:2,44:0x56,88:0x100000 1 \
	rm 0x4a 184 4:0xc1,8:14,44:0x57,80:0x200000 1 rm 0x4a 184 4:0xc1,8:3,44:0x56 1
gpu 550.54.14 --leaks --json -p $caller "${let_go[@]}" $caller -
wait $caller
is "$(jq -r '.allocated, .not_freed, (.leaks[] | "\(.call) \(.objects) \(.bytes) \(.caller)")' "$tmp/json" | sort | tr '\n' ,)" \
	'11,7,RM_ALLOC NV50_MEMORY_VIRTUAL 1 null alpha,RM_ALLOC NV50_MEMORY_VIRTUAL 2 null beta,RM_VID_HEAP_CONTROL ALLOC_SIZE_RANGE 1 2097152 beta,mmap nvidiactl 1 8192 step,mmap nvidiactl 2 40960 step,' \
	'what is left, by the stack that made it: what lay below a freed object is not'
like "$(jq -r '.leaks[] as $l | select($l.caller == "beta") | [.stacks[] | select(.wait == $l.leak).function] | join(" ")' "$tmp/json")" \
	'ioctl beta .* main ' '… with all of it'
fits trace-gpu-leaks 'the JSON fits its schema'
exits 2 'stack goes with no other key' "$INSPECT" trace --gpu -c --by stack,thread -- true
