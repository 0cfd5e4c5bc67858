#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect trace -c beside strace -c -f: the same counts, from exec to exit, whatever the target does.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
repo=$PWD
cd "$tmp" || exit 1

# "CALL CALLS ERRORS" lines of either; waits at futexes are one call in strace.
of_strace() {
	awk '$1 ~ /^[0-9.]+$/ && NF >= 5 && $NF != "total" { print $NF, $4, NF == 6 ? $5 : 0 }' "$1" | sort
}
of_trace() {
	jq -r '.rows[] | select(.calls > 0) | "\(.syscall | sub(" .idle."; "")) \(.calls) \(.errors)"' "$1" |
		awk '{ calls[$1] += $2; errors[$1] += $3 }
		END { for (name in calls) print name, calls[name], errors[name] }' | sort
}
calls_of() {
	jq --arg name "$2" '[.rows[] | select(.syscall == $name).calls] | add // 0' "$1"
}
lost() {
	jq -c '[.losses[]] | add' "$1"
}
trace() {
	"$INSPECT" trace -c --json "$@" >t.json 2>err
}

# --- the same counts ---
same() {
	local what=$1
	shift
	strace -f -c -o s.txt "$@" >/dev/null 2>&1
	trace -- "$@"
	is "$(of_trace t.json)" "$(of_strace s.txt)" "$what: calls and errors are those of strace -f -c"
	is "$(lost t.json)" 0 "$what: nothing is lost"
}
same 'a shell with 200 children' sh -c 'for i in $(seq 200); do /bin/true; done'
[ ! -x /usr/bin/python3.11 ] || same 'a Python program' /usr/bin/python3.11 -S -E -c 'import json, os
os.system("true")
print(json.dumps(1))'
same 'a failing command' sh -c 'cat /nonexistent; cd /; exit 3'
is "$(jq -c '[.errors[] | select(.errno == "ENOENT") | .syscall] | unique | contains(["openat"])' t.json)" true \
	'errors by name'
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-summary.schema.json" t.json 2>&1)" '' 'the JSON fits its schema'

# --- exit codes and failures ---
exits 3 'the exit code of CMD' "$INSPECT" trace -c -- sh -c 'exit 3'
exits 3 '… also of one that only gives the length' "$INSPECT" trace -c --json -p $$ -- sh -c 'exit 3'
is "$(jq -r .target out)" "-p $$" 'the target is told as it was given'
if [ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ]; then
	"$INSPECT" trace -c --json -p 2 -d 0.1 >k.json
	is "$(jq -r '.notes[]' k.json)" "process 2 is the kernel's own: it makes no system calls" 'of the kernel: why there is nothing'
else
	skip 'no kthreadd here'
fi
exits 3 '… of a stream too' "$INSPECT" trace -p $$ -- sh -c 'exit 3'
exits 127 'a command that is not there' "$INSPECT" trace -c -- /nonexistent/cmd
exits 2 'an unknown call' "$INSPECT" trace -c -e opnat -- true
like "$(cat err "$tmp/err")" 'openat' 'the nearest name is proposed'

# --- what other tools get wrong (numbers: the traps of the facts about tracing) ---
trace -- "$W/syscalls" storm 62500
is "$(calls_of t.json getppid) $(lost t.json)" '1000000 0' '16 processes with 62,500 calls: counted is what was called'
ok '[ "$(jq ".rows[] | select(.syscall == \"getppid\").p50_ns" t.json)" -lt 2000 ]' 'latency does not hold what watching takes'
if [ "$(uname -m)" = x86_64 ]; then
	trace -- "$W/syscalls" abi 1000
	is "$(calls_of t.json getpid) $(calls_of t.json 'getpid (i386)') $(calls_of t.json 'getpid (x32)')" '1000 1000 1000' \
		'calls by int 0x80 and by x32 numbers have their own names'
else
	skip 'no other ABI than the native one'
fi
trace -- "$W/syscalls" exec-thread
is "$(jq -c '[.rows[] | select(.syscall == "execve") | .calls, .errors]' t.json) $(lost t.json)" '[2,0] 0' \
	'execve from a thread that is not the leader is one call'
