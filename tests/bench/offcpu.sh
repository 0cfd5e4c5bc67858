#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What watching switches costs: a pipe ping-pong pinned to one CPU, alone and watched by each tool, in
# turns. In CPU time of its processes, where the programs at the switch have their part; on an idle
# machine that is the time of a round trip. Goals: full stacks 1.6x, without 1.25x, the lowest of all.
set -eu
cd "$(dirname "$0")/../.."
O=${O:-build}
LC_ALL=C exec python3 - "$O" <<'END'
import os, re, shutil, signal, statistics, subprocess, sys, tempfile, time

TURNS, ROUNDS, SETTLE = 5, 50000, 2.5
out = sys.argv[1]
ping = [out + "/bench/pingpong", str(ROUNDS), str(SETTLE)]
ours = out + "/inspect"
offcputime = shutil.which("offcputime-libbpf") or next(
    (p for p in ("/usr/sbin/offcputime", "/usr/bin/offcputime", "/usr/share/libbpf-tools/offcputime")
     if os.path.exists(p)), None)
scratch = tempfile.mkdtemp()
BPFTRACE = ("tracepoint:sched:sched_switch { if (args->prev_state) { @at[args->prev_pid] = nsecs; "
            "@s[args->prev_pid] = kstack; @u[args->prev_pid] = ustack; } $t = @at[args->next_pid]; "
            "if ($t) { @ns[@s[args->next_pid], @u[args->next_pid]] = sum(nsecs - $t); delete(@at[args->next_pid]); } }")


def run(command):
    text = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = re.search(r"cpu_us_per_round ([0-9.]+)", text.stdout + text.stderr)
    return float(found.group(1)) if found else None


def beside(tool):
    """The ping-pong waits until the tool has attached."""
    def measure():
        child = subprocess.Popen(tool, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            return run(ping)
        finally:
            os.killpg(child.pid, signal.SIGINT)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    return measure


rows = [("none", lambda: run(ping)),
        ("inspect", lambda: run([ours, "offcpu", "-q", "--"] + ping)),
        ("inspect --call-graph none", lambda: run([ours, "offcpu", "-q", "--call-graph", "none", "--"] + ping))]
if shutil.which("perf"):
    rows.append(("perf record -g", lambda: run(["perf", "record", "-q", "-e", "sched:sched_switch", "-g",
                                                "-o", scratch + "/p", "--"] + ping)))
if offcputime:
    rows.append(("offcputime", beside([offcputime, "100"])))
if shutil.which("bpftrace"):
    rows.append(("bpftrace", beside(["bpftrace", "-e", BPFTRACE])))
times = {name: [] for name, _ in rows}
for _ in range(TURNS):
    for name, measure in rows:
        value = measure()
        if value:
            times[name].append(value)
shutil.rmtree(scratch)
base = statistics.median(times["none"])
for name, _ in rows:
    if times[name]:
        value = statistics.median(times[name])
        print(f"offcpu: {name}: {value:.2f} us a round trip, {value / base:.2f}x")
    else:
        print(f"offcpu: {name}: did not run here")
END
