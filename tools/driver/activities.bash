# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# --activities of weft cc, c++ and run: which clang compiles, and where its plugin is.

activities_versions=(22 21 20 19)

# plugin_is_there VERSION: is the plugin installed or, in the source tree, can it be built?
plugin_is_there()
{
	if [[ ! $root ]]; then
		[[ -e $share/$layout_libexec/libweft-activities-$1.so ]]
	elif [[ ! -e /usr/lib/llvm-$1/include/llvm/Passes/PassBuilder.h &&
		! -e $root/build/packages/llvm-$1/usr/lib/llvm-$1/include/llvm/Passes/PassBuilder.h ]]; then
		have "llvm-config-$1" && [[ -e $("llvm-config-$1" --includedir 2>/dev/null)/llvm/Passes/PassBuilder.h ]]
	fi
}

# clang_version COMMAND…: the major version of a clang; nothing if it is another compiler.
clang_version()
{
	local text='' name=${1##*/}

	if [[ $# == 1 && $name =~ ^clang(\+\+)?-([0-9]+)$ ]]; then
		printf '%s' "${BASH_REMATCH[2]}"
		return
	fi
	text=$("$@" --version 2>/dev/null)
	[[ ! $text =~ clang\ version\ ([0-9]+) ]] || printf '%s' "${BASH_REMATCH[1]}"
}

# check_activities_compiler VARIABLE: ends with a message unless the compiler in `compiler`, which VARIABLE names, is
# fit. Sets `clang`.
check_activities_compiler()
{
	local what

	clang=$(clang_version "${compiler[@]}")
	what=${clang:+clang $clang}
	[[ $clang && " ${activities_versions[*]} " == *" $clang "* ]] ||
		die 69 "--activities needs clang 19 to 22, and $1=${compiler[*]} is ${what:-another compiler}: $get clang-22, and unset $1"
	! plugin_is_there "$clang" || return 0
	[[ $root ]] || die 69 "this installation does not know clang $clang: it was built without LLVM $clang's headers (llvm-$clang-dev)"
	die 69 "--activities by clang $clang needs LLVM $clang's headers: $get llvm-$clang-dev libclang-$clang-dev"
}

# choose_activities_compiler cc|c++: WEFT_CC (WEFT_CXX), CC (CXX) if it is a fit clang, else the newest clang that is
# installed. Sets `compiler`, `clang`.
choose_activities_compiler()
{
	local name=clang given=${WEFT_CC-} other=${CC-} variable=WEFT_CC version words

	[[ $1 != c++ ]] || name=clang++ given=${WEFT_CXX-} other=${CXX-} variable=WEFT_CXX
	if [[ $given == *[![:space:]]* ]]; then
		find_compiler "$given"
		check_activities_compiler "$variable"
		return
	fi
	read -ra words <<<"$other"
	if [[ ${words[0]-} && ${words[0]##*/} == clang* ]] && have "${words[0]}"; then
		clang=$(clang_version "${words[@]}")
		if [[ " ${activities_versions[*]} " == *" $clang "* ]] && plugin_is_there "$clang"; then
			compiler=("${words[@]}")
			return
		fi
	fi
	for version in "${activities_versions[@]}"; do
		if have "$name-$version" && plugin_is_there "$version"; then
			compiler=("$name-$version") clang=$version
			return
		fi
	done
	# shellcheck source=tools/driver/packages.bash
	. "$driver/packages.bash" || exit 70
	if [[ $root ]]; then
		need_packages "compiling activities" core clang
		want_unpacked llvm-22 || die 69 "compiling activities needs LLVM's headers: $get llvm-22-dev libclang-22-dev"
	else
		plugin_is_there 22 || die 69 "this installation cannot compile activities: it was built without LLVM's headers (llvm-22-dev)"
		need_packages "compiling activities" clang
	fi
	compiler=("$name-22") clang=22
}

# Finds the plugin that the compiler loads. Sets `plugin`.
find_activities_plugin()
{
	local library_dir

	if [[ $root ]]; then
		# shellcheck source=tools/driver/build.bash
		. "$driver/build.bash" || exit 70
		build_library "weft_activities_$clang" release
		plugin=$library_dir/libexec/weft/libweft-activities-$clang.so
	else
		plugin=$share/$layout_libexec/libweft-activities-$clang.so
	fi
}
