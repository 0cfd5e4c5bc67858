#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# What --json prints is what docs/json says, members added without a description included.
. "$(dirname "$0")/lib.sh"

# fits FILE SCHEMA NAME
fits() {
	local complaints
	complaints=$(python3 tests/cmd/schema.py "docs/json/$2.schema.json" "$1" 2>&1)
	is "$complaints" '' "$3"
}

"$INSPECT" record --json -F 999 -o "$tmp/a.data" -- "$W/shares" 0.5 >"$tmp/record.json" 2>"$tmp/err"
fits "$tmp/record.json" record 'record, with a command whose own output is not in the way'
is "$(jq -r '.samples == ([.threads[].samples] | add)' "$tmp/record.json")" true \
	'record: the threads have all samples'
ok '[ "$(jq .file_bytes "$tmp/record.json")" = "$(stat -c %s "$tmp/a.data")" ]' \
	'record: the size of the file is right'
"$INSPECT" record --json -c 1 -e page-faults -o "$tmp/b.data" -- "$W/shares" 0.3 2 \
	>"$tmp/record.json" 2>"$tmp/err"
fits "$tmp/record.json" record 'record of an event that is not time'

"$INSPECT" report --json "$tmp/a.data" >"$tmp/report.json" 2>"$tmp/err"
fits "$tmp/report.json" report 'report of our own file'
"$INSPECT" report --json --sort comm,pid,tid,dso,symbol "$tmp/b.data" >"$tmp/report.json" 2>"$tmp/err"
fits "$tmp/report.json" report 'report by every key'
perf record -q -g -F 999 -e cpu-clock,page-faults -o "$tmp/perf.data" "$W/shares" 0.3 >/dev/null 2>&1
"$INSPECT" report --json "$tmp/perf.data" >"$tmp/report.json" 2>"$tmp/err"
fits "$tmp/report.json" report "report of perf's file with two events"
printf 'main;work 12\nmain;[libc.so.6] 3\n' | "$INSPECT" report --json - >"$tmp/report.json" 2>"$tmp/err"
fits "$tmp/report.json" report 'report of folded text'

"$INSPECT" diff --json "$tmp/a.data" "$tmp/perf.data" >"$tmp/diff.json" 2>"$tmp/err"
fits "$tmp/diff.json" diff 'diff'
"$INSPECT" doctor --json >"$tmp/doctor.json" 2>"$tmp/err"
fits "$tmp/doctor.json" doctor 'doctor'

"$INSPECT" offcpu --json --loop -- "$W/event_loops" >"$tmp/offcpu.json" 2>"$tmp/err"
fits "$tmp/offcpu.json" offcpu 'offcpu'
"$INSPECT" record --json --wall -o "$tmp/wall.data" -- "$W/wait_shares" 0.3 >"$tmp/wall.json" 2>"$tmp/err"
fits "$tmp/wall.json" record 'record --wall'

"$INSPECT" report --json "$tmp/missing.data" >"$tmp/out" 2>"$tmp/error.json"
fits "$tmp/error.json" error 'a failure'
is "$(cat "$tmp/out")" '' 'a failure prints nothing on stdout'

# The checker itself: what it must not let pass.
refused() {
	printf '%s\n' "$1" >"$tmp/bad.json"
	ok '! python3 tests/cmd/schema.py docs/json/error.schema.json "$tmp/bad.json"' "$2"
}
refused '{"schema":"inspect.error/1","command":"x","error":"x","why":null,"fix":[]}' \
	'the checker sees a missing member'
refused '{"schema":"inspect.error/1","command":"x","error":"x","why":null,"fix":[1],"errno":1}' \
	'the checker sees a wrong type'
refused '{"schema":"inspect.error/1","command":"x","error":"x","why":null,"fix":[],"errno":1,"y":1}' \
	'the checker sees a member that is not described'
