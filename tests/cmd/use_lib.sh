# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# For the tests of use: a report as JSON and questions to it.

# What other programs of a busy machine may cause at any time: they compute, write, and have locks.
noise='^(host (CPU|run queue|hottest thread|I/O|disk|locks)|process process CPU)$'

# value JSON-FILE METRIC [DEVICE-REGEX]: the highest value of a metric, or nothing
value() {
	jq -r --arg m "$2" --arg d "${3:-}" \
		'[.values[] | select(.metric == $m and (.device | test($d))) | .value | numbers] |
		max // empty' "$1"
}

# verdict JSON-FILE RESOURCE [DEVICE-REGEX]: the worst
verdict() {
	jq -r --arg r "$2" --arg d "${3:-}" '[.resources[] |
		select(.resource == $r and (.device | test($d))) | .verdict] |
		if index("critical") then "critical" elif index("warn") then "warn" else .[0] // "" end' "$1"
}

# others JSON-FILE RESOURCE…: rows that are not well, but for these and the noise, and what was not
# before ($tmp/calm.json, where there is one)
others() {
	local file=$1 calm=$tmp/calm.json
	shift
	[ -e "$calm" ] || calm=/dev/null
	jq -r --arg n "$noise" --arg mine "^($(IFS='|' && echo "$*"))$" --slurpfile calm "$calm" \
		'def unwell: .resources[] | select(.verdict == "warn" or .verdict == "critical") |
			{scope, resource, device};
		[$calm[] | unwell] as $old | unwell | . as $row | select(("\(.scope) \(.resource)" | test($n)) or
			(.resource | test($mine)) or ($old | index([$row])) | not) |
		"\(.resource) \(.device)"' "$file"
}

# measure FILE ARG…: a report as JSON
measure() {
	local file=$1
	shift
	"$INSPECT" use --json "$@" >"$file" 2>"$tmp/err" || diag "$(cat "$tmp/err")"
}
