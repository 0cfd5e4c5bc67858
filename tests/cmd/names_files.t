#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Files that are hard to name: unusual layouts, huge, stripped, and inlined functions.
. "$(dirname "$0")/lib.sh"
CC=${CC:-cc}
record() {
	"$INSPECT" record -q -o "$tmp/data" "$@"
}
# Percent of the samples outside of the kernel
self() {
	"$INSPECT" report --json --all "$tmp/data" | jq --arg name "$1" '
		[.functions[] | select(.kind != "kernel")] |
		100 * ([.[] | select(.function == $name).self_samples] | add // 0) /
			([([.[].self_samples] | add // 0), 1] | max)'
}
functions() {
	"$INSPECT" report --json --all "$tmp/data" | jq -r '.functions[] | "\(.function) \(.module)"'
}
# The functions of tests/workloads/shares.c have their shares, as near as the number of samples
# allows, and nothing of it is nameless.
has_shares() {
	local samples
	samples=$("$INSPECT" report --json --all "$tmp/data" |
		jq '[.functions[] | select(.kind != "kernel").self_samples] | add // 0')
	near "$(self burn_sixty)" 60 "$(chance 60 "$samples")" "$1: burn_sixty"
	near "$(self burn_thirty)" 30 "$(chance 30 "$samples")" "$1: burn_thirty"
	is "$(functions | grep -c "^\[$2+")" 0 "$1: no address without a name"
}

# --- layouts ---
layout() {
	local name=$1
	shift
	if ! "$@" -O2 -fno-omit-frame-pointer -pthread -D_GNU_SOURCE -o "$tmp/prog" tests/workloads/shares.c \
		2>"$tmp/err"; then
		skip "$name: cannot be built here" 3
		return
	fi
	record -F 999 -- "$tmp/prog" 0.5 >/dev/null
	has_shares "$name" prog
}
layout 'static-pie' "$CC" -static-pie
layout 'a first segment at an address of its own' "$CC" -no-pie -Wl,-Ttext-segment=0x7000000
layout "lld's layout" clang -fuse-ld=lld
layout "lld's layout, several executable segments" clang -fuse-ld=lld -no-pie -Wl,-z,separate-loadable-segments \
	-Wl,--section-start=.init=0x300000 -Wl,--image-base=0x200000
layout "gold's layout" "$CC" -fuse-ld=gold

# --- hundreds of MB, most of which nobody asks for ---
"$CC" -O2 -g -fno-omit-frame-pointer -pthread -D_GNU_SOURCE -o "$tmp/prog" tests/workloads/shares.c
truncate -s 300M "$tmp/padding"
objcopy --add-section .padding="$tmp/padding" "$tmp/prog" && rm "$tmp/padding"
ok '[ "$(stat -c %s "$tmp/prog")" -gt 300000000 ]' 'a file of 300 MB'
record -F 999 -- "$tmp/prog" 0.5 >/dev/null
has_shares 'a file of 300 MB' prog

# --- more files than descriptors ---
echo 'int main(void) { for (volatile int i = 0; i < 8000000; i++); return 0; }' >"$tmp/brief.c"
"$CC" -O1 -g -fno-omit-frame-pointer -o "$tmp/brief" "$tmp/brief.c"
id=$(readelf -n "$tmp/brief" | sed -n 's/.*Build ID: *//p')
python3 - "$tmp" "$id" <<'END'
import os, sys
folder, build_id = sys.argv[1], bytes.fromhex(sys.argv[2])
program = open(folder + "/brief", "rb").read()
assert program.count(build_id) == 1
os.mkdir(folder + "/many")
for i in range(120):
    path = f"{folder}/many/brief{i}"
    open(path, "wb").write(program.replace(build_id, i.to_bytes(4, "big") + build_id[4:]))
    os.chmod(path, 0o755)
END
# named FILE: how many of them have their function, and how many an address without a name
named() {
	(ulimit -n 64 && "$INSPECT" report --json --all --sort dso,symbol "$1") | jq -r '
		[.functions[] | select(.module | startswith("brief"))] |
		"\([.[] | select(.function == "main")] | length) \([.[] | select(.function | startswith("["))] | length)"'
}
(
	ulimit -n 64
	"$INSPECT" record -q -F 999 -o "$tmp/data" -- sh -c 'for f in "$0"/many/*; do "$f"; done' "$tmp"
)
read -r with without < <(named "$tmp/data")
ok "[ '$with' -ge 110 ] && [ '$without' = 0 ]" "120 files, 64 descriptors: named ($with, $without not)"
if perf record -q -F 999 -g -o "$tmp/perf.data" -- sh -c 'for f in "$0"/many/*; do "$f"; done' "$tmp" >/dev/null 2>&1; then
	read -r with without < <(named "$tmp/perf.data")
	ok "[ '$with' -ge 110 ] && [ '$without' = 0 ]" "the same of perf's recording ($with, $without not)"
else
	skip 'perf record does not work here'
fi

# --- stripped: what remains is an address that addr2line takes ---
"$CC" -O2 -g -fno-omit-frame-pointer -pthread -D_GNU_SOURCE -o "$tmp/whole" tests/workloads/shares.c
strip -o "$tmp/prog" "$tmp/whole"
record -F 999 -- "$tmp/prog" 0.5 >/dev/null
address=$(functions | sed -n 's/^\[prog+\(0x[0-9a-f]*\)\] prog$/\1/p' | head -1)
like "$(addr2line -fe "$tmp/whole" "$address" | head -1)" '^burn_' 'stripped: the address is one for addr2line'

# --- three functions in one: what addr2line says of each leaf, sample by sample ---
cat >"$tmp/inlined.c" <<'END'
#include <time.h>
static inline __attribute__((always_inline)) void innermost(long n)
{
	for (; n; n--)
		__asm__ volatile("");
}
static inline __attribute__((always_inline)) void in_between(long n)
{
	innermost(n);
	__asm__ volatile("");
	innermost(2 * n);
}
__attribute__((noinline)) void outermost(long n)
{
	in_between(n);
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
}
int main(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 3;
	while (clock() < end)
		outermost(100000);
	return 0;
}
END
"$CC" -g -O2 -fno-omit-frame-pointer -no-pie -o "$tmp/inlined" "$tmp/inlined.c"
record -c 1000000 -- "$tmp/inlined"
like "$("$INSPECT" flame --folded "$tmp/data")" \
	'main;outermost;in_between_\[i\];innermost_\[i\] [0-9]+' 'inlined: three functions where addr2line has three'
unlike "$("$INSPECT" flame --folded --no-inline "$tmp/data")" 'innermost' '--no-inline: one'
# perf 6.1 prints offsets in the file for a chain.
perf script --no-inline -F ip,sym,dso -i "$tmp/data" 2>/dev/null | awk -v file="($tmp/inlined)" '
	NF == 0 { leaf = 0 } NF && !leaf++ && $2 == "outermost" && $NF == file { print $1 }' |
	while read -r off; do printf '0x%x\n' $((0x$off + 0x400000)); done >"$tmp/leaves"
if [ -s "$tmp/leaves" ]; then
	addr2line -afie "$tmp/inlined" <"$tmp/leaves" | awk '
		function flush() { if (chain) count[chain]++; chain = "" }
		/^0x/ { flush(); n = 0; next }
		n++ % 2 == 0 { chain = $1 (chain ? ";" chain : "") }
		END { flush(); for (chain in count) print chain, count[chain] }' | sort >"$tmp/theirs"
	# The same parts of our stacks: from the last function that is not inlined
	"$INSPECT" flame --folded "$tmp/data" | awk '!/_\[k\]/ {
		stack = $0; sub(/ [0-9]+$/, "", stack)
		n = split(stack, frame, ";"); from = n
		while (frame[from] ~ /_\[i\]$/) from--
		if (frame[from] != "outermost") next
		chain = frame[from]
		for (i = from + 1; i <= n; i++) { sub(/_\[i\]$/, "", frame[i]); chain = chain ";" frame[i] }
		count[chain] += $NF / 1000000 } END { for (chain in count) print chain, count[chain] }' | sort >"$tmp/ours"
	is "$(cat "$tmp/ours")" "$(cat "$tmp/theirs")" 'inlined: every sample as addr2line has it'
else
	skip 'perf script does not work here'
fi
