#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Waiting for the GPU in profiles: a libcuda whose cuEventSynchronize spins and whose
# cuStreamSynchronize sleeps, and a program that says how long it was in each, and how long it worked;
# a driver that is waited for by processes that are gone when their waits are read.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
. "$(dirname "$0")/gpu_lib.sh"
cp "$W/fake_cuda" "$tmp/libcuda.so.1"

# All of them measure one run, from before its work to its end: each says by its CMD that it has begun.
# What the program says of itself (ns): $worked, $spun, $slept.
"$W/cuda_calls" "$tmp/libcuda.so.1" 0 "$tmp/gate" >"$tmp/told" &
pid=$!
measuring=$pid
until grep -q libcuda /proc/$pid/maps; do sleep 0.02; done
watched=(-p $pid -- sh -c ': >"$0"; while [ -d /proc/$1 ]; do sleep 0.05; done')
"$INSPECT" offcpu --json "${watched[@]}" "$tmp/1" $pid >"$tmp/waits" 2>"$tmp/err.1" &
measuring+=" $!"
"$INSPECT" flame --wall -F 999 --folded -o "$tmp/wall" "${watched[@]}" "$tmp/2" $pid 2>"$tmp/err.2" &
measuring+=" $!"
"$INSPECT" record -q -F 499 -e cpu-clock -o "$tmp/x.data" "${watched[@]}" "$tmp/3" $pid >"$tmp/out" 2>"$tmp/err.3" &
measuring+=" $!"
for ((i = 0; i < 600; i++)); do
	[ -e "$tmp/1" ] && [ -e "$tmp/2" ] && [ -e "$tmp/3" ] && break
	sleep 0.05
done
echo >"$tmp/gate"
wait $measuring
read -r worked spun slept <"$tmp/told"
# share PART OTHER…: percent that a part has in the sum
share() { awk -v p="$1" -v o="$2" 'BEGIN { printf "%.2f", 100 * p / (p + o) }'; }
# folded REGEX: the sum of stacks that match
folded() { awk -v r="$1" '$0 ~ r { s += $NF } END { printf "%d", s }' "$tmp/folded"; }

# --- CPU time --------------------------------------------------------------------------------------

"$INSPECT" flame --folded "$tmp/x.data" >"$tmp/folded" 2>/dev/null
spin=$(folded 'wait_for_gpu;cuEventSynchronize;\[gpu spin wait\] ')
is "$spin" "$(folded 'cuEventSynchronize')" 'CPU time below a synchronisation is one frame, [gpu spin wait]'
near "$(share "$spin" "$(folded ';work;')")" "$(share "$spun" "$worked")" 10 '… with its share of the time'
is "$(folded 'spin_us')" 0 '… in which nothing else of it is seen'
"$INSPECT" report --json "$tmp/x.data" >"$tmp/json" 2>/dev/null
is "$(jq '.functions[] | select(.function == "[gpu spin wait]").self_weight' "$tmp/json")" "$(folded '\[gpu spin wait\]')" \
	'report has it as a function, with its time'

# --- waits -----------------------------------------------------------------------------------------

# Up to the wake-up: it sleeps for 5 ms 25 times, and sees when it runs again.
between() { near "$1" "$((($2 + $3) / 2))" "$((($3 - $2) / 2 + 1000000))" "$4"; }
between "$(jq '[.waits[] | select(.for | startswith("[gpu: cuStreamSynchronize]")).wait_ns] | add' "$tmp/waits")" \
	125000000 "$slept" 'offcpu names a wait for the GPU, with its time'
is "$(jq -r '[.waits[] | select(.for | startswith("[gpu: ")).reason] | unique | join(" ")' "$tmp/waits")" gpu \
	'… as one'

cp "$tmp/wall" "$tmp/folded"
between "$(folded 'cuStreamSynchronize.*;\[gpu: cuStreamSynchronize\]')" 125000000 "$slept" \
	'all of the wall time: [gpu: cuStreamSynchronize]'
near "$(folded 'cuEventSynchronize;\[gpu spin wait\]')" "$spun" "$((spun / 2 + 20000000))" '… and, by ticks, [gpu spin wait]'
is "$(folded 'cu(Stream|Event)Synchronize.*\[(waiting|on-cpu)')" 0 '… in place of other names'

# --- processes that are gone when their waits are read ---------------------------------------------

# What a descriptor was, and what the driver was asked, is known from the switch.
mkdir /dev/nvidia-waits-$$ && on_exit "umount -l /dev/nvidia-waits-$$; rmdir /dev/nvidia-waits-$$"
mount --bind "$dev" /dev/nvidia-waits-$$
"$INSPECT" offcpu --json -- "$calls" /dev/nvidia-waits-$$ answer 20000 28 0 0 open nvidiactl \
	from alpha rm 0x2a 32 8:0x20800102 3 xfer 0x2a 32 8:0x101 1 set epoll 30 poll 30 >"$tmp/json" 2>"$tmp/err"
is "$(jq -r '[.waits[] | select(.reason == "gpu" and (.for | endswith("] nvidiactl"))).for] | unique | join("|")' "$tmp/json")" \
	"[gpu: $build] nvidiactl|[gpu: RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2] nvidiactl|[gpu: epoll_wait] nvidiactl|[gpu: poll] nvidiactl" \
	'waits in the driver by device and command'
served=$(awk '$1 == 42 { s += $2; if (++n == 3) { print s; exit } }' "$tmp/log")
near "$(jq '[.waits[] | select(.for | contains("GPU_GET_INFO_V2")).wait_ns] | add' "$tmp/json")" "$served" \
	"$((served / 25 + 10000000))" '… with their time'

FAKE_GPU=/dev/nvidia-waits-$$/nvidiactl "$INSPECT" offcpu --json -- "$W/cuda_calls" "$tmp/libcuda.so.1" >"$tmp/json" 2>"$tmp/err"
ok '[ "$(jq "[.waits[] | select(.for == \"[gpu: cuCtxSynchronize] poll nvidiactl\").wait_ns] | add" "$tmp/json")" -ge 29000000 ]' \
	'a poll of the device below a function that waits for the GPU has both names'

cat >"$tmp/short.py" <<'EOF'
import fcntl, os, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
r, w = os.pipe()
locked = open(sys.argv[1], "w")
fcntl.flock(locked, fcntl.LOCK_EX)
if os.fork() == 0:
    s = socket.create_connection(listener.getsockname())
    print("recvfrom TCP %s:%d->%s:%d|read pipe:[%d]|flock %s" % (*s.getsockname(), *s.getpeername(),
        os.fstat(r).st_ino, sys.argv[1]), file=sys.stderr, flush=True)
    s.recv(1)
    os.read(r, 1)
    fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)
    os._exit(0)
peer, _ = listener.accept()
for step in lambda: peer.send(b"x"), lambda: os.write(w, b"x"), lambda: fcntl.flock(locked, fcntl.LOCK_UN):
    time.sleep(0.02)
    step()
os.wait()
EOF
"$INSPECT" offcpu --json -- python3 "$tmp/short.py" "$tmp/locked" >"$tmp/json" 2>"$tmp/told"
told=$(grep '^recvfrom' "$tmp/told")
is "$(jq -r --arg t "$told" '($t | split("|")) as $all | [.waits[].for | select(. as $f | $all | index($f))] | unique | join("|")' "$tmp/json")" \
	"$(tr '|' '\n' <<<"$told" | sort | paste -sd'|')" 'sockets, pipes and files by their names'
