# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
#
# Functions shared by lanes written in bash. Sourced: `. "${0%/*}/common.sh"`. Sets
#   SOURCE      the repository          BUILD_ROOT  its build/
#   WORK        build/tests/LANE, created: the lane's build directory
# and ends the lane with `finish`.
set -u

SOURCE=${WEFT_SOURCE:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
BUILD_ROOT=${WEFT_BUILD_ROOT:-$SOURCE/build}
WORK=$BUILD_ROOT/tests/${0##*/}
mkdir -p "$WORK" || exit 1
unset WEFT_STACK WEFT_GUARD WEFT_BUDGET WEFT_FAIL_EVERY
lane_failures=0

for CLANG in clang-16 clang clang-{17..22} clang; do
	! type -P "$CLANG" >/dev/null || break
done
POLICIES='fixed overcommit commit'

note()
{
	printf '%s\n' "$*" >&2
}

ok()
{
	printf 'ok - %s\n' "$1"
}

# not_ok NAME REASON
not_ok()
{
	printf 'not ok - %s: %s\n' "$1" "$2"
	lane_failures=$((lane_failures + 1))
}

# skip NAME REASON
skip()
{
	printf 'skip - %s: %s\n' "$1" "$2"
}

# needs COMMAND…: a check whose commands are not installed is skipped by its name: `needs make || return`.
needs()
{
	local command

	for command; do
		type -P "$command" >/dev/null || { note "$command is not installed: ./weft test --full installs it"; return 77; }
	done
}

# check NAME COMMAND…: ok if the command succeeds. Its output is a detail.
check()
{
	local what=$1 status

	shift
	note "== $what: $*"
	"$@" >&2
	status=$?
	if ((status == 0)); then
		ok "$what"
	elif ((status == 77)); then
		skip "$what" "see the log"
	else
		not_ok "$what" "exit code $status"
	fi
	return "$status"
}

# check_fails NAME COMMAND…: a canary; ok if the command fails, skipped as `check` does.
check_fails()
{
	local what=$1 status

	shift
	note "== $what (must fail): $*"
	"$@" >&2
	status=$?
	case $status in
	0) not_ok "canary: $what" "was not caught" ;;
	77) skip "canary: $what" "see the log" ;;
	*) ok "canary: $what" ;;
	esac
}

# section FILE NAME: the contents of a section. Not by /dev/stdout: an objcopy that fails, which is allowed, replaces it
# by a file.
section()
{
	objcopy -O binary --only-section="$2" --set-section-flags "$2=alloc" "$1" "$WORK/section" && cat "$WORK/section"
}

finish()
{
	exit $((lane_failures > 0))
}
