#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Our costs beside perf's: tests/bench/run.sh --help. `make bench` builds what it needs.
set -eu
cd "$(dirname "$0")/../.."
export O=${O:-build}
for need in "$O/inspect" "$O/bench/busy" "$O/bench/deep" "$O/bench/mixed" "$O/bench/gen_perf_script"; do
	[ -x "$need" ] || {
		echo "bench: no $need: run make bench" >&2
		exit 1
	}
done
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
exec python3 tests/bench/bench.py "$@"
