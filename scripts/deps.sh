#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Installs the missing packages of the sets named (build, test, slow, cross). Says nothing when all are there.
# apt is what the tests run on; the dnf column of packages.table has been checked by name only.
set -eu
table=$(dirname "$0")/packages.table

# column N of the rows whose set was asked for
names() {
	local column=$1 set
	shift
	for set in "$@"; do
		awk -v want="$set" -v column="$column" \
			'$1 == want && $column != "-" { print $column }' "$table"
	done
}

# Sets `sudo` to what becomes root, or ends with the names that root has to install.
sudo=
need_root() {
	[ "$(id -u)" != 0 ] || return 0
	sudo=$(command -v sudo) || {
		echo "deps: not root and no sudo here; to be installed: $*" >&2
		exit 1
	}
}

missing_debian() {
	local name
	for name in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed ||
			echo "$name"
	done
}

apt_install() {
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

if [ $# = 0 ]; then
	echo "usage: deps.sh build|test|slow|cross ..." >&2
	exit 2
elif command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
	missing=$(missing_debian $(names 2 "$@"))
	[ -n "$missing" ] || exit 0
	need_root $missing
	echo "deps: installing" $missing
	# The package lists of a fresh machine are empty or old: fetched when the first try fails.
	apt_install $missing || { $sudo apt-get update && apt_install $missing; }
elif command -v dnf >/dev/null; then
	missing=
	for name in $(names 3 "$@"); do
		rpm -q --whatprovides "$name" >/dev/null 2>&1 || missing+=" $name"
	done
	[ -n "$missing" ] || exit 0
	need_root $missing
	echo "deps: installing$missing"
	$sudo dnf install -y $missing
else
	echo "deps: neither apt-get nor dnf here; needed:" $(names 2 "$@") >&2
	exit 1
fi
