# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A driver of our own (FUSE) at $dev, which logs to $tmp/log how long its calls took and says what a
# test has told it to; $calls is the program that calls it. After lib.sh.
calls=$O/workloads/gpu_calls
dev=$tmp/dev
mkdir "$dev"
"$O/workloads/fake_gpu" "$dev" "$tmp/log" 2>"$tmp/server" &
server=$!
on_exit "kill $server 2>/dev/null; wait $server 2>/dev/null; umount -lq $dev"
for ((i = 0; i < 100; i++)); do
	[ -e "$dev/nvidiactl" ] && break
	sleep 0.05
done
[ -e "$dev/nvidiactl" ] || skip_all "no FUSE here: $(cat "$tmp/server")"

# gpu VERSION OPTION… -- STEP…: JSON into $tmp/json, of all devices but null0 and card0
gpu() {
	local version=$1
	shift
	"$INSPECT" trace --gpu --device "$dev/nvidiactl" --device "$dev/nvidia0" \
		--device "$dev/nvidia-uvm" --nvidia-version "$version" "$@" >"$tmp/json" 2>"$tmp/err"
}

# fits SCHEMA NAME: the JSON is as docs/json says
fits() { is "$(python3 tests/cmd/schema.py "docs/json/$1.schema.json" "$tmp/json" 2>&1)" '' "$2"; }

# row CALL COLUMN
row() { jq -r ".rows[] | select(.call == \"$1\") | .$2" "$tmp/json"; }
build='RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION'

# in_call PID 'NUMBER…': whether a thread of it is in one of these system calls
in_call() { awk -v nr=" $2 " 'index(nr, " " $1 " ")' /proc/$1/task/*/syscall 2>/dev/null; }
export -f in_call
ioctl='16 29' polls='7 73 232 22' # of x86-64 and arm64
# held N HOW STEP…: a caller, $held, in an ioctl that the driver answers as HOW says when the file
# $tmp/log.N is there
held() {
	local n=$1 how=$2
	shift 2
	"$calls" "$dev" answer hold:$n $how open nvidiactl "$@" >/dev/null & held=$!
	until [ -n "$(in_call $held "$ioctl")" ]; do sleep 0.02; done
}

mkfifo "$tmp/gate"
# started STEP…: in $caller, which opens nvidiactl and then waits for let_go, so that whoever measures
# is there, with its unwind tables. What it prints goes to $tmp/told.
started() { "$calls" "$dev" open nvidiactl gate "$tmp/gate" "$@" >"$tmp/told" & caller=$!; }
# CMD beside -p, which begins with the measurement and ends it: "${let_go[@]}" PID FILE, when the
# process has ended or the file is there
let_go=(-- sh -c 'echo >"$1"; while [ -d /proc/$2 ] && [ ! -e "$3" ]; do sleep 0.05; done' sh "$tmp/gate")
# The same of another measurement, which has to begin before: it makes a file, "${begun[@]}" FILE PID FILE
begun=(-- sh -c ': >"$0"; while [ -d /proc/$1 ] && [ ! -e "$2" ]; do sleep 0.05; done')
