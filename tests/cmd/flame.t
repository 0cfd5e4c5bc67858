#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# inspect flame: from a file, from text and live; the picture as a file, and the folded stacks.
# (What a browser does with the picture: flame_browser.t.)
. "$(dirname "$0")/lib.sh"
profiles=$PWD/tests/cmd/profiles.py
cd "$tmp" || exit 1
flame() {
	"$INSPECT" flame "$@"
}
folded() {
	flame --folded "$@"
}
well_formed() {
	python3 -c 'import sys, xml.dom.minidom as x; d = x.parse(sys.argv[1]); assert d.documentElement.tagName == "svg"' "$1"
}
# x and width of the rectangle whose title begins with a name: for the layout
"$INSPECT" record -q -F 999 -o inspect.data -- "$W/shares" 1.5 >/dev/null

# --- text in ---
printf 'a;b;c 3\na;b 1\na;d 2\n' >small
is "$(folded small)" "$(printf 'a;b 1\na;b;c 3\na;d 2')" 'folded stacks come out as they went in, in order'
is "$(folded -q <small)" "$(folded small)" 'the same from stdin'
is "$(folded - <small)" "$(folded small)" 'and from -'
is "$(folded -i small)" "$(folded small)" 'and with -i'
is "$(printf 'a;b 1\na;b 2\n' | folded -q)" 'a;b 3' 'equal stacks are one'
is "$(printf 'a;b 1\r\na;c 2\r\n' | folded -q)" "$(printf 'a;b 1\na;c 2')" 'CRLF'
is "$(printf '\xef\xbb\xbfa;b 1\na;c 2' | folded -q)" "$(printf 'a;b 1\na;c 2')" 'a byte-order mark, and no newline at the end'
is "$(printf 'a;b 1\na;c 2\n' | iconv -t UTF-16 | folded -q)" "$(printf 'a;b 1\na;c 2')" 'UTF-16'
is "$(printf '# x\n\na;b c;operator new(unsigned long, int) 7\n' | folded -q)" \
	'a;b c;operator new(unsigned long, int) 7' 'comments, empty lines, spaces in names'
printf 'a;b 1\nno weight here\na;c 2\n' | folded -q >out 2>err
is "$(cat out)" "$(printf 'a;b 1\na;c 2')" 'a broken line costs only itself'
exits 125 'a text without any stack' sh -c 'echo nonsense | "$INSPECT" flame --folded'
is "$(cat out)" '' 'gives no output'
like "$(cat err)" 'stdin' 'and one line that names it'
exits 125 'an empty stdin' sh -c ': | "$INSPECT" flame --folded'
sample='prog  %d/%d [000] 1.%d: %8d cpu-clock: \n\t    401136 leaf_%d+0x6 (/tmp/prog)\n\t    401156 main+0x16 (/tmp/prog)\n\t    7f00 [unknown] (/usr/lib/libx.so)\n'
{
	printf "$sample" 11 12 1 100 1
	echo
	printf "$sample" 11 12 2 150 2
} >script.txt
is "$(folded script.txt)" "$(printf 'prog;[libx.so];main;leaf_1 100\nprog;[libx.so];main;leaf_2 150')" \
	'perf script text: weights are periods, and the last stack is not lost'
is "$(sed 's/$/\r/' script.txt | folded -q)" "$(folded script.txt)" 'perf script text with CRLF'
is "$({ printf '\xef\xbb\xbf'; cat script.txt; } | folded -q)" "$(folded script.txt)" 'perf script text with a byte-order mark'
perf script -i inspect.data 2>/dev/null >perf.txt
stacks=$(grep -c '^$' perf.txt)
# Without the period in its header a sample counts as one.
perf script -i inspect.data -F comm,tid,event,ip,sym,dso 2>/dev/null | sed '$ { /^$/d }' | folded -q >cut.folded
is "$(awk '{ n += $NF } END { print n }' cut.folded)" "$stacks" \
	'each of its samples is there, without a last blank line too'

# --- from a file ---
folded >out 2>err </dev/null
is "$(cat out)" "$(folded inspect.data)" 'without a FILE it is inspect.data'
like "$(grep -m 1 level_40 out)" '^shares;.*main;spend;level_01;.*;level_40;burn_[a-z]+ [0-9]+$' 'root first, below the thread'
near "$(python3 "$profiles" through burn_sixty <out)" 60 5 'with the shares'
flame inspect.data >a.svg
flame inspect.data >b.svg
ok 'cmp a.svg b.svg' 'the same input gives the same bytes'
ok 'well_formed a.svg' 'well-formed XML'
is "$(grep -cE '(href|src)="?(https?:)?//|@import|url\(http' a.svg)" 0 'nothing is loaded from elsewhere'
ok 'grep -q level_20 a.svg && grep -q burn_ten a.svg' 'with the names'
folded inspect.data >in.folded
flame in.folded >from-folded.svg
ok 'well_formed from-folded.svg && grep -q level_20 from-folded.svg' 'the same from folded stacks'
flame --title '<T> & "q"' inspect.data >t.svg
ok 'well_formed t.svg && grep -q "&lt;T&gt; &amp;" t.svg' '--title, escaped'
flame --icicle inspect.data >icicle.svg
flame --reverse inspect.data >reverse.svg
ok 'well_formed icicle.svg && ! cmp -s icicle.svg a.svg' '--icicle is another picture'
ok 'well_formed reverse.svg && ! cmp -s reverse.svg a.svg' '--reverse is another picture'
# The rectangles of the static view: shares of the width, one row for each level.
python3 - a.svg >layout <<'END'
import sys, re, xml.dom.minidom as dom
svg = dom.parse(sys.argv[1])
boxes = {}
for group in svg.getElementsByTagName("g"):
    title = [n for n in group.childNodes if n.nodeName == "title"]
    rect = [n for n in group.childNodes if n.nodeName == "rect"]
    if title and rect and title[0].firstChild:
        name = re.split(r"[ (]", title[0].firstChild.data)[0]
        box = [float(rect[0].getAttribute(k).rstrip("%") or 0) for k in ("x", "y", "width")]
        boxes.setdefault(name, []).append(box)
