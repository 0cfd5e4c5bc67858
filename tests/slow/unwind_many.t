#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Many of everything under the BPF sampler: processes, threads, mappings. Stacks stay whole, and what
# the recorder holds stays bounded.
. "$(dirname "$0")/../cmd/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
profiles=tests/cmd/profiles.py

# watch PID: the most descriptors and MiB that a process has had, until it ends
watch() {
	local fds most=0 rss=0 now
	while kill -0 "$1" 2>/dev/null; do
		fds=$(ls /proc/"$1"/fd 2>/dev/null | wc -l)
		now=$(sed -n 's/^VmHWM:\s*\([0-9]*\) kB/\1/p' /proc/"$1"/status 2>/dev/null)
		[ "$fds" -le "$most" ] || most=$fds
		[ "${now:-0}" -le "$rss" ] || rss=$now
		sleep 0.2
	done
	echo "$most $((rss / 1024))"
}
# reach FILE COMM FRAME: percent of that thread name's weight that goes through a frame
reach() {
	"$INSPECT" flame --folded "$1" 2>/dev/null | python3 $profiles through "$3" "$2"
}

# --- 1,000 processes, one after the other, under -a ---
cp "$W/uw_fib" "$tmp/fleeting"
"$INSPECT" record -q -F 999 -a -o "$tmp/processes" -- \
	bash -c 'for ((i = 0; i < 1000; i++)); do "$0" 4; done' "$tmp/fleeting" >/dev/null 2>&1 &
read -r fds mib < <(watch $!)
wait $!
near "$("$INSPECT" report --json --all --comm fleeting --sort pid "$tmp/processes" | jq '.functions | length')" \
	1000 20 'each of 1,000 processes has samples'
whole=$(reach "$tmp/processes" fleeting _start)
# Those in the kernel's exec have no stack of their own yet, and the loader's none with that name.
ok "awk 'BEGIN { exit !($whole >= 60) }'" "from _start ($whole %)"
cut=$("$INSPECT" flame --folded "$tmp/processes" 2>/dev/null | awk '/^fleeting/ { n += $NF; if (/;\[truncated/) cut += $NF }
	END { print n ? 100 * cut / n : 100 }')
ok "awk 'BEGIN { exit !($cut <= 1) }'" "at most 1 % of their stacks are cut ($cut %)"
ok "[ $fds -lt 1100 ] && [ $mib -lt 400 ]" "with $fds descriptors and $mib MiB"

# --- 2,000 threads ---
# Below all others: the recorder has to have its turn.
nice -n 19 "$W/shares_bare" 60 2000 >/dev/null &
busy=$!
sleep 1
"$INSPECT" record -q -F 999 -d 3 -o "$tmp/threads" -p $busy 2>/dev/null &
read -r fds mib < <(watch $!)
wait $!
{ kill $busy && wait $busy; } 2>/dev/null
whole=$(reach "$tmp/threads" shares_bare worker)
ok "awk 'BEGIN { exit !($whole >= 99) }'" "2,000 threads: from worker ($whole %)"
ok "[ $fds -lt 200 ] && [ $mib -lt 400 ]" "with $fds descriptors and $mib MiB"

# --- 50,000 mappings, then mapping and unmapping without end ---
if [ "$(cat /proc/sys/vm/max_map_count)" -gt 50100 ]; then
	"$INSPECT" record -q -F 999 -o "$tmp/mappings" -- "$W/uw_mappings" 50000 1000 "$(readlink -f "$W/uw_fib")" \
		>"$tmp/mapped" 2>/dev/null &
	read -r fds mib < <(watch $!)
	wait $!
	is "$(cat "$tmp/mapped")" 50000 '50,000 mappings'
	read -r cut samples < <("$INSPECT" report --json "$tmp/mappings" | jq -r '"\(.truncated) \(.samples)"')
	ok "[ $samples -gt 300 ] && [ $((cut * 100)) -le $samples ]" "complete stacks (all but $cut of $samples)"
	for function in many again; do
		share=$(reach "$tmp/mappings" uw_mappings $function)
		ok "awk 'BEGIN { exit !($share > 10) }'" "through $function ($share %)"
	done
	ok "[ $fds -lt 200 ] && [ $mib -lt 400 ]" "with $fds descriptors and $mib MiB"
else
	skip 'vm.max_map_count is too low' 5
fi
