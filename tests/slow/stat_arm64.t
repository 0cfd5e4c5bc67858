#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Hardware counters that really count: an emulated aarch64 machine with a PMU, on which one
# instruction takes two cycles of 1 ns (-icount shift=1), and a loop of known length.
. "$(dirname "$0")/arm64.sh"
rounds=20000000
cat >"$tmp/loop.S" <<END
	.globl _start
_start:	ldr	x0, =$rounds
1:	subs	x0, x0, #1
	b.ne	1b
	mov	x0, #0
	mov	x8, #93
	svc	#0
END
mkdir -p "$tmp/initrd/bin" "$tmp/initrd/proc" "$tmp/initrd/sys" "$tmp/initrd/tmp"
aarch64-linux-gnu-gcc -static -nostdlib -o "$tmp/initrd/bin/loop" "$tmp/loop.S" || exit 1
cp "$cache/build/inspect" "$root/bin/busybox" "$tmp/initrd/bin/"
cat >"$tmp/initrd/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
run() {
	name=$1
	shift
	/bin/inspect stat --json -o /tmp/report "$@"
	echo "@BEGIN $name"
	/bin/busybox cat /tmp/report
	echo "@END"
}
run user -e cycles:u,instructions:u -- /bin/loop
run default -- /bin/loop
run group -e '{cycles:u,instructions:u}' -- /bin/loop
many=cycles:u,instructions:u,cycles:uk,instructions:uk,r11:u,r8:u,r10:u,r12:u,r1:u,r3:u,cycles:k,instructions:k
run several -e $many -- /bin/loop
echo "@BEGIN text"
/bin/inspect stat -e $many -- /bin/loop 2>&1
echo "@END"
run repeated -r 3 -e instructions:u -- /bin/loop
echo "@REQUIRE $(/bin/inspect stat -q --require cycles,instructions -- /bin/loop; echo $?)"
/bin/busybox poweroff -f
END
chmod +x "$tmp/initrd/init"
python3 tests/slow/initramfs.py "$tmp/initrd" >"$tmp/initrd.cpio"
timeout 200 qemu-system-aarch64 -M virt -cpu max -accel tcg -icount shift=1 -m 512 -nographic -nic none -no-reboot \
	-kernel "$root"/boot/vmlinuz-* -initrd "$tmp/initrd.cpio" -append 'console=ttyAMA0 quiet panic=-1' \
	</dev/null >"$tmp/console" 2>&1
ok 'grep -q "@REQUIRE" "$tmp/console"' 'the machine ran to its end' || { diag "$(tail -20 "$tmp/console")"; exit 1; }
printed() {
	tr -d '\r' <"$tmp/console" | sed -n "/^@BEGIN $1\$/,/^@END\$/p" | sed '1d;$d'
}
for name in user default group several repeated; do
	printed $name >"$tmp/$name.json"
	is "$(python3 tests/cmd/schema.py docs/json/stat.schema.json "$tmp/$name.json" 2>&1)" '' "$name: the JSON fits its schema"
done

value() {
	jq -r --arg m "$2" '.metrics[] | select(.metric == $m).value' "$tmp/$1.json"
}
derived() {
	jq -r --arg m "$2" '.derived[] | select(.name == $m).value' "$tmp/$1.json"
}
# Two instructions a round; ldr, two mov and svc around it. The emulator is exact, interrupts aside.
instructions=$((2 * rounds + 4))
near "$(value user instructions:u)" $instructions 100 'instructions are those of the loop'
near "$(value user cycles:u)" $((2 * instructions)) 200 'two cycles each'
near "$(derived user ipc)" 0.5 0.001 'IPC follows'
near "$(value group instructions:u)" $instructions 100 'as a group too'
near "$(value default instructions)" $instructions $((instructions / 50)) 'with the kernel there are a few more'
near "$(derived default cpu-ghz)" 1 0.01 'at 1 GHz'
is "$(jq -r '.metrics[] | select(.metric == "cache-misses") | .value' "$tmp/default.json")" null 'what this PMU has not is null'
is "$(jq -r '.metrics[] | select(.metric == "cache-misses") | .value_reason' "$tmp/default.json")" \
	"not counted: this CPU's counters do not have the event" 'with its reason'
like "$(jq -r '[.findings[].rule] | join(" ")' "$tmp/default.json")" 'stalling' 'IPC below 1 is said'
near "$(jq '[.runs[]["instructions:u"]] | (max - min)' "$tmp/repeated.json")" 0 100 'run after run'
is "$(tr -d '\r' <"$tmp/console" | sed -n 's/^@REQUIRE //p')" 0 '--require of what is there'

# More events than the PMU has counters: they take turns, and the estimate is close.
near "$(value several instructions:u)" $instructions $((instructions / 20)) 'multiplexed, within 5 %'
ok '[ "$(jq "[.metrics[] | select(.event != null and .value != null) | .running_percent] | min < 100" "$tmp/several.json")" = true ]' \
	'and said to be scaled'
like "$(printed text)" $'\ninstructions:u +[0-9]+ [^\n]*counted [0-9]+ % of the time, scaled \(!\)' 'in the table too, and marked'
