#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Load of a known kind moves the row that it should, by as much as another reading of the same says,
# and no row that has nothing to do with it.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "makes cgroups and namespaces: needs root"

. tests/cmd/use_lib.sh

name=inspect-test-$$
measure "$tmp/calm.json" -d 0.1
# --- CPU: one full CPU of a process with two, one hot thread ---
python3 -c 'while True: pass' &
spinner=$!
cat >"$tmp/cpu.py" <<'END'
import json, os, subprocess, sys, time

def busy():
    total = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return sum(total) - total[3] - total[4], sum(total)

def thread(pid):
    run, delay = open(f"/proc/{pid}/schedstat").read().split()[:2]
    return int(run), int(delay)

pid = int(sys.argv[1])
a, ta, wa = busy(), thread(pid), time.monotonic_ns()
subprocess.run([os.environ["INSPECT"], "use", "--json", "-d", "1", "-p", str(pid)],
               stdout=open(sys.argv[2], "w"), check=True)
b, tb, wb = busy(), thread(pid), time.monotonic_ns()
print(100 * (b[0] - a[0]) / (b[1] - a[1]), 100 * (tb[0] - ta[0]) / (wb - wa), 100 * (tb[1] - ta[1]) / (wb - wa))
END
read -r host thread delay <<<"$(python3 "$tmp/cpu.py" $spinner "$tmp/cpu.json")"
near "$(value "$tmp/cpu.json" cpu_busy_percent)" "$host" 12 'CPU: busy as /proc/stat says'
near "$(value "$tmp/cpu.json" thread_busy_percent)" "$thread" 10 'hottest thread: as its schedstat says'
near "$(value "$tmp/cpu.json" process_cpus)" "$(awk "BEGIN { print $thread / 100 }")" 0.1 'process CPU: the same'
near "$(value "$tmp/cpu.json" process_run_delay_percent)" "$delay" 10 'run delay: as its schedstat says'
like "$(jq -r '.resources[] | select(.resource == "hottest thread") | .device' "$tmp/cpu.json")" \
	"^python3/$spinner$" 'the hottest thread has a name'
is "$(others "$tmp/cpu.json" 'hottest thread')" '' 'a full CPU moves nothing but that'
kill $spinner

# --- run queue: 8 spinners on one CPU ---
for _ in 1 2 3 4 5 6 7 8; do
	taskset -c 0 timeout 20 sh -c 'while :; do :; done' &
done
cat >"$tmp/delay.py" <<'END'
import glob, os, subprocess, sys, time

def delays():
    sums = {}
    for path in glob.glob("/proc/[0-9]*/task/*/schedstat"):
        try:
            sums[path] = int(open(path).read().split()[1])
        except OSError:
            pass
    return sums

a, wa = delays(), time.monotonic_ns()
subprocess.run([os.environ["INSPECT"], "use", "--json", "-d", "2"], stdout=open(sys.argv[1], "w"), check=True)
b, wb = delays(), time.monotonic_ns()
print(100 * sum(v - a.get(k, 0) for k, v in b.items()) / (wb - wa) / os.cpu_count())
END
delay=$(python3 "$tmp/delay.py" "$tmp/queue.json")
got=$(value "$tmp/queue.json" run_delay_percent '^$')
ok "awk 'BEGIN { exit !($got > 0.7 * $delay && $got < 1.4 * $delay && $got > 100) }'" \
	"run queue: $got % is what all schedstats say, $delay %"
is "$(verdict "$tmp/queue.json" CPU '^$')" critical 'and critical'
kill $(jobs -p)
wait 2>/dev/null

# --- locks: what the threads have measured themselves, at a mutex and at reader-writer locks ---
rw=$W/locks
if command -v musl-gcc >/dev/null; then
	rw="$rw $tmp/musl"
	musl-gcc -O2 -D_GNU_SOURCE -pthread -o "$tmp/musl" tests/workloads/locks.c
fi
"$W/locks" 4 4 >"$tmp/locks.out" &
locks=$!
for i in $rw; do
	"$i" 4 4 20 rw >"$tmp/${i##*/}.rw" &
	pids_rw+=" $!"
done
sleep 1
for i in $pids_rw; do
	measure "$tmp/$i.json" -d 1.5 -p "$i" &
done
measure "$tmp/locks.json" -d 1.5 -p $locks
wait
set -- $pids_rw
for i in $rw; do
	read -r _ waited wall address <"$tmp/${i##*/}.rw"
	near "$(value "$tmp/$1.json" lock_wait)" "$(awk "BEGIN { print $waited / $wall }")" 0.25 \
		"readers and writers of ${i##*/}: as the threads say"
	is "$(jq -r '.resources[] | select(.resource == "locks") | .device' "$tmp/$1.json")" \
		"${i##*/}/$1 $address" 'and they are one lock'
	shift
done
read -r _ waited wall address <"$tmp/locks.out"
near "$(value "$tmp/locks.json" lock_wait)" "$(awk "BEGIN { print $waited / $wall }")" 0.25 \
	'locks: seconds a second, as the threads say; a condition is none'
