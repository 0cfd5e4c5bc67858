#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# perf reads our files and we read perf's, with the same counts, names and shares.
. "$(dirname "$0")/lib.sh"
command -v perf >/dev/null || skip_all 'no perf here to compare with'
profiles=$PWD/tests/cmd/profiles.py
cd "$tmp" || exit 1
export DEBUGINFOD_URLS=

# The only thread whose names are compared: who knows what else runs, and how perf names it.
tid=

# Names as the linker sees them: perf demangles without the parameters.
perf_text() {
	perf script -G -F comm,tid,event,ip,sym,dso --no-inline --no-demangle ${tid:+--tid $tid} \
		-i "$1" 2>/dev/null | no_versions
}
our_report() {
	"$INSPECT" report --json --all --no-inline --no-demangle ${tid:+--tid $tid} "$1"
}
# perf 6.1 aborts on some of its own files (an uninitialised bit makes a device number a build-id
# in a synthesized MMAP2): such a recording is made again.
perf_record() {
	local i
	for i in 1 2 3 4 5 6; do
		perf record -q -o "$@" >/dev/null 2>&1
		perf script -i "$1" >/dev/null 2>&1 && return
	done
}

# same_self FILE WHAT [EVENT]: self counts by symbol from perf script's text and from our report.
# Frames without a name are one entry on both sides: perf prints [unknown] where we print the
# module and the address.
same_self() {
	perf_text "$1" | python3 "$profiles" perf-self ${3:+"$3"} >perf.self
	our_report "$1" 2>err | python3 "$profiles" report-self ${3:+"$3"} >our.self
	ok '[ "$(awk "{ n += \$1 } END { print n }" perf.self)" -gt 100 ]' "$2: perf script has samples"
	is "$(diff perf.self our.self)" '' "$2: the same self count for each symbol"
}

# --- perf's files ---
busy() {
	sh -c 'dd if=/dev/zero of=/dev/null bs=4k count=150000 2>/dev/null & "$0" 0.4 2 & wait' "$W/shares"
}
export -f busy
export W
# For -a: a thread under a name that nobody else has. Its name alone would not do: perf has forgotten
# it when a thread is sampled at its very end.
cp "$W/shares" "burn$$"
burn_tid() {
	perf script -F comm,tid -G -i "$1" 2>/dev/null | awk -v comm="burn$$" '$1 == comm { print $2; exit }'
}
perf_record g.data -F 1999 -g -- bash -c busy
same_self g.data '-g'
perf_record flat.data -F 1999 -- bash -c busy
same_self flat.data 'without stacks'
perf_record z.data -F 1999 -g -z -- bash -c busy
same_self z.data '-z'
perf_record two.data -F 999 -g -e cpu-clock,task-clock -- bash -c busy
same_self two.data 'two events, the first' cpu-clock
same_self two.data 'two events, the second' task-clock
perf_record twoz.data -F 999 -g -z -e cpu-clock,task-clock -- bash -c busy
same_self twoz.data '-z, two events' task-clock
perf record -q -F 1999 -g -o - -- bash -c busy 2>/dev/null >pipe.data
same_self pipe.data 'pipe mode'
is "$(our_report - <pipe.data | python3 "$profiles" report-self)" "$(cat our.self)" \
	'pipe mode: from a pipe as from the file'
perf_record old.data -F 1999 -g -B -- bash -c busy
same_self old.data 'without build-ids'
perf_record period.data -g -c 500000 -- bash -c busy
same_self period.data '-c'
perf_record all.data -F 1999 -g -a -- "$tmp/burn$$" 1.5
tid=$(burn_tid all.data) same_self all.data '-a'
is "$("$INSPECT" report --json all.data | jq .samples)" \
	"$(perf_text all.data | python3 "$profiles" perf-header | awk '{ n += $1 } END { print n }')" \
	'-a: as many samples'
perf_record group.data -F 999 -e '{cpu-clock,page-faults}:S' -- bash -c busy
like "$("$INSPECT" report group.data)" \
	'note: group.data: group reads \(:S\) of 1 event are not expanded' ':S: what is not shown is said'
