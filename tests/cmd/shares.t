#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The main job: known shares of the CPU come out right, in whole stacks, for every kind of target.
. "$(dirname "$0")/lib.sh"
profiles=tests/cmd/profiles.py

# A name of its own: under -a other runs of this test are seen too.
shares=$tmp/shares$$
cp "$W/shares" "$shares"

# share FILE FUNCTION: % of the samples of that thread name outside the kernel with FUNCTION as their
# leaf: on a busy machine the kernel's part, of switches, is no small one
share() {
	"$INSPECT" report --json --all --comm "${shares##*/}" "$1" |
		jq --arg name "$2" '[.functions[] | select(.kind != "kernel")] | 100 *
			(map(select(.function == $name).self_samples) | add // 0) / (map(.self_samples) | add)'
}

# truth FILE FUNCTION: what the workload itself measured, in % of its CPU time
truth() {
	awk -v name="$2" '$1 == name { part = $2 } $1 == "cpu" { print 100 * part / $2 }' "$1"
}

# right_shares FILE TRUTH WHAT: within 3 points for each of the three functions, or as near as the
# number of samples allows where a busy machine gave few.
right_shares() {
	local function samples want points
	samples=$("$INSPECT" report --json --comm "${shares##*/}" "$1" | jq '.events[0].samples')
	for function in burn_sixty burn_thirty burn_ten; do
		want=$(truth "$2" $function)
		points=$(chance "$want" "$samples")
		near "$(share "$1" $function)" "$want" \
			"$(awk "BEGIN { print ($points > 3 ? $points : 3) }")" "$3: $function"
	done
}

# through FILE FRAME WANT WHAT: at least WANT % of the stacks of the workload have the frame
through() {
	local percent
	percent=$("$INSPECT" flame --folded "$1" | python3 $profiles through "$2" "${shares##*/}")
	ok "awk 'BEGIN { exit !($percent >= $3) }'" "$4 ($percent %)"
}

# busy SECONDS [THREADS]: the workload in the background; its pid in $busy, its truth in $tmp/truth
busy() {
	"$shares" "$@" >"$tmp/truth" &
	busy=$!
}

ok '[ -x "$shares" ]' 'the workload is built'

# --- a command ---
"$INSPECT" record -q -F 999 -o "$tmp/command" -- "$W/ticks" 999 "$tmp/ticks" \
	sh -c 'exec "$0" 5 >"$1"' "$shares" "$tmp/truth"
right_shares "$tmp/command" "$tmp/truth" '-- CMD'
through "$tmp/command" main 99 '-- CMD: 99 % of the stacks reach main'
through "$tmp/command" level_01 97 '-- CMD: below 40 nested calls'
through "$tmp/command" level_40 97 '-- CMD: and the innermost of them'
samples_near "$("$INSPECT" report --json --comm "${shares##*/}" "$tmp/command" | jq '.events[0].samples')" \
	999 "$tmp/ticks" 5 '-- CMD: as many samples as its CPU seconds times 999, within 5 %'
total=$("$INSPECT" report --json --all --comm "${shares##*/}" "$tmp/command" |
	jq '.functions[] | select(.function == "main").total_percent')
ok "awk 'BEGIN { exit !($total >= 99) }'" "the report's total of main is all of it ($total %)"

# --- attached, by cgroup and system-wide: three recorders on one process ---
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$mount/inspect-test.$$
busy 6
pids=()
"$INSPECT" record -q -F 999 -d 5 -o "$tmp/pid" -p $busy &
pids+=($!)
"$INSPECT" record -q -F 999 -d 5 -o "$tmp/all" -a &
pids+=($!)
if [ -n "$mount" ] && mkdir "$group" 2>/dev/null; then
	on_exit "rmdir '$group'"
	echo $busy >"$group/cgroup.procs"
	"$INSPECT" record -q -F 999 -d 5 -o "$tmp/group" --cgroup "$group" &
	pids+=($!)
fi
wait "${pids[@]}"
wait $busy
right_shares "$tmp/pid" "$tmp/truth" '-p PID'
through "$tmp/pid" main 99 '-p PID: 99 % of the stacks reach main'
right_shares "$tmp/all" "$tmp/truth" '-a'
through "$tmp/all" main 99 '-a: 99 % of the stacks reach main'
if [ -s "$tmp/group" ]; then
	right_shares "$tmp/group" "$tmp/truth" '--cgroup'
	through "$tmp/group" main 99 '--cgroup: 99 % of the stacks reach main'
	is "$("$INSPECT" report --json --sort comm "$tmp/group" | jq -r '.functions[].comm')" "${shares##*/}" \
		'--cgroup: nobody else is in it'
else
	skip 'no cgroup v2 that can be written here' 5
fi

# --- 8 threads, attached ---
busy 5.5 8
sleep 0.2
"$INSPECT" record -q -F 999 -d 5 -o "$tmp/threads" -p $busy
wait $busy
right_shares "$tmp/threads" "$tmp/truth" '8 threads'
through "$tmp/threads" worker 99 '8 threads: 99 % of the stacks reach the entry function'
like "$("$INSPECT" flame --folded "$tmp/threads" | python3 $profiles roots | head -1)" \
	'^(9[89]|100)\.?[0-9]* (start_thread|clone3?|worker)$' '8 threads: rooted where threads begin'
is "$("$INSPECT" report --json --sort tid --all "$tmp/threads" |
	jq '[.functions[] | select(.self_percent > 9)] | length')" 8 '8 threads: each has its eighth'

# --- Go ---
if [ -x "$W/slow" ]; then
	TMPDIR=$tmp "$INSPECT" record -q -F 999 -o "$tmp/go" -- "$W/slow" >/dev/null
	"$INSPECT" report --json --all "$tmp/go" >"$tmp/go.json"
	total() {
		jq --arg name "$1" '[.functions[] | select(.function == $name).total_samples] | add // 0' \
			"$tmp/go.json"
	}
	hash=$(total main.hashNumbers)
	write=$(total main.writeLines)
	ok "[ $write -gt 20 ] && [ $((hash * 2)) -ge $((write * 3)) ]" \
		"Go: hashNumbers ($hash) has 1.5 times the samples of writeLines ($write)"
	ok "[ $(total main.main) -ge $((hash + write)) ]" 'Go: both are below main.main'
	ok "[ $(total runtime.main) -ge $(total main.main) ]" 'Go: which is below runtime.main'
	ok "[ $(jq '.truncated * 100' "$tmp/go.json") -le $(jq '.samples * 3' "$tmp/go.json") ]" \
		'Go: a goroutine ends at its beginning'
	is "$(jq -r '.functions[].function' "$tmp/go.json" | grep -c '^runtime\.' | sed 's/^[1-9].*/some/')" \
		some 'Go: functions of the runtime are named'
	"$INSPECT" report --json --all --no-inline "$tmp/go" |
		jq -r '.functions[] | select(.module == "slow").function' |
		grep -v '^\[slow+' | sort -u >"$tmp/ours"
	nm "$W/slow" | awk '{ print $NF }' | sort -u >"$tmp/theirs"
	is "$(comm -23 "$tmp/ours" "$tmp/theirs")" '' 'Go: every name is one that nm knows'
else
	skip 'no go compiler when the workloads were built' 5
fi
