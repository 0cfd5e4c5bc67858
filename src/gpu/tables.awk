# SPDX-License-Identifier: BSD-2-Clause
# A table of names, numbers and driver versions as C: awk -v table=rm_ctrl -f tables.awk rm_ctrl.tsv
# Columns are found by their headings, so that the same program reads all of them.
BEGIN {
	FS = "\t"
}

# 535.54.03 is 535054003.
function version(text, part) {
	split(text, part, ".")
	return sprintf("%d", part[1] * 1000000 + part[2] * 1000 + part[3])
}

NR == 1 {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	kind = "ioc_nr" in column ? "rule" : "rmStatus_offset" in column ? "uvm" : "name"
	printf "static const struct gpu_%s %s[] = {\n", kind, table
	next
}

kind == "name" {
	caps = "gvisor_caps" in column ? $column["gvisor_caps"] : "-"
	printf "\t{%s, %s, %s, \"%s\", %s},\n", $column["number"], version($column["first_seen_version"]),
		version($column["last_seen_version"]), $column["name"], caps == "-" ? "false" : "true"
}

# A size such as "n*72" is that of an array: 0, any.
kind == "rule" {
	split($column["driver_versions"], range, "-")
	size = $column["ioc_size"]
	selector = $column["selector_table"]
	sub(/[.]tsv$/, "", selector)
	printf "\t{%s, %s, %s, %s, %s, %s, %s},\n", $column["ioc_nr"], size ~ /^[0-9]+$/ ? size : 0,
		$column["selector_offset"], $column["status_offset"], version(range[1]), version(range[2]),
		selector == "-" || selector == "nv_escapes" ? "GPU_SELECTOR_NONE" : "GPU_SELECTOR_" toupper(selector)
}

kind == "uvm" {
	printf "\t{%s, %s, %s, %s, %s, %s},\n", $column["number"], $column["struct_size"],
		$column["rmStatus_offset"], $column["length_offset"],
		version($column["first_seen_version"]), version($column["last_seen_version"])
}

END {
	print "};"
}
