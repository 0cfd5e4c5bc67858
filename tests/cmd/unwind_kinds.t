#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every kind of code without frame pointers, all of them in one run under three recorders: ours in the
# kernel (auto), ours from stack copies (dwarf), and perf, which only samples. Stacks are complete, and
# shares are perf's. tests/slow/unwind_kinds.t does the same for longer.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
[ -e /sys/kernel/btf/vmlinux ] || skip_all 'this kernel has no BTF'
ms=${UNWIND_KINDS_MS:-150}
hz=999
judge=$PWD/tests/cmd/unwind_kinds.py

# A program of each kind, and the function that its stacks go through
kinds='uw_deep main
uw_fib main
uw_plt main
uw_plt_lazy main
uw_vdso main
uw_signal main
uw_signal_other main
uw_realign main
uw_asm main
uw_debug_frame main
uw_static main
uw_static_pie main
uw_musl main
uw_musl_shared main
uw_exceptions main
uw_vfork main
uw_threads worker'
cd "$tmp" || exit 1
cp "$W/uw_plt" uw_plt_lazy
cp "$W/uw_signal" uw_signal_other
commands=
built=
while read -r name frame; do
	case $name in
	uw_plt_lazy) commands+="LD_BIND_NOT=1 ./$name $ms &" ;;
	uw_signal_other) commands+="./$name $ms other &" ;;
	*)
		[ -x "$W/$name" ] || {
			skip "$name was not built"
			continue
		}
		commands+="$W/$name $ms &"
		;;
	esac
	built+="$name $frame"$'\n'
done <<<"$kinds"
# Freestanding: neither headers nor a C library for 32 bits are there everywhere.
cat >uw_32.c <<'END'
static volatile int sum;
static __attribute__((noinline)) int leaf(int n) { for (int i = 0; i < n; i++) sum += i; return sum; }
static __attribute__((noinline)) int nest(int n) { return n ? nest(n - 1) + 1 : leaf(10000); }
void _start(void) { for (;;) nest(10); }
END
"${CC:-cc}" -m32 -O1 -fno-pic -fomit-frame-pointer -nostdlib -static uw_32.c -o uw_32 2>/dev/null &&
	commands+="timeout 1 ./uw_32 &"
# A function without call frame information, whose caller's rbp leads to no code
cat >uw_astray.s <<'END'
	.globl main
main:	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	sub $32, %rsp
	.cfi_adjust_cfa_offset 32
	movq $0x1234567, 24(%rsp)
	lea 16(%rsp), %rbp
1:	call leaf
	jmp 1b
	.cfi_endproc
	.skip 64, 0x90
leaf:	mov $100000, %ecx
2:	dec %ecx
	jnz 2b
	ret
	.skip 64, 0x90
	.section .note.GNU-stack, "", @progbits
END
[ "$(uname -m)" = x86_64 ] && "${CC:-cc}" uw_astray.s -o uw_astray &&
	commands+="timeout 0.3 ./uw_astray &"
# More than fits into the time of `make test`
if [ "$ms" -ge 1000 ] && command -v openssl >/dev/null; then
	built+=$'openssl __libc_start_main\n'
	commands+="openssl speed -seconds $((ms / 200)) rsa2048 2>/dev/null &"
fi
if [ "$ms" -ge 1000 ] && command -v rustc >/dev/null; then
	cat >uw_rust.rs <<-'END'
		use std::collections::BTreeMap;
		#[inline(never)]
		fn grow(depth: u32, map: &mut BTreeMap<String, u32>) -> usize {
		    map.insert(format!("key {}", depth % 977), depth);
		    if depth == 0 { return map.len(); }
		    grow(depth - 1, map) + map.len() / 7
		}
		#[no_mangle]
		#[inline(never)]
		pub fn rust_worker() -> usize {
		    let mut map = BTreeMap::new();
		    (0..100000).map(|_| grow(60, &mut map)).sum()
		}
		fn main() { println!("{}", std::thread::spawn(rust_worker).join().unwrap()); }
	END
	rustc -C opt-level=2 uw_rust.rs 2>rust.err && {
		built+=$'uw_rust rust_worker\n'
		commands+="./uw_rust &"
	}
fi
peer=
command -v perf >/dev/null && peer="perf record -q -F $hz -e cpu-clock -o perf.data --"
"$INSPECT" record -q -F $hz -o auto.data -- \
	"$INSPECT" record -q -F $hz --call-graph dwarf,65528 -o dwarf.data -- \
	$peer sh -c "$commands wait" >/dev/null 2>err
for how in auto dwarf; do
	"$INSPECT" flame --folded --no-inline --no-demangle $how.data 2>>err >$how.folded
done
[ -z "$peer" ] || perf script --no-inline --no-demangle -i perf.data -F comm,ip,sym >perf.script 2>>err
while read -r failed name; do
	result "$failed" "$name"
done < <(PYTHONDONTWRITEBYTECODE=1 python3 "$judge" $hz "$peer" <<<"$built")
ok "[ $tests_run -ge $((4 * $(grep -c . <<<"$built"))) ]" 'all of them were judged'
if [ -x uw_astray ]; then
	for how in auto dwarf; do
		ok "[ \$(grep -c '^uw_astray;.truncated: no unwind information.;' $how.folded) -gt 0 ]" \
			"uw_astray, $how: a guess by frame pointer that leads to no code is not to blame"
		is "$(grep -c '^uw_astray;.truncated: address in no mapping.;leaf' $how.folded)" 0 \
			"uw_astray, $how: nor is the address"
	done
else
	skip 'not x86-64' 4
fi
if [ -x uw_32 ]; then
	for how in auto dwarf; do
		ok "[ \$(grep -c '^uw_32;.truncated: 32-bit process.;[^;]*\$' $how.folded) -gt 0 ]" "uw_32, $how: named as not unwound"
		is "$(grep '^uw_32;' $how.folded | grep -vc '^uw_32;\[truncated: 32-bit process\];\|^uw_32;[^;]*_\[k\][; ]')" 0 \
			"uw_32, $how: and nothing else is said of it"
	done
else
	skip 'no compiler for 32 bits' 4
fi
