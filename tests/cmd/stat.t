#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect stat: its counts beside those of perf stat and getrusage, targets, output, exit codes.
. "$(dirname "$0")/lib.sh"
repo=$PWD
cd "$tmp" || exit 1
me=$(id -u)

# value FILE METRIC
value() {
	jq -r --arg m "$2" '.metrics[] | select(.metric == $m and .side == "a").value' "$1"
}
fits() {
	is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/$2.schema.json" "$1" 2>&1)" '' "$3"
}
# What perf stat counted: perf_count EVENT FILE
perf_count() {
	awk -F, -v event="$1" '$3 == event || $3 == event ":u" { print $1 }' "$2"
}
# --- counts: the same as those of perf stat and getrusage, for children, threads and both ---
# Page faults are the same from run to run, to the last one, with the address space at fixed places and without rseq:
# the kernel writes to that area of a thread when it was preempted, which after a fork is a fault more or less.
# perf adds to CMD's environment, which lies on its stack: a page more at times. So ours starts with the same. In 200
# runs there was no difference then; once, in a CI run, there was one fault more. The very same run is compared exactly, by
# `together` below.
export GLIBC_TUNABLES=glibc.pthread.rseq=0
mapfile -d '' -t as_perf < <(setarch -R perf stat -o perf.err env -0)
unset GLIBC_TUNABLES
compare() {
	local what=$1
	shift
	# Time that the hypervisor took is taken off late, perhaps after the program read its own: a run without that.
	for _ in 1 2 3 4 5; do
		env -i "${as_perf[@]}" setarch -R "$INSPECT" stat --json -o s.json -- "$W/counts" "$@" >rusage 2>err
		within "$(cpu_ns)" "$(of_rusage cpu_ns)" "$(one_percent "$(of_rusage cpu_ns)" 2500000)" && break
	done
	GLIBC_TUNABLES=glibc.pthread.rseq=0 setarch -R perf stat -x, -o p.csv -e page-faults "$W/counts" "$@" >/dev/null 2>&1
	near "$(value s.json page-faults)" "$(perf_count page-faults p.csv)" 2 "$what: page faults are those of perf stat"
	is "$(jq '[.metrics[] | select(.metric == "minor-faults" or .metric == "major-faults").value] | add' s.json)" \
		"$(value s.json page-faults)" "$what: minor and major faults are all of them"
	# The process that waits for its exec has some faults too, which only getrusage knows.
	near_rusage minor-faults 40 minflt
	near_rusage context-switches 4 nvcsw nivcsw
	near_rusage max-rss 600000 maxrss
	near "$(cpu_ns)" "$(of_rusage cpu_ns)" "$(one_percent "$(of_rusage cpu_ns)" 2500000)" "$what: user and sys are those of getrusage"
}
cpu_ns() {
	jq '[.metrics[] | select(.metric == "user" or .metric == "sys").value] | add' s.json
}
of_rusage() {
	awk -v names="$*" 'BEGIN { n = split(names, name, " ") }
		{ for (i = 1; i <= n; i++) if ($1 == name[i]) sum += $2 } END { print sum }' rusage
}
# 1 % of it, and so much beside
one_percent() {
	awk -v v="$1" -v plus="$2" 'BEGIN { print v / 100 + plus }'
}
near_rusage() {
	local metric=$1 plus=$2
	shift 2
	near "$(value s.json "$metric")" "$(of_rusage "$@")" "$(one_percent "$(of_rusage "$@")" "$plus")" \
		"$what: $metric is that of getrusage"
}
compare 'one process' 20000 0 0 0
compare 'a tree of processes' 5000 6 0 100
compare 'threads' 4000 0 8 100
compare 'a short command' 1000 0 0 0
near "$(value s.json voluntary-switches)" 0 3 'what the tool itself waited for is not the voluntary wait of CMD'

