# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# Building the library and the instrumentation tools in a source tree, for the parts of the command that need them.

# is_current STAMP: has no source of the library changed since the build that made the stamp?
is_current()
{
	local file

	[[ -e $1 ]] || return 1
	for file in "$root"/{CMakeLists.txt,CMakePresets.json,cmake/*,src,src/*,src/*/*} \
		"$root"/include/weft{,/*,/*/*,/*/*/*} "$root"/tools/{driver/options.def,activities,activities/check,as,posix,driver/launch}{,/*}; do
		[[ ! $file -nt $1 ]] || return 1
	done
}

# A tree that was configured in another place (the sources moved) starts afresh. A tree that was configured before an
# LLVM was installed does not know its target.
configure()
{
	local targets=$1 tree=$2 preset=$3 fresh=()

	if [[ -e $tree/CMakeCache.txt ]]; then
		grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$tree/CMakeCache.txt" || fresh=(--fresh)
		[[ ! -e $tree/build.ninja || ${fresh[*]-} ]] || ! grep -q "^build ${targets##* }:" "$tree/build.ninja" || return 0
	fi
	cd "$root" && cmake --preset "$preset" -B "$tree" "${fresh[@]}"
}

# configure_and_build TARGETS TREE PRESET: in a shell of its own, because it changes directory and environment.
# The variables of an outer build, whose compiler may be `weft cc`, are not meant for the library.
configure_and_build()
(
	local targets=$1

	unset CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS ASMFLAGS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH MAKEFLAGS MFLAGS
	unset CMAKE_GENERATOR CMAKE_BUILD_TYPE CMAKE_TOOLCHAIN_FILE DESTDIR NINJA_STATUS
	# shellcheck disable=SC2086 # several words
	configure "$@" && cmake --build "$2" --target $targets
)

# build_library TARGET PRESET: up to date when it returns. Sets `library_dir`.
build_library()
{
	local target=$1 preset=$2 tree=$root/build/$2 product targets lock stamp
	local left='what is built stays, and the next call goes on from there'

	library_dir=$tree
	stamp=$tree/.$target
	case $target in
	weft) product=libweft-rt.a targets='weft weft_rt' ;;
	weft_http*) product=lib${target//_/-}.a targets=$target ;;
	weft_shared) product=libweft-rt.so targets='weft_shared weft_rt_shared' ;;
	weft_posix) product=libweft-posix.so targets=$target ;;
	weft_activities_*)
		product=libexec/weft/libweft-activities-${target##*_}.so targets="weft_activity weft_activity_shared $target"
		;;
	weft_instrumentation) product=libexec/weft/weft-launch targets=$target ;;
	esac
	[[ ! -e $tree/$product ]] || ! is_current "$stamp" || return 0
	# shellcheck source=tools/driver/packages.bash
	. "$driver/packages.bash" || exit 70
	need_packages "building the library" core
	mkdir -p "$tree" 2>/dev/null || die 1 "cannot write to $root/build"
	exec {lock}>"$tree/.weft-lock" || die 1 "cannot write to $tree"
	flock "$lock" || die 1 "cannot lock $tree/.weft-lock"
	# Another process may have built it meanwhile. A change during the build is newer than the stamp.
	if [[ ! -e $tree/$product ]] || ! is_current "$stamp"; then
		: >"$stamp.new"
		if ! progress "building the library ($preset)" configure_and_build "$targets" "$tree" "$preset"; then
			[[ -s $scratch/log ]] || die 1 "the library does not build, and ${TMPDIR:-/tmp} takes no output: is it full?"
			tail -n 30 -- "$scratch/log" >&2
			die 1 "the library does not build: the end of what the build printed is above"
		fi
		mv -f -- "$stamp.new" "$stamp"
	fi
	exec {lock}>&-
}
