# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What tests on an emulated aarch64 machine begin with: a kernel and libraries from Debian in $root,
# and the tool, cross-built, in the machine.
#
#	. "$(dirname "$0")/arm64.sh"
#	arm64_boot [OPTION…] <<'END'	as machine_boot
. "$(dirname "${BASH_SOURCE[0]}")/emulate.sh"
for tool in qemu-system-aarch64 aarch64-linux-gnu-gcc apt-get dpkg; do
	command -v $tool >/dev/null || skip_all "no $tool here: make deps DEPS=slow"
done
# Kept between runs: what is fetched and built is large.
cache=$O/arm64
mkdir -p "$cache/debs" "$cache/lists/partial" "$cache/archives/partial"
log=$cache/log

# --- arm64 packages, in a folder of their own: nothing of this system changes ---
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [arch=arm64 signed-by=$keyring] http://deb.debian.org/debian bookworm main" >"$cache/sources.list"
: >"$cache/status"
arm_apt() {
	local command=$1
	shift
	"$command" -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::Etc::sourceparts=- \
		-o Dir::Etc::sourcelist="$cache/sources.list" -o Dir::State::lists="$cache/lists" \
		-o Dir::State::status="$cache/status" -o Dir::Cache="$cache" -o APT::Sandbox::User=root "$@"
}
root=$cache/root
if [ ! -e "$root/.whole" ] || [ ! -e "$root/usr/lib/aarch64-linux-gnu/libbpf.a" ]; then
	arm_apt apt-get update >"$log" 2>&1 || skip_all 'no Debian archive can be reached'
	kernel=$(arm_apt apt-cache depends linux-image-cloud-arm64 2>>"$log" | awk '/Depends: linux-image-/ { print $2 }')
	(cd "$cache/debs" && arm_apt apt-get download "$kernel" busybox-static libelf-dev libdw-dev zlib1g-dev \
		libzstd-dev libiberty-dev libbz2-dev liblzma-dev libpfm4-dev libbpf-dev) >>"$log" 2>&1 ||
		skip_all 'the packages cannot be fetched'
	mkdir -p "$root"
	for deb in "$cache"/debs/*.deb; do dpkg -x "$deb" "$root" || skip_all 'a package is damaged'; done
	rm -rf "$cache/debs" "$cache/archives" "$cache/lists"
	touch "$root/.whole"
fi

# --- the tool, static ---
lib=$root/usr/lib/aarch64-linux-gnu
# An archive shows what a library hides: libbpf has hash maps of its own, with names of ours.
mkdir -p "$cache/lib"
aarch64-linux-gnu-objcopy --redefine-sym hashmap_insert=libbpf_hashmap_insert \
	--redefine-sym hashmap_find=libbpf_hashmap_find --redefine-sym hashmap_delete=libbpf_hashmap_delete \
	"$lib/libbpf.a" "$cache/lib/libbpf.a"
built=0
make -s O="$cache/build" CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar \
	CPPFLAGS="-idirafter $root/usr/include -idirafter $root/usr/include/aarch64-linux-gnu" \
	LDFLAGS="-static -L$cache/lib -L$lib" LIBS="-lbpf -ldw -lelf -lz -lzstd -liberty -lm -llzma -lbz2" all >"$log" 2>&1 || built=$?
is $built 0 'builds for arm64' || { diag "$(tail -20 "$log")"; exit 1; }
cp "$cache/build/inspect" "$root/bin/busybox" "$machine/bin/"

arm64_boot() {
	machine_boot qemu-system-aarch64 "$(echo "$root"/boot/vmlinuz-*)" ttyAMA0 -M virt "$@"
}
