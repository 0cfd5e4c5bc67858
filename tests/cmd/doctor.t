#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What doctor says against what the kernel does (perf is the witness), and its advice carried out.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "changes sysctls: needs root"

# Another run of this test on the machine would change the same.
exec 9</proc/sys/kernel/perf_event_paranoid
flock -w 200 9 || diag 'another run of this test does not end'
paranoid=$(sysctl -n kernel.perf_event_paranoid)
kptr=$(sysctl -n kernel.kptr_restrict)
restore() {
	sysctl -q kernel.perf_event_paranoid="$paranoid" kernel.kptr_restrict="$kptr"
}
trap 'restore; finish' EXIT

# Where an ordinary user can reach and run it, and where it may get capabilities.
chmod 755 "$tmp"
cp "$INSPECT" "$tmp/inspect"
user="setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs"
plain_user="setpriv --reuid=65534 --regid=65534 --clear-groups"

# state ABILITY [COMMAND-PREFIX…]: yes, limited or no
state() {
	local ability=$1
	shift
	"$@" "$tmp/inspect" doctor --json | jq -r --arg a "$ability" \
		'.abilities[] | select(.ability == $a) | .state'
}

# advice ABILITY KIND-REGEX [COMMAND-PREFIX…]: the lines
advice() {
	local ability=$1 kind=$2
	shift 2
	"$@" "$tmp/inspect" doctor --json | jq -r --arg a "$ability" --arg k "$kind" \
		'.advice[] | select(.ability == $a and (.kind | test($k))) | .text'
}

