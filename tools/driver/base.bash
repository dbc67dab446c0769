# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# Functions that every part of the command uses. The exit codes are in help.bash.

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

# unknown_option WORD COMMAND OPTION…: end with the fault and the option that was probably meant.
unknown_option()
{
	local word=$1 command=$2 option
	shift 2
	for option; do
		! is_similar "$word" "$option" || die 2 "unknown option '$word': did you mean '$option'?"
	done
	die 2 "unknown option '$word': see 'weft help $command'"
}

# is_similar WORD OPTION: equal except for the dashes in front, or for one letter that is missing, added, changed, or
# exchanged with the next letter.
is_similar()
{
	local a=${1#-} b=${2#--} i=0

	a=${a#-} a=${a%%=*}
	((${#a} > 2)) || [[ $a == "$b" ]] || return 1
	while ((i < ${#a} && i < ${#b})) && [[ ${a:i:1} == "${b:i:1}" ]]; do
		((i++))
	done
	[[ ${a:i} == "${b:i}" || ${a:i+1} == "${b:i+1}" || ${a:i+1} == "${b:i}" || ${a:i} == "${b:i+1}" ||
		(${a:i:2} == "${b:i+1:1}${b:i:1}" && ${a:i+2} == "${b:i+2}") ]]
}

# How to get Debian's packages, for messages: without recommended packages, which can be large.
get='apt-get install --no-install-recommends'

have()
{
	type -P "$1" >/dev/null
}

# asks_for_help ARGS…: does one of the words before a "--" ask for help?
asks_for_help()
{
	local word

	for word; do
		case $word in
		--) return 1 ;;
		-h | --help) return 0 ;;
		esac
	done
	return 1
}

# For Ctrl-C: the current work, the state that it leaves behind, the process that shows progress, and standard error
# before a redirection.
doing='' left='nothing is left behind' ticker='' stderr=2

interrupted()
{
	trap '' INT
	exec 2>&"$stderr"
	[[ ! $ticker ]] || { kill "$ticker"; wait "$ticker"; } 2>/dev/null
	[[ ! -t 2 ]] || printf '\r\033[K' >&2
	die 130 "interrupted${doing:+ while $doing}: $left"
}

# A directory for this call only, removed when the call ends. Sets `scratch`.
scratch=''
make_scratch()
{
	[[ ! $scratch ]] || return 0
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/weft.XXXXXX" 2>/dev/null) ||
		die 1 "cannot write to ${TMPDIR:-/tmp}: set TMPDIR to a directory for temporary files"
	trap 'rm -rf -- "$scratch"' EXIT
}

# become COMMAND…: no code after it runs, so the directory is removed first.
become()
{
	[[ ! $scratch ]] || rm -rf -- "$scratch"
	exec "$@"
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

# Set by commands whose standard error a build reads: show progress to a person only.
quiet=''

# tick WHAT LOG: from two seconds on, show that WHAT is still running. Ends with this shell.
tick()
{
	local what=$1 log=$2 seconds=0 line

	[[ -t 2 || ! $quiet ]] || return 0
	while kill -0 $$ 2>/dev/null; do
		sleep 1 >/dev/null 2>&1
		kill -0 $$ 2>/dev/null || return
		((seconds++))
		((seconds >= 2)) || continue
		line=$(tail -n 1 -- "$log" 2>/dev/null | tr -cd '[:print:]')
		[[ $line != *ock*'held by process '* ]] ||
			line="waiting for process ${line##*held by process }" line="${line%%...*}, which installs packages"
		if [[ -t 2 ]]; then
			printf '\r\033[Kweft: %s … %d s: %.60s' "$what" "$seconds" "$line" >&2
		elif ((seconds == 2 || seconds % 10 == 0)); then
			printf 'weft: %s … %d s: %.80s\n' "$what" "$seconds" "$line" >&2
		fi
	done
}

# progress WHAT COMMAND…: run the command quietly, and show that it is running. Its output is in $scratch/log.
progress()
{
	local status doing=$1

	shift
	make_scratch
	: >"$scratch/log"
	tick "$doing" "$scratch/log" &
	ticker=$!
	# The ticker lives as long as this shell; the command stays in the foreground, so that an interrupt reaches it.
	("$@") </dev/null >"$scratch/log" 2>&1
	status=$?
	kill "$ticker" 2>/dev/null
	wait "$ticker" 2>/dev/null
	ticker=''
	[[ ! -t 2 ]] || printf '\r\033[K' >&2
	return "$status"
}

# system_python: Debian's Python, for which its packages install modules, not another Python that PATH puts before it.
system_python()
{
	if [[ -x /usr/bin/python3 ]]; then
		printf /usr/bin/python3
	else
		type -P python3
	fi
}