# The same run seen by both: they attach while it is stopped.
together() {
	local what=$1 pid event
	shift
	sh -c 'kill -STOP $$; exec "$@"' sh "$W/counts" "$@" >/dev/null &
	pid=$!
	until [ "$(awk '{ print $3 }' /proc/$pid/stat)" = T ]; do sleep 0.02; done
	perf stat -x, -o p.csv -e page-faults,context-switches,cpu-migrations,task-clock -p $pid 2>/dev/null &
	"$INSPECT" stat --json -o s.json -p $pid 2>err &
	# Both have their events when each has as many descriptors of them.
	for ((i = 0; i < 100; i++)); do
		[ "$(ls -l /proc/$!/fd /proc/$(pgrep -n -f "^perf stat.*-p $pid")/fd 2>/dev/null | grep -c perf_event)" -lt 10 ] || break
		sleep 0.05
	done
	kill -CONT $pid
	wait
	for event in page-faults context-switches cpu-migrations; do
		is "$(value s.json $event)" "$(perf_count $event p.csv)" "$what, with perf stat at the same time: $event"
	done
	near "$(value s.json task-clock)" "$(perf_count task-clock p.csv | awk '{ print $1 * 1e6 }')" \
		"$(one_percent "$(value s.json task-clock)" 100000)" "$what, with perf stat at the same time: task-clock"
}
together 'a tree of processes' 3000 6 0 100
together 'threads' 3000 0 8 100

head -c 3000000 /dev/zero >zeros
"$INSPECT" stat --json -o s.json -- sh -c 'cat zeros zeros >copy' 2>err
written=$(value s.json written)
near "$written" 6000000 10000 'bytes written, those of children too'
ok '[ "$(value s.json read)" -ge 6000000 ] && [ "$(value s.json read)" -le 6100000 ]' 'and read'
"$INSPECT" stat --json -o s.json -- sh -c 'for i in 1 2 3 4 5 6; do sleep 0.4 & done; wait' 2>err
is "$(value s.json threads)" 7 'threads are those of children too'
if [ "$(nproc)" -gt 1 ]; then
	"$INSPECT" stat --per-core --json -o s.json -- python3 -c '
import mmap, os
cpus = sorted(os.sched_getaffinity(0))[:2]
for i in range(20):
    os.sched_setaffinity(0, {cpus[i % 2]})
    m = mmap.mmap(-1, 1 << 20)
    for at in range(0, 1 << 20, 4096):
        m[at] = 1
    m.close()' 2>err
	is "$(jq -c '[.metrics[] | select(.metric == "page-faults" or .metric == "task-clock").running_percent]' s.json)" \
		'[100,100]' '--per-core: what moves between CPUs is counted all the time'
	near "$(value s.json page-faults)" "$(jq '[.metrics[] | select(.metric == "minor-faults" or .metric == "major-faults").value] | add' s.json)" 0 \
		'and in full'
else
	skip 'one CPU' 2
fi

# --- what cannot be counted ---
"$INSPECT" stat --json -- true >s.json 2>err
fits s.json stat 'a run'
if [ "$(jq -r '.metrics[] | select(.metric == "cycles").value' s.json)" = null ]; then
	like "$(jq -r '.metrics[] | select(.metric == "cycles").value_reason' s.json)" '^not counted: ' \
		'cycles are null, with a reason'
	like "$("$INSPECT" stat -- true 2>&1)" 'note: "-" of cycles, .* more: not counted: ' 'the table says so too'
	exits 125 '--require' "$INSPECT" stat --require cycles -- touch ran
	like "$(cat err)" "'cycles' is required" 'names the event'
	ok '[ ! -e ran ]' 'and CMD has not run'
	is "$("$INSPECT" stat --json -e cycles -- true 2>err | jq -c '.metrics[] | select(.metric == "cycles") | [.value, .value_reason != ""]')" \
		'[null,true]' '-e of what is not there: null with a reason'
else
	ok '[ "$(value s.json cycles)" -gt 1000 ]' 'cycles are counted'
	exits 0 '--require' "$INSPECT" stat --require cycles -- true
	skip 'hardware counters are there' 3
