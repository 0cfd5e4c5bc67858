#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Where threads wait: beside the times that programs measure themselves in the same window, so that
# a busy machine does not matter.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3

# What of a thread's time is accounted for: running + runnable + every reason, in percent.
cat >"$tmp/sums.jq" <<'END'
def reasons: ["lock", "condition", "join", "disk", "network", "pipe", "poll", "sleep", "child", "page_fault", "reclaim",
  "mmap_lock", "gpu", "stopped", "throttled", "other"];
def sum: . as $t | .running_percent + .runnable_percent + .unknown_percent +
  ([reasons[] | $t[. + "_percent"] // 0] | add);
[.threads[] | select(.tid) | sum] | "\(length) \(min >= 98 and max <= 102)"
END

# phase FILE FUNCTION: ns waited with the function on the stack, the wait for a CPU afterwards included
phase() {
	jq --arg f "$2" '([.stacks[] | select(.function == $f) | .wait] | unique) as $w |
		[.waits[] | select(.wait as $n | $w | index($n)) | .wait_ns + .queue_ns] | add // 0' "$1"
}
truth() { awk -v key="$1" '$1 == key { print $2 }' "$tmp/truth"; }
share() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f\n", 100 * a / b }'; }

# --- a program with known waits -------------------------------------------------------------------

exits 0 'a program with known waits' sh -c \
	"exec '$INSPECT' offcpu --json -o '$tmp/a.data' --flame '$tmp/a.svg' -- '$W/wait_shares' 3 2>'$tmp/truth'"
mv "$tmp/out" "$tmp/a.json"
wall=$(truth wall)
for part in sleep lock pipe; do
	near "$(share "$(phase "$tmp/a.json" "phase_$part")" "$wall")" "$(share "$(truth $part)" "$wall")" 2 \
		"its share of $part, with the right stack"
done
is "$(jq -r '[.waits[] | select(.reason == "join")][0] as $w | "\($w.wait_ns > 2e9) \([.stacks[] | select(.wait == $w.wait) | .function] | index("main") != null)"' "$tmp/a.json")" \
	'true true' 'the end of a thread is no lock'
is "$(jq -r '.threads as $t | [.waits[] | select(.reason == "join") | .for | capture("^futex .end of thread (?<tid>[0-9]+).$").tid | tonumber] as $all |
	[$t[] | select(.tid) | select(.tid as $tid | any($all[]; . == $tid)) | .comm] | unique | join(" ")' "$tmp/a.json" 2>&1)" worker '… and says of which, though all have ended'
near "$(jq '.threads[] | select(.comm == "worker") | .running_percent' "$tmp/a.json")" \
	"$(share "$(truth cpu)" "$wall")" 2 'its share of computing'
is "$(jq -r '[.waits[] | select(.for == "futex the_lock")][0] | .reason, .waker' "$tmp/a.json" |
	sed 's/ ([0-9]*)//' | tr '\n' ' ')" 'lock holder ' 'the lock by its name, and who had it'
is "$(jq -r '[.waits[] | select(.reason == "pipe")][0] | .for, .waker' "$tmp/a.json" |
	sed 's/ ([0-9]*)//; s/\[[0-9]*\]/[N]/' | tr '\n' ' ')" 'read pipe:[N] feeder ' \
	'the pipe, and who wrote to it'
is "$(jq -r '[.waits[] | select(.reason == "sleep")] | map(.waker) | unique | .[]' "$tmp/a.json")" '[irq]' \
	'a timer is nobody: [irq]'
is "$(jq '([.waits[].wait_ns] | add / 1000) as $short | [.waits[] | if .wait_ns < $short then 2 elif .idle then 1 else 0 end] |
	. == sort' "$tmp/a.json")" true 'waits, then those for work by design, then what is short'
is "$(jq '[.waits[] | select(.for == "futex the_lock") | .p50_ns <= .p99_ns and .p99_ns <= .max_ns] | all' \
	"$tmp/a.json")" true 'percentiles are in order'
is "$(jq '[.waits[] | select(.stack) | [.pid, .for, .reason, .stack]] | length == (unique | length)' "$tmp/a.json")" true \
	'no two rows are alike: each has its stack'
is "$(jq -r -f "$tmp/sums.jq" "$tmp/a.json")" '4 true' 'the time of each thread adds up'
is "$(jq '([.threads[] | select(.tid) | .wall_ns] | add) as $all |
	[.waits[] | (.percent - 100 * .wait_ns / $all) | fabs < 1e-6] | all' "$tmp/a.json")" true \
	'a share is the time beside it, of the time of all threads'