trace -- "$W/syscalls" vforks 200
is "$(calls_of t.json vfork) $(jq .threads t.json) $(lost t.json)" '200 201 0' 'vfork counts once, in the parent'
trace -- "$W/syscalls" threads 2000
is "$(calls_of t.json getppid) $(jq .threads t.json) $(lost t.json)" '20000 2001 0' '2,000 threads'
trace -- "$W/syscalls" fds 12000
wanted=$(jq .calls t.json)
trace --by syscall,fd -- "$W/syscalls" fds 12000
is "$(jq .calls t.json) $(jq '[.rows[].calls, .losses.calls_of_dropped_keys] | add' t.json)" "$wanted $wanted" \
	'24,000 keys: the total is exact, with or without a row'
is "$(jq '(.rows | length) <= 16384 and .losses.calls_of_dropped_keys > 7000' t.json)" true 'and those without are counted'

# A thread that is blocked all the while, and one that sleeps, in a process that was there before.
mkfifo gate
"$W/syscalls" blocked 20 &
pid=$!
until [ "$(cat /proc/$pid/task/*/syscall 2>/dev/null | awk '$1 == 0 || $1 == 230' | wc -l)" = 2 ]; do sleep 0.02; done
trace -p $pid -d 1
read -r calls flight oldest <<<"$(jq -r '.rows[] | select(.syscall == "read") | "\(.calls) \(.in_flight) \(.oldest_ns)"' t.json)"
is "$calls $flight" '0 1' 'a read that does not return: no call, one in flight'
ok '[ "$oldest" -ge 990000000 ] && [ "$oldest" -le "$(jq .elapsed_ns t.json)" ] || [ "$oldest" -lt 1500000000 ]' '… with its age'
is "$(jq -c '.rows[] | select(.syscall == "clock_nanosleep") | [.in_flight, .waits_by_design]' t.json)" '[1,true]' \
	'sleeping is waiting by design'
kill $pid

# Children that are there already, on request.
sh -c 'while :; do /bin/true; done & while :; do :; done' &
pid=$!
sleep 0.1
trace -p $pid -d 0.3
is "$(calls_of t.json execve)" 0 'children that are there already are not watched'
trace --children -p $pid -d 0.3
ok '[ "$(calls_of t.json execve)" -gt 3 ]' '… but with --children'
pkill -P $pid
kill $pid

# ^C while the target forks in a loop.
sh -c 'while :; do /bin/true; done' &
pid=$!
"$INSPECT" trace -c --json -p $pid >t.json 2>err &
tool=$!
for ((i = 0; i < 200; i++)); do
	[ "$(ls -l /proc/$tool/fd 2>/dev/null | grep -c bpf_link)" -lt 8 ] || break
	sleep 0.05
done
sleep 0.5
before=$(date +%s%N)
kill -INT $tool
wait $tool
near "$((($(date +%s%N) - before) / 1000000))" 500 500 '^C while the target forks: it ends within a second'
ok '[ "$(calls_of t.json execve)" -gt 0 ] && [ "$(lost t.json)" = 0 ]' 'and has counted, without losses'
ok 'kill -0 $pid && ! grep -q "^State:.*[Tt]" /proc/$pid/status' 'the target goes on'
kill $pid

# --- -I: intervals add up to the whole ---
"$INSPECT" trace -c --json -I 200 -e getppid -- "$W/syscalls" storm 200000 >t.jsonl 2>err
is "$(jq -s '[.[:-1][].rows[].calls] | add' t.jsonl)" 3200000 'intervals add up'
ok '[ "$(wc -l <t.jsonl)" -ge 3 ]' 'each is a line'

# --- distributions ---
"$INSPECT" trace --hist --json -e read,write -- dd if=/dev/zero of=/dev/null bs=4096 count=1000 >t.json 2>err
is "$(jq -c '[.rows[] | select(.syscall == "read" or .syscall == "write") | .values >= 1000] | all' t.json)" true '--hist: every call'
is "$(jq '[.histograms[] | select(.name == "read").count] | add' t.json)" "$(jq '.rows[] | select(.syscall == "read").values' t.json)" \
	'the bars have them all'
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-hist.schema.json" t.json 2>&1)" '' 'the JSON fits its schema'
"$INSPECT" trace --hist --of bytes --by path -e read --json -- dd if=/dev/zero of=/dev/null bs=4096 count=1000 >t.json 2>err
is "$(jq -c '.rows[] | select(.path == "/dev/zero") | [.values, .p50_bytes, .max_bytes]' t.json)" '[1000,4096,4096]' 'bytes, by path'
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-hist.schema.json" t.json 2>&1)" '' 'and that too'
is "$("$INSPECT" trace --hist --top 2 -- cat /dev/null 2>err | awk '/^syscall/ { on = 1; next } !NF { on = 0 } on && !/^…/ { n++ } END { print n }')" \
	2 '… of two calls, when so many are wanted'
