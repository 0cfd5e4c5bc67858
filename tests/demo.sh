#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The main path on a bundled program: record it, print the table, draw the picture.
set -eu
O=${O:-build}
seconds=3

run() {
	echo "\$ $*"
	"$@"
	echo
}

run "$O/inspect" record -o "$O/demo.data" -- "$O/workloads/shares" $seconds
run "$O/inspect" report "$O/demo.data"
run "$O/inspect" flame -o "$O/demo.svg" "$O/demo.data"
cat <<END
Recorded $O/workloads/shares for $seconds s (tests/workloads/shares.c: three functions take 60, 30 and 10 %).
  $O/demo.data   the samples; inspect, perf report and perf script read them
  $O/demo.svg    the flame graph: open it in a browser, click to zoom, / to search
Next, on a process of your own: $O/inspect record -p PID
END