is "$(jq -r '.resources[] | select(.resource == "locks") | .device' "$tmp/locks.json")" \
	"locks/$locks $address" 'the lock is told by its address'
like "$(jq -r '.findings[0].rule' "$tmp/locks.json")" '^locked$' 'it is the first finding'
is "$(others "$tmp/locks.json" locks)" '' 'locks move nothing else'

# One holds it for the whole window: those that wait slept before and sleep after.
"$W/locks" 5 1 60000 >/dev/null &
locks=$!
sleep 0.5
measure "$tmp/held.json" -d 0.5 -p "$(ls /proc/$locks/task | tail -1),$locks,$locks"
kill $locks
near "$(value "$tmp/held.json" lock_wait)" 4 0.1 'a lock that is never given back: 4 threads wait all the time'
for i in $rw; do
	"$i" 2 1 60000 rw >/dev/null &
	sleep 0.3
	measure "$tmp/held_rw.json" -d 0.3 -p $!
	kill $!
	near "$(value "$tmp/held_rw.json" lock_wait)" 1 0.1 'so is it with one for a reader and a writer'
done
is "$(verdict "$tmp/held.json" locks)" critical 'which is critical'
is "$(jq -r '[.findings[].next | select(test("-p "))] | map(match("-p [0-9,]*").string) | unique | join(" ")' "$tmp/held.json")" \
	"-p $locks" 'commands are for the process, not for the id of a thread'
is "$(jq -r '[.resources[] | select(.resource == "process CPU").device] | join(" ")' "$tmp/held.json")" "locks/$locks" \
	'a process that is named twice, and by a thread, is one'
like "$(jq -r '.notes[]' "$tmp/held.json")" "is a thread of process $locks, which is measured as a whole$" 'which is said'

# One thread alone never waits; those on conditions do, but not for a lock.
"$W/locks" 1 4 >/dev/null &
idle=$!
if [ -x "$tmp/musl" ]; then
	"$tmp/musl" 1 4 >/dev/null &
	idle=$idle,$!
fi
sleep 0.5
measure "$tmp/idle.json" -d 1 -p $idle
is "$(value "$tmp/idle.json" lock_wait)" 0 'waiting for work is no waiting for a lock, in glibc and musl'

# --- descriptors; and threads of a user, at its limit ---
python3 - "$tmp/fds.json" >"$tmp/fds" <<'END'
import os, resource, subprocess, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
files = [open("/dev/null") for _ in range(270)]

def of_user():
    """5 more processes of a user who may have 4, when they are asked for."""
    os.setresuid(23456, 23456, 23456)
    resource.setrlimit(resource.RLIMIT_NPROC, (4, 4))
    os.read(begin[0], 1)
    refused = 0
    for _ in range(5):
        try:
            if not os.fork():
                os.read(end[0], 1)
                os._exit(0)
        except BlockingIOError:
            refused += 1
    print(os.getpid(), refused, flush=True)
    os.read(end[0], 1)
    os._exit(0)

begin, end = os.pipe(), os.pipe()
if not os.fork():
    os.close(end[1])
    of_user()
with open(sys.argv[1], "w") as out:
    tool = subprocess.Popen([os.environ["INSPECT"], "use", "--json", "-d", "1"], stdout=out)
    # Its first reading is over when it waits in poll.
    while open(f"/proc/{tool.pid}/syscall").read().split()[0] not in ("7", "73", "271"):
        time.sleep(0.01)
    os.write(begin[1], b"x")
    refused, more = 0, []
    for _ in range(60):
        try:
            more.append(os.dup(0))
        except OSError:
            refused += 1
    for fd in more:
        os.close(fd)
    tool.wait()
    print(os.getpid(), 100 * (len(os.listdir("/proc/self/fd")) - 1) / 300, refused)
END
read -r user user_refused <"$tmp/fds"
read -r pid percent refused <<<"$(tail -1 "$tmp/fds")"
near "$(value "$tmp/fds.json" fds_percent "/$pid\$")" "$percent" 1 'fds: found host-wide, and counted right'
is "$(value "$tmp/fds.json" fds_refused "/$pid\$")" "$refused" "fds: $refused refused, as the caller counted"
is "$(verdict "$tmp/fds.json" fds "/$pid\$")" critical 'fds: that is critical'
is "$(jq -r '.findings[] | select(.rule == "descriptors").next' "$tmp/fds.json")" "ls -l /proc/$pid/fd" \
	'descriptors are a finding'
is "$(value "$tmp/fds.json" process_threads_percent "/$user\$")" 100 'threads: those of the user, all processes together'
is "$(value "$tmp/fds.json" user_threads_refused "/$user\$")" "$user_refused" "threads: $user_refused refused, as the caller counted"
is "$(value "$tmp/fds.json" threads_refused '^$')" 0 'threads: which is not the limit of the host'
is "$(others "$tmp/fds.json" fds 'process threads')" '' 'descriptors and threads move nothing else'

