#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# System calls, waits, probes, locks and snapshots on a kernel without task storage, bpf_loop,
# bpf_find_vma and bpf_task_pt_regs, against what the programs say of themselves.
. "$(dirname "$0")/guest.sh"
guest_kernel 5.10
for file in "$INSPECT" "$W"/{syscalls,wait_shares,locks,gpu_calls}; do
	machine_file "$file"
done
guest_boot <<'END'
mount -t tracefs none /sys/kernel/tracing
say() {
	name=$1
	shift
	"$@" >/tmp/$name 2>/tmp/$name.err
	printf '\nrc %s\n' $? >>/tmp/$name.err
	show $name
	show $name.err
}
say all inspect trace -c --json -- syscalls storm 200
say few inspect trace -c -v --json -e getppid -- syscalls storm 200
say forks inspect trace -c --json -- syscalls vforks 50
say paths inspect trace -c --json --by path -e write -- sh -c 'for i in 1 2 3 4 5; do echo $i >>/tmp/written; done'
say stacks inspect trace -c --json --by stack -- syscalls writes 100
say waits inspect offcpu --json -- sh -c 'exec wait_shares 2 2>/tmp/truth >/tmp/truth'
show truth
say wall inspect record --wall -q -o /tmp/wall.data -- sh -c 'exec wait_shares 1 2>/tmp/wall_truth >/tmp/wall_truth'
show wall_truth
inspect report --json --all /tmp/wall.data >/tmp/report
show report
say probe inspect trace --json --probe u:/bin/syscalls:main -- syscalls yields 10
say function inspect trace --json --probe k:vfs_write --if 'retval>0' --by arg3 -- syscalls writes 100
say device inspect trace -c --gpu --json --device /dev/null -- sh -c 'echo >/dev/null; echo >/dev/null'
mkfifo /tmp/pipe
gpu_calls /tmp open pipe plain join nest epoll 100000 &
waits=$!
sleep 1
say device_before inspect trace -c --gpu --json --device /tmp/pipe -p $waits -d 0.5
say device_stacks inspect trace -c --gpu --by stack --json --device /tmp/pipe -p $waits -d 0.5
kill $waits
say each inspect trace -e openat -- true
say locks inspect trace --locks --json -- locks 3 2
locks 3 10 >/tmp/threads &
sleep 0.5
say use inspect use --json -d 2 -p $!
wait
show threads
sleep 100 &
say stack inspect stack --json -p $!
dmesg >/tmp/dmesg
show dmesg
END
for name in all few forks paths stacks waits truth wall wall_truth report probe function device device_before device_stacks each locks use threads stack dmesg; do
	machine_shown $name >"$tmp/$name"
	machine_shown $name.err >"$tmp/$name.err"
done
rc() { sed -n 's/^rc //p' "$tmp/$1.err"; }
truth() { awk -v key="$1" '$1 == key { print $2 }' "$tmp/${2:-truth}"; }

is "$(jq -r .attached "$tmp/function")" 'kprobe and kretprobe' 'a function of the kernel: by kprobe where trampolines do not hold'

# --- system calls ---
calls='.rows[] | select(.syscall == "getppid") | .calls'
for name in all few; do
	is "$(jq "$calls" "$tmp/$name")" 3200 "$name calls: 16 processes with 200 each"
	is "$(jq -c '[.losses[]] | add' "$tmp/$name")" 0 '… none is lost'
done
like "$(jq -r .attached "$tmp/few")" '^the tracepoints of these calls' 'few calls: their own tracepoints'
like "$(jq -r .attached "$tmp/all")" '^tp_btf' 'all calls: those of all'
is "$(jq .threads "$tmp/forks")" 51 'each child is watched'
is "$(jq -c '.rows[] | select(.path == "/tmp/written") | [.calls, .bytes]' "$tmp/paths")" '[5,10]' 'a file, its calls and bytes'
is "$(jq '[.rows[] | select(.syscall == "write").calls] | add' "$tmp/stacks")" 100 'calls by stack'

# --- waits ---
wall=$(truth wall)
for pair in 'futex the_lock:lock' 'read pipe:pipe'; do
	near "$(jq --arg for "${pair%:*}" '[.waits[] | select(.for | startswith($for)) | .wait_ns + .queue_ns] | add / '"$wall"' * 100' \
		"$tmp/waits")" "$(awk "BEGIN { print 100 * $(truth "${pair#*:}") / $wall }")" 2 "waits: its share of ${pair#*:}"
done
near "$(jq '.threads[] | select(.comm == "worker").running_percent' "$tmp/waits")" \
	"$(awk "BEGIN { print 100 * $(truth cpu) / $wall }")" 2 'waits: its share of computing'
wall=$(truth wall wall_truth)
for part in sleep lock pipe; do
	near "$(jq --arg f phase_$part '[.functions[] | select(.function == $f).total_weight] | add / '"$wall"' * 100' \
		"$tmp/report")" "$(awk "BEGIN { print 100 * $(truth $part wall_truth) / $wall }")" 2 "--wall: its share of $part"
done

# --- the others ---
is "$(jq .events "$tmp/probe")" 1 'a uprobe'
is "$(jq -c '[.events, (.rows[] | .arg3, .values)]' "$tmp/function")" '[100,"10",100]' \
	'a function of the kernel, by an argument'
is "$(jq -c '[.rows[] | [.call, .calls]] | sort' "$tmp/device")" '[["close",2],["open",2]]' "a device's calls"
is "$(jq -c '[.rows[] | [.call, .in_flight, .from_before]]' "$tmp/device_before")" '[["epoll_wait",1,1]]' '… one of before'
is "$(jq -c '[.rows[] | [.call, .in_flight]]' "$tmp/device_stacks")" '[["epoll_wait pipe (since before the start)",1]]' \
	'… also by stack'
is "$(jq -r '.threads[0].syscall' "$tmp/stack")" clock_nanosleep 'stack: the call that it is in'
ok 'jq -e "[.frames[].function] | index(\"hrtimer_nanosleep\")" "$tmp/stack" >/dev/null' '… and the kernel stack'
read -r _ waited threads_wall _ <"$tmp/threads"
near "$(jq '.values[] | select(.metric == "lock_wait").value' "$tmp/use")" "$(awk "BEGIN { print $waited / $threads_wall }")" 0.4 \
	'use: waits for locks, as the threads say'

# --- what needs more, and what the kernel says ---
is "$(rc each)" 125 'each call: refused'
like "$(cat "$tmp/each.err")" 'kernel 5\.10.* is too old.*came up to 5\.13.*fix: ' '… and said why'
unlike "$(cat "$tmp/dmesg")" 'WARNING' 'no warning in the log'