"$INSPECT" trace --hist --by device -e read --json -- dd if=/dev/zero of=/dev/null bs=4096 count=10 >t.json 2>err
is "$(jq -c '.rows[] | select(.device | startswith("/dev/zero")) | [.device, .values]' t.json)" '["/dev/zero device 1:5",10]' 'by device'

# --- other keys ---
trace --by errno,syscall -- cat /nonexistent
is "$(jq '[.rows[] | select(.errno == "ENOENT" and .syscall == "openat").calls] | add > 0' t.json)" true 'by error and call'
# An inode's number comes again when its file has gone.
trace --by syscall,path -- sh -c 'for i in 1 2 3 4; do echo x >file$i; rm file$i; done'
is "$(jq -c '[.rows[] | select(.syscall == "write") | [(.path | sub(".*/"; "")), .calls]] | sort' t.json)" \
	'[["file1",1],["file2",1],["file3",1],["file4",1]]' 'files that follow each other under one inode'
trace --by thread -- sh -c 'sleep 0.1; exec cat /dev/null'
is "$(jq -c '[.rows[].thread] | unique' t.json)" '["cat","sleep"]' 'by thread: the last name counts'
trace --by syscall,thread,comm,fd,errno,cgroup -- cat /dev/null
is "$(jq '[.rows[] | select(.errno == "OK" and .syscall == "openat").calls] | add > 0' t.json)" true 'by all keys that go together'
# The numbers of a thread in another pid namespace: ours, and its own.
if unshare -p -f true 2>/dev/null; then
	trace --by thread,fd -- unshare -p -f sh -c 'echo x; sleep 0.1; :'
	is "$(jq -c '[.rows[] | select(.thread == "sh" and .fd == 1) |
		[.own_tid, .own_pid, .tid != .own_tid, .pid != .own_pid]] | unique' t.json)" \
		'[[1,1,true,true]]' 'both numbers of a thread and a process in another pid namespace'
	is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-summary.schema.json" t.json 2>&1)" '' 'and that fits the schema'
else
	skip 'no pid namespaces here' 2
fi
if [ -x "$W/slow" ]; then
	TMPDIR=$tmp trace -e write --by path -- "$W/slow"
	is "$(jq -c '[.rows[] | select(.path | test("/slow[0-9]+$")).calls]' t.json)" '[20000,20000,20000]' \
		'the 60,000 writes of a Go program, by file'
else
	skip 'no Go here'
fi
v2=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
if [ -n "$v2" ] && mkdir "$v2/inspect-trace-$$"; then
	on_exit "rmdir '$v2/inspect-trace-$$'"
	sh -c "echo \$\$ >'$v2/inspect-trace-$$/cgroup.procs'; while :; do /bin/true; done" &
	pid=$!
	sh -c "echo \$\$ >'$v2/inspect-trace-$$/cgroup.procs'; exec sleep 60" &
	sleeper=$!
	sleep 0.1
	trace --by syscall,cgroup --cgroup "$v2/inspect-trace-$$" -d 0.5
	ok '[ "$(calls_of t.json execve)" -gt 0 ] && [ "$(calls_of t.json execve)" -le "$(jq .threads t.json)" ]' 'a cgroup, with what starts in it'
	is "$(jq -r '[.rows[] | select(.calls + .in_flight > 0).cgroup_path] | unique | join(" ")' t.json)" \
		"/inspect-trace-$$" '… by its path, and so the calls that have not ended'
	kill $pid $sleeper
	wait $pid $sleeper 2>/dev/null
	sleep 0.1
else
	skip 'no cgroup v2 to make a group in' 2
fi
is "$(unshare -pf --mount-proc "$INSPECT" trace -c --json --by thread -- sh -c '/bin/true; exit 0' 2>err | jq -c '[.rows[].tid] | unique')" \
	'[2,3]' "numbers are those of the tool's pid namespace"

# --- names ---
cat >evil.sh <<'END'
printf '\033[31mred' >/proc/$$/comm
f=$(printf '/tmp/evil\033]0;x\007\n.%s' $$)
echo hello >"$f"
rm "$f"
END
"$INSPECT" trace -c --by comm,path -- sh evil.sh >out 2>err
ok '! grep -q "$(printf "\033")" out' 'names from the target are escaped'
like "$(cat out)" '\\x1b\[31mred.*' 'and shown'
