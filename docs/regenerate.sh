#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Puts the output of this build into README.md, between its `output:` marks, and draws its picture.
# `make docs` runs it. As root on a machine where perf_event_open works.
set -eu
cd "$(dirname "$0")/.."
O=$(cd "${O:-build}" && pwd)
readme=$PWD/README.md
images=$PWD/docs/images
tmp=$(mktemp -d "${TMPDIR:-/tmp}/inspect-docs.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
export PATH=$tmp/bin:$PATH LC_ALL=C.UTF-8 COLUMNS=96
unset NO_COLOR CLICOLOR_FORCE
mkdir "$tmp/bin"
cp "$O/inspect" "$tmp/bin"
chmod 755 "$tmp" "$tmp/bin"
cp "$O/workloads/shares" "$O/workloads/slow" "$O/workloads/locks" "$O/workloads/waits" "$tmp"
cd "$tmp"

# shown NAME COMMAND…: the command as typed, and what it prints, without the name of this host.
shown() {
	local name=$1
	shift
	{
		echo "\$ $*"
		bash -c "$*" 2>&1 || true
	} | sed -E "s|$tmp/bin/||; s|$tmp/|/tmp/|g; s/^(# host: ).*, Linux ([0-9.]+)\S* /\1server, Linux \2 /
		s/^(# host: )\S+ · /\1server · /" >"$name.txt"
}

# only NAME REGEX REGEX N …: of the shown output, the lines that begin at each regex, N of them, or up
# to the next empty line (the first regex, and one without N); … stands for what is left out.
only() {
	python3 - "$@" <<'END_PYTHON'
import pathlib, re, sys

page = pathlib.Path(sys.argv[1] + ".txt")
first, *lines = page.read_text(encoding="utf-8").splitlines()
kept, rest = [re.sub(r" 2?>/dev/null$", "", first)], sys.argv[2:]
wanted = [(rest[0], sys.maxsize)] + [(rest[i], int(rest[i + 1])) for i in range(1, len(rest) - 1, 2)]
after = -1
for regex, most in wanted:
    at = next((i for i, line in enumerate(lines) if re.search(regex, line)), None)
    if at is None:
        sys.exit(f"{page.stem}: no line has {regex}")
    if at > after + 1 or after < 0 < at:
        kept.append("…")
    after = at
    while after < len(lines) and lines[after] and after - at < most:
        kept.append(lines[after])
        after += 1
    after -= 1
if after + 1 < len(lines):
    kept.append("…")
page.write_text("\n".join(kept) + "\n", encoding="utf-8")
END_PYTHON
}

shown record 'inspect record -F 999 -o before.data -- ./shares 3 >/dev/null'
shown report 'inspect report before.data --top 4'
only report '^# cpu-clock'
shown offcpu 'inspect offcpu -- ./locks 3 3'
sed -i '/^locked /d' offcpu.txt
only offcpu '^ *#  *share'
mkfifo hold
./waits deadlock <hold >ready &
hung=$!
exec 9>hold
until grep -q '^ready' ready; do sleep 0.1; done
sleep 1
shown stack "inspect stack -p $hung"
only stack '^# deadlock' '^  # +who' 4 '^#.* hold_a: ' 3
sed -i "1s/-p [0-9]*/-p \$(pgrep waits)/" stack.txt
exec 9>&-
shown trace 'inspect trace -c -e read,write -- dd if=/dev/zero of=out bs=100 count=100000 2>/dev/null'
only trace '^# calls' '^syscall' 3
./locks 3 8 >/dev/null &
sleep 1
shown use 'inspect use -d 3'
only use '^# host' '^resource' 4
wait
inspect record -q -F 999 -o slow.data -- ./slow >/dev/null
inspect flame --title slow.go -o "$images/flame.svg" slow.data 2>/dev/null

python3 - "$readme" "$tmp" <<'END_PYTHON'
import pathlib, re, sys

page, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def fill(match):
    text = (folder / f"{match[1]}.txt").read_text(encoding="utf-8").rstrip()
    return f"<!-- output: {match[1]} -->\n```\n{text}\n```\n<!-- end -->"


page.write_text(re.sub(r"<!-- output: (\w+) -->\n.*?<!-- end -->", fill, page.read_text("utf-8"),
                       flags=re.S), "utf-8")
END_PYTHON
echo "wrote README.md and docs/images/flame.svg ($(stat -c %s "$images/flame.svg") bytes)"
