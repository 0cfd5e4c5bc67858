#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect trace as a stream: strace's lines, and the calls that tracers get wrong.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
lines=$PWD/tests/cmd/strace_lines.py
traps=$W/stream_traps
repo=$PWD
cd "$tmp" || exit 1

trace() {
	"$INSPECT" trace -q "$@" 2>err
}
# calls FILE NAME: the lines of that call, without their beginning and time
calls() {
	sed -n "s/^\[[^]]*\] \($2.*\)/\1/p" "$1" | sed 's/ <[0-9.]*>$//'
}

# --- strace's lines ---
strace -f -o strace.out "$W/calls"
trace -- "$W/calls" >trace.out
python3 "$lines" strace strace.out >want
python3 "$lines" inspect trace.out >got
is "$(diff want got)" '' 'every decoded call looks as in strace'
ok '[ "$(wc -l <got)" -gt 100 ]' '… and there are more than a hundred'
like "$(calls trace.out openat | grep calls.tmp)" "^openat\(AT_FDCWD<$tmp>, \"calls.tmp\", .* = 3\$" \
	'a relative path has its folder'
like "$(calls trace.out write | head -3)" "writev\(3<$tmp/calls.tmp>, .*write\(99, " 'a descriptor has its path'
like "$(grep 'openat.*/no/such/file' trace.out)" \
	'^\[[0-9]+ calls\] openat\(AT_FDCWD, "/no/such/file", O_RDONLY\|O_CLOEXEC\) = -1 ENOENT \(No such file or directory\) <0\.[0-9]{6}>$' \
	'the shape of a line'
LC_NUMERIC=de_DE.UTF-8 trace -e getpid -- "$W/calls" >german.out
like "$(cat german.out)" ' <[0-9]+\.[0-9]{6}>$' 'decimal points are points in any locale'

# --- filters ---
trace -e '!%file,%memory,%desc' -- "$W/calls" >out
is "$(calls out 'openat\|mmap\|read\|close')" '' 'classes that are left out'
like "$(calls out sched_yield)" 'sched_yield\(\) = 0' '… and what is left'
trace --failed -- "$W/calls" >out
is "$(grep -vc ' = -1 E' out)" 0 '--failed: only these'
is "$(wc -l <out)" "$(grep ' = -1 E' trace.out | grep -vc ' futex(.* ETIMEDOUT')" '… and all of them'
if "$W/syscalls" futex2 1; then
	trace -e futex_waitv,futex_wait -- "$W/syscalls" futex2 5 >all
	trace --failed -e futex_waitv,futex_wait -- "$W/syscalls" futex2 5 >out
	is "$(grep -c ' = -1 ETIMEDOUT' all) $(grep -c ETIMEDOUT out)" '10 0' '… but waits that end by their time-out'
else
	skip 'no futex_wait (455) in this kernel'
fi
trace --min-latency 20ms -- sh -c 'sleep 0.05; true' >out
ok 'grep -q clock_nanosleep out && ! grep -q openat out' '--min-latency'
trace -s 5 -e write -- "$W/calls" >out
like "$(cat out)" 'write\(99, "a\\tb\\n\\""\.\.\., 46\)' '-s: bytes of a buffer'
exits 2 'an unknown call' "$INSPECT" trace -e openta true
like "$(cat err)" "no system call is called 'openta'" '… is named'
like "$(cat err)" 'openat' '… with the nearest'

mounted='grep -q " /sys/kernel/tracing tracefs " /proc/self/mounts || mount -t tracefs none /sys/kernel/tracing'
if unshare -m sh -c "$mounted" 2>/dev/null; then
	unshare -m sh -c "$mounted"'
		"$INSPECT" trace -v --json -e getppid,execve -- "$W/stream_traps" storm 4 10000' >out 2>err
	like "$(cat err)" 'attached: the tracepoints of these calls' 'few calls: their own tracepoints'
	is "$(head -n -1 out | jq -r .syscall | sort | uniq -c | awk '{ print $2, $1 }')" 'execve 1
getppid 40000' '… see all of them'
	unshare -m sh -c "$mounted"'
		"$INSPECT" trace -q -e quotactl_fd -- perl -e "syscall(443, 1, 2, 3, 4)"' >out 2>&1
	like "$(cat out)" 'quotactl_fd\(fd=0x1, cmd=0x2, id=0x3, addr=0x4\) = -1' \
		"a call that isn't in our tables has the names of tracefs"
