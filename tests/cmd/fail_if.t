#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# --fail-if: a profile that is too poor ends a script.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

plan 10
# 20 of 80 samples have no name.
printf 'main;f 60\nmain;[unknown] 20\n' >in.folded
exits 0 'below the limit' "$INSPECT" report --fail-if 'unknown>25%' in.folded
exits 3 'above the limit' "$INSPECT" report --fail-if 'unknown>24.9%' in.folded
"$INSPECT" report --fail-if 'lost>0,unknown>10' in.folded >out 2>err
is $? 3 'the second of two limits, as a number'
is "$(cat err)" "inspect report: --fail-if: unknown is 20 of 80 samples (25.00 %), above 10" \
	'what was measured and what was allowed'
like "$(cat out)" 'main' 'the report comes all the same'
exits 2 'no such measure' "$INSPECT" report --fail-if 'speed>1%' in.folded
exits 2 'no number' "$INSPECT" report --fail-if 'lost>x' in.folded
exits 0 'record: not above' "$INSPECT" record -q -F 999 --fail-if 'lost>1%,without-stack>1%' \
	-o r.data -- "$W/shares" 0.2
exits 3 'record: code without a map has no name' \
	"$INSPECT" record -q -F 999 --fail-if 'unknown>1%' -o r.data -- "$W/jitmap" 0.3
exits 7 'record: the code of a failing CMD comes first' \
	"$INSPECT" record -q --fail-if 'lost>100' -o r.data -- sh -c 'exit 7'
