#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Names of 10,000 random addresses of large files are those of addr2line -fi and nm.
. "$(dirname "$0")/../cmd/lib.sh"
names=$PWD/tests/slow/names.py
export PERFDATA=$PWD/tests/cmd/perfdata.py
unset DEBUGINFOD_URLS
cd "$tmp" || exit 1

# same FILE NAME [DEBUG]
same() {
	local different equal
	if [ ! -r "$1" ]; then
		skip "$2: not on this machine"
		return
	fi
	read -r different equal < <(python3 "$names" "$(readlink -f "$1")" ${3:+"$3"})
	ok "[ '$different' = 0 ] && [ '$equal' -gt 100 ]" "$2: all names, $equal of them exactly"
}

libc=$(cc -print-file-name=libc.so.6)
id=$(readelf -n "$libc" | sed -n 's/.*Build ID: *//p')
debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
[ -r "$debug" ] || debug=
same "$libc" libc "$debug"
same "$(c++ -print-file-name=libstdc++.so.6)" libstdc++
# python3 itself, or the library that it is a small program in front of.
python=$(python3 -c 'import sys; print(sys.executable)')
library=$(ldd "$python" | awk '/libpython/ { print $3 }')
same "${library:-$python}" python3
same "$(command -v clang || echo /none)" clang
same "$(find /usr/lib/llvm-*/lib -name 'libLLVM-*.so.1' 2>/dev/null | head -1)" libLLVM
# Lambdas and local types with code of their own, below abstract functions.
cat >regex.cc <<'END'
#include <cstdio>
#include <regex>
#include <string>
static inline long wrapper(const std::string &s)
{
	struct local {
		static __attribute__((noinline)) long go(const std::string &s) { return s.find("12") + s.size(); }
	};
	return local::go(s);
}
int main(int argc, char **argv)
{
	std::regex e("(a+|b)*c[0-9]{2,3}[[:alpha:]]", std::regex::icase);
	auto found = [&e](const std::string &s) __attribute__((noinline)) { return std::regex_search(s, e); };
	long n = 0;
	for (int i = 0; i < 100; i++)
		n += found(argv[0] + std::to_string(i)) + wrapper(argv[argc - 1]);
	printf("%ld\n", n);
}
END
c++ -std=c++17 -O2 -g -o regex regex.cc
same regex 'a program with std::regex'
python3 "$PERFDATA" --random 20000 regex | python3 "$PERFDATA" regex.data "$tmp/regex"
strace -f -o calls -e trace=execve,fork,vfork,clone,clone3 "$INSPECT" report --json --all regex.data >regex.json
is "$(grep -c '(' calls)" 1 '20,000 addresses: no child process'
is "$(jq '[.functions[].self_samples] | add' regex.json)" 20000 '20,000 addresses: all of them'
ok "jq -e '[.functions[] | select(.kind == \"inlined\").function] | length > 100' regex.json >/dev/null" \
	'20,000 addresses: inlined functions'

# --- a debuginfod server that never answers ---
printf 'int f(int x) { return x * 3; }\nint main(void) { return f(1); }\n' >q.c
cc -O1 -o q q.c && strip -o stripped q
python3 -c 'import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(5)
print(s.getsockname()[1], file=open("port", "w"), flush=True); time.sleep(60)' &
server=$!
while [ ! -s port ]; do sleep 0.05; done
nm q | awk '$3 == "f" { print $1 }' | python3 "$PERFDATA" q.data "$tmp/stripped"
notes=$(DEBUGINFOD_CACHE_PATH=$tmp/cache DEBUGINFOD_URLS=http://127.0.0.1:$(cat port) \
	timeout 30 "$INSPECT" report --json q.data | jq -r '.notes[]')
kill $server
if [[ $notes = *'libdebuginfod.so.1 is not installed'* ]]; then
	skip 'no libdebuginfod here'
else
	like "$notes" 'debuginfod: asked for 1 debug file, found 0, in 1[0-9]\.[0-9] s; given up' \
		'a server that never answers is given up'
fi
