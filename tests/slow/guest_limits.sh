# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Limits of cgroups of version 2 on another kernel: what use and offcpu say against what the groups'
# own files say before and after; and that use's BPF program works there.
#
#	. "$(dirname "$0")/guest_limits.sh" VERSION
. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"
. tests/cmd/use_lib.sh
version=$1
guest_kernel "$version"
machine_file "$INSPECT"
machine_file "$W/locks"
guest_boot <<'END'
cd /sys/fs/cgroup
echo '+memory +cpu +pids' >cgroup.subtree_control
mkdir high max cpu half pids
within() { # GROUP COMMAND…
	group=$1
	shift
	sh -c 'echo $$ >/sys/fs/cgroup/$0/cgroup.procs; exec "$@"' $group "$@"
}
# around NAME GROUP FILE COMMAND…: its output, and the file before and after
around() {
	name=$1 file=$2/$3
	shift 3
	cp $file /tmp/$name.before
	"$@" >/tmp/$name.json 2>/tmp/$name.err
	cp $file /tmp/$name.after
	show $name.before
	show $name.json
	show $name.err
	show $name.after
}
echo 24M >high/memory.high
within high dd if=/dev/zero of=/tmp/high bs=64k count=600 2>/dev/null &
sleep 1
around high high memory.events inspect use --json -d 2
kill -9 $(cat high/cgroup.procs)
wait
rm /tmp/high
echo 24M >max/memory.max
for i in 1 2 3 4 5 6 7 8; do
	within max dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null
	sleep 0.5
done &
around max max memory.events inspect use --json -d 2
wait
echo '20000 100000' >cpu/cpu.max
# Not by a function, whose shell $! would be.
sh -c 'echo $$ >cpu/cgroup.procs; while :; do :; done' &
sleep 1
around cpu cpu cpu.stat inspect use --json -d 2
kill $!
echo '50000 100000' >half/cpu.max
sh -c 'echo $$ >half/cgroup.procs; while :; do :; done' &
sleep 1
around half half cpu.stat inspect offcpu --json -p $! -d 2
kill $!
echo 4 >pids/pids.max
for i in 1 2 3 4; do
	within pids sleep 60 &
done
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	within pids sh -c '(true) & wait' 2>/dev/null
	sleep 0.2
done &
sleep 0.5
around pids pids pids.events inspect use --json -d 2
locks 3 10 >/tmp/locks.out &
sleep 1
inspect use --json -d 2 -p $! >/tmp/locks.json
wait $!
show locks.json
show locks.out
# With three descriptors each redirection fails, once.
sh -c 'ulimit -n 3; sleep 3; for i in 1 2 3 4 5 6 7; do true </dev/null; done; sleep 60' 2>/dev/null &
inspect use --json --watch -n 2 -d 4 >/tmp/fds.json
show fds.json
END

grown() { # GROUP NAME
	echo $(($(sed -n "s/^$2 //p" "$tmp/$1.after") - $(sed -n "s/^$2 //p" "$tmp/$1.before")))
}
for name in high max cpu half pids; do
	for part in json err before after; do
		machine_shown $name.$part >"$tmp/$name.$part"
	done
	[ $name != half ] || continue
	is "$(python3 tests/cmd/schema.py docs/json/use.schema.json "$tmp/$name.json" 2>&1)" '' "$name: the JSON fits its schema"
	is "$(jq '[.values[] | select(.metric == "run_delay_percent").value] | length' "$tmp/$name.json")" 1 "$name: run delay is known"
	case $name in
	cpu) row='cgroup CPU' ;;
	pids) row='cgroup pids' ;;
	*) row='cgroup memory' ;;
	esac
	is "$(others "$tmp/$name.json" "$row")" '' "$name: moves nothing else"
done

# --- memory.high: slowed down, and not more often than its file says ---
high=$(value "$tmp/high.json" memory_high_per_second)
seconds=$(jq '.window_ns / 1e9' "$tmp/high.json")
ok "awk 'BEGIN { n = $high * $seconds; exit !(n > 0 && n <= $(grown high high) + 1) }'" \
	"memory.high: exceeded $high times a second, $(grown high high) times in all"