# A proposed command line without its remark, for a shell of root.
as_root() {
	local line=$1
	line=${line#as root: }
	line=${line#sudo }
	echo "${line%%      (*}"
}

# yes or no: whether perf may count this
witness() {
	if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi
}

# --- root ---
exits 0 'works as root' "$INSPECT" doctor
like "$(cat "$tmp/out")" "# kernel: $(uname -r)" 'prints the kernel'
like "$(cat "$tmp/out")" "# kernel.perf_event_paranoid: $paranoid" 'prints the sysctl'
ok '[ ! -s "$tmp/err" ]' 'nothing on stderr'
"$INSPECT" doctor --json >"$tmp/json"
is "$(jq -r .schema "$tmp/json")" inspect.doctor/1 'JSON has a schema'
is "$(jq -r .perf_event_paranoid "$tmp/json")" "$paranoid" 'JSON: the sysctl is a number'
is "$(jq -r .cpus "$tmp/json")" "$(getconf _NPROCESSORS_ONLN)" 'JSON: CPUs'
is "$(jq -r .uid "$tmp/json")" 0 'JSON: user'
for ability in 'own processes' 'kernel stacks' 'processes of other users' 'all CPUs' \
	'stacks without frame pointers' 'recordings and folded stacks'; do
	is "$(state "$ability")" yes "root: $ability"
done
if command -v setpriv >/dev/null; then
	is "$(setpriv --bounding-set -bpf,-sys_admin --inh-caps -bpf,-sys_admin "$INSPECT" doctor --json |
		jq -r '.abilities[] | select(.ability == "stacks without frame pointers").state')" limited 'without CAP_BPF: less'
else
	skip 'no setpriv here' 1
fi
perf stat -x, -e cycles:u -o "$tmp/stat" true
if ! grep -q 'not supported' "$tmp/stat"; then
	is "$(state 'hardware counters')" yes 'hardware counters, as perf says'
else
	is "$(state 'hardware counters')" limited 'no hardware counters, as perf says'
	like "$(advice 'hardware counters' why)" 'there are no hardware counters here' 'and it is said'
fi
is "$(jq -r '.advice[] | select(.ability == "kernel stacks")' "$tmp/json")" '' 'no advice where none is needed'

# --- an ordinary user, at each level that the kernel knows ---
for level in -1 0 1 2; do
	sysctl -q kernel.perf_event_paranoid=$level
	is "$(state 'own processes' $user)" "$(witness $user perf stat -e cpu-clock:u true)" \
		"paranoid $level: own processes as perf"
	is "$(state 'kernel stacks' $user)" "$(witness $user perf stat -e cpu-clock:k true)" \
		"paranoid $level: kernel stacks as perf"
	is "$(state 'all CPUs' $user)" "$(witness $user perf stat -a -e cpu-clock:u true)" \
		"paranoid $level: all CPUs as perf"
	is "$(state 'processes of other users' $user)" \
		"$(witness $user perf stat -e cpu-clock:u -p 1 true)" "paranoid $level: others as perf"
done

# --- its advice, carried out ---
in_container=$("$INSPECT" doctor --json | jq -r .container)
for ability in 'kernel stacks' 'all CPUs'; do
	sysctl -q kernel.perf_event_paranoid=2
	is "$(state "$ability" $user)" no "paranoid 2: no $ability"
	fix=$(advice "$ability" 'fix|or' $user | grep sysctl | head -1)
	like "$fix" 'sysctl kernel.perf_event_paranoid=[01] ' "$ability: a sysctl helps"
	[ "$in_container" = no ] || fix=${fix#on the host, }
	eval "$(as_root "$fix")" >/dev/null
	is "$(state "$ability" $user)" yes "$ability: and it does"
done
sysctl -q kernel.perf_event_paranoid=2 kernel.kptr_restrict=1
is "$(state 'names of kernel functions' $user)" no 'kptr_restrict 1: no kernel names'
advice 'names of kernel functions' 'fix|or' $user | grep sysctl >"$tmp/fixes"
while IFS= read -r fix; do
	eval "$(as_root "${fix#on the host, }")" >/dev/null
done <"$tmp/fixes"
is "$(state 'names of kernel functions' $user)" yes 'the advised sysctls bring them back'
restore
sysctl -q kernel.perf_event_paranoid=2

if [ "$in_container" = no ] && setcap cap_perfmon+ep "$tmp/inspect" 2>/dev/null; then
	setcap -r "$tmp/inspect"
	fix=$(advice 'all CPUs' 'fix|or' $plain_user | grep setcap)
	like "$fix" "setcap .*$tmp/inspect" 'the advice names this very file'
	eval "$(as_root "$fix")"
	for ability in 'kernel stacks' 'all CPUs' 'processes of other users'; do
		is "$(state "$ability" $plain_user)" yes "with the advised capabilities: $ability"
	done
	setcap -r "$tmp/inspect"
	is "$(advice 'all CPUs' 'fix|or' $user | grep -c setcap)" 0 \
		'not advised under no_new_privs'
else
	skip 'file capabilities cannot be set here' 5
fi

# --- root without rights, and other boxes ---
masked='setpriv --bounding-set -perfmon,-sys_admin,-sys_ptrace,-syslog'
is "$(state 'all CPUs' $masked)" no 'root without CAP_PERFMON: no -a'
is "$(advice 'all CPUs' 'fix|or' $masked | grep -c 'sudo\|setcap')" 0 'who needs no sudo and no setcap'

if unshare -U -r true 2>/dev/null; then
	is "$(state 'all CPUs' unshare -U -r)" no 'root of a user namespace: no -a'
	like "$(advice 'all CPUs' why unshare -U -r)" 'user namespace do not count' 'and why'
else
	skip 'user namespaces are not allowed here' 2
fi

# perf_event_open answered by a filter, as container runtimes do
cat >"$tmp/filter.py" <<'END'
import ctypes, os, struct, sys
errno = int(sys.argv[1])
number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | errno), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
fprog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(program)))
if libc.prctl(22, 2, ctypes.byref(fprog), 0, 0):
    sys.exit("no filter")
