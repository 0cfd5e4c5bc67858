#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The report of use as a person, a script and a monitoring system see it.
. "$(dirname "$0")/lib.sh"
. tests/cmd/use_lib.sh

# --- for people ---
exits 0 'runs' env COLUMNS=80 "$INSPECT" use -d 0.5
for resource in CPU memory 'I/O' 'open files' threads TCP 'packet queues' /dev/shm; do
	like "$(cat "$tmp/out")" $'\n'"$resource" "there is a row: $resource"
done
ok '[ ! -s "$tmp/err" ]' 'nothing on stderr'
is "$(grep -E '^.{81,}' "$tmp/out")" '' 'fits 80 columns'
like "$(sed -n 2p "$tmp/out")" '^# verdict: ' 'the second line is the answer'
like "$(cat "$tmp/out")" '# no data: .*--all' 'what has no data is named'
exits 0 '-v' env -u COLUMNS "$INSPECT" use -d 0.1 -v
like "$(cat "$tmp/out")" 'cpu_busy_percent +[0-9.]+ +80.00 +95.00 +/proc/stat' '-v: values, limits, sources'
exits 0 '--all' "$INSPECT" use -d 0.1 --all
is "$(grep -c '^CPU [0-9]' "$tmp/out")" "$(getconf _NPROCESSORS_ONLN)" '--all: every CPU'
like "$(cat "$tmp/out")" '# note: "-" of engine: --engine URL' '--all: whose reason it is'
exits 0 '-p' "$INSPECT" use -d 0.1 -p $$
like "$(head -1 "$tmp/out")" "^# target: .*/$$ · .*CPUs" '-p: begins with the target'
sh -c 'sleep 20 & sleep 20 & wait' >/dev/null 2>&1 &
parent=$!
sleep 0.3
exits 0 'a target with children' "$INSPECT" use -d 0.1 -p $parent
like "$(cat "$tmp/out")" '# note: 2 child processes are not included; add --children' 'what it leaves out is said'
exits 0 '--children' "$INSPECT" use -d 0.1 --all -p $parent --children
is "$(grep -c '^process CPU' "$tmp/out")" 3 '--children: they are part of it'
kill $(pgrep -P $parent) $parent
exits 0 '--explain' env -u COLUMNS "$INSPECT" use --explain
like "$(cat "$tmp/out")" $'kv-cache-full\n    when: kv_cache_percent > 90' '--explain: rules'
is "$(grep -E '^.{101,}' "$tmp/out")" '' '--explain: within 100 columns'
exits 0 '--explain on a narrow terminal' env COLUMNS=50 "$INSPECT" use --explain --limit disk_await_ms=5/40
is "$(grep -E '^.{51,}' "$tmp/out" | grep '[^ ] *[ ] *[^ ]')" '' '--explain: within 50 columns, but for long words'
like "$(cat "$tmp/out")" $'slow-disk\n    when: disk_await_ms > 5\n' '--explain: with the limits of this run'

# --- for scripts ---
"$INSPECT" use --json -d 0.2 >"$tmp/use.json"
is "$(python3 tests/cmd/schema.py docs/json/use.schema.json "$tmp/use.json" 2>&1)" '' 'JSON as its schema says'
"$INSPECT" use --json --explain >"$tmp/rules.json"
is "$(python3 tests/cmd/schema.py docs/json/use-rules.schema.json "$tmp/rules.json" 2>&1)" '' 'and the rules'
is "$(jq '[.values[] | select(.value == null and (.value_reason // "") == "")] | length' "$tmp/use.json")" 0 \
	'nothing is null without a reason'
