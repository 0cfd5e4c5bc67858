# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# For the tests of `stack`: the workload, and what the JSON says.
program=$W/waits

# start NAME KIND…: the workload in the background; sets pid; its own words in $tmp/NAME
start() {
	local name=$1
	shift
	mkfifo "$tmp/$name.in"
	"$program" "$@" <"$tmp/$name.in" >"$tmp/$name" 2>&1 &
	exec {hold}>"$tmp/$name.in"
	for _ in $(seq 600); do
		grep -q ^ready "$tmp/$name" && break
		sleep 0.05
	done
	pid=$(awk '/^ready/ { print $2 }' "$tmp/$name")
}

# query FILTER [ARG…]: of $tmp/json
query() {
	jq -r "$@" "$tmp/json"
}

# The id of a thread by its name, as the workload said in $tmp/all: tid_of NAME
tid_of() {
	awk -v name="$1" '$1 == name { print $2 }' "$tmp/all"
}

# The functions of a thread's group that are not the kernel's, innermost first: functions TID
functions() {
	query --argjson tid "$1" '(.threads[] | select(.tid == $tid).group) as $g |
		[.frames[] | select(.group == $g and .kind != "kernel").function] | join(" ")'
}