perf_record dwarf.data -F 999 --call-graph dwarf,4096 -- "$W/exits" 0.4 0
perf script -F ip,sym -G -i dwarf.data 2>/dev/null | no_versions | awk 'NF { print $2 }' | sort | uniq -c |
	sort -rn | awk '$1 > 5 { print $2, $1 }' | sort >perf.self
"$INSPECT" report --json --all --no-inline dwarf.data 2>err |
	jq -r '.functions[] | select(.self_samples > 5) | "\(.function) \(.self_samples)"' | sort >our.self
is "$(cat our.self)" "$(cat perf.self)" 'dwarf: each sample by its instruction'

# --- a cut and a damaged file ---
size=$(stat -c %s g.data)
read -r two_thirds samples < <(python3 "$profiles" cut-samples g.data 0.6667)
for cut in $((size - 1)) $two_thirds 5000 300 104 50 9 1; do
	head -c $cut g.data >cut.data
	timeout 10 "$INSPECT" report cut.data >out 2>err
	rc=$?
	ok "[ $rc = 0 ] && [ \$(grep -c 'note: .*cut.data' out) = 1 ] || { [ $rc = 125 ] && [ \$(wc -l <err) -le 3 ] && grep -q cut.data err; }" \
		"cut at $cut bytes: one line, no crash (exit $rc)"
done
head -c $two_thirds g.data >cut.data
ok "[ $samples -gt 50 ]" 'cut at two thirds of the records: there are samples before it'
is "$("$INSPECT" report --json cut.data | jq .samples)" "$samples" \
	'cut at two thirds of the records: the samples up to there'
python3 - g.data <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
swapped = bytearray(data)
swapped[0:8] = data[0:8][::-1]
open("swapped.data", "wb").write(swapped)
END
: >empty
exits 125 'the other byte order is refused' "$INSPECT" report swapped.data
like "$(cat err)" 'swapped.data.*byte order|byte order.*swapped.data' 'by name'
exits 125 'no perf.data file at all' "$INSPECT" report /etc/passwd
like "$(cat err)" '/etc/passwd' 'is named'
exits 125 'an empty file' "$INSPECT" report empty
exits 125 'a file that is not there' "$INSPECT" report none.data
like "$(cat err)" 'none.data' 'is named'

# --- our files ---
# compare FILE WHAT: counts, self counts, and perf report's table
compare() {
	same_self "$1" "$2"
	is "$(perf report --stdio --header-only -i "$1" 2>&1 | grep -ci 'error\|invalid\|corrupt')" 0 \
		"$2: perf report takes the header"
	is "$("$INSPECT" report --json "$1" | jq .samples)" \
		"$(tid='' perf_text "$1" | python3 "$profiles" perf-header | awk '{ n += $1 } END { print n }')" \
		"$2: perf counts as many samples"
	# Without the thread among its keys (pid) perf adds up what is filtered out, too.
	perf report --stdio --no-children -g none --no-inline --no-demangle \
		-F overhead,${tid:+pid,}symbol ${tid:+--tid $tid --percentage relative} \
		--percent-limit 0 -i "$1" \
		2>perf.err | no_versions | python3 "$profiles" perf-shares >perf.shares
	our_report "$1" | python3 "$profiles" report-shares >our.shares
	is "$(python3 "$profiles" same-shares perf.shares our.shares || echo different)" '' \
		"$2: perf report has the same shares"
	is "$(grep -v unknown perf.shares | head -3 | cut -f 2)" \
		"$(grep -v unknown our.shares | head -3 | cut -f 2)" "$2: and the same top symbols"
}
"$INSPECT" record -q -F 1999 -o ours.data -- bash -c busy >/dev/null
compare ours.data 'our file of a command'
# Of a single event, neither its id nor a period that is always the same is stored with each sample.
most=$(python3 "$profiles" sample-heads ours.data)
ok "[ $most -gt 48 ] && [ $most -le 64 ]" "our file: a sample is at most 64 bytes and 8 for each frame ($most)"
is "$("$INSPECT" report --json ours.data | jq -r '.events[0] | "\(.freq_hz) Hz \(.weight)"')" \
	"1999 Hz $(perf report --stdio --no-children -g none -i ours.data 2>/dev/null | sed -n 's/^# Event count.*: //p')" \
	'our file: perf report counts as many ns'
