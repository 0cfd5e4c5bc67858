# SPDX-License-Identifier: BSD-2-Clause
"""The benchmark of trace.sh: ns for each call, requests a second, and what was lost."""

import ctypes, json, os, re, shutil, signal, socket, statistics, subprocess, sys, tempfile, time

OUT = os.environ["O"]
INSPECT, CALLS, WORK = OUT + "/inspect", OUT + "/bench/calls", OUT + "/workloads/syscalls"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
LOOP = 100000  # slow tools need 20 µs for each
REQUESTS = 30000
HIST = """tracepoint:raw_syscalls:sys_enter /%s/ { @start[tid] = nsecs; }
tracepoint:raw_syscalls:sys_exit /@start[tid]/ {
  @[args->id] = hist(nsecs - @start[tid]); delete(@start[tid]); }
END { clear(@start); }"""
# What inspect -c shows, without its percentiles' resolution.
TABLE = HIST.replace("delete(@start", "@calls[args->id] = count(); @total[args->id] = sum(nsecs - @start[tid]);"
                     "@max[args->id] = max(nsecs - @start[tid]);"
                     "if (args->ret < 0) { @errors[args->id] = count(); } delete(@start")
tmp = tempfile.mkdtemp()


def have(*names):
    return all(shutil.which(name) for name in names)


def run(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **more)


def tools(slow=True):
    """By name: what stands before a command."""
    found = {"none": [], "inspect": [INSPECT, "trace", "-c", "--json", "--"]}
    if slow and have("strace"):
        found["strace -c -f"] = ["strace", "-c", "-f"]
    if slow and have("perf"):
        found["perf trace -s"] = ["perf", "trace", "-s"]
    if have("bpftrace"):
        found["bpftrace hist"] = HIST
        found["bpftrace table"] = TABLE
    return found


def command_of(tool, command):
    if isinstance(tool, list):
        return tool + command
    return ["bpftrace", "-q", "-c", " ".join(command), "-e", tool % "pid == cpid"]


def counted(name, result, call="getppid", number=110):
    """Calls of that name that the tool saw, or None."""
    text = result.stdout + result.stderr
    if name == "inspect":
        table = json.loads(result.stdout)
        return sum(row["calls"] for row in table["rows"] if row["syscall"] == call)
    if name.startswith("strace"):
        rows = [line.split() for line in text.splitlines() if line.endswith(" " + call)]
        return int(rows[0][3]) if rows else 0
    if name.startswith("perf"):
        return sum(int(line.split()[1]) for line in text.splitlines() if line.split()[:1] == [call])
    if name.startswith("bpftrace"):
        part = re.split(r"^@\[", text, flags=re.M)
        for block in part:
            if block.startswith(str(number) + "]:") and "|" in block:
                return sum(scaled(n) for n in re.findall(r"\)\s+([0-9.]+[kM]?) \|", block))
    return None


def scaled(text):
    unit = {"k": 1000, "M": 1000000}.get(text[-1])
    return int(float(text[:-1]) * unit) if unit else int(text)


def loop(title, command, expected, value, slow=True, bpftrace=True):
    found = {name: tool for name, tool in tools(slow).items() if bpftrace or not name.startswith("bpftrace")}
    values, seen = {name: [] for name in found}, {}
    for _ in range(ROUNDS):
        for name, prefix in found.items():
            before = time.perf_counter()
            result = run(command_of(prefix, command))
            values[name].append(value(result, time.perf_counter() - before))
            seen[name] = counted(name, result) if expected else None
    base = statistics.median(values["none"])
    print(f"\n{title}")
    for name in found:
        v = statistics.median(values[name])
        told = "" if seen[name] is None else f"  {seen[name]} of {expected} calls"
        print(f"  {name:14} {v:10.1f}  {v / base:6.2f}x{told}")
    return {name: statistics.median(v) for name, v in values.items()}


def first_number(result, _seconds):
    for line in (result.stderr + "\n" + result.stdout).splitlines():
        if re.fullmatch(r"[0-9]+\.[0-9]", line):
            return float(line)
    raise SystemExit("bench: no number in " + result.stdout[:500] + result.stderr[:500])


def rare_call():
    """A filter on a call that is never made: what the other calls pay."""
    values = {"none": [], "inspect -e mount": []}
    for _ in range(ROUNDS):
        values["none"].append(first_number(run([CALLS, "110", str(LOOP * 10)]), 0))
        values["inspect -e mount"].append(first_number(
            run([INSPECT, "trace", "-c", "--json", "-e", "mount", "--", CALLS, "110", str(LOOP * 10)]), 0))
    none, ours = (statistics.median(v) for v in values.values())
    print(f"\ngetppid while only mount is asked for: {none:.0f} -> {ours:.0f} ns, {ours / none:.2f}x (goal: at most 1.4x)")


libc = ctypes.CDLL(None)


class Timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


def cpu_seconds(pid):
    """A rate is the machine's; CPU time is the server's own. By its clock, clock_getcpuclockid(3)."""
    now = Timespec()
    clock = ctypes.c_int32(~pid << 3 | 2)
    if libc.clock_gettime(clock, ctypes.byref(now)):
        raise SystemExit("bench: the server has ended")
    return now.s + now.ns / 1e9


def pinned(cpu, command):
    """Server and clients have a CPU each, where there are two: with many clients the server's is full."""
    return ["taskset", "-c", str(cpu)] + command if os.cpu_count() > 1 else command


