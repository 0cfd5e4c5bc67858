#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Names are those of the code that ran, travel with the file, and are safe in every output.
. "$(dirname "$0")/lib.sh"
record() {
	"$INSPECT" record -q -F 999 "$@"
}
leaves() {
	"$INSPECT" report --json --all "$@" | jq -r '.functions[] | select(.self_samples > 0).function'
}
# has_share FILE FUNCTION PERCENT NAME: its share of the samples in the program itself, as near as
# their number allows
has_share() {
	local share samples
	read -r share samples < <("$INSPECT" report --json --all "$1" | jq -r --arg name "$2" '
		def samples: map(.self_samples) | add // 0;
		[.functions[] | select(.kind != "kernel")] |
		"\(100 * (map(select(.function == $name)) | samples) / ([samples, 1] | max)) \(samples)"')
	near "$share" "$3" "$(chance "$3" "$samples")" "$4"
}

# --- a binary that is replaced, or removed, while it runs ---
for how in replaced removed; do
	mkdir "$tmp/$how"
	cp "$W/shares" "$tmp/$how/prog"
	"$tmp/$how/prog" 1.6 >/dev/null &
	pid=$!
	sleep 0.2
	rm "$tmp/$how/prog"
	[ $how = removed ] || cp "$W/exits" "$tmp/$how/prog"
	record -d 1 -o "$tmp/$how.data" -p $pid
	wait $pid
	has_share "$tmp/$how.data" burn_sixty 60 "$how while it runs: the names of what runs"
	unlike "$(leaves "$tmp/$how.data")" 'burn_until|\+0x' "$how while it runs: nothing else"
done
mkdir "$tmp/later"
cp "$W/shares" "$tmp/later/prog"
record -o "$tmp/later.data" -- "$tmp/later/prog" 1 >/dev/null
rm -r "$tmp/later"
has_share "$tmp/later.data" burn_sixty 60 'removed after it ran: the names are in the file'
mkdir "$tmp/moved"
mv "$tmp/later.data" "$tmp/moved/x"
has_share "$tmp/moved/x" burn_thirty 30 'and go with it to another folder'
like "$("$INSPECT" flame --folded "$tmp/moved/x")" 'main;.*level_01;.*level_40;burn_ten ' \
	'all names of its stacks'

# --- code that a program makes itself ---
record -o "$tmp/jit" -- "$W/jitmap" 1 jit_spin >"$tmp/truth"
if [ $? = 77 ]; then
	skip 'no machine code for this processor in the workload' 6
else
	by_perf=$(perf script -G -F ip,sym -i "$tmp/jit" 2>/dev/null | grep -cw jit_spin)
	pid=$(perf script -F pid -i "$tmp/jit" 2>/dev/null | grep -m 1 . | tr -d ' ')
	rm -f "/tmp/perf-$pid.map"
	jit=$(awk '$1 == "jit" { all = $2 } $1 == "callback" { print 100 * (all - $2) / all }' "$tmp/truth")
	has_share "$tmp/jit" jit_spin "$jit" 'JIT code with a map: named, with its share'
	is "$("$INSPECT" report --json --all "$tmp/jit" |
		jq '[.functions[] | select(.function == "jit_spin").self_samples] | add')" "$by_perf" \
		'JIT code with a map: in as many samples as perf says'
	like "$("$INSPECT" flame --folded "$tmp/jit")" 'main;call_jit;jit_spin_\[j\];called_from_jit ' \
		'JIT code with a map: in its place in the stacks'
	record -o "$tmp/jit" -- "$W/jitmap" 1 >"$tmp/truth"
	stacks=$("$INSPECT" flame --folded "$tmp/jit")
	like "$stacks" 'main;call_jit;\[jit\] 0x[0-9a-f]+_\[j\] [0-9]+' 'JIT code without a map: says so'
	like "$stacks" 'main;call_jit;\[jit\] 0x[0-9a-f]+_\[j\];called_from_jit ' \
		'JIT code without a map: its callers are kept'
	"$W/jitmap" 2 >/dev/null &
	pid=$!
	sleep 0.1
	# A map that another user has made is not believed.
	echo '0 ffffffffffffffff evil' >"/tmp/perf-$pid.map"
	chown 65534 "/tmp/perf-$pid.map"
	record -d 0.5 -o "$tmp/jit" -p $pid
	unlike "$(leaves "$tmp/jit")" evil "JIT: another user's map is not believed"
	kill $pid
	rm -f "/tmp/perf-$pid.map"
fi

