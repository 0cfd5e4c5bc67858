#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What is waited for: files, the peers of sockets, a quota; beside what the kernel counts.
. "$(dirname "$0")/lib.sh"
python=/usr/bin/python3

truth() { awk -v key="$1" '$1 == key { print $2 }' "$tmp/truth"; }

# --- files ----------------------------------------------------------------------------------------

head -c 8M /dev/zero >"$tmp/mapped file"
exits 0 'a program that waits for its pages' sh -c \
	"exec '$INSPECT' offcpu --json -- '$W/faults' '$tmp/mapped file' 0.3 2>'$tmp/truth'"
mv "$tmp/out" "$tmp/faults.json"
jq --arg for "page fault $tmp/mapped file" '[.waits[] | select(.reason == "page fault" and .for == $for)] |
	{count: (map(.count) | add // 0), ns: (map(.wait_ns + .queue_ns) | add // 0)}' "$tmp/faults.json" >"$tmp/of_file"
waits=$(truth waits) off=$(truth off) count=$(jq .count "$tmp/of_file")
if [ "${waits:-0}" -lt 100 ]; then
	skip 'no page fault waits for this file system' 2
else
	near "$count" "$waits" $((waits / 200)) 'page faults that wait are as many as the kernel counts, and name the mapped file'
	# What it lost its CPU for otherwise is told apart; a switch that is watched takes a little longer, and the
	# hypervisor's time is in one of the two.
	ns=$(jq .ns "$tmp/of_file")
	lost=$(jq '[.waits[] | select(.reason == "runnable") | .wait_ns] | add // 0' "$tmp/faults.json")
	ok "[ $ns -ge $((off * 95 / 100 - lost)) ] && [ $ns -le $((off * 105 / 100 + count * 5000)) ]" \
		'… and last as long as touching was without a CPU'
fi

cat >"$tmp/disk.py" <<'END'
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
try:
    direct = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
except OSError:
    direct = -1
page = mmap.mmap(-1, 65536)
page.write(b"x" * 65536)
begin = time.monotonic_ns()
while time.monotonic_ns() - begin < 3e8:
    os.pwrite(fd, b"x" * 65536, 0)
    os.fsync(fd)
    if direct >= 0:
        os.pwrite(direct, page, 0)
time.sleep(0.3)
END
"$INSPECT" offcpu --json -- "$python" "$tmp/disk.py" "$tmp/synced" "$tmp/direct" >"$tmp/disk.json" 2>"$tmp/err"
for pair in "fsync $tmp/synced" "pwrite64 $tmp/direct"; do
	if [ "$(jq --arg for "$pair" '[.waits[] | select(.for == $for)] | length' "$tmp/disk.json")" = 0 ]; then
		skip "${pair%% *} does not wait on this file system"
	else
		is "$(jq -r --arg for "$pair" '[.waits[] | select(.for == $for) | .reason] | unique[]' "$tmp/disk.json")" \
			disk "${pair%% *} waits for the disk, for that file"
	fi
done

# --- sockets --------------------------------------------------------------------------------------

cat >"$tmp/peers.py" <<'END'
import os, select, socket, sys, threading, time
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
pair = socket.socketpair()
client.settimeout(0.4)
kept = []

def poll_one():
    try: client.recv(1)
    except TimeoutError: pass

def poll_of(*sockets, ms=400):
    p = select.poll()
    for s in sockets: p.register(s, select.POLLIN)
    p.poll(ms)

def epoll_of(*sockets):
    e = select.epoll()
    kept.append(e)
    for s in sockets: e.register(s, select.EPOLLIN)
    e.poll(0.4)

def name(near, far):
    return "%s:%d->%s:%d" % (near.getsockname() + far.getsockname())

if sys.argv[1] == "forever":
    threading.Thread(target=poll_of, args=(server,), kwargs={"ms": 60000}, daemon=True).start()
    time.sleep(0.2)
    print(name(server, client), flush=True)
    time.sleep(60)
calls = [(poll_one,), (poll_of, os.fdopen(os.open(sys.argv[1], os.O_RDWR))), (poll_of, server, listener), (epoll_of, server, pair[0]), (epoll_of, server, listener)]
threads = [threading.Thread(target=c[0], args=c[1:]) for c in calls]
for t in threads: t.start()
for t in threads: t.join()
time.sleep(0.5)
print("client", name(client, server), file=sys.stderr)
print("server", name(server, client), file=sys.stderr)
END
# A device of this name would be a GPU.
mkdir /dev/nvidia-test-$$ && on_exit "rm -r /dev/nvidia-test-$$" && mkfifo /dev/nvidia-test-$$/node
"$INSPECT" offcpu --json --stacks 0 -- "$python" "$tmp/peers.py" /dev/nvidia-test-$$/node \
	>"$tmp/peers.json" 2>"$tmp/truth"
is "$(jq -r '[.waits[] | select(.reason == "poll" and .wait_ns > 3e8) | .for] | sort[]' "$tmp/peers.json")" \
	"epoll_wait TCP $(truth server)
epoll_wait epoll
poll 2 fds
poll TCP $(truth client)" 'poll and epoll of one socket say which peer'
is "$(jq -r '[.waits[] | select(.reason == "gpu") | .for] | .[]' "$tmp/peers.json")" "[gpu: poll] node" \
	'poll of a GPU waits for the GPU'
# A process that ends meanwhile and that nobody has waited for.
mkfifo "$tmp/until"
"$python" -c '
import os, sys, time
until = os.open(sys.argv[1], os.O_RDWR)
pid = os.fork()
if not pid:
    os.read(until, 1)
    os._exit(0)
print(pid, flush=True)
time.sleep(60)' "$tmp/until" >"$tmp/zombie" &
parent=$!
on_exit "kill $parent 2>/dev/null"
until [ -s "$tmp/zombie" ]; do sleep 0.02; done
"$INSPECT" offcpu --json -p "$(cat "$tmp/zombie")",$parent -d 1.2 >"$tmp/ended.json" 2>/dev/null &
until grep -qs link_type /proc/$!/fdinfo/*; do sleep 0.05; done
sleep 0.3
echo >"$tmp/until"
wait $!
jq --argjson tid "$(cat "$tmp/zombie")" '.threads |= map(select(.tid == $tid))' "$tmp/ended.json" >"$tmp/zombie.json"
mv "$tmp/zombie.json" "$tmp/ended.json"
is "$(jq -c '[.threads[].tid]' "$tmp/ended.json")" "[$(cat "$tmp/zombie")]" 'a zombie is one thread, told once'
near "$(jq '.threads[0] | .running_percent + .runnable_percent + .waiting_percent' "$tmp/ended.json")" 100 1 'and its parts are all of it'
kill $parent
"$python" "$tmp/peers.py" forever >"$tmp/address" &
waiter=$!
on_exit "kill $waiter 2>/dev/null"
until [ -s "$tmp/address" ]; do sleep 0.05; done
"$INSPECT" offcpu --json --stacks 0 -p $waiter -d 0.3 >"$tmp/before.json" 2>"$tmp/err"
is "$(jq -r '[.waits[] | select(.reason == "poll") | .for, .before, .open]  | join(" ")' "$tmp/before.json")" \
	"poll TCP $(cat "$tmp/address") 1 1" 'and one that has waited since before the start'

# --- what is missing ------------------------------------------------------------------------------

"$INSPECT" offcpu --json --mmap-pages 1 -- "$W/losses" stacks >"$tmp/ring.json" 2>"$tmp/err"
unsent=$(jq -r '.notes[]' "$tmp/ring.json" | awk '/ waits have no stack: it did not fit into the ring/ { print $1 }')
ok '[ "${unsent:-0}" -gt 100 ]' 'a ring of one page: waits whose stack did not fit are counted'
is "$(jq .losses.stacks "$tmp/ring.json")" "$unsent" '… as data'
is "$(jq '.lost == ([.losses[]] | add)' "$tmp/ring.json") $(jq -r '.summary | test(" lost '"$(jq .lost "$tmp/ring.json")"'$")' "$tmp/ring.json")" \
	'true true' 'what is lost is the sum of all kinds, in the first line too'
# Its main thread is there from its exec on, each switch is the beginning of one wait, but the last.
is "$(jq '([.waits[].count] | add) + .losses.waits' "$tmp/ring.json")" \
	"$(jq '([.threads[] | select(.tid) | .switches] | add) - 1' "$tmp/ring.json")" 'and no wait is missing'
near "$(jq '[.threads[] | select(.tid) | .running_percent + .runnable_percent + .waiting_percent] | min' "$tmp/ring.json")" \
	100 2 'their waits are there all the same'
"$INSPECT" offcpu --json -- "$W/losses" absent >"$tmp/absent.json" 2>"$tmp/err"
is "$(jq '[.truncated_by_reason[] | select(.reason == "stack not readable") | .samples > 0] | any' "$tmp/absent.json")" true \
	'a page of the stack that is not in memory: cut stacks are counted by their reason'

# --- a quota --------------------------------------------------------------------------------------

cat >"$tmp/spin.py" <<'END'
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
END
group=/sys/fs/cgroup/cpu/inspect-test-$$
if mkdir "$group" "$group/below" 2>/dev/null && echo 10000 >"$group/cpu.cfs_quota_us"; then
	on_exit "rmdir '$group/below' '$group'"
	count() { awk -v key="$1" '$1 == key { print $2 }' "$group/cpu.stat"; }
	sh -c "echo \$\$ >$group/below/cgroup.procs; exec $python $tmp/spin.py 60" &
	spinner=$!
	on_exit "kill $spinner 2>/dev/null"
	sleep 0.3
	before=$(count nr_throttled)
	"$INSPECT" offcpu --json -p $waiter,$spinner -d 0.7 >"$tmp/times.json" 2>"$tmp/err"
	after=$(count nr_throttled)
	is "$(jq ".nr_throttled >= 2 and .nr_throttled <= $after - $before" "$tmp/times.json")" true \
		"a quota above the second process's group: as many periods as the kernel says"
	like "$(jq -r .summary "$tmp/times.json")" "throttled \($(jq .nr_throttled "$tmp/times.json") times\)" \
		'which the first line says'
	is "$(jq '[.waits[] | select(.reason == "throttled")] | length' "$tmp/times.json")" 1 'in one row'
	kill $spinner
	wait $spinner
	echo 50000 >"$group/cpu.cfs_quota_us"
	before=$(count throttled_time) periods=$(count nr_throttled)
	"$INSPECT" offcpu --json -- sh -c "echo \$\$ >$group/cgroup.procs; exec $python $tmp/spin.py 1.5" \
		>"$tmp/quota.json" 2>"$tmp/err"
	after=$(count throttled_time)
	jq '.threads[-1]' "$tmp/quota.json" >"$tmp/thread.json"
	near "$(jq '.throttled_percent // 0' "$tmp/thread.json")" \
		"$(awk -v a=$((after - before)) -v b="$(jq .wall_ns "$tmp/thread.json")" 'BEGIN { print 100 * a / b }')" 2 \
		'half a CPU: throttled as long as the kernel says, without what it waited for a CPU afterwards'
	if [ $((periods = $(count nr_throttled) - periods)) -lt 3 ]; then
		skip "a busy machine: throttled $periods times"
	else
		times=$(jq -r .summary "$tmp/quota.json" | sed -n 's/.* throttled (at least \([0-9]*\) times).*/\1/p')
		ok '[ "${times:-0}" -ge 1 ] && [ "$times" -le "$periods" ]' \
			"it came into the group later: at least $times of $periods periods"
	fi
	# The first period may be a whole one.
	is "$(jq '.running_percent < 54 and .running_percent + .runnable_percent + (.throttled_percent // 0) > 96' \
		"$tmp/thread.json")" true 'and nothing else kept it from running'
else
	skip 'no cgroup v1 CPU controller here' 6
fi
kill $waiter
