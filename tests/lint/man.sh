#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Man pages become roff that mandoc has nothing against, but for what scdoc always writes.
set -u
echo "man: scdoc takes every page, and mandoc its output"
failed=0
shopt -s nullglob
for page in man/*.scd; do
	roff=$(scdoc <"$page" 2>&1) || {
		echo "$page:1: $roff"
		failed=1
		continue
	}
	complaints=$(mandoc -Tlint -Wwarning <<<"$roff" | grep -v 'skipping paragraph macro')
	[ -z "$complaints" ] || {
		echo "$page:1: in its roff:"
		printf '  %s\n' "$complaints"
		failed=1
	}
done
exit $failed