# --- hostile names: threads, files, a command ---
mkdir "$tmp/a;b <i>&\"'"
cp "$W/names" "$tmp/a;b <i>&\"'/n;<b>&"
"$INSPECT" record -F 1999 -o "$tmp/hostile" -- "$tmp/a;b <i>&\"'/n;<b>&" 2 >"$tmp/truth" 2>"$tmp/summary"
"$INSPECT" report --sort comm,dso,symbol --all "$tmp/hostile" >"$tmp/text" 2>&1
"$INSPECT" report --sort comm,dso,symbol --all --color=always "$tmp/hostile" >"$tmp/colored" 2>&1
"$INSPECT" report --sort comm,symbol --tree "$tmp/hostile" >"$tmp/tree" 2>&1
"$INSPECT" report --sort tid,comm --all --json "$tmp/hostile" >"$tmp/json"
"$INSPECT" report --sort tid,comm --all --csv "$tmp/hostile" >"$tmp/csv" 2>/dev/null
"$INSPECT" flame "$tmp/hostile" >"$tmp/svg"
"$INSPECT" flame --folded "$tmp/hostile" >"$tmp/folded"
echo 'a;b 1' | "$INSPECT" flame >"$tmp/ordinary" 2>/dev/null
for file in summary text tree json csv svg folded; do
	is "$(tr -d '\n\t' <"$tmp/$file" | LC_ALL=C grep -c '[[:cntrl:]]')" 0 \
		"hostile names: no control character in the $file"
	ok "iconv -f UTF-8 -t UTF-8 '$tmp/$file' >/dev/null" "hostile names: the $file is UTF-8"
done
is "$(sed 's/\x1b\[[0-9;]*m//g' "$tmp/colored" | tr -d '\n\t' | LC_ALL=C grep -c '[[:cntrl:]]')" 0 \
	'hostile names: colour is the only escape'
unlike "$(cat "$tmp/text" "$tmp/summary" "$tmp/tree")" $'\u202e' 'hostile names: nothing turns the text around'
TMP=$tmp python3 - >"$tmp/checked" <<'END'
import csv, json, os, xml.dom.minidom

base = os.environ["TMP"] + "/"
names = {int(tid): bytes.fromhex(name) for tid, _, name in
         (line.rstrip("\n").partition(" ") for line in open(base + "truth"))}


def check(what, good):
    print(f"{what}: {'good' if good else 'BAD'}")


def printable(name):
    return name.isascii() and name.decode().isprintable()


# Before its name is set a thread has that of the process.
plain = {(tid, name.decode()) for tid, name in names.items() if printable(name)}
rows = {(row["tid"], row["comm"]) for row in json.load(open(base + "json"))["functions"]}
check("json: every thread", set(names) <= {tid for tid, _ in rows})
check("json: plain names are unchanged", plain <= rows)
check("json: names stay apart", len({name for _, name in rows}) >= len(names))
lines = list(csv.reader(line for line in open(base + "csv", newline="") if not line.startswith("#")))
head = lines[0]
table = {(int(line[head.index("tid")]), line[head.index("comm")]) for line in lines[1:]}
check("csv: as many columns everywhere", len(set(map(len, lines))) == 1)
check("csv: every thread", set(names) <= {tid for tid, _ in table})
check("csv: plain names are unchanged", plain <= table)
svg = xml.dom.minidom.parse(base + "svg")
titles = [node.firstChild.data for node in svg.getElementsByTagName("title") if node.firstChild]
check("svg: well-formed, with titles", any("burn_named" in title for title in titles))
check("svg: no element out of a name", not svg.getElementsByTagName("b"))
ordinary = xml.dom.minidom.parse(base + "ordinary")
check("svg: no script but ours",
      len(svg.getElementsByTagName("script")) == len(ordinary.getElementsByTagName("script")))
stacks = [line.rstrip("\n").rsplit(" ", 1) for line in open(base + "folded")]
check("folded: weights", all(weight.isdigit() for _, weight in stacks))
roots = {stack.split(";")[0] for stack, _ in stacks}
check("folded: a semicolon is a colon", "semi:colon" in roots)
frames = {frame for stack, _ in stacks for frame in stack.split(";")}
check("folded: no name is cut in two", not frames & {"colon", "semi", "n", "<b>&", "new", "line"})
END
while IFS= read -r line; do
	like "$line" ': good$' "hostile names, ${line%: *}"
done <"$tmp/checked"
is "$(wc -l <"$tmp/checked")" 12 'hostile names: all of that was looked at'
