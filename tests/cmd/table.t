#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Tables as people see them: on a terminal of some size, and in a pipe.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
long=$(printf 'std::vector<%0300d>::push_back' 7)
for i in $(seq 60); do echo "main;f$i $i"; done >in.folded
echo "main;$long 5" >>in.folded

# --- a pipe ---
"$INSPECT" report in.folded >out
is "$(grep -cE ' $' out)" 0 'no row is padded at its end'
ok 'grep -q "^0.*  $long\$" <("$INSPECT" report --all in.folded)' 'and no name is cut'
is "$(grep -c '%' out)" 41 '40 rows, and the quality of stacks'

# --- many events ---
for e in one two three four five; do printf 'x 1 1.0: 1 %s:\n\t1 f (/bin/x)\n\n' $e; done >many.txt
like "$("$INSPECT" report many.txt)" $'\n# samples: 5 of one, two, three and 2 more\n' 'the head lists three events'

command -v script >/dev/null || {
	skip 'no script(1) here, which makes a terminal' 15
	exit 0
}
# on ROWS COLUMNS ARG…: what a terminal of that size shows
on() {
	local size="rows $1 cols $2"
	shift 2
	TERM=dumb script -qec "stty $size; \"\$INSPECT\" $*" /dev/null | tr -d '\r'
}
shown=$(on 30 80 report in.folded)
ok "[ $(wc -l <<<"$shown") -le 29 ] && [ $(grep -c '  f[0-9]' <<<"$shown") -ge 15 ]" 'the table fits the terminal'
like "$shown" '… [0-9]+ more rows: --all' 'and says what is left out'
is "$(on 8 80 report in.folded | grep -c '  f[0-9]')" 5 'at least five rows'
# A long name is cut in its middle, on the terminal and nowhere else.
like "$(on 24 80 report --all in.folded)" '  std::vector<0+…0+7>::push_back' 'a long name is cut in its middle'
is "$(on 24 80 report --all in.folded | grep -v '^#' | awk '{ gsub("…", "."); if (length > 80) print }' | wc -l)" 0 \
	'no row is wider than the terminal'
for how in --json --csv --tree; do
	ok "grep -qF '$long' <('$INSPECT' report $how --all --min-percent 0 in.folded)" "$how has all of it"
done
ok "grep -qF '$long' <('$INSPECT' flame --folded in.folded)" 'and folded text'
ok "grep -qF '$(printf 'std::vector&lt;%0300d&gt;::push_back' 7)' <('$INSPECT' flame in.folded) ||
	grep -qF '$long' <('$INSPECT' flame in.folded)" 'and the flame graph'
is "$(on 8 80 report --top 12 in.folded | grep -c '  f[0-9]')" 12 '--top is kept to'
is "$(on 8 80 report --all in.folded | grep -c '  f[0-9]')" 60 'and --all'
{
	cat in.folded
	for i in $(seq 9); do echo "no stack $i.5.5"; done
} >notes.folded
is "$(on 24 60 report --top 2 notes.folded | awk 'length > 60' | wc -l)" 0 'no line is wider than the terminal'
like "$(on 24 44 report --top 2 notes.folded)" $'\n# note: 9 lines could not be read and were\n#   skipped: line 62, 63, 64, …\n' \
	'long lines of the head go on in the next line'
is "$(on 24 80 doctor | awk 'length > 80' | wc -l)" 0 'doctor: no line is wider than the terminal'