fi
exits 0 '--require of what is there' "$INSPECT" stat --require task-clock -- true
exits 2 'an unknown event' "$INSPECT" stat -e nosuch -- true
if [ "$me" = 0 ] && [ -d /sys/kernel/tracing/events/sched ]; then
	exits 2 'an unknown tracepoint' "$INSPECT" stat -e sched:nosuch -- true
else
	skip 'tracepoints cannot be seen'
fi
is "$(jq -c '[.metrics[] | select(.value == 0) | .metric] | map(select(. == "cycles" or . == "instructions"))' s.json)" \
	'[]' 'nothing uncounted is 0'

# --- the command's own ---
exits 3 'exit code' "$INSPECT" stat -- sh -c 'exit 3'
exits 137 'killed by SIGKILL' "$INSPECT" stat -- sh -c 'kill -9 $$'
like "$(cat err)" 'killed by signal 9' 'and it is told'
exits 127 'not found' "$INSPECT" stat -- nosuchcommand
exits 126 'not executable' "$INSPECT" stat -- /etc/passwd
exits 2 'nothing to measure' "$INSPECT" stat
is "$(echo hello | "$INSPECT" stat -- cat 2>err)" hello 'stdin and stdout are untouched'
is "$(echo hello | "$INSPECT" stat --json -o x.json -- cat 2>err)" hello '--json -o: still'
is "$("$INSPECT" stat --json -- echo noise 2>err | jq -r .schema)" inspect.stat/1 '--json alone: stdout is for it'
is "$(cat err)" noise "and CMD's output goes to stderr"
is "$("$INSPECT" stat -- printf '%s.' --json -r 2>err)" '--json.-r.' 'CMD keeps its options'
start=$(date +%s)
exits 124 '--timeout' "$INSPECT" stat --timeout 0.3 -- sh -c 'sleep 30 & sleep 31'
ok '[ $(($(date +%s) - start)) -lt 8 ]' 'does not wait for the rest of the tree'
ok '! pgrep -f "^sleep 3[01]$"' 'and ends it'
exits 0 '-d with a command ends it' "$INSPECT" stat -d 0.2 -- sleep 20
like "$(cat err)" 'still running at the end of -d' 'and says so'
is "$(cat /proc/sys/kernel/random/boot_id >/dev/null; "$INSPECT" stat -q -- true 2>&1)" '' '-q'

# --- repeats ---
"$INSPECT" stat -r 5 --warmup 2 --json -o s.json -- sh -c 'echo run >>log' 2>err
is "$(wc -l <log)" 7 '-r 5 --warmup 2 is seven runs'
is "$(jq -c '[.repeat, .warmup, (.runs | length), (.metrics[0].runs)]' s.json)" '[5,2,5,5]' 'of which five are measured'
is "$(jq '.metrics[] | select(.metric == "wall") | .min <= .median and .median <= .max and .low <= .high and .sd > 0' s.json)" true \
	'the summary is in order'
# An oracle for the numbers: Python's statistics
is "$(python3 - s.json <<'END'
import json, statistics, sys
report = json.load(open(sys.argv[1]))
for m in report["metrics"]:
    key = m["metric"] + {"ns": "_ns", "bytes": "_bytes"}.get(m["unit"], "")
    v = [run[key] for run in report["runs"] if run[key] is not None]
    if not v:
        continue
    want = {"mean": statistics.fmean(v), "sd": statistics.stdev(v), "median": statistics.median(v),
            "min": min(v), "max": max(v), "mad": statistics.median(abs(x - statistics.median(v)) for x in v)}
    for name, x in want.items():
        if abs(m[name] - x) > 1 + 1e-9 * abs(x):
            print(m["metric"], name, m[name], x)
END
)" '' 'mean, σ, median, MAD, min and max are those of Python'
exits 4 'the first failure is the exit code' "$INSPECT" stat -r 3 -- sh -c 'exit 4'
like "$(cat err)" 'exit code 4 in 3 of 3 runs' 'and how many failed'

