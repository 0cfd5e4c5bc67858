#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Command lines that people know from perf, FlameGraph and py-spy work, or are answered with ours.
. "$(dirname "$0")/lib.sh"
root=$PWD
cd "$tmp" || exit 1
"$W/shares" 600 2 >/dev/null &
busy=$!
cp "$W/exits" prog

works() {
	exits 0 "inspect $*" "$INSPECT" "$@"
}
# answered REGEX ARG…: refused, and the answer has our spelling
answered() {
	local rc=0 regex=$1
	shift
	"$INSPECT" "$@" >out 2>err </dev/null || rc=$?
	[ $rc != 0 ] && grep -qE -- "$regex" err
	result $? "inspect $* is answered" || diag "  exit $rc: $(head -c 1000 err)"
}
samples() {
	"$INSPECT" report --json "$@" | jq .samples
}

# --- perf record ---
works record -F 99 -g -p $busy -- sleep 0.5
# No more than the time that was recorded: two CPUs at most.
most=$("$INSPECT" report --json | jq '.duration_ns / 1e9 * 99 * 2 * 1.05 + 2 | floor')
ok "[ $(samples) -gt 2 ] && [ $(samples) -le $most ]" "and has the samples of two threads (at most $most)"
works record -F 99 -a -g -- sleep 0.3
works record -g ./prog 0.2 0
ok '[ "$(samples)" -gt 10 ]' 'and has samples'
works record ./prog 0.1 0
works record -g -- ./prog 0.1 0
works record -F max -- ./prog 0.1 0
ok '[ "$(samples)" -gt 1000 ]' 'at the highest rate'
works record -c 1000000 -- ./prog 0.3 0
near "$(samples)" 300 60 'and has one every ms of cpu-clock'
works record --call-graph fp -- ./prog 0.1 0
works record --call-graph=fp -F99 -- ./prog 0.1 0
works record -e cpu-clock:u -- ./prog 0.1 0
works record -e cpu-clock -e task-clock -- ./prog 0.1 0
works record -e sched:sched_switch -a -- sleep 0.2
works record -agF 99 -- sleep 0.1
works record --all-cpus --freq 99 --output other.data -- sleep 0.1
ok '[ -s other.data ]' 'and writes there'
works record --pid $busy --duration 0.2
works record --pid=$busy --freq=99 sleep 0.2
works record -t $busy -- sleep 0.2
works record -F 99 --all-user -p $busy sleep 0.1
works record -m 64 --max-stack 20 -p $busy sleep 0.1
works record -q -f -p $busy sleep 0.1
answered 'inspect flame.*-o x.svg' record -o x.svg --pid $busy -d 5
works record --call-graph dwarf,8192 -- ./prog 0.1 0
answered '--call-graph auto' record --call-graph lbr -- ./prog 0.1 0
answered '-p \$\(pgrep' record -u nobody -- sleep 0.1
answered '--delay' record -D 100 -- ./prog 0.1 0
answered '-t TID' record --no-inherit -p $busy -- sleep 0.1
ok '[ ! -e x.svg ]' 'and nothing is written'

# --- perf stat ---
answered 'stat --detail' stat -d true
answered 'stat --detail' stat -d -- true
answered 'stat --detail' stat -ddd true

# --- perf report and the others ---
"$INSPECT" record -q -F 499 -o inspect.data -- "$W/shares" 0.5 >/dev/null
cp inspect.data perf.data
works report --stdio
like "$(head -30 out)" 'burn_sixty' 'and has the table'
works report -n --stdio
works report --no-children
works report --stdio --no-children -i inspect.data
like "$(cat out)" 'burn_sixty' 'and has the table'
works report -i inspect.data
works report --input=inspect.data --sort comm,dso
like "$(cat out)" 'shares +shares|shares.*/shares' 'by thread name and file'
works report --sort dso,symbol
works report --sort symbol
works report perf.data
works report -f -i perf.data --header
works report -g
answered '--sort' report -F overhead,symbol
answered 'inspect use --watch' top
answered 'inspect report' top
answered 'inspect use --watch' iostat
answered 'inspect report|inspect flame --folded' script
answered 'perf annotate|inspect report' annotate
for name in dump pstack gstack jstack; do
	answered 'inspect stack -p' $name --pid $busy
done
for name in sched offcputime runqlat; do
	answered 'inspect offcpu -p' $name
done
answered 'inspect trace -c -p' strace -p $busy
answered 'inspect trace --probe' bpftrace -e 'usdt:::{}'
answered 'inspect trace --opens' opensnoop
answered 'inspect record' recrod
answered '--sort' report --srot symbol

# --- FlameGraph ---
perf script -i perf.data 2>/dev/null >perf.txt
"$INSPECT" flame <perf.txt >a.svg 2>/dev/null
ok 'grep -q burn_sixty a.svg' 'perf script | inspect flame > out.svg'
"$INSPECT" flame --folded <perf.txt 2>/dev/null >folded
"$INSPECT" flame --title 'CPU' --colors hot --width 1200 --hash folded >b.svg 2>err
ok 'grep -q burn_sixty b.svg && grep -q ">CPU<" b.svg' "flamegraph.pl's options"
answered '--icicle' flame --inverted folded

# --- py-spy ---
works flame -p $busy -d 0.3 -o live.svg
works flame --pid $busy --duration 0.3 --rate 100 -o live.svg
works record --rate 100 --duration 0.2 --pid $busy --native --nonblocking
answered 'inspect flame' record --format flamegraph --pid $busy -d 1
answered 'inspect flame|inspect report' record -f speedscope --pid $busy -d 1 -o profile.json
works stack --pid $busy --native --nonblocking
answered 'variables are not read' stack --pid $busy --locals

# --- strace, perf trace ---
works trace -c -f -p $busy -d 0.2
works trace -c -w -p $busy -d 0.2
works trace -f -e trace=openat ./prog 0.1 0
like "$(cat out)" '^\[[0-9]+ prog\] openat\(' 'and has the calls'
is "$(grep -v '^#' out | grep -cv ' openat(')" 0 'and no other'
works trace -f -e trace=%file -- ./prog 0.1 0
works trace -ff -yy -T -s 64 -e openat ./prog 0.1 0
works trace -f -e status=failed ./prog 0.1 0
is "$(grep -v '^#' out | grep -vc ' = -1 E')" 0 'and has those that fail'
answered '--relative' trace -r ./prog 0.1 0
for letter in t tt ttt; do answered '--timestamps' trace -$letter ./prog 0.1 0; done
answered '-c, for a table' trace -C ./prog 0.1 0
answered '-c      ' trace -s ./prog 0.1 0
answered 'signal_deliver' trace -e signal=SIGCHLD ./prog 0.1 0
answered 'never changed' trace -e inject=openat:error=ENOENT ./prog 0.1 0
answered '-Z' trace -e status=successful ./prog 0.1 0
answered '-s N' trace -e write=1 ./prog 0.1 0
answered '> FILE' trace -o x.strace ./prog 0.1 0
answered '--sort KEY' trace -c -S calls ./prog 0.1 0
answered '--by path' trace -P /etc/passwd ./prog 0.1 0
answered 'record -e page-faults' trace -F all ./prog 0.1 0
ok '[ ! -e x.strace ]' 'and nothing is written'

# --- offcputime, top ---
answered 'inspect flame --folded' offcpu -f -p $busy
answered '--user-only' offcpu -U -p $busy
answered '--min-wait' offcpu -m 1000 -p $busy
works use -b -n 1 -d 0.3
answered '--watch -d' use -i 1
answered 'hottest thread' use -H -p $busy
kill $busy
cd "$root" || exit 1