# --- the file, and the picture --------------------------------------------------------------------

"$INSPECT" report --json "$tmp/a.data" >"$tmp/report.json" 2>"$tmp/err"
near "$(jq '.events[0].weight' "$tmp/report.json")" \
	"$(jq '[.waits[] | .wait_ns + .queue_ns] | add' "$tmp/a.json")" 1 'the file has the same time, in ns'
is "$(jq -r '.events[0] | .event, .unit' "$tmp/report.json" | tr '\n' ' ')" 'offcpu ns ' 'as event offcpu'
ok '"$INSPECT" report --csv "$tmp/a.data" 2>/dev/null | grep -qF "[waiting: futex the_lock]"' \
	'report names the lock from the file'
ok 'grep -qF "[waiting: futex the_lock]" "$tmp/a.svg"' 'the flame graph shows it'
ok '"$INSPECT" flame --folded "$tmp/a.data" 2>/dev/null |
	grep -q "worker;.*;phase_lock;.*\[waiting: futex the_lock\]"' 'below its callers'
ok 'perf script -i "$tmp/a.data" 2>/dev/null | grep -qF "[waiting: futex the_lock]"' 'perf reads it'

# --- who wakes whom -------------------------------------------------------------------------------

"$INSPECT" offcpu -q --wakers -o "$tmp/wakers.data" -- "$W/wait_shares" 1 >"$tmp/out" 2>"$tmp/err"
"$INSPECT" flame --folded "$tmp/wakers.data" >"$tmp/wakers.folded" 2>"$tmp/err"
ok 'grep -qE ";phase_lock;.*\[waiting: futex the_lock\]_\[k\];\[woken by holder\]_\[k\];.*;futex_wake_\[k\];.*;holder;start_thread" \
	"$tmp/wakers.folded"' '--wakers: the stack of who had the lock, upside down'
ok 'grep -qE "\[waiting: clock_nanosleep\]_\[k\];\[woken by an interrupt\]" "$tmp/wakers.folded"' \
	'an interrupt has none'
ok 'grep -q "\[waiting: read pipe:\[[0-9]*\]\]_\[k\];\[woken by feeder\]_\[k\];.*;feeder;start_thread" "$tmp/wakers.folded"' \
	'the writer of the pipe'
"$INSPECT" report --json --top 1000 "$tmp/wakers.data" >"$tmp/wakers.json" 2>"$tmp/err"
is "$(jq -r '[.functions[] | select(.self_weight > 0) | .function | select(test("^\\[(waiting: .*|runnable)\\]$") | not)] | join(" ")' "$tmp/wakers.json")" \
	'' 'report: the time is that of who waited, not of who woke'

# --- all of a thread's time -----------------------------------------------------------------------

exits 0 'record --wall' sh -c "exec '$INSPECT' record --wall --json -F 499 -o '$tmp/w.data' -- '$W/wait_shares' 1.5 2>'$tmp/truth'"
mv "$tmp/out" "$tmp/w.json"
"$INSPECT" flame --folded "$tmp/w.data" >"$tmp/w.folded" 2>"$tmp/err"
is "$(jq .samples "$tmp/w.json")" "$("$INSPECT" report --json "$tmp/w.data" 2>"$tmp/err" | jq '[.samples, .events[0].samples] | unique[]')" \
	'record and report count the same samples'
wall=$(truth wall)
# leaf PATTERN: ns of the worker at leaves that match
leaf() { awk -v leaf="$1" '/^worker;/ && $0 ~ leaf " ?_?\\[?k?\\]? [0-9]+$" { n += $NF } END { printf "%d\n", n }' "$tmp/w.folded"; }
near "$(share "$(leaf '')" "$wall")" 100 2 "a thread's frames add up to its wall time"
near "$(share "$(leaf '.on-cpu.')" "$wall")" "$(share "$(truth cpu)" "$wall")" 2 'what it ran'
near "$(share "$(leaf '.waiting: futex the_lock.')" "$wall")" "$(share "$(truth lock)" "$wall")" 2 \
	'what it waited for a lock'
jq '.wall[] | select(.comm == "worker")' "$tmp/w.json" >"$tmp/worker.json"
near "$(jq .running_percent "$tmp/worker.json")" "$(share "$(truth cpu)" "$wall")" 2 'the summary says what it ran'
near "$(jq .lock_percent "$tmp/worker.json")" "$(share "$(leaf '.waiting: futex the_lock.')" "$wall")" 2 'what it waited for'
near "$(jq '.running_percent + .runnable_percent + .waiting_percent' "$tmp/worker.json")" 100 2 'which is all of its time'
near "$(jq '.threads[] | select(.comm == "worker") | .cpu_percent' "$tmp/w.json")" \
	"$(jq .running_percent "$tmp/worker.json")" 2 'of a CPU it had what it ran'
