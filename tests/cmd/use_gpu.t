#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every row of GPUs, from a library that says what this test wants it to.
. "$(dirname "$0")/lib.sh"
. tests/cmd/use_lib.sh
mkdir "$tmp/lib"
cp "$W/fake_nvml" "$tmp/lib/libnvidia-ml.so.1"
export FAKE_NVML=$tmp/gpus

# gpus ARG…: a report on what stdin says
gpus() {
	cat >"$FAKE_NVML"
	LD_LIBRARY_PATH=$tmp/lib "$INSPECT" use --json -d 0.1 "$@" >"$tmp/gpu.json" 2>"$tmp/err" ||
		diag "$(cat "$tmp/err")"
}

# A healthy one: PCIe 5 x16 at half, 4 links of 25 GB/s that carry a quarter.
healthy='0.busy 97
0.memory_gib 80
0.used_gib 72
0.power_mw 612000
0.power_limit_mw 700000
0.celsius 64
0.reasons 0
0.ecc 0
0.remapped 0
0.generation 5
0.width 16
0.generation_max 5
0.width_max 16
0.pcie_tx_kb 31504000
0.pcie_rx_kb 1000
0.replays 7
0.links 4
0.link_mbytes 25000
0.nvlink_tx_kib 1000/4882812
0.nvlink_rx_kib 1000
0.link_errors 3
0.mig 0'
gpus <<<"count 1
$healthy"
is "$(value "$tmp/gpu.json" gpu_busy_percent)" 97 'busy'
is "$(value "$tmp/gpu.json" gpu_memory_percent)" 90 'memory'
near "$(value "$tmp/gpu.json" pcie_percent)" 50 0.1 'PCIe: of generation 5, 16 lanes'
near "$(value "$tmp/gpu.json" nvlink_percent)" \
	"$(jq '5e9 / (.window_ns / 1e9) / 1e11 * 100' "$tmp/gpu.json")" 3 'NVLink: of four links'
near "$(value "$tmp/gpu.json" gpu_power_percent)" 87.43 0.01 'power'
is "$(value "$tmp/gpu.json" gpu_celsius)" 64 'temperature'
is "$(jq -r '[.resources[] | select(.resource | test("^GPU(?! driver)")) | .verdict] | unique[]' \
	"$tmp/gpu.json")" ok 'all is well'
is "$(jq '[.resources[] | select(.resource | test("^GPU(?! driver)"))] | length' "$tmp/gpu.json")" 5 'five rows'

# gpu_is RESOURCE METRIC VALUE VERDICT NAME <<<LINES: with these lines in place of the healthy ones
gpu_is() {
	local lines key
	lines=$(cat)
	key=$(cut -d' ' -f1 <<<"$lines" | paste -sd'|')
	gpus <<<"count 1
$lines
$(grep -vE "^(${key//./\\.}) " <<<"$healthy")"
	near "$(value "$tmp/gpu.json" "$2")" "$3" 0.01 "$5"
	is "$(verdict "$tmp/gpu.json" "$1")" "$4" "$5: $4"
}
gpu_is GPU gpu_throttled 1 critical 'hardware slowdown' <<<'0.reasons 8'
is "$(jq -r '.findings[] | select(.rule == "gpu-slowed-down").rule' "$tmp/gpu.json")" \
	gpu-slowed-down 'it is a finding'
