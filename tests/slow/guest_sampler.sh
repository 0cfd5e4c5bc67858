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
guest_file "$INSPECT"
guest_file "$W/shares_bare"
guest_file "$O/accuracy"
guest_file "$(command -v setpriv)" with-rights # busybox's own takes another command line
guest_boot <<'END'
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
accuracy 150 'exec shares_bare 3' >/tmp/accuracy.out 2>&1
show accuracy.out
shares_bare 600 3 >/dev/null &
record threads inspect record -F 499 -o /tmp/threads -d 1 -p $!
echo 2 >/proc/sys/kernel/perf_event_paranoid
record masked with-rights --bounding-set -bpf,-sys_admin --inh-caps -bpf,-sys_admin \
	inspect record -d 0.2 -o /tmp/masked -p $!
mkdir /sys/fs/cgroup/small
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
echo 24M >/sys/fs/cgroup/small/memory.max
record little sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec "$@"' sh \
	inspect record -d 0.2 -o /tmp/little -p $!
mount -t tmpfs none /sys/kernel/btf
record untyped inspect record -d 0.2 -o /tmp/untyped -p $!
END
for name in command threads masked little untyped; do
	guest_shown $name.json >"$tmp/$name.json"
	guest_shown $name.err >"$tmp/$name.err"
	is "$(sed -n 's/^rc //p' "$tmp/$name.err")" 0 "$name: recorded"
done
like "$(jq -r .os_release "$tmp/command.json")" "^${version//./\\.}\." 'by that kernel'

# --- unwound in the kernel ---
while read -r name wanted; do
	unlike "$(cat "$tmp/$name.err")" 'perf sampler' "$name: by the BPF sampler"
	read -r cut samples < <(jq -r '"\(.truncated) \(.samples)"' "$tmp/$name.json")
	# A new program's first moments take longer here than anywhere.
	known=$(jq '[.truncated_by_reason[] | select(.reason == "new mapping").samples] | add // 0' "$tmp/$name.json")
	ok '[ $samples -gt $((90 * wanted / 100)) ] && [ $(((cut - known) * 100)) -le $samples ] && [ $((known * 100)) -le $((5 * samples)) ]' \
		"$name: complete stacks (all but $cut of $samples of about $wanted, $known of them new mappings)"
	points=$(jq -n "[3, 3 * ([4000 / $samples, 1] | max | sqrt)] | max")
	while read -r function want; do
		# Of what the program does itself: emulated, its start weighs more.
		near "$(jq --arg name $function '[.functions[] | select(.function | startswith("burn_"))] as $all |
			100 * ([$all[] | select(.function == $name).self_weight] | add // 0) / ($all | map(.self_weight) | add)' \
			"$tmp/$name.json")" $want $points "$name: $function"
	done <<<"burn_sixty 60
burn_thirty 30
burn_ten 10"
done <<<"command $((2 * 499))
threads 499"
near "$(jq '[.functions[] | select(.function == "worker").total_percent] | add' "$tmp/threads.json")" 100 2 \
	'threads: their stacks reach the entry of the thread'
# Those that ended early for want of rows say so; no other may differ, but where libdwfl unwinds the
# registers of a program that execve has just ended.
read -r all equal longer differ why < <(guest_shown accuracy.out | grep '^[0-9]')
known=$(grep -o 'mapping=[0-9]*' <<<"$why" | awk -F= '{ n += $2 } END { print n + 0 }')
ok '[ "$all" -ge 50 ] && [ "$differ" -le $((known + 2)) ] && [ $((equal + longer)) -gt $((all / 2)) ]' \
	"frames as libdwfl has them: $equal of $all, $longer longer, $differ different ($why)" ||
	diag "$(guest_shown accuracy.out)"

# --- refused, and said ---
like "$(cat "$tmp/masked.err")" 'frame pointers \(perf sampler\): BPF is not allowed.*CAP_BPF' 'without CAP_BPF'
like "$(cat "$tmp/little.err")" 'frame pointers \(perf sampler\): not enough memory for BPF.*32 MiB' \
	"with little memory in its cgroup (v2)"
like "$(cat "$tmp/untyped.err")" 'frame pointers \(perf sampler\): the kernel does not describe its types' 'without BTF'
