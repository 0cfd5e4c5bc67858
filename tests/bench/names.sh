#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What names cost: functions, inlined ones and lines of 20,000 addresses in a large C++ program.
set -eu
cd "$(dirname "$0")/../.."
export O=${O:-build}
[ -x "$O/inspect" ] || {
	echo "bench: no $O/inspect: run make bench" >&2
	exit 1
}
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
exec python3 tests/bench/names.py "$@"
