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

# A program that never calls weft_rt_run has no symbol of that name; a stripped program has no symbols at all.
check_that_it_has_tasks()
{
	local symbols

	symbols=$(nm -- "$program" 2>/dev/null) || return 0
	[[ ! $symbols || $symbols == *weft_rt_run* ]] ||
		die 2 "nothing to simulate: no part of the program calls weft_rt_run, so it has no tasks"
}

# Uses compile_and_run's variables. The file of a program that fails is removed before a debugger can use it, so a
# message says how to build it again.
prepare_simulation()
{
	local build=() name=${program##*/}

	check_that_it_has_tasks
	build=("$0" "$language" -O2 -g)
	[[ ! $policy ]] || build+=(--policy "$policy")
	[[ ! $instrument || $policy ]] || build+=(--instrument "$instrument")
	[[ ! $activities ]] || build+=(--activities)
	[[ ! $yields ]] || build+=(--yields "$yields")
	build+=("${sources[@]}" "${flags[@]}" -o "$name")
	printf -v WEFT_SIMULATE_BUILD '%q ' "${build[@]}"
	export WEFT_SIMULATE_BUILD+='&& ' WEFT_SIMULATE_PROGRAM=./$name
	# The process that reports on seeds is this process, by then the program.
	export WEFT_SIMULATE_TELL=$$ WEFT_SIMULATE_JOBS=$jobs
}

weft_simulate()
{
	run_options+=(--seeds --first --jobs)
	local seeds=1000 first=0 jobs='' value others=() simulates=yes

	while (($#)) && [[ $1 != -- ]]; do
		case $1 in
		--seeds | --first | --jobs)
			(($# >= 2)) || die 2 "$1 needs a number"
			read_number "$1" "$2"
			printf -v "${1#--}" %s "$value"
			shift
			;;
		*) others+=("$1") ;;
		esac
		shift
	done
	((seeds > 0)) || die 2 "--seeds needs a number above 0"
	[[ $jobs ]] || jobs=$(nproc 2>/dev/null) || jobs=1
	((jobs > 0 && jobs <= 1024)) || die 2 "--jobs needs a number from 1 to 1024"
	export WEFT_SIMULATE=$first+$seeds
	posix='' compile_and_run "${others[@]}" "$@"
}
