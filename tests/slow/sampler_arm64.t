#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The BPF sampler and --call-graph dwarf on an emulated aarch64 machine: a program without frame
# pointers, static so that it needs no libraries there.
. "$(dirname "$0")/arm64.sh"
for name in shares_bare uw_signal uw_deep; do
	flags=$(sed -n '1,3s|^/\* cflags: \(.*\) \*/$|\1|p' tests/workloads/$name.c)
	aarch64-linux-gnu-gcc -O2 -g -fno-omit-frame-pointer -pthread -D_GNU_SOURCE -Wall $flags -static \
		tests/workloads/$name.c -o "$machine/bin/$name" || exit 1
done
arm64_boot <<'END'
run() {
	name=$1
	shift
	inspect record -F 499 -o /tmp/$name.data "$@" 2>/tmp/$name.err >/tmp/out
	show $name.err
	inspect report --json --all /tmp/$name.data >/tmp/$name.json 2>/dev/null
	show $name.json
}
run auto -e cpu-clock -- /bin/shares_bare 1.5 2
run dwarf -e cpu-clock --call-graph dwarf -- /bin/shares_bare 1 2
run signal -e cpu-clock -- /bin/uw_signal 2500
run deep -e cpu-clock -- /bin/uw_deep 1500
END
for name in auto dwarf signal deep; do
	machine_shown $name.json >"$tmp/$name.json"
	unlike "$(machine_shown $name.err)" 'perf sampler' "$name: as asked for"
	read -r cut samples < <(jq -r '"\(.truncated) \(.samples)"' "$tmp/$name.json")
	ok '[ "$samples" -gt 50 ] && { [ $cut -le 5 ] || [ $((100 * cut)) -le $samples ]; }' "$name: complete stacks (all but $cut of $samples)" ||
		diag "$(jq -c .truncated_by_reason "$tmp/$name.json")"
done
for name in auto dwarf; do
	points=$(jq '[3, 3 * ([4000 / .samples, 1] | max | sqrt)] | max' "$tmp/$name.json")
	while read -r function want; do
		near "$(jq --arg name $function '[.functions[] | select(.function | startswith("burn_"))] as $all |
			100 * ([$all[] | select(.function == $name).self_weight] | add // 0) / ($all | map(.self_weight) | add)' \
			"$tmp/$name.json")" $want $points "$name: $function"
	done <<<"burn_sixty 60
burn_thirty 30
burn_ten 10"
	near "$(jq '[.functions[] | select(.function == "level_20").total_percent] | add' "$tmp/$name.json")" \
		"$(jq '[.functions[] | select(.function | startswith("burn_")).total_percent] | add' "$tmp/$name.json")" 2 \
		"$name: through its 20 calls"
done
