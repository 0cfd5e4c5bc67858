#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Names and lines wherever they lie: in the file, in MiniDebugInfo, in debug files of this host and of
# another root, on a debuginfod server; and nothing of a file that is not the right one.
. "$(dirname "$0")/lib.sh"
perfdata=$PWD/tests/cmd/perfdata.py
unset DEBUGINFOD_URLS
export HOME=$tmp/home DEBUGINFOD_CACHE_PATH=$tmp/cache
cd "$tmp" || exit 1
for tool in cc objcopy nm xz perf python3; do
	command -v $tool >/dev/null || skip_all "no $tool here"
done
cat >p.c <<'END'
#include <stdio.h>
static int __attribute__((noinline)) hidden(int x) { for (int i = 0; i < 40; i++) asm volatile(""); return x * 3; }
static inline __attribute__((always_inline)) int twice(int x) {
	return hidden(x) + 2;
}
int __attribute__((noinline)) shown(int x)
{
	return twice(x) ^ x;
}
int main(int argc, char **argv)
{
	for (volatile int i = 0; argc > 1 && i < 2000000000; i++)
		shown(i);
	return printf("%s %d\n", argv[0], shown(argc)) < 0;
}
END
cc -O1 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -rdynamic -o p p.c
id=$(readelf -n p | sed -n 's/.*Build ID: *//p')
debug_path=usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
objcopy --only-keep-debug p p.debug
objcopy --strip-all p stripped
address() {
	nm p | awk -v name="$1" '$3 == name { print $1 }'
}
# The first call in shown() stands in twice().
call=$(objdump -d --disassemble=shown p | awk '/call/ { sub(":", "", $1); print $1; exit }')
printf '%s\n' "$(address hidden)" "$(address shown)" "$call" >addresses
# names FILE [OPTION…]: what the three addresses are
names() {
	python3 "$perfdata" x.data "$tmp/$1" <addresses
	"$INSPECT" report "${@:2}" --tree --min-percent 0 --json x.data >x.json
	jq -r '[.tree[] | select(.function != "[truncated]").function] | sort | join(" ")' x.json
}
notes() {
	jq -r '.notes[]' x.json
}

# --- in the file ---
is "$(names p)" 'hidden shown twice' 'the file has everything'
is "$(names p --no-inline)" 'hidden shown' '--no-inline'
"$INSPECT" report x.data --tree --min-percent 0 >tree
like "$(cat tree)" $'shown\n[^\n]*twice \\(inlined\\)' 'inlined functions are marked in trees'
is "$("$INSPECT" report x.data --sort srcline,symbol --json |
	jq -r '.functions[] | select(.self_samples > 0) | "\(.function) \(.file) \(.line)"' | sort)" \
	"hidden $tmp/p.c 2
shown $tmp/p.c 7
twice $tmp/p.c 4" '--sort srcline: the lines of the source'
like "$("$INSPECT" report x.data --sort srcline)" 'source line.*p\.c:[247]' '--sort srcline as text'
is "$("$INSPECT" report x.data --json | jq -r '.functions[] | select(.function == "hidden") | "\(.file):\(.line)"')" \
	"$tmp/p.c:2" 'file and line of a function in the data'
is "$("$INSPECT" report x.data --json | jq -c '[.functions[] | {(.function): .kind}] | add | [.twice, .shown]')" \
	'["inlined","native"]' 'the kind of an inlined function'
"$INSPECT" flame x.data -q -o x.svg
like "$(cat x.svg)" '"files":\["","[^"]*/p\.c"\],"lines":\[' 'and in the flame graph'
unlike "$("$INSPECT" flame --no-inline x.data -q)" '"files"' 'none without debug information'

# --- compressed ---
for how in zlib zlib-gnu zstd; do
	if ! objcopy --compress-debug-sections=$how p packed 2>err || ! readelf -SW packed | grep -q ' C \|zdebug'; then
		skip "objcopy has no $how here" 2
		continue
	fi
	is "$(names packed)" 'hidden shown twice' "$how: names and inlined functions"
	is "$(jq -r '[.notes[] | select(contains("packed"))] | length' x.json)" 0 "$how: no note"
