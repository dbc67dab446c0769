# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
#
# What lanes written in bash share. Sourced: `. "${0%/*}/common.sh"`. Sets
#   SOURCE      the repository          BUILD_ROOT  its build/
#   WORK        build/tests/LANE, made: where a lane puts what it builds
# and ends the lane with `finish`.
set -u

SOURCE=${WEFT_SOURCE:-$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)}
BUILD_ROOT=${WEFT_BUILD_ROOT:-$SOURCE/build}
WORK=$BUILD_ROOT/tests/${0##*/}
mkdir -p "$WORK" || exit 1
unset WEFT_STACK WEFT_GUARD WEFT_BUDGET WEFT_FAIL_EVERY
lane_failures=0

CLANG=clang-16
type -P clang-16 >/dev/null || CLANG=clang
POLICIES='fixed overcommit commit'

note()
{
	printf '%s\n' "$*" >&2
}

ok()
{
	printf 'ok - %s\n' "$1"
}

# not_ok WHAT WHY
not_ok()
{
	printf 'not ok - %s: %s\n' "$1" "$2"
	lane_failures=$((lane_failures + 1))
}

# skip WHAT WHY
skip()
{
	printf 'skip - %s: %s\n' "$1" "$2"
}

# check WHAT COMMAND…: ok if the command succeeds. What it prints is a detail.
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

# check_fails WHAT COMMAND…: a canary; ok if the command fails.
check_fails()
{
	local what=$1 status

	shift
	note "== $what (must fail): $*"
	"$@" >&2
	status=$?
	if ((status)); then ok "canary: $what"; else not_ok "canary: $what" "was not caught"; fi
}

# count_tap: passes the results of TAP programs on as ours, with a prefix ($1), and everything to the log; counts failures.
count_tap()
{
	local line

	while IFS= read -r line; do
		note "$line"
		case $line in
		'ok '*'# SKIP'*) skip "$1${line#*# SKIP }" "the test says so" ;;
		'ok '*) ok "$1${line#* - }" ;;
		'not ok '*) not_ok "$1${line#* - }" "see the log" ;;
		esac
	done
}

# section FILE NAME: what it holds. Not by /dev/stdout: an objcopy that fails, and may, puts a file in its place.
section()
{
	objcopy -O binary --only-section="$2" --set-section-flags "$2=alloc" "$1" "$WORK/section" && cat "$WORK/section"
}

finish()
{
	exit $((lane_failures > 0))
}

# sanitizer_works CC KIND: is its run time installed?
sanitizer_works()
{
	printf 'int main(void) { return 0; }\n' |
		"$1" -x c - "-fsanitize=$2" -o "$WORK/probe" >/dev/null 2>&1 && "$WORK/probe" >/dev/null 2>&1
}

# library DIR CC FLAGS…: the library's objects, compiled with these flags, in DIR/*.o; made anew only if something changed.
library()
{
	local dir=$1 cc=$2 key

	shift 2
	key="$cc $*"
	if [[ -e $dir/key && $(<"$dir/key") == "$key" && -z $(find "$SOURCE/src" "$SOURCE/include" -newer "$dir/key" -print -quit) ]]; then
		return 0
	fi
	rm -rf -- "$dir" && mkdir -p "$dir/.new" || return 1
	# shellcheck disable=SC2016
	(cd "$SOURCE" && printf '%s\n' src/*/*.c src/arch/*.S |
		xargs -P 2 -I{} bash -c 'o=${1//\//_}; shift; "$@" -o "${0}/${o%.*}.o" -c {}' "$dir/.new" {} \
			"$cc" -std=gnu11 -g -fPIC -fexceptions -fvisibility=hidden -Iinclude -Isrc "$@" >&2) || return 1
	mv -- "$dir"/.new/*.o "$dir" && rmdir "$dir/.new" && printf '%s' "$key" >"$dir/key"
}

# program OUT LIBRARY CC FLAGS… SOURCES…: compile and link a program with a library made as above.
program()
{
	local out=$1 library=$2 cc=$3

	shift 3
	"$cc" -std=gnu11 -g -I"$SOURCE/include" -I"$SOURCE/src" -I"$SOURCE/tests" "$@" "$library"/*.o \
		'-Wl,--export-dynamic-symbol=weft.effect.*' -pthread -o "$out" >&2
}
