#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What trace -c says stands out, in programs made to do just that.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
cd "$tmp" || exit 1

# finds RULE OPTIONS… -- WHAT [N]: the rule speaks, with evidence that fits
finds() {
	local rule=$1 evidence=$2
	shift 2
	"$INSPECT" trace -c --json "$@" >t.json 2>err
	like "$(jq -r --arg rule "$rule" '.findings[] | select(.rule == $rule).evidence' t.json)" "$evidence" "$rule"
}
finds map-churn 'most of 1024 KiB.*: 200[01] mappings' -- "$W/syscalls" maps 2000
like "$(jq -r '.summary' t.json)" '→ next: inspect record -e page-faults' 'the first line names the next command'
like "$(jq -r '.shape' t.json)" 'stands? out' 'and the shape says so'
finds yield-spin 'thread [0-9]+.*: [0-9]+ sched_yield' -- "$W/syscalls" yields 30000
finds small-writes 'fd [0-9]+ </dev/null> of process [0-9]+: 30000 writes' -- "$W/syscalls" writes 30000
finds small-writes-by-thread '30000 writes' -- "$W/syscalls" writes 30000
finds busy-poll '5000 epoll_wait' -- "$W/syscalls" polls 5000
finds missing-files 'openat: 1000 names' -- "$W/syscalls" missing 1000
finds failing-call 'close: 100[0-9] calls' -- "$W/syscalls" failing 1000
finds clone-per-request '200 new threads.*, 1\.0 for each' -- "$W/syscalls" accepts 200
finds syncs '.' --limit syncs=0 -- "$W/syscalls" syncs 30
finds gpu-allocations '50 NVIDIA alloc' -- "$W/syscalls" gpu 50
rm -f nvidiactl
finds gpu-open 'process [0-9]+: opening a GPU took [12][0-9][0-9] ms' -- "$W/syscalls" gpu 1
finds lock-contention 'lock mutex of process' -- "$W/syscalls" lock 1

"$INSPECT" trace -c --json --limit small-writes=50000 --limit small-writes-by-thread=50000 -- "$W/syscalls" writes 30000 >t.json 2>err
is "$(jq -c '[.findings[].rule]' t.json)" '[]' '--limit changes when a rule speaks'
exits 2 'a rule that there is not' "$INSPECT" trace -c --limit nothing=1 -- true
"$INSPECT" trace -c --json -- "$W/syscalls" healthy 1000 >t.json 2>err
is "$(jq -c '[.findings[].rule]' t.json)" '[]' 'an event loop that works: nothing stands out'
like "$(jq -r .shape t.json)" 'healthy server' 'and the shape is that of a healthy server'
"$INSPECT" trace --explain --json >t.json
is "$(jq '[.rules[] | select(.when != "" and .source != "" and .next != "")] | length' t.json)" 15 \
	'--explain: each rule with its limits and its source'