near "$(jq '.window_ns / 1e9' "$tmp/use.json")" 0.35 0.2 'the window is as long as asked'
is "$("$INSPECT" use --csv -q -d 0.1 | head -1)" 'resource,device,scope,utilisation,saturation,errors,verdict' 'CSV'
exits 3 '--fail-on warn, with a limit that is passed' "$INSPECT" use -d 0.1 --limit threads_percent=0/0 --fail-on critical
exits 0 'without --fail-on it is 0' "$INSPECT" use -d 0.1 --limit threads_percent=0/0
like "$(cat "$tmp/out")" 'threads .* critical' '--limit decides'
calm=$(jq -r '[.values[] | select(.warn != null) | .metric] | unique | map("\(.)=" + (if endswith("_percent") and . != "run_delay_percent" then "100/100" else "1e9/1e9" end)) | join(",")' "$tmp/use.json")
exits 0 '--fail-on warn where nothing is' "$INSPECT" use -d 0.1 --limit "$calm" --fail-on warn
like "$(cat "$tmp/out")" '# verdict: ok: no resource is saturated' 'and it is said'

# --- for monitoring ---
exits 0 '--log and --prometheus' "$INSPECT" use -d 0.2 --watch -n 3 --log "$tmp/log" --prometheus "$tmp/metrics.prom"
is "$(jq -s 'length' "$tmp/log")" 3 '--log: a line for each report'
head -1 "$tmp/log" >"$tmp/line.json"
is "$(python3 tests/cmd/schema.py docs/json/use.schema.json "$tmp/line.json" 2>&1)" '' '--log: as the schema says'
"$INSPECT" use -d 0.1 --log "$tmp/log" >/dev/null
is "$(jq -s 'length' "$tmp/log")" 4 '--log: appends'
is "$(ls "$tmp" | grep -c part)" 0 '--prometheus: nothing is left beside it'
cat >"$tmp/check.py" <<'END'
import re, sys
seen, typed = set(), {}
for line in open(sys.argv[1]):
    if line.startswith("# TYPE "):
        _, _, name, kind = line.split()
        assert name not in typed and kind == "gauge", line
        typed[name] = True
        last = name
    elif not line.startswith("#"):
        m = re.fullmatch(r'(\w+)\{(\w+="(?:[^"\\\n]|\\["\\n])*",?)*\} (-?[0-9.e+-]+)\n', line)
        assert m and m.group(1) == last, line
        key = line.rsplit(" ", 1)[0]
        assert key not in seen, line
        seen.add(key)
print(len(typed) > 20)
END
is "$(python3 "$tmp/check.py" "$tmp/metrics.prom")" True '--prometheus: what its format allows, each series once'
near "$(sed -n 's/^inspect_use_memory_used_percent{.*} //p' "$tmp/metrics.prom")" \
	"$(awk '/MemTotal/ { t = $2 } /MemAvailable/ { print 100 * (t - $2) / t }' /proc/meminfo)" 10 \
	'memory as /proc/meminfo says'
near "$(sed -n 's/^inspect_use_files_percent{.*} //p' "$tmp/metrics.prom")" \
	"$(awk '{ print 100 * $1 / $3 }' /proc/sys/fs/file-nr)" 0.1 'files as file-nr says'
is "$("$INSPECT" use --watch -n 2 -d 0.1 --json | jq -s length)" 2 '--watch --json: JSON lines'
is "$("$INSPECT" use -n 2 -d 0.1 --json | wc -l)" 2 '-n alone is --watch -n'

