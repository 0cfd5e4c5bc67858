#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stacks unwound in the kernel (--call-graph auto): programs without frame pointers, every kind of
# target, what changes while recording, what is left behind, and what happens without the rights.
. "$(dirname "$0")/lib.sh"
profiles=tests/cmd/profiles.py
bare=$W/shares_bare
record() {
	"$INSPECT" record -F 999 "$@" 2>>"$tmp/err"
}
json() {
	"$INSPECT" report --json --all "$@"
}
# wait_for FILE: until a recorder that runs in the background has begun it
wait_for() {
	local i
	for ((i = 0; i < 50; i++)); do
		[ ! -s "$1" ] || return
		sleep 0.1
	done
}

# complete FILE WANT WHAT: at least WANT % of the samples end properly; on a busy machine, where a
# few are all there are, all but 5
complete() {
	local cut samples
	read -r cut samples < <(json "$1" | jq -r '"\(.truncated) \(.samples)"')
	ok "[ $samples -gt 20 ] && [ $((cut * 100)) -le $((samples * (100 - $2) > 500 ?
		samples * (100 - $2) : 500)) ]" "$3: complete stacks (all but $cut of $samples)" ||
		json "$1" | jq -c '[.samples, .truncated_by_reason]' >&2
}

# through FILE COMM FRAME WANT WHAT: at least WANT % of the weight of that thread name
through() {
	local percent
	percent=$("$INSPECT" flame --folded "$1" | python3 $profiles through "$3" "$2")
	ok "awk 'BEGIN { exit !($percent >= $4) }'" "$5: through $3 ($percent %)"
}

# shares FILE WHAT: 60, 30 and 10 %, within 3 points and what chance adds on few samples
shares() {
	local function want points
	points=$(json --comm shares_bare "$1" |
		jq '[3, 3 * ([4000 / ([.events[0].samples, 1] | max), 1] | max | sqrt)] | max')
	while read -r function want; do
		near "$(json --comm shares_bare "$1" | jq --arg name "$function" \
			'[.functions[] | select(.function == $name).self_percent] | add // 0')" \
			"$want" "$points" "$2: $function"
	done <<<"burn_sixty 60
burn_thirty 30
burn_ten 10"
}

quietly_end() {
	{ kill ${2:-} "$1" && wait "$1"; } 2>/dev/null
	return 0 # not that of what was ended
}

