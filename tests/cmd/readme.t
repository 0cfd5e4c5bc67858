#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# README.md shows commands that exist, files that are there, and output as it looks today.
. "$(dirname "$0")/lib.sh"

# Every `inspect …` of the page, one a line, up to a pipe, a redirection or the like.
python3 - >"$tmp/commands" <<'END_PYTHON'
import re

page = open("README.md", encoding="utf-8").read()
code = re.findall(r"```\n(.*?)```", page, re.S)
lines = [line for block in code for line in block.replace("\\\n", " ").splitlines()
         if not line.startswith(("#", "  fix:", "   or:"))]
lines += re.findall(r"`([^`\n]+)`", re.sub(r"```\n.*?```", "", page, flags=re.S))
for line in lines:
    line = re.sub(r"\"?\$\((?:[^()]|\([^)]*\))*\)\"?", "1", line).replace("\\|", "|")
    for part in re.split(r"\||&&|;|>|2>&1", line):
        found = re.search(r"(?:^|[\s$])(inspect (?!record:|report:|flame:)\S.*)", part)
        if found and not found[1].startswith("inspect IMAGE"):
            print(re.sub(r"\s+#.*", "", found[1]).strip())
END_PYTHON
sort -u -o "$tmp/commands" "$tmp/commands"
ok '[ "$(wc -l <"$tmp/commands")" -gt 15 ]' 'the page shows commands'

# Each is parsed by the command itself: --help stands behind its options, before CMD.
while read -r line; do
	read -ra words <<<"$line"
	arguments=()
	asked=
	for word in "${words[@]:1}"; do
		[ "$word" != -- ] || { arguments+=(--help) asked=1; }
		arguments+=("$word")
	done
	[ -n "$asked" ] || arguments+=(--help)
	exits 0 "parses: $line" "$INSPECT" "${arguments[@]}"
	like "$(head -n 1 "$tmp/out")" "inspect ${words[1]}" "… as '${words[1]}'"
done <"$tmp/commands"

for name in $("$INSPECT" --help | sed -n 's/^ *inspect \([a-z]\{1,\}\)  .*/\1/p'); do
	ok "grep -q 'inspect $name' README.md" "the page knows inspect $name"
	ok "! grep -q 'planned: .*\`$name\`' README.md" "$name is not called planned"
done

for target in $(grep -oE '(^|`)make [a-z-]+' README.md | sed 's/.*make //' | sort -u); do
	ok "make -n -s $target" "make $target is a target"
done
for file in $(grep -oE '\]\([^)#]+\)' README.md | tr -d '])(' | sort -u); do
	ok "[ -e '$file' ]" "$file is there"
done
for file in $(grep -oE '`(tests|docs|scripts)/[^`* ]+`' README.md | tr -d '`' | sort -u); do
	ok "[ -e '$file' ]" "$file is there"
done

ok '[ "$(stat -c %s docs/images/flame.svg)" -lt 300000 ]' 'the picture has less than 300 KB'
ok 'python3 -c "import xml.dom.minidom as m; m.parse(\"docs/images/flame.svg\")"' 'the picture is XML'

# What the page shows, with every number and every blank run of it made alike.
shape() {
	sed -nE '/^#|^ *(share|self|pid) /{s/[0-9][0-9.,]*/0/g; s/ +/ /g; s/ $//; p}' |
		sed -E 's/^(# [a-z -]+:).*/\1/' | sort -u
}
shown() {
	sed -n "/<!-- output: $1 -->/,/<!-- end -->/p" README.md
}
"$INSPECT" record -F 999 -o "$tmp/a.data" -- "$W/shares" 0.5 >"$tmp/out" 2>"$tmp/record.txt"
"$INSPECT" report "$tmp/a.data" 2>&1 | sed -n '/^# cpu-clock/,$p' >"$tmp/report.txt"
for name in record report; do
	is "$(shown $name | shape | grep -v '^# \(note\|without a name\)')" \
		"$(shape <"$tmp/$name.txt" | grep -v '^# \(note\|without a name\)')" \
		"the output of $name looks as the page shows it"
done