# --- a terminal ---
# Of its own, so that nobody else's settings and sessions matter.
terminal() {
	tmux -L "inspect-$$" -f /dev/null "$@"
}
on_exit "tmux -L inspect-$$ kill-server 2>/dev/null"
terminal new-session -d -x 80 -y 24 "env LC_ALL=C.UTF-8 PS1='> ' HISTFILE= bash --norc --noprofile -i"
terminal send-keys "'$INSPECT' use --watch -d 0.3" Enter
screen() { # REGEX: waits until the screen has it
	local i
	for ((i = 0; i < 100; i++)); do
		terminal capture-pane -p >"$tmp/screen"
		grep -qE "$1" "$tmp/screen" && return
		sleep 0.1
	done
	return 1
}
ok 'screen "^resource .* verdict"' 'in place: the table'
ok 'screen "keys: q quit, p pause, s sort \(worst first\)"' 'and its keys'
is "$(grep -E '^.{81,}' "$tmp/screen")" '' 'within 80 columns'
like "$(head -1 "$tmp/screen")" '^# host: ' 'from the first line on'
terminal send-keys s
ok 'screen "s sort \(utilisation\)"' 's: another order'
terminal send-keys s
ok 'screen "s sort \(name\)"' 's: by name'
is "$(sed -n '/^resource/,/^…/p' "$tmp/screen" | grep -v '^resource\|^…\|^$\|keys' | awk '{ print $1 }' | LC_ALL=C sort -c 2>&1)" '' \
	'which it is'
terminal send-keys p
ok 'screen "paused: q quit, p go on"' 'p: pauses'
terminal send-keys p
ok 'screen "keys: q quit, p pause"' 'p: goes on'
terminal send-keys C-z
ok 'screen Stopped' '^Z: stops'
terminal send-keys "clear; stty -a | grep -oE ' icanon| echo '" Enter
ok 'screen "^ echo"' '^Z: the shell has its terminal as before'
terminal send-keys fg Enter
ok 'screen "^resource .* verdict"' 'fg: drawn again'
like "$(head -1 "$tmp/screen")" '^# host: ' 'fg: from the first line on'
terminal resize-window -x 60 -y 16
ok 'screen "(lines more|more rows)"' 'a smaller window: what does not fit is counted'
is "$(grep -E '^.{61,}' "$tmp/screen")" '' 'a smaller window: within 60 columns'
like "$(head -1 "$tmp/screen")" '^# host: ' 'a smaller window: from the first line on'
# Its last column is that of the verdict.
terminal resize-window -x 40 -y 24
ok 'screen "^resource +is +verdict$"' '40 columns: what is worst, and the verdict'
ok 'screen "^[^ ].* (critical|warn|ok)$"' '40 columns: whole'
is "$(sed '1,/^resource/d; /^…\|^$\|^keys/d' "$tmp/screen" | grep -vE ' (critical|warn|ok)$')" '' '40 columns: of each row'
terminal send-keys q
ok 'screen "^> *$"' 'q: ends'
terminal send-keys "clear; stty -a | grep -oE ' icanon'" Enter
ok 'screen "^ icanon"' 'q: the terminal is as before'

# --- an ordinary user ---
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$tmp"
	cp "$INSPECT" "$tmp/inspect"
	user='setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs'
	exits 0 'an ordinary user: works' $user "$tmp/inspect" use --json -d 0.3
	like "$(jq -r '.values[] | select(.metric == "lock_wait").value_reason' "$tmp/out")" \
		'needs BPF: root, or CAP_BPF and CAP_PERFMON' 'locks: what is missing is said'
	is "$(value "$tmp/out" cpu_busy_percent '^$' | grep -c .)" 1 'the CPUs are known'
	like "$(jq -r '.values[] | select(.metric == "thread_run_delay_percent" and .value != null).source' "$tmp/out")" \
		'^/proc/PID/schedstat' 'so is who waits for them'
	sleep 60 &
	exits 0 'a process of another user' $user "$tmp/inspect" use --json -d 0.1 -p $!
	like "$(jq -r '.values[] | select(.metric == "process_disk_bytes_per_second").value_reason' "$tmp/out")" \
		'not readable for this user' 'its I/O: not readable'
	is "$(value "$tmp/out" process_threads_percent)" '' 'threads of root have no limit'
	$user sh -c 'while :; do :; done' &
	spinner=$!
	sleep 0.3
	$user "$tmp/inspect" use --json -d 1 -p $spinner >"$tmp/spin.json"
	is "$(value "$tmp/spin.json" process_cpus | grep -c .)" 1 'its own process: CPU time'
	like "$(jq -r '.values[] | select(.metric == "process_run_delay_percent").source' "$tmp/spin.json")" \
		schedstat 'and run delay, from schedstat'
	kill $spinner
	unshare -m sh -c 'mount -t tmpfs -o size=1M own /dev/shm && head -c 1000000 /dev/zero >/dev/shm/big && echo && exec sleep 60' \
		>"$tmp/mounted" &
	until [ -s "$tmp/mounted" ]; do sleep 0.05; done
	"$INSPECT" use --json -d 0.1 -p $! >"$tmp/shm.json"
	near "$(value "$tmp/shm.json" shm_used_percent)" 95.7 0.1 '/dev/shm: that of the process'
	is "$(jq -r '.findings[] | select(.rule == "disk-full").next' "$tmp/shm.json")" "ls -lS /proc/$!/root/dev/shm" \
		'and the command looks there'
	kill $!
