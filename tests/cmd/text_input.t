#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# perf-script and folded text as flame and report take it, against a folder written from the rules.
. "$(dirname "$0")/lib.sh"
fold=$PWD/tests/cmd/fold.py
cd "$tmp" || exit 1

# What symbolization adds to incomplete stacks is not in the text.
folded() {
	"$INSPECT" flame --folded "$@" 2>err | sed 's/;\[truncated\]//' | LC_ALL=C sort
}
same() {
	python3 "$fold" <"$1" | LC_ALL=C sort >want
	folded - <"$1" >got
	ok '[ -s want ]' "$2: there are stacks"
	is "$(diff want got | head -6)" '' "$2: the same stacks and weights"
}

printf '%s\n' 'main;f 3' 'main;g_[k] 2' | folded - >out
is "$(cat out)" $'main;f 3\nmain;g_[k] 2' 'folded text comes back as it was'
printf 'a b 1/2 [000] 1.0: 7 cycles:\r\n\t 1 f+0x1 (/m)\r\n\t 2 main+0x2 (/m)\r\n' | folded - >out
is "$(cat out)" 'a_b;main;f 7' 'the last stack without a blank line, and CRLF'
{ printf '\xef\xbb\xbf'; echo 'main;f 3'; } | folded - >out
is "$(cat out)" 'main;f 3' 'a byte-order mark'
iconv -f UTF-8 -t UTF-16 <<<'main;für 3' | folded - >out
is "$(cat out)" 'main;für 3' 'UTF-16'
printf 'main;f 3\ngarbage\nmain;f 4\n' | "$INSPECT" report - >out
like "$(cat out)" 'note: 1 line could not be read and was skipped: line 2' 'a broken line is named'
printf 'x 1 1.0: 5 cycles:\n\t1 f (/m)\n\nx 1 1.0: 7 faults:\n\t1 f (/m)\n' |
	"$INSPECT" report --json - >out
is "$(jq -c '[.events[] | [.event, .weight]]' out)" '[["cycles",5],["faults",7]]' 'events are not mixed'
for text in '' '#' 'no stacks in here' '{"json": true}'; do
	rc=0
	printf '%s' "$text" | "$INSPECT" report - >out 2>err || rc=$?
	is "$rc $(head -c 21 err)" '125 inspect report: stdin' "refused: '$text'"
done

command -v perf >/dev/null || {
	skip 'no perf here whose text could be read' 10
	exit
}
# perf 6.1 itself aborts now and then while it looks at all processes.
for _ in 1 2 3; do
	perf record -q -F 1999 -g -e cpu-clock -a -o g.data -- "$W/shares" 1 2 >/dev/null 2>&1 && break
done
perf script -i g.data 2>/dev/null >g.txt
same g.txt 'perf record -g -a'
perf script --no-inline -F comm,pid,tid,time,event,ip,sym,symoff,dso -i g.data 2>/dev/null >fields.txt
same fields.txt 'perf script -F, without periods'
perf record -q -F 1999 -e cpu-clock -o flat.data -- "$W/shares" 0.5 >/dev/null 2>&1
perf script -i flat.data 2>/dev/null >flat.txt
same flat.txt 'perf record without -g: one line a sample'
head -c -1 g.txt | sed -z 's/\n*$//' >cut.txt
same cut.txt 'no newline at the end'
sed 's/$/\r/' g.txt | folded - >got
python3 "$fold" <g.txt | LC_ALL=C sort >want
is "$(diff want got | head -4)" '' 'with CRLF: the same'
