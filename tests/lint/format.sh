#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# clang-format decides on layout. It leaves comments alone, so their width is checked apart.
set -u
echo "format: clang-format changes nothing; no line over 100 columns"
failed=0
mapfile -t files < <(find src include bpf tests/unit -type f -name '*.[ch]' 2>/dev/null | sort)
clang-format --dry-run -Werror "${files[@]}" || failed=1
for file in "${files[@]}"; do
	expand -t 8 "$file" | LC_ALL=C.UTF-8 grep -nE '^.{101,}' |
		sed "s|^\([0-9]*\):.*|$file:\1: over 100 columns|" | grep . && failed=1
done
exit $failed
