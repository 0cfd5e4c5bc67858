#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Command lines that cannot work are answered with what would; targets, outputs and filters.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
"$W/shares" 60 >/dev/null &
busy=$!
printf 'main;work 3\nmain;rest 1\n' >in.folded

# answered CODE REGEX ARG…: refused with this code, and the answer matches
answered() {
	local rc=0 code=$1 regex=$2
	shift 2
	"$INSPECT" "$@" >out 2>err </dev/null || rc=$?
	[ $rc = "$code" ] && grep -qE -- "$regex" err
	result $? "inspect $* is answered" || diag "  exit $rc: $(head -c 1000 err)"
}

# --- targets ---
answered 2 'fix: -a ' record -p 0
answered 2 'fix: -a ' record -p -1
answered 2 'pgrep -d, -x .nginx.' record -p nginx
answered 2 'pgrep -d, -x .worker.' flame -t worker
answered 2 'CPU 4095 is not online' record -C 4095 -d 0.1
like "$(cat err)" "fix: -C $(cat /sys/devices/system/cpu/online) " 'with those that are'
answered 127 "fix: -p $busy " record $busy
(sleep 0.1 & exec sleep 5) &
parent=$!
sleep 0.5
zombie=$(pgrep -P $parent | head -1)
answered 125 'has ended: only its exit status is left' record -p "$zombie"
kill $parent
"$INSPECT" record -q -d 0.3 -F 499 -p $busy
answered 2 'inspect report --pid PID' flame -p $busy inspect.data

# --- numbers ---
answered 2 'fix: -F 99' record -F 0 -- true
answered 2 'fix: -m 2, or -m 4' record -m 3 -- true
exits 0 '-d .2' "$INSPECT" record -q -d .2 -p $busy
exits 0 '-d 0m0.1s' "$INSPECT" record -q -d 0m0.1s -p $busy

# --- outputs ---
exits 0 '-o /dev/null' "$INSPECT" record -o /dev/null -d 0.1 -p $busy
ok '[ -c /dev/null ]' 'which stays'
unlike "$(cat err)" 'next: inspect report' 'and there is nothing to report'
answered 125 'mkdir -p .none/deep.' record -o none/deep/f -- touch ran
ok '[ ! -e ran ]' 'and CMD did not run'
answered 125 'fix: -o -' record -o /dev/stdout -- true
sh -c '"$INSPECT" record -o - -- true 2>err | cat >pipe.data'
unlike "$(head -1 err)" 'next' 'into a pipe nothing is said to come next'
for closed in '2>&-' '2>/dev/full'; do
	rm -f inspect.data
	sh -c "\"\$INSPECT\" record -- \"\$W/exits\" 0.1 7 $closed"
	is $? 7 "$closed: the exit code is CMD's"
	ok '"$INSPECT" report' 'and the recording is whole'
done
exits 125 'a closed stdout' sh -c '"$INSPECT" report in.folded >&-'

# --- other words for options ---
answered 2 '--callers' report --inverted in.folded
answered 2 '--min-percent' report --percent-limit 5 in.folded
answered 2 'inspect report --json' flame --json in.folded
is "$("$INSPECT" report -S work in.folded)" "$("$INSPECT" report --symbol work in.folded)" 'report -S is --symbol'
is "$("$INSPECT" report --json --pid 1 inspect.data | jq '.functions | length')" 0 'report --pid: not this process'
like "$("$INSPECT" report --symbol wor in.folded)" 'note: --symbol wor: there is no such name, but work' \
	'a filter that leaves nothing names what there is'
printf 'x 1 1.0: 1 sched:sched_switch:\n\t1 f (/bin/x)\n\n' >switch.txt
like "$("$INSPECT" report switch.txt)" 'counts, not time; time off CPU: inspect offcpu' 'switches name the command that has their time'

# --- ASCII ---
is "$(LC_ALL=C "$INSPECT" report --tree in.folded | tail -2)" ' 75.00%  75.00%        3  |- work
 25.00%  25.00%        1  `- rest' 'LC_ALL=C: trees are ASCII'
is "$(LC_ALL=C "$INSPECT" report --top 1 in.folded | tail -1)" '... 2 more rows: --all' 'and all of the table'
is "$(LC_ALL=C "$INSPECT" record -- true 2>&1 | LC_ALL=C grep -c '[^ -~]')" 0 'and the summary'
is "$(LC_ALL= LC_CTYPE=en_US.UTF-8 "$INSPECT" report --tree in.folded | tail -1)" ' 25.00%  25.00%        1  └─ rest' \
	'an UTF-8 locale need not be installed'
{ kill $busy; wait $busy; } 2>/dev/null
true
