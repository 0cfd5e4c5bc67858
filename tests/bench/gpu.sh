#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What `inspect trace --gpu -c`, without and with stacks, costs the watched program (ioctls of a fake driver, which answers at
# once) and a bystander that makes short calls, beside `strace -c -e ioctl`: ratios of CPU or wall
# time with and without, the least of several rounds.
set -eu
cd "$(dirname "$0")/../.."
O=${O:-build}
for need in "$O/inspect" "$O/workloads/fake_gpu" "$O/workloads/gpu_calls" "$O/bench/calls"; do
	[ -x "$need" ] || {
		echo "bench: no $need: run make bench" >&2
		exit 1
	}
done
[ -e /dev/fuse ] || {
	echo "bench: GPU calls: skipped, no FUSE here"
	exit 0
}
LC_ALL=C exec python3 - "$O" <<'END'
import os, shutil, signal, subprocess, sys, tempfile, time

O = sys.argv[1]
ROUNDS, IOCTLS = 5, 5000
STEPS = ["answer", "0", "28", "0", "0", "open", "nvidiactl", "rm", "0x2a", "32", "8:0x101", str(IOCTLS)]


def wall(command):
    start = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def bystander():
    """ns of CPU time for one getppid."""
    return float(subprocess.run([f"{O}/bench/calls", "110", "2000000"], capture_output=True, text=True, check=True).stdout.split()[0])


with tempfile.TemporaryDirectory() as base:
    folder = os.path.join(base, "dev")
    os.mkdir(folder)
    server = subprocess.Popen([f"{O}/workloads/fake_gpu", folder, os.path.join(base, "log")], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(f"{folder}/nvidiactl"):
            time.sleep(0.05)
        client = [f"{O}/workloads/gpu_calls", folder] + STEPS
        ours = [f"{O}/inspect", "trace", "--gpu", "--device", folder, "--nvidia-version", "550.54.14", "-c"]
        idle = subprocess.Popen(["sleep", "1000"])
        watch = ours + ["-p", str(idle.pid)]
        alone, straced, near_alone, near_watched = [], [], [], []
        traced = {"": [], "--by stack": []}
        for _ in range(ROUNDS):
            alone.append(wall(client))
            for option, times in traced.items():
                # The tool watches a process that was there before: its own start is not in the time.
                probe = subprocess.Popen(["bash", "-c", 'read -r _; exec "$@"', "x"] + client, stdin=subprocess.PIPE,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                tool = subprocess.Popen(ours + option.split() + ["-p", str(probe.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(1.5)
                start = time.perf_counter()
                probe.communicate(b"\n")
                times.append(time.perf_counter() - start)
                tool.wait()
            near_alone.append(bystander())
            tool = subprocess.Popen(watch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
            near_watched.append(bystander())
            tool.send_signal(signal.SIGINT)
            tool.wait()
            if shutil.which("strace"):
                straced.append(wall(["strace", "-f", "-c", "-e", "trace=ioctl"] + client))
        idle.kill()
        print(f"GPU calls: {IOCTLS} ioctls of a driver that answers at once: alone {min(alone) * 1e6 / IOCTLS:.1f} us each")
        for option, times in traced.items():
            print(f"  inspect trace --gpu -c {option:10} {min(times) / min(alone):.2f}x")
        if straced:
            print(f"  strace -c -e ioctl                {min(straced) / min(alone):.2f}x")
        print(f"  a bystander's getppid             {min(near_watched) / min(near_alone):.2f}x  ({min(near_alone):.0f} ns alone)")
    finally:
        subprocess.run(["fusermount3", "-qu", folder])
        server.wait()
END
