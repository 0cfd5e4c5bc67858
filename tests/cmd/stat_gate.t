#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# The gate of inspect stat: verdicts and exit codes, on numbers that CMD prints and so are known.
. "$(dirname "$0")/lib.sh"
repo=$PWD
cd "$tmp" || exit 1

fits() {
	is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/$2.schema.json" "$1" 2>&1)" '' "$3"
}
# Each run takes the next of the numbers in a file, round and round.
cat >next.sh <<'END'
n=$(cat at 2>/dev/null || echo 0)
echo $((n + 1)) >at
sed -n "$((n % $(wc -l <"$1") + 1))p" "$1"
END
printf '%s\n' 100 101 99 100.5 99.5 100 101 99 100.2 99.8 >same
printf '%s\n' 105 106 104 105.5 104.5 105 106 104 105.2 104.8 >slower
printf '%s\n' 102 103 101 102.5 101.5 102 103 101 102.2 101.8 >border
printf '%s\n' 0 0 0 0 >zero
X='--metric x=([0-9.]+)'

# stat OPTIONS… -- the numbers of a file
gate() {
	local numbers=$1
	shift
	rm -f at
	"$INSPECT" stat $X "$@" -- sh next.sh "$numbers" >"$tmp/out" 2>"$tmp/err"
}
verdict() {
	local want=$1 name=$2 rc=0
	shift 2
	gate "$@" || rc=$?
	is "$rc" "$want" "$name" || diag "$(cat err)"
}

verdict 0 'saving' same -r 10 --save base.json
fits base.json stat 'what is saved is what --json prints'
is "$(jq -c '[.runs[].x]' base.json)" '[100,101,99,100.5,99.5,100,101,99,100.2,99.8]' 'every run is in it'

# --- limits ---
verdict 0 'the same passes' same --baseline base.json --fail-on x:+2%
is "$(wc -l <out)" 10 'as often as the baseline'
like "$(cat err)" 'gate: passed, by the 95 % interval' 'it is said'
unlike "$(cat err)" 'baseline is of another' 'of the same command'
verdict 3 '5 % more fails' slower --baseline base.json --fail-on x:+2%
like "$(cat err)" 'x:\+2% +regression' 'and which limit'
like "$(cat err)" "baseline is of another command: 'sh next.sh same' there, 'sh next.sh slower' now" 'of another one, which is said'
sleep 60 &
"$INSPECT" stat -p $! -d 0.1 --baseline base.json --fail-on wall:+900% >out 2>err
like "$(cat out err)" "baseline is of another target: '-- sh next.sh same' there, '-p $! -d 0.1' now" 'and of another target'
kill $!
verdict 4 'on the limit it is inconclusive' border --baseline base.json --fail-on x:+2%
verdict 0 '--inconclusive pass' border --baseline base.json --fail-on x:+2% --inconclusive pass
verdict 3 '--inconclusive fail' border --baseline base.json --fail-on x:+2% --inconclusive fail
verdict 0 '--gate median' border --baseline base.json --fail-on x:+2.5% --gate median
verdict 3 '--gate median' border --baseline base.json --fail-on x:+1.5% --gate median
verdict 0 'less than the amount' slower --baseline base.json --fail-on 'x:+2%&+20'
verdict 3 'more than both' slower --baseline base.json --fail-on 'x:+2%&+2'
verdict 3 'one of two limits is enough' slower --baseline base.json --fail-on x:+50% --fail-on x:+2%
verdict 0 'more is better' slower --baseline base.json --fail-on x:-2%
verdict 4 'one run decides nothing' slower -r 1 --baseline base.json --fail-on x:+2% --json
is "$(jq -r '.gate[0].why' out | grep -c 'too few runs')" 1 'and says how many would'
verdict 3 'JSON' slower --baseline base.json --fail-on x:+2% --json
fits out stat 'of a gate fits the schema'
is "$(jq -c '[.gate_verdict, .gate_exit_code, .gate[0].verdict]' out)" '["regression",3,"regression"]' 'verdict'
is "$(jq '.gate[0] | .baseline == 100 and .now == 105 and .low_percent > 2 and .low_percent < 5 and .high_percent > 5 and .high_percent < 8' out)" \
	true 'and interval'

