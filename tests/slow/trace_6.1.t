#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A few system calls on a kernel that lets programs attach to its functions.
. "$(dirname "$0")/guest.sh"
guest_kernel 6.1
machine_file "$INSPECT"
machine_file "$W/syscalls"
machine_file "$W/gpu_calls"
guest_boot <<'END'
mount -t tracefs none /sys/kernel/tracing
say() {
	name=$1
	shift
	"$@" >/tmp/$name 2>/tmp/$name.err
	show $name
	show $name.err
}
say storm inspect trace -c --json -e getppid -- syscalls storm 200
say missing inspect trace -c --json -e openat,newfstatat,stat -- syscalls missing 50
say each inspect trace -v -e openat --failed -- syscalls missing 50
say exit inspect trace -v -e exit_group -- true
say function inspect trace --json --probe k:vfs_write --if 'retval>0' --by arg3 -- syscalls writes 100
say failing inspect trace --json --probe k:do_sys_openat2 --if 'retval<0' --by retval -- syscalls missing 50
say doing inspect trace --json --probe k:do_exit -- true
say callers inspect trace --json --probe k:vfs_write --by stack -- syscalls writes 100
sleep 100 &
say running inspect trace -c --json -d 0.2 -e clock_nanosleep -p $!
mkfifo /tmp/pipe
gpu_calls /tmp open pipe plain join nest epoll 100000 &
gpu_calls /tmp open pipe poll 100000 &
sleep 1
say device inspect trace -c --gpu --json --device /tmp/pipe -p $(echo $(pidof gpu_calls) | tr ' ' ,) -d 0.5
say device_stacks inspect trace -c --gpu --by stack --json --device /tmp/pipe -p $(echo $(pidof gpu_calls) | tr ' ' ,) -d 0.5
dmesg >/tmp/dmesg
show dmesg
END
for name in storm missing each each.err exit exit.err function failing doing callers running device device_stacks dmesg; do
	machine_shown $name >"$tmp/$name"
done
for name in storm missing; do
	like "$(jq -r .attached "$tmp/$name")" "^the kernel's functions of these calls" "$name: at functions"
	is "$(jq -c '[.losses[]] | add' "$tmp/$name")" 0 '… none is lost'
done
is "$(jq '.rows[] | select(.syscall == "getppid").calls' "$tmp/storm")" 3200 '16 processes with 200 each'
like "$(cat "$tmp/each.err")" "attached: the kernel's functions" 'each call: at functions'
is "$(grep -c 'openat(.*"/nonexistent/file".* = -1 ENOENT' "$tmp/each")" 50 '… all of them'
is "$(jq '.rows[] | select(.syscall == "openat").errors' "$tmp/missing")" "$(grep -c 'openat(' "$tmp/each")" \
	'… as they are counted, those of the loader too'
like "$(cat "$tmp/exit.err")" 'attached: the tracepoints' 'a call that nobody comes back from: its tracepoint'
is "$(grep -c 'exit_group(0)' "$tmp/exit")" 1 '… is seen'
like "$(jq -r .attached "$tmp/running")" '^the tracepoints of these calls' 'a program that runs already: tracepoints'
is "$(jq '.rows[] | select(.syscall == "clock_nanosleep").in_flight' "$tmp/running")" 1 '… the call that it is in'
is "$(jq -c '[.events, (.rows[] | .arg3, .values)]' "$tmp/function")" '[100,"10",100]' \
	"a function of the kernel, by an argument"
is "$(jq -r .attached "$tmp/function" "$tmp/failing" "$tmp/doing" | paste -sd,)" \
	'fentry and fexit,fentry and fexit,kprobe and kretprobe' '… by fentry; one that nobody comes back from by kprobe'
is "$(jq -c '[.rows[] | select(.retval == "-2").values]' "$tmp/failing")" "[$(grep -c 'openat(' "$tmp/each")]" \
	'… its result is of its type: -ENOENT is negative'
is "$(jq -c '[.calls, ([.stacks[] | select(.function == "ksys_write").wait] | unique | length), (.rows | length)]' "$tmp/callers" |
	jq '[.[0], .[1] == .[2]]' -c)" '[100,true]' '… and who calls it'
is "$(jq -c '[.rows[] | [.call, .in_flight, .from_before]] | sort' "$tmp/device")" '[["epoll_wait",1,1],["poll",1,1]]' \
	"a device's calls of before: at a set within a set, and by what the caller's memory says"
is "$(jq -c '[.rows[] | [.call, .in_flight]] | sort' "$tmp/device_stacks")" \
	'[["epoll_wait pipe (since before the start)",1],["poll pipe (since before the start)",1]]' '… also by stack'
unlike "$(cat "$tmp/dmesg")" 'WARNING' 'no warning in the log'
