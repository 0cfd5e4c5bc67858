#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# What is written where: losses on stderr, files that are not overwritten, stdout by its names; and
# what is read when no FILE is given.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
"$INSPECT" record -q -F 499 -- "$W/exits" 0.5 0
printf 'main;a 3\nmain;b 1\n' >in.folded
cp in.folded kept.folded
cp inspect.data kept.data

# --- losses are said beside every picture ---
n=$("$INSPECT" report --json | jq .samples)
exits 0 'flame -o' "$INSPECT" flame -o o.svg inspect.data
like "$(head -1 err)" "^inspect flame: $n samples · lost 0 · truncated [0-9]+" 'says samples and losses'
exits 0 'flame --folded' "$INSPECT" flame --folded inspect.data
like "$(head -1 err)" "^inspect flame: $n samples · lost 0" 'says them too'
exits 0 'flame to stdout, live' "$INSPECT" flame -F 499 -- "$W/exits" 0.2 0
like "$(head -1 err)" '^inspect flame: [1-9][0-9]* samples · lost 0' 'and it'
exits 0 'flame -q' "$INSPECT" flame -q -o o.svg inspect.data
is "$(cat err)" '' 'says nothing'
head -c 12000 inspect.data >cut.data
exits 0 'a damaged file' "$INSPECT" flame -o cut.svg cut.data
like "$(cat err)" 'note: cut.data: cut at byte 12000' 'flame says it'
exits 0 'and in diff' "$INSPECT" diff inspect.data cut.data
like "$(cat out)" 'note: cut.data: cut at byte 12000' 'diff says it'

# --- no samples ---
"$INSPECT" record -q -c 1000000000000 -o none.data -- true
exits 0 'a profile without samples' "$INSPECT" flame -o none.svg none.data
like "$(cat err)" 'no samples: nothing to draw' 'is said'
unlike "$(cat err)" 'open it in a browser' 'and nothing is to be opened'
ok 'grep -q "no samples" none.svg' 'and the picture says it'
exits 125 'a comparison with it' "$INSPECT" diff inspect.data none.data
like "$(cat err)" 'none.data has no samples: nothing to compare' 'is refused'
exits 125 'and from it' "$INSPECT" diff none.data inspect.data
is "$(cat out)" '' 'without a table'

# --- what is not overwritten ---
exits 2 'flame onto its input' "$INSPECT" flame -o in.folded in.folded
ln in.folded link.folded
exits 2 'and by another name' "$INSPECT" flame -o link.folded in.folded
exits 2 'report --markdown onto its input' "$INSPECT" report --markdown in.folded in.folded
exits 2 'from stdin' sh -c '"$INSPECT" report --markdown in.folded - <in.folded'
exits 2 'diff --markdown onto one of its inputs' "$INSPECT" diff --markdown in.folded kept.folded in.folded
like "$(cat err)" 'in.folded is the input' 'named'
ok 'cmp in.folded kept.folded' 'it is as it was'
exits 125 'flame onto a recording' "$INSPECT" flame -o inspect.data in.folded
like "$(cat err)" 'there is a recording of that name' 'named'
exits 125 'before CMD runs' "$INSPECT" flame -o inspect.data -- touch ran
exits 125 '--markdown onto a recording' "$INSPECT" report --markdown inspect.data in.folded
ok 'cmp inspect.data kept.data && [ ! -e ran ]' 'it is as it was'

# --- stdout by its names, and files that are whole or not there ---
"$INSPECT" flame -q in.folded >want.svg
{
	echo head
	"$INSPECT" flame -q -o /dev/stdout in.folded
	echo tail
} >all
is "$(sed '1d;$d' all)" "$(cat want.svg)" '-o /dev/stdout goes on where stdout is'
{
	echo head
	"$INSPECT" report --markdown /dev/stdout in.folded
} >all
like "$(sed 1q all)" '^head$' '--markdown /dev/stdout as well'
like "$("$INSPECT" report --markdown - in.folded)" '\| *75.00% *\|.* a ' '--markdown - is stdout'
unlike "$("$INSPECT" report --markdown - in.folded)" '^# file' 'instead of the table'
exits 2 '--markdown - with --json' "$INSPECT" report --markdown - --json in.folded
exits 125 '--markdown on a full device' "$INSPECT" report --markdown /dev/full in.folded
like "$(cat err)" 'No space left' 'says so'
exits 0 '--markdown FILE' "$INSPECT" report --markdown r.md in.folded
ok '[ -s r.md ] && ! ls | grep -q part' 'is written, and nothing beside it'
exits 125 'a folder that is not there' "$INSPECT" flame -o none/x.svg in.folded
like "$(cat err)" "mkdir -p 'none'" 'is to be made'

# --- no FILE ---
cp in.folded data.folded
is "$("$INSPECT" report <in.folded 2>err | sed 1d)" "$("$INSPECT" report in.folded | sed 1d)" 'report reads stdin'
like "$(cat err)" 'inspect report: reading .* from stdin' 'and says so'
# shellcheck disable=SC2002 # a pipe is meant
is "$(cat in.folded | "$INSPECT" report -q 2>&1 | sed 1d)" "$("$INSPECT" report in.folded | sed 1d)" 'from a pipe'
like "$("$INSPECT" report </dev/null)" '# file: inspect.data' 'else inspect.data'
like "$("$INSPECT" diff in.folded <in.folded 2>/dev/null)" '# after: stdin: 4 samples' 'diff BEFORE reads AFTER from stdin'
exits 2 'diff BEFORE without' "$INSPECT" diff in.folded
