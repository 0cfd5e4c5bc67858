#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Code made at run time: jitdump by time, perf maps, and neither.
. "$(dirname "$0")/lib.sh"
# Percent of all samples whose leaf is a function
self() {
	"$INSPECT" report --json --all "$1" |
		jq --arg name "$2" '[.functions[] | select(.function == $name).self_percent] | add // 0'
}
truth() {
	awk -v name="$1" '{ all += $2 } $1 == name { part = $2 } END { print 100 * part / all }' "$tmp/truth"
}
notes() {
	"$INSPECT" report --json "$1" | jq -r '.notes[]'
}
same_shares() {
	local name
	for name in jit_red jit_green jit_blue; do
		near "$(self "$1" $name)" "$(truth $name)" 6 "$2: $name has its share"
	done
}

# --- jitdump: one place, three functions, one after the other ---
"$INSPECT" record -q -F 999 -o "$tmp/dump.data" -- "$W/jitdump" 1.2 "$tmp" >"$tmp/truth"
if [ $? = 77 ]; then
	skip_all 'no machine code for this processor in the workload'
fi
dump=$(echo "$tmp"/jit-*.dump)
mv "$dump" "$tmp/kept"
same_shares "$tmp/dump.data" 'names from the recording, the dump gone'
like "$("$INSPECT" flame --folded "$tmp/dump.data")" 'main;call_jit;jit_red_\[j\] [0-9]+' \
	'jitdump: in its place in the stacks'
unlike "$("$INSPECT" flame --folded "$tmp/dump.data")" '\[jit\] 0x' 'jitdump: no code without a name'

# --- a program that is execed writes to the same file: the code of the one before has no names ---
"$INSPECT" record -q -F 999 -o "$tmp/again.data" -- "$W/jitdump" 0.6 "$tmp" again >"$tmp/truth"
rm "$tmp"/jit-*.dump
sed -i '1,3s/jit/before/' "$tmp/truth"
same_shares "$tmp/again.data" 'exec'

# --- the same of perf's recording, with the dump on this machine ---
if perf record -q -k mono -F 999 -g -o "$tmp/perf.data" -- "$W/jitdump" 1.2 "$tmp" >"$tmp/truth" 2>&1; then
	dump=$(echo "$tmp"/jit-*.dump)
	same_shares "$tmp/perf.data" "perf's recording, the dump at hand"
	# perf's own way: its names by time are in a second file.
	if (cd "$tmp" && perf inject --jit -i perf.data -o injected.data) >"$tmp/out" 2>&1; then
		near "$(self "$tmp/injected.data" jit_red)" "$(truth jit_red)" 6 \
			"after perf inject: perf's own files"
	else
		skip 'perf inject --jit does not work here'
	fi
	chown 65534 "$dump"
	like "$(notes "$tmp/perf.data")" "jit-[0-9]+.dump is not used: it belongs to another user" \
		"another user's dump is refused, with a note"
	is "$(self "$tmp/perf.data" jit_red)" 0 "another user's dump: no name of it"
	chown "$(id -u)" "$dump"
	mv "$dump" "$tmp/real" && ln -s real "$dump"
	like "$(notes "$tmp/perf.data")" 'is not used: it is reached through a symlink' \
		'a symlink is refused, with a note'
	rm "$dump" && mkfifo "$dump"
	like "$(notes "$tmp/perf.data")" 'is not used: it is no plain file' 'a FIFO is refused, with a note'
	rm "$dump" && cp "$tmp/real" "$dump"
	like "$(notes "$tmp/perf.data")" 'is not used: another file has its name now' \
		'a copy is another file, with a note'
	rm "$dump"
else
	skip 'perf record does not work here' 9
fi

# --- a real compiler ---
if command -v node >/dev/null; then
	cat >"$tmp/spin.js" <<-'END'
		function spin_long(x) { let s = 0; for (let i = 0; i < 9e4; i++) s += Math.sqrt(i * x); return s }
		function spin_short(x) { let s = 0; for (let i = 0; i < 3e4; i++) s += Math.sqrt(i * x); return s }
		function top() { let s = 0
			while (process.cpuUsage().user < 9e5) s += spin_long(3) + spin_short(4); return s }
		top()
	END
	(cd "$tmp" && "$INSPECT" record -q -F 999 -o node.data -- node --perf-prof spin.js)
	rm -f "$tmp"/jit-*.dump
	"$INSPECT" report --json --all "$tmp/node.data" >"$tmp/json"
	share() {
		jq --arg name "$1" '[.functions[] | select(.function | test("[*~^]" + $name + " ")).self_percent] | add' "$tmp/json"
	}
	near "$(share spin_long)" "$(awk -v s="$(share spin_short)" 'BEGIN { print 3 * s }')" 12 \
		'node --perf-prof: one function has thrice the time of the other'
else
	skip 'no node'
fi
