#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# inspect diff: exact tables from text, and a difference that was made between two recordings.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

cat >a.folded <<'END'
main;parse 500
main;run;step 300
main;run;old 200
END
cat >b.folded <<'END'
main;parse 150
main;run;step 200
main;run;new 140
main;run 10
END

rows() {
	"$INSPECT" diff "$@" 2>err | sed '/^#/d; /^$/d'
}
is "$(rows a.folded b.folded)" 'before   after  points  ±noise          module  function
 0.00%  28.00%  +28.00    4.02  * new           new
20.00%   0.00%  -20.00    2.56  * gone          old
50.00%  30.00%  -20.00    5.17  *               parse
30.00%  40.00%  +10.00    5.25  *               step
 0.00%   2.00%   +2.00    1.32  * new           run' 'shares of self, largest difference first'
like "$("$INSPECT" diff a.folded b.folded)" \
	$'^# before: a.folded: 1000 samples, 0 lost, .*\n# after: b.folded: 500 samples' 'the head names both'
like "$("$INSPECT" diff a.folded b.folded)" $'\n# samples, self: 1000 samples → 500 samples\n' 'and the amounts'
is "$(rows a.folded b.folded --total --top 4)" 'before   after  points  ±noise          module  function
 0.00%  28.00%  +28.00    4.02  * new           new
20.00%   0.00%  -20.00    2.56  * gone          old
50.00%  30.00%  -20.00    5.17  *               parse
50.00%  70.00%  +20.00    5.17  *               run
… 2 more rows: --all' '--total'
is "$("$INSPECT" diff a.folded b.folded --csv -q | sed -n 1,2p | cut -d, -f1-3,5-)" \
	'before_percent,after_percent,difference_points,module,function,significant,state,before_samples,after_samples,event
0,28.000000000000004,28.000000000000004,,new,true,new,0,140,samples' '--csv'
is "$(rows a.folded a.folded | sed 1d | awk '{ print $3 }' | sort -u)" '+0.00' 'nothing differs from itself'
like "$("$INSPECT" diff a.folded a.folded)" 'note: no difference is larger than the noise' 'and it says so'
printf 'main;a 5\nmain;b 5\n' >few1
printf 'main;a 7\nmain;b 3\n' >few2
unlike "$(rows few1 few2)" '\*' 'ten samples prove nothing'

# --- events ---
sample() {
	printf 'x 1 1.0: %s %s:\n\t1 %s (/bin/x)\n\n' "$@"
}
{ sample 10 cycles f; sample 3 page-faults f; } >two.txt
{ sample 5 cycles f; sample 5 cycles g; sample 4 minor-faults f; } >other.txt
like "$(rows two.txt other.txt)" $'100.00%  50.00%  -50.00 .*f\n +0.00%  50.00%  \+50.00 .*g' \
	'events are compared by name'
like "$("$INSPECT" diff two.txt other.txt)" 'note: page-faults is only in two.txt' 'one that is alone is named'
like "$("$INSPECT" diff two.txt other.txt)" 'note: minor-faults is only in other.txt' 'on either side'
{ sample 4 branches f; sample 4 misses f; } >third.txt
exits 125 'nothing in common' "$INSPECT" diff two.txt third.txt

# --- what it refuses ---
exits 2 'one file' "$INSPECT" diff a.folded
like "$(cat err)" 'inspect diff BEFORE AFTER' 'says what it wants'
exits 2 'three files' "$INSPECT" diff a.folded b.folded few1
exits 2 'two formats' "$INSPECT" diff --json --csv a.folded b.folded
exits 125 'a file that is not there' "$INSPECT" diff a.folded none
like "$(cat err)" 'none: No such file' 'is named'

# --- measure again: half of a program's time is saved ---
cat >work.c <<'END'
#include <stdlib.h>
static volatile unsigned long sink;
__attribute__((noinline)) void slow_part(long n) { for (long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void fast_part(long n) { for (long i = 0; i < n; i++) sink ^= i; }
int main(int argc, char **argv)
{
	for (int i = 0; i < 200; i++) {
		slow_part(argc > 1 ? atol(argv[1]) : 1);
		fast_part(1000000);
	}
}
END
"${CC:-cc}" -O1 -fno-omit-frame-pointer -o before work.c && cp before after || exit 1
"$INSPECT" record -q -F 999 -o before.data -- ./before 3000000 >/dev/null 2>err
"$INSPECT" record -q -F 999 -o after.data -- ./after 1000000 >/dev/null 2>err
"$INSPECT" diff before.data after.data --json >diff.json 2>err
is "$(jq -r '[.functions[] | select(.significant)] | .[0:2] | map(.function) | sort | join(" ")' diff.json)" \
	'fast_part slow_part' 'both parts have changed beyond chance'
share=$(jq -r '.functions[] | select(.function == "slow_part").difference_points' diff.json)
ok '[ "${share%.*}" -lt -10 ] && [ "${share%.*}" -gt -40 ]' "the slow part has fewer points ($share)"
is "$(jq -r '.functions[] | select(.function == "slow_part").module' diff.json)" 'before → after' \
	'a function is found again in a renamed program'
