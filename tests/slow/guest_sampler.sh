# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The BPF sampler on another kernel: a program without frame pointers is recorded, stacks are
# compared with libdwfl's, then BPF is refused in three ways.
#
#	. "$(dirname "$0")/guest_sampler.sh" VERSION
. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"
version=$1
guest_kernel "$version"
make -s O="$O" "$O/accuracy" >"$tmp/log" 2>&1 || diag "$(cat "$tmp/log")"
machine_file "$INSPECT"
machine_file "$W/shares_bare"
machine_file "$O/accuracy"
machine_file "$(command -v setpriv)" with-rights # busybox's own takes another command line
guest_boot <<'END'
# What a kernel does by itself after its boot takes half of the CPU, for seconds.
idle() { awk '{ print int(100 * $2) }' /proc/uptime; }
for try in $(seq 100); do
	before=$(idle)
	sleep 0.5
	[ $(($(idle) - before)) -lt 45 ] || break
done
# record NAME COMMAND OPTIONS: what it says, and the report
record() {
	name=$1
	shift
	"$@" 2>/tmp/$name.err >/tmp/$name.out
	printf '\nrc %s\n' $? >>/tmp/$name.err
	show $name.err
	inspect report --json --all /tmp/$name >/tmp/$name.json 2>/dev/null
	show $name.json
}
record command inspect record -F 499 -o /tmp/command -- shares_bare 2
show command.out
accuracy 150 'exec shares_bare 3' >/tmp/accuracy.out 2>&1
show accuracy.out
shares_bare 600 3 >/dev/null &
busy=$!
record threads inspect record -F 499 -o /tmp/threads -d 1 -p $busy
echo 2 >/proc/sys/kernel/perf_event_paranoid
# refuse NAME [COMMAND…]: what can do without BPF, and what cannot
refuse() {
	name=$1
	shift
	record $name "$@" inspect record -d 0.2 -o /tmp/$name -p $busy
	"$@" inspect offcpu -d 0.1 -p $busy >/tmp/$name.waits 2>&1
	"$@" inspect stack -p $busy >/tmp/$name.stack 2>&1
	show $name.waits
	show $name.stack
}
refuse masked with-rights --bounding-set -bpf,-sys_admin --inh-caps -bpf,-sys_admin
mkdir /sys/fs/cgroup/small
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
echo 24M >/sys/fs/cgroup/small/memory.max
refuse little sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec "$@"' sh
mount -t tmpfs none /sys/kernel/btf
refuse untyped
END
for name in command threads masked little untyped; do
	machine_shown $name.json >"$tmp/$name.json"
	machine_shown $name.err >"$tmp/$name.err"
	is "$(sed -n 's/^rc //p' "$tmp/$name.err")" 0 "$name: recorded"
done
like "$(jq -r .os_release "$tmp/command.json")" "^${version//./\\.}\." 'by that kernel'

# --- unwound in the kernel ---
while read -r name wanted; do
	unlike "$(cat "$tmp/$name.err")" 'perf sampler' "$name: by the BPF sampler"
	read -r cut samples < <(jq -r '"\(.truncated) \(.samples)"' "$tmp/$name.json")
	# A new program's first moments take longer here than anywhere.
	known=$(jq '[.truncated_by_reason[] | select(.reason == "new mapping").samples] | add // 0' "$tmp/$name.json")
	near $samples $wanted $((wanted / 10)) "$name: a sample for each tick of its CPU time"
	ok '[ $(((cut - known) * 100)) -le $samples ] && [ $((known * 100)) -le $((5 * samples)) ]' \
		"$name: complete stacks (all but $cut of $samples of about $wanted, $known of them new mappings)" ||
		diag "$(cat "$tmp/$name.err")"
	points=$(jq -n "[3, 3 * ([4000 / $samples, 1] | max | sqrt)] | max")
	while read -r function want; do
		# Of what the program does itself: emulated, its start weighs more.
		near "$(jq --arg name $function '[.functions[] | select(.function | startswith("burn_"))] as $all |
			100 * ([$all[] | select(.function == $name).self_weight] | add // 0) / ($all | map(.self_weight) | add)' \
			"$tmp/$name.json")" $want $points "$name: $function"
	done <<<"burn_sixty 60
burn_thirty 30
burn_ten 10"
done <<<"command $(machine_shown command.out | awk '$1 == "cpu" { printf "%d", 499 * $2 / 1e9 }')
threads 499"
near "$(jq '[.functions[] | select(.function == "worker").total_percent] | add' "$tmp/threads.json")" 100 2 \
	'threads: their stacks reach the entry of the thread'
# Those that ended early for want of rows say so; no other may differ, but where libdwfl unwinds the
# registers of a program that execve has just ended.
read -r all equal longer differ why < <(machine_shown accuracy.out | grep '^[0-9]')
known=$(grep -o 'mapping=[0-9]*' <<<"$why" | awk -F= '{ n += $2 } END { print n + 0 }')
ok '[ "$all" -ge 50 ] && [ "$differ" -le $((known + 2)) ] && [ $((equal + longer)) -gt $((all / 2)) ]' \
	"frames as libdwfl has them: $equal of $all, $longer longer, $differ different ($why)" ||
	diag "$(machine_shown accuracy.out)"

# --- refused, and said ---
# said NAME WHAT FIX WHERE: in one line of record, which goes on, and by offcpu, which does not
said() {
	like "$(cat "$tmp/$1.err")" "note: stacks by frame pointers \(perf sampler\): $2; [^"$'\n'"]*(→|->) $3[^"$'\n'"]*--call-graph dwarf" "$4: record goes on"
	like "$(machine_shown $1.waits)" "^inspect offcpu: ($2|kernel $version[^ ]* is too old to ).*"$'\n'"  fix: ($3|inspect stack)" "$4: offcpu says what helps"
}
said masked 'BPF is not allowed' 'a shell or service whose root has them' 'without CAP_BPF'
said little 'not enough memory for BPF' "raise the cgroup's memory limit" 'with little memory in its cgroup (v2)'
said untyped 'the kernel does not describe its types' 'use a kernel of the distribution' 'without BTF'
like "$(machine_shown masked.stack)" 'note: read from /proc: BPF is not allowed; .*CAP_BPF' 'without CAP_BPF: stack reads /proc'
like "$(machine_shown untyped.stack)" 'note: read from /proc: the kernel does not describe its types' 'without BTF: stack reads /proc'
