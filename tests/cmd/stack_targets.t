#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Other processes than the one of stack.t: eu-stack as a witness, 2,000 threads, families, Python, those
# of an ordinary user, and hostile names.
. "$(dirname "$0")/lib.sh"
. tests/cmd/stack_lib.sh

# --- eu-stack as the witness: it stops the process, and hangs where a thread is in D ---
start all deadlock recv sleep
"$INSPECT" stack -p "$pid" --json >"$tmp/json"
timeout 20 eu-stack -r -p "$pid" >"$tmp/eu" 2>/dev/null
for name in hold_a recv sleep; do
	tid=$(tid_of $name)
	is "$(query --argjson tid "$tid" '(.threads[] | select(.tid == $tid).group) as $g |
		[.frames[] | select(.group == $g and .kind == "native")] | length')" \
		"$(awk -v tid="TID $tid:" '$0 == tid { on = 1; next } /^TID/ { on = 0 }
			on && /^#/ { n++ } END { print n }' "$tmp/eu")" \
		"$name: as many frames as eu-stack has"
done
exec {hold}>&-
wait

# --- the main thread has ended, and futexes that are no mutexes ---
start left leave deadlock recv raw waitv
mv "$tmp/left" "$tmp/all"
while [ "$(awk '/^State/ { print $2 }' "/proc/$pid/status")" != Z ]; do sleep 0.02; done
"$INSPECT" offcpu -p "$pid" -d 0.2 --stacks 0 --json >"$tmp/offcpu.json" 2>/dev/null
"$INSPECT" trace --locks -p "$pid" -d 0.2 --json >"$tmp/locks.json" 2>/dev/null &
"$INSPECT" stack -p "$pid" --json >"$tmp/json"
wait $!
is "$(query --argjson tid "$pid" '.threads[] | select(.tid == $tid).state') $(query '[.threads[] | select(.deadlock) | .object] | sort | join(" ")') $(query .deadlocks)" \
	'Z lock_a lock_b 1' 'without its main thread: what locks are called, and the one deadlock'
like "$(functions "$(tid_of hold_a)")" 'pthread_mutex_lock take_second hold_a start_thread clone' '… with whole stacks'
like "$(query --argjson tid "$(tid_of recv)" '.threads[] | select(.tid == $tid).object')" '^(socket:|unix)' '… and its descriptors'
is "$(query '[.threads[] | select(.comm | startswith("raw")) | "\(.object) \(.holder_tid)"] | sort | join(", ")')" \
	'raw_a null, raw_b null' 'what looks like a held mutex, but is waited for elsewhere, has no holder'
is "$(jq -r '[.waits[].for] | sort | join(", ") | sub("[0-9]{4,}"; "N")' "$tmp/offcpu.json") $(jq '[.threads[] | select(.tid)] | length' "$tmp/offcpu.json")" \
	"futex lock_a, futex lock_b, futex raw_a, futex raw_b, futex_waitv 3 futexes, read $tmp/left.in, recvfrom socket:[N] 7" \
	'offcpu: the same, and nothing of the thread that has ended'
if query '.threads[] | select(.comm == "waitv").syscall' | grep -q waitv; then
	is "$(query '.threads[] | select(.comm == "waitv").wait')" 'futex_waitv(any_a, any_b, any_c)' 'futex_waitv: for any of these'
	is "$(jq -r '[.locks[].lock] | sort | join(", ")' "$tmp/locks.json")" 'any_a or 2 more, lock_a, lock_b, raw_a, raw_b' \
		'… and to trace --locks, which came later'
else
	skip 'no futex_waitv in this kernel' 2
fi
exec {hold}>&-
wait

# --- 2,000 threads ---
start many pool=2000
"$INSPECT" stack -p "$pid" --json >"$tmp/json"
is "$(query '"\(.threads | length) \(.threads | group_by(.group) | map(length) | max)"')" '2001 2000' \
	'2,000 threads: all of them, and one group'
like "$(query '(.threads[-1].group) as $g | [.frames[] | select(.group == $g).function] | join(" ")')" \
	'wait_for_work worker start_thread clone' '… with its stack'
diag "2,001 threads read in $(query '.read_ns / 1e6 | floor') ms, named in $(query '.total_ns / 1e6 | floor') ms"
exec {hold}>&-
wait

# --- children, zombies, the end ---
bash -c 'sleep 0.01 & "$0" sleep recv & exec sleep 30' "$W/waits" <>"$tmp/many.in" >"$tmp/family" &
parent=$!
for _ in $(seq 200); do
	grep -q ^ready "$tmp/family" && [ "$(cat "/proc/$parent/comm")" = sleep ] && break
	sleep 0.05
done
waits=$(pgrep -P "$parent" -x waits)
tid=$(ls "/proc/$waits/task" | grep -vx "$waits" | head -1)
"$INSPECT" stack -p "$tid,$parent,$waits,$parent" --children --json >"$tmp/json"
is "$(query '.notes | join(" ")')" "$tid is a thread of process $waits, which is measured as a whole; -t $tid is the thread alone" \
	'-p TID: its process, which is said'
