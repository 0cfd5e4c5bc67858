#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Files of perf that hold less, or other things, than stacks with samples; and one of a recorder
# that was killed.
. "$(dirname "$0")/lib.sh"
command -v perf >/dev/null || skip_all 'no perf here'
cd "$tmp" || exit 1

perf record -q -e cpu-clock -F 499 -o flat.data -- "$W/exits" 0.3 0 >/dev/null 2>&1
"$INSPECT" report flat.data >out
like "$(cat out)" $'\n# stacks: none were recorded \\(record -g\\)\n' 'without -g no stack is called truncated'
is "$("$INSPECT" report --json flat.data | jq .truncated)" 0 'in the data either'
is "$("$INSPECT" flame --folded flat.data 2>err | grep -c truncated)" 0 'or in the picture'
like "$(cat err)" 'no stacks were recorded' 'flame says it'
"$INSPECT" record -q --call-graph none -F 499 -o none.data -- "$W/exits" 0.2 0
like "$("$INSPECT" report none.data)" '# stacks: none were recorded' 'the same of --call-graph none'

perf record -q -e dummy:u,cpu-clock -F 499 -o dummy.data -- "$W/exits" 0.2 0 >/dev/null 2>&1
is "$("$INSPECT" report --json dummy.data | jq -c '[.events[].event]')" '["cpu-clock"]' 'dummy events are left out'
is "$("$INSPECT" report --json dummy.data | jq '.events[0].samples == .samples')" true 'and the samples are the other one'"'s"

perf stat record -o stat.data true >/dev/null 2>&1
exits 125 'counts' "$INSPECT" report stat.data
like "$(cat err)" 'holds counts.*perf stat report' 'are named, with what reads them'

# --- kill -9: no host is named in the file, but the kernel is the one that runs ---
[ "$(id -u)" = 0 ] || {
	skip 'names of the kernel need root' 1
	exit 0
}
"$INSPECT" record -q -F 999 -o killed.data -- sh -c 'for i in $(seq 300); do cat /proc/self/maps; done' >/dev/null &
recorder=$!
for _ in $(seq 100); do
	sleep 0.1
	[ "$(stat -c %s killed.data 2>/dev/null || echo 0)" -lt 30000 ] || break
done
kill -9 $recorder
wait $recorder 2>/dev/null
like "$("$INSPECT" report --all killed.data)" 'do_syscall_64|entry_SYSCALL' 'after kill -9 kernel functions have their names'
