#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Kernel names: BPF programs that come and go, and never this kernel's for another one's addresses.
. "$(dirname "$0")/lib.sh"
functions() {
	"$INSPECT" report --json --all "$1" | jq -r '.functions[] | "\(.function) \(.module)"'
}
notes() {
	"$INSPECT" report --json "$1" | jq -r '.notes[]'
}

# --- two BPF programs, one after the other; the kernel likes to reuse the address ---
"$INSPECT" record -q -F 999 -o "$tmp/bpf.data" -- "$W/bpf_spin" 0.8 spin_one spin_two >"$tmp/truth" 2>/dev/null
if [ $? = 77 ]; then
	skip 'BPF programs cannot be loaded here' 3
else
	"$INSPECT" report --json --all "$tmp/bpf.data" >"$tmp/json"
	self() {
		jq --arg name "$1" '[.functions[] | select(.module == "[bpf]" and (.function |
			test("^bpf_prog_[0-9a-f]{16}_" + $name + "$"))).self_percent] | add // 0' "$tmp/json"
	}
	one=$(self spin_one)
	ok '[ "${one%.*}" -ge 15 ]' 'a BPF program that is gone has its name'
	want=$(awk -v one="$one" '{ ns[$1] = $2 } END { print one * ns["spin_two"] / ns["spin_one"] }' "$tmp/truth")
	near "$(self spin_two)" "$want" 9 'and so has the next one, perhaps at its address'
	is "$(functions "$tmp/bpf.data" | grep -c '\[kernel\] 0x')" 0 'no kernel address without a name'
fi

# --- perf's recording, without names inside, moved to another host or another boot ---
if ! perf record -q -e cpu-clock -F 999 -g -o "$tmp/here" -- dd if=/dev/zero of=/dev/null bs=1M count=6000 \
	>/dev/null 2>&1 || ! grep -q '^[0-9a-f]*[1-9a-f][0-9a-f]* T _stext$' /proc/kallsyms; then
	skip 'perf record or kallsyms not usable here' 8
	exit 0
fi
python3 - "$tmp" <<'END'
import socket, struct, sys

folder = sys.argv[1] + "/"
data = bytearray(open(folder + "here", "rb").read())
name = socket.gethostname().encode()
at = data.rindex(name + b"\0")
other_host = data[:]
other_host[at] ^= 1
open(folder + "host", "wb").write(other_host)
# The kernel's own mapping: start, length, offset and name in an MMAP record
at = data.index(b"[kernel.kallsyms]_")
other_boot = data[:]
start, length, offset = struct.unpack_from("<QQQ", data, at - 24)
struct.pack_into("<QQQ", other_boot, at - 24, start + (16 << 20), length, offset + (16 << 20))
open(folder + "boot", "wb").write(other_boot)
END
known=$(functions "$tmp/here" | grep -c ' \[kernel\]$')
ok '[ "$known" -ge 3 ]' 'here: kernel functions have names'
is "$(functions "$tmp/here" | grep -c '^\[kernel\] 0x')" 0 'here: all of them'
for file in host boot; do
	is "$(functions "$tmp/$file" | grep '\[kernel\]$' | grep -vc '^\[kernel\] 0x')" 0 \
		"another $file: no kernel function has a name"
	ok '[ "$(functions "$tmp/$file" | grep -c "^\[kernel\] 0x")" -ge 3 ]' \
		"another $file: their addresses are shown"
done
like "$(notes "$tmp/boot")" 'another boot of this host' 'another boot: said in a note'
# What is in files is named all the same.
like "$(functions "$tmp/host")" 'libc.so.6' 'another host: user code is not affected'
