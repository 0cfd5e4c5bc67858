#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect offcpu on Python: threads that sleep, wait for a lock, a queue, a socket and a child, fight for
# the interpreter's lock, and an event loop. What each waits for is what it measures itself.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
python=/usr/bin/python3.11
[ -x $python ] || skip_all 'no python3.11'
script=$PWD/tests/cmd/offcpu_waits.py
cd "$tmp" || exit 1

# wait_for WHAT SECONDS: into WHAT.json, and the program's own words into WHAT.own
wait_for() {
	"$INSPECT" offcpu --json -- $python "$script" "$1" "$2" >"$1.json" 2>"$1.own"
}

# of WHAT NAME FILTER: of a thread
of() {
	jq -r --argjson tid "$(awk -v name="$2" '$1 == name { print $3 }' "$1.own")" ".threads[] | select(.tid == \$tid) | $3" "$1.json"
}

# share WHAT NAME REASON: what the thread measured lies between the time of the reason, and that with
# the time for which it then had no CPU, or not the interpreter
share() {
	local got
	got=$(of "$1" "$2" "\"\\(.wall_ns * .$3_percent / 1e11) \\(.wall_ns * (.runnable_percent + (if \"$3\" == \"lock\" then 0 else .lock_percent end)) / 1e11)\"")
	ok "awk -v got='$got' '\$1 == \"$2\" { split(got, g, \" \"); points = 0.03 * \$5
		exit !(\$4 > 0.2 * \$5 && \$4 >= g[1] - points && \$4 <= g[1] + g[2] + points) }' $1.own" "$4" ||
		diag "  $2 says $(grep "^$2 " "$1.own" | cut -d' ' -f4-): $3 $got"
}

# waits WHAT REASON WAKER FIELD: of the wait that takes most time of those for that reason, ended by that
waits() {
	jq -r --arg reason "$2" --arg waker "$3" "[.waits[] | select(.reason == \$reason and (.waker | test(\$waker)))] | max_by(.wait_ns) | .$4" "$1.json"
}

# stack WHAT REASON WAKER: its functions, leaf first
stack() {
	jq -r --argjson wait "$(waits "$1" "$2" "$3" wait)" '[.stacks[] | select(.wait == $wait and .kind != "kernel").function] | join(" ")' "$1.json"
}

wait_for asyncio 1.2 &
wait_for threads 1.6
wait
share threads sleep sleep 'time.sleep'
share threads lock lock 'threading.Lock'
share threads queue lock 'queue.get'
share threads recv network 'socket.recv'
share threads child child 'subprocess.wait'
like "$(waits threads lock ^holder for)" '^futex \[(heap|anon)' 'the lock is woken by who holds it'
like "$(stack threads lock ^holder)" 'PyThread_acquire_lock_timed .*start_thread clone' '… with its stack'
like "$(waits threads lock ^feeder for)" '^futex \[(heap|anon)' 'the queue by who feeds it'
like "$(waits threads network ^feeder for)" '^recvfrom (socket|unix):' 'the socket by who sends'
like "$(stack threads network ^feeder)" 'recv .*start_thread clone' '… with its stack'
like "$(waits threads child '^sleep ' for)" '^wait4 ' 'the child by itself'
like "$(stack threads child '^sleep ')" 'wait4 .*start_thread clone' '… with its stack'
like "$(stack threads sleep '^\[irq\]')" 'nanosleep .*start_thread clone' 'sleep by a timer, with its stack'
is "$(jq .lost threads.json)" 0 'nothing is lost'
share asyncio loop poll 'asyncio: the loop waits in one call'
like "$(waits asyncio poll . for)" '^epoll_wait' '… which is epoll_wait'

wait_for gil 1.2
for name in spin0 spin1 spin2; do
	cpu=$(awk -v name=$name '$1 == name { print 100 * $4 / $5 }' gil.own)
	near "$(of gil $name .running_percent)" "$cpu" 3 "$name runs as long as its own clock says"
	near "$(of gil $name '.running_percent + .runnable_percent + .lock_percent')" 100 2 '… and else waits for a lock, or for a CPU'
done
ok 'jq -e "([.waits[] | select(.for | endswith(\"(GIL)\")).wait_ns] | add) >= 0.9 * ([.threads[] | select(.comm | startswith(\"spin\")) | .wall_ns * .lock_percent / 100] | add)" gil.json' \
	"the lock is the interpreter's, by name"
