#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# --cgroup where perf does not count by the hierarchy: the processes of the group and of those below.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

refused() {
	exits "$1" "--cgroup '$2' is refused" "$INSPECT" record -o f -d 0.1 --cgroup "$2"
	ok '[ ! -e f ]' 'without a file'
}
refused 2 /
like "$(cat err)" 'why: .*whole system' 'with the reason'
like "$(cat err)" 'fix: -a ' 'and what does it'
refused 2 ''
refused 125 no-such-group
like "$(cat err)" '/proc/PID/cgroup' 'with where the names are'
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
	skip 'cgroup v2 alone here: /sys/fs/cgroup is a group' 2
else
	refused 2 /sys/fs/cgroup
fi

top=/sys/fs/cgroup/memory/inspect-test-$$
if ! mkdir "$top" 2>/dev/null; then
	skip 'no cgroup v1 hierarchy to write to here' 7
	exit 0
fi
on_exit "rmdir '$top/a/b' '$top/a' '$top'"
mkdir -p "$top/a/b"
refused 125 "inspect-test-$$"
"$W/shares" 30 >/dev/null &
busy=$!
echo $busy >"$top/a/b/cgroup.procs"
exits 0 'a group whose processes are in one below' "$INSPECT" record -F 499 -o f -d 0.4 --cgroup "inspect-test-$$"
like "$(cat err)" 'its 1 processes of now \(with those of 2 groups below: a, a/b\)' 'named'
ok '[ "$("$INSPECT" report --json f | jq .samples)" -gt 5 ]' 'with its samples'
exits 0 'stack: those that are in the group now' "$INSPECT" stack --json --cgroup "inspect-test-$$"
is "$(jq -c '[.threads[].tid] | unique' "$tmp/out")" "[$busy]" '… and no others'
{ kill $busy; wait $busy; } 2>/dev/null
true
