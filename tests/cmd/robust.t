#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whatever ends a recording, or fails in its middle: no hang, nothing left behind, nothing silent.
. "$(dirname "$0")/lib.sh"
# until_there FILE: a recorder in the background has begun it
until_there() {
	local i
	for ((i = 0; i < 50; i++)); do
		[ ! -s "$1" ] || return
		sleep 0.1
	done
}
profiles=tests/cmd/profiles.py
perf_text() {
	perf script -G -F comm,tid,event,ip,sym,dso -i "$1" 2>/dev/null | no_versions
}
samples_of() {
	"$INSPECT" report --json "$1" | jq .samples
}
# Nothing of a workload may be left running: by its copy's own name, for other tests may run.
cp "$W/shares" "$tmp/left"
cp "$W/forker" "$tmp/forks"
left_running() {
	pgrep -c -f "^$tmp/left" || true
}
wait_gone() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ "$(left_running)" = 0 ] && return
		sleep 0.05
	done
}

# --- many short processes during -a ---
"$INSPECT" record -q -a -F 999 -o "$tmp/all" -- "$W/ticks" 999 "$tmp/ticks" "$tmp/forks" 200 4 \
	>"$tmp/truth"
is $? 0 '-a with 200 processes that fork and exit'
"$INSPECT" report --json --all --comm forks --sort pid,symbol "$tmp/all" >"$tmp/all.json"
burnt=$(jq '[.functions[] | select(.function == "burn_child").total_samples] | add' "$tmp/all.json")
# A CPU's timer also sees the switches between tasks, which no clock of a task counts.
samples_near "$burnt" 999 "$tmp/ticks" 15 'their CPU time is in the samples of burn_child, within 15 %'
pids=$(jq '[.functions[] | select(.function == "burn_child").pid] | unique | length' "$tmp/all.json")
ok "[ $pids -ge 190 ] && [ $pids -le 200 ]" "and they are 200 processes ($pids had samples)"
ok '[ "$(perf script --show-task-events -i "$tmp/all" 2>/dev/null | grep -c "forks.*RECORD_FORK")" -ge 200 ]' \
	'the file has their forks, as perf reads it'
"$INSPECT" record -q -F 999 -o "$tmp/exec" -- "$W/ticks" 999 "$tmp/ticks" "$tmp/forks" 200 4 exec \
	>"$tmp/truth"
samples_near "$(samples_of "$tmp/exec")" 999 "$tmp/ticks" 15 'the same with exec, as children of CMD'
is "$("$INSPECT" report --json --all "$tmp/exec" |
	jq '[.functions[] | select(.function == "burn_child").self_percent] | add > 60')" true \
	'named, although all of them are gone'

# --- descriptors stay as many as they are ---
"$tmp/forks" 300 5 >/dev/null &
forks=$!
"$INSPECT" record -q -F 99 -o "$tmp/fds" -p $forks &
recorder=$!
until_there "$tmp/fds"
before=$(ls /proc/$recorder/fd | wc -l)
sleep 0.3
after=$(ls /proc/$recorder/fd | wc -l)
# Files of programs are opened when they are first mapped: a handful, not one for each child.
ok "[ $before -gt 3 ] && [ $after -le $((before + 8)) ]" "no descriptor for each child ($before, $after)"
wait $forks
wait $recorder
is $? 0 'the recorder ends by itself after its target'
# Two children run when the events are started. Without a look at them both had no name, every time.
"$tmp/forks" 300 5 exec >/dev/null &
"$INSPECT" record -q -F 999 --call-graph fp -o "$tmp/names" -p $!
wait
names=$("$INSPECT" report --json --all --sort pid,comm "$tmp/names" |
	jq '[.functions[] | select(.self_samples > 0)] | "\([.[] | select(.comm == "")] | length) \(length)"')
ok "[[ $names =~ ^[01]\ [0-9][0-9]+$ ]]" "children of a process that forks have names (all but $names)"

# --- a target that exits in the middle ---
mkfifo "$tmp/go"
bash -c 'read -r <"$0"; exec "$@"' "$tmp/go" "$W/ticks" 999 "$tmp/ticks" "$W/exits" 0.7 3 &
target=$!
timeout 30 "$INSPECT" record -q -F 999 -o "$tmp/mid" -p $target &
recorder=$!
until_there "$tmp/mid"
echo >"$tmp/go"
wait $target
wait $recorder
is $? 0 'a target that exits in the middle ends the recording'
samples_near "$(samples_of "$tmp/mid")" 999 "$tmp/ticks" 15 'with the samples of its 0.7 s of CPU'
exits 125 'a process that is gone is refused' "$INSPECT" record -o "$tmp/none" -p $target
like "$(cat "$tmp/err")" "no process $target" 'and said to be'
ok '[ ! -e "$tmp/none" ]' 'without a file'

# --- kill -9 of the recorder ---
"$tmp/left" 60 >/dev/null &
target=$!
"$INSPECT" record -q -F 999 -o "$tmp/killed" -p $target &
recorder=$!
until_there "$tmp/killed"
sleep 1
until_used $target 1
kill -9 $recorder
wait $recorder 2>/dev/null
killed=$(perf_text "$tmp/killed" | python3 $profiles perf-header | cut -f 1)
ok "[ '$killed' -gt 200 ]" "kill -9: perf script reads what was there ($killed samples)"
is "$(samples_of "$tmp/killed")" "$killed" 'kill -9: so do we, as many'
is "$(perf_text "$tmp/killed" | python3 $profiles perf-self | head -1 | cut -f 2)" burn_sixty \
	'kill -9: perf has the names'
