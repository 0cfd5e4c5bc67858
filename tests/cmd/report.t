#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# inspect report: exact tables from text, and counts of recordings against perf script.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

# The rows of a table, without its head
rows() {
	"$INSPECT" report "$@" 2>err | sed '/^#/d; /^$/d'
}

cat >in.folded <<'END'
main;parse;alloc 30
main;parse 20
main;run;step;alloc 25
main;run;step;run;step 15
main;run 9
main;exit 1
END

# --- the default table ---
is "$(rows in.folded)" '  self    total  samples  module  function
55.00%   55.00%       55          alloc
20.00%   50.00%       20          parse
15.00%   40.00%       15          step
 9.00%   49.00%        9          run
 1.00%    1.00%        1          exit
 0.00%  100.00%        0          main' 'self and total; a recursive function once'
like "$("$INSPECT" report in.folded)" $'^# file: in.folded\n' 'the head names the file'
like "$("$INSPECT" report in.folded)" $'\n# samples: 100 of samples\n# lost: 0\n' 'and has the quality block'
is "$(rows in.folded --top 2)" '  self   total  samples  module  function
55.00%  55.00%       55          alloc
20.00%  50.00%       20          parse
… 4 more rows: --all' '--top'
is "$("$INSPECT" report -i in.folded)" "$("$INSPECT" report in.folded)" '-i FILE is FILE'
is "$("$INSPECT" report - <in.folded | sed 1d)" "$("$INSPECT" report in.folded | sed 1d)" '- is stdin'
for i in $(seq 100); do echo "main;f$i $i"; done >long.folded
is "$(rows long.folded | tail -n 1)" '… 61 more rows: --all' '40 rows by default'
is "$(rows long.folded --all | wc -l)" 102 '--all has all'
is "$("$INSPECT" report long.folded --json | jq '.functions | length')" 101 '--json has all'
is "$("$INSPECT" report long.folded --json --top 3 | jq -c '[.functions[].self_samples]')" '[100,99,98]' \
	'--json --top'

# --- trees ---
is "$(rows in.folded --tree)" '  total    self  samples  function
100.00%   0.00%      100  main
 50.00%  20.00%       50  ├─ parse
 30.00%  30.00%       30  │  alloc
 49.00%   9.00%       49  ├─ run
 40.00%   0.00%       40  │  step
 25.00%  25.00%       25  │  ├─ alloc
 15.00%   0.00%       15  │  └─ run
 15.00%  15.00%       15  │     step
  1.00%   1.00%        1  └─ exit' '--tree'
is "$(rows in.folded --tree --min-percent 26)" '  total    self  samples  function
100.00%   0.00%      100  main
 50.00%  20.00%       50  ├─ parse
 30.00%  30.00%       30  │  alloc
 49.00%   9.00%       49  └─ run
 40.00%   0.00%       40     step' '--min-percent'
like "$("$INSPECT" report in.folded --tree --min-percent 26)" '3 branches below 26 % are not shown' \
	'and says how much is left out'
is "$(rows in.folded --callers alloc)" ' total  samples  function
55.00%       55  alloc
30.00%       30  ├─ parse
30.00%       30  │  main
25.00%       25  └─ step
25.00%       25     run
25.00%       25     main' '--callers'
is "$(rows in.folded --callees run)" ' total    self  samples  function
49.00%   9.00%       49  run
40.00%   0.00%       40  step
25.00%  25.00%       25  ├─ alloc
15.00%   0.00%       15  └─ run
15.00%  15.00%       15     step' '--callees, each sample once'
is "$(rows in.folded --callees pars | head -2 | tail -1)" '50.00%  20.00%       50  parse' \
	'a part that only one name has'
exits 2 'a part of several names is refused' "$INSPECT" report in.folded --callers a
like "$(cat err)" "fix: --callers 'main'.*or: --callers 'parse'" 'and they are listed'
exits 125 'a function that is not there' "$INSPECT" report in.folded --callers nothing
like "$(cat err)" "no function 'nothing'" 'is named'

# --- events, groups and filters, from perf script text ---
cat >in.txt <<'END'
red 10/10 [000] 1.000000: 100 cycles:
	1 f+0x1 (/lib/x.so)
	2 main+0x1 (/bin/prog)

red 10/11 [000] 2.000000: 300 cycles:
	3 g+0x1 (/lib/x.so)
	2 main+0x1 (/bin/prog)

blue 20/20 [001] 3.000000: 600 cycles:
	4 f+0x1 (/lib/y.so)
	2 main+0x1 (/bin/prog)

blue 20/20 [001] 4.000000: 1 page-faults:
	4 f+0x1 (/lib/y.so)
END
is "$(rows in.txt)" '  self    total  samples  module  function
60.00%   60.00%        1  y.so    f
30.00%   30.00%        1  x.so    g
10.00%   10.00%        1  x.so    f
 0.00%  100.00%        0  prog    main
   self    total  samples  module  function
100.00%  100.00%        1  y.so    f' 'a section for each event, shares by weight'
like "$("$INSPECT" report in.txt)" $'\n# cycles: 3 samples, 1000 cycles\n.*\n# page-faults: 1 samples\n' \
	'with its sums'
is "$(rows in.txt --sort comm | head -3)" '  self  samples  command
60.00%        1  blue
40.00%        2  red' '--sort comm'
is "$(rows in.txt --sort tid,comm,dso | head -4)" '  self   total  samples  tid  command  module
60.00%  60.00%        1   20  blue     y.so
30.00%  30.00%        1   11  red      x.so
10.00%  10.00%        1   10  red      x.so' '--sort tid,comm,dso'
is "$(rows in.txt --sort symbol | head -3)" '  self    total  samples  function
70.00%   70.00%        2  f
30.00%   30.00%        1  g' '--sort symbol adds up modules'
is "$("$INSPECT" report in.txt --csv -q | head -3)" \
	'self_percent,total_percent,self_samples,total_samples,self_weight,total_weight,event,module,function,kind,file,line
