#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# The ladder, and each command's help.
. "$(dirname "$0")/lib.sh"

exits 0 '--help' "$INSPECT" --help
overview=$(cat "$tmp/out")
ok '[ ! -s "$tmp/err" ]' 'on stdout alone'
exits 0 '-h' "$INSPECT" -h
is "$(cat "$tmp/out")" "$overview" 'is the same'
exits 0 'help' "$INSPECT" help
is "$(cat "$tmp/out")" "$overview" 'is the same'

commands=$(sed -n 's/^    inspect \([a-z]*\)  *[a-z].*/\1/p' <<<"$overview" | grep -v '^record$' | sort -u)
commands="record $commands"
ok '[ "$(wc -w <<<"$commands")" -ge 5 ]' 'the overview lists the commands'
for name in $commands; do
	like "$overview" "[?]"$'\n'"    inspect $name " "$name stands under a question"
	exits 0 "$name --help" "$INSPECT" $name --help
	help=$(cat "$tmp/out")
	like "$help" "^usage: inspect $name " "$name: usage first"
	like "$help" $'\n'"  -h, --help " "$name: and the options"
	is "$(COLUMNS=80 "$INSPECT" $name --help | LC_ALL=C.UTF-8 grep -E '.{81}')" '' "$name: no line is wider than the terminal"
	exits 0 "help $name" "$INSPECT" help $name
	is "$(cat "$tmp/out")" "$help" 'is the same'
	exits 0 "$name -h after other options" "$INSPECT" $name -v -h --nonsense
	is "$(cat "$tmp/out")" "$help" 'is the same'
done
exits 2 'help for what is none' "$INSPECT" help nosuch
like "$(cat "$tmp/err")" "there is no command 'nosuch'" 'says so'

# CMD's own --help is his, with and without --.
is "$("$INSPECT" record -q -o "$tmp/x.data" -- printf '%s.' --help -h)" --help.-h. 'CMD keeps its own --help'
is "$("$INSPECT" record -q -o "$tmp/y.data" printf '%s.' --help -h)" --help.-h. 'also without --'