# --- budgets ---
verdict 0 'a budget' same --budget 'x<=102' -r 10
verdict 3 'a budget' same --budget 'x<=98' -r 10
verdict 4 'a budget inside of the interval' same --budget 'x<=100.05' -r 10
verdict 3 'a single run' slower --budget 'x<105'
verdict 0 'a single run' slower --budget 'x<=105'
why() {
	gate same "$@" --json -o s.json
	jq -r '.gate[0].why' s.json
}
is "$(why --budget 'x<200')" 'by the one run alone: -r N for an interval' 'which says that it was one'
is "$(why --budget 'x<200' -r 3)" 'by the 95 % interval of the mean of 3 runs' 'three have an interval'
is "$(why --budget 'x<200' -r 3 --gate median)" 'by the median of 3 runs' 'or their median'
verdict 0 'max-rss' same --budget 'max-rss<=200MB' --budget 'wall<60s'
verdict 3 'max-rss' same --budget 'max-rss<=200kB'
verdict 2 'time against bytes' same --budget 'max-rss<=2s'
verdict 2 'an unknown metric' same --budget 'nosuch<=2'
like "$(cat err)" 'the metrics are: wall user' 'is answered with the list'

# --- baselines ---
verdict 5 'no baseline' same --baseline none.json --fail-on x:+2%
is "$(wc -l <out)" 0 'nothing is run for nothing'
echo '{}' >empty.json
verdict 5 'no result in the baseline' same --baseline empty.json --fail-on x:+2%
jq '.environment_cpu = "Another CPU"' base.json >cpu.json
verdict 5 'another CPU' same --baseline cpu.json --fail-on x:+2%
like "$(cat err)" "another CPU: 'Another CPU' in the baseline" 'says which'
is "$(wc -l <out)" 0 'before anything is run'
verdict 5 'another CPU under -q' same -q --baseline cpu.json --fail-on x:+2%
like "$(cat err)" "another CPU: 'Another CPU' in the baseline" 'says which as well'
verdict 3 'a budget is judged all the same' slower --baseline cpu.json --fail-on x:+2% --budget 'x<=100'
verdict 0 '--accept-env cpu' same --baseline cpu.json --fail-on x:+2% --accept-env cpu
jq '.environment_kernel = "5.10.0"' base.json >kernel.json
verdict 5 'another kernel' same --baseline kernel.json --fail-on x:+2% --accept-env cpu
like "$(cat err)" "another kernel: '5.10.0' in the baseline" 'says which'
verdict 0 '--accept-env' same --baseline kernel.json --fail-on x:+2% --accept-env cpu,kernel
jq 'del(.metrics[] | select(.metric == "x"))' base.json >set.json
verdict 5 'another event set' same --baseline set.json --fail-on x:+2%
like "$(cat err)" 'another event set: the baseline does not have it' 'says which'
verdict 5 'under -q' same -q --baseline set.json --fail-on x:+2%
is "$(cat err)" 'inspect stat: x:+2% is not decided: another event set: the baseline does not have it' 'says which as well'
verdict 5 'with --json' same --json --baseline set.json --fail-on x:+2%
like "$(cat err)" 'x:\+2% is not decided: another event set' 'says which beside the JSON'
jq '.environment_levels = "user"' base.json >levels.json
verdict 5 'only user code there' same --baseline levels.json --fail-on x:+2%
verdict 2 '--accept-env of what is none' same --baseline base.json --fail-on x:+2% --accept-env moon
if [ "$(jq -r '.metrics[] | select(.metric == "cycles").value' base.json)" = null ]; then
	verdict 5 'not counted on either side' same --baseline base.json --fail-on cycles:+2%
	like "$(cat err)" 'not counted now: ' 'says why'
else
	skip 'hardware counters are there' 2
fi
verdict 3 'a regression outweighs what cannot be compared' slower --baseline set.json --fail-on x:+2% --budget 'x<=100'
verdict 0 'zero' zero -r 4 --save zero.json
verdict 0 'zero and zero' zero --baseline zero.json --fail-on x:+2%
verdict 3 'more than zero' same --baseline zero.json --fail-on x:+2%

