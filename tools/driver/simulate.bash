# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# weft simulate: weft run, and the program's weft_rt_run tries many orders of its tasks first (weft/sched.h).

# shellcheck source=tools/driver/run.bash
. "$driver/run.bash" || exit 70

# number OPTION VALUE: sets `value`.
read_number()
{
	[[ $2 =~ ^[0-9]{1,18}$ ]] || die 2 "$1 needs a number, not '$2'"
	value=$2
}

weft_simulate()
{
	run_options+=(--seeds --first)
	local seeds=1000 first=0 value others=()

	while (($#)) && [[ $1 != -- ]]; do
		case $1 in
		--seeds | --first)
			(($# >= 2)) || die 2 "$1 needs a number"
			read_number "$1" "$2"
			if [[ $1 == --seeds ]]; then seeds=$value; else first=$value; fi
			shift
			;;
		*) others+=("$1") ;;
		esac
		shift
	done
	((seeds > 0)) || die 2 "--seeds needs a number above 0"
	export WEFT_SIMULATE=$first+$seeds
	posix='' compile_and_run "${others[@]}" "$@"
}
