#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Swap in compressed memory, for a cgroup that is smaller than what its process needs.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "makes a cgroup and swap: needs root"
[ "$(cat /sys/block/zram0/disksize 2>/dev/null)" = 0 ] || skip_all 'there is no unused zram0 here'
[ -d /sys/fs/cgroup/memory ] || skip_all 'no cgroups of version 1 here'
. tests/cmd/use_lib.sh

group=/sys/fs/cgroup/memory/inspect-test-$$
echo 256M >/sys/block/zram0/disksize
on_exit 'echo 1 >/sys/block/zram0/reset'
mkswap -q /dev/zram0 >/dev/null 2>&1 || mkswap /dev/zram0 >/dev/null
swapon /dev/zram0 || skip_all 'swap is not allowed here'
on_exit 'swapoff /dev/zram0'
mkdir "$group"
on_exit "rmdir '$group'"
echo 32M >"$group/memory.limit_in_bytes"
# Touches 64 MiB again and again, more than it may have at a time.
cat >"$tmp/touch.py" <<'END'
import os, sys
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
memory = bytearray(os.urandom(1 << 20)) * 64
while True:
    for at in range(0, len(memory), 4096):
        memory[at] = 1
END
python3 "$tmp/touch.py" "$group" &
toucher=$!
sleep 1.5
swapped() {
	awk '$1 == "pswpin" { print $2 }' /proc/vmstat
}
before=$(swapped)
measure "$tmp/swap.json" -d 1
after=$(swapped)
rate=$(value "$tmp/swap.json" swap_in_per_second)
seconds=$(jq '.window_ns / 1e9' "$tmp/swap.json")
ok "awk 'BEGIN { n = $rate * $seconds; exit !(n > 100 && n <= $after - $before && n > ($after - $before) / 4) }'" \
	"swap: $rate pages a second are read back, $((after - before)) around it"
like "$(verdict "$tmp/swap.json" memory)" '^(warn|critical)$' 'any swap-in is a warning, unless memory has worse to tell'
is "$(jq -r '[.findings[].rule] | index("swapping") != null' "$tmp/swap.json")" true 'it is a finding'
near "$(value "$tmp/swap.json" swap_used_percent)" \
	"$(awk '/SwapTotal/ { t = $2 } /SwapFree/ { print 100 * (t - $2) / t }' /proc/meminfo)" 5 'swap: as full as /proc/meminfo says'
measure "$tmp/process.json" -d 0.5 -p $toucher
near "$(jq '[.values[] | select(.metric == "process_swap_bytes").value][0] / 1048576' "$tmp/process.json")" \
	"$(awk '/VmSwap/ { print $2 / 1024 }' "/proc/$toucher/status")" 8 'the process: as much in swap as its status says'
is "$(verdict "$tmp/process.json" 'process memory')" critical 'its major faults are many'
kill -KILL $toucher
wait 2>/dev/null
