# SPDX-License-Identifier: BSD-2-Clause
"""Writes a recording of one sample at each of the given addresses of a program, without running it:
perfdata.py OUT FILE [PROCESSES] <addresses   (ELF virtual addresses in hexadecimal, one a line)
perfdata.py --random N FILE                   (prints N different addresses in its code)
With PROCESSES the samples are spread over so many short processes, each of which has its first address
for a name."""
import random, struct, subprocess, sys

BASE = 0x7F0000000000  # where the file's address 0 is mapped; 0 for one that is not relocatable
PID = 4194304  # above every pid_max: no live process


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True,
                          text=True, errors="replace").stdout


def code_segments(path):
    """(offset, address, size) of the executable segments."""
    for line in readelf("-l", path).splitlines():
        word = line.split()
        if word[:1] == ["LOAD"] and "E" in "".join(word[6:-1]):
            yield int(word[1], 16), int(word[2], 16), int(word[4], 16)


def print_random(n, path):
    ranges = []
    for line in readelf("-S", path).splitlines():
        word = line.partition("]")[2].split()
        if len(word) > 6 and word[0].startswith(".text"):
            ranges.append((int(word[2], 16), int(word[4], 16)))
    total = sum(size for _, size in ranges)
    rng = random.Random(1)
    seen = set()
    while len(seen) < min(n, total):
        at = rng.randrange(total)
        for start, size in ranges:
            if at < size:
                seen.add(start + at)
                break
            at -= size
    print("\n".join("%x" % a for a in seen))


def record(kind, misc, body, time, pid):
    body += struct.pack("<IIQ", pid, pid, time)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def write_recording(out, path, n_processes, addresses):
    is_fixed = "EXEC (" in readelf("-h", path)
    base = 0 if is_fixed else BASE
    segments = list(code_segments(path))
    name = path.encode() + b"\0"
    name += b"\0" * (-len(name) % 8)
    parts = []
    time = 1000
    per = -(-len(addresses) // n_processes)
    for i in range(n_processes):
        pid = PID + i
        own = addresses[i * per:(i + 1) * per]
        comm = b"%x\0" % (own[0] if own else 0)
        comm += b"\0" * (-len(comm) % 8)
        parts.append(record(3, 0x2000, struct.pack("<II", pid, pid) + comm, time, pid))
        for off, addr, size in segments:
            page = off & ~4095
            body = struct.pack("<IIQQQIIQQII", pid, pid, base + addr - (off - page),
                               size + off - page, page, 8, 1, 4711, 0, 5, 2)
            parts.append(record(10, 2, body + name, time, pid))
        for addr in own:
            time += 1000
            # IP, TID, TIME, PERIOD, CALLCHAIN: PERF_CONTEXT_USER and the address
            sample = struct.pack("<QIIQQQQQ", base + addr, pid, pid, time, 1000000, 2,
                                 2**64 - 512, base + addr)
            parts.append(struct.pack("<IHH", 9, 2, 8 + len(sample)) + sample)
    flags = 1 << 18  # sample_id_all
    attr = struct.pack("<IIQQQQQ", 1, 128, 0, 1000000, 0x127, 0, flags) + b"\0" * 80
    attrs_at, data_at, data = 104, 104 + 144, b"".join(parts)
    header = struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, 144, attrs_at, 144, data_at, len(data), 0, 0)
    header += b"\0" * 32
    with open(out, "wb") as f:
        f.write(header + attr + struct.pack("<QQ", 0, 0) + data)


if sys.argv[1] == "--random":
    print_random(int(sys.argv[2]), sys.argv[3])
else:
    write_recording(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1,
                    [int(line, 16) for line in sys.stdin if line.strip()])