like "$(jq -r .summary "$tmp/w.json")" \
	'· [0-9]+ % running · [0-9]+ % waiting \((sleep|join) [0-9]+ %, (sleep|join) [0-9]+ %\) · [0-9]+ % runnable' 'and so does the first line'
"$INSPECT" flame "$tmp/w.data" >"$tmp/w.svg" 2>"$tmp/err"
is "$(grep -o 'class="[orw][0-9]"' "$tmp/w.svg" | cut -c8 | sort -u | tr '\n' ' ')" 'o r w ' \
	'three colours of leaves'
exits 2 'one unit: no other event' "$INSPECT" record --wall -e page-faults -o "$tmp/x" -- true

# --- many threads ---------------------------------------------------------------------------------

for n in 50 500; do
	"$INSPECT" offcpu --json -- "$W/wait_shares" 1 $n >"$tmp/n.json" 2>"$tmp/err"
	is "$(jq -r -f "$tmp/sums.jq" "$tmp/n.json")" "$((n + 1)) true" "the time of $n threads adds up"
	is "$(jq .lost "$tmp/n.json")" 0 'and nothing is lost'
done

# --- no CPU for it --------------------------------------------------------------------------------

cat >"$tmp/spin.py" <<'END'
import os, time, sys
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
print("spin", os.getpid(), int(time.process_time() * 1e9))
END
"$INSPECT" offcpu --json -- taskset -c 0 sh -c "$python $tmp/spin.py 2 & $python $tmp/spin.py 2; wait" \
	>"$tmp/spin.json" 2>"$tmp/truth"
while read -r _ pid cpu_ns; do
	jq --argjson pid "$pid" '.threads[] | select(.tid == $pid)' "$tmp/spin.json" >"$tmp/thread.json"
	wall=$(jq .wall_ns "$tmp/thread.json")
	near "$(jq .running_percent "$tmp/thread.json")" "$(share "$cpu_ns" "$wall")" 2 \
		'two on one CPU: it ran as long as it says'
	ok '[ "$(jq ".running_percent + .runnable_percent > 95 and .runnable_percent > 40" "$tmp/thread.json")" = true ]' \
		'and could have run all the time'
done < <(grep ^spin "$tmp/truth")

# --- beside libbpf-tools' offcputime, at the same time ---------------------------------------------

