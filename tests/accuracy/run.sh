#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# make accuracy [SAMPLES=10000]: how many stacks unwound in the kernel agree, frame by frame, with
# libdwfl on a copy of the same stack. Prints a table, and ends with 1 when it is less than 99.5 %.
set -eu
cd "$(dirname "$0")/../.."
O=$(cd "${O:-build}" && pwd)
each=$((${SAMPLES:-10000} / 6 + 1))
tmp=$(mktemp -d "${TMPDIR:-/tmp}/inspect-accuracy.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/server.cc" <<'END'
#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>
#include <sstream>
static size_t answer(unsigned request) {
	std::map<std::string, std::vector<std::string>> headers;
	std::ostringstream out;
	for (unsigned i = 0; i < 40; i++)
		headers["header-" + std::to_string((request * 31 + i * 17) % 97)].push_back(std::to_string(i));
	for (auto &h : headers) {
		std::sort(h.second.begin(), h.second.end());
		try {
			if (h.second.size() > 3)
				throw std::to_string(h.second.size());
			out << h.first << ": " << h.second.front() << "\n";
		} catch (const std::string &s) { out << s; }
	}
	return out.str().size();
}
int main() {
	std::vector<std::thread> threads;
	for (int t = 0; t < 2; t++)
		threads.emplace_back([] { for (unsigned i = 0; i < 400000; i++) if (!answer(i)) break; });
	for (auto &t : threads) t.join();
}
END
c++ -O2 -g -fomit-frame-pointer -pthread "$tmp/server.cc" -o "$tmp/server"
cat >"$tmp/loop.py" <<'END'
import json, re
for i in range(100000):
    re.sub("a(b|c)*d", lambda m: str(sorted(range(300), key=lambda v: -v)[0]), "abcbcbcd" * 9)
    json.loads(json.dumps({str(n): [n, {"a": n}] for n in range(200)}))
END
python=$(python3 -c 'import sys; print(sys.executable)')
cp "$tmp/server.cc" "$tmp/compiled.cc"

while IFS='|' read -r name command; do
	# Once for the rows: what is measured is unwinding, not the first moments of a program.
	"$O/accuracy" 100 "$command" >/dev/null 2>&1 </dev/null || true
	"$O/accuracy" $each "$command" 2>"$tmp/err" </dev/null | sed "s/^/$name /" || cat "$tmp/err" >&2
	[ -z "${V-}" ] || cat "$tmp/err" >&2
done <<END | awk '
	BEGIN { print "| program | samples | equal | longer than libdwfl | different | of these |"
		print "|---|---|---|---|---|---|" }
	function line(name, n, equal, longer, differ, why) {
		printf "| %s | %d | %.2f %% | %.2f %% | %.2f %% | %s |\n", name, n, 100 * equal / n,
			100 * longer / n, 100 * differ / n, why }
	$2 > 0 { why = ""; for (i = 6; i <= NF; i++) why = why (i > 6 ? " " : "") $i
		line($1, $2, $3, $4, $5, why); n += $2; equal += $3; longer += $4; differ += $5 }
	END { if (!n) exit 1
		line("**all**", n, equal, longer, differ, ""); exit equal + longer < 0.995 * n }'
libc|exec $O/workloads/shares_bare 30 2
libstdc++|exec $tmp/server
python3|exec $python $tmp/loop.py
openssl|exec openssl speed -seconds 10 rsa2048 ecdsap256 sha256
exceptions|exec $O/workloads/uw_exceptions 20000
compiler|i=0; while [ \$i -lt 30 ]; do g++ -O2 -c $tmp/compiled.cc -o $tmp/compiled.o; i=\$((i + 1)); done
END