is "$(query '[.threads[].tid] | length == (unique | length)')" true '… and who is named twice is there once'
is "$(query '[.processes[] | "\(.comm) \(.threads)"] | sort | join(", ")')" 'sleep 1, sleep 1, waits 3' \
	'--children: every process'
zombie=$(query '.threads[] | select(.state == "Z").pid')
is "$(cut -d' ' -f3 "/proc/$zombie/stat") $(query '.threads[] | select(.state == "Z") | .stack')" 'Z none' \
	'a zombie is told as such'
exits 0 'a zombie alone' "$INSPECT" stack -p "$zombie"
like "$(cat "$tmp/out")" "has ended \(Z, a zombie\).*$parent sleep, its parent" '… and who is to ask for it'
kill "$(query '.processes[] | select(.comm == "waits").pid')" "$parent"
wait

sleep 60 | cat >/dev/null &
for _ in $(seq 600); do
	reader=$(pgrep -P $$ -x cat) && writer=$(pgrep -P $$ -x sleep) && break
	sleep 0.05
done
while [ "$(cut -d' ' -f3 "/proc/$reader/stat")" != S ]; do sleep 0.05; done
"$INSPECT" stack -p "$reader" --json >"$tmp/json"
is "$(query '.threads[0].peer')" "$writer sleep (fd 1)" 'who writes into the pipe that is waited for'
kill "$writer"
wait

sleep 30 &
while [ "$(cat /proc/$!/comm)" != sleep ]; do sleep 0.02; done
kill -STOP $!
sleep 0.1
"$INSPECT" stack -p $! >"$tmp/text"
like "$(cat "$tmp/text")" "$! sleep: is stopped for" 'a process that is stopped already is told as such'
kill $!
kill -CONT $!
wait

# --- frozen by a cgroup, of v1 or v2 ---
for freezer in 'freezer freezer.state FROZEN THAWED' 'unified cgroup.freeze 1 0' '. cgroup.freeze 1 0'; do
	read -r where file on off <<<"$freezer"
	group=/sys/fs/cgroup/$where/inspect-test-$$
	{ [ -e "$(dirname "$group")/cgroup.procs" ] && mkdir "$group" && [ -e "$group/$file" ]; } 2>/dev/null || continue
	frozen=1
	/usr/bin/python3 -c 'while True: pass' &
	spinner=$!
	disown $spinner # the end would wait for it, frozen
	on_exit "kill -9 $spinner; echo $off >'$group/$file'; sleep 0.2; rmdir '$group'"
	until_used $spinner 0.01
	echo $spinner >"$group/cgroup.procs"
	echo $on >"$group/$file"
	for _ in $(seq 100); do
		"$INSPECT" stack -p $spinner --json >"$tmp/json" && [ "$(query '.threads[0].on_cpu')" = false ] && break
	done
	is "$(query '.threads[0].frozen')" true "frozen by $file"
	like "$("$INSPECT" stack -p $spinner)" "$spinner [a-z0-9.]+: is frozen with its cgroup for " '… which is not D'
	is "$("$INSPECT" offcpu -p $spinner -d 0.1 --json 2>/dev/null | jq -r '"\(.threads[0].stopped_percent) \(.waits[0].for)"')" \
		'100 frozen' '… and not runnable'
done
[ "${frozen:-}" ] || skip 'no freezer of cgroups here' 3

sleep 2 &
exits 0 'a target that ends between snapshots' "$INSPECT" stack -p $! -n 50 -I 300ms --json
ok '[ "$(jq .snapshots "$tmp/out")" -lt 50 ]' '… ends them'

# --- Python ---
cat >"$tmp/threads.py" <<'END'
import os, queue, socket, subprocess, sys, threading, time
lock, a = threading.Lock(), socket.socketpair()
lock.acquire()
for wait in (lock.acquire, queue.Queue().get, lambda: a[1].recv(1),
             lambda: subprocess.Popen(["sleep", "30"]).wait(), lambda: sys.stdin.read()):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.3)
print("ready", flush=True)
time.sleep(30)
END
mkfifo "$tmp/python.in"
python3 "$tmp/threads.py" <"$tmp/python.in" >"$tmp/python" &
pid=$!
exec {hold}>"$tmp/python.in"
for _ in $(seq 200); do
	grep -q ^ready "$tmp/python" && break
	sleep 0.05
done
sleep 0.2
"$INSPECT" stack -p "$pid" --json >"$tmp/json"
is "$(query '[.threads[].syscall] | sort | join(" ")')" 'clock_nanosleep futex futex read recvfrom wait4' \
	'Python: what each thread waits in'