# The ids of the programs that a process holds, and which of some ids the kernel still knows
programs() {
	sed -n 's/^prog_id:\s*//p' /proc/"$1"/fdinfo/* 2>/dev/null | sort -u
}
still_there() {
	bpftool prog list -j | jq '.[].id' | grep -cxF "$1"
}

[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
[ -e /sys/kernel/btf/vmlinux ] || skip_all 'this kernel has no BTF'
ok '[ -x "$bare" ]' 'the workload is built'

# --- a command, whose mappings are all new ---
record -o "$tmp/command" -- "$bare" 2 >/dev/null
unlike "$(cat "$tmp/err")" 'frame pointers' 'the BPF sampler it is'
shares "$tmp/command" '-- CMD'
complete "$tmp/command" 99 '-- CMD'
through "$tmp/command" shares_bare level_20 97 '-- CMD'
through "$tmp/command" shares_bare _start 97 '-- CMD'

# --- attached to threads, system-wide, and by cgroup: three recorders at once ---
"$bare" 60 8 >/dev/null &
busy=$!
sleep 0.3
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$mount/inspect-bpf.$$
recorders=()
"$INSPECT" record -F 999 -d 2 -o "$tmp/threads" -p $busy 2>>"$tmp/err" &
recorders+=($!)
"$INSPECT" record -F 999 -d 2 -o "$tmp/all" -a 2>>"$tmp/err" &
recorders+=($!)
if [ -n "$mount" ] && mkdir "$group" 2>/dev/null; then
	on_exit "rmdir '$group'"
	echo $busy >"$group/cgroup.procs"
	"$INSPECT" record -F 999 -d 2 -o "$tmp/group" --cgroup "$group" 2>>"$tmp/err" &
	recorders+=($!)
fi
wait_for "$tmp/threads"
sleep 0.5
fds=$(ls /proc/${recorders[0]}/fd 2>/dev/null | wc -l)
tid=$(ls /proc/$busy/task | sed -n 3p)
wait "${recorders[@]}"
record -d 1.5 -o "$tmp/thread" -t "$tid"
quietly_end $busy
shares "$tmp/threads" '8 threads'
complete "$tmp/threads" 99 '8 threads'
through "$tmp/threads" shares_bare worker 99 '8 threads'
shares "$tmp/all" '-a'
through "$tmp/all" shares_bare worker 97 '-a'
if [ -s "$tmp/group" ]; then
	shares "$tmp/group" '--cgroup'
	complete "$tmp/group" 99 '--cgroup'
	is "$(json --sort comm "$tmp/group" | jq -r '.functions[].comm')" shares_bare \
		'--cgroup: nobody else is in it'
else
	skip 'no cgroup v2 that can be written here' 5
fi
is "$(json --sort tid "$tmp/thread" | jq -r '.functions[].tid')" "$tid" '-t: that thread alone'
complete "$tmp/thread" 99 '-t'

# Descriptors: for each CPU, not for each thread.
sleep 9 &
"$INSPECT" record -F 999 -d 2 -o "$tmp/idle" -p $! 2>>"$tmp/err" &
idle=$!
wait_for "$tmp/idle"
sleep 0.5
near "$(ls /proc/$idle/fd | wc -l)" "$fds" 3 'as many descriptors for 1 thread as for 9'
wait $idle

# --- what changes while recording ---
# Not before the recorder has begun, however long that takes.
bash -c "while [ ! -s '$tmp/children' ]; do sleep 0.1; done; sleep 0.3; '$bare' 0.7; exec '$bare' 0.7" >/dev/null &
shell=$!
record -o "$tmp/children" -p $shell
is $? 0 'recording ends with its target'
complete "$tmp/children" 97 'children after fork and exec'
through "$tmp/children" shares_bare _start 97 'children after fork and exec'
is "$(json --sort pid --comm shares_bare "$tmp/children" | jq '.functions | length')" 2 \
	'a child, and the shell that became the program'
"$W/dlopens" 2 libz.so.1 crc32 &
loads=$!
sleep 0.3
record -o "$tmp/loads" -p $loads
complete "$tmp/loads" 97 'a library loaded while recording'
through "$tmp/loads" dlopens in_library 35 'a library loaded while recording'
through "$tmp/loads" dlopens main 97 'a library loaded while recording'

# Other code where code was: a plug-in after the other, and two programs at fixed addresses that execute
# each other. By the rules of what was there before, stacks would end early, some of them as complete.
ok '[ -e "$W/uw_plug_a" ] && [ -e "$W/uw_plug_b" ]' 'the plug-ins are built'
record -o "$tmp/plugs" -- "$W/uw_reload" 500 "$W/uw_plug_a" "$W/uw_plug_b" >"$tmp/loaded"
record -o "$tmp/turns" -- "$W/uw_turn_a" 30 "$W/uw_turn_b"
read -r loaded same <"$tmp/loaded"
ok "[ $loaded -ge 20 ] && [ $same -ge $((loaded * 9 / 10)) ]" \
	"$loaded plug-ins were loaded, $same where the one before was"
for what in plug turn; do
	"$INSPECT" flame --folded --no-inline "$tmp/${what}s" 2>/dev/null >"$tmp/folded"
	read -r a b astray crossed cut < <(awk -v name="$what" '{
		samples = $NF / 1001001
		a += $0 ~ name "_a_run;" ? samples : 0
		b += $0 ~ name "_b_run;" ? samples : 0
		cut += /;\[truncated/ ? samples : 0
		astray += $0 ~ name "_._run" && !/;main;/ && !/;\[truncated/ ? samples : 0
		crossed += $0 ~ name "_a_.*;" name "_b_|" name "_b_.*;" name "_a_" ? samples : 0
	} END { printf "%.0f %.0f %.0f %.0f %.0f\n", a, b, astray, crossed, cut }' "$tmp/folded")
	is "$astray $crossed" '0 0' "$what: no stack ends early without saying so, and none is of both"
	is "$(json "$tmp/${what}s" | jq .truncated)" "$cut" "$what: those that are cut are counted ($cut)"
	near $((100 * a / (a + b + 1))) 50 12 "$what: both have their half ($a and $b)"
	complete "$tmp/${what}s" 99 "$what"
done

# One file, written anew in place: its numbers, size and date stay.
cp "$W/uw_plug_a" "$tmp/one" && cp "$W/uw_plug_b" "$tmp/other"
truncate -s 65536 "$tmp/one" "$tmp/other" && touch -d 2025-01-01 "$tmp/one" "$tmp/other"
record -o "$tmp/anew" -- sh -c 'cd "$1" && for of in one other one other; do
	cp -p $of plug && "$2" 150 ./plug ./plug || exit; done' \
	sh "$tmp" "$(realpath "$W/uw_reload")" >/dev/null
complete "$tmp/anew" 99 'a plug-in written anew'
through "$tmp/anew" uw_reload main 97 'a plug-in written anew'
# A program that was removed while it runs, and maps other files then: it is the one that was known.
cp "$W/uw_reload" "$tmp/removed"
record -o "$tmp/gone" -- sh -c '"$1" 400 "$2" "$3" & sleep 0.2; chmod 700 "$1"; rm "$1"; wait' \
	sh "$tmp/removed" "$W/uw_plug_a" "$W/uw_plug_b" >/dev/null
complete "$tmp/gone" 97 'a removed program'
through "$tmp/gone" removed main 97 'a removed program'

# --- a tool that is stopped ---
# What it has seen once is unwound without it: new processes, and plug-ins in the place of another.
ln -s "$(command -v sleep)" "$tmp/snooze"
ln -s "$(realpath "$W/uw_reload")" "$tmp/again"
mkfifo "$tmp/begin"
sh -c 'read -r recorder <"$1/begin"; shift
	sleep 0.01; "$2" 100 "$3" "$4"; sleep 0.2; kill -STOP "$recorder"
	for i in 1 2 3 4 5 6 7 8; do "$1/snooze" 0.01; done; "$1/again" 200 "$3" "$4"
	kill -CONT "$recorder"' sh "$tmp" "$tmp" "$W/uw_reload" "$W/uw_plug_a" "$W/uw_plug_b" >"$tmp/loaded" &
shell=$!
"$INSPECT" record --wall -F 999 -o "$tmp/stopped" -p $shell 2>>"$tmp/err" &
recorder=$!
wait_for "$tmp/stopped"
echo $recorder >"$tmp/begin"
wait $shell $recorder
"$INSPECT" flame --folded --no-inline "$tmp/stopped" 2>/dev/null >"$tmp/folded"
is "$(grep -c '^snooze;.*\[truncated' "$tmp/folded")" 0 'new processes of a known program have whole stacks'
ok 'grep -q "^snooze;.*;__libc_start_main;.*;clock_nanosleep;" "$tmp/folded"' 'up to where they begin'
is "$(grep '^again;' "$tmp/folded" | grep -c 'truncated\|uw_plug_.+0x\|plug_a_.*;plug_b_\|plug_b_.*;plug_a_')" 0 \
	'plug-ins that are loaded again too, each named as itself'
is "$(grep -o '^again;.*;turn;plug_[ab]_run;plug_[ab]_leaf' "$tmp/folded" | sort -u | grep -o 'plug.*')" \
	$'plug_a_run;plug_a_leaf\nplug_b_run;plug_b_leaf' 'and below what has loaded them'

# --- python ---
# The program itself: a shim would be a dozen of short shells.
python=$(python3 -c 'import sys; print(sys.executable)')
record -o "$tmp/python" -- "$python" -c '
import time
def inner(n):
    return sorted(range(n), key=lambda v: -v)
end = time.process_time() + 1.5
while time.process_time() < end:
    inner(300)'
complete "$tmp/python" 98 'python3'
through "$tmp/python" "$(basename "$python" | cut -c1-15)" _start 98 'python3'

# --- perf reads the file ---
if command -v perf >/dev/null; then
	perf script -i "$tmp/threads" -F comm,tid,event,ip,sym,dso >"$tmp/script" 2>"$tmp/perf-err"
	is "$(grep -c '^shares_bare' "$tmp/script")" "$(json "$tmp/threads" | jq .samples)" \
		'perf script: as many samples'
	near "$(perf report -i "$tmp/threads" --stdio --no-children -g none -F overhead,symbol \
		2>/dev/null | sed -n 's/^ *\([0-9.]*\)%.*burn_sixty.*/\1/p')" \
		"$(json "$tmp/threads" | jq '.functions[] | select(.function == "burn_sixty").self_percent')" \
		0.01 'perf report: the same share'
else
	skip 'no perf here' 2
fi

# --- losses are exact ---
"$bare" 60 2 >/dev/null &
busy=$!
sleep 0.2
record -F 20000 -m 2 -d 0.5 -o "$tmp/small" -p $busy
lost=$(json "$tmp/small" | jq .lost)
by_cpu=$(json "$tmp/small" | jq '[.lost_by_cpu[].lost] | add // 0')
is "$lost" "$by_cpu" "losses are told by CPU ($lost)"

# --- nothing stays ---
"$INSPECT" record -F 999 -o "$tmp/killed" -p $busy 2>>"$tmp/err" &
killed=$!
wait_for "$tmp/killed"
sleep 1
ids=$(programs $killed)
is "$(still_there "$ids")" 4 'the programs are loaded'
quietly_end $killed -9
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$(still_there "$ids")" != 0 ] || break
	sleep 0.2
done
is "$(still_there "$ids")" 0 'and gone after kill -9'
ok '[ "$(json "$tmp/killed" | jq .samples)" -gt 50 ]' 'what it had written can be read'

# --- without the rights ---
if command -v setpriv >/dev/null; then
	: >"$tmp/err"
	setpriv --bounding-set -bpf,-sys_admin --inh-caps -bpf,-sys_admin \
		"$INSPECT" record -d 0.2 -o "$tmp/masked" -p $busy 2>"$tmp/err"
	is $? 0 'without CAP_BPF: recorded all the same'
	like "$(cat "$tmp/err")" 'note: stacks by frame pointers \(perf sampler\): BPF is not allowed.*CAP_BPF.*→ a shell or service whose root has them' \
		'by the perf sampler, which is said with the reason'
	is "$(grep -c 'frame pointers' "$tmp/err")" 1 'in one line'
else
	skip 'no setpriv here' 3
fi
limit=/sys/fs/cgroup/memory/inspect-bpf.$$
if mkdir "$limit" 2>/dev/null; then
	on_exit "sleep 0.2; rmdir '$limit'"
	echo 24M >"$limit/memory.limit_in_bytes"
	bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$limit" \
		"$INSPECT" record -d 0.3 -o "$tmp/little" -p $busy 2>"$tmp/err"
	is $? 0 'little memory in the cgroup: recorded all the same'
	like "$(cat "$tmp/err")" 'note: stacks by frame pointers .*not enough memory.*32 MiB' 'and said'
else
	skip 'no memory controller that can be written here' 2
fi
: >"$tmp/err"
"$INSPECT" record -F 999 --call-graph fp -d 1 -o "$tmp/fp" -p $busy 2>>"$tmp/err" &
plain=$!
wait_for "$tmp/fp"
is "$(programs $plain)" '' '--call-graph fp: no program'
wait $plain
unlike "$(cat "$tmp/err")" 'perf sampler' 'and no remark, as it was asked for'
quietly_end $busy