is "$(verdict "$tmp/high.json" 'cgroup memory' /high)" critical 'it is nearly all of the limit'
like "$(jq -r '.values[] | select(.metric == "cgroup_memory_percent" and .device == "/high").source' "$tmp/high.json")" \
	'memory.high$' 'which is memory.high'

# --- memory.max ---
killed=$(value "$tmp/max.json" cgroup_oom_kills /max)
ok '[ $killed -ge 1 ] && [ $killed -le $(grown max oom_kill) ]' \
	"memory.max: $killed kills, $(grown max oom_kill) around it as memory.events says"
is "$(verdict "$tmp/max.json" 'cgroup memory' /max)" critical 'a kill is critical'
is "$(jq -r '.findings[0].rule' "$tmp/max.json")" oom-killed 'and the first finding'

# --- cpu.max ---
periods=$(grown cpu nr_periods)
near "$(value "$tmp/cpu.json" throttled_percent /cpu)" "$(awk "BEGIN { print 100 * $(grown cpu nr_throttled) / $periods }")" 10 \
	'cpu.max: throttled periods as cpu.stat says'
near "$(value "$tmp/cpu.json" cgroup_cpu_percent /cpu)" \
	"$(awk "BEGIN { print 100 * $(grown cpu usage_usec) / ($periods * 20000) }")" 10 'of the quota as cpu.stat says'
is "$(verdict "$tmp/cpu.json" 'cgroup CPU' /cpu)" critical 'throttling is critical'

# --- half a CPU: what one thread that only computes waits for ---
jq '.threads[0]' "$tmp/half.json" >"$tmp/thread.json"
near "$(jq .throttled_percent "$tmp/thread.json")" 50 5 'offcpu: half a CPU is 50 % throttled'
near "$(jq .running_percent "$tmp/thread.json")" 50 3 'and 50 % running'
near "$(jq 'to_entries | map(select(.key | test("_percent$")).value // 0) | add' "$tmp/thread.json")" 100 2 'which is all'
ok "[ \"\$(jq '.nr_throttled >= 15 and .nr_throttled <= $(grown half nr_throttled)' \"$tmp/half.json\")\" = true ]" \
	"as often as cpu.stat says: $(jq .nr_throttled "$tmp/half.json")"

# --- pids.max ---
refused=$(value "$tmp/pids.json" pids_refused /pids)
ok '[ $refused -gt 0 ] && [ $refused -le $(grown pids max) ]' "pids.max: $refused refused, $(grown pids max) around it"
# A shell may be moved into a full group.
ok '[ "$(value "$tmp/pids.json" pids_percent /pids)" -ge 100 ]' 'all are used'
is "$(verdict "$tmp/pids.json" 'cgroup pids' /pids)" critical 'refused forks are critical'

# --- its BPF program ---
for part in json out; do
	machine_shown locks.$part >"$tmp/locks.$part"
done
like "$(jq -r '.values[] | select(.metric == "thread_busy_percent").source' "$tmp/locks.json")" '^BPF task iterator' \
	'times come from BPF'
read -r _ waited wall _ <"$tmp/locks.out"
near "$(value "$tmp/locks.json" lock_wait)" "$(awk "BEGIN { print $waited / $wall }")" 0.4 'locks as the threads say'

# --- descriptors refused ---
machine_shown fds.json >"$tmp/fds.json"
if [ "$version" = 5.10 ]; then
	skip 'alloc_fd() has another name before 5.11' 2
else
	is "$(jq -s '[.[].values[] | select(.metric == "fds_refused").value] | add' "$tmp/fds.json")" 7 \
		'EMFILE as often as the shell met it, with --watch too'
	like "$(jq -rs '.[0].values[] | select(.metric == "files_refused").source' "$tmp/fds.json")" 'alloc_fd' \
		'seen where the kernel gives out descriptors'
fi
