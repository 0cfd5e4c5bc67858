#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What sampling did not see is said, and the reason is the right one.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

plan 11
record() {
	"$INSPECT" record -o r.data "$@" >out 2>err
}

# 4 of 5 parts of the CPU time are in threads of 4 ms; a sample comes after 10 ms.
samples() {
	"$INSPECT" report r.data --json | jq .samples
}
# value NAME FILE: what a workload measured
value() {
	awk -v name="$1" '$1 == name { print $2 }' "$2"
}
record -F 99 -e cpu-clock --call-graph fp -- "$W/brief" 200
# More than its CPU time is worth may come on a virtual machine that is held up (see `ticks`).
ok "[ $(samples) -ge $(($(value main out) * 8 / 101010101)) ] &&
	[ $(samples) -le $(($(value main_clock out) * 11 / 101010101 + 3)) ]" \
	'main is sampled all the time, though its threads are not'
sampled=$(sed -n 's/.*note: only \([0-9]*\) % of the CPU time used was sampled.*/\1/p' err)
near "$sampled" "$(awk "BEGIN { print $(samples) / 99 / $(value main out) / 5 * 1e11 }")" 3 \
	'and the rest is missed aloud'
record -F 1999 -e cpu-clock --call-graph fp -- "$W/brief" 50
unlike "$(cat err)" 'of the CPU time used was sampled' 'not when the rate sees them'

# A timer for each CPU, as BPF has it, sees them all.
record -F 99 -e cpu-clock -- "$W/ticks" 99 ticks "$W/brief" 200
ok "[ $(samples) -ge $(($(value cpu ticks) * 8 / 101010101)) ] &&
	[ $(samples) -le $(($(value clock ticks) * 12 / 101010101 + 5)) ]" \
	'in the kernel, brief threads are sampled too'

record -e alignment-faults -- "$W/shares" 0.1
like "$(cat err)" 'no samples: no alignment-faults in the target' 'nothing to count'
record --call-graph fp -e cpu-clock -F 1 -- "$W/shares" 0.2
like "$(cat err)" 'no samples: the target used [0-9]+ ms of CPU, and a sample comes after 1000 ms' 'a rate too low'
record --call-graph fp -- sleep 0.3
like "$(cat err)" 'no samples: the target used (no CPU|[0-9]+ ms of CPU)' 'a sleeper'
sleep 0.2 &
record -p $! --delay 0.5 -d 0.2
like "$(cat err)" 'no samples: the target ended before measuring began' 'a target that ends in the delay'
"$W/shares" 2 >/dev/null &
record -C 0 -d 0.5
like "$(cat err)" 'target [01]\.[0-9]+ of 1 CPUs' 'only the CPUs that were measured count'
record -c 1 -e cpu-clock -- "$W/shares" 0.1
like "$(cat err)" 'note: -c 1 is 1 ns: the clocks go no faster than every 10 µs' 'a period below what the timer can do'
is "$("$INSPECT" report r.data --json | jq '.events[0] | .weight / .samples')" 10000 '… weighs what it was'
