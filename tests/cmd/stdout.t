#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# When stdout is for the picture, the recording or JSON, what CMD prints goes to stderr.
. "$(dirname "$0")/lib.sh"
plan 8

cmd='echo of-the-command; exec "$0" 0.3'
"$INSPECT" flame -q -F 999 -- bash -c "$cmd" "$W/shares" >"$tmp/out.svg" 2>"$tmp/err"
is "$(head -c 5 "$tmp/out.svg")" '<?xml' 'flame: the picture is alone on stdout'
ok 'python3 -c "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])" "$tmp/out.svg"' '… and whole'
like "$(cat "$tmp/err")" of-the-command "flame: CMD's output is on stderr"
"$INSPECT" flame -q -F 999 -o "$tmp/file.svg" -- bash -c "$cmd" "$W/shares" >"$tmp/out" 2>"$tmp/err"
like "$(cat "$tmp/out")" of-the-command "flame -o FILE: CMD's output is on stdout"

"$INSPECT" record -q -F 999 -o - -- bash -c "$cmd" "$W/shares" 2>"$tmp/err" >"$tmp/pipe.data"
is "$(head -c 8 "$tmp/pipe.data")" PERFILE2 'record -o -: the recording is alone on stdout'
like "$("$INSPECT" report "$tmp/pipe.data" 2>&1)" burn_sixty '… and can be read'
"$INSPECT" record --json -F 999 -o "$tmp/a.data" -- bash -c "$cmd" "$W/shares" 2>"$tmp/err" >"$tmp/json"
is "$(jq -r .schema "$tmp/json")" inspect.record/1 'record --json: the object is alone on stdout'
"$INSPECT" record -q -F 999 -o "$tmp/a.data" -- bash -c "$cmd" "$W/shares" >"$tmp/out" 2>"$tmp/err"
like "$(cat "$tmp/out")" of-the-command "record -o FILE: CMD's output is on stdout"
