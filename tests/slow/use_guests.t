#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Limits of cgroups of version 2, in emulated machines with Debian's kernels: what use says against
# what the groups' own files say before and after; and that its BPF program works there.
. "$(dirname "$0")/../cmd/lib.sh"
. tests/cmd/use_lib.sh
for tool in qemu-system-x86_64 busybox apt-get dpkg; do
	command -v $tool >/dev/null || skip_all "no $tool here: make deps DEPS=slow"
done
[ "$(uname -m)" = x86_64 ] || skip_all 'the guest is x86-64'

# --- the kernel, by an apt with folders of its own: nothing of this system changes ---
log=$tmp/log
own_apt() {
	local command=$1
	shift
	"$command" -q -o Dir::Etc::sourceparts=- -o Dir::Etc::sourcelist="$cache/sources.list" \
		-o Dir::State::lists="$cache/lists" -o Dir::State::status="$cache/status" \
		-o Dir::Cache="$cache" -o APT::Sandbox::User=root "$@"
}
# fetch VERSION SUITE: its vmlinuz, kept between runs
fetch() {
	suite=$2
	cache=$O/guests/$1
	mkdir -p "$cache/lists/partial" "$cache/archives/partial"
	if [ ! -e "$cache/vmlinuz" ]; then
		echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/'"$suite main" \
			>"$cache/sources.list"
		: >"$cache/status"
		own_apt apt-get update >"$log" 2>&1 || return 1
		package=$(own_apt apt-cache depends linux-image-cloud-amd64 2>>"$log" | awk '/Depends: linux-image-/ { print $2 }')
		(cd "$cache" && own_apt apt-get download "$package" && dpkg -x "$package"_*.deb root) >>"$log" 2>&1 ||
			return 1
		mv "$cache"/root/boot/vmlinuz-* "$cache/vmlinuz"
		rm -rf "$cache/root" "$cache/archives" "$cache/lists" "$cache"/*.deb
	fi
}

# --- what runs in it ---
root=$tmp/initrd
mkdir -p "$root"/{bin,proc,sys,tmp}
cp "$INSPECT" "$W/locks" "$(command -v busybox)" "$root/bin/"
for library in $(ldd "$root"/bin/{inspect,locks} | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
	mkdir -p "$root/$(dirname "$library")"
	cp "$library" "$root/$library"
done
cat >"$root/init" <<'END'
#!/bin/busybox sh
export PATH=/bin HOME=/tmp
/bin/busybox --install -s /bin
echo # the loader's line is not ended
mount -t devtmpfs none /dev
mount -t proc none /proc
dmesg -n 1 # kills are told on the console, in the middle of what is shown
mount -t sysfs none /sys
mount -t tmpfs none /tmp
mount -t cgroup2 none /sys/fs/cgroup
cd /sys/fs/cgroup
echo '+memory +cpu +pids' >cgroup.subtree_control
mkdir high max cpu pids
show() {
	echo "@BEGIN $1"
	cat /tmp/$1
	echo "@END"
}
within() { # GROUP COMMAND…
	group=$1
	shift
	sh -c 'echo $$ >/sys/fs/cgroup/$0/cgroup.procs; exec "$@"' $group "$@"
}
# measure GROUP FILE: a report, and the file around it
measure() {
	cp $1/$2 /tmp/$1.before
	inspect use --json -d 2 >/tmp/$1.json
	cp $1/$2 /tmp/$1.after
	show $1.before
	show $1.json
	show $1.after
}
echo 24M >high/memory.high
within high dd if=/dev/zero of=/tmp/high bs=64k count=600 2>/dev/null &
sleep 1
measure high memory.events
rm /tmp/high
echo 24M >max/memory.max
for i in 1 2 3 4 5 6 7 8; do
	within max dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null
	sleep 0.5
done &
measure max memory.events
echo '20000 100000' >cpu/cpu.max
within cpu sh -c 'while :; do :; done' &
sleep 1
measure cpu cpu.stat
kill $!
echo 4 >pids/pids.max
within pids sleep 60 &
within pids sleep 60 &
within pids sleep 60 &
within pids sleep 60 &
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	within pids sh -c '(true) & wait' 2>/dev/null
	sleep 0.2
done &
sleep 0.5
measure pids pids.events
locks 3 10 >/tmp/locks.out &
sleep 1
inspect use --json -d 2 -p $! >/tmp/locks.json
wait $!
show locks.json
show locks.out
# With three descriptors each redirection fails, once.
sh -c 'ulimit -n 3; sleep 3; for i in 1 2 3 4 5 6 7; do true </dev/null; done; sleep 60' 2>/dev/null &
inspect use --json --watch -n 2 -d 4 >/tmp/fds.json
show fds.json
echo @DONE
poweroff -f
END
chmod +x "$root/init"
python3 tests/slow/initramfs.py "$root" | gzip -1 >"$tmp/initrd.cpio.gz"

grown() { # GROUP NAME
	echo $(($(sed -n "s/^$2 //p" "$tmp/$1.after") - $(sed -n "s/^$2 //p" "$tmp/$1.before")))
}

# check VERSION: runs the machine, and looks at what it said
check() {
	version=$1
	nice timeout 240 qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 1024 -nographic -nic none -no-reboot \
		-kernel "$O/guests/$version/vmlinuz" -initrd "$tmp/initrd.cpio.gz" -append 'console=ttyS0 quiet panic=-1' \
		</dev/null >"$tmp/console" 2>&1
	ok 'grep -q "@DONE" "$tmp/console"' "$version: the machine ran to its end" || { diag "$(tail -20 "$tmp/console")"; return; }
	for name in high max cpu pids; do
		for part in json before after; do
			tr -d '\r' <"$tmp/console" | sed -n "/^@BEGIN $name.$part\$/,/^@END\$/p" | sed '1d;$d' >"$tmp/$name.$part"
		done
		is "$(python3 tests/cmd/schema.py docs/json/use.schema.json "$tmp/$name.json" 2>&1)" '' "$version, $name: the JSON fits its schema"
		is "$(jq '[.values[] | select(.metric == "run_delay_percent").value] | length' "$tmp/$name.json")" 1 "$version, $name: run delay is known"
	done


	# --- memory.high: slowed down, and not more often than its file says ---
	high=$(value "$tmp/high.json" memory_high_per_second)
	seconds=$(jq '.window_ns / 1e9' "$tmp/high.json")
	ok "awk 'BEGIN { n = $high * $seconds; exit !(n > 0 && n <= $(grown high high) + 1) }'" \
		"$version, memory.high: exceeded $high times a second, $(grown high high) times in all"
	is "$(verdict "$tmp/high.json" 'cgroup memory' /high)" critical "$version: it is nearly all of the limit"
	like "$(jq -r '.values[] | select(.metric == "cgroup_memory_percent" and .device == "/high").source' "$tmp/high.json")" \
		'memory.high$' "$version: which is memory.high"

	# --- memory.max ---
	killed=$(value "$tmp/max.json" cgroup_oom_kills /max)
	ok '[ $killed -ge 1 ] && [ $killed -le $(grown max oom_kill) ]' \
		"$version: memory.max: $killed kills, $(grown max oom_kill) around it as memory.events says"
	is "$(verdict "$tmp/max.json" 'cgroup memory' /max)" critical "$version: a kill is critical"
	is "$(jq -r '.findings[0].rule' "$tmp/max.json")" oom-killed "$version: and the first finding"

	# --- cpu.max ---
	periods=$(grown cpu nr_periods)
	near "$(value "$tmp/cpu.json" throttled_percent /cpu)" "$(awk "BEGIN { print 100 * $(grown cpu nr_throttled) / $periods }")" 25 \
		"$version: cpu.max: throttled periods as cpu.stat says"
	near "$(value "$tmp/cpu.json" cgroup_cpu_percent /cpu)" \
		"$(awk "BEGIN { print 100 * $(grown cpu usage_usec) / ($periods * 20000) }")" 30 "$version: of the quota as cpu.stat says"
	is "$(verdict "$tmp/cpu.json" 'cgroup CPU' /cpu)" critical "$version: throttling is critical"

	# --- pids.max ---
	refused=$(value "$tmp/pids.json" pids_refused /pids)
	ok '[ $refused -gt 0 ] && [ $refused -le $(grown pids max) ]' \
		"$version, pids.max: $refused refused, $(grown pids max) around it"
	# A shell may be moved into a full group.
	ok '[ "$(value "$tmp/pids.json" pids_percent /pids)" -ge 100 ]' "$version: all are used"
	is "$(verdict "$tmp/pids.json" 'cgroup pids' /pids)" critical "$version: refused forks are critical"

	# --- its BPF program ---
	for part in json out; do
		tr -d '\r' <"$tmp/console" | sed -n "/^@BEGIN locks.$part\$/,/^@END\$/p" | sed '1d;$d' >"$tmp/locks.$part"
	done
	like "$(jq -r '.values[] | select(.metric == "thread_busy_percent").source' "$tmp/locks.json")" '^BPF task iterator' \
		"$version: times come from BPF"
	if [ "$version" = 5.10 ]; then
		like "$(jq -r '.values[] | select(.metric == "lock_wait").value_reason' "$tmp/locks.json")" '5.15' \
			"$version: locks need a newer kernel, and it is said"
		return
	fi
	read -r _ waited wall _ <"$tmp/locks.out"
	tr -d '\r' <"$tmp/console" | sed -n "/^@BEGIN fds.json\$/,/^@END\$/p" | sed '1d;$d' >"$tmp/fds.json"
	is "$(jq -s '[.[].values[] | select(.metric == "fds_refused").value] | add' "$tmp/fds.json")" 7 \
		"$version: EMFILE as often as the shell met it, with --watch too"
	like "$(jq -rs '.[0].values[] | select(.metric == "files_refused").source' "$tmp/fds.json")" 'alloc_fd' \
		"$version: seen where the kernel gives out descriptors"
	near "$(value "$tmp/locks.json" lock_wait)" "$(awk "BEGIN { print $waited / $wall }")" 0.4 \
		"$version: locks as the threads say"
}

while read -r version suite; do
	if fetch "$version" "$suite"; then
		check "$version"
	else
		skip "the kernel $version cannot be fetched"
	fi
done <<END
5.10 debian-security bullseye-security
6.1 debian bookworm
6.12 debian trixie
END
