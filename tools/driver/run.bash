# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# weft run: compile into a temporary directory, then become the program, so that its signals, its terminal and its exit
# code are its own.

# shellcheck source=tools/driver/cc.bash
. "$driver/cc.bash" || exit 70

# compile LANGUAGE ARGS…
compile()
{
	local compiler before after launch

	choose_compiler "$1"
	shift
	surround "$@"
	"${launch[@]}" "${compiler[@]}" "${before[@]}" "$@" "${after[@]}"
}

is_cxx()
{
	[[ $1 == *.@(cc|cp|cpp|cxx|c++|C|CPP|ii) ]]
}

# Remove the directory once this process, by then the program, has ended. Not a child of it: a program may wait for all
# of its children.
remove_later()
{
	(
		(
			trap '' INT HUP TERM QUIT
			tail --pid="$1" -f /dev/null
			rm -rf -- "$2"
		) </dev/null >/dev/null 2>&1 &
	)
}

# Sets policy, instrument, sources, flags and rest (what follows "--").
read_run_arguments()
{
	while (($#)); do
		case $1 in
		--)
			shift
			rest=("$@")
			return
			;;
		--policy | --policy=* | --instrument | --instrument=* | --no-install)
			own_options "$@"
			shift "$taken"
			continue
			;;
		-o | -c | -S | -E | -shared) die 2 "'$1' makes no program to run: use 'weft cc'" ;;
		-I | -D | -U | -L | -l | -include | -isystem | -idirafter | -x)
			(($# >= 2)) || die 2 "'$1' needs an argument"
			flags+=("$1" "$2")
			shift
			;;
		--*) die 2 "unknown option '$1': see 'weft help run'" ;;
		-?*) flags+=("$1") ;;
		*)
			[[ -e $1 ]] || die 2 "there is no file '$1'"
			[[ ! -d $1 ]] || die 2 "'$1' is a directory"
			sources+=("$1")
			;;
		esac
		shift
	done
}

weft_run()
{
	local policy='' instrument='' taken sources=() flags=() rest=() dir program language=cc source objects=()

	shopt -s extglob
	read_run_arguments "$@"
	((${#sources[@]})) || die 2 "nothing to run: weft run [--policy P] FILE.c… [-- ARGS]"
	dir=$(mktemp -d "${TMPDIR:-/tmp}/weft-run.XXXXXX") || die 1 "cannot write to ${TMPDIR:-/tmp}"
	# shellcheck disable=SC2064
	trap "$(printf 'rm -rf -- %q' "$dir")" EXIT
	for source in "${sources[@]}"; do
		! is_cxx "$source" || language=c++
	done
	# A C++ compiler takes .c files for C++.
	for source in "${sources[@]}"; do
		if [[ $language == c++ && $source == *.c ]]; then
			compile cc -O2 -g "${flags[@]}" -c "$source" -o "$dir/${#objects[@]}.o" || exit 1
			objects+=("$dir/${#objects[@]}.o")
		else
			objects+=("$source")
		fi
	done
	program=${sources[0]##*/}
	program=$dir/${program%.*}
	compile "$language" -O2 -g "${objects[@]}" -o "$program" "${flags[@]}" || exit 1
	trap - EXIT
	remove_later $$ "$dir"
	exec "$program" "${rest[@]}"
}
