# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The BPF sampler on a kernel that people run, Debian's, emulated: a program without frame pointers
# is recorded, stacks are compared with libdwfl's, then BPF is refused in three ways.
#
#	. "$(dirname "$0")/guest.sh" VERSION SUITE
. "$(dirname "${BASH_SOURCE[0]}")/../cmd/lib.sh"
version=$1
suite=$2
for tool in qemu-system-x86_64 busybox setpriv apt-get dpkg; do
	command -v $tool >/dev/null || skip_all "no $tool here: make deps DEPS=slow"
done
[ "$(uname -m)" = x86_64 ] || skip_all 'the guest is x86-64'

# --- the kernel, by an apt with folders of its own: nothing of this system changes ---
# Kept between runs: what is fetched is large.
cache=$O/guests/$version
log=$cache/log
mkdir -p "$cache/lists/partial" "$cache/archives/partial"
own_apt() {
	local command=$1
	shift
	"$command" -q -o Dir::Etc::sourceparts=- -o Dir::Etc::sourcelist="$cache/sources.list" \
		-o Dir::State::lists="$cache/lists" -o Dir::State::status="$cache/status" \
		-o Dir::Cache="$cache" -o APT::Sandbox::User=root "$@"
}
if [ ! -e "$cache/vmlinuz" ]; then
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/$suite main" \
		>"$cache/sources.list"
	: >"$cache/status"
	own_apt apt-get update >"$log" 2>&1 || skip_all 'no Debian archive can be reached'
	package=$(own_apt apt-cache depends linux-image-cloud-amd64 2>>"$log" | awk '/Depends: linux-image-/ { print $2 }')
	(cd "$cache" && own_apt apt-get download "$package" && dpkg -x "$package"_*.deb root) >>"$log" 2>&1 ||
		skip_all "the kernel cannot be fetched ($log)"
	mv "$cache"/root/boot/vmlinuz-* "$cache/vmlinuz"
	rm -rf "$cache/root" "$cache/archives" "$cache/lists" "$cache"/*.deb
fi
make -s O="$O" "$O/accuracy" >"$log" 2>&1 || diag "$(cat "$log")"

# --- what runs in it ---
root=$tmp/initrd
mkdir -p "$root"/{bin,proc,sys,tmp}
cp "$INSPECT" "$W/shares_bare" "$O/accuracy" "$(command -v busybox)" "$root/bin/"
cp "$(command -v setpriv)" "$root/bin/with-rights" # busybox's own takes another command line
for library in $(ldd "$root"/bin/{inspect,with-rights,accuracy} | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
	mkdir -p "$root/$(dirname "$library")"
	cp "$library" "$root/$library"
done
cat >"$root/init" <<'END'
#!/bin/busybox sh
export PATH=/bin HOME=/tmp
busybox echo
busybox ln -s busybox /bin/sh
busybox mount -t proc none /proc
busybox mount -t sysfs none /sys
busybox mount -t cgroup2 none /sys/fs/cgroup
show() {
	echo "@BEGIN $1"
	busybox cat /tmp/$1
	echo "@END"
}
# record NAME COMMAND OPTIONS: what it says, and the report
record() {
	name=$1
	shift
	"$@" 2>/tmp/$name.err >/tmp/$name.out
	busybox printf '\nrc %s\n' $? >>/tmp/$name.err
	show $name.err
	inspect report --json --all /tmp/$name >/tmp/$name.json 2>/dev/null
	show $name.json
}
record command inspect record -F 499 -o /tmp/command -- shares_bare 2
accuracy 150 'exec shares_bare 3' >/tmp/accuracy.out 2>&1
show accuracy.out
shares_bare 600 3 >/dev/null &
record threads inspect record -F 499 -o /tmp/threads -d 1 -p $!
echo 2 >/proc/sys/kernel/perf_event_paranoid
record masked with-rights --bounding-set -bpf,-sys_admin --inh-caps -bpf,-sys_admin \
	inspect record -d 0.2 -o /tmp/masked -p $!
busybox mkdir /sys/fs/cgroup/small
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
echo 24M >/sys/fs/cgroup/small/memory.max
record little sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec "$@"' sh \
	inspect record -d 0.2 -o /tmp/little -p $!
busybox mount -t tmpfs none /sys/kernel/btf
record untyped inspect record -d 0.2 -o /tmp/untyped -p $!
echo @DONE
busybox poweroff -f
END
chmod +x "$root/init"
python3 tests/slow/initramfs.py "$root" | gzip -1 >"$tmp/initrd.cpio.gz"
nice timeout 240 qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 1024 -nographic -nic none -no-reboot \
	-kernel "$cache/vmlinuz" -initrd "$tmp/initrd.cpio.gz" -append 'console=ttyS0 quiet panic=-1' \
	</dev/null >"$tmp/console" 2>&1
ok 'grep -q "@DONE" "$tmp/console"' 'the machine ran to its end' || { diag "$(tail -20 "$tmp/console")"; exit 1; }
shown() {
	tr -d '\r' <"$tmp/console" | sed -n "/^@BEGIN $1\$/,/^@END\$/p" | sed '1d;$d'
}
for name in command threads masked little untyped; do
	shown $name.json >"$tmp/$name.json"
	shown $name.err >"$tmp/$name.err"
	is "$(sed -n 's/^rc //p' "$tmp/$name.err")" 0 "$name: recorded"
done
like "$(jq -r .os_release "$tmp/command.json")" "^${version//./\\.}\." 'by that kernel'

# --- unwound in the kernel ---
for name in command threads; do
	unlike "$(cat "$tmp/$name.err")" 'perf sampler' "$name: by the BPF sampler"
	read -r cut samples < <(jq -r '"\(.truncated) \(.samples)"' "$tmp/$name.json")
	# A new program's first moments take longer here than anywhere.
	known=$(jq '[.truncated_by_reason[] | select(.reason == "new mapping").samples] | add // 0' "$tmp/$name.json")
	ok '[ $samples -gt 100 ] && [ $(((cut - known) * 100)) -le $samples ] && [ $((known * 100)) -le $((5 * samples)) ]' \
		"$name: complete stacks (all but $cut of $samples, $known of them new mappings)"
	points=$(jq -n "[3, 3 * ([4000 / $samples, 1] | max | sqrt)] | max")
	while read -r function want; do
		# Of what the program does itself: emulated, its start weighs more.
		near "$(jq --arg name $function '[.functions[] | select(.function | startswith("burn_"))] as $all |
			100 * ([$all[] | select(.function == $name).self_weight] | add // 0) / ($all | map(.self_weight) | add)' \
			"$tmp/$name.json")" $want $points "$name: $function"
	done <<<"burn_sixty 60
burn_thirty 30
burn_ten 10"
done
near "$(jq '[.functions[] | select(.function == "worker").total_percent] | add' "$tmp/threads.json")" 100 2 \
	'threads: their stacks reach the entry of the thread'
# Those that ended early for want of rows say so; no other may differ, but where libdwfl unwinds the
# registers of a program that execve has just ended.
read -r all equal longer differ why < <(shown accuracy.out | grep '^[0-9]')
known=$(grep -o 'mapping=[0-9]*' <<<"$why" | awk -F= '{ n += $2 } END { print n + 0 }')
ok '[ "$all" -ge 50 ] && [ "$differ" -le $((known + 2)) ] && [ $((equal + longer)) -gt $((all / 2)) ]' \
	"frames as libdwfl has them: $equal of $all, $longer longer, $differ different ($why)" || diag "$(shown accuracy.out)"

# --- refused, and said ---
like "$(cat "$tmp/masked.err")" 'frame pointers \(perf sampler\): BPF is not allowed.*CAP_BPF' 'without CAP_BPF'
like "$(cat "$tmp/little.err")" 'frame pointers \(perf sampler\): not enough memory for BPF.*32 MiB' \
	"with little memory in its cgroup (v2)"
like "$(cat "$tmp/untyped.err")" 'frame pointers \(perf sampler\): the kernel does not describe its types' 'without BTF'