gpu_is GPU gpu_throttled 1 critical 'thermal slowdown' <<<'0.reasons 64'
gpu_is GPU gpu_throttled 1 critical 'power brake' <<<'0.reasons 128'
gpu_is GPU gpu_thermal 1 warn 'software thermal slowdown' <<<'0.reasons 32'
gpu_is 'GPU power' gpu_power_capped 1 warn 'power cap' <<<'0.reasons 4'
gpu_is 'GPU memory' gpu_memory_percent 97.5 warn 'memory nearly full' <<<'0.used_gib 78'
gpu_is 'GPU memory' gpu_ecc_uncorrected 2 critical 'ECC' <<<'0.ecc 2'
gpu_is 'GPU memory' gpu_remapped_rows 1 warn 'remapped rows' <<<'0.remapped 1'
gpu_is 'GPU PCIe' pcie_percent 88.87 critical 'PCIe nearly full' <<<'0.pcie_rx_kb 56000000'
gpu_is 'GPU PCIe' pcie_link_reduced 1 warn 'a reduced link under load' <<<'0.width 8'
gpu_is 'GPU PCIe' pcie_link_reduced 1 ok 'a reduced link of an idle GPU' <<<'0.width 8
0.busy 0'
gpus <<<"count 1
0.replays 7/2
$(grep -v '^0.replays' <<<"$healthy")"
ok "awk 'BEGIN { exit !($(value "$tmp/gpu.json" pcie_replays_per_second) > 4) }'" 'replays are a rate'
is "$(verdict "$tmp/gpu.json" 'GPU PCIe')" warn 'replays: warn'
gpu_is 'GPU NVLink' nvlinks_down 1 warn 'a link is down' <<<'0.links_down 1'
gpus <<<"count 1
0.link_errors 3/1
$(grep -v '^0.link_errors' <<<"$healthy")"
is "$(verdict "$tmp/gpu.json" 'GPU NVLink')" warn 'errors of links: warn'
gpus <<<"count 1
xid_at 1 0
$healthy"
is "$(value "$tmp/gpu.json" gpu_xid_errors)" 1 'an XID during the window'
is "$(verdict "$tmp/gpu.json" GPU)" critical 'XID: critical'

# Links are measured while NVML is asked: 16 GPUs take 1.28 s, which belong to the window.
{
	echo 'count 16'
	for ((i = 0; i < 16; i++)); do echo "$i.pcie_ms 40"; done
} | gpus -d 3
near "$(jq '.window_ns / 1e9' "$tmp/gpu.json")" 3.3 0.6 'many GPUs: the window is not longer for them'

# --- what a GPU does not tell ---
gpus <<<'count 1
0.memory_gib 16
0.used_gib 1'
reason() { # METRIC
	jq -r --arg m "$1" '.values[] | select(.metric == $m) | .value_reason' "$tmp/gpu.json" | head -1
}
is "$(value "$tmp/gpu.json" gpu_busy_percent)" '' 'not supported: no value'
is "$(reason gpu_busy_percent)" 'Not Supported' 'and the reason of NVML'
is "$(reason gpu_ecc_uncorrected)" 'no ECC, or switched off' 'no ECC'
is "$(jq '[.resources[] | select(.resource == "GPU NVLink")] | length' "$tmp/gpu.json")" 0 'no links, no row'

# --- MIG ---
gpus <<<"count 1
0.mig 1
0.instances 2
0m0.memory_gib 20
0m0.used_gib 19.9
0m1.memory_gib 20
0m1.used_gib 1
$(grep -v '^0.mig\|^0.busy' <<<"$healthy")"
is "$(jq -r '.resources[] | select(.resource == "GPU memory") | .device' "$tmp/gpu.json" | sort | paste -sd,)" \
	'0,0 MIG 0,0 MIG 1' 'MIG: a row for each instance'
is "$(verdict "$tmp/gpu.json" 'GPU memory' 'MIG 0')" critical 'MIG: one instance is full'
is "$(verdict "$tmp/gpu.json" 'GPU memory' 'MIG 1')" ok 'MIG: the other is not'
is "$(reason gpu_busy_percent)" 'MIG: NVML has no utilisation of instances' 'MIG: no utilisation, and why'
LD_LIBRARY_PATH=$tmp/lib "$INSPECT" use -d 0.1 >"$tmp/out"
like "$(sed '/^$/q' "$tmp/out")" '# no data: (.*, )?GPU 0 MIG 0 and 1 more' 'MIG: which have no data'
like "$(cat "$tmp/out")" $'\nGPU 0  .* ok' 'MIG: and are not counted as well'
if LD_LIBRARY_PATH=$tmp/lib unshare -pf --mount-proc "$INSPECT" use --json -d 0.1 -p 1 >"$tmp/gpu.json" 2>"$tmp/err"; then
	like "$(jq -r '.notes[]' "$tmp/gpu.json")" '^NVML tells pids of the host' 'a pid namespace: it is said'
