#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# inspect trace -c beside strace -c -f on a Node program: threads, a child, and calls whose number is
# known. Those of futex, epoll and memory are others in each run, under strace too.
. "$(dirname "$0")/../cmd/lib.sh"
[ "$(id -u)" = 0 ] || skip_all 'BPF needs root'
[ -n "$(type -P node)" ] || skip_all 'node is not installed'
cd "$tmp" || exit 1

cat >calls.js <<'END'
const fs = require('fs'), child = require('child_process');
const fd = fs.openSync(process.argv[2], 'w');
for (let i = 0; i < 300; i++) fs.writeSync(fd, 'x'.repeat(i), i);
for (let i = 0; i < 200; i++) fs.fsyncSync(fd);
for (let i = 0; i < 100; i++) try { fs.readlinkSync('/no/such/' + i); } catch (e) {}
child.execFileSync('/bin/true');
END
same_each_time='access|clone|clone3|close|dup2|execve|fcntl|fsync|fstat|getcwd|getpid|getuid|newfstatat|openat|pipe2'
same_each_time+='|prlimit64|pwrite64|readlink|rseq|rt_sigaction|set_robust_list|shutdown|socketpair|statx|wait4'

# It looks at what its standard streams are.
strace -f -c -o s.txt node calls.js file </dev/null >/dev/null 2>&1
"$INSPECT" trace -c --json -- node calls.js file </dev/null >t.json 2>/dev/null
awk '$1 ~ /^[0-9.]+$/ && NF >= 5 && $NF != "total" { print $NF, $4, NF == 6 ? $5 : 0 }' s.txt |
	grep -E "^($same_each_time) " | sort >want
jq -r '.rows[] | select(.calls > 0) | "\(.syscall) \(.calls) \(.errors)"' t.json |
	grep -E "^($same_each_time) " | sort >got
is "$(cat got)" "$(cat want)" 'a Node program: calls and errors are those of strace -f -c'
is "$(grep -cE '^(fsync 200 0|pwrite64 300 0|readlink 10[0-9] 100|execve 2 0)$' got)" 4 '… and those that it says it makes'
is "$(jq -c '[.losses[]] | add' t.json)" 0 '… and nothing is lost'
