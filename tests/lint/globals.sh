#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# State belongs to the struct that is passed, so that tests and threads can have two of it.
# Looks at the objects: what lies in a writable section is a variable that can change. Constant
# tables of pointers lie in .data.rel.ro, which the loader writes and then protects.
set -u
O=${O:-build}
# The signal flag and the log level (docs/architecture.md).
allowed='^(got_signal|log_level)$'
echo "globals: no variable that outlives its function, but the signal flag and the log level"
failed=0
while IFS= read -r object; do
	source=src/${object#"$O"/obj/}
	source=${source%.o}.c
	[ -e "$source" ] || continue
	while read -r name; do
		# A static inside of a function has a number after its name; the sanitizers add their own.
		plain=${name%%.*}
		[[ $plain =~ $allowed || $name == __* || -z $plain ]] && continue
		line=$(grep -nm1 "\b$plain\b" "$source" | cut -d: -f1)
		echo "$source:${line:-1}: variable '$plain'"
		failed=1
	done < <(objdump -t "$object" | awk '/ O / && $(NF - 2) ~ /^([.](data|bss|tdata|tbss)|[*]COM)/ &&
		$(NF - 2) !~ /^[.]data[.]rel[.]ro/ { print $NF }')
done < <(find "$O/obj" -name '*.o' | sort)
exit $failed
