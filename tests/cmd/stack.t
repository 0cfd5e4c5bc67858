#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Threads that wait in known ways: state, call, object, holder and functions of each, against what the
# program says of itself, /proc, and eu-stack; and that none of it stops or traces anything.
. "$(dirname "$0")/lib.sh"

. tests/cmd/stack_lib.sh

before=$(date +%s%N)
start all deadlock recv sleep spin vfork fault int80 pi rwlock pool=20
ready=$(date +%s%N)
sleep 0.5
asked=$(date +%s%N)
exits 0 'a process of many kinds of threads' "$INSPECT" stack -p "$pid" --json
answered=$(date +%s%N)
mv "$tmp/out" "$tmp/json"
is "$(python3 tests/cmd/schema.py docs/json/stack.schema.json "$tmp/json" 2>&1)" '' 'fits the schema'
is "$(query '[.threads[].tid] | sort | join(" ")')" "$(echo $(ls "/proc/$pid/task" | sort -n))" \
	'every thread, as /proc lists them'
is "$(query .read_by)" 'BPF iterator' 'read in the kernel'

# --- each by its own words ---
while read -r name tid state call; do
	[ "$name" != ready ] || continue
	is "$(query --argjson tid "$tid" '.threads[] | select(.tid == $tid) |
		"\(.comm) \(.state) \(.syscall // "-" | split(" ")[0])"')" "$name $state $call" "$name: state and call"
done <"$tmp/all"
like "$(functions "$(tid_of hold_a)")" 'pthread_mutex_lock take_second hold_a start_thread clone' \
	'the stack of a thread that waits for a mutex'
like "$(functions "$(tid_of recv)")" 'recv.* wait_for_bytes receive start_thread clone' 'of one in recv'
like "$(functions "$(tid_of sleep)")" 'sleep sleep_long sleeper start_thread clone' 'of one asleep'
like "$(functions "$(tid_of vfork)")" 'vfork vfork_and_wait vforker start_thread clone' \
	'of one in D, which waits for the child of its vfork'
is "$(functions "$(tid_of spin)")" "$(functions "$(tid_of spin)" | sed 's/.*spin_forever/spin_forever/')" \
	'of one that runs: begins in the loop'
like "$(functions "$(tid_of spin)")" '^spin_forever spinner start_thread clone' '… and is whole'
like "$(functions "$(tid_of fault)")" '^touch_page faulter start_thread clone' \
	'of one that waits for a page: begins where it touched it'
is "$(query --argjson tid "$(tid_of fault)" '.threads[] | select(.tid == $tid).wait')" 'page fault' \
	'… and is in a page fault'
case $(uname -m) in
x86_64) call='pause (i386)' ;;
*) call=pause ;;
esac
is "$(query --argjson tid "$(tid_of int80)" '.threads[] | select(.tid == $tid).syscall')" "$call" \
	'int $0x80: the numbers of i386'
is "$(query '[.threads[] | select(.stack == "moved" or .stack == "none")] | length')" 0 \
	'no stack is doubtful'
like "$(functions "$pid")" 'read main .*_start$' 'the main thread'

# --- locks ---
a=$(tid_of hold_a) b=$(tid_of hold_b)
is "$(query '.threads[] | select(.deadlock) | "\(.tid) \(.object) \(.holder_tid)"' | sort -k2)" \
	"$b lock_a $a
$a lock_b $b" 'the deadlock: locks by their names, and who holds them'
is "$(query .deadlocks)" 1 '… is one'
for name in want_pi want_robust; do
	is "$(query --argjson tid "$(tid_of $name)" '.threads[] | select(.tid == $tid).holder_tid')" \
		"$(tid_of hold_both)" "$name: the holder of such a mutex"
done
is "$(query --argjson tid "$(tid_of want_read)" '.threads[] | select(.tid == $tid).holder_tid')" \
	"$(tid_of hold_rw)" 'a rwlock that is held for writing: by whom'
is "$(query --argjson tid "$(tid_of want_write)" '.threads[] | select(.tid == $tid) |
	"\(.holder_tid) \(.holding_readers)"')" 'null 1' '… for reading: by how many'
like "$(query --argjson tid "$(tid_of recv)" '.threads[] | select(.tid == $tid).object')" \
	'^(socket:|unix)' 'what recv waits on'

like "$(query --argjson tid "$(tid_of recv)" '.threads[] | select(.tid == $tid).peer')" \
	"^$pid waits \(fd 4\)" '… and who has the other end'

# --- groups and times ---
is "$(query '[.threads[] | select(.comm == "waits" and .tid != '"$pid"').group] | unique | length')" 1 \
	'threads at the same place are one group'
is "$(query '.threads | group_by(.group) | map(length) | max')" 20 '… of all of them'
is "$(query '.threads[-1].comm + " " + .threads[0].comm[0:4]')" 'waits hold' \
	'deadlocks come first, the largest group last'
