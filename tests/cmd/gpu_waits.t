#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Waiting for the GPU in profiles: a libcuda whose cuEventSynchronize spins and whose
# cuStreamSynchronize sleeps, and a program that says how long it was in each, and how long it worked.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
cp "$W/fake_cuda" "$tmp/libcuda.so.1"
mkfifo "$tmp/gate"

# All of them measure one run, from before its work to its end: each says by its CMD that it has begun.
# What the program says of itself (ns): $worked, $spun, $slept.
"$W/cuda_calls" "$tmp/libcuda.so.1" 0 "$tmp/gate" >"$tmp/told" &
pid=$!
until grep -q libcuda /proc/$pid/maps; do sleep 0.02; done
begun=(-p $pid -- sh -c ': >"$0"; while [ -d /proc/$1 ]; do sleep 0.05; done')
"$INSPECT" offcpu --json "${begun[@]}" "$tmp/1" $pid >"$tmp/waits" 2>"$tmp/err.1" &
"$INSPECT" flame --wall -F 999 --folded -o "$tmp/wall" "${begun[@]}" "$tmp/2" $pid 2>"$tmp/err.2" &
"$INSPECT" record -q -F 499 -e cpu-clock -o "$tmp/x.data" "${begun[@]}" "$tmp/3" $pid >"$tmp/out" 2>"$tmp/err.3" &
for ((i = 0; i < 600; i++)); do
	[ -e "$tmp/1" ] && [ -e "$tmp/2" ] && [ -e "$tmp/3" ] && break
	sleep 0.05
done
echo >"$tmp/gate"
wait
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
