#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every rule of the tables by which structs of the driver are read (src/gpu/decode_rules.tsv and
# uvm_decode.tsv): a driver of each generation writes a status where its headers have it, and the call
# fails by the name that it has there, although ioctl returns 0.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu_lib.sh"

# steps VERSION: calls of a driver of that version, one by each rule, to stdout; what is to be seen of
# them ("CALL|COUNT", by name) to $tmp/errors and $tmp/calls, and the rules to $tmp/seen.
steps() {
	awk -F'\t' -v version="$1" -v errors="$tmp/errors.raw" -v calls="$tmp/calls.raw" -v seen="$tmp/seen" '
		function number(v, part) { split(v, part, "."); return part[1] * 1e6 + part[2] * 1000 + part[3] }
		function holds(first, last) { return number(version) >= number(first) && number(version) <= number(last) }
		BEGIN {
			value["rm_ctrl.tsv"] = "0x101"; name["rm_ctrl.tsv"] = " NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION"
			value["rm_classes.tsv"] = "0x50a0"; name["rm_classes.tsv"] = " NV50_MEMORY_VIRTUAL"
			value["nvos32_functions.tsv"] = "2"; name["nvos32_functions.tsv"] = " ALLOC_SIZE"
			printf "" >errors; printf "" >calls
		}
		FNR == 1 { file++; printf "open %s ", file == 1 ? "nvidiactl" : "nvidia-uvm"; next }
		file == 1 {
			split($9, range, "-")
			if ($1 == "NV_ESC_IOCTL_XFER_CMD" || !holds(range[1], range[2]))
				next
			print FILENAME, FNR >>seen
			sub(/^NV_ESC_/, "", $1)
			sub(/^n\*/, "", $3)
			printf "answer 0 %d 0x51 0 rm %s %d %d:%s 1 ", $8, $2, $3, $7 in value ? $6 : 0,
				$7 in value ? value[$7] : 0
			print $1 ($7 in name ? name[$7] : "") >($8 < 0 ? calls : errors)
		}
		# Of a file, which our devices are, 1 and 2 belong to the kernel: FIBMAP, FIGETBSZ.
		file == 2 && holds($8, $9) && $2 != "0x1" && $2 != "0x2" {
			print FILENAME, FNR >>seen
			printf "answer 0 %d 0x51 0 uvm %s 1 ", $5, $2
			print $1 >($5 < 0 ? calls : errors)
		}' src/gpu/decode_rules.tsv src/gpu/uvm_decode.tsv
	for kind in errors calls; do
		sort "$tmp/$kind.raw" | uniq -c | sed -E 's/^ *([0-9]+) (.*)/\2|\1/' | sort >"$tmp/$kind"
	done
}

# same FILE NAME: what is shown is what that file has; only differences are printed
same() {
	local differs
	differs=$(diff "$1" "$tmp/shown" | grep '^[<>]')
	is "$differs" '' "$2"
}

for version in 515.43.04 530.41.03 550.54.14 580.65.06 595.45.04; do
	made=$(steps $version)
	gpu $version -c --json -- "$calls" "$dev" $made
	jq -r '.errors[] | select(.error == "NV_ERR_NO_MEMORY") | "\(.call)|\(.count)"' "$tmp/json" | sort >"$tmp/shown"
	same "$tmp/errors" "$version: the status of each call, by name"
	jq -r '.rows[] | select(.errors == 0 and (.call | test("^(open|close|_IO)") | not)) | "\(.call)|\(.calls)"' \
		"$tmp/json" | sort >"$tmp/shown"
	same "$tmp/calls" '… and calls without one have none'
done
is "$(sort -u "$tmp/seen" | wc -l)" "$(awk 'FNR > 1 { n++ } END { print n - 3 }' src/gpu/decode_rules.tsv src/gpu/uvm_decode.tsv)" \
	'all rules but these two, and XFER_CMD, whose struct is elsewhere'
