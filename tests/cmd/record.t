#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect record: its options, targets, output file, exit codes and what it prints at the end.
. "$(dirname "$0")/lib.sh"
profiles=tests/cmd/profiles.py
burn=$W/exits
record() {
	"$INSPECT" record "$@"
}
report() {
	"$INSPECT" report --json --all "$@"
}
cd "$tmp" || exit 1
profiles=$OLDPWD/$profiles

# --- exit codes ---
exits 0 'exit code 0 is passed on' record -o f -- "$burn" 0.05 0
exits 7 'exit code 7 is passed on' record -o f -- "$burn" 0.05 7
exits 255 'exit code 255 is passed on' record -o f -- "$burn" 0.05 255
exits 137 'a signal is 128 + its number: KILL' record -o f -- "$burn" 0.05 signal 9
exits 139 'a signal is 128 + its number: SEGV' record -o f -- "$burn" 0.05 signal 11
rm -f f f.old
exits 127 'a command that is not there: 127' record -o f -- /nonexistent/program
like "$(cat err)" "cannot run '/nonexistent/program': No such file" 'named'
ok '[ ! -e f ]' 'without a file'
exits 127 'a command that is not in PATH: 127' record -o f -- no-such-command-here
like "$(cat err)" 'PATH' 'with the reason'
: >not-executable
exits 126 'a file that is not executable: 126' record -o f -- ./not-executable
exits 126 'a folder: 126' record -o f -- /tmp
ok '[ ! -e f ] && [ ! -e f.old ]' 'without a file'
echo old >f
exits 127 'an old recording' record -o f -- /nonexistent/program
is "$(cat f)" old 'stays where it is when nothing was recorded'
rm f
exits 2 'no target: a usage error' record -o f
like "$(cat err)" '-p PID.*-a.*CMD' 'with the choices'
exits 2 'two targets: a usage error' record -a -p 1
like "$(cat err)" '-p.* and .*-a' 'with both names'
exits 2 'two rates: a usage error' record -F 99 -c 1000 -- true
exits 2 'an unknown option: a usage error' record --freqency 99 -- true
like "$(cat err)" '--freq' 'with the nearest'
exits 2 'no number: a usage error' record -p 12x
exits 2 'an unknown event' record -e cpu-clokc -o f -- touch ran
like "$(cat err)" "cpu-clokc.*cpu-clock" 'with the nearest'
exits 125 'an unknown tracepoint' record -e sched:sched_swich -o f -- touch ran
like "$(cat err)" 'sched:sched_swich' 'by its name'
ok '[ ! -e ran ] && [ ! -e f ]' 'a refused start: CMD never ran, no file'

# --- the file ---
exits 0 'the default output' record -- "$burn" 0.05 0
ok '[ -s inspect.data ]' 'is inspect.data'
first=$(cksum <inspect.data)
exits 0 'once more' record -- "$burn" 0.05 0
is "$(cksum <inspect.data.old)" "$first" 'the older one is now .old'
like "$(cat err)" 'old' 'which is said'
ln -s elsewhere link
exits 125 'a symbolic link is not followed' record -o link -- touch ran
like "$(cat err)" 'link' 'and named'
ok '[ ! -e elsewhere ] && [ -L link ] && [ ! -e ran ]' 'nothing was made or run'
exits 125 'a folder that is not there' record -o none/f -- touch ran
like "$(cat err)" 'none/f: No such file' 'is named'
ok '[ ! -e ran ]' 'before CMD runs'
record -q -F 499 -o - -- "$burn" 0.3 0 >piped 2>err
is $? 0 '-o - writes to stdout'
is "$(report piped | jq '.samples > 15')" true 'a stream that report reads'
is "$("$INSPECT" report --json - <piped | jq .samples)" "$(report piped | jq .samples)" 'from a pipe too'
ok '[ "$(stat -c %a inspect.data)" = 600 ] || [ "$(stat -c %a inspect.data)" = 644 ]' \
	'nobody else may write the file'

# --- what it prints ---
record -F 999 -o f -- "$W/shares" 1 2 >out 2>err
like "$(head -1 out)" '^burn_sixty' "CMD has stdout to itself"
like "$(cat err)" 'target [0-9.]+ of [0-9]+ CPUs.*hottest thread shares [0-9]+ %.*lost 0 → next: inspect report' \
	'the first line'