# --- --vs ---
"$INSPECT" stat -r 6 --vs "sh -c 'for i in 1 2 3 4 5; do $W/counts 3000 0 0 0; done; echo b >>order'" --json -o s.json -- \
	sh -c "$W/counts 3000 0 0 0; echo a >>order" >/dev/null 2>err
fits s.json stat '--vs'
is "$(tr -d '\n' <order)" abbaabbaabba 'A and B run in turns'
is "$(jq -r '.comparison[] | select(.metric == "page-faults").verdict' s.json)" more 'B faults more'
ok '[ "$(jq ".comparison[] | select(.metric == \"page-faults\") | .low > 3 and .high < 6 and .p < 0.05" s.json)" = true ]' \
	'about five times, with its interval'
like "$(jq -r .comparison_summary s.json)" '^B is [0-9.]+ % slower than A .*Mann-Whitney U' 'the sentence names the test'
"$INSPECT" stat -r 5 --vs true --json -o s.json -- true 2>err
is "$(jq -r '.comparison[] | select(.metric == "major-faults").verdict' s.json)" 'no difference' 'the same has no difference'

# --- metrics from the output, and dividing ---
out=$("$INSPECT" stat --metric 'requests=^requests: ([0-9]+)' --metric 'p99=p99 [0-9.]+' --metric 'none=zzz' --per requests --json -o s.json -- \
	sh -c 'echo "requests: 10"; echo "requests: 50"; echo "p99 12.5 ms" >&2' 2>err)
is "$out" $'requests: 10\nrequests: 50' 'output passes through'
is "$(cat err)" 'p99 12.5 ms' 'on both descriptors'
is "$(value s.json requests)" 50 'the last line counts'
is "$(jq -r '.metrics[] | select(.metric == "none") | [.value, .value_reason] | @csv' s.json)" \
	',"not counted: no line of CMD'\''s output has it"' 'what is not found is null'
near "$(jq '.metrics[] | select(.metric == "page-faults").value' s.json)" 2.5 2 '--per divides'
exits 2 'a bad expression' "$INSPECT" stat --metric 'x=(' -- true
exits 2 'a name that is taken' "$INSPECT" stat --metric 'wall=x' -- true
exits 2 '--per of nothing' "$INSPECT" stat --per nosuch -- true

# --- targets ---
sh -c 'while :; do :; done' &
spin=$!
# The counters start before the duration does and stop after it; how much so is the machine's affair, once in a while.
for _ in 1 2 3 4 5; do
	"$INSPECT" stat -p $spin -d 0.5 --json >s.json 2>err
	within "$(value s.json task-clock)" "$(cpu_ns)" 20000000 && [ "$(value s.json wall)" -lt 580000000 ] && break
done
fits s.json stat '-p'
near "$(value s.json wall)" 540000000 40000000 '-d is kept'
near "$(value s.json task-clock)" "$(cpu_ns)" 20000000 "the counters' CPU time is that of /proc"
for _ in 1 2 3 4 5; do
	"$INSPECT" stat -p $spin --json -- sleep 0.3 >s.json 2>err
	[ "$(value s.json wall)" -lt 380000000 ] && break
done
near "$(value s.json wall)" 340000000 40000000 'a command with -p only times it'
ok '[ "$(value s.json task-clock)" -gt 20000000 ]' "and the target's CPU time is counted"
"$INSPECT" stat -p $spin -d 0.2 --per-thread --json >s.json 2>err
is "$(jq -r '.parts[].part' s.json)" "$spin sh" '--per-thread'
"$INSPECT" stat -t $spin -d 0.1 --json >s.json 2>err
ok '[ "$(value s.json task-clock)" -gt 0 ]' '-t'
"$INSPECT" stat -I 50 -n 3 -p $spin --json >s.json 2>err
fits s.json stat '-I'
is "$(jq '.intervals | length' s.json)" 3 '-I 50 -n 3 is three intervals'
is "$(jq '([.intervals[]["task-clock_ns"]] | add) as $sum | .metrics[] | select(.metric == "task-clock").value >= $sum' s.json)" true \
	'which do not exceed the whole'
