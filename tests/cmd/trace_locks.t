#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect trace --locks on locks whose waits, kinds and rivals are known.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
repo=$PWD
cd "$tmp" || exit 1

locks() {
	"$INSPECT" trace --locks --json "$@" >l.json 2>err
}
# in_background NAME ARG…: the same of workload ARG…, into NAME.json; its own words into NAME.own
in_background() {
	local name=$1
	shift
	"$INSPECT" trace --locks --json -- "$@" >"$name.json" 2>"$name.own" &
}
# look NAME: what follows is about that
look() {
	mv "$1.json" l.json
	mv "$1.own" own
}
# of NAME FILTER: of the lock of that name
of() {
	jq -r --arg name "$1" ".locks[] | select(.lock == \$name) | $2" l.json
}

# Four threads hold one mutex for 2 ms each: three of them always wait. Who lets it go may have it again before the others
# are awake, and so one may never wait.
locks -- "$W/syscalls" lock 1
like "$(of mutex '"\(.kind) \(.waiters) \(.timeouts)"')" '^mutex [34] 0$' 'a mutex by its name, and who waits for it'
near "$(of mutex .total_ns)" "$(jq '.elapsed_ns * 3' l.json)" "$(jq '.elapsed_ns * 0.45' l.json)" 'three of four threads wait all the time'
like "$(of mutex .top_waker)" '^[0-9]+ syscalls$' 'who wakes'
like "$(of mutex .top_holder)" '^[0-9]+ syscalls$' 'who holds it, as glibc notes'
is "$(jq '[.losses[]] | add' l.json)" 0 'nothing is lost'
# stack ROLE [LOCK]: the functions of the first lock's stack
stack() {
	jq -r --arg role "$1" --argjson lock "${2:-1}" '[.stacks[] | select(.lock == $lock and .role == $role).function] | join(" ")' l.json
}
like "$(stack waiter)" 'lll_lock_wait pthread_mutex_lock fight start_thread clone' 'where it waits'
like "$(stack waker)" 'lll_lock_wake .*unlock.* fight start_thread clone' '… and where the other wakes it'
like "$(jq -r .summary l.json)" '^[0-9]+ ms of waiting a second at [0-9]+ locks?, [0-9]+ % of it at mutex → next: inspect offcpu --wakers -- ' 'the first line, with what is next'
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-locks.schema.json" l.json 2>&1)" '' 'the JSON fits its schema'

in_background pi "$W/syscalls" pi-lock 1
in_background shared "$W/syscalls" shared-lock 1
in_background threads "$W/syscalls" threads 200
in_background futex2 "$W/syscalls" futex2 100
wait
look pi
is "$(of mutex '"\(.kind) \(.waiters)"')" 'PI mutex 4' 'a mutex with priority inheritance'
like "$(of mutex .top_holder)" '^[0-9]+ syscalls$' '… and its owner'
look shared
like "$(jq -r '.locks[0].lock' l.json)" '/shared\+0x[0-9a-f]+ \(shared\)$' 'a lock that two processes map at different places is one'
is "$(jq '.locks[0].waiters' l.json)" 2 '… with the waits of both'
look threads
is "$(jq -r '[.locks[].kind | values] | unique | join(" ")' l.json)" 'barrier thread' 'what it is part of, the functions that wait tell'

if "$W/syscalls" futex2 1; then
	look futex2
	is "$(of several '"\(.waits) \(.timeouts)"') $(of one '"\(.waits) \(.timeouts)"')" '100 100 100 100' 'futex_waitv and futex_wait'
else
	skip 'no futex_wait (455) in this kernel'
fi

# --- moved from lock to lock: the program's own clock is the witness ---
for what in requeue requeue2 late several anonymous condition; do
	in_background $what "$W/futexes" $what
done
in_background races "$W/futexes" races 100
wait
look anonymous
is "$(jq -r '.locks[0] | "\(.waits) \(.timeouts) \(.waiters) \(.pid)"' l.json)" '10 10 2 null' 'a lock in memory without a file, shared by fork, is one'
like "$(jq -r '.locks[0].lock' l.json)" '^\[shared memory [0-9]+\]\+0x14$' '… by its place in that'
look condition
is "$(jq -r '[.locks[] | select(.kind == "condition" and .waits > 20) | .lock | startswith("queue+0x")] | tostring' l.json)" '[true]' \
	'the two words of a condition within another variable are one lock'
is "$(jq '[.locks[] | select(.kind == "condition" and .waits > 20)][0] | .waiters' l.json)" 2 '… with the waits at both'
look races
is "$(jq -r '.locks[0] | "\(.waits) \(.eagain) \(.total_ns)"' l.json)" '0 100 0' 'calls that come too late to wait are no waits'
# moved WHAT: the locks that the program speaks of, beside its own words
moved() {
	look "$1"
	while read -r name waits ns; do
		is "$(of "$name" .waits)" "$waits" "$1: waits at $name"
		near "$(of "$name" .total_ns)" "$ns" 40000000 "$1: … and how long: $((ns / 1000000)) ms"
	done <own
}
moved requeue
is "$(of to .moved) $(of from .moved)" '2 0' '… two came from another lock'
is "$(of from .kind) $(of to .kind)" 'null null' '… of which nothing tells what they are'
like "$(stack waker "$(of to .number)")" 'wake_at requeue main' 'who wakes at the second lock'
like "$(stack waiter "$(of to .number)")" 'wait_at_from waiter start_thread' '… and the waiter has its own stack there too'
like "$(stack waker "$(of from .number)")" 'move_to requeue main' 'who moves wakes at the first'
look late
ns=$(awk '$1 == "to" { print $3 }' own)
is "$(of to '"\(.waits) \(.timeouts)"')" '2 1' 'moved with all others: its time is up at the second lock'
near "$(of to .total_ns)" $((ns + 400000000)) 60000000 '… where another one waits on'
if "$W/futexes" several >own; then
	moved requeue2
	moved several
