# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# For the shell tests: TAP lines, the tool's path and a folder that is removed at the end.
#
#	. "$(dirname "$0")/lib.sh"
#	plan 2
#	ok '[ -s "$tmp/out" ]' 'writes something'
#	is "$(wc -l <"$tmp/out")" 3 'three lines'
#
# Without `plan` the number of tests is printed at the end. Every test runs alone, from anywhere.
set -u
exec </dev/null # what is piped in would be read
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export LC_ALL=C.UTF-8
O=${O:-build}
[ -x "$O/inspect" ] || {
	echo "Bail out! no $O/inspect: run make first"
	exit 1
}
O=$(cd "$O" && pwd)
INSPECT=${INSPECT:-$O/inspect}
W=$O/workloads
tmp=$(mktemp -d "${TMPDIR:-/tmp}/inspect-test.XXXXXX")
export O INSPECT W tmp
tests_run=0
tests_failed=0
tests_planned=
exit_commands=
shell_pid=$BASHPID

finish() {
	local rc=$? pids
	[ "$BASHPID" = "$shell_pid" ] || return
	# What the test started in the background and has not ended itself.
	pids=$(jobs -p)
	[ -z "$pids" ] || { kill $pids; wait $pids; } 2>/dev/null
	eval "$exit_commands"
	rm -rf "$tmp"
	[ -n "$tests_planned" ] || echo "1..$tests_run"
	[ "$tests_failed" = 0 ] || exit 1
	exit $rc
}
trap finish EXIT
trap 'exit 130' INT TERM

# What is to be undone at the end, however the test ends; the last one first.
#	on_exit "rmdir '$group'"
on_exit() {
	exit_commands="$1
$exit_commands"
}

plan() {
	tests_planned=$1
	echo "1..$1"
}

# Leaves the whole file out: `skip_all "no hardware counters here"`.
skip_all() {
	tests_planned=0
	echo "1..0 # SKIP $1"
	exit 0
}

# One test that can't run here; say why. `skip REASON [COUNT]`
skip() {
	local i
	for ((i = 0; i < ${2:-1}; i++)); do
		echo "ok $((++tests_run)) # SKIP $1"
	done
}

# Text for stderr, where a failure is explained.
diag() {
	printf '%s\n' "$*" | sed 's/^/# /' >&2
}

# result 0|1 NAME: prints the TAP line; true when it passed.
result() {
	local name=${2//$'\n'/ }
	name=${name//#/}
	if [ "$1" = 0 ]; then
		echo "ok $((++tests_run)) - $name"
		return 0
	fi
	echo "not ok $((++tests_run)) - $name"
	tests_failed=$((tests_failed + 1))
	diag "not ok $tests_run - $name (${0##*/} line ${BASH_LINENO[1]})"
	return 1
}

# perf's text with names as inspect shows them: "clock_gettime", not "clock_gettime@@GLIBC_2.17".
no_versions() {
	sed -E 's/@@?[A-Z][A-Za-z_]*_[0-9.]+//'
}

# A shell condition: ok '[ 1 -lt 2 ]' NAME
ok() {
	local rc=0
	eval "$1" >/dev/null 2>"$tmp/.ok-stderr" || rc=1
	result $rc "$2" || {
		diag "  false: $1"
		[ ! -s "$tmp/.ok-stderr" ] || diag "$(head -c 2000 "$tmp/.ok-stderr")"
		return 1
	}
}

# Equal text: is GOT WANT NAME
is() {
	local rc=0
	[ "$1" = "$2" ] || rc=1
	result $rc "$3" || {
		diag "     got: ${1:0:2000}"
		diag "  wanted: ${2:0:2000}"
		return 1
	}
}

# An extended regular expression that matches: like TEXT REGEX NAME
like() {
	local rc=0
	[[ $1 =~ $2 ]] || rc=1
	result $rc "$3" || {
		diag "       got: ${1:0:2000}"
		diag "  no match: $2"
		return 1
	}
}

unlike() {
	local rc=0
	[[ ! $1 =~ $2 ]] || rc=1
	result $rc "$3" || {
		diag "      got: ${1:0:2000}"
		diag "  matches: $2"
		return 1
	}
}

# within GOT WANTED TOLERANCE: whether GOT is a number that near
within() {
	awk -v got="$1" -v want="$2" -v tolerance="$3" 'BEGIN {
		number = "^[-+]?[0-9]*[.]?[0-9]+([eE][-+]?[0-9]+)?$"
		exit !(got ~ number && got - want <= tolerance && want - got <= tolerance)
	}' </dev/null
}

# A number within a distance of what it should be: near GOT WANT TOLERANCE NAME
near() {
	local rc=0
	within "$1" "$2" "$3" || rc=1
	result $rc "$4" || {
		diag "  got '$1', wanted $2 within $3"
		return 1
	}
}

# How far chance takes a share of PERCENT % among SAMPLES, in points (3.5 standard deviations: once
# in 2000 times): chance PERCENT SAMPLES
chance() {
	awk -v p="$1" -v n="$2" 'BEGIN { print 3.5 * sqrt(p * (100 - p) / (n > 0 ? n : 1)) }'
}

# As many samples as the `ticks` workload allows, which wrote FILE, within PERCENT: no fewer than its
# own ticks and CPU time, no more than its task-clock: samples_near GOT HZ FILE PERCENT NAME
samples_near() {
	local least most
	read -r least most < <(awk -v hz="$2" -v percent="$4" '{ v[$1] = $2 } END {
		least = v["cpu"] / 1e9 * hz
		least = v["ticks"] < least ? v["ticks"] : least
		print least * (1 - percent / 100), v["clock"] / 1e9 * hz * (1 + percent / 100)
	}' "$3")
	near "$1" "$(awk "BEGIN { print ($least + $most) / 2 }")" \
		"$(awk "BEGIN { print ($most - $least) / 2 }")" "$5"
}

# Waits until a process has used some CPU time, on a machine that may be busy: until_used PID SECONDS
until_used() {
	local i ticks
	for ((i = 0; i < 600; i++)); do
		ticks=$(awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat" 2>/dev/null) || return
		awk "BEGIN { exit !($ticks >= $2 * $(getconf CLK_TCK)) }" && return
		sleep 0.05
	done
}

# The exit code of a command, whose output goes to $tmp/out and $tmp/err: exits CODE NAME CMD ARG…
exits() {
	local want=$1 name=$2 rc=0
	shift 2
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
	[ "$rc" = "$want" ]
	result $? "$name" || {
		diag "  exit $rc, wanted $want: $*"
		diag "$(head -c 2000 "$tmp/err")"
		return 1
	}
}