"$INSPECT" stat -I 50 --json -- sh -c 'sleep 0.07; : $(seq 1000); sleep 0.07' >s.json 2>err
is "$(jq '([.intervals[]["page-faults"]] | add) as $sum | .metrics[] | select(.metric == "page-faults").value == $sum' s.json)" true \
	'with the rest at the end they are the whole'
like "$("$INSPECT" stat -I 50 -n 2 -p $spin)" $'^ *seconds +.*task-clock.*\n +0\\.[0-9]+ ' 'printed as they come'
: >live.csv # the loop may be there first
"$INSPECT" stat -I 50 -d 30 -p $spin --csv >live.csv 2>err &
live=$!
for ((i = 0; i < 100; i++)); do
	[ "$(wc -l <live.csv)" -lt 3 ] || break
	sleep 0.05
done
like "$(sed -n 1,3p live.csv)" $'^section,elapsed_ns,task-clock_ns,.*\nintervals,[0-9]+,[0-9]+,.*\nintervals,' '--csv: rows are there while it runs'
kill -TERM $live
wait $live
is "$(grep -c ^section,elapsed_ns live.csv) $(grep -c ^section,metric, live.csv) $(grep -c "^intervals,[0-9]*,[0-9]*" live.csv)" \
	"1 1 $(grep -c ^intervals, live.csv)" 'once, before the other tables'
kill $spin
wait $spin 2>/dev/null

# A server with a child that it has before; threads and children that come and go are its own.
cat >server.py <<'END'
import os, sys, threading, time
if os.fork() == 0:
    while os.getppid() != 1:
        pass
    os._exit(0)
def work():
    for _ in range(300):
        time.sleep(0.001)
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
for _ in range(2):
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    for t in threads:
        t.join()
    os.waitpid(child, 0)
time.sleep(60)
END
python3 server.py &
server=$!
until [ -e ready ]; do sleep 0.05; done
(sleep 0.3; touch go) &
"$INSPECT" stat -p $server -d 2 --json >s.json 2>err
like "$(jq -r '.notes[]' s.json)" '1 child process used [0-9.]+ CPUs and is not counted; add --children' \
	'-p: what an existing child used is said'
ok '[ "$(value s.json context-switches)" -ge 2000 ]' '-p: threads and children that it starts are counted'
is "$(value s.json threads)" 5 '-p: the most threads at once, in new children too'
is "$(jq -r '.metrics[] | select(.metric == "voluntary-switches") | [.value, .value_reason] | @csv' s.json)" \
	',"not counted: not known of threads and children that ended"' '-p: what went away with them is null'
