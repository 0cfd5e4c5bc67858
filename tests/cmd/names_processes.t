#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Processes that are hard to name: gone, in other namespaces, libraries that go, moved code.
. "$(dirname "$0")/lib.sh"
CC=${CC:-cc}
record() {
	"$INSPECT" record -q -F 999 -o "$tmp/data" "$@"
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

# --- 500 short processes, all gone, and their program too ---
cp "$W/forker" "$tmp/forker"
record -- "$tmp/forker" 500 2 exec >"$tmp/truth"
rm "$tmp/forker"
# The first entry of a PLT, and what lies between functions of the vdso, has no name in any table.
nameless=$("$INSPECT" report --json --all "$tmp/data" |
	jq '[.functions[] | select(.function | test("^\\[.*\\+0x")).self_percent] | add // 0')
near "$nameless" 0 0.5 '500 short processes, gone: their addresses have names'
ok '[ "$(self burn_child | cut -d. -f1)" -ge 20 ]' '500 short processes, gone: their function has its name'
pids=$("$INSPECT" report --json --all --sort pid "$tmp/data" | jq '.functions | length')
ok '[ "$pids" -ge 400 ]' "500 short processes: $pids have samples of their own"
# A recording without names inside: their program is read once for all of them.
if perf record -q -F 999 -g -o "$tmp/perf.data" -- "$W/forker" 200 2 exec >/dev/null 2>&1; then
	strace -f -e trace=open,openat -o "$tmp/opened" "$INSPECT" report "$tmp/perf.data" >/dev/null
	is "$(grep -c '/forker"' "$tmp/opened")" 1 '200 short processes: their program is opened once'
	is "$(grep -c 'exited with' "$tmp/opened")" 1 'no child process'
else
	skip 'perf record does not work here' 2
fi
# A fork runs on with its parent's mappings.
record -- "$W/forker" 20 15 >"$tmp/truth"
ok '[ "$(self burn_child | cut -d. -f1)" -ge 80 ]' 'forks without exec: named'

# --- a path that is another file in the host's mount namespace ---
mkdir "$tmp/place" "$tmp/real"
cp "$W/exits" "$tmp/place/prog"
cp "$W/shares" "$tmp/real/prog"
if unshare -m mount --bind "$tmp/real" "$tmp/place" 2>/dev/null; then
	record -- unshare -m sh -c "mount --bind '$tmp/real' '$tmp/place' && exec '$tmp/place/prog' 0.5" >/dev/null
	has_shares 'a path that is another file on the host' prog
	is "$(functions | grep -c burn_until)" 0 'a path that is another file on the host: nothing of that one'
else
	skip 'no mount namespaces here' 4
fi

# --- a library's address that is another's later ---
build_library() {
	printf 'void %s(long n) { for (; n; n--) __asm__ volatile(""); }\n' "$1" >"$tmp/$1.c"
	"$CC" -O2 -shared -fPIC -o "$tmp/lib$1.so" "$tmp/$1.c"
}
build_library used_first && build_library used_then
cat >"$tmp/reuse.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
static void *run(const char *file, const char *name)
{
	void *library = dlopen(file, RTLD_NOW), *at = dlsym(library, name);
	clock_t end = clock() + CLOCKS_PER_SEC / 4;
	while (clock() < end)
		((void (*)(long))at)(100000);
	dlclose(library);
	return at;
}
int main(int argc, char **argv)
{
	void *a = run(argv[1], "used_first"), *b = run(argv[2], "used_then");
	puts(a == b ? "same" : "other");
	return 0;
}
END
"$CC" -O1 -fno-omit-frame-pointer -o "$tmp/reuse" "$tmp/reuse.c" -ldl 2>"$tmp/err"
record -- "$tmp/reuse" "$tmp/libused_first.so" "$tmp/libused_then.so" >"$tmp/out"
is "$(cat "$tmp/out")" same 'dlclose: the next library is at the same address'
near "$(self used_first)" 50 15 'dlclose: the first library keeps its name'
near "$(self used_then)" 50 15 'dlclose: and the next has its own'

# --- code moved to anonymous memory, to have it in huge pages ---
for how in mremap mmap; do
	record -- "$W/hugetext" 0.3 $how >/dev/null
	ok '[ "$(self burn_remapped | cut -d. -f1)" -ge 80 ]' "moved by $how: still the program's"
	"$W/hugetext" 5 $how >/dev/null &
	pid=$!
	sleep 0.2
	record -d 0.3 -p $pid
	kill $pid
	wait $pid 2>/dev/null
	ok '[ "$(self burn_remapped | cut -d. -f1)" -ge 80 ]' "moved by $how before the recording: still the program's"
done
