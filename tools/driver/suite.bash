# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# weft test, weft lab: fetch the packages that they need, then hand over to Python.

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

# Sets `parts`, with which the tests' names begin, and `lanes`, each of which is a test.
find_parts()
{
	local file

	parts=() lanes=()
	for file in "$root"/tests/*/tests.cmake; do
		file=${file%/tests.cmake}
		parts+=("${file##*/}")
	done
	for file in "$root"/tests/lanes/*; do
		[[ ! -x $file ]] || lanes+=("${file##*/}")
	done
}

# Mistakes are reported before anything is installed: an option that does not exist, and a pattern that is neither in the name of a
# part or a lane, nor in a file that declares tests. Sets `patterns`, `list` and `full`.
check_test_arguments()
{
	patterns=() list='' full=''
	while (($#)); do
		case $1 in
		--list) list=yes ;;
		--full) full=yes ;;
		--rerun-failed | --junit=* | --patience=* | --tree=*) ;;
		--junit | --patience | --tree) shift ;;
		-*) unknown_option "$1" test --list --full --rerun-failed --junit --patience --no-install ;;
		*)
			[[ " build ${parts[*]} " == *"${1%%.*}"* || " ${lanes[*]} " == *"$1"* ]] ||
				grep -qsF -e "$1" "$root"/tests/*/tests.cmake ||
				die 2 "no test's name contains '$1': names begin with ${parts[*]}${lanes:+, or are ${lanes[*]}}"
			patterns+=("$1")
			;;
		esac
		(($# == 0)) || shift
	done
}

# list_parts: without CMake the names of single tests are unknown.
list_parts()
{
	local name pattern

	for name in "${parts[@]/%/.…}" "${lanes[@]}"; do
		for pattern in "${patterns[@]-}"; do
			[[ $name != *"${pattern%%.*}"* ]] || { printf '%s\n' "$name"; break; }
		done
	done
	say "these are the parts of the tests: $1, so the single tests are not listed"
}

# list_tests ARGS…: installs nothing.
list_tests()
{
	local missing

	missing_packages core python
	((${#missing[@]} == 0)) || { list_parts "${missing[*]} is not installed"; exit 0; }
	mkdir -p "$root/build" 2>/dev/null && [[ -w $root/build ]] || { list_parts "$root/build cannot be written to"; exit 0; }
	run_tests "$@"
}

run_tests()
{
	WEFT_SOURCE=$root WEFT_BUILD_ROOT=$root/build become "$(system_python)" "$root/tests/run.py" "$@"
}

weft_test()
{
	local rest parts lanes patterns list full name

	suite_arguments "$@"
	in_sources test tests/run.py
	find_parts
	check_test_arguments "${rest[@]}"
	[[ ! $list ]] || list_tests "${rest[@]}"
	mkdir -p "$root/build" 2>/dev/null && [[ -w $root/build ]] || die 2 "cannot write to $root/build: the tests are built there"
	need_packages "'weft test'" core python
	want_packages "'weft test'" test
	want_llhttp
	if [[ $full ]]; then
		want_packages "'weft test --full'" full lab clang
		for name in postgres redis nginx browser llvm-22 opt-22; do
			want_unpacked "$name"
		done
		want_h2spec
	fi
	run_tests "${rest[@]}"
}

# Builds the plugin that compiles activities, for the newest clang that is installed. Without a clang their experiment
# is skipped, and the lab says so.
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
	# Mistakes are reported before anything is installed, built or measured.
	if python=$(system_python); then
		trap - INT # the lab says it
		WEFT_SOURCE=$root "$python" "$root/lab/run.py" --check "${rest[@]}" || exit
		trap interrupted INT
	fi
	need_packages "'weft lab'" core lab
	# shellcheck source=tools/driver/build.bash
	. "$driver/build.bash" || exit 70
	! want_llhttp || build_library weft_http release
	build_library weft release
	build_library weft_instrumentation release
	build_library weft_posix release
	build_activities
	WEFT_SOURCE=$root WEFT_BUILD=$library_dir become "$(system_python)" "$root/lab/run.py" "${rest[@]}"
}