"$INSPECT" stat -p $server --children -d 0.5 --json >s.json 2>err
unlike "$(jq -r '.notes[]' s.json)" 'not counted; add' '--children: nothing is left out'
ok '[ "$(value s.json task-clock)" -gt 50000000 ]' '--children: and the child is counted'
kill $server
wait $server 2>/dev/null
sleep 0.2 &
pid=$!
exits 0 'ends with its target' "$INSPECT" stat -p $pid
exits 125 'a process that is not there' "$INSPECT" stat -p $pid -d 1
if [ "$me" = 0 ]; then
	"$INSPECT" stat -a -d 0.3 --per-core --json >s.json 2>err
	fits s.json stat '-a --per-core'
	cores=$(lscpu -p=core,socket | grep -v '^#' | sort -u | wc -l)
	is "$(jq '.parts | length' s.json)" "$cores" 'a row for each core'
	is "$(jq '([.parts[]["context-switches"]] | add) as $sum | .metrics[] | select(.metric == "context-switches").value == $sum' s.json)" \
		true 'which add up to all'
	"$INSPECT" stat -C 0 -d 0.2 --json >s.json 2>err
	ok '[ "$(value s.json context-switches)" -gt 0 ]' '-C'
	# Every CPU is busy, so that the time of the others would show.
	for ((i = 0; i < $(nproc); i++)); do sh -c 'while :; do :; done' & done
	spins=$(jobs -p)
	"$INSPECT" stat -C 0 -d 0.5 --json >s.json 2>err
	kill $spins
	wait $spins 2>/dev/null
	ok '[ "$(jq "[.metrics[] | {(.metric): .value}] | add | .[\"task-clock\"] <= .wall * 1.05 and .user + .sys <= .wall * 1.05" s.json)" = true ]' \
		'-C 0: no more CPU time than one CPU has'
	is "$(jq -r .target s.json)" '-C 0 -d 0.5' 'the target names the CPU and the time'
	"$INSPECT" stat -C 0 -p $$ -d 0.1 --json >s.json 2>err
	is "$(jq -c '[.metrics[] | select(.metric == "user" or .metric == "read") | [.value, .value_reason]] | unique' s.json)" \
		'[[null,"not counted: accounted on all CPUs together, not on those of -C"]]' '-C -p: what is not known by CPU is null'
	group=
	for root in /sys/fs/cgroup/perf_event /sys/fs/cgroup/unified /sys/fs/cgroup; do
		mkdir "$root/inspect-test-$$" 2>/dev/null && group=$root/inspect-test-$$ && break
	done
	if [ -n "$group" ]; then
		mkdir "$group/busy" "$group/idle"
		sh -c 'echo $$ >"$0/cgroup.procs"; while :; do :; done' "$group/busy" &
		spin=$!
		sleep 0.2
		"$INSPECT" stat --cgroup "$group" --per-cgroup -d 0.5 --json >s.json 2>err
		fits s.json stat '--per-cgroup'
		is "$(jq -c '[.parts[] | {(.part): (.["task-clock_ns"] > 20000000)}] | add' s.json)" '{"busy":true,"idle":false}' \
			'each group has its own'
		"$INSPECT" stat --cgroup "$group" -d 0.3 --json >s.json 2>err
		ok '[ "$(value s.json task-clock)" -gt 20000000 ]' '--cgroup counts what is below it'
		kill $spin
		wait $spin 2>/dev/null
		rmdir "$group/busy" "$group/idle" "$group"
	else
		skip 'no cgroup can be made here' 3
	fi
else
	skip 'not root' 10
fi

# --- output ---
"$INSPECT" stat --csv -o s.csv -- true 2>err
is "$(sed -n 1p s.csv | cut -d, -f1-3)" metric,value,mean '--csv has a head'
ok 'grep -q "^wall,[0-9]*," s.csv' 'and plain numbers'
cat >row.py <<'END'
import csv, sys
rows = csv.DictReader(open("s.csv"))
print([(r["value"], r["reason"], r["running_percent"]) for r in rows if r["metric"] == sys.argv[1]])
END
"$INSPECT" stat --csv -o s.csv --markdown s.md --metric 'none=nothing ([0-9]+)' -- true 2>err
sed -i '/^$/,$d; s/^metrics,//; s/^section,//' s.csv
is "$(python3 row.py none)" "[('', \"not counted: no line of CMD's output has it\", '')]" '--csv: what is not counted has a reason and no share'
like "$(cat s.md)" "
- \"-\": not counted: no line of CMD's output has it" '--markdown has the reason below its table'
"$INSPECT" stat --markdown s.md -q -- true 2>err
ok 'grep -q "^| wall | " s.md' '--markdown'
"$INSPECT" stat --json -r 2 -- true >c.json 2>err
LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 "$INSPECT" stat --json -r 2 -- true >de.json 2>err
# Without what depends on the values of a run: derived ones, notes, and why a value is none.
keys() {
	jq -c '[del(.derived, .notes, .findings) | paths | map(if type == "number" then 0 else . end) |
		select(last | tostring | test("reason$") | not)] | unique' "$1"
}
is "$(keys de.json)" "$(keys c.json)" 'LC_ALL=de_DE.UTF-8 gives the same JSON'
like "$(jq '.metrics[] | select(.metric == "cpus-used").value' de.json)" '^[0-9]+[.][0-9]+$' 'with points in its numbers'
"$INSPECT" stat --explain --json >s.json
fits s.json stat-rules '--explain --json'
is "$(jq '[.rules[] | select(.source == "" or .next == "")] | length' s.json)" 0 'every rule has a source and a next step'
is "$(jq -r '.rules[].next' s.json | awk '$1 == "inspect" { print $2 }' | sort -u |
	while read -r name; do "$INSPECT" help "$name" >/dev/null 2>&1 || echo "$name"; done)" '' 'which is a command that there is'