os.execv(sys.argv[2], sys.argv[2:])
END
for errno in 1 38; do
	is "$(state 'own processes' python3 "$tmp/filter.py" $errno)" no "seccomp, errno $errno: nothing works"
	like "$(advice 'own processes' why python3 "$tmp/filter.py" $errno)" \
		'a seccomp filter .*refuses perf_event_open' "seccomp, errno $errno: it is recognised"
done

# An ordinary user cannot read tracefs, until it is remounted as advised. Its options belong to the
# whole machine, wherever it is mounted: put back at once.
cat >"$tmp/remount" <<'END'
point=$(findmnt -n -f -o TARGET -t tracefs) || {
	point=/sys/kernel/tracing
	mount -t tracefs nodev $point || exit 1
}
options=$(stat -c 'mode=%a,gid=%g' "$point")
trap 'mount -o remount,"$options" "$point"' EXIT
mount -o remount,mode=700,gid=0 "$point" || exit 1
state() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$1" doctor --json
}
state "$1" >"$2.before"
fix=$(jq -r '.advice[] | select(.ability == "tracepoints" and .kind == "fix") | .text' "$2.before")
fix=${fix#as root: }
fix=${fix#sudo }
eval "${fix%%      (*}"
state "$1" >"$2.after"
END
sysctl -q kernel.perf_event_paranoid=-1
exits 0 'tracefs can be remounted' unshare -m sh "$tmp/remount" "$tmp/inspect" "$tmp/user"
is "$(jq -r '.abilities[] | select(.ability == "tracepoints").state' "$tmp/user.before")" no \
	'no tracepoints for an ordinary user'
like "$(jq -r '.advice[] | select(.ability == "tracepoints" and .kind == "why").text' \
	"$tmp/user.before")" 'is not readable by this user' 'and why'
is "$(jq -r '.abilities[] | select(.ability == "tracepoints").state' "$tmp/user.after")" yes \
	'the advised remount opens them'
restore

# A mount namespace of its own loses tracefs. Root needs none; others are told to mount it.
cat >"$tmp/no-tracefs" <<'END'
while umount "$(awk '$3 == "tracefs" { print $2; exit }' /proc/self/mounts)" 2>/dev/null; do :; done
"$1" doctor --json >"$2.root"
"$1" record -q -e sched:sched_process_exit -o "$2.data" -- true
findmnt -t tracefs >"$2.left"
setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$1" doctor --json >"$2.before"
fix=$(jq -r '.advice[] | select(.ability == "tracepoints" and .kind == "fix") | .text' "$2.before")
eval "$fix"
"$1" doctor --json >"$2.after"
END
exits 0 'tracefs can be unmounted' unshare -m sh "$tmp/no-tracefs" "$INSPECT" "$tmp/tracefs"
is "$("$INSPECT" report --json "$tmp/tracefs.data" | jq .samples)" 1 'root records tracepoints without'
is "$(jq -r '.tracefs' "$tmp/tracefs.root")" 'not mounted (a private one is used)' 'and is told how'
is "$(cat "$tmp/tracefs.left")" '' 'but nothing is mounted'
is "$(jq -r '.tracefs' "$tmp/tracefs.before")" 'not mounted' 'no tracefs'
is "$(jq -r '.abilities[] | select(.ability == "tracepoints").state' "$tmp/tracefs.before")" no \
	'no tracepoints'
is "$(jq -r '.abilities[] | select(.ability == "tracepoints").state' "$tmp/tracefs.after")" yes \
	'the advised mount brings them'

# --- usage ---
exits 2 '--json with --csv' "$INSPECT" doctor --json --csv
like "$(cat "$tmp/err")" '--json and --csv exclude each other' 'names both'
exits 2 'an operand' "$INSPECT" doctor host
exits 125 'a full disk' bash -c '"$0" doctor >/dev/full' "$INSPECT"
like "$(cat "$tmp/err")" '^inspect doctor: cannot write to stdout: [^:]*$' 'is told in one line'
