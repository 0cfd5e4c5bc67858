#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# Dispatch, exit codes, and how main ends.
. "$(dirname "$0")/lib.sh"

# --- without a command ---
exits 2 'no command at all' "$INSPECT"
like "$(cat "$tmp/err")" 'usage: inspect COMMAND' 'shows the usage on stderr'
ok '[ ! -s "$tmp/out" ]' 'and nothing on stdout'
exits 2 'an option first' "$INSPECT" -p 1
like "$(cat "$tmp/err")" 'a command comes before the options: -p' 'says so'

# --- version ---
exits 0 '--version' "$INSPECT" --version
like "$(cat "$tmp/out")" '^inspect [0-9]+\.[0-9]+$' 'one line'
exits 0 '--version -v' "$INSPECT" --version -v
version=$(cat "$tmp/out")
for word in libelf libdw libbpf libpfm4 zlib zstd demangler compiler machine; do
	like "$version" "$word:" "--version -v: $word"
done
like "$version" "machine: +$(uname -m)" 'of this machine'

# --- unknown words ---
exits 2 'an unknown command' "$INSPECT" recrod
like "$(cat "$tmp/err")" "^inspect: there is no command 'recrod'" 'is named'
like "$(cat "$tmp/err")" 'fix: inspect record' 'and so is the nearest'
exits 2 'nothing near' "$INSPECT" zzzzzz
like "$(cat "$tmp/err")" 'fix: inspect --help' 'then the list'
for name in top script annotate list; do
	exits 2 "perf's $name" "$INSPECT" $name
	like "$(cat "$tmp/err")" "there is no command '$name'.*fix: .*(inspect|perf|strace) " "$name: what there is instead"
done
exits 2 'a hostile name' "$INSPECT" $'x\e[31m\ny'
is "$(wc -l <"$tmp/err")" 2 'stays on its line'
ok '! grep -q $'"'\e'"' "$tmp/err"' 'without escape sequences'

# --- usage errors of a command ---
exits 2 'an unknown option' "$INSPECT" doctor --jsno
is "$(head -1 "$tmp/err")" 'inspect doctor: unknown option --jsno' 'one line for it'
like "$(cat "$tmp/err")" 'fix: --json' 'with the nearest'
exits 2 'the same under --json' "$INSPECT" doctor --json --nonsense
is "$(jq -r '.schema + " " + .command + " " + .error' "$tmp/err")" \
	'inspect.error/1 doctor unknown option --nonsense' 'is an object'
is "$(wc -l <"$tmp/err")" 1 'in one line'
is "$(jq -r .errno "$tmp/err")" 22 'with its errno'

# --- what cannot be written ---
for args in --help '--version -v' 'help doctor' doctor 'doctor --json'; do
	exits 125 "$args > /dev/full" bash -c "\"\$0\" $args >/dev/full" "$INSPECT"
	is "$(grep -c 'cannot write to stdout: ' "$tmp/err")" 1 'one line says so'
done
exits 125 'stdout is closed' bash -c '"$0" --help >&-' "$INSPECT"

# --- a reader that has gone ---
python3 - "$INSPECT" >"$tmp/pipes" 2>&1 <<'END'
import os, signal, subprocess, sys

def end(restore_signals):
    r, w = os.pipe()
    os.close(r)
    run = subprocess.Popen([sys.argv[1], "--help"], stdout=w, stderr=subprocess.PIPE,
                           restore_signals=restore_signals)
    err = run.communicate()[1]
    return run.returncode, err

code, err = end(True)  # SIGPIPE kills, as for any tool
print("killed" if code == -signal.SIGPIPE and not err else (code, err))
code, err = end(False)  # Python ignores it, and so do we then
print("quiet" if code == 141 and not err else (code, err))
END
is "$(sed -n 1p "$tmp/pipes")" killed 'a closed pipe ends it silently'
is "$(sed -n 2p "$tmp/pipes")" quiet 'and also where the signal is ignored'