else
	skip 'no right to mount tracefs' 3
fi

# futex2: strace does not know them yet. The word that all of them mean is 0.
cat >futex2.pl <<'END'
my $word = pack("L2", 0, 0);
my $va = unpack("Q", pack("P", $word));
my $private = 0x82;
my $waiters = pack("Q Q L L" x 2, 7, $va, $private, 0, 0, $va + 4, $private, 0);
syscall(454, $word, 0xffffffff, 1, $private);
syscall(455, $word, 1, 0xffffffff, $private, 0, 1);
syscall(456, $waiters, 0, 1, 2);
syscall(449, $waiters, 2, 0, 0, 1);
END
trace -e futex_wake,futex_wait,futex_requeue,futex_waitv -- perl futex2.pl >out
flags='FUTEX2_SIZE_U32\|FUTEX2_PRIVATE'
waiters="\[\{val=0x7, uaddr=(0x[0-9a-f]+), flags=$flags\}, \{val=0x0, uaddr=0x[0-9a-f]+, flags=$flags\}\]"
if grep -q ENOSYS out; then
	skip 'no futex_wake (454) in this kernel' 4
else
	like "$(sed -n 1p out)" "futex_wake\(0x[0-9a-f]+, 0xffffffff, 1, $flags\) = 0 " 'futex_wake'
	like "$(sed -n 2p out)" "futex_wait\(0x[0-9a-f]+, 0x1, 0xffffffff, $flags, NULL, CLOCK_MONOTONIC\) = -1 EAGAIN" 'futex_wait'
	like "$(sed -n 3p out)" "futex_requeue\($waiters, 0, 1, 2\) = " 'futex_requeue'
	like "$(sed -n 4p out)" "futex_waitv\($waiters, 2, 0, NULL, CLOCK_MONOTONIC\) = -1 EAGAIN" 'futex_waitv'
fi

# --- traps ---
trace -e openat -- $traps edge >out
like "$(tail -1 out)" '"/etc/hostname", O_RDONLY\) = 3' 'a path that ends at the last byte before unmapped memory'
trace -e openat -- $traps lazy file >out
like "$(tail -1 out)" '"/etc/hostname", O_RDONLY\) = 4' 'a path whose page comes with the call'
if [ "$(uname -m)" = x86_64 ]; then
	# The tracepoints of single calls do not see 32-bit ones.
	"$INSPECT" trace -q -- $traps int80 2>program | grep '] getpid' >out
	like "$(head -1 out)" '\] getpid \(i386\)\(\) = [0-9]+' "int 0x80's getpid is i386's"
	like "$(tail -1 out)" '\] getpid\(\) = [0-9]+' '… and the native one has no mark'
fi
trace -e execve,exit_group -- $traps thread-exec >out
is "$(grep -c 'execve("/bin/true", \["true"\].* = 0' out)" 1 'exec from a thread: one call, with its end'
is "$(grep -c 'exit_group(0) = ?' out)" 1 '… and one end of the process'
is "$(grep -c execve out)" 2 "… the first call is CMD's own exec"
mkdir folder
trace -- $traps names folder >out
for i in 0 1 2; do
	like "$(calls out write | sed -n "$((i + 1))p")" "write\(4<$tmp/folder/file$i>, \"file$i\", 5\) = 5" \
		"descriptor 4 is file$i when file$i is written"
done
like "$(calls out read | tail -1)" "read\(4<$tmp/folder/file1 \(deleted\)>" 'a file that has been deleted'
like "$(calls out openat | tail -1)" "openat\(AT_FDCWD<$tmp/folder>, \"./file1\"" 'the folder after chdir'
like "$(calls out openat | grep file0)" "openat\(3<$tmp/folder>, \"file0\"" 'the folder of a descriptor'
trace -- sh -c 'exec /no/such/program' >out
like "$(cat out)" 'execve\("/no/such/program", \[.*\], 0x[0-9a-f]+ /\* [0-9]+ vars \*/\) = -1 ENOENT' \
	'an exec that fails shows its path'