else
	skip 'there is no other user to be' 12
fi

# --- names ---
mkfifo "$tmp/go"
sh -c 'read -r _ <"$0"; exec sleep 30' "$tmp/go" &
"$INSPECT" use --watch -n 3 -d 0.2 --json -p $! | while read -r line; do
	[ -e "$tmp/went" ] || echo >"$tmp/go"
	echo "$line" >"$tmp/went"
done
is "$(jq -r .target "$tmp/went")" "sleep/$!" 'a target that has become another program has its name'
kill $!
odd=$'a;b\e[31m"\\\xff'
cp "$(command -v sleep)" "$tmp/$odd"
"$tmp/$odd" 30 &
"$INSPECT" use -d 0.1 -p $! --prometheus "$tmp/names.prom" >"$tmp/out"
is "$(grep -c $'\e' "$tmp/out" "$tmp/names.prom" | paste -sd' ')" "$tmp/out:0 $tmp/names.prom:0" 'controls in names are escaped'
is "$(python3 "$tmp/check.py" "$tmp/names.prom")" True 'quotes too'
ok 'iconv -f UTF-8 -t UTF-8 "$tmp/names.prom" | grep -qF '"'"'device="a;b\\x1b[31m\"\\\\xff/'"'"'' 'and what is no UTF-8'

# --- usage ---
refused() { # REGEX NAME ARG…
	local regex=$1 name=$2
	shift 2
	exits 2 "$name" "$INSPECT" use "$@"
	like "$(cat "$tmp/err")" "$regex" "$name: why"
}
refused '-p and --cgroup exclude each other' 'two targets' -p 1 --cgroup /x
refused 'takes no operand' 'an operand' sleep
refused "there is no value 'cpu'" 'an unknown limit' --limit cpu=3
refused 'critical limit is below' 'limits in the wrong order' --limit cpu_busy_percent=90/80
refused 'from 0 to 100' 'a limit that is no number' --limit cpu_busy_percent=nan
refused 'is no file' 'a log on stdout' --log -
refused '1 or more' 'no report at all' -n 0
refused 'name the same file' 'a log that metrics replace' --log x --prometheus x
refused 'not KEY=WARN' 'no limit' --limit cpu_busy_percent
refused 'not warn or critical' 'an unknown verdict' --fail-on bad
exits 125 'an unknown cgroup' "$INSPECT" use --cgroup /nothing/here
exits 125 'a process that is not there' "$INSPECT" use -p 2147483646
exits 125 'a log that cannot be written' "$INSPECT" use -d 0.1 --log /nonexistent/log
exits 125 'a log on a full disk' "$INSPECT" use -d 0.1 --log /dev/full
is "$(cat "$tmp/err")" 'inspect use: cannot write /dev/full: No space left on device' 'a log on a full disk: which, and why'
exits 125 'metrics that cannot be written: before all' "$INSPECT" use -d 60 --prometheus /nonexistent/x.prom
exits 125 'a full disk' bash -c '"$0" use -d 0.1 >/dev/full' "$INSPECT"
