#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Event loops, and who woke whom: beside programs that know.
. "$(dirname "$0")/lib.sh"

truth() { awk -v key="$1" '$1 == key { print $2 }' "$tmp/truth"; }
share() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f\n", 100 * a / b }'; }

# --- event loops ----------------------------------------------------------------------------------

exits 0 'a program with event loops' sh -c \
	"exec '$INSPECT' offcpu --loop --json -o '$tmp/l.data' -- '$W/event_loops' 2>'$tmp/truth'"
mv "$tmp/out" "$tmp/l.json"
jq '.loops[] | select(.comm == "loop")' "$tmp/l.json" >"$tmp/loop.json"
is "$(jq -r '.gaps, .waits - 1, .call' "$tmp/loop.json" | tr '\n' ' ')" "$(truth gaps) $(truth gaps) epoll_wait " \
	'each time between two waits is counted, and a poll within is none of them'
wall=$(truth wall)
near "$(jq .busy_percent "$tmp/loop.json")" "$(share "$(truth sum)" "$wall")" 3 \
	'their sum is what the program says'
near "$(share "$(jq .max_ns "$tmp/loop.json")" "$wall")" "$(share "$(truth max)" "$wall")" 3 'and the longest'
is "$(jq -r '.tid as $t | input | [.histograms[] | select(.tid == $t) | .count] | add' "$tmp/loop.json" "$tmp/l.json")" \
	"$(truth gaps)" 'the histogram has all of them'

# gap FUNCTION: the longest gap with it on its stack
gap() {
	jq --arg f "$1" '([.stacks[] | select(.function == $f) | .wait] | unique) as $w |
		[.gaps[] | select(.comm == "loop" and (.stack as $n | $w | index($n)))][0]' "$tmp/l.json"
}
near "$(gap handle_long | jq '.ran_ns / 1e6')" 60 6 'a long one that computed, by its stack: 60 ms of CPU'
is "$(gap handle_blocking | jq '.waited and .gap_ns >= 9e7 and .ran_ns < 3e7')" true \
	'and one that waited 90 ms for something else'
is "$(jq -c '.loops[] | select(.comm == "spinner") | [.waits, .polls > 0]' "$tmp/l.json")" '[0,true]' \
	'a loop that never waits'
ok '"$INSPECT" report --json --event loops "$tmp/l.data" 2>/dev/null | jq -e ".events[] | select(.event == \"loops\") | .unit == \"ns\" and .weight >= 15e7" >"$tmp/out"' \
	'the file has them as an event'
ok 'perf script -i "$tmp/l.data" 2>/dev/null | grep -q handle_blocking' 'which perf reads'
"$INSPECT" offcpu --loop -- "$W/event_loops" >"$tmp/screen" 2>"$tmp/err"
like "$(cat "$tmp/screen")" 'epoll_wait +spinner +never waits' 'people see it too'
like "$(cat "$tmp/screen")" 'loop \([0-9]+\): [0-9.]+ ms between waits, of which it ran' 'and the stacks of the longest'
"$INSPECT" offcpu --loop -- sleep 0.1 >"$tmp/screen" 2>&1
is "$(grep -cE 'note: no event loop|nothing to show' "$tmp/screen")" 1 'a program without a loop: one line'

# --- who woke whom --------------------------------------------------------------------------------

for kind in threads processes; do
	"$INSPECT" offcpu --wakers --stacks 9 -o "$tmp/$kind.data" -- "$W/stages" 0.5 $kind >"$tmp/$kind.page" 2>"$tmp/err"
	"$INSPECT" flame --folded "$tmp/$kind.data" 2>"$tmp/err" |
		awk '/^stage[45];.*wait_for_turn/ && / [0-9]+$/' | sort -t ' ' -k1,1 >"$tmp/$kind.folded"
	# Of most of its time: the chain of names.
	for stage in 5:4-3-2-1 4:3-2-1-i; do
		is "$(awk -v stage="^stage${stage%:*};" '$0 ~ stage && $NF > most { most = $NF; kept = $0 } END { print kept }' \
			"$tmp/$kind.folded" | grep -oE 'woken by (stage|an i)?[0-9]?' | sed 's/woken by stage//; s/woken by an //' |
			paste -sd-)" "${stage#*:}" "--wakers: four links back, $kind, stage${stage%:*}"
	done
done
ok 'grep -q "woken by stage4.*;pass_on;run;start_thread.*woken by stage3.*;pass_on;run;.*woken by stage2" "$tmp/threads.folded"' \
	'each with its stack, upside down'
ok 'grep -q "woken by stage4.*;vfs_write_\[k\];.*woken by stage3" "$tmp/processes.folded"' \
	"of other processes the kernel's part"
# Which of the four waits alike is the longest differs from run to run: its chain goes down to the first.
waker=$(sed -n 's/^    woken by stage\([1-4]\) ([0-9]*)$/\1/p;T;q' "$tmp/threads.page")
chain=$(seq "$waker" -1 1 | tr '\n' ' ')
[ "$waker" = 4 ] || chain+='interrupt '
is "$(sed -n '/^#1 read/,/^$/p' "$tmp/threads.page" |
	sed -nE 's/^    woken by stage([1-4]): .*write.* < pass_on < run.*/\1/p; s/^    woken by an (interrupt)$/\1/p' |
	tr '\n' ' ')" "$chain" 'the page has them below the stack'
