#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The BPF sampler and --call-graph dwarf on an emulated aarch64 machine: a program without frame
# pointers, static so that it needs no libraries there.
. "$(dirname "$0")/arm64.sh"
mkdir -p "$tmp/initrd/bin" "$tmp/initrd/proc" "$tmp/initrd/sys" "$tmp/initrd/tmp"
for name in shares_bare uw_signal uw_deep; do
	flags=$(sed -n '1,3s|^/\* cflags: \(.*\) \*/$|\1|p' tests/workloads/$name.c)
	aarch64-linux-gnu-gcc -O2 -g -fno-omit-frame-pointer -pthread -D_GNU_SOURCE -Wall $flags -static \
		tests/workloads/$name.c -o "$tmp/initrd/bin/$name" || exit 1
done
cp "$cache/build/inspect" "$root/bin/busybox" "$tmp/initrd/bin/"
cat >"$tmp/initrd/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
run() {
	name=$1
	shift
	echo "@BEGIN $name.err"
	/bin/inspect record -F 499 -o /tmp/$name "$@" 2>&1 >/dev/null
	/bin/busybox printf '\n@END\n@BEGIN %s.json\n' $name
	/bin/inspect report --json --all /tmp/$name 2>/dev/null
	echo "@END"
}
run auto -e cpu-clock -- /bin/shares_bare 1.5 2
run dwarf -e cpu-clock --call-graph dwarf -- /bin/shares_bare 1 2
run signal -e cpu-clock -- /bin/uw_signal 2500
run deep -e cpu-clock -- /bin/uw_deep 1500
echo @DONE
/bin/busybox poweroff -f
END
chmod +x "$tmp/initrd/init"
python3 tests/slow/initramfs.py "$tmp/initrd" | gzip -1 >"$tmp/initrd.cpio.gz"
nice timeout 240 qemu-system-aarch64 -M virt -cpu max -accel tcg -smp 2 -m 1024 -nographic -nic none -no-reboot \
	-kernel "$root"/boot/vmlinuz-* -initrd "$tmp/initrd.cpio.gz" -append 'console=ttyAMA0 quiet panic=-1' \
	</dev/null >"$tmp/console" 2>&1
ok 'grep -q "@DONE" "$tmp/console"' 'the machine ran to its end' || { diag "$(tail -20 "$tmp/console")"; exit 1; }
shown() {
	tr -d '\r' <"$tmp/console" | sed -n "/^@BEGIN $1\$/,/^@END\$/p" | sed '1d;$d'
}
for name in auto dwarf signal deep; do
	shown $name.json >"$tmp/$name.json"
	unlike "$(shown $name.err)" 'perf sampler' "$name: as asked for"
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
