#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Limits of cgroups of version 1: what use says against what their files say.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "makes cgroups: needs root"
[ -e /sys/fs/cgroup/cpu ] && [ -e /sys/fs/cgroup/memory ] && [ -e /sys/fs/cgroup/pids ] ||
	skip_all 'no cgroups of version 1 here (those of version 2: tests/slow/limits_*.t)'
. tests/cmd/use_lib.sh

name=inspect-test-$$
measure "$tmp/calm.json" -d 0.1
group() { # CONTROLLER: a new cgroup
	mkdir "/sys/fs/cgroup/$1/$name" && on_exit "[ ! -e /sys/fs/cgroup/$1/$name ] || rmdir /sys/fs/cgroup/$1/$name"
}

group cpu
# So little that even a busy machine gives it all, and first.
echo 5000 >"/sys/fs/cgroup/cpu/$name/cpu.cfs_quota_us"
echo 100000 >"/sys/fs/cgroup/cpu/$name/cpu.shares"
timeout 30 bash -c 'echo $$ >"/sys/fs/cgroup/cpu/$0/cgroup.procs"; while :; do :; done' "$name" &
sleep 0.5
before=$(grep -h throttled_time "/sys/fs/cgroup/cpu/$name/cpu.stat" | cut -d' ' -f2)
start=$(date +%s%N)
measure "$tmp/quota.json" -d 2
after=$(grep -h throttled_time "/sys/fs/cgroup/cpu/$name/cpu.stat" | cut -d' ' -f2)
end=$(date +%s%N)
near "$(value "$tmp/quota.json" throttled_time_percent "/$name\$")" \
	"$(awk "BEGIN { print 100 * ($after - $before) / ($end - $start) }")" 15 \
	'quota: throttled for as long as cpu.stat says'
is "$(verdict "$tmp/quota.json" 'cgroup CPU' "/$name\$")" critical 'quota: critical'
is "$(jq -r '.findings[] | select(.rule == "cgroup-throttled") | .rule' "$tmp/quota.json")" \
	cgroup-throttled 'quota: it is a finding'
is "$(others "$tmp/quota.json" 'cgroup CPU')" '' 'a quota moves nothing else'
measure "$tmp/group.json" -d 1 --cgroup "/sys/fs/cgroup//cpu/$name/"
is "$(verdict "$tmp/group.json" 'cgroup CPU' "/$name\$")" critical 'quota: --cgroup sees it too'
is "$(jq -r '.findings[] | select(.rule == "cgroup-throttled").next' "$tmp/quota.json" "$tmp/group.json" | sort -u)" \
	"inspect offcpu --cgroup /sys/fs/cgroup/cpu/$name -d 10" 'quota: the command names the folder that has the processes'
# cpu.stat has what its thread waited for; of its run delay nothing is left for want of a CPU.
ok "awk 'BEGIN { exit !($(value "$tmp/group.json" process_run_delay_percent) < 50 && $(value "$tmp/group.json" throttled_time_percent) > 80) }'" \
	'quota: what it makes wait is no run delay'
kill $(jobs -p)
wait 2>/dev/null

# --cgroup: nobody is in it; then somebody comes, and goes.
"$INSPECT" use --json --watch -d 0.3 --cgroup "/sys/fs/cgroup/cpu/$name" >"$tmp/comes" 2>"$tmp/err" &
tool=$!
guests() { # REGEX: waits until the last report has such processes
	for ((i = 0; i < 200; i++)); do
		tail -1 "$tmp/comes" | jq -r '[.values[] | select(.metric == "process_cpus").device] | join(" ")' \
			>"$tmp/guests" 2>/dev/null && [ -s "$tmp/guests" ] && grep -qE "$1" "$tmp/guests" && return
		sleep 0.1
	done
	return 1
}
ok 'guests "^$"' '--cgroup: an empty one is measured'
like "$(head -1 "$tmp/comes" | jq -r '.notes[]')" "/$name: no process is in this cgroup" '… and said to be'
is "$(head -1 "$tmp/comes" | jq -r '.values[] | select(.metric == "throttled_percent" and .device == "/'$name'").value')" 0 \
	'… with its quota'