if command -v offcputime >/dev/null; then
	# Both are there before the program begins and until it has ended: what its threads wait for in
	# their phases, both see from end to end, however busy the machine is.
	mkfifo "$tmp/begin"
	# theirs FUNCTION: ns of the worker's stacks with that function of the kernel; the frame pointer's way out of the
	# C library leaves out who called it.
	theirs() {
		awk -v name="$1" 'NF == 0 { stack = "" } NF == 1 && $1 ~ /^[0-9]+$/ { if (is && stack ~ name) n += $1 * 1000; is = 0 }
			$1 == "-" { is = $2 == "worker" } NF == 1 && $1 ~ /^[a-z_]/ { stack = stack " " $1 }
			END { printf "%d\n", n }' "$tmp/theirs"
	}
	# It has lost a stack when two fall on one place of its map: again then.
	for _ in 1 2 3; do
		"$W/wait_shares" 2 1 told <"$tmp/begin" >/dev/null &
		program=$!
		exec {begin}>"$tmp/begin"
		offcputime -p $program 600 >"$tmp/theirs" 2>/dev/null &
		other=$!
		"$INSPECT" offcpu --json -p $program >"$tmp/ours.json" 2>"$tmp/err" &
		us=$!
		until grep -qs link_type /proc/$other/fdinfo/* && grep -qs link_type /proc/$us/fdinfo/*; do sleep 0.1; done
		sleep 0.8
		echo >&$begin
		exec {begin}>&-
		wait $program $us
		kill -INT $other
		wait $other
		[ "$(theirs nanosleep)" = 0 ] || [ "$(theirs futex_wait)" = 0 ] || [ "$(theirs pipe_read)" = 0 ] || break
	done
	for pair in sleep:nanosleep lock:futex_wait pipe:pipe_read; do
		near "$(share "$(phase "$tmp/ours.json" "phase_${pair%:*}")" "$(theirs "${pair#*:}")")" 100 3 \
			"offcputime has the same time, at the same stack: ${pair%:*}"
	done
else
	skip 'no offcputime (libbpf-tools)' 3
fi

# --- Python ---------------------------------------------------------------------------------------

cat >"$tmp/waits.py" <<'END'
import queue, socket, subprocess, threading, time
lock, ready, jobs = threading.Lock(), threading.Event(), queue.Queue()
here, there = socket.socketpair()
spent, run = {}, True

def holder():
    while run:
        with lock:
            ready.set()
            time.sleep(0.03)
        time.sleep(0.01)

def feeder():
    while run:
        jobs.get()
        time.sleep(0.02)
        there.send(b"x")

def timed(name, call, *args):
    begin = time.monotonic_ns()
    call(*args)
    spent[name] = spent.get(name, 0) + time.monotonic_ns() - begin

def worker():
    global run
    begin = time.monotonic_ns()
    while time.monotonic_ns() - begin < 2e9:
        timed("sleep", time.sleep, 0.04)
        ready.clear(); ready.wait()
        timed("lock", lambda: lock.acquire() and lock.release())
        jobs.put(1)
        timed("recv", here.recv, 1)
        timed("child", lambda: subprocess.Popen(["sleep", "0.02"]).wait())
    print("wall", time.monotonic_ns() - begin)
    for name in spent: print(name, spent[name])
    print("tid", threading.get_native_id())
    run = False
    jobs.put(1)

threads = [threading.Thread(target=f) for f in (holder, feeder, worker)]
for t in threads: t.start()
for t in threads: t.join()
END
"$INSPECT" offcpu --json -- "$python" "$tmp/waits.py" >"$tmp/py.json" 2>"$tmp/truth"
wall=$(truth wall)
jq --argjson tid "$(truth tid)" '.threads[] | select(.tid == $tid)' "$tmp/py.json" >"$tmp/thread.json"
near "$(share "$(phase "$tmp/py.json" time_sleep)" "$wall")" 0 400 'Python: time.sleep has its stack'
for pair in sleep:sleep recv:network child:child; do
	got=$(jq ".${pair#*:}_percent" "$tmp/thread.json")
	want=$(share "$(truth "${pair%:*}")" "$wall")
	# What it waited for a CPU in between, and for word of the child's exec, is accounted apart.
	ok "awk 'BEGIN { exit !($got <= $want + 2 && $got >= $want - 2 - $(jq '.runnable_percent + (.pipe_percent // 0)' "$tmp/thread.json")) }'" \
		"Python: its share of ${pair#*:}"
done

# --- waits that begin before, and do not end ------------------------------------------------------

sleep 300 &
sleeper=$!
"$W/syscalls" deadlock 300 &
stuck=$!
until [ "$(cat /proc/$stuck/task/*/wchan | grep -o futex | wc -l)" -ge 2 ]; do sleep 0.02; done
like "$("$INSPECT" offcpu --stacks 0 -p $stuck -d 0.1 2>&1)" "→ inspect stack -p $stuck"$'\n' \
	'who waits for a mutex all through: stack is next, which says who holds it'
kill $stuck
"$INSPECT" offcpu --json -p $sleeper -d 0.5 >"$tmp/open.json" 2>"$tmp/err"
is "$(jq -c '.waits[0] | [.for, .open, .before, .count, .idle]' "$tmp/open.json")" \
	'["clock_nanosleep",1,1,1,true]' 'a wait since before the start, not over at the end'
near "$(jq '.waits[0].wait_ns / .threads[0].wall_ns * 100' "$tmp/open.json")" 100 0.1 'is all of its time'
is "$(jq -r '[.stacks[].function | select(. == "__libc_start_main" or . == "clock_nanosleep")] | join(" ")' \
	"$tmp/open.json")" 'clock_nanosleep __libc_start_main' 'with its whole stack'
kill $sleeper

# --- the first screen -----------------------------------------------------------------------------

cat >"$tmp/pool.py" <<'END'
import queue, threading, time
jobs = queue.Queue()
def worker():
    while True:
        jobs.get()
        sum(i * i for i in range(30000))
for i in range(6): threading.Thread(target=worker, daemon=True).start()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    for i in range(6): jobs.put(i)
    time.sleep(0.02)
END
COLUMNS=80 "$INSPECT" offcpu --stacks 10 -o "$tmp/pool.data" -- "$python" "$tmp/pool.py" >"$tmp/screen" 2>"$tmp/err" &
screen=$!
"$INSPECT" offcpu -q -d 1 -p $$ >"$tmp/out" 2>&1 # several programs at each switch
wait $screen
ok 'grep -A9 "^#[0-9]* futex, [5-9] locks" "$tmp/screen" | grep -q "^    PyThread_acquire_lock_timed  *python3"' \
	"user frames are on the first screen, each thread's own lock at one place in one row"