like "$(cat err)" '# samples: *[0-9]+ in [0-9.]+ s of (cycles|cpu-clock) at 999 Hz' 'the samples'
like "$(cat err)" '# lost: *0' 'the losses'
like "$(cat err)" '# stacks: *[0-9]+ truncated \([0-9.]+ %' 'the truncated stacks'
like "$(cat err)" '# cost: [0-9.]+ m?s of CPU while measuring' 'its own cost'
like "$(cat err)" '# file: *f \([0-9.]+ [KM]iB\)' 'the file'
near "$(grep -c ' shares$' err)" 2.5 0.5 'two busy threads, each with its share, and main when it was seen'
record -q -o f -- "$burn" 0.05 0 >out 2>err
is "$(cat out err)" '' '-q: nothing'
record --json -o f -F 999 -- "$burn" 0.5 0 >out 2>err
is "$(jq -r .schema out)" inspect.record/1 '--json: an object'
is "$(jq '.samples > 400 and .lost == 0 and .file_bytes > 10000 and .own_cpu_ns > 0' out)" true \
	'--json: the quality numbers'
ok '[ "$(jq .duration_ns out)" -ge 500000000 ]' '--json: the time that it took'
is "$(jq -r '.threads[0].comm' out)" exits '--json: the threads'
ok '[ "$(jq .file_bytes out)" = "$(stat -c %s f)" ]' '--json: the size is the size of the file'
exits 125 '--json: a failure' record --json -p 999999999
is "$(jq -r .error err | grep -c 999999999)" 1 '--json: is an object as well'

# --- what is sampled ---
is "$(report f | jq -r '.events[0].event' | grep -cE 'cycles|cpu-clock')" 1 \
	'the event is named'
record -q -F 499 -e cpu-clock,task-clock -o f -- "$burn" 0.5 0
perf script -F event -i f 2>/dev/null | sort | uniq -c | awk '{ print $2, $1 }' >events
near "$(awk '/^cpu-clock:/ { print $2 }' events)" 248 25 'two events: the first has its samples'
near "$(awk '/^task-clock:/ { print $2 }' events)" 248 25 'two events: and the second'
is "$(report f | jq '[.functions[].event] | unique | length')" 2 'two events: a section each'
record -q -c 10000000 -e cpu-clock -o f -- "$burn" 0.5 0
near "$(report f | jq .samples)" 50 25 '-c: a sample every N ns of cpu-clock'
record -q -F 999 -e cpu-clock:u -o f -- "$burn" 0.5 0
is "$(report f | jq '[.functions[] | select(.kind == "kernel")] | length')" 0 ':u: no kernel code'
record -q -F 999 --kernel-only -e cpu-clock -o f -- dd if=/dev/zero of=/dev/null bs=1M count=4000 2>/dev/null
is "$(report f | jq '.samples > 20 and ([.functions[] | select(.kind != "kernel")] | length == 0)')" true \
	'--kernel-only: nothing else'
record -q -F 999 --call-graph none -o f -- "$burn" 0.3 0
"$INSPECT" flame --folded --no-inline f >out
is "$(sed 's/;\[truncated\]//' out | grep -c ';.*;')" 0 '--call-graph none: no callers'
most_frames() {
	perf script -F ip,sym -i "$1" 2>/dev/null | awk 'NF { n++; next } { if (n > most) most = n; n = 0 } END { print most }'
}
record -q -F 999 --max-stack 5 -o f -- "$W/shares" 0.5 >/dev/null
is "$(most_frames f)" 5 '--max-stack: no longer stacks'
record -q -F 999 --call-graph dwarf --max-stack 9 -o f -- dd if=/dev/zero of=/dev/null bs=1M count=4000 2>/dev/null
is "$(most_frames f)" 9 '--max-stack: kernel and user frames together, of stack copies too'
record -q -e sched:sched_switch -a -d 0.3 -o f
like "$("$INSPECT" report f)" 'counts, not time; time off CPU: inspect offcpu' 'a tracepoint: counts, not time'
like "$(report f | jq -r '.notes[]')" 'by frame pointers.*tracepoints.*--call-graph dwarf' \
	'a tracepoint: why its stacks may be cut'
is "$(report f | jq .samples)" "$(perf script -F event -G -i f 2>/dev/null | grep -c sched_switch)" \
	'a tracepoint: perf counts as many'