trace -- $traps hostile >out
ok '! grep -q "$(printf "[\001-\010\013-\037\177]")" out' 'no control character of a name reaches the output'
like "$(cat out)" '\\x1b\]0;owned\\x07\\n\] openat\(AT_FDCWD, "/no\\33\[2J' '… they are written out'
trace --json -- $traps hostile >out.json
is "$(tail -1 out.json | jq -c '[.calls > 10, .lost, .losses.ring_full]')" '[true,0,0]' '--json: losses at the end'
for i in call end; do
	schema=$repo/docs/json/trace-stream.schema.json
	[ $i = end ] || jq '."$defs".call' "$schema" >schema
	[ $i = call ] || cp "$schema" schema
	[ $i = call ] && head -1 out.json >object || tail -1 out.json >object
	is "$(python3 "$repo/tests/cmd/schema.py" schema object 2>&1)" '' "--json: a line of a $i is what docs/json says"
done
is "$(head -n -1 out.json | jq -r 'select(.comm == "\u001b]0;owned\u0007\n" and .syscall == "write") | .errno')" \
	EBADF '--json: an object for each call'

# --- the same calls as strace's, of processes that come and go ---
script='for i in $(seq 50); do /bin/true; done'
strace -f -o strace.out sh -c "$script"
trace --json -- sh -c "$script" >out.json
is "$(head -n -1 out.json | jq -r .syscall | sort | uniq -c)" \
	"$(sed -n 's/^[0-9]* *\([a-z_0-9]*\)(.*/\1/p' strace.out | sort | uniq -c)" \
	'a shell with 50 children: as many of each call as strace -f sees'
is "$(tail -1 out.json | jq .lost)" 0 '… and none lost'

# --- more than the ring takes ---
trace --json -e getppid -- $traps storm 16 62500 >out.json
is "$(tail -1 out.json | jq '.calls + .lost')" 1000000 '16 times 62,500 calls: printed and lost are all of them'
is "$(tail -1 out.json | jq .calls)" "$(grep -c getppid out.json)" '… and as many printed as said'
"$INSPECT" trace -e getppid -- $traps storm 16 62500 >out 2>err
like "$(cat err)" 'lost [0-9]+' 'losses are always told'
is "$(sed -n 's/^\[lost \([0-9]*\) .*/\1/p' out | awk '{ n += $1 } END { print n + 0 }')" \
	"$(sed -n 's/.* lost \([0-9]*\).*/\1/p' err)" '… and where the gaps are'

# --- namespaces of processes ---
if unshare -fp true 2>/dev/null; then
	cat >loop <<'END'
trap 'exit 0' TERM
while :; do /bin/true; done
END
	unshare -fp sh loop &
	outer=$!
	until pid=$(pgrep -P $outer); do sleep 0.05; done
	trace -e execve -p "$pid" -d 0.5 >out
	like "$(head -1 out)" '^\[([0-9]+)\(([0-9]+)\) sh\] execve\("/bin/true"' 'another namespace: both numbers'
	kill "$pid"
	wait $outer
	unshare -fp --mount-proc sh -c '
		sh loop &
		sleep 0.2
		"$INSPECT" trace -q -e execve -p $! -d 0.7 2>&1 | head -1
		kill $!
		sh -c "echo \$\$"' >out
	# Outside, each of its processes has a higher number than inside.
	number=$(sed -n 's|^\[\([0-9]*\) sh\] execve("/bin/true".*|\1|p' out)
	ok '[ "$number" -le "$(tail -1 out)" ]' "inside of a namespace: its numbers"
else
	skip 'no right to make namespaces' 2
fi

# --- a process that is there already ---
mkfifo go
$traps blocked <go >pid &
exec 9>go
until [ -s pid ]; do sleep 0.05; done
pid=$(cat pid)
trace --relative -p "$pid" -d 0.7 >out
like "$(cat out)" "^ +0\.[0-9]{6} \[$pid stream_traps\] read\(0<$tmp/go>, 0x[0-9a-f]+, 1\) <in flight for more than 0\.[5-9][0-9]+ s>\$" \
	'a call since before the start is in flight, with its descriptor'
kill "$pid"
exec 9>&-
(echo; sleep 3) | trace -d 1 -- $traps blocked >out
like "$(tail -1 out)" 'read\(4<pipe:\[[0-9]+\]>, 0x[0-9a-f]+, 1\) <in flight for [01]\.[0-9]{6} s>$' \
	'a call that has not ended at the end, with its age'
