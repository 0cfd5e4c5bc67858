#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A file that has grown past 600 lines holds more than one concept.
set -u
echo "size: no source of more than 600 lines"
failed=0
while IFS= read -r file; do
	lines=$(wc -l <"$file")
	[ "$lines" -le 600 ] || {
		echo "$file:601: $lines lines"
		failed=1
	}
done < <(find src include bpf tests scripts -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.js' \
	-o -name '*.css' -o -name '*.sh' -o -name '*.t' -o -name '*.py' \) -not -path 'tests/data/*' \
	2>/dev/null | sort)
exit $failed