is "$(jq -r '[.environment_cpu, .environment_kernel, .environment_cpus] | @csv' c.json)" \
	"\"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)\",\"$(uname -r)\",$(getconf _NPROCESSORS_ONLN)" \
	'CPU and kernel are in the JSON'
is "$(jq -c '[has("environment_governor", "environment_smt", "environment_virtual_machine", "environment_load_1m")]' c.json)" \
	'[true,true,true,true]' 'and governor, SMT, virtual machine and load'

# --- on a terminal of 80 columns ---
if command -v script >/dev/null; then
	narrow() {
		TERM=dumb script -qec "stty cols 80; \"$INSPECT\" stat $*" /dev/null | tr -d '\r' | sed '/^target /d; / → inspect /d; s/[^ -~]/./g'
	}
	narrow -r 3 --vs true -- true >wide
	narrow -I 50 -- sleep 0.15 >>wide
	is "$(LC_ALL=C.UTF-8 awk 'length > 80' wide)" '' 'tables fit 80 columns'
	like "$(cat wide)" 'note: columns left out for the width: median, outliers, MAD, min, max' 'and say what they leave out'
	like "$(cat wide)" 'note: -I: columns left out for the width: .*major-faults' 'those of -I too'
else
	skip 'no script(1) here, which makes a terminal' 3
fi

# --- verdicts ---
like "$("$INSPECT" stat -- true 2>&1)" 'note: too short for a verdict' 'what is too short has none, and says so'
verdicts() {
	"$INSPECT" stat --json -o s.json -- "$@" >/dev/null 2>err
	jq -r '[.findings[].rule] | join(" ")' s.json
}
like " $(verdicts sleep 0.3) " ' waiting ' 'a sleeper waits'
# A CPU with others on it: being pushed off often is no reason not to see that it sleeps.
for i in 1 2 3 4; do timeout 20 "$W/shares" 5 >"$tmp/null" 2>&1 & hogs+=($!); done
like " $(verdicts python3 -c 'import time; time.sleep(1.5)') " ' waiting ' 'on a busy machine too'
unlike " $(verdicts "$W/shares" 0.3) " ' waiting ' 'but what competes does not'
kill "${hogs[@]}" 2>"$tmp/null"
like " $(verdicts dd if=/dev/zero of=/dev/null bs=64k count=40000) " ' kernel-heavy ' 'dd from /dev/zero is in the kernel'
like "$(jq -r '.findings[] | select(.rule == "kernel-heavy").next' s.json)" '-- dd if=/dev/zero' 'what to run next has the command'
is "$("$INSPECT" stat --json -o s.json -- sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done' 2>&1
	jq -r '.summary' s.json | sed 's/.*next: inspect [a-z]* //')" \
	"-- sh -c 'i=0; while [ \$i -lt 60000 ]; do i=\$((i+1)); done'" 'its words are quoted for a shell'
like " $(verdicts "$W/counts" 100000 0 0 0) " ' faulting ' 'touching fresh pages faults'
unlike " $(verdicts "$W/shares" 0.3) " ' kernel-heavy | faulting | io ' 'a loop is none of that'