bash -c 'echo $$ >"/sys/fs/cgroup/cpu/$0/cgroup.procs"; exec sleep 30' "$name" &
guest=$!
ok 'guests "^sleep/$guest$"' '--cgroup: a process that came since is there'
kill $guest
ok 'guests "^$"' '--cgroup: one that has gone is not'
rmdir "/sys/fs/cgroup/cpu/$name"
gone() {
	for ((i = 0; i < 200; i++)); do
		tail -1 "$tmp/comes" | jq -e '.notes | index("/sys/fs/cgroup/cpu/'$name': this cgroup is gone")' >/dev/null 2>&1 &&
			return
		sleep 0.1
	done
	return 1
}
ok gone '--cgroup: one that is removed is said to be gone'
is "$(tail -1 "$tmp/comes" | jq -r '.values[] | select(.metric == "cgroup_cpus").value_reason')" 'this cgroup is gone' \
	'… by its values too'
kill $tool
wait $tool

group memory
echo $((64 << 20)) >"/sys/fs/cgroup/memory/$name/memory.limit_in_bytes"
bash -c 'echo $$ >"/sys/fs/cgroup/memory/$0/cgroup.procs"
	exec python3 -c "import time; x = bytearray(50 << 20); time.sleep(60)"' "$name" 2>/dev/null &
sleep 1
measure "$tmp/memory.json" -d 0.5
want=$(awk -v usage="$(cat "/sys/fs/cgroup/memory/$name/memory.usage_in_bytes")" \
	'$1 == "total_inactive_file" { print 100 * (usage - $2) / (64 * 1048576) }' \
	"/sys/fs/cgroup/memory/$name/memory.stat")
near "$(value "$tmp/memory.json" cgroup_memory_percent "/$name\$")" "$want" 3 \
	'memory: of the limit as the files say'
(
	sleep 0.7
	exec bash -c 'echo $$ >"/sys/fs/cgroup/memory/$0/cgroup.procs"
		exec python3 -c "x = bytearray(100 << 20)"' "$name"
) >/dev/null 2>&1 &
before=$(sed -n 's/^oom_kill //p' "/sys/fs/cgroup/memory/$name/memory.oom_control")
measure "$tmp/oom.json" -d 2
after=$(sed -n 's/^oom_kill //p' "/sys/fs/cgroup/memory/$name/memory.oom_control")
is "$(value "$tmp/oom.json" cgroup_oom_kills "/$name\$")" "$((after - before))" \
	"memory: $((after - before)) killed, as memory.oom_control says"
is "$(verdict "$tmp/oom.json" 'cgroup memory' "/$name\$")" critical 'memory: a kill is critical'
is "$(jq -r '.findings[0].rule' "$tmp/oom.json")" oom-killed 'memory: it is the first finding'
is "$(value "$tmp/oom.json" oom_kills '^$')" 0 'memory: the host has killed none'
is "$(others "$tmp/oom.json" 'cgroup memory')" '' 'a kill moves nothing else'
kill $(jobs -p) 2>/dev/null
wait 2>/dev/null

# The limit is that of the group above, and a refusal counted where the fork is.
group pids
in=/sys/fs/cgroup/pids/$name/in
mkdir "$in" && on_exit "rmdir $in"
echo 5 >"/sys/fs/cgroup/pids/$name/pids.max"
cat >"$tmp/forks.py" <<'END'
import os, sys, time
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
for _ in range(4):
    if os.fork() == 0:
        time.sleep(60)
sys.stdin.readline()
for _ in range(3):
    try:
        os.fork()
    except OSError:
        pass
time.sleep(60)
END
python3 "$tmp/forks.py" "$in" < <(
	# The first reading is over when the tool waits in poll, or ppoll.
	until grep -qsE '^(7|73|271) ' "/proc/$(pgrep -P $$ -x inspect)/syscall"; do sleep 0.02; done
	echo
) &
until [ "$(cat "/sys/fs/cgroup/pids/$name/pids.current")" = 5 ]; do sleep 0.02; done
before=$(cut -d' ' -f2 "$in/pids.events")
measure "$tmp/pids.json" -d 2
after=$(cut -d' ' -f2 "$in/pids.events")
is "$(value "$tmp/pids.json" pids_percent "/$name\$")" 100 'pids: 5 of 5'
is "$(value "$tmp/pids.json" pids_refused "/$name\$")" "$((after - before))" \
	'pids: refused as often as pids.events says'
is "$(verdict "$tmp/pids.json" 'cgroup pids' "/$name\$")" critical 'pids: critical'
is "$(value "$tmp/pids.json" threads_refused '^$')" 0 'threads: the limit of the host has refused none'
is "$(others "$tmp/pids.json" 'cgroup pids')" '' 'a pids limit moves nothing else'
xargs -r kill <"$in/cgroup.procs"
wait 2>/dev/null
while [ -n "$(cat "$in/cgroup.procs")" ]; do sleep 0.1; done