if [ "$(id -u)" = 0 ]; then
	# Where nobody has mounted tracefs, a private mount does.
	unshare -m sh -c 'while umount -t tracefs -a 2>/dev/null && grep -q " tracefs " /proc/self/mounts; do :; done
		"$0" record -q -e sched:sched_process_exit -o g -- true && ! grep -q " tracefs " /proc/self/mounts' "$INSPECT"
	is "$? $(report g | jq .samples)" '0 1' 'a tracepoint without a mounted tracefs'
else
	skip 'without a mounted tracefs' 'unmounting needs root'
fi

# --- who is sampled ---
"$W/shares" 90 2 >/dev/null &
two=$!
"$burn" 90 0 &
other=$!
sleep 0.2
record -q -F 199 -d 0.7 -o f -p $two,$other
is "$(report --sort pid f | jq -c '[.functions[].pid] | sort')" "$(jq -nc "[$two,$other] | sort")" \
	'-p PID,PID: both'
tid=$(ls /proc/$two/task | sed -n 2p)
record -q -F 999 -d 0.5 -o f -t "$tid"
is "$(report --sort tid f | jq -c '[.functions[].tid]')" "[$tid]" '-t TID: that thread alone'
record -q -F 999 -d 0.5 -o f -C 0
is "$(perf script -F cpu -i f 2>/dev/null | tr -d '[] ' | grep . | sort -u)" 000 '-C 0: only that CPU'
record -q -F 199 -d 0.5 -o f -a
is "$(report --sort comm f | jq '[.functions[].comm] | (index("shares") and index("exits")) != null')" true \
	'-a: both'
like "$(report --sort comm f | jq -r '.functions[].comm' | grep -c swapper)" '^0$' '-a: without idle CPUs'
kill $two $other
(sleep 0.3; exec "$burn" 5 0) &
parent=$!
sh -c '"$0" 4 0 & wait' "$burn" &
shell=$!
sleep 0.5
record -F 199 -d 0.5 -o f -p $shell 2>err >/dev/null
like "$(cat err)" 'note: 1 child process used [0-9.]+ CPUs and is not included; add --children' \
	'-p: a busy child that is left out is noted'
record -q -F 199 -d 0.5 -o f -p $shell --children
is "$(report f | jq '.functions[0].function')" '"burn_until"' '--children: it is included'
pkill -P $shell
kill $parent $shell 2>/dev/null

# --- when ---
start=$EPOCHREALTIME
"$W/shares" 90 >/dev/null &
busy=$!
exits 0 '-d ends it' record -F 99 -d 500ms -o f -p $busy
took=$(awk "BEGIN { print ($EPOCHREALTIME - $start) * 1e9 }")
ok "kill -0 $busy" 'long before its target does'
ok "awk 'BEGIN { ns = $(report f | jq .duration_ns); exit !(ns >= 5e8 && ns < $took) }'" 'and says how long it was'
exits 0 'a trailing command only times it' record -F 99 -g -p $busy -o f -- sleep 0.5
is "$(report --sort pid f | jq -c '[.functions[].pid]')" "[$busy]" 'and is not recorded'
is "$(report f | jq '.samples > 0 and .samples <= .duration_ns / 1e9 * 99 * 1.05 + 2')" true 'for its time'
exits 3 'and its code is told' record -F 99 -p $busy -o f -- sh -c 'sleep 0.1; exit 3'
cp "$W/shares" stays
exits 0 '-d ends a command' record -F 99 -d 0.3 -o f -- "$tmp/stays" 90
ok '! pgrep -f "^$tmp/stays 90"' 'which is gone then'
like "$(cat err)" 'still running' 'which is said'
kill $busy
"$INSPECT" record -q -F 999 --delay 0.5 -o f -- sh -c 'cat /proc/uptime >uptime; exec "$0" 1 0' "$burn"
# Of its second of CPU time at most half a second passes before; less on a busy machine.
ok '[ "$(report f | jq .samples)" -gt 400 ]' '--delay: what comes after'
first=$(perf script -F time -G -i f 2>/dev/null | tr -d ': ' | sort -n | head -1)
ok "awk -v first=$first '{ exit !(first - \$1 > 0.45) }' uptime" '--delay leaves the start out'

# --- a timer that is held back: the time without samples is in nobody's samples ---
record -F max --json -o max.data -- "$W/shares" 0.5 >out 2>err
near "$(jq '.threads[0].cpu_percent * .duration_ns / 1e8' out)" "$(awk '$1 == "cpu" { print $2 / 1e6 }' err)" \
	"$(awk '$1 == "cpu" { print $2 / 2e7 }' err)" 'of a CPU: the CPU time used, throttled or not'
