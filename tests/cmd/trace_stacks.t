#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect trace -c --by stack: exact counts by who calls, beside strace and a program that knows them.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
schema=$PWD/tests/cmd/schema.py
format=$PWD/docs/json/trace-stacks.schema.json
cd "$tmp" || exit 1

by_stack() {
	"$INSPECT" trace -c --by stack --json "$@" >t.json 2>err
}
# Calls of a function's getppid, by frames, not by the column that says so.
calls_of() {
	jq --arg f "$1" '([.stacks[] | select(.function == $f) | .wait] | unique) as $n |
		[.rows[] | select(.syscall == "getppid" and (.row as $r | $n | index($r))).calls] | add // 0' t.json
}

by_stack -o a.data --flame a.svg -- "$W/callers" 30000 </dev/null
is "$(calls_of often) $(calls_of seldom) $(jq .lost t.json)" '30000 3000 0' 'calls of each function, exactly'
is "$(jq -r '[.rows[] | select(.syscall == "getppid").caller] | unique | join(" ")' t.json)" \
	'often seldom' 'called by: the function outside of libc'
is "$(jq '[.rows[] | select(.caller == "[truncated: new mapping]").calls] | add // 0' t.json)" 0 \
	'whole stacks from the first call on: what CMD will map is known before'
is "$(jq -c '[.rows[] | select(.syscall == "write" and .caller == "writes")] |
	[(map(.calls) | add), (map(.errors) | add), (map(.bytes // 0) | add)]' t.json)" \
	'[6000,3000,21000]' 'errors and bytes, by who calls'
is "$(python3 "$schema" "$format" t.json 2>&1)" '' 'the JSON fits its schema'
"$INSPECT" report --json a.data >report.json 2>err
near "$(jq '.events[0].weight' report.json)" "$(jq '[.rows[].total_ns] | add' t.json)" 1 'the file has the same time'
is "$(jq -r '.events[0] | .event, .unit' report.json | tr '\n' ' ')" 'syscalls ns ' 'as event syscalls'
"$INSPECT" flame --folded a.data >folded 2>err
ok 'grep -q "main;often;syscall;\[syscall: getppid\]" folded' 'the call stands above its callers'
ok 'grep -qF "[syscall: getppid]" a.svg' 'and so in the picture'

# --- the same counts as strace ---
by_stack -- sh -c 'for i in $(seq 200); do /bin/true; done'
strace -f -c -o s.txt sh -c 'for i in $(seq 200); do /bin/true; done'
is "$(jq -r '.rows[] | "\(.syscall) \(.calls)"' t.json | awk '{ n[$1] += $2 } END { for (i in n) if (n[i]) print i, n[i] }' | sort)" \
	"$(awk '$1 ~ /^[0-9.]+$/ && NF >= 5 && $NF != "total" { print $NF, $4 }' s.txt | sort)" \
	'a shell with 200 children: the calls of strace -f -c'
by_stack -e getppid -- "$W/syscalls" storm 62500
is "$(jq -c '[.calls, .lost, ([.rows[].syscall] | unique)]' t.json)" '[1000000,0,["getppid"]]' \
	'16 processes with 62,500 calls, and a filter'

if unshare -pf true 2>/dev/null; then
	by_stack -e getppid -- unshare -pf "$W/callers" 1
	is "$(jq -c '[.rows[] | [.own_pid, .pid != .own_pid]] | unique' t.json)" '[[1,true]]' \
		'both numbers of a process in another pid namespace'
else
	skip 'no pid namespaces here'
fi

# --- a call since before the start ---
mkfifo gate
"$W/callers" 1 <gate &
pid=$!
exec 9>gate
until [ "$(cat /proc/$pid/task/*/syscall 2>/dev/null | awk '$1 == 0' | wc -l)" = 1 ]; do sleep 0.02; done
by_stack -p $pid -d 0.5
is "$(jq -c '.rows[] | select(.syscall == "read") | [.calls, .in_flight, .caller]' t.json)" '[0,1,"blocked"]' \
	'a read since before the start is in flight, with its stack'
exec 9>&-
wait $pid

# --- what does not go together ---
exits 2 'no key' "$INSPECT" trace -c --by nothing -- true
like "$(cat err)" "'nothing' is not one of syscall, .*; or stack, with -c" '… and those that there are'
exits 2 'other keys' "$INSPECT" trace -c --by stack,fd -- true
exits 2 'a distribution' "$INSPECT" trace --hist --by stack -- true
exits 2 '-o without stacks' "$INSPECT" trace -c -o x.data -- true
exits 3 'the exit code of CMD' "$INSPECT" trace -c --by stack -- sh -c 'exit 3'
