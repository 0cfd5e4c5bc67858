#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Stacks from registers and stack copies: record --call-graph dwarf, and perf's own files of that kind.
. "$(dirname "$0")/lib.sh"
profiles=tests/cmd/profiles.py
bare=$W/shares_bare
record() {
	"$INSPECT" record -F 999 "$@" >/dev/null 2>>"$tmp/err"
}
json() {
	"$INSPECT" report --json --all "$@"
}
percent_complete() {
	json "$1" | jq '100 - 100 * .truncated / ([.samples, 1] | max)'
}
# shares FILE WHAT: 60, 30 and 10 %, within 3 points and what chance adds on few samples
shares() {
	local function want points
	points=$(json "$1" | jq '[3, 3 * ([4000 / ([.events[0].samples, 1] | max), 1] | max | sqrt)] | max')
	while read -r function want; do
		near "$(json "$1" | jq --arg name "$function" \
			'[.functions[] | select(.function == $name).self_percent] | add // 0')" \
			"$want" "$points" "$2: $function"
	done <<<"burn_sixty 60
burn_thirty 30
burn_ten 10"
}
cd "$tmp" || exit 1
profiles=$OLDPWD/$profiles
export XDG_CACHE_HOME=$tmp/cache
mkdir cache

# --- our own recording ---
record --call-graph dwarf -o own.data -- "$bare" 2
shares own.data 'dwarf'
ok "awk 'BEGIN { exit !($(percent_complete own.data) >= 99) }'" \
	"99 % complete without frame pointers ($(percent_complete own.data))"
through=$("$INSPECT" flame --folded own.data | python3 "$profiles" through level_20 shares_bare)
ok "awk 'BEGIN { exit !($through >= 97) }'" "through level_20 ($through %)"
ok '[ -n "$(ls cache/inspect/unwind)" ]' 'tables are kept'
rm -r cache/inspect
record --call-graph dwarf --no-cache --max-stack 1024 -o none.data -- "$bare" 0.3
ok '[ ! -e cache/inspect ]' 'and with --no-cache they are not'
read -r samples bytes < <(echo "$(json own.data | jq .samples) $(stat -c %s own.data)")
# 45 frames of 8 bytes, the head of a record, and what no sample is
ok "[ $((bytes - 300000)) -lt $((samples * 600)) ]" "chains, not copies ($bytes bytes, $samples samples)"
record --call-graph dwarf --max-stack 10 -o ten.data -- "$bare" 0.5
for how in auto dwarf; do
	exits 2 "$how: more than 1,024 frames" record --call-graph $how --max-stack 1025 -o deep.data -- true
	like "$(cat err)" 'cannot unwind stacks of 1025 frames.*fix: --max-stack 1024' "$how: the most there are"
done
for n in 0 1025; do
	exits 2 "offcpu --max-stack $n: the same" "$INSPECT" offcpu --max-stack $n -- true
done
is "$(json ten.data | jq -r '[.truncated_by_reason[].reason] | unique | join(",")')" \
	'deeper than --max-stack' 'ten frames are too few, and that is why'
record --call-graph dwarf --kernel-only -a -d 0.3 -o kernel.data
is "$(json kernel.data | jq '[.truncated_by_reason[]] | length')" 0 'no user stacks with --kernel-only'
record --call-graph dwarf,65528 -m 8 -o small.data -- "$bare" 0.3
like "$(json small.data | jq -r '.notes[]')" 'stack copies of 4096 bytes' 'a small ring: smaller copies, with a note'

# --- a file that is written anew in place is another, though its numbers, size and date stay ---
cp "$W/uw_plug_a" one && cp "$W/uw_plug_b" other
truncate -s 65536 one other && touch -d 2025-01-01 one other
record --call-graph dwarf -o anew.data -- sh -c 'for of in one other; do
	cp -p $of plug && "$1" 200 ./plug ./plug && sleep 0.6 || exit; done' sh "$W/uw_reload"
ok "awk 'BEGIN { exit !($(percent_complete anew.data) >= 99) }'" \
	"a plug-in written anew: 99 % complete ($(percent_complete anew.data))"
through=$("$INSPECT" flame --folded anew.data | python3 "$profiles" through main uw_reload)
ok "awk 'BEGIN { exit !($through >= 97) }'" "a plug-in written anew: through main ($through %)"

# --- cut stacks say why, also when the file is read again ---
record --call-graph dwarf,1024 -o cut.data -- "$W/uw_deep" 300
reasons=$(json cut.data | jq -c '[.truncated_by_reason[].reason]')
is "$reasons" '["stack copy too short"]' 'a short copy'
ok "awk 'BEGIN { exit !($(percent_complete cut.data) <= 5) }'" 'of nearly every stack'
like "$("$INSPECT" flame --folded cut.data)" 'uw_deep;\[truncated: stack copy too short\];nest' \
	'the reason stands at the root'
"$INSPECT" flame --folded cut.data >cut.folded
"$INSPECT" flame --folded cut.folded >again.folded
is "$(sort again.folded)" "$(sort cut.folded)" 'folded text keeps it'
# In the rest of an execve(2) the stack of the program that called it is gone.
record -F 9999 --call-graph dwarf -o execs.data -- sh -c 'for i in $(seq 100); do /bin/true; done'
is "$(json execs.data | jq '[.truncated_by_reason[] | select(.reason == "stack copy too short").samples] | add // 0')" 0 \
	'exec: a stack that is gone is no short copy'
if "${CC:-cc}" -m32 -nostdlib -static -x c - -o m32 2>/dev/null <<<'void _start(void) { for (;;) ; }'; then
	./m32 &
	pid=$!
	record --call-graph dwarf -p $pid -d 0.3 -o m32.data
	is "$(json m32.data | jq -c '[.truncated_by_reason[].reason]')" '["32-bit process"]' \
		'32-bit processes are named'
	{ kill $pid && wait $pid; } 2>/dev/null
else
	skip 'no 32-bit compiler'
fi

# --- perf's tools and ours read each other's files ---
if command -v perf >/dev/null; then
	perf script -i own.data -F comm,ip,sym 2>/dev/null >own.script
	ok "[ $(grep -c level_20 own.script) -ge $((samples * 97 / 100)) ]" 'perf script shows our chains'
	unlike "$(perf evlist -v -i own.data 2>&1)" 'REGS_USER|STACK_USER' 'whose events have no registers'
	perf record -q -N -F 999 --call-graph dwarf,32768 -o perf.data -- "$bare" 1 >/dev/null 2>&1
	shares perf.data "perf's file"
	ok "awk 'BEGIN { exit !($(percent_complete perf.data) >= 99) }'" \
		"perf's file: 99 % complete ($(percent_complete perf.data))"
	cp "$bare" changes
	perf record -q -N -F 999 --call-graph dwarf,4096 -o changed.data -- ./changes 0.1 >/dev/null 2>&1
	cat "$W/uw_deep" >changes
	is "$(json --comm changes changed.data | jq -c '[.truncated_by_reason[].reason]')" '["file changed"]' \
		"perf's file, and a program written anew since: that is why"
else
	skip 'no perf here' 7
fi