ok 'grep -A3 "^#[0-9]* futex, [5-9] locks" "$tmp/screen" | grep -q "^    kernel  futex_do_wait < __futex_wait"' \
	"the kernel's are one line, without the scheduler's"
ok '"$INSPECT" report --csv "$tmp/pool.data" 2>/dev/null | grep -q "_PyRuntime (GIL)"' 'the GIL by its name'
is "$("$python" -c 'import sys; print(max(len(l.rstrip("\n")) for l in open(sys.argv[1], encoding="utf-8")) <= 80)' \
	<(tail -n +2 "$tmp/screen"))" True 'in 80 columns, but for the path of a file'
is "$(awk '/ runnable \([0-9]+ % woken\)/ { print $2 }' "$tmp/screen")" "$(awk '/ all [0-9]+ threads$/ { print $5; exit }' "$tmp/screen")" \
	'what was runnable: as much in its row as in the total'
is "$("$INSPECT" flame --folded "$tmp/pool.data" 2>/dev/null | grep -cE '__traceiter_|bpf_trace')" 0 \
	'no frame of ours is in the profile'

# --- options --------------------------------------------------------------------------------------

COLUMNS=60 "$INSPECT" offcpu --stacks 0 -- "$W/wait_shares" 0.2 >"$tmp/narrow" 2>&1
like "$(cat "$tmp/narrow")" 'columns left out for the width: .*pipe [0-9.]+%' \
	'reasons for which there is no room are told with their share'
like "$(COLUMNS=60 "$INSPECT" offcpu --all --stacks 0 -- "$W/wait_shares" 0.2 2>&1)" 'waiting +((sleep|lock|join) +){3}pipe' \
	'--all: all reasons'
"$INSPECT" offcpu --json --min-wait 10ms -- "$W/wait_shares" 1 >"$tmp/min.json" 2>"$tmp/err"
is "$(jq '[.waits[] | .wait_ns + .queue_ns >= .count * 1e7] | all' "$tmp/min.json")" true '--min-wait leaves shorter waits out'
is "$(jq -r -f "$tmp/sums.jq" "$tmp/min.json")" '4 true' 'and says how much that was'
"$INSPECT" offcpu --json --call-graph none -- "$W/wait_shares" 0.5 >"$tmp/none.json" 2>"$tmp/err"
is "$(jq -c '[.stacks[] | select(.kind != "kernel")]' "$tmp/none.json")" '[]' '--call-graph none takes no stacks'
like "$(jq -r '[.waits[].for] | join(",")' "$tmp/none.json")" 'futex the_lock' 'but the reasons'
exits 7 'the exit code is that of CMD' "$INSPECT" offcpu -q -- sh -c 'exit 7'
exits 127 'a command that is not there' "$INSPECT" offcpu -- /no/such/command
exits 2 'a maximum below the minimum' "$INSPECT" offcpu --min-wait 2s --max-wait 1s -- true
exits 2 'nothing to watch' "$INSPECT" offcpu
"$INSPECT" offcpu --stacks 0 -- sleep 0.1 >"$tmp/none" 2>&1
like "$(cat "$tmp/none")" '[0-9]+ % waiting.*lost 0' 'the first line sums up'
is "$(awk 'BEGIN { unit["ns"] = 1; unit["µs"] = 1e3; unit["ms"] = 1e6; unit["s"] = 1e9 }
	/^[0-9].* runnable/ { print $3 * unit[$4] <= $5 * $10 * unit[$11] * 1.01, $10 * unit[$11] <= $3 * unit[$4] * 1.01 }' "$tmp/none")" '1 1' \
	'of what was runnable the number and the longest fit the time'
unlike "$(cat "$tmp/none")" $'\n#[0-9]' '--stacks 0: no stacks'
is "$("$INSPECT" offcpu --json --stacks 0 -- sleep 0.1 2>"$tmp/err" | jq -c '.stacks // []')" '[]' 'nor as data'
cp "$(command -v sleep)" "$tmp/"$'a\033[31mb'
unlike "$("$INSPECT" offcpu -- "$tmp/"$'a\033[31mb' 0.1 2>&1)" $'\033''\[31m' 'names are escaped'

# --- -q: without notes, not without the answer ---
like "$("$INSPECT" offcpu -q -d 0.2 -- sleep 1)" 'clock_nanosleep' '-q keeps the tables'
