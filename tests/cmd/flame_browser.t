#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Flame graphs as a reader uses them, in headless Chromium.
. "$(dirname "$0")/lib.sh"
for program in chromium chromedriver python3; do
	command -v $program >/dev/null || skip_all "$program is not installed"
done
plan 23

draw() {
	local to=$1
	shift
	"$INSPECT" flame "$@" -o "$tmp/$to.svg" 2>"$tmp/err" ||
		diag "inspect flame $* failed: $(cat "$tmp/err")"
}

cat >"$tmp/small" <<END
app;main;alpha;memcpy 3000
app;main;alpha;compute 1000
app;main;beta;memcpy 500
app;main;beta;Memcpy_fast 500
app;main;gamma 4999
app;main;thin;needle 1
END
draw small --title 'A & B <i>title</i>' <"$tmp/small"
draw icicle --icicle <"$tmp/small"
draw reverse --reverse <"$tmp/small"

printf '%s\n' '</script><script>pwned=1</script>;]]><img onerror='\''pwned=1'\'' src=x> 5' \
	$'&#60\e[31m"\xff;<i>;<a href="javascript:pwned=1">x</a> 5' | draw hostile

sample() { # EVENT PERIOD FUNCTION
	printf 'app 10 [000] 1.000000: %10d %s:\n\t%16x %s+0x4 (/bin/app)\n\t%16x main+0x4 (/bin/app)\n\n' \
		"$2" "$1" 4198400 "$3" 4198912
}
{
	sample cycles 300 hot
	sample cycles 100 cold
	sample cache-misses 20 hot
	sample cache-misses 80 cold
} | draw events

awk 'BEGIN { for (i = 0; i < 2000; i++) printf "f%d;", i % 7; print "leaf 10" }' | draw deep

# 160,000 stacks of a dozen calls with a shape like that of a server
awk 'BEGIN {
	srand(7)
	for (i = 0; i < 160000; i++) {
		line = "server;worker_" int(rand() * 8) ";start_thread;run"
		for (j = 0; j < 6; j++)
			line = line ";library_function_" int(exp(rand() * (3 + j)))
		print line ";leaf_" i % 997, 1 + int(rand() * 3)
	}
}' | draw big

mkdir "$tmp/browser"
PYTHONDONTWRITEBYTECODE=1 python3 tests/cmd/browser.py "$tmp"