"$INSPECT" record -q -F 999 -a -o ours-all.data -- "$tmp/burn$$" 1.5 >/dev/null
tid=$(burn_tid ours-all.data) compare ours-all.data 'our file of -a'
"$INSPECT" record -q -F 1999 --call-graph none -o ours-flat.data -- bash -c busy >/dev/null
compare ours-flat.data 'our file without stacks'
"$W/shares" 3 2 >/dev/null &
"$INSPECT" record -q -F 1999 -o ours-pid.data -p $!
wait
compare ours-pid.data 'our file of -p'
"$INSPECT" record -q -F 999 -e cpu-clock,task-clock -o ours-two.data -- bash -c busy >/dev/null
same_self ours-two.data 'our file of two events, the first' cpu-clock
same_self ours-two.data 'our file of two events, the second' task-clock
is "$(perf evlist -i ours-two.data 2>/dev/null | tr '\n' ' ')" 'cpu-clock task-clock ' 'perf has their names'
"$INSPECT" record -q -F 1999 -o - -- "$W/exits" 0.5 0 2>/dev/null >ours-pipe.data
same_self ours-pipe.data 'our stream'
is "$(perf report --stdio --no-children -g none -i ours-pipe.data 2>/dev/null | sed -n 's/^# Event count.*: //p')" \
	"$("$INSPECT" report --json ours-pipe.data | jq .events[0].weight)" 'our stream: perf report counts as many ns'
perf report --header-only -i ours.data >header 2>/dev/null
like "$(cat header)" "hostname : $(hostname)" 'perf has the host name'
like "$(cat header)" "os release : $(uname -r)" 'and the kernel release'
like "$(cat header)" "arch : $(uname -m)" 'and the architecture'
like "$(cat header)" 'cmdline : .*record.*-F.*1999' 'and the command line'
like "$(cat header)" "nrcpus online : $(getconf _NPROCESSORS_ONLN)" 'and the number of CPUs'
like "$(cat header)" 'time of first sample : [0-9.]+' 'and the times'
ok 'perf buildid-list -i ours.data 2>/dev/null | grep -q "$(readelf -n "$W/shares" | awk "/Build ID/ { print \$3 }") .*shares"' \
	'and the build-id of the binary'
is "$(perf script -i ours.data 2>&1 >/dev/null | head -3)" '' 'perf script warns of nothing'
ok '[ "$(perf script --show-mmap-events -i ours.data 2>/dev/null | grep -c "RECORD_MMAP2.*/shares")" -ge 1 ]' \
	'perf sees the mappings'

# --- perf script's text and the file are one profile ---
for file in g.data ours.data; do
	# perf names a return address, we the call before it: at the end of ld.so's _start they differ, and
	# inside _dl_start_user, which follows it, they agree.
	start='s/;_dl_start_user;/;_start;/'
	# In the middle of an exec perf still has the mappings of the program before it, for its user frames.
	exec_frames='s/^([^;]*);(.*;)?(entry_SYSCALL.*_sys_execve)/\1;\3/'
	perf script --no-inline --no-demangle -i $file 2>/dev/null | no_versions |
		"$INSPECT" flame --folded 2>/dev/null |
		sed -E "$start; $exec_frames" >from.text
	# A function that an interrupt found at its first instruction is named by the padding before it.
	"$INSPECT" flame --folded --no-inline --no-demangle $file |
		sed -E "$start; s/;__pfx_([^;]*;asm_)/;\1/; $exec_frames" >from.file
	is "$(awk '{ n += $NF } END { print n }' from.text)" "$(awk '{ n += $NF } END { print n }' from.file)" \
		"perf script | inspect flame --folded, $file: the same total"
	is "$(python3 "$profiles" same-stacks from.text from.file | head -5)" '' \
		"perf script | inspect flame --folded, $file: the same stacks"
done
