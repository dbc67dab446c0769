# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# weft test, weft lab: fetch what they need, then hand over to Python.

# shellcheck source=tools/driver/packages.bash
. "$driver/packages.bash" || exit 70

# Sets `rest`: the arguments without ours.
suite_arguments()
{
	local argument

	rest=()
	for argument; do
		if [[ $argument == --no-install ]]; then may_install=no; else rest+=("$argument"); fi
	done
}

in_sources()
{
	[[ $root ]] || die 69 "'weft $1' runs in the source tree: use ./weft there"
	[[ -e $root/$2 ]] || die 70 "$root/$2 is not there"
}

# What cannot be is told before anything is installed: a pattern that is neither in the name of a part of the tests, with which
# their names begin, nor in what declares them, nor in the name of a lane, which is one test.
check_patterns()
{
	local file parts=() lanes=()

	for file in "$root"/tests/*/tests.cmake; do
		file=${file%/tests.cmake}
		parts+=("${file##*/}")
	done
	for file in "$root"/tests/lanes/*; do
		[[ ! -x $file ]] || lanes+=("${file##*/}")
	done
	while (($#)); do
		case $1 in
		--patience | --tree | --junit) shift ;;
		-*) ;;
		*)
			[[ " build ${parts[*]} " == *"${1%%.*}"* || " ${lanes[*]} " == *"$1"* ]] ||
				grep -qsF -e "$1" "$root"/tests/*/tests.cmake ||
				die 2 "no test's name contains '$1': names begin with ${parts[*]}${lanes:+, or are ${lanes[*]}}"
			;;
		esac
		(($# == 0)) || shift
	done
}

weft_test()
{
	local rest

	suite_arguments "$@"
	in_sources test tests/run.py
	check_patterns "${rest[@]}"
	need_packages "'weft test'" core test lab
	# Without these the tests of activities are skipped, which they say.
	(need_packages "compiling activities" activities) || say "the tests of activities are skipped"
	WEFT_SOURCE=$root WEFT_BUILD_ROOT=$root/build become "$(system_python)" "$root/tests/run.py" "${rest[@]}"
}

# What compiles activities, for the newest clang that is here. Without one their experiment is skipped, which the lab says.
build_activities()
{
	local version

	# shellcheck source=tools/driver/activities.bash
	. "$driver/activities.bash" || exit 70
	for version in "${activities_versions[@]}"; do
		if have "clang-$version" && plugin_is_there "$version"; then
			build_library "weft_activities_$version" release
			return
		fi
	done
}

weft_lab()
{
	local rest library_dir python

	suite_arguments "$@"
	in_sources lab lab/run.py
	[[ " ${rest[*]} " != *' --list '* ]] || become "$(system_python)" "$root/lab/run.py" "${rest[@]}"
	# Mistakes are told before anything is installed, built or measured.
	if python=$(system_python); then
		trap - INT # the lab says it
		WEFT_SOURCE=$root "$python" "$root/lab/run.py" --check "${rest[@]}" || exit
		trap interrupted INT
	fi
	need_packages "'weft lab'" core lab
	# shellcheck source=tools/driver/build.bash
	. "$driver/build.bash" || exit 70
	build_library weft release
	build_library weft_instrumentation release
	build_library weft_posix release
	build_activities
	WEFT_SOURCE=$root WEFT_BUILD=$library_dir become "$(system_python)" "$root/lab/run.py" "${rest[@]}"
}
