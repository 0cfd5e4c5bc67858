#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs beside others: what it asserts does not depend on what else the machine does.
# The job in docs/ci-gate.md, step by step, on a small repository.
. "$(dirname "$0")/lib.sh"
command -v git >/dev/null || skip_all 'git is not here'
doc=$PWD/docs/ci-gate.md
mkdir "$tmp/bin" "$tmp/repo"
# Nothing of this machine is changed, and the tool is the one under test.
printf '#!/bin/sh\nexit 0\n' >"$tmp/bin/sudo"
ln -s "$INSPECT" "$tmp/bin/inspect"
chmod +x "$tmp/bin/sudo"
export PATH=$tmp/bin:$PATH GITHUB_ENV=$tmp/env GITHUB_STEP_SUMMARY=$tmp/summary.md GITHUB_BASE_REF=main
export GITHUB_WORKSPACE=$tmp/repo GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_GLOBAL=/dev/null

# step NAME: its shell lines, with their indentation taken off
step() {
	awk -v name="- name: $1" '
		index($0, name) { found = 1; next }
		found && /^ *run: \|/ { inside = 1; next }
		inside && (substr($0, 1, 10) == "          " || $0 == "") { print substr($0, 11); next }
		inside { exit }' "$doc"
}
variable() {
	sed -n "s/^  $1: \(.*[^ ]\)  *#.*/\1/p" "$doc"
}
BUILD=$(variable BUILD)
MEASURE=$(variable MEASURE)
export BUILD MEASURE
# As GitHub runs a step: bash -e, with what earlier steps have put into the environment.
run_step() {
	local text
	text=$(step "$1")
	ok '[ -n "$text" ]' "the step '$1' is there"
	(
		cd "$GITHUB_WORKSPACE" || exit 1
		[ ! -e "$GITHUB_ENV" ] || while IFS= read -r line; do export "${line?}"; done <"$GITHUB_ENV"
		bash -e -c "$text"
	) >"$tmp/out" 2>"$tmp/err"
}

cat >"$tmp/repo/Makefile" <<'END'
program:
	printf '#!/bin/sh\nhead -c $(shell cat work) /dev/zero\n' >program
	chmod +x program
END
cd "$tmp/repo" || exit 1
echo 10000 >work
touch input
{ git init -q -b main && git add . && git commit -q -m base && git update-ref refs/remotes/origin/main HEAD; } ||
	skip_all 'no repository can be made here'

run_step 'Choose the limit'
is "$?" 0 'choosing the limit'
like "$(cat "$GITHUB_ENV")" '^LIMIT=(instructions:\+2%|task-clock:\+5%&\+2ms)$' 'is one of the two'
# Judged by the bytes that it writes: those are the same in every run.
echo 'LIMIT=written:+5%' >"$GITHUB_ENV"
run_step 'Measure the target branch'
is "$?" 0 'measuring the target branch' || diag "$(cat "$tmp/err")"
is "$(jq '.runs | length' base.json)" 10 'ten times'

# A change that changes nothing, and one that doubles the work.
run_step 'Gate the change'
rc=$?
ok '[ $rc = 0 ]' "the same program passes ($rc)" || diag "$(cat "$tmp/err")"
ok 'grep -q "^### gate" "$GITHUB_STEP_SUMMARY"' 'the summary has the gate'
ok '[ -s change.json ]' 'the result is kept'
echo 20000 >work
rm program
run_step 'Gate the change'
is "$?" 3 'twice the work is a regression' || diag "$(cat "$tmp/err")"
ok 'grep -q "regression" "$GITHUB_STEP_SUMMARY"' 'and the summary says so'