# --- --retry ---
# Ten slow runs, then the usual ones: the second try is judged by itself.
{ cat slower same; } >disturbed
verdict 3 'disturbed' disturbed --baseline base.json --fail-on x:+2%
verdict 0 '--retry 1' disturbed --baseline base.json --fail-on x:+2% --retry 1 --json
is "$(jq -c '[.attempts, (.runs | length), ([.runs[] | select(.judged)] | length)]' out)" '[2,20,10]' 'both tries are in the JSON'
verdict 3 'slow twice' slower --baseline base.json --fail-on x:+2% --retry 1
is "$(wc -l <out)" 20 'was measured twice'
verdict 4 'inconclusive twice' border --baseline base.json --fail-on x:+2% --retry 1 --json
is "$(jq '[.runs[] | select(.judged)] | length' out)" 20 'is judged by all runs'
verdict 0 'passed at once' same --baseline base.json --fail-on x:+2% --retry 3
is "$(wc -l <out)" 10 'is not measured again'

# --- a command that fails is no verdict ---
exits 6 'a failing command' "$INSPECT" stat --baseline base.json --fail-on wall:+900% -- sh -c 'exit 3'
like "$(cat err)" 'ended with exit code 3: no verdict' 'its status is told'
exits 6 'a killed one' "$INSPECT" stat --baseline base.json --fail-on wall:+900% -- sh -c 'kill -9 $$'
like "$(cat err)" 'killed by signal 9: no verdict' 'its signal is told'
exits 6 'one that is not there' "$INSPECT" stat --budget 'wall<9s' -- nosuchcommand
exits 6 'one that was ended' "$INSPECT" stat --budget 'wall<9s' --timeout 0.2 -- sleep 9
exits 125 'an own failure' "$INSPECT" stat --budget 'wall<9s' -p 999999999 -d 0.1
for bad in '--fail-on x:+2%' '--baseline base.json' '--retry 1' '--fail-on x --baseline base.json' '--budget x' \
	'--check base.json' '--check base.json --fail-on x:+2%' '--gate mean' '-r 0'; do
	exits 2 "usage: $bad" "$INSPECT" stat $bad -- true
done