done
# Some sections of one kind, some of the other, and one whose contents are not what they should be.
if [ "$how" = zstd ] && [ -e packed ]; then
	is "$("$INSPECT" report x.data --sort srcline,symbol --json |
		jq -r '.functions[] | select(.self_samples > 0) | "\(.function) \(.file) \(.line)"' | sort | head -1)" \
		"hidden $tmp/p.c 2" 'zstd: lines too'
	off=$(readelf -SW packed | sed -n 's/.* \.debug_info *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
	printf '\377\377\377\377' | dd of=packed bs=1 seek=$((16#$off + 24)) conv=notrunc status=none
	is "$(names packed)" 'hidden shown' 'zstd: damaged, the symbols stay'
	like "$(notes)" 'packed: its debug information is damaged' 'and it is said'
else
	skip 'no zstd' 3
fi

# --- without ---
unnamed="[stripped+0x$(address hidden | sed 's/^0*//')] shown"
is "$(names stripped)" "$unnamed" 'stripped: the exported function alone'
is "$(jq -r '.notes | length' x.json)" 1 'stripped: no note but on the recording itself'

# --- MiniDebugInfo, as Fedora makes it ---
nm -D p --format=posix --defined-only | awk '{ print $1 }' | sort >dynamic
nm p --format=posix --defined-only | awk '$2 ~ /^[Tt]$/ { print $1 }' | sort >functions
comm -13 dynamic functions >keep
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep p.debug mini
xz -k mini
objcopy --add-section .gnu_debugdata=mini.xz stripped with-mini
is "$(names with-mini)" 'hidden shown' 'MiniDebugInfo names the others'
printf 'no xz' >broken
objcopy --add-section .gnu_debugdata=broken stripped with-broken
is "$(names with-broken)" "${unnamed/stripped/with-broken}" 'damaged MiniDebugInfo costs its names'
like "$(notes)" 'with-broken: its MiniDebugInfo is damaged' 'and says so'
head -c $((300 << 20)) /dev/zero | xz -0 >zeros.xz
objcopy --add-section .gnu_debugdata=zeros.xz stripped with-zeros
names with-zeros >/dev/null
like "$(notes)" 'with-zeros: its MiniDebugInfo is huge' 'a bomb is not unpacked'

# --- beside the file ---
cp p.debug stripped.debug
is "$(names stripped)" 'hidden shown twice' 'NAME.debug beside it, by build-id'
sed 's/3;/5;/' p.c >other.c
cc -O1 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -rdynamic -o other other.c
objcopy --only-keep-debug other stripped.debug
is "$(names stripped)" "$unnamed" 'that of another build is not used'
rm stripped.debug

# --- split DWARF ---
cc -O1 -g -gsplit-dwarf -o split p.c
[ -e split-p.dwo ] && dwo=split-p.dwo || dwo=p.dwo
nm split | awk '$3 == "hidden" { print $1 }' >addresses.split
python3 "$perfdata" x.data "$tmp/split" <addresses.split
"$INSPECT" report x.data --json >x.json
is "$(notes | grep -c dwo)" 0 'split DWARF: read'
rm $dwo
"$INSPECT" report x.data --json >x.json
like "$(notes)" "split: the debug information of 1 compile unit lies in .dwo files.*$dwo" \
	'a missing .dwo file is named'
is "$(jq -r '.functions[] | select(.self_samples > 0).function' x.json)" hidden 'its functions keep their names'


# Of two such units only the one that has samples is opened.
sed 's/main/other_main/; s/hidden/unused/g; s/shown/unseen/g' p.c >q.c
cc -O1 -g -gsplit-dwarf -o split p.c q.c && rm -f ./*.dwo
python3 "$perfdata" x.data "$tmp/split" < <(nm split | awk '$3 == "hidden" { print $1 }')
"$INSPECT" report x.data --json >x.json
like "$(notes)" 'the debug information of 1 compile unit lies' 'units without samples are not looked for'
python3 "$perfdata" x.data "$tmp/split" < <(nm split | awk '$3 == "hidden" || $3 == "unused" { print $1 }')
"$INSPECT" report x.data --json >x.json
like "$(notes)" 'the debug information of 2 compile units lies' 'of both, both'
touch split.dwp
"$INSPECT" report x.data --json >x.json
like "$(notes)" "\.dwo\); $tmp/split\.dwp may have them, but this libdw reads no \.dwp" 'a .dwp file is named'
rm split.dwp

# --- damage ---
cp p hurt
off=$(readelf -SW p | sed -n 's/.* \.debug_line *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
printf '\1\0\0\0\1\0' | dd of=hurt bs=1 seek=$((16#$off)) conv=notrunc status=none
is "$(names hurt)" 'hidden shown twice' 'a damaged line table costs no names'
like "$(notes)" 'hurt: its debug information is damaged in 1 place' 'and is said, with its number'
is "$(jq '[.tree[] | select(.function == "hidden").line] | first' x.json)" null 'its lines are null'
cp p hurt
off=$(readelf -SW p | sed -n 's/.* \.debug_info *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
head -c 400 /dev/urandom | tr '\0' '\1' | dd of=hurt bs=1 seek=$((16#$off + 4)) conv=notrunc status=none
is "$(names hurt)" 'hidden shown' 'damaged DWARF: the symbols stay'
like "$(notes)" 'hurt: its debug information is damaged' 'and it is said once'
head -c 64 p >cut
python3 "$perfdata" x.data "$tmp/p" <addresses
cp p p.whole && cp cut p
"$INSPECT" report x.data --json >x.json
like "$(notes)" 'no ELF file: its functions have no names' 'a cut ELF file costs its names'
cp p.whole p

# --- another root: its debug file, before ours ---
mkdir -p root
objcopy --strip-all p root/prog
mkdir -p "root/${debug_path%/*}"
cp p.debug "root/$debug_path"
ldd p | grep -o '/[^ ]*' | while read -r lib; do
	mkdir -p "root${lib%/*}"
	cp "$lib" "root$lib"
done
if [ "$(id -u)" = 0 ] && chroot root /prog >/dev/null 2>&1; then
	chroot root /prog run >/dev/null &
	pid=$!
	until_used $pid 0.1
	"$INSPECT" record -q -F 999 -p $pid -d 0.3 -o root.data
	kill $pid
	"$INSPECT" report --json root.data >x.json
	like "$(jq -r '[.functions[].function] | sort | join(" ")' x.json)" 'hidden .*shown.* twice' \
		'a debug file in the root of the target'
	# A symlink leads to where it would lead the target, not into our root.
	mv "root/$debug_path" "root/usr/moved"
	ln -s /usr/moved "root/$debug_path"
	chroot root /prog run >/dev/null &
	pid=$!
	until_used $pid 0.1
	"$INSPECT" record -q -F 999 -p $pid -d 0.3 -o root.data
	kill $pid
	like "$("$INSPECT" report --json root.data | jq -r '[.functions[].function] | sort | join(" ")')" \
		'hidden .*shown.* twice' 'also behind a symlink of that root'
	# By .gnu_debuglink, there alone: beside the program, and not of the host.
	rm "root/$debug_path" "root/usr/moved"
	mkdir root/.debug
	cp p.debug root/.debug/linked.debug
	cp p.debug linked.debug
	objcopy --strip-all --remove-section .note.gnu.build-id --add-gnu-debuglink=linked.debug p root/prog
	rm linked.debug
	chroot root /prog run >/dev/null &
	pid=$!
	sleep 0.2
	"$INSPECT" record -q -F 999 -p $pid -d 0.3 -o root.data
	kill $pid
	like "$("$INSPECT" report --json root.data | jq -r '[.functions[].function] | sort | join(" ")')" \
		'hidden .*shown.* twice' 'a .gnu_debuglink in the root of the target'
	printf x >>root/.debug/linked.debug
	chroot root /prog run >/dev/null &
	pid=$!
	sleep 0.2
	"$INSPECT" record -q -F 999 -p $pid -d 0.3 -o root.data
	kill $pid
	unlike "$("$INSPECT" report --json root.data | jq -r '[.functions[].function] | sort | join(" ")')" \
		'hidden|twice' 'one whose checksum is another is not used'
else
	skip 'needs root and a chroot' 4
fi

# --- debuginfod ---
mkdir -p "www/buildid/$id"
cp p.debug "www/buildid/$id/debuginfo"
cat >server.py <<'END'
import http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        print(self.path, file=open("requests", "a"))
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                         lambda *a: Handler(*a, directory="www"))
print(server.server_port, file=open("port", "w"), flush=True)
server.serve_forever()
END
python3 server.py 2>/dev/null &
server=$!
for _ in $(seq 100); do
	[ -s port ] && break
	sleep 0.05
done
touch requests
export DEBUGINFOD_URLS=http://127.0.0.1:$(cat port)
names stripped >found
if notes | grep -q 'libdebuginfod.so.1 is not installed'; then
	skip 'no libdebuginfod here' 8
else
	is "$(cat found)" 'hidden shown twice' 'debuginfod: names and inlines from the server'
	like "$(notes)" 'debuginfod: asked for 1 debug file, found 1, in [0-9.]+ [mµ]?s' 'says what was asked'
	is "$(wc -l <requests)" 1 'one request'
	is "$(names stripped)" 'hidden shown twice' 'again'
	is "$(wc -l <requests)" 1 'from the cache'
	rm -rf cache
	is "$(names stripped --offline)" "$unnamed" '--offline'
	is "$(wc -l <requests)" 1 '--offline: nothing is asked'
	objcopy --only-keep-debug other "www/buildid/$id/debuginfo"
	is "$(names stripped)" "$unnamed" 'what a server sends with another build-id is not used'
fi
kill $server
DEBUGINFOD_URLS=http://127.0.0.1:1 names stripped >found
is "$(cat found)" "$unnamed" 'no server: no names'
