#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What `inspect use` costs on a host with 5,000 processes: to its first reading (goal: 100 ms), and
# with --watch (goal: 1 % of one CPU), as root and as an ordinary user, who has no BPF.
set -eu
cd "$(dirname "$0")/../.."
O=${O:-build}
LC_ALL=C exec python3 - "$O/inspect" <<'END'
import json, os, resource, shutil, signal, statistics, subprocess, sys, tempfile, time

PROCESSES, ROUNDS, WINDOW_S = 5000, 7, 1


def crowd():
    """A process with so many children that sleep; they end with it."""
    code = ("import os, signal, sys, ctypes\n"
            "prctl = ctypes.CDLL(None).prctl\n"
            f"for _ in range({PROCESSES}):\n"
            "    if os.fork() == 0:\n"
            "        prctl(1, signal.SIGKILL)\n"
            "        signal.pause()\n"
            "print(flush=True)\n"
            "signal.pause()\n")
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    child.stdout.readline()
    return child


def run(command, user, **options):
    """Wall and CPU time of a command in seconds, and its output."""
    change = (lambda: (os.setgid(65534), os.setuid(65534))) if user else None
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, preexec_fn=change, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, cpu, done.stdout


with tempfile.TemporaryDirectory() as folder:
    os.chmod(folder, 0o755)
    tool = shutil.copy(sys.argv[1], folder)
    child = crowd()
    for user in (False, True) if os.getuid() == 0 else (True,):
        who = "an ordinary user" if user and os.getuid() == 0 else "this user" if user else "root"
        starts, cpus = zip(*(run([tool, "use", "-d", f"{WINDOW_S}"], user)[:2] for _ in range(ROUNDS)))
        print(f"use, {PROCESSES} processes, {who}: {(statistics.median(starts) - WINDOW_S) * 1e3:.0f} ms beside the window "
              f"({(min(starts) - WINDOW_S) * 1e3:.0f} at best; goal: 100), CPU time {statistics.median(cpus) * 1e3:.0f} ms")
        lines = run([tool, "use", "--watch", "-n", "8", "-d", "2", "--json"], user)[2].splitlines()
        costs = [json.loads(line)["own_cpu_percent"] for line in lines[2:]]
        print(f"use --watch -d 2, {PROCESSES} processes, {who}: {statistics.mean(costs):.2f} % of a CPU (goal: 1 %)")
    child.send_signal(signal.SIGKILL)
    child.wait()
END