# --- without running anything ---
gate slower -r 10 --save slower.json
exits 3 '--check' "$INSPECT" stat --check slower.json --baseline base.json --fail-on x:+2%
exits 0 '--check' "$INSPECT" stat --check base.json --baseline base.json --fail-on x:+2%
"$INSPECT" stat --check slower.json --baseline base.json --fail-on x:+2% --json >check.json
fits check.json stat-check '--check --json'
exits 3 '--check of a budget' "$INSPECT" stat --check slower.json --budget 'x<=100'
exits 5 '--check' "$INSPECT" stat --check slower.json --baseline none.json --fail-on x:+2%
exits 125 '--check of what is not there' "$INSPECT" stat --check none.json --budget 'x<=100'
"$INSPECT" stat -q -r 2 --save false.json -- false
"$INSPECT" stat -q --save killed.json -- sh -c 'kill -9 $$'
"$INSPECT" stat -q --save late.json --timeout 0.2 -- sleep 9
for failed in 'false:ended with exit code 1' 'killed:killed by signal 9' 'late:ended by --timeout'; do
	file=${failed%%:*}.json why=${failed#*:}
	exits 6 "--check of $file" "$INSPECT" stat --check "$file" --budget 'wall<9s'
	like "$(cat err)" "the command (was )?$why: no verdict" 'its status is told'
	exits 5 "$file as a baseline" "$INSPECT" stat --baseline "$file" --fail-on wall:+900% -- touch ran
	like "$(cat err)" "$file: no baseline: the command (was )?$why there" 'is refused, with the reason'
	like "$("$INSPECT" stat --table "$file")" "failed: the command (was )?$why" '--table says so too'
done
is "$(ls ran 2>&1 | grep -c '^ran')" 0 'nothing is run for a baseline that is none'
"$INSPECT" stat --check false.json --budget 'wall<9s' --json >check.json 2>err
fits check.json stat-check '--check --json of what failed'
is "$(jq -c '[.exit_code, .gate_verdict]' check.json)" '[1,null]' 'has the status and no verdict'
is "$("$INSPECT" stat --table base.json slower.json | awk '{ print $1 }')" $'file\nbase.json\nslower.json\n#' '--table: a row for each file'
"$INSPECT" stat --table base.json slower.json --json >table.json
fits table.json stat-table '--table --json'
exits 2 '--table of nothing' "$INSPECT" stat --table
exits 125 '--table of what is none' "$INSPECT" stat --table base.json empty.json

# --- what cannot be written: refused before CMD runs, and at the end no mask for a verdict ---
cp base.json kept.json
exits 125 '--save into no folder' "$INSPECT" stat --save nowhere/x.json -- touch ran
like "$(cat err)" 'cannot create nowhere/x.json' 'says so'
ok '[ ! -e ran ]' 'and CMD has not run'
exits 2 '--save onto the baseline' "$INSPECT" stat --save base.json --baseline base.json --fail-on x:+2% -- touch ran
ok '[ ! -e ran ] && cmp -s base.json kept.json' 'is refused, and nothing has run'
exits 2 '-o onto the file that is judged' "$INSPECT" stat --check base.json --budget 'x<=102' -o base.json
printf 'PERFILE2%0100d' 0 >recording
exits 125 '-o onto a recording' "$INSPECT" stat -o recording -- touch ran
ok '[ ! -e ran ] && [ "$(stat -c %s recording)" = 108 ]' 'is refused too'
verdict 125 'passed, but not saved' same --baseline base.json --fail-on x:+2% --save /dev/full
like "$(cat err)" 'gate: passed.*cannot write /dev/full: No space left' 'the verdict is shown, and why it failed'
verdict 3 'a regression, not saved' slower --baseline base.json --fail-on x:+2% --save /dev/full
verdict 4 'inconclusive, not saved' border --baseline base.json --fail-on x:+2% --save /dev/full
exits 6 'a failing command, not saved' "$INSPECT" stat --budget 'wall<9s' --save /dev/full -- sh -c 'exit 3'
exits 3 "no gate: CMD's own code" "$INSPECT" stat --save /dev/full -- sh -c 'exit 3'
exits 125 'no gate: not saved' "$INSPECT" stat --save /dev/full -- true
is "$("$INSPECT" stat --check base.json --budget 'x<=102' --markdown - | grep -c '^| x.<=102 | passed |')" 1 '--markdown -'
is "$("$INSPECT" stat --json -o - -- echo hi 2>err | jq -r .schema)" inspect.stat/1 '-o - is stdout, and that alone'
is "$(ls ./*.part 2>/dev/null)" '' 'no part of a file is left'

# --- a server under load ---
mkfifo fifo
cat >load.sh <<'END'
for i in 1 2 3 4 5 6 7 8 9 10; do echo go >fifo; done
echo 'requests 10'
END
load() {
	timeout 60 "$INSPECT" stat -p $server --metric 'requests=requests ([0-9]+)' --per requests -r 4 "$@" -- sh load.sh >out 2>err
}
sh -c 'while read -r line; do :; done <>fifo' &
server=$!
load --save server.json
is "$?" 0 'a server, per request'
is "$(jq -c '[.environment_per, (.metrics[] | select(.metric == "requests").value)]' server.json)" \
	'["requests",10]' 'requests are counted'
ok '[ "$(jq ".metrics[] | select(.metric == \"task-clock\").value > 0" server.json)" = true ]' 'and CPU time for each'
load --baseline server.json --fail-on requests:-1% --budget 'context-switches<1000'
is "$?" 0 'and gated'
load --fail-on requests:-1% --baseline base.json
is "$?" 5 'not with what is not per request'
kill $server
wait $server 2>/dev/null

# --- as a CI calls it ---
cat >Makefile <<END
perf:
	@rm -f at; "$INSPECT" stat -q --metric 'x=([0-9.]+)' --baseline base.json --fail-on x:+2% -- sh next.sh \$(N) >/dev/null
END
exits 0 'make: passed' make -s perf N=same
exits 2 'make: failed' make -s perf N=slower
like "$(cat err)" 'Error 3' 'make prints the code'
cat >ci.sh <<END
set -e
rm -f at
"$INSPECT" stat -q --metric 'x=([0-9.]+)' --baseline base.json --fail-on x:+2% -- sh next.sh "\$1" >/dev/null
echo deployed
END
exits 0 'sh -e: passed' sh ci.sh same
is "$(cat out)" deployed 'goes on'
exits 3 'sh -e: a regression' sh ci.sh slower
is "$(cat out)" '' 'stops'
exits 4 'sh -e: inconclusive' sh ci.sh border
