#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each parser for ten seconds under libFuzzer; `make fuzz` runs them longer.
. "$(dirname "$0")/../cmd/lib.sh"
targets=$(cd tests/fuzz && ls fuzz_*.c | sed 's/\.c$//')
for target in $targets; do
	[ -x "$O/fuzz/$target" ] || skip_all "no $O/fuzz/$target: make fuzz-programs, with clang"
done
for target in $targets; do
	exits 0 "$target: no finding" tests/fuzz/run "${SECONDS_EACH:-10}" "$target"
done
