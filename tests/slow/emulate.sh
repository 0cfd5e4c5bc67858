# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What tests in an emulated machine have in common.
#
#	machine_file "$INSPECT"			into its /bin, with the libraries
#	machine_boot qemu-system-… <<'END'	what it runs, in sh, after its mounts; `show NAME` there…
#	machine_shown NAME			…is read here: its /tmp/NAME
#
# The machine's clock counts its instructions, 250 million a second, and what sleeps takes no time.
# So what it measures does not depend on how busy this machine is, and neither does its limit.
. "$(dirname "${BASH_SOURCE[0]}")/../cmd/lib.sh"
machine=$tmp/machine
mkdir -p "$machine"/{bin,dev,proc,sys,tmp}

# machine_file FILE [NAME]
machine_file() {
	local name=${2:-$(basename "$1")} library
	cp "$1" "$machine/bin/$name"
	{ ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*\.so[^ ]*' | while read -r library; do
		mkdir -p "$machine/$(dirname "$library")"
		cp "$library" "$machine/$library"
	done
}

# machine_boot QEMU KERNEL CONSOLE [OPTION…]
machine_boot() {
	local qemu=$1 kernel=$2 console=$3
	shift 3
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
	printf '\n@END\n'
}
END
		cat
		printf 'echo @DONE\npoweroff -f\n'
	} >"$machine/init"
	chmod +x "$machine/init"
	python3 tests/slow/initramfs.py "$machine" | gzip -1 >"$tmp/initrd.cpio.gz"
	(
		ulimit -t 400
		exec "$qemu" -accel tcg -icount shift=2,sleep=off -cpu max -m 1024 -nographic -nic none -no-reboot \
			-kernel "$kernel" -initrd "$tmp/initrd.cpio.gz" -append "console=$console quiet panic=-1" "$@"
	) >"$tmp/console" 2>&1
	ok 'grep -q "@DONE" "$tmp/console"' 'the machine ran to its end' || { diag "$(tail -20 "$tmp/console")"; exit 1; }
}

machine_shown() {
	tr -d '\r' <"$tmp/console" | sed -n "/^@BEGIN $1\$/,/^@END\$/p" | sed '1d;$d' | sed '$d'
}