else
	skip 'no futex_wait (455) in this kernel' 6
fi

# Probes of a C library, here a program of that name, which has no path any more, as after an upgrade.
# It begins when it is told to, below.
cp "$W/holds" libc.so.6
mkfifo in
./libc.so.6 <in >held.own &
pid=$!
exec {hold}>in
until grep -q "$PWD/libc.so.6" /proc/$pid/maps; do sleep 0.02; done
rm libc.so.6
"$INSPECT" trace --locks --hold --json -p $pid >held.json 2>err &
holds=$!

"$W/syscalls" deadlock 30 &
pid=$!
sleep 0.3
locks -p $pid -d 0.5
is "$(of first '"\(.waits) \(.in_flight)"') $(of second '"\(.waits) \(.in_flight)"')" '0 1 0 1' 'a deadlock: waits since before the start are in flight'
ok '[ "$(of first .oldest_ns)" -ge 490000000 ]' '… with their age'
is "$(jq '([.locks[].oldest_ns] | max) <= .elapsed_ns' l.json)" true '… within the window, however long looking up names took'
like "$(jq -r .summary l.json)" "next: inspect stack -p $pid\$" '… and stack is next'
locks --lock second -p $pid -d 0.2
is "$(jq '.locks | length' l.json)" 1 '--lock picks one by name'
locks --lock frist -p $pid -d 0.1
is "$(jq -r .summary l.json)" 'nobody waited at a lock frist: did you mean first?' '… and says which is like it'
locks --lock NOSUCH -- true
is "$(jq -r .summary l.json)" 'nobody waited at a lock NOSUCH' '… also where nobody waited at any'
locks --lock NOSUCH -p $pid -d 0.1
like "$(jq -r .summary l.json)" '^nobody waited at a lock NOSUCH; most waiting was at (first|second), (second|first)' '… or which there are'
kill $pid

# --- how long they are held ---
echo >&$hold
until grep -q inner held.own; do sleep 0.05; done
kill -INT $holds
wait $holds
look held
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-holds.schema.json" l.json 2>&1)" '' '--hold: the JSON fits its schema'
for name in outer inner; do
	read -r holds ns < <(awk -v name=$name '$1 == name { print $2, $3 }' own)
	is "$(of $name .holds)" "$holds" "$name: how often it was held"
	near "$(of $name '.total_ns - (.oldest_ns // 0)')" "$ns" 20000000 "… and how long: $((ns / 1000000)) ms, whatever is given back first"
done
is "$(of outer .held_now) $(of inner .held_now) $(jq '"\(.lost) \(.held_from_before)"' -r l.json)" '1 0 0 0' 'one is held at the end'
exec {hold}>&-
wait
if ! readelf -n "$(ldd "$W/holds" | awk '/libc.so.6/ { print $3 }')" | grep -q mutex_acquired; then
	exits 125 '--hold: a C library without probes' "$INSPECT" trace --locks --hold -- true
	like "$(cat "$tmp/err")" 'no C library of the target has probes.*--enable-systemtap.*fix: inspect trace --locks' '… says what is missing, and what to do'
else
	skip "this machine's C library has them" 2
fi

python=/usr/bin/python3.11
if [ -x $python ]; then
	cat >gil.py <<'END'
import threading, time
end = time.time() + 1
def spin():
    while time.time() < end: pass
threads = [threading.Thread(target=spin) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
END
	"$INSPECT" trace -c --json -- $python gil.py >t.json 2>err &
	locks -- $python gil.py
	wait
	is "$(of '_PyRuntime (GIL)' '.kind')" GIL "Python's lock by name, its words as one"
	ok "jq -e '[.locks[] | select(.kind == \"GIL\") | .total_ns] | add > 500000000' l.json" '… with the waits at all of them'
	like "$(jq -r .summary l.json)" '% of it at _PyRuntime \(GIL\)' '… of which the first line speaks'
	ok "jq -e '[.locks[] | select(.kind == \"GIL\") | .timeouts] | add > 50' l.json" '… whose waits end by time-out, and are waits'
	like "$(jq -r '.findings[] | select(.rule == "gil-contention").evidence' t.json)" '_PyRuntime.* \(GIL\).*ms of waiting' 'and trace -c says so'
else
	skip 'no python3.11' 5
fi
exits 2 '--hold alone' "$INSPECT" trace --hold -- true
exits 2 '--lock alone' "$INSPECT" trace --lock x -- true