60,60,1,1,600,600,cycles,y.so,f,native,,
30,30,1,1,300,300,cycles,x.so,g,native,,' '--csv'
is "$(rows in.txt --comm red | head -2 | tail -1)" '75.00%   75.00%        1  x.so    g' '--comm'
is "$(rows in.txt --tid 11 | head -2 | tail -1)" '100.00%  100.00%        1  x.so    g' '--tid'
is "$(rows in.txt --dso y.so --sort dso | head -2 | tail -1)" '100.00%  100.00%        1  y.so' '--dso'
is "$(rows in.txt --symbol f --sort dso,symbol | head -3 | tail -1)" '14.29%   14.29%        1  x.so    f' \
	'--symbol'
like "$("$INSPECT" report in.txt --comm nobody)" 'no sample passes the filters' 'a filter that leaves nothing'

# --- perf's spellings ---
plain=$("$INSPECT" report in.txt)
for line in '-g' '-g none' '-gnone' '--call-graph=caller' '-g graph,0.5,caller' '--stdio -n --no-children'; do
	# shellcheck disable=SC2086
	is "$("$INSPECT" report $line in.txt)" "$plain" "$line changes nothing"
done

# --- what it refuses ---
exits 125 'no recording here' "$INSPECT" report
like "$(cat err)" 'inspect.data: No such file.*inspect record -p PID' 'says how to make one'
cp in.txt perf.data
like "$("$INSPECT" report)" 'note: there is no inspect.data here: perf.data was read' 'perf.data stands in, and it is said'
cp in.folded inspect.data
like "$("$INSPECT" report)" '# file: inspect.data' 'inspect.data comes first'
for line in '--sort color' '--sort ,' '--time 3' '--time 3,1' '--top x' '--callers f --callees g' \
	'--tree --callers f' '--tree --sort comm' '--json --csv' '--top 3 --all' 'a b' '-i a b'; do
	# shellcheck disable=SC2086
	exits 2 "$line" "$INSPECT" report $line
done
like "$("$INSPECT" report --tree --callers f 2>&1)" '--tree.*--callers' 'a conflict names both options'

# --- recordings ---
command -v perf >/dev/null || {
	skip 'no perf here to compare with' 8
	exit
}
perf record -q -F 1999 -g -e cpu-clock -o g.data sh -c 'exec "$0" 1 2 >truth' "$W/shares" >/dev/null 2>&1
"$INSPECT" report g.data --no-inline --json >g.json
perf script -F ip,sym,dso --no-inline -i g.data 2>/dev/null | no_versions >g.txt
cat >counts.py <<'END'
# Self and total samples by function, from perf script's frames and from our report.
import collections, json

self_of, total_of = collections.Counter(), collections.Counter()
for block in open("g.txt", encoding="utf-8").read().split("\n\n"):
    names = [line.split(None, 1)[1].rsplit(" (", 1)[0] for line in block.split("\n") if line.strip()]
    if names:
        self_of[names[0]] += 1
        total_of.update(set(names))
ours_self, ours_total = collections.Counter(), collections.Counter()
for row in json.load(open("g.json"))["functions"]:
    ours_self[row["function"]] += row["self_samples"]
    ours_total[row["function"]] += row["total_samples"]
# Frames without a name are named otherwise; and a caller's frame is one instruction after its call,
# where perf says what the linker's start-up code would go on with.
skip = {name for name in set(total_of) | set(ours_total) if name.startswith("[")}
# In the middle of an exec perf still has the mappings of the program before it.
skip |= {"_start", "_dl_start_user", "execve", "__GI___execve"}
for what, theirs, ours in (("self", self_of, ours_self), ("total", total_of, ours_total)):
    wrong = [(n, theirs[n], ours[n]) for n in set(theirs) | set(ours)
             if n not in skip and theirs[n] != ours[n]]
    print(what, sum(self_of.values()) > 50, wrong[:5])
END
is "$(python3 counts.py)" 'self True []
total True []' 'self and total of every function are those of perf script'
shares() {
	"$INSPECT" report "$@" --json | jq '[.functions[] | select(.function | startswith("burn_"))] |
		100 * (map(select(.function == "burn_sixty").self_samples) | add) / (map(.self_samples) | add)'
}
all=$("$INSPECT" report g.data --json | jq '.events[0].samples')
truth=$(awk '/^burn_/ { sum += $2 } $1 == "burn_sixty" { part = $2 } END { print 100 * part / sum }' truth)
near "$(shares g.data)" "$truth" "$(chance "$truth" "$all")" 'a known share of what is burnt'
part=$("$INSPECT" report g.data --json --time 0.2,0.8 | jq '.events[0].samples')
near "$(shares g.data --time 0.2,0.8)" "$truth" "$(chance "$truth" "$part")" '--time: the same share in a part'
parts=0
for part in ,0.3 0.3,0.6 0.6,; do
	parts=$((parts + $("$INSPECT" report g.data --json --time $part | jq '.events[0].samples')))
done
is $parts "$all" '--time: parts add up to the whole'
is "$("$INSPECT" report g.data --json | jq '[.functions[].self_samples] | add')" "$all" 'self adds up to the samples'
near "$("$INSPECT" report g.data --sort tid --json | jq '.functions | length')" 2.5 0.5 '--sort tid: two threads, and main when it was seen'
like "$("$INSPECT" report g.data --callers burn_ten)" 'burn_ten.*level_40.*level_39' '--callers: through 40 levels'