sh -c 'sleep 30 & sleep 30 & wait' &
parent=$!
until [ "$(pgrep -c -P $parent)" = 2 ]; do sleep 0.05; done
trace -p $parent -d 0.3 >out
is "$(grep -c clock_nanosleep out)" 0 'children that are there already are not taken'
trace -p $parent --children -d 0.3 >out
is "$(grep -c clock_nanosleep out)" 2 '… but with --children'
kill $(pgrep -P $parent) $parent 2>/dev/null
$traps forks &
forker=$!
trace -k -e wait4 -p $forker -d 1 >out
is "$(sed -n '2,/^\[/p' out | sed -n 's/^ > .*(\([^+]*\)+0x.*/\1/p' | tail -4 | tr '\n' ' ')" \
	'forks __libc_start_call_main __libc_start_main _start ' '--stack: the functions that led to the call' ||
	head -20 out >&2
$traps deep &
pid=$!
sleep 0.2
trace -k -e clock_nanosleep -p $pid -d 0.3 >out
kill $pid
is "$(sed -n '2,/^\[/p' out | grep -c '(descend+0x') $(sed -n '2,/^\[/p' out | tail -2 | grep -c '(_start+0x')" '61 1' \
	'a stack of more than 60 functions'
is "$(sed -n '2,/^\[/p' out | grep -c '^ > \[kernel\](do_nanosleep+0x')" 1 '… and where it slept in the kernel'
"$INSPECT" trace -p $forker >forks.out 2>forks.err &
tracer=$!
until [ -s forks.out ]; do sleep 0.05; done
SECONDS=0
kill -INT $tracer
wait $tracer
is $? 0 '^C while the target forks: a good end'
ok '[ $SECONDS -le 2 ]' '… at once'
ok 'kill -0 $forker && [ "$(ps -o stat= -p $forker | cut -c1)" != T ]' '… and the target runs on'
kill $forker
like "$(cat forks.err)" ' calls in .* · lost ' '… with what was seen and lost'

"$INSPECT" trace -e execve -- sh -c 'echo $$ >child; while :; do /bin/true; done' 2>/dev/null | head -1 >out
ok '[ -s out ] && ! kill -0 "$(cat child)"' 'when the reader goes away, CMD does not stay behind'
("$INSPECT" trace -- sh -c 'while :; do /bin/true; done' 2>err; echo $? >code) | head -1 >out
is "$(cat code err | tr '\n' ' ')" '141 ' '… and the end is that of other tools, without a word'

# --- tables ---
"$INSPECT" trace --opens --json -- cat /etc/hostname /no/such/file >opens.json 2>/dev/null
is "$(jq -c '[.files[] | select(.path == "/etc/hostname") | .opens, .failed, .errors]' opens.json)" '[1,0,"ok"]' \
	'--opens: what was opened'
is "$(jq -c '[.files[] | select(.path == "/no/such/file") | .opens, .failed, .errors]' opens.json)" '[0,1,"ENOENT"]' \
	'… and what was not'
is "$(jq '.files[] | select(.path == "/etc/hostname") | .pid == .own_pid' opens.json)" true '… by whom'
if unshare -fp true 2>/dev/null; then
	"$INSPECT" trace --opens --json -- sh -c 'cat "$0"; unshare -fp cat "$0"; :' /etc/hostname >opens.json 2>/dev/null
	is "$(jq -c '.files[] | select(.path == "/etc/hostname") | [.opens, .processes, .own_pid, .pid != .own_pid]' opens.json)" \
		'[2,2,1,true]' '… by how many, and the last one by both numbers of another pid namespace'
else
	skip 'no pid namespaces here'
fi
strace -f -o strace.out -e open,openat,openat2,creat cat /etc/hostname >/dev/null
"$INSPECT" trace --opens --json -- cat /etc/hostname >opens.json 2>/dev/null
is "$(jq '.opens + .failed' opens.json)" "$(grep -c ' = ' strace.out)" '… as many as in strace'
head -c 100000 /dev/zero >big
"$INSPECT" trace --hot-files --json -- cat big >hot.json 2>/dev/null
is "$(jq -r '.rows[0].path | sub(".*/"; "")' hot.json)" big '--hot-files: the file that is read most comes first'
exits 2 'no CSV of a stream' "$INSPECT" trace --csv true