is "$(query '[.frames[].function | select(startswith("[truncated"))] | length')" 0 '… with whole stacks'
like "$(query '.threads[] | select(.syscall == "read").object')" "$tmp/python.in" '… and the file it reads'
pkill -P "$pid" sleep
kill "$pid"
exec {hold}>&-
wait

cat >"$tmp/gil.py" <<'END'
import threading, time
def spin():
    while True: pass
for _ in range(3): threading.Thread(target=spin, daemon=True).start()
time.sleep(60)
END
python=/usr/bin/python3.11
if [ -x $python ]; then
	$python "$tmp/gil.py" &
	pid=$!
	while [ "$(ls /proc/$pid/task | wc -l)" -lt 4 ]; do sleep 0.05; done
	"$INSPECT" stack -p "$pid" -n 6 -I 60ms --json >"$tmp/json"
	threads=$(ls "/proc/$pid/task" | jq -s .)
	is "$(query --argjson all "$threads" '[.threads[] | select(.object != null and (.object | test("^_PyRuntime.* \\(GIL\\)$")) and .holder_tid) |
		(.holder_tid != .tid and any($all[]; . == '"$pid"') and (.holder_tid as $h | any($all[]; . == $h)))] | unique | join(" ")')" \
		true "Python's lock by name, held by another of its threads"
	kill $pid
	wait
else
	skip 'no python3.11'
fi

# --- pid namespaces: the tool inside with the target, and outside of it ---
cat >"$tmp/inside.sh" <<'END'
"$W/waits" deadlock <>"$tmp/own.in" >"$tmp/all" &
for _ in $(seq 200); do
	grep -q ^ready "$tmp/all" && break
	sleep 0.05
done
"$INSPECT" stack -p $! --json >"$tmp/inside.json"
wait
END
mkfifo -m 666 "$tmp/own.in"
unshare -pf --mount-proc bash "$tmp/inside.sh" &
for _ in $(seq 400); do
	[ -s "$tmp/inside.json" ] && break
	sleep 0.05
done
sleep 0.1
pid=$(pgrep -f "^$W/waits deadlock\$")
"$INSPECT" stack -p "$pid" --json >"$tmp/json"
links='[.threads[] | select(.deadlock) | "\(.comm) \(.object)"] | sort | join(", ")'
holders='([.threads[] | select(.deadlock).tid] | sort) == ([.threads[] | select(.deadlock).holder_tid] | sort)'
is "$(query "$links"), $(query "$holders")" 'hold_a lock_b, hold_b lock_a, true' \
	'a target in another pid namespace: holders by our ids'
mv "$tmp/inside.json" "$tmp/json"
is "$(query '[.threads[].tid] | sort | join(" ")')" \
	"$(echo $(awk '{ print $2 }' "$tmp/all" | sort -n))" 'the tool inside: ids of that namespace'
is "$(query "$links"), $(query "$holders")" 'hold_a lock_b, hold_b lock_a, true' '… and the deadlock'
kill "$pid"
wait
rm "$tmp/own.in"

# --- without rights: an ordinary user's own process ---
chmod 755 "$tmp"
cp "$INSPECT" "$tmp/inspect"
cp "$W/waits" "$tmp/waits"
user="setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs"
mkfifo -m 666 "$tmp/own.in"
$user "$tmp/waits" deadlock recv spin <>"$tmp/own.in" >"$tmp/all" &
for _ in $(seq 200); do
	grep -q ^ready "$tmp/all" && break
	sleep 0.05
done
pid=$(awk '/^ready/ { print $2 }' "$tmp/all")
$user "$tmp/inspect" stack -p "$pid" --json >"$tmp/json" 2>"$tmp/err"
is "$(query .read_by)" /proc 'an ordinary user: from /proc'
like "$(query '.notes | join(" ")')" 'read from /proc: BPF is not allowed' '… which a note says'
a=$(tid_of hold_a) b=$(tid_of hold_b)
is "$(query '[.threads[] | select(.deadlock) | "\(.tid) \(.object) \(.holder_tid)"] | sort | join(", ")')" \
	"$a lock_b $b, $b lock_a $a" '… with the deadlock'
is "$(query --argjson tid "$(tid_of recv)" '.threads[] | select(.tid == $tid) |
	"\(.state) \(.syscall) \(.since_ns)"')" 'S recvfrom null' '… the call, but not since when'
like "$(functions "$(tid_of spin)")" '^spin_forever spinner start_thread' '… and the stack of one that runs'

# --- BPF without the right to read memory: the kernel copies the stacks ---
setpriv --inh-caps=-sys_ptrace --bounding-set=-sys_ptrace "$INSPECT" stack -p "$pid" --json >"$tmp/json"
like "$(query '.notes | join(" ")')" 'memory of the target may not be read' 'without CAP_SYS_PTRACE: a note'
like "$(functions "$a")" 'pthread_mutex_lock take_second hold_a start_thread clone' '… and whole stacks'
is "$(query '[.frames[].function | select(startswith("[truncated"))] | length')" 0 '… of all threads'
kill "$pid"
wait

# --- hostile names ---
name=$'\e[31m;\nx'
cp "$W/waits" "$tmp/$name"
program=$tmp/$name
start hostile sleep
"$INSPECT" stack -p "$pid" >"$tmp/text" 2>&1
unlike "$(cat "$tmp/text")" $'\e' 'a name does not reach the terminal as it is'
like "$(cat "$tmp/text")" '\\x1b\[31m;\\nx' '… but escaped'
"$INSPECT" stack -p "$pid" --json >"$tmp/json"
is "$(query '.processes[0].comm')" "$name" 'and is whole in JSON'
exec {hold}>&-
wait
