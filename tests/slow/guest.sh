# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Kernels that people run, Debian's, in an emulated x86-64 machine with busybox.
#
#	. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"
#	guest_kernel 6.1		fetches it
#	guest_boot <<'END'		as machine_boot
. "$(dirname "${BASH_SOURCE[0]}")/emulate.sh"
for tool in qemu-system-x86_64 busybox setpriv apt-get dpkg; do
	command -v $tool >/dev/null || skip_all "no $tool here: make deps DEPS=slow"
done
[ "$(uname -m)" = x86_64 ] || skip_all 'the guest is x86-64'
machine_file "$(command -v busybox)"

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

guest_boot() {
	machine_boot qemu-system-x86_64 "$kernel" ttyS0
}
