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
# of NAME FILTER: of the lock of that name
of() {
	jq -r --arg name "$1" ".locks[] | select(.lock | startswith(\$name)) | $2" l.json
}

# Four threads hold one mutex for 2 ms each: three of them always wait.
locks -- "$W/syscalls" lock 1
is "$(of mutex+ '"\(.kind) \(.waiters) \(.timeouts)"')" 'mutex 4 0' 'a mutex by its name, and who waits for it'
near "$(of mutex+ .total_ns)" "$(jq '.elapsed_ns * 3' l.json)" "$(jq '.elapsed_ns * 0.45' l.json)" 'three of four threads wait all the time'
like "$(of mutex+ .top_waker)" '^[0-9]+ syscalls$' 'who wakes'
like "$(of mutex+ .top_holder)" '^[0-9]+ syscalls$' 'who holds it, as glibc notes'
is "$(jq '[.losses[]] | add' l.json)" 0 'nothing is lost'
is "$(python3 "$repo/tests/cmd/schema.py" "$repo/docs/json/trace-locks.schema.json" l.json 2>&1)" '' 'the JSON fits its schema'

locks -- "$W/syscalls" pi-lock 1
is "$(of mutex+ '"\(.kind) \(.waiters)"')" 'PI mutex 4' 'a mutex with priority inheritance'
like "$(of mutex+ .top_holder)" '^[0-9]+ syscalls$' '… and its owner'
locks -- "$W/syscalls" shared-lock 1
like "$(jq -r '.locks[0].lock' l.json)" '/shared\+0x[0-9a-f]+ \(shared\)$' 'a lock that two processes map at different places is one'
is "$(jq '.locks[0].waiters' l.json)" 2 '… with the waits of both'
locks -- "$W/syscalls" threads 200
is "$(jq '[.locks[] | select(.kind == "condition")] | length > 0' l.json)" true 'a barrier wakes all at once'

if "$W/syscalls" futex2 1; then
	locks -- "$W/syscalls" futex2 100
	is "$(of several '"\(.waits) \(.timeouts)"') $(of one '"\(.waits) \(.timeouts)"')" '100 100 100 100' 'futex_waitv and futex_wait'
else
	skip 'no futex_wait (455) in this kernel'
fi

"$W/syscalls" deadlock 30 &
pid=$!
sleep 0.3
locks -p $pid -d 0.5
is "$(of first+ '"\(.waits) \(.in_flight)"') $(of second+ '"\(.waits) \(.in_flight)"')" '0 1 0 1' 'a deadlock: waits since before the start are in flight'
ok '[ "$(of first+ .oldest_ns)" -ge 490000000 ]' '… with their age'
locks --lock second -p $pid -d 0.2
is "$(jq '.locks | length' l.json)" 1 '--lock picks one by name'
kill $pid

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
	locks -- $python gil.py
	ok "jq -e '[.locks[] | select(.kind == \"GIL\") | .total_ns] | add > 500000000' l.json" "Python's lock by name"
	ok "jq -e '[.locks[] | select(.kind == \"GIL\") | .timeouts] | add > 50' l.json" '… whose waits end by time-out, and are waits'
	"$INSPECT" trace -c --json -- $python gil.py >t.json 2>err
	like "$(jq -r '.findings[] | select(.rule == "gil-contention").evidence' t.json)" '_PyRuntime\+0x[0-9a-f]+ \(GIL\).*ms of waiting' 'and trace -c says so'
else
	skip 'no python3.11' 3
fi
exits 2 '--lock alone' "$INSPECT" trace --lock x -- true