# --- disk: each write waits for the disk ---
cat >"$tmp/disk.py" <<'END'
import json, os, subprocess, sys, threading, time

def disks():
    return {f[2]: [int(x) for x in f[3:14]] for f in (l.split() for l in open("/proc/diskstats"))}

def write():
    fd = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
    while not done:
        os.pwrite(fd, b"x" * 4096, 0)
        os.fsync(fd)

done = False
writer = threading.Thread(target=write)
writer.start()
a = disks()
subprocess.run([os.environ["INSPECT"], "use", "--json", "--all", "-d", "2"], stdout=open(sys.argv[1], "w"), check=True)
b = disks()
done = True
writer.join()
report = json.load(open(sys.argv[1]))
values = report["values"]
name = max(b, key=lambda n: b[n][4] - a[n][4] if os.path.exists("/sys/block/" + n) else 0)
d = [y - x for x, y in zip(a[name], b[name])]
get = lambda m: next(v["value"] for v in values if v["metric"] == m and v["device"] == name)
ios, await_ms = d[0] + d[4], (d[3] + d[7]) / (d[0] + d[4])
print(get("disk_ios_per_second") * report["window_ns"] / 1e9 / ios, get("disk_await_ms"), await_ms)
END
if findmnt -n -o FSTYPE -T "$PWD" | grep -qE 'tmpfs|overlay|9p|nfs'; then
	skip 'there is no disk below this folder' 2
else
	read -r share got want <<<"$(python3 "$tmp/disk.py" "$tmp/disk.json" "$PWD/$name")"
	rm -f "$PWD/$name"
	ok "awk 'BEGIN { exit !($share > 0.2 && $share < 1.05) }'" \
		"disk: $share of the I/Os that diskstats counts from before its start to after its end"
	ok "awk 'BEGIN { exit !($got > 0.5 * $want - 0.1 && $got < 2 * $want + 0.1) }'" \
		"disk: await $got ms, $want ms around it"
fi

# --- a network of its own: drops, and a server that does not accept ---
cat >"$tmp/net.py" <<'END'
import os, socket, subprocess, sys, time

def column(path, group, name):
    names, values = [l.split() for l in open(path) if l.startswith(group)]
    return int(values[names.index(name)])

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(1)
before = column("/proc/net/netstat", "TcpExt:", "ListenOverflows")
tool = subprocess.Popen([os.environ["INSPECT"], "use", "--json", "-d", "2"], stdout=open(sys.argv[1], "w"))
time.sleep(1)
clients = []
for _ in range(20):
    c = socket.socket()
    c.setblocking(False)
    c.connect_ex(server.getsockname())
    clients.append(c)
time.sleep(0.5)
tool.wait()
print(column("/proc/net/netstat", "TcpExt:", "ListenOverflows") - before)
END
# What is sent into a pair whose other end goes down is dropped.
cat >"$tmp/drops.sh" <<'END'
drops() { awk '$1 == "a0:" { print $5 + $13 }' /proc/net/dev; }
ip link add a0 type veth peer name b0
ip addr add 10.9.9.1/24 dev a0
ip link set a0 up
ip link set b0 up
ip neigh add 10.9.9.2 lladdr 02:00:00:00:00:01 dev a0
echo x >/dev/udp/10.9.9.2/9
before=$(drops)
"$INSPECT" use --json -d 2 >"$1" &
while kill -0 $! 2>/dev/null; do
	ip link set b0 up
	ip link set b0 down
	for i in 1 2 3 4 5 6 7 8 9 10; do echo x >/dev/udp/10.9.9.2/9; done
	sleep 0.05
done
echo $(($(drops) - before))
END
# Each in a network of its own, at the same time.
unshare -n python3 "$tmp/net.py" "$tmp/net.json" >"$tmp/overflows" 2>/dev/null &
dropped=$(unshare -n bash "$tmp/drops.sh" "$tmp/drops.json" 2>/dev/null)
wait $!
overflows=$(cat "$tmp/overflows")
got=$(value "$tmp/net.json" listen_overflows_per_second)
ok "awk 'BEGIN { exit !($overflows > 10 && $got * 2 > 0.4 * $overflows && $got * 2 < 1.1 * $overflows) }'" \
	"TCP: $got listen overflows a second, $overflows in 2 s as netstat says"
is "$(verdict "$tmp/net.json" TCP)" warn 'TCP: it is a warning'
is "$(others "$tmp/net.json" TCP)" '' 'overflows move nothing else'
got=$(value "$tmp/drops.json" net_drops_per_second a0)
ok "awk 'BEGIN { exit !($dropped > 20 && $got * 2 > 0.4 * $dropped && $got * 2 < 1.1 * $dropped) }'" \
	"network: $got drops a second, $dropped in 2 s as /proc/net/dev says"
is "$(verdict "$tmp/drops.json" network a0)" warn 'network: it is a warning'
is "$(others "$tmp/drops.json" network)" '' 'drops move nothing else'
