# SPDX-License-Identifier: BSD-2-Clause
"""Measures naming beside perf (tests/bench/names.sh): prints one line a goal."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

from measure import run

OUT = pathlib.Path(os.environ.get("O", "build"))
DIR = (OUT / "bench" / "names").resolve()
INSPECT = str((OUT / "inspect").resolve())
PERFDATA = str(pathlib.Path("tests/cmd/perfdata.py").resolve())
MB = 1_000_000
ADDRESSES = 20_000
PERF_SECONDS = 120  # after which perf is ended: it asks an addr2line for each address

UNIT = """
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
namespace shapes {
template <typename T, int N> struct box {
	T v[N];
	template <class F> void each(F f) const { for (auto &x : v) f(x); }
};
template <typename T> long sum(const std::vector<T> &v)
{
	long s = 0;
	std::for_each(v.begin(), v.end(), [&s](const T &x) { s += (long)x; });
	return s;
}
}
int unit_run(int n)
{
	std::map<std::string, std::vector<int>> table;
	std::unordered_map<int, std::function<int(int)>> functions;
	std::regex expression("(a+|b)*c[0-9]{2,3}");
	shapes::box<long, 7> b{};
	int s = 0;
	for (int i = 0; i < n; i++) {
		table[std::to_string(i)].push_back(i);
		functions[i] = [i](int x) { return x + i; };
		s += std::regex_search(std::to_string(i), expression) + functions[i](n);
	}
	b.each([&s](long x) { s += (int)x; });
	for (auto &[key, v] : table) {
		std::sort(v.begin(), v.end(), std::greater<>());
		s += (int)shapes::sum(v) + (int)key.size();
	}
	return s;
}
"""


def shell(command):
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], check=True, cwd=DIR)


def build_program(min_bytes):
    """A -g program of that size: one unit many times, with names of its own each time."""
    path = DIR / "large"
    if path.exists() and path.stat().st_size >= min_bytes:
        return path
    DIR.mkdir(parents=True, exist_ok=True)
    (DIR / "unit.cc").write_text(UNIT)
    (DIR / "main.cc").write_text("int main() { return 0; }\n")
    shell("c++ -std=c++17 -O2 -g -c unit.cc && c++ -O2 -g -c main.cc && "
          "nm --defined-only unit.o | awk '{ print $3 }' | sort -u | grep -v '^[.]' > defined")
    copies = -(-min_bytes // os.path.getsize(DIR / "unit.o")) * 3
    for i in range(copies):
        shell(f"awk '{{ print $1, $1 \"_{i}\" }}' defined > renamed && "
              f"objcopy --redefine-syms=renamed unit.o unit-{i}.o")
    linker = "-fuse-ld=lld" if shutil.which("ld.lld") else ""
    shell(f"c++ {linker} -o large main.o unit-*.o && rm unit-*.o")
    if path.stat().st_size < min_bytes:
        sys.exit(f"bench: the program has only {path.stat().st_size} bytes")
    return path


def recording(name, program, n, processes=1):
    path = str(DIR / name)
    shell(f"python3 {PERFDATA} --random {n} {program} > addresses && "
          f"python3 {PERFDATA} {path} {program} {processes} < addresses")
    return path


def best(runs, argv):
    costs = [run(argv) for _ in range(runs)]
    return min(costs, key=lambda cost: cost.wall)


def count_calls(argv, calls):
    """How often a command calls `calls`, by strace."""
    log = DIR / "strace"
    subprocess.run(["strace", "-f", "-o", log, "-e", f"trace={calls}", *argv], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return log.read_text(errors="replace")


def say(what, value, goal, met):
    print(f"{what}: {value}   (goal: {goal}: {'met' if met else 'MISSED'})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    program = build_program(100 * MB).resolve()
    print(f"program: {program.stat().st_size / MB:.0f} MB", flush=True)
    data = recording("large.data", program, ADDRESSES)
    cost = best(options.runs, [INSPECT, "report", data])
    say(f"{ADDRESSES} addresses: time", f"{cost.wall:.2f} s, {cost.cpu:.2f} s of CPU", "2 s",
        cost.cpu <= 2)
    say(f"{ADDRESSES} addresses: memory", f"{cost.peak_rss / MB:.0f} MB", "600 MB",
        cost.peak_rss <= 600 * MB)
    if shutil.which("strace"):
        calls = count_calls([INSPECT, "report", data], "execve,fork,vfork,clone,clone3")
        others = calls.count("execve(") - 1 + sum(calls.count(f"{c}(") for c in ("fork", "clone", "clone3"))
        say("child processes", others, "none", others == 0)
        many = recording("many.data", program, 1000, 1000)
        opens = count_calls([INSPECT, "report", many], "open,openat,openat2").count(str(program))
        say("1,000 processes of one program: times it is opened", opens, "1", opens == 1)
    ours = best(options.runs, [INSPECT, "report", "--sort", "srcline,symbol", data])
    if shutil.which("perf"):
        # perf 6.1 without libbfd shows no inlined functions at all: lines are what it asks for.
        theirs = run(["timeout", str(PERF_SECONDS), "perf", "report", "--stdio", "-s", "srcline,sym",
                      "-g", "none", "-i", data], ok=(0, 124))
        ratio = theirs.wall / ours.wall
        late = "more than " if theirs.wall >= PERF_SECONDS else ""
        say(f"lines of {ADDRESSES} addresses: {ours.wall:.2f} s, perf {late}{theirs.wall:.0f} s",
            f"{late}{ratio:.0f}x", "20x", ratio >= 20)
    stripped = next((p for p in map(pathlib.Path, options_stripped()) if p.exists()), None)
    if stripped:
        one = recording("stripped.data", stripped.resolve(), 100)
        empty = best(options.runs, [INSPECT, "--version"])
        cost = best(options.runs + 2, [INSPECT, "report", one])
        say(f"{stripped.name}, {stripped.stat().st_size / MB:.0f} MB stripped",
            f"{(cost.cpu - empty.cpu) * 1000:.0f} ms of CPU", "50 ms", cost.cpu - empty.cpu <= 0.05)


def options_stripped():
    """Large stripped libraries that a machine may have."""
    yield "/usr/lib/llvm-14/lib/libLLVM-14.so.1"
    yield from map(str, pathlib.Path("/usr/lib/x86_64-linux-gnu").glob("libLLVM*.so*"))


if __name__ == "__main__":
    main()