else
	skip "no pid namespace here: $(head -1 "$tmp/err")" 1
fi

# --- which GPU is the target's ---
sleep 60 &
gpus -p $! <<<"count 2
1.process $!
1.process_gib 3
${healthy//0./1.}
$healthy"
is "$(value "$tmp/gpu.json" gpu_process_bytes 1)" $((3 << 30)) 'memory of the target'
LD_LIBRARY_PATH=$tmp/lib "$INSPECT" use -d 0.2 -p $! >"$tmp/out"
like "$(cat "$tmp/out")" $'\nGPU 1 ' "its GPU is shown"
unlike "$(cat "$tmp/out")" $'\nGPU 0 ' 'the other one is not'

# --- no GPU ---
gpus <<<'init error 9'
is "$(reason gpu_busy_percent)" 'Driver Not Loaded' 'no driver: as NVML says'
"$INSPECT" use --json -d 0.1 >"$tmp/gpu.json"
[ -e /dev/nvidiactl ] || like "$(reason gpu_busy_percent)" '^no NVIDIA driver' 'no library: no NVIDIA driver'
is "$(reason gpu_calls_p99_ms)" 'no NVIDIA device' 'no driver: no calls of it'

# --- the driver: one of our own, which logs how long each call took ---
exits 125 'a device that is not there' "$INSPECT" use -d 0.1 --device "$tmp/nothing"
dev=$tmp/dev
mkdir "$dev"
"$W/fake_gpu" "$dev" "$tmp/log" 2>"$tmp/server" &
server=$!
on_exit "fusermount3 -qu $dev; kill $server 2>/dev/null; wait $server 2>/dev/null"
for ((i = 0; i < 100; i++)); do
	[ -e "$dev/nvidiactl" ] && break
	sleep 0.05
done
if [ "$(id -u)" != 0 ] || [ ! -e "$dev/nvidiactl" ]; then
	skip "no FUSE here, or no right to trace: $(cat "$tmp/server")" 7
	exit
fi
# Calls of 8 ms, which the driver refuses for want of memory, until after the window.
"$W/gpu_calls" "$dev" answer 8000 28 0x51 0 open nvidiactl rm 0x2a 32 8:0x101 400 >"$tmp/calls" 2>&1 &
caller=$!
"$INSPECT" use --json -d 1 -p $caller --device "$dev" >"$tmp/gpu.json"
window=$(jq '.window_ns / 1e9' "$tmp/gpu.json")
served=$(awk '$1 == 42 { print $2 }' "$tmp/log" | sort -n | awk '{ v[NR] = $1 } END { print v[int(NR * 0.99)] / 1e6 }')
got=$(value "$tmp/gpu.json" gpu_calls_p99_ms)
ok "awk 'BEGIN { exit !($got > 7.6 && $got > 0.6 * $served) }'" "driver: p99 $got ms, the server's $served ms and the way"
kill $caller
wait $caller 2>/dev/null
# A caller that waits 8 ms for each makes at most 125 a second.
calls=$(value "$tmp/gpu.json" gpu_calls_per_second)
ok "awk 'BEGIN { exit !($calls > 5 && $calls <= 126) }'" "driver: $calls calls a second"
near "$(value "$tmp/gpu.json" gpu_calls_failed_per_second)" "$calls" 0.01 'driver: all failed, by its own status'
near "$(value "$tmp/gpu.json" gpu_no_memory)" "$(jq -n "$calls * $window")" 0.01 'driver: for want of memory'
is "$(verdict "$tmp/gpu.json" 'GPU driver')" warn 'driver: warn'
is "$(jq -r '[.findings[].rule] | map(select(test("^gpu-(memory|driver)"))) | sort | join(" ")' "$tmp/gpu.json")" \
	'gpu-driver-slow gpu-memory' 'driver: both are told'
"$INSPECT" use --json -d 0.1 --watch -n 1 --device "$dev" >"$tmp/gpu.json"
like "$(reason gpu_calls_p99_ms)" '^not with --watch' 'driver: a watch does not trace'
