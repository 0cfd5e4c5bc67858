#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The licence of each source file stands on its first line, or below #! or a workload's flags.
set -u
echo "spdx: every source names its licence in its first lines"
failed=0
while IFS= read -r file; do
	case $file in
	bpf/*) want='GPL-2.0-only OR BSD-2-Clause' ;;
	*) want='BSD-2-Clause' ;;
	esac
	head -n 3 "$file" | grep -qF "SPDX-License-Identifier: $want" || {
		echo "$file:1: no 'SPDX-License-Identifier: $want'"
		failed=1
	}
done < <(find Makefile .ci scripts src include bpf tests -type f \( -name '*.[ch]' -o -name '*.cc' \
	-o -name '*.js' -o -name '*.css' -o -name '*.sh' -o -name '*.t' -o -name '*.py' -o -name '*.go' \
	-o -name Makefile -o -name run \) -not -path 'tests/data/*' 2>/dev/null | sort)
exit $failed
