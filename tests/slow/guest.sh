# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Kernels that people run, Debian's, in an emulated x86-64 machine.
#
#	. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"
#	guest_kernel 6.1		fetches it
#	guest_file "$INSPECT"		into /bin, its libraries too
#	guest_boot <<'END'		what the machine runs, sh, after its mounts; `show NAME` there…
#	guest_shown NAME		…is read here: /tmp/NAME
#
# The machine's clock counts its instructions (-icount), and sleeping takes no time. So what it
# measures does not depend on how busy this machine is, and neither does the limit, of CPU time.
. "$(dirname "${BASH_SOURCE[0]}")/../cmd/lib.sh"
for tool in qemu-system-x86_64 busybox setpriv apt-get dpkg; do
	command -v $tool >/dev/null || skip_all "no $tool here: make deps DEPS=slow"
done
[ "$(uname -m)" = x86_64 ] || skip_all 'the guest is x86-64'
guest_root=$tmp/initrd
mkdir -p "$guest_root"/{bin,proc,sys,tmp}
cp "$(command -v busybox)" "$guest_root/bin/"

# Sets `kernel` to a file that is kept between runs: what is fetched is large.
guest_kernel() {
	local cache=$O/guests/$1 suite package
	local log=$cache/log
	case $1 in
	5.10) suite='debian-security bullseye-security' ;;
	6.1) suite='debian bookworm' ;;
	6.12) suite='debian trixie' ;;
	esac
	kernel=$cache/vmlinuz
	[ ! -e "$kernel" ] || return 0
	# An apt with folders of its own: nothing of this system changes.
	own_apt() {
		local command=$1
		shift
		"$command" -q -o Dir::Etc::sourceparts=- -o Dir::Etc::sourcelist="$cache/sources.list" \
			-o Dir::State::lists="$cache/lists" -o Dir::State::status="$cache/status" \
			-o Dir::Cache="$cache" -o APT::Sandbox::User=root "$@"
	}
	mkdir -p "$cache/lists/partial" "$cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/$suite main" \
		>"$cache/sources.list"
	: >"$cache/status"
	own_apt apt-get update >"$log" 2>&1 || skip_all 'no Debian archive can be reached'
	package=$(own_apt apt-cache depends linux-image-cloud-amd64 2>>"$log" | awk '/Depends: linux-image-/ { print $2 }')
	(cd "$cache" && own_apt apt-get download "$package" && dpkg -x "$package"_*.deb root) >>"$log" 2>&1 ||
		skip_all "the kernel cannot be fetched ($log)"
	mv "$cache"/root/boot/vmlinuz-* "$kernel"
	rm -rf "$cache/root" "$cache/archives" "$cache/lists" "$cache"/*.deb
}

# guest_file FILE [NAME]
guest_file() {
	local name=${2:-$(basename "$1")} library
	cp "$1" "$guest_root/bin/$name"
	ldd "$1" 2>/dev/null | grep -o '/[^ ]*\.so[^ ]*' | while read -r library; do
		mkdir -p "$guest_root/$(dirname "$library")"
		cp "$library" "$guest_root/$library"
	done
}

guest_boot() {
	{
		cat <<'END'
#!/bin/busybox sh
export PATH=/bin HOME=/tmp
/bin/busybox --install /bin
echo # the loader's line is not ended
mount -t devtmpfs none /dev
mount -t proc none /proc
dmesg -n 1 # what the kernel says would be in the middle of what is shown
mount -t sysfs none /sys
mount -t tmpfs none /tmp
mount -t cgroup2 none /sys/fs/cgroup
show() {
	echo "@BEGIN $1"
	cat /tmp/$1
	echo "@END"
}
END
		cat
		printf 'echo @DONE\npoweroff -f\n'
	} >"$guest_root/init"
	chmod +x "$guest_root/init"
	python3 tests/slow/initramfs.py "$guest_root" | gzip -1 >"$tmp/initrd.cpio.gz"
	(
		ulimit -t 300
		exec qemu-system-x86_64 -accel tcg -icount shift=2,sleep=off -cpu max -m 1024 -nographic -nic none \
			-no-reboot -kernel "$kernel" -initrd "$tmp/initrd.cpio.gz" -append 'console=ttyS0 quiet panic=-1'
	) </dev/null >"$tmp/console" 2>&1
	ok 'grep -q "@DONE" "$tmp/console"' 'the machine ran to its end' || { diag "$(tail -20 "$tmp/console")"; exit 1; }
}

guest_shown() {
	tr -d '\r' <"$tmp/console" | sed -n "/^@BEGIN $1\$/,/^@END\$/p" | sed '1d;$d'
}
