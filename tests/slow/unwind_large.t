#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Large programs: how long the rows of Chromium and libLLVM take to make, their size, and whether the
# stacks of a headless Chromium and of clang are complete. The figures are printed for docs/performance.md.
. "$(dirname "$0")/../cmd/lib.sh"
ok '[ -x "$O/tables" ]' 'tests/accuracy/tables.c is built'
chromium=/usr/lib/chromium/chromium
llvm=$(ldconfig -p | awk '/libLLVM-[0-9]+\.so/ { print $NF }' | sort -V | tail -1)

# tables FILE: by the tool's own clock of CPU time, so that other load on the machine counts little
tables() {
	local rows rules cpu_ns bytes million
	if [ ! -r "$1" ]; then
		skip "no ${1:-libLLVM} here" 2
		return
	fi
	read -r _ rows rules cpu_ns bytes < <("$O/tables" "$1")
	million=$(awk "BEGIN { printf \"%.2f\", $cpu_ns / 1e3 / $rows }")
	ok "awk 'BEGIN { exit !($rows > 10000 && $million <= 1) }'" \
		"${1##*/}: at most 1 s for a million rows ($rows rows, $rules rules, $((cpu_ns / 1000000)) ms, $million s a million)"
	# Rules are shared by all files; one that has few rows has its own beside them here.
	ok "[ $((bytes - rules * 24)) -le $((rows * 8)) ] && [ $bytes -le $((rows * 83 / 10)) ]" \
		"${1##*/}: 8 bytes a row ($(awk "BEGIN { printf \"%.2f\", $bytes / $rows }") with all rules)"
}

# whole FILE LEAST WHAT: at least 97 % of LEAST samples or more are complete
whole() {
	local samples cut deep
	"$INSPECT" report --json --all "$1" >"$tmp/report.json" 2>"$tmp/err"
	read -r samples cut deep < <(jq -r '"\(.samples) \(.truncated) \(
		[.truncated_by_reason[] | select(.reason | startswith("deeper")).samples] | add // 0)"' "$tmp/report.json")
	ok "[ $samples -ge $2 ] && [ $((cut * 100)) -le $((samples * 3)) ]" \
		"$3: complete stacks (all but $cut of $samples, $deep of them deeper than 127 frames)" ||
		jq -c .truncated_by_reason "$tmp/report.json" >&2
}

tables $chromium
tables "$llvm"
[ "$(id -u)" = 0 ] || {
	skip 'BPF needs root' 2
	exit 0
}
cat >"$tmp/page.html" <<'END'
<!DOCTYPE html><body><div id="d"></div><script>
const end = performance.now() + 6000, d = document.getElementById("d");
let n = 0;
function build(depth) {
	return depth ? `<p>${depth}<b>${build(depth - 1)}</b></p>` : "leaf";
}
while (performance.now() < end) {
	d.innerHTML = build(20).repeat(20);
	d.style.width = 100 + n % 500 + "px";
	n += d.offsetHeight;
	n += JSON.parse(JSON.stringify([...Array(500).keys()].map(i => ({i, s: "x" + i})))).sort((a, b) => b.i - a.i).length;
}
document.title = n;
</script></body>
END
if command -v chromium >/dev/null; then
	HOME=$tmp timeout 120 "$INSPECT" record -q -F 499 -o "$tmp/chromium.data" -- \
		chromium --headless --no-sandbox --disable-gpu --dump-dom "file://$tmp/page.html" >"$tmp/dom" 2>"$tmp/err"
	whole "$tmp/chromium.data" 1000 'headless Chromium'
else
	skip 'no chromium here'
fi
for i in 1 2 3 4; do
	cat <<-END
		#include <algorithm>
		#include <map>
		#include <regex>
		#include <sstream>
		int part$i(const std::string &s) {
			std::map<std::string, std::vector<int>> m;
			for (auto c : s) m[std::string(3, c)].push_back(c);
			std::ostringstream out;
			for (auto &e : m) { std::sort(e.second.begin(), e.second.end()); out << e.first; }
			return std::regex_match(out.str(), std::regex("(a|b)*c{2,3}d"));
		}
	END
done >"$tmp/large.cc"
if command -v clang++ >/dev/null; then
	"$INSPECT" record -q -F 499 -o "$tmp/clang.data" -- clang++ -O2 -c "$tmp/large.cc" -o "$tmp/large.o" 2>"$tmp/err"
	whole "$tmp/clang.data" 500 'clang -O2'
else
	skip 'no clang++ here'
fi