class Server:
    """One that answers on a port of its own, and what asks it."""

    def __init__(self, title, clients, command, load, rate):
        self.title, self.rate, self.clients = title, rate, clients
        self.requests = REQUESTS if clients > 1 else REQUESTS // 3
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = str(s.getsockname()[1])
        words = {"PORT": port, "CLIENTS": str(clients), "REQUESTS": str(self.requests)}
        self.load = pinned(1, [words.get(part, part.replace("PORT", port)) for part in load])
        self.process = subprocess.Popen(pinned(0, command(port)),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)

    def measure(self, command):
        """Requests a second, and the server's CPU time for each in us."""
        with open(tmp + "/out", "w") as out:
            watcher = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) if command else None
            # bpftrace says when it has begun, and attaches then; before, it ignores signals.
            while watcher and command[0] == "bpftrace" and not os.path.getsize(tmp + "/out"):
                time.sleep(0.1)
            time.sleep(1 if watcher else 0)
            before = cpu_seconds(self.process.pid)
            result = run(self.load)
            cost = (cpu_seconds(self.process.pid) - before) * 1e6 / self.requests
            if watcher:
                watcher.send_signal(signal.SIGINT)
                try:
                    watcher.wait(20)
                except subprocess.TimeoutExpired:
                    watcher.kill()
                    watcher.wait()
        return self.rate(result.stdout), cost

    def end(self):
        self.process.terminate()
        self.process.wait()


def redis(port):
    return ["redis-server", "--port", port, "--save", "", "--dir", tmp]


def nginx(port):
    """One worker, a small file."""
    with open(tmp + "/file", "w") as f:
        f.write("x" * 1000)
    with open(tmp + "/nginx.conf", "w") as f:
        f.write(f"""daemon off; master_process off; user root; pid {tmp}/pid; error_log /dev/null;
events {{}}
http {{ access_log off; keepalive_requests 100000000; server {{ listen 127.0.0.1:{port}; root {tmp}; }} }}""")
    return ["nginx", "-p", tmp, "-c", tmp + "/nginx.conf"]


def servers():
    redis_load = ["redis-benchmark", "-p", "PORT", "-t", "get", "-n", "REQUESTS", "-c", "CLIENTS", "--csv"]
    nginx_load = ["ab", "-q", "-k", "-n", "REQUESTS", "-c", "CLIENTS", "http://127.0.0.1:PORT/file"]
    for clients in 20, 1:
        if have("redis-server", "redis-benchmark"):
            server(Server("redis, GET", clients, redis, redis_load,
                          lambda text: float(text.splitlines()[-1].split(",")[1].strip('"'))))
        if have("nginx", "ab"):
            server(Server("nginx, a file of 1000 bytes", clients, nginx, nginx_load,
                          lambda text: float(re.search(r"Requests per second: +([0-9.]+)", text)[1])))


def server(s):
    watchers = {"none": None, "inspect": [INSPECT, "trace", "-c", "--json", "-p", str(s.process.pid)]}
    if have("bpftrace"):
        begun = 'BEGIN { printf("begun\\n"); }'
        watchers["bpftrace"] = ["bpftrace", "-B", "none", "-q", "-e", begun + HIST % ("pid == %d" % s.process.pid)]
    if have("strace") and "ONLY" not in os.environ:
        watchers["strace -c -f"] = ["strace", "-c", "-f", "-p", str(s.process.pid)]
    rates, costs, lost = {name: [] for name in watchers}, {name: [] for name in watchers}, None
    for _ in range(ROUNDS * 2):
        for name, command in watchers.items():
            rate, cost = s.measure(command)
            rates[name].append(rate)
            costs[name].append(cost)
            if name == "inspect":
                lost = sum(json.load(open(tmp + "/out"))["losses"].values())
    s.end()
    print(f"\n{s.title}, clients: {s.clients}; requests a second, and CPU time of the server for each (goal: at most 3 % fewer)")
    for name in watchers:
        # Of each round apart: what else the machine does then is the same for both.
        less = statistics.median(a / b - 1 for a, b in zip(rates[name], rates["none"]))
        more = statistics.median(a / b - 1 for a, b in zip(costs[name], costs["none"]))
        print(f"  {name:14} {statistics.median(rates[name]):10.0f}  {100 * less:+6.1f} %"
              f"  {statistics.median(costs[name]):7.1f} us  {100 * more:+6.1f} %"
              + (f"  lost {lost}" if name == "inspect" else ""))


def main():
    if os.environ.get("ONLY") == "server":
        servers()
        return
    ns = loop(f"getppid, ns for each call ({LOOP} of them)", [CALLS, "110", str(LOOP)], LOOP, first_number)
    print(f"  inspect: {ns['inspect'] / ns['none']:.2f}x of none (goal: at most 3x)")
    for name in ns:
        if name.startswith("bpftrace"):
            ratio = (ns[name] - ns["none"]) / (ns["inspect"] - ns["none"])
            print(f"  added by {name} / added by inspect: {ratio:.1f} (goal: 3.5, better 5)")
    loop(f"dd bs=1, ns for each call ({LOOP} of them)", [CALLS, "dd", str(LOOP)], 0, first_number)
    loop("16 processes x 62,500 getppid, seconds", [WORK, "storm", "62500"], 1000000,
         lambda result, seconds: seconds, slow=False, bpftrace=False)
    rare_call()
    servers()
    shutil.rmtree(tmp)


main()
