#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# What the kernel forbids is explained, with the least change that helps; what it allows works.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'becoming another user and setting sysctls needs root'
command -v setpriv >/dev/null || skip_all 'no setpriv here'

# A copy that nobody may run, in a folder where nobody may write.
chmod 711 "$tmp"
mkdir -m 777 "$tmp/his"
cp "$INSPECT" "$tmp/inspect"
cp "$W/shares" "$W/exits" "$tmp/"
nobody() {
	(cd "$tmp/his" && HOME=$tmp/his exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@")
}

paranoid=/proc/sys/kernel/perf_event_paranoid
level=$(cat $paranoid)
on_exit "echo $level >$paranoid"
level() {
	echo "$1" >$paranoid 2>/dev/null && [ "$(cat $paranoid)" = "$1" ]
}
# refused WHAT ARG…: exit 125, no file, nothing of CMD
refused() {
	local what=$1
	shift
	rm -f "$tmp/his/f"
	exits 125 "$what: refused" nobody "$tmp/inspect" record -o f "$@"
	err=$(cat "$tmp/err")
	ok '[ ! -e "$tmp/his/f" ]' "$what: no file"
}
has() {
	like "$err" "$1" "$2"
}

# --- paranoid 2: the usual setting ---
level 2
exits 0 'paranoid 2: an ordinary user records his own command' \
	nobody "$tmp/inspect" record -F 999 -o own -- "$tmp/exits" 0.7 0
like "$(cat "$tmp/err")" 'note: .*user' 'paranoid 2: a note says that it is user code only'
near "$(cd "$tmp/his" && "$INSPECT" report --json own | jq .samples)" 695 40 'paranoid 2: with the samples'
ok '"$INSPECT" report --json "$tmp/his/own" | jq -e "[.functions[] | select(.kind == \"kernel\")] | length == 0"' \
	'paranoid 2: nothing of the kernel'
nobody "$tmp/shares" 20 >/dev/null 2>&1 &
sleep 0.2
his=$(pgrep -u 65534 -f "^$tmp/shares" | tail -1)
exits 0 'paranoid 2: and his own process' nobody "$tmp/inspect" record -F 999 -d 0.5 -o own -p "$his"
"$tmp/shares" 20 >/dev/null &
mine=$!
refused "another user's process" -p $mine
has "cannot sample process $mine" "another user's process: what"
has 'why: .*(another user|CAP_PERFMON)' "another user's process: why"
has 'fix: ' "another user's process: what helps"
refused 'all CPUs' -a -d 1
has 'cannot sample all CPUs with .*: Permission denied' 'all CPUs: what'
has 'why: -a needs kernel.perf_event_paranoid 0 or lower, or CAP_PERFMON; it is 2' 'all CPUs: why'
has 'perf_event_paranoid=0' 'all CPUs: the sysctl'
has 'cap_perfmon|PERFMON' 'all CPUs: or the capability'
has '-p PID --user-only' 'all CPUs: or what works now'
exits 0 'all CPUs: the advice works' \
	nobody "$tmp/inspect" record -d 0.3 -o own -p "$his" --user-only
refused 'a tracepoint' -e sched:sched_switch -- "$tmp/shares" 1
if grep -q " tracefs " /proc/self/mounts; then
	has 'tracing is not readable by this user' 'a tracepoint: why'
else
	has 'tracefs, which is not mounted' 'a tracepoint: why'
fi
has 'fix: ' 'a tracepoint: what helps'
{ kill $mine "$his"; wait; } 2>/dev/null

# --- Debian's and Ubuntu's higher settings; this kernel may not know them and then means 2 ---
for high in 3 4; do
	if ! level $high; then
		skip "perf_event_paranoid cannot be $high here" 2
		continue
	fi
	refused "paranoid $high" -a -d 1
	has "it is $high" "paranoid $high: says so"
done
level 1
exits 0 'paranoid 1: kernel samples of his own command' \
	nobody "$tmp/inspect" record -F 999 -o own -- sh -c 'i=0; while [ $i -lt 60000 ]; do : >x; i=$((i+1)); done'
ok '"$INSPECT" report --json --all "$tmp/his/own" | jq -e "[.functions[] | select(.kind == \"kernel\").self_percent] | add > 20"' \
	'paranoid 1: they are there'
level 0
exits 0 'paranoid 0: all CPUs' nobody "$tmp/inspect" record -d 0.3 -o own -a
level -1
exits 0 'paranoid -1: all CPUs' nobody "$tmp/inspect" record -d 0.3 -o own -a
level 2

# --- a small limit on locked memory ---
mlock=/proc/sys/kernel/perf_event_mlock_kb
old=$(cat $mlock)
if echo 8 >$mlock 2>/dev/null; then
	on_exit "echo $old >$mlock"
	exits 0 'a small mlock limit: records all the same' nobody prlimit --memlock=16384:16384 \
		"$tmp/inspect" record -F 999 -o own -- "$tmp/exits" 0.4 0
	like "$(cat "$tmp/err")" 'note: .*ring.*(smaller|KiB)' 'a small mlock limit: a note says the ring is smaller'
	ok '[ "$("$INSPECT" report --json "$tmp/his/own" | jq .samples)" -gt 300 ]' \
		'a small mlock limit: with samples'
	echo "$old" >$mlock
else
	skip 'perf_event_mlock_kb cannot be set here' 3
fi

# --- seccomp, as in containers ---
for errno in 1 38; do # EPERM, ENOSYS
	exits 125 "seccomp (errno $errno): refused" \
		"$W/no_perf" $errno "$INSPECT" record -o "$tmp/his/f" -- touch "$tmp/his/ran"
	like "$(cat "$tmp/err")" 'why: .*seccomp' "seccomp (errno $errno): named"
	like "$(cat "$tmp/err")" 'fix: ' "seccomp (errno $errno): what helps"
	ok '[ ! -e "$tmp/his/f" ] && [ ! -e "$tmp/his/ran" ]' "seccomp (errno $errno): CMD never ran, no file"
done

# --- too many descriptors ---
"$W/shares" 20 40 >/dev/null &
mine=$!
sleep 0.2
exits 125 'a small ulimit -n: refused' sh -c 'ulimit -n 20; exec "$@"' sh \
	"$INSPECT" record -o "$tmp/his/f" -d 0.2 -p $mine
like "$(cat "$tmp/err")" 'ulimit -n' 'a small ulimit -n: named'
{ kill $mine; wait $mine; } 2>/dev/null
exits 2 'a rate above the limit: refused' "$INSPECT" record -F 10000000 -o "$tmp/his/f" -- touch "$tmp/his/ran"
like "$(cat "$tmp/err")" 'perf_event_max_sample_rate' 'a rate above the limit: names the setting'
ok '[ ! -e "$tmp/his/ran" ]' 'a rate above the limit: CMD never ran'