since=$(query --argjson tid "$(tid_of sleep)" '.threads[] | select(.tid == $tid).since_ns')
ok '[ $((asked - ready - 20000000)) -le "$since" ] && [ "$since" -le $((answered - before + 20000000)) ]' \
	"since when it sleeps: $((since / 1000000)) ms"

# --- text ---
"$INSPECT" stack -p "$pid" >"$tmp/text"
is "$(sed -n '3,5p' "$tmp/text")" "# deadlock: 2 threads wait for each other
#   $a hold_a waits for lock_b, held by $b hold_b
#   $b hold_b waits for lock_a, held by $a hold_a" 'the text begins with the deadlock'
like "$(cat "$tmp/text")" "20 threads: waits for .* threads .* and 12 more \(--all\)" 'tells a group once'
is "$("$INSPECT" stack -p "$pid" --all | sed -n '/^#[0-9]* 20 threads/,/^$/p' | grep -oE '[0-9]+ waits' | wc -l)" \
	20 '--all names its threads'
# Number, who, state, how long, call, object and holder of the groups, as a table.
row='^ {1,2}[0-9]+  '
like "$(sed -n 7,8p "$tmp/text")" '^  # +who +state +for +in' 'then a table of the groups'
like "$(grep -E "$row.*lock_b" "$tmp/text")" "$a hold_a +waits +[0-9.]+ m?s +futex lock_b, held by $b hold_b\$" '… with what each waits for'
like "$(grep -E "$row.*20 threads" "$tmp/text")" '20 threads +waits .* +futex pool_work' '… a row for a group'
is "$(grep -cE "$row" "$tmp/text")" "$(grep -cE '^#[0-9]+ ' "$tmp/text")" '… as many as have stacks below'
of_a=$("$INSPECT" stack -p "$pid" --max-stack 2 | sed -n "/^#.* hold_a: waits/,/^\$/p")
is "$(grep -cE '^    [^ ].*:[0-9]+' <<<"$of_a") $(grep -cE '^    … [0-9]+ more: --all$' <<<"$of_a")" '2 1' \
	'--max-stack 2: two frames, and how many more there are'
COLUMNS=80 "$INSPECT" stack -p "$pid" >"$tmp/text"
ok '[ "$(wc -L <"$tmp/text")" -le 80 ]' 'no line of 80 columns is wider'

# --- nothing is stopped, traced or left ---
cat >"$tmp/poll.py" <<'END'
import glob, sys, time
pid, end = sys.argv[1], time.time() + float(sys.argv[2])
seen, looks = set(), 0
while time.time() < end:
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        seen.add(open(path).read().rsplit(")", 1)[1].split()[0])
    traced = [l for l in open(f"/proc/{pid}/status") if l.startswith("TracerPid")][0].split()[1]
    seen |= {"traced"} if traced != "0" else set()
    looks += 1
    time.sleep(0.001)
print("".join(sorted(s for s in seen if s in "TtX" or s == "traced")), looks > 20)
END
python3 "$tmp/poll.py" "$pid" 1.5 >"$tmp/states" &
poller=$!
"$INSPECT" stack -p "$pid" -n 8 -I 100ms >"$tmp/text"
wait $poller
is "$(cat "$tmp/states")" ' True' 'a poller of /proc sees no thread stopped or traced'
is "$(grep -c '^# snapshot' "$tmp/text")" 8 '-n 8 -I 100ms: eight of them'
strace -f -qq -e trace=ptrace,kill,tkill,tgkill,process_vm_writev,pidfd_send_signal -o "$tmp/calls" \
	"$INSPECT" stack -p "$pid" >/dev/null 2>&1
is "$(cat "$tmp/calls")" '' 'no ptrace, no signal, nothing written'

# --- parts ---
"$INSPECT" stack -a --json >"$tmp/json" 2>"$tmp/err"
is "$(query --argjson pid "$pid" '[.threads[] | select(.pid == $pid).tid] | sort | join(" ")')" \
	"$(echo $(ls "/proc/$pid/task" | sort -n))" '-a: these among all threads'
ok '[ "$(query "[.threads[] | select(.pid == 2)] | length")" = 0 ] && [ "$(query .kernel_threads_left_out)" -gt 5 ]' \
	'… without kernel threads that sleep, whose number is told'
is "$("$INSPECT" stack -t "$a,$b" --json | jq -c '[.threads[].tid] | sort')" "[$a,$b]" '-t: these threads'
exec {hold}>&-
wait

# --- what can't be done ---
exits 2 'no target' "$INSPECT" stack
like "$(cat "$tmp/err")" 'fix: inspect stack -p PID' '… says how'
exits 2 'an operand' "$INSPECT" stack 4711
like "$(cat "$tmp/err")" 'fix: inspect stack -p 4711' '… is most likely a process'
exits 125 'no such process' "$INSPECT" stack -p 2147483646