ok '"$INSPECT" report --json "$tmp/killed" | jq -e ".functions[0].function == \"burn_sixty\""' \
	'kill -9: and we'
like "$("$INSPECT" report "$tmp/killed" 2>&1)" 'note: .*(not finished|did not end|was not ended|unfinished)' \
	'kill -9: a note says that the recorder did not end'
ok "kill -0 $target" 'kill -9: the target runs on'
kill $target

# --- a full disk ---
mkdir "$tmp/disk"
if mount -t tmpfs -o size=256k none "$tmp/disk"; then
	on_exit "umount -l '$tmp/disk'"
	exits 125 'a full disk fails' \
		timeout 10 "$INSPECT" record -F 4999 -o "$tmp/disk/full" -- "$tmp/left" 3 2
	like "$(cat "$tmp/err")" 'disk/full .*No space left on device' 'and says so, naming the file'
	is "$(grep -c 'No space' "$tmp/err")" 1 'once'
	wait_gone
	is "$(left_running)" 0 'CMD is not left running'
	ok '[ "$(samples_of "$tmp/disk/full")" -gt 100 ]' 'what fitted can be read'
	ok '[ "$(perf_text "$tmp/disk/full" | python3 $profiles perf-header | cut -f 1)" -gt 100 ]' \
		'by perf too'
else
	skip 'no tmpfs can be mounted here' 6
fi
exits 125 'a file size limit fails the same' \
	timeout 10 sh -c 'ulimit -f 256; exec "$@"' sh \
	"$INSPECT" record -F 4999 -o "$tmp/limit" -- "$tmp/left" 3 2
like "$(cat "$tmp/err")" 'limit .*File too large' 'with its reason'
wait_gone
is "$(left_running)" 0 'and CMD ended'

# --- ^C, from before the start on ---
set -m # each background job is a process group of its own, with SIGINT as it comes
hung=0 bad=0
for delay in 0 0.003 0.006 0.01 0.02 0.05 0.2; do
	rm -f "$tmp/early"
	timeout --foreground 10 "$INSPECT" record -q -o "$tmp/early" -- "$tmp/left" 20 >/dev/null 2>&1 &
	recorder=$!
	sleep $delay
	kill -INT -- -$recorder
	wait $recorder 2>/dev/null
	[ $? != 124 ] || hung=$((hung + 1))
	wait_gone
	[ "$(left_running)" = 0 ] || bad=$((bad + 1))
	[ ! -e "$tmp/early" ] || "$INSPECT" report "$tmp/early" >"$tmp/out" 2>&1 || bad=$((bad + 1))
	! grep -qi 'damaged\|cut' "$tmp/out" 2>/dev/null || bad=$((bad + 1))
done
is $hung 0 '^C at the start: no hang'
is $bad 0 '^C at the start: CMD is not left running, and no broken file'
"$INSPECT" record -q -F 999 -o "$tmp/interrupted" -- "$tmp/left" 20 >/dev/null 2>&1 &
recorder=$!
until_there "$tmp/interrupted"
until pid=$(pgrep -f "^$tmp/left"); do
	sleep 0.05
done
until_used "$pid" 0.5
kill -INT -- -$recorder
wait $recorder
is $? 130 '^C of a command: its exit code, 128 + SIGINT'
ok "[ $(samples_of "$tmp/interrupted") -gt 100 ]" '^C of a command: the samples are saved'
"$tmp/left" 60 >/dev/null &
target=$!
"$INSPECT" record -q -F 999 -o "$tmp/attached" -p $target 2>"$tmp/err" &
recorder=$!
until_there "$tmp/attached"
until_used $target 0.7
kill -INT $recorder
wait $recorder
is $? 0 '^C when attached: the proper end'
ok "[ $(samples_of "$tmp/attached") -gt 100 ]" '^C when attached: the samples are saved'
ok "kill -0 $target" '^C when attached: the target runs on'
kill $target
set +m

# --- losses ---
# The recorder is stopped for a while, so that a ring of one page must overflow.
"$INSPECT" record --json -m 1 -F 1999 -o "$tmp/lost" -- \
	"$W/ticks" 1999 "$tmp/ticks" sh -c 'exec "$0" 2 2 >/dev/null' "$W/shares" \
	>"$tmp/lost.json" 2>"$tmp/err" &
recorder=$!
sleep 0.7
kill -STOP $recorder
sleep 0.7
kill -CONT $recorder
wait $recorder
"$INSPECT" report --json "$tmp/lost" >"$tmp/report.json"
lost=$(jq .lost "$tmp/report.json")
ok "[ '$lost' -gt 300 ]" "a ring of one page loses, and it is counted ($lost)"
is "$(jq .lost "$tmp/lost.json")" "$lost" 'record and report say the same'
is "$(jq '[.lost_by_cpu[].lost] | add' "$tmp/report.json")" "$lost" 'the CPUs add up to it'
like "$("$INSPECT" report "$tmp/lost")" "# +lost: *$lost .*CPU [0-9]+: [0-9]+" \
	'the text has them by CPU'
samples_near "$(jq '.samples + .lost' "$tmp/report.json")" 1999 "$tmp/ticks" 15 \
	'samples and lost together are the CPU time of two threads times the rate'
is "$(jq '[.functions[] | select(.self_samples > 0)] | length > 2' "$tmp/report.json")" true \
	'the rest is still a profile'
is "$("$INSPECT" report --json --sort tid "$tmp/lost" |
	jq '[.functions[] | select(.self_percent > 10)] | length')" 2 'no thread vanishes'
