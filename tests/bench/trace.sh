#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What `inspect trace -c` costs its target, beside no tool, strace -c -f, perf trace -s and a bpftrace
# histogram: a getppid loop, dd bs=1, 16 processes with 62,500 calls, redis and nginx under load. In
# turns. ONLY=server: these two alone, without strace.
set -eu
cd "$(dirname "$0")/../.."
export O=${O:-build}
[ "$(id -u)" = 0 ] || { echo 'bench: trace needs root'; exit 0; }
# bpftrace, perf and the tracepoints of single calls want tracefs.
[ -n "${IN_NAMESPACE:-}" ] || IN_NAMESPACE=1 exec unshare -m bash "$0" "$@"
mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
exec python3 tests/bench/trace.py "$@"
