#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect trace --probe on functions, USDT probes and tracepoints whose numbers are known.
# A mount namespace of its own, so that tracefs can be mounted for the tracepoints.
[ "$(id -u)" != 0 ] || [ -n "${IN_NAMESPACE:-}" ] || IN_NAMESPACE=1 exec unshare -m bash "$0" "$@"
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing || exit 1
repo=$PWD
cd "$tmp" || exit 1

probe() {
	"$INSPECT" trace --json "$@" >p.json 2>err
}
row() {
	jq -c "[.rows[] | select($1) | $2]" p.json
}

# --- functions ---
probe --probe "u:$W/timed:phase::run" -- "$W/timed" 100
is "$(jq .events p.json)" 100 'a C++ function by its name without parameters: every call'
ok '[ "$(jq ".rows[0].p50_ns" p.json)" -ge 1000000 ]' '… with its length'
is "$(jq '[.histograms[].count] | add' p.json)" 100 'the bars have them all'
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-probe.schema.json" p.json 2>&1)" '' 'the JSON fits its schema'
probe --probe "u:$W/timed:phase::run(long, long*)" --by arg1 -- "$W/timed" 100
is "$(jq -c '[.rows[] | [.arg1, .values]] | sort' p.json)" '[["100",50],["5000",50]]' 'by the value of an argument'
probe --probe "u:$W/timed:phase::run" --if 'arg1>4096' -- "$W/timed" 100
is "$(jq .events p.json)" 50 '--if on an argument'
probe --probe "u:$W/timed:phase::run" --if 'retval<0 && arg1==5000' --of arg1 -- "$W/timed" 100
is "$(jq -c '[.events, .rows[0].max, .rows[0].avg]' p.json)" '[50,5000,5000]' '--if on the result, and the distribution of an argument'
probe --probe "u:$W/timed:countdown" -- "$W/timed" 50
is "$(jq -c '[.events, ([.losses[]] | add)]' p.json)" '[450,0]' 'a function that calls itself: each call with its own end'
probe --probe "u:$W/timed:countdown+0x0" --by retval -- "$W/timed" 10
is "$(jq '[.rows[] | select(.retval == "8").values] | add' p.json)" 10 'by result'
probe --probe 'u:libc.so.6:nanosleep' --by comm -- "$W/timed" 20
is "$(row true '.comm')" '["timed"]' 'a library by its name'

# Of a process that runs already, with --until between two functions.
cp "$W/timed" "$tmp/timed"
"$tmp/timed" 100000 >/dev/null &
pid=$!
until grep -q timed /proc/$pid/maps; do sleep 0.02; done
probe --probe u:timed:countdown -t $pid -d 0.3 --by thread
is "$(row true .tid)" "[$pid]" 'a file by the name under which the target maps it, and by thread'
rm "$tmp/timed" && cp /bin/sh "$tmp/timed"
probe --probe "u:$tmp/timed:phase::run" --until u:timed:countdown -p $pid -d 0.5
ok '[ "$(jq .events p.json)" -gt 50 ] && [ "$(jq ".rows[0].p50_ns" p.json)" -ge 1000000 ]' \
	'from one point to another, with -p, of a file that has been replaced: by path and by name'
kill $pid

# --- USDT ---
python=/usr/bin/python3.11
if readelf -n $python 2>/dev/null | grep -q gc__start; then
	probe --probe "usdt:$python:python:gc__start" --until "usdt:$python:python:gc__done" --by arg1 -- \
		"$python" -S -E -c 'import gc
gc.disable()
for i in range(30): gc.collect(1)'
	is "$(row '.arg1 == "1"' .values)" '[30]' 'USDT: phases of an interpreter, by argument'
	ok '[ "$(jq "[.rows[].p50_ns] | max" p.json)" -gt 1000 ]' '… with their length'
else
	skip 'no python3.11 with USDT probes' 2
fi
exits 125 'a USDT probe that is not there' "$INSPECT" trace --probe "usdt:$W/timed:a:b" -- true
like "$(cat err)" 'no USDT probe a:b' '… is named'

# --- tracepoints ---
probe --probe t:syscalls:sys_enter_write --until t:syscalls:sys_exit_write --if 'count==1' --by fd -- \
	dd if=/dev/zero of=/dev/null bs=1 count=1000
is "$(row '.fd == "1"' .values)" '[1000]' 'a tracepoint, its fields as values, until another one'
probe --probe t:sched:sched_process_fork --by parent_pid -- sh -c '/bin/true; /bin/true; /bin/true'
is "$(jq .events p.json)" 3 'events without an end are counted'

# --- by stack ---
probe --probe 'u:libc.so.6:syscall' --if 'arg1==110' --by stack -o s.data -- "$W/callers" 3000 </dev/null
# Calls from a stack with that function, those with a cut one apart.
from() {
	jq --arg f "$1" '([.stacks[] | select(.function == $f) | .wait] | unique) as $n |
		[.rows[] | select(.row as $r | $n | index($r)).calls] | add // 0' p.json
}
cut=$(jq '[.rows[] | select(.caller | startswith("[truncated")).calls] | add // 0' p.json)
is "$(($(from often) + cut)) $(from seldom) $(jq .calls p.json)" '3000 300 3300' '--by stack: who calls a function, exactly'
is "$(jq -r '[.rows[].caller | select(startswith("[trunc") | not)] | unique | join(" ")' p.json)" 'often seldom' \
	'… called by: not the function itself'
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-probe-stacks.schema.json" p.json 2>&1)" '' 'and that fits its schema'
is "$("$INSPECT" report --json s.data | jq -c '.events[0] | [.event, .unit]')" '["probe","ns"]' '-o: a file whose weight is time'
probe --probe t:sched:sched_process_fork --by stack -- sh -c '/bin/true; /bin/true; /bin/true'
is "$(from kernel_clone) $(jq .calls p.json)" '3 3' "a tracepoint's stack has the kernel's functions"
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-probe-stacks.schema.json" p.json 2>&1)" '' 'and that fits it too'
exits 2 'a stack and another key' "$INSPECT" trace --probe "u:$W/timed:countdown" --by stack,arg1 -- true

# --- what does not work ---
exits 125 'a function that is not there' "$INSPECT" trace --probe "u:$W/timed:nothing" -- true
like "$(cat err)" "no function 'nothing'" '… is named'
if [ -x $python ]; then
	exits 125 'a Python function' "$INSPECT" trace --probe "u:$python:my_function" -- true
	like "$(cat err)" "Python's functions are no code of their own" '… cannot be timed, and why'
else
	skip 'no python3.11' 2
fi
exits 2 'a probe of no known kind' "$INSPECT" trace --probe main -- true
exits 2 'a condition that is none' "$INSPECT" trace --probe "u:$W/timed:countdown" --if 'arg9>1' -- true
exits 2 'a result of what has no end' "$INSPECT" trace --probe t:sched:sched_switch --by retval -- true
