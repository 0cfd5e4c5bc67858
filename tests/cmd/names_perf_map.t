#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# /tmp/perf-PID.map: the process's own one, found when it is gone, and only of the right owner.
. "$(dirname "$0")/lib.sh"
record() {
	"$INSPECT" record -q -F 999 -o "$tmp/data" "$@"
}
leaves() {
	"$INSPECT" report --json --all "$tmp/data" | jq -r '.functions[] | select(.self_samples > 0).function'
}
notes() {
	"$INSPECT" report --json "$tmp/data" | jq -r '.notes[]'
}

record -- "$W/jitmap" 0.5 >/dev/null
if [ $? = 77 ]; then
	skip_all 'no machine code for this processor in the workload'
fi
pid=$(perf script -F pid -i "$tmp/data" 2>/dev/null | grep -m 1 . | tr -d ' ')
like "$("$INSPECT" flame --folded "$tmp/data")" 'main;call_jit;\[jit\] 0x[0-9a-f]+_\[j\];called_from_jit ' \
	'without a map: the address, and the callers of what it calls'
like "$(notes)" "pid $pid: code made at run time has no names: there is no /tmp/perf-$pid.map" \
	'without a map: said in a note'

# --- pid 1 of a pid namespace, with a /tmp of its own, which both end before the recording ---
cat >"$tmp/inside" <<'END'
mount --bind "$W" /mnt && mount -t tmpfs none /tmp || exit 77
exec /mnt/jitmap 1 jit_spin
END
if unshare -p -f -m true 2>/dev/null; then
	record -- unshare -p -f -m --propagation private sh "$tmp/inside" >"$tmp/truth"
	if [ $? = 77 ]; then
		skip 'no bind mounts here' 2
	else
		like "$(leaves)" 'jit_spin' 'pid 1 of a pid namespace, in a /tmp of its own: named'
		like "$("$INSPECT" flame --folded "$tmp/data")" 'main;call_jit;jit_spin_\[j\];called_from_jit ' \
			'pid 1 of a pid namespace: in its place in the stacks'
	fi
else
	skip 'no namespaces here' 2
fi

map='0 ffffffffffffffff evil'

# --- programs that exec each other have one path, and here their code at one address ---
selves() {
	"$INSPECT" report --json --all "$tmp/data" |
		jq -r '[.functions[] | select(.self_samples > 0 and (.function | startswith("jit_") or startswith("[jit]"))).function | sub(" 0x.*"; "")] | unique | join(",")'
}
record -- "$W/jitmap" 0.3 jit_first 0.3 - >/dev/null
is "$(selves)" '[jit],jit_first' 'exec: the map of the program before names its code alone'
like "$(notes)" 'perf-[0-9]+.map is of the program before: nothing was written to it since this one began' \
	'exec: said in a note'
record -- "$W/jitmap" 0.3 jit_first 0.3 - 0.3 jit_third >/dev/null
is "$(selves)" '[jit],jit_third' 'exec: a map that was written anew names the code of its writer alone'
like "$(notes)" 'perf-[0-9]+.map is of the program after: it was written when this one had ended' \
	'exec: said in a note'
rm -f "/tmp/perf-$(perf script -F pid -i "$tmp/data" 2>/dev/null | grep -m 1 . | tr -d ' ').map"
# Whoever has the pid now may find a map of one who had it.
"$W/jitmap" 3 >/dev/null &
pid=$!
echo "$map" >"/tmp/perf-$pid.map"
touch -d '-1 hour' "/tmp/perf-$pid.map"
record -d 0.25 -p $pid
kill $pid
is "$(selves)" '[jit]' 'a map from before the process: no name of it, also when it has ended'
rm -f "/tmp/perf-$pid.map"
like "$(notes)" "perf-$pid.map is of the program before" 'a map from before the process: said in a note, which the file keeps'

# --- what may not be believed ---
refuse() {
	local what=$1 want=$2 pid
	"$W/jitmap" 3 >/dev/null &
	pid=$!
	eval "$3"
	record -d 0.25 -p $pid
	kill $pid
	wait $pid 2>/dev/null
	like "$(notes)" "/tmp/perf-$pid.map $want" "$what: refused, with a note"
	unlike "$(leaves)" 'evil' "$what: no name of it"
	rm -rf "/tmp/perf-$pid.map"
}
refuse "another user's map" 'belongs to another user' 'echo $map >/tmp/perf-$pid.map; chown 65534 /tmp/perf-$pid.map'
echo "$map" >"$tmp/evil"
refuse 'a symlink' 'is reached through a symlink' 'ln -s $tmp/evil /tmp/perf-$pid.map'
refuse 'a FIFO' 'is no plain file' 'mkfifo /tmp/perf-$pid.map'
refuse 'a file of a terabyte' 'has more than 512 MiB' \
	'echo $map >/tmp/perf-$pid.map; truncate -s 1T /tmp/perf-$pid.map'
refuse 'a folder' 'is no plain file' 'mkdir /tmp/perf-$pid.map'

# --- tiers: the entry written last over an address counts ---
"$W/jitmap" 3 jit_spin >/dev/null &
pid=$!
sleep 0.2
sed 's/jit_spin/JS:~tier_old/' "/tmp/perf-$pid.map" >"$tmp/old"
sed 's/jit_spin/JS:*tier_new/' "/tmp/perf-$pid.map" >"$tmp/new"
cat "$tmp/old" "$tmp/new" >"/tmp/perf-$pid.map"
record -d 0.5 -p $pid
kill $pid
rm -f "/tmp/perf-$pid.map"
like "$(leaves)" '\*tier_new' 'several entries of one function: the last one'
unlike "$(leaves)" 'tier_old' 'several entries of one function: only that'

# --- a real compiler ---
if command -v node >/dev/null; then
	cat >"$tmp/spin.js" <<-'END'
		function spin_map(x) { let s = 0; for (let i = 0; i < 9e4; i++) s += Math.sqrt(i * x); return s }
		const end = Date.now() + 600; let s = 0
		while (Date.now() < end) s += spin_map(3)
	END
	(cd "$tmp" && record -- node --perf-basic-prof spin.js)
	pid=$(perf script -F pid -i "$tmp/data" 2>/dev/null | grep -m 1 . | tr -d ' ')
	rm -f "/tmp/perf-$pid.map"
	like "$(leaves)" '\*spin_map ' 'node --perf-basic-prof: named'
	# From rows through built-in code without any, and compiled code with frame pointers.
	ok '"$INSPECT" flame --folded "$tmp/data" 2>/dev/null | grep -q "^node;_start;.*;node::Start(.*[*]spin_map"' \
		'its stacks reach _start'
	read -r cut samples < <("$INSPECT" report --json "$tmp/data" | jq -r '"\(.truncated) \(.samples)"')
	ok "[ $((cut * 100)) -le $((samples * 3)) ]" "and are whole (all but $cut of $samples)"
else
	skip 'no node' 3
fi