wide = max(box[2] for box in boxes["main"])
for name in ("burn_sixty", "burn_thirty", "burn_ten"):
    print(name, 100 * sum(box[2] for box in boxes[name]) / wide)
print("levels", len({boxes[f"level_{n:02}"][0][1] for n in range(1, 41)}))
END
near "$(awk '/burn_sixty/ { print $2 }' layout)" 60 5 'drawn as wide as it is: burn_sixty'
near "$(awk '/burn_thirty/ { print $2 }' layout)" 30 5 'drawn as wide as it is: burn_thirty'
is "$(awk '/levels/ { print $2 }' layout)" 40 'each of the 40 calls in a row of its own'

# --- output ---
exits 0 '-o writes a file' "$INSPECT" flame -o o.svg inspect.data
ok 'cmp o.svg a.svg && [ ! -s out ]' 'with the same bytes'
like "$(cat err)" 'open it in a browser' 'and says what to do with it'
exits 125 'a failure' "$INSPECT" flame -o none.svg none.data
ok '[ ! -e none.svg ] && [ -z "$(ls | grep part)" ]' 'leaves no file'
echo keep >keep.svg
exits 125 'and with a file there' "$INSPECT" flame -o keep.svg none.data
is "$(cat keep.svg)" keep 'the file stays'
exits 125 'a folder that is not there' "$INSPECT" flame -o none/x.svg inspect.data
like "$(cat err)" 'none/x.svg' 'is named'
exits 125 'a full device' "$INSPECT" flame -o /dev/full inspect.data
like "$(cat err)" 'No space left' 'is said'
exits 125 'a closed stdout pipe or full stdout' sh -c '"$INSPECT" flame inspect.data >/dev/full'
like "$(cat err)" 'No space left' 'is said'
if command -v script >/dev/null; then
	script -qec '"$INSPECT" flame inspect.data; echo "exit $?"' /dev/null >tty.out 2>&1 </dev/null
	like "$(cat tty.out)" 'exit 2' 'a terminal as stdout is refused'
	like "$(cat tty.out)" 'flame.*> flame.svg' 'with what to do instead'
	ok '! grep -q "<svg" tty.out' 'and nothing of the picture'
else
	skip 'no script(1) here, which makes a terminal' 3
fi
exits 2 'two files' "$INSPECT" flame inspect.data small
exits 125 'an event that is not there' "$INSPECT" flame --event nonsense inspect.data
like "$(cat err)" 'no event .nonsense' 'is named, with those that are'

# --- live ---
flame -F 999 -- "$W/exits" 0.5 7 >live.svg 2>err
is $? 7 'flame -- CMD: its exit code'
ok 'well_formed live.svg && grep -q burn_until live.svg' 'flame -- CMD: the picture'
"$W/shares" 60 >/dev/null &
busy=$!
flame -p $busy -F 999 -d 0.7 >live.svg 2>err
is $? 0 'flame -p PID -d TIME'
ok 'well_formed live.svg && grep -q burn_sixty live.svg && [ ! -e inspect.data.old ]' 'the picture, and no recording'
near "$(flame --folded -p $busy -F 999 -d 1 2>/dev/null | python3 "$profiles" through burn_sixty)" 60 8 \
	'flame --folded -p PID: the shares'
kill $busy
exits 127 'flame -- CMD that is not there' "$INSPECT" flame -- /nonexistent/program
is "$(cat out)" '' 'no picture of nothing'

# --- several events ---
"$INSPECT" record -q -F 499 -e cpu-clock,task-clock -o two.data -- "$W/exits" 0.6 0
one=$(folded --event cpu-clock two.data | awk '{ n += $NF } END { print n }')
other=$(folded --event task-clock two.data | awk '{ n += $NF } END { print n }')
default=$(folded two.data 2>err | awk '{ n += $NF } END { print n }')
ok "[ $one -gt 0 ] && [ $other -gt 0 ] && [ $default = $one ]" 'several events: one at a time, the first by default'
like "$(cat err)" 'task-clock|event' 'several events: not silently'

# --- a picture of the page, which is taller than the window ---
if command -v chromium >/dev/null; then
	awk 'BEGIN { for (i = 0; i < 150; i++) printf "f%d;", i; print "leaf 10" }' | flame -q -o tall.svg -
	HOME=$tmp timeout 60 chromium --headless --no-sandbox --disable-gpu --window-size=1200,900 \
		--screenshot="$tmp/shot.png" "file://$tmp/tall.svg" >/dev/null 2>&1
	ok '[ "$(stat -c %s shot.png)" -gt 15000 ]' 'a headless screenshot of a tall picture is not blank'
else
	skip 'no chromium here'
fi
