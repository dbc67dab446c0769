# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# What every part of the command uses. The exit codes are in help.bash.

say()
{
	printf 'weft: %s\n' "$*" >&2
}

# die CODE TEXT: end with one line.
die()
{
	local code=$1

	shift
	say "$@"
	exit "$code"
}

have()
{
	type -P "$1" >/dev/null
}

weft_version()
{
	local line

	if [[ $root ]]; then
		while read -r line; do
			[[ $line =~ ^'#define WEFT_VERSION_STRING "'(.*)'"' ]] && version=${BASH_REMATCH[1]}
		done <"$include/weft/base.h"
	fi
	printf '%s' "$version"
}

# Set by those whose standard error a build reads: show progress to a person only.
quiet=''

# tick WHAT LOG: from two seconds on, tell that WHAT goes on. Ends with this shell.
tick()
{
	local what=$1 log=$2 seconds=0 line

	[[ -t 2 || ! $quiet ]] || return 0
	while kill -0 $$ 2>/dev/null; do
		sleep 1 >/dev/null 2>&1
		((seconds++))
		((seconds >= 2)) || continue
		line=$(tail -n 1 -- "$log" 2>/dev/null | tr -cd '[:print:]')
		if [[ -t 2 ]]; then
			printf '\r\033[Kweft: %s … %d s: %.60s' "$what" "$seconds" "$line" >&2
		elif ((seconds == 2 || seconds % 10 == 0)); then
			printf 'weft: %s … %d s: %.80s\n' "$what" "$seconds" "$line" >&2
		fi
	done
}

# progress WHAT COMMAND…: run the command quietly, showing that it goes on; if it fails, show the end of what it printed.
progress()
{
	local what=$1 log ticker status

	shift
	log=$(mktemp "${TMPDIR:-/tmp}/weft-log.XXXXXX") || die 70 "cannot write to ${TMPDIR:-/tmp}"
	tick "$what" "$log" &
	ticker=$!
	# The ticker's lifeline is this shell; the command stays in the foreground, so that an interrupt reaches it.
	"$@" </dev/null >"$log" 2>&1
	status=$?
	kill "$ticker" 2>/dev/null
	wait "$ticker" 2>/dev/null
	[[ ! -t 2 ]] || printf '\r\033[K' >&2
	if ((status)); then
		say "$what failed (exit code $status); the end of its output:"
		tail -n 30 -- "$log" >&2
	fi
	rm -f -- "$log"
	return "$status"
}

# system_python: Debian's, whose modules its packages install, not whatever PATH puts before it.
system_python()
{
	if [[ -x /usr/bin/python3 ]]; then
		printf /usr/bin/python3
	else
		type -P python3
	fi
}
