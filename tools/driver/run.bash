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
	local compiler before after launch outputs

	choose_compiler "$1"
	shift
	surround "$@"
	"${launch[@]}" "${compiler[@]}" "${before[@]}" "$@" "${after[@]}"
}

is_cxx()
{
	[[ $1 == *.@(cc|cp|cpp|cxx|c++|C|CPP|ii) ]]
}

# Remove the directory once this process, by then the program, has ended. The remover is not its child, because a
# program may wait for all of its children.
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

# is_elf FILE
is_elf()
{
	local magic=''

	IFS= read -r -n 4 magic <"$1" 2>/dev/null || [[ $magic ]]
	[[ $magic == $'\x7fELF' ]]
}

# Is the word a file to compile or link, by its name, or a flag of the compiler?
is_source()
{
	[[ $1 == -* || $1 == *.@(c|cc|cp|cpp|cxx|c++|C|CPP|i|ii|m|mm|f|F|f90|F90|d|go|ll|bc|o|lo|a|s|S|sx|so|so.*) ]]
}

# check_unnamed FILE: a file with another ending goes to the linker. The linker cannot take a program, and takes text
# for a linker script: its message then does not help a user who wrote no such script.
check_unnamed()
{
	local magic=''

	IFS= read -r -n 4 magic <"$1" 2>/dev/null
	case $magic in
	$'\x7fELF')
		[[ ! -x $1 ]] ||
			die 2 "'$1' is a program already: start it yourself, or by 'weft run --posix'"
		;;
	'!<ar' | '!<th' | BC*) ;;
	*) die 2 "'$1' is neither a source, by the ending of its name, nor an object; the names of sources in C end in .c" ;;
	esac
}

# is_library FILE…: objects, archives and shared objects, and none of them defines main. A file that nm cannot read may define it.
is_library()
{
	local file symbols

	for file; do
		[[ $file == *.@(a|o|lo|so|so.*) ]] && symbols=$(nm -D --defined-only -- "$file" 2>/dev/null && nm --defined-only -- "$file" 2>&1) &&
			[[ ! $symbols =~ (' main'($'\n'|$)|lto|plugin) ]] || return 1
	done
}

# The caller's options are compared with these. simulate adds its own.
run_options=(--policy --instrument --needs --activities --yields --posix --no-install --help)

# Sets sources, flags and rest (the words after "--").
read_run_arguments()
{
	while (($#)); do
		case $1 in
		--)
			shift
			rest=("$@")
			return
			;;
		-o | -c | -S | -E | -shared) die 2 "'$1' makes no program to run: use 'weft cc'" ;;
		--* | -policy* | -instrument* | -activities | -posix) unknown_option "$1" "$command" "${run_options[@]}" ;;
		-?*)
			flags+=("$1")
			if [[ $with_argument == *" $1 "* ]]; then
				(($# >= 2)) || die 2 "'$1' needs an argument"
				flags+=("$2")
				shift
			fi
			;;
		*)
			[[ -e $1 ]] || die 2 "there is no file '$1' (what the program gets follows '--')"
			[[ ! -d $1 ]] || die 2 "'$1' is a directory"
			[[ -r $1 ]] || die 2 "cannot read '$1'"
			is_source "$1" || check_unnamed "$1"
			sources+=("$1")
			;;
		esac
		shift
	done
}

# Puts our shared object before libc, in front of the caller's own preloaded objects. Its destructor reports if this
# process did not use it.
put_before_libc()
{
	local library_dir preload

	if [[ $root ]]; then
		# shellcheck source=tools/driver/build.bash
		. "$driver/build.bash" || exit 70
		build_library weft_posix release
	else
		library_dir=$share/$layout_lib
		[[ -e $library_dir/libweft-posix.so ]] || die 69 "this installation has no $library_dir/libweft-posix.so"
	fi
	[[ $library_dir != *[:\;]* ]] || die 2 "the dynamic linker takes no path with a colon or a semicolon: $library_dir"
	# LD_PRELOAD takes no name with a blank, either, but a name that is found by LD_LIBRARY_PATH.
	preload=$library_dir/libweft-posix.so
	if [[ $library_dir == *' '* ]]; then
		preload=libweft-posix.so
		export LD_LIBRARY_PATH=$library_dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	fi
	export LD_PRELOAD=$preload${LD_PRELOAD:+:$LD_PRELOAD} WEFT_POSIX_TELL=$$
}

# run_built PROGRAM ARGS…: runs a compiled program, or a script.
run_built()
{
	local program loader=/lib64/ld-linux-x86-64.so.2

	program=$(type -P -- "$1") || die 2 "there is no program '$1'"
	shift
	if is_elf "$program"; then
		! { [[ -x $loader ]] && ! "$loader" --verify "$program" >/dev/null 2>&1; } ||
			die 2 "'$program' is linked statically, or for another machine: LD_PRELOAD does not reach it; link it with libweft-posix.so"
		[[ ! -u $program && ! -g $program ]] || die 2 "'$program' is set-user-ID: the dynamic linker ignores LD_PRELOAD there"
	fi
	put_before_libc
	exec "$program" "$@"
}

weft_run()
{
	local posix=''

	if [[ ${1-} == --posix ]]; then
		posix=yes
		shift
		(($#)) || die 2 "nothing to run: weft run --posix PROGRAM ARGS… or FILE.c… [-- ARGS]"
		is_source "$1" || run_built "$@"
	fi
	compile_and_run "$@"
}

compile_and_run()
{
	local policy='' instrument='' activities='' yields='' needs='' report='' clang='' arguments sources=() flags=() rest=() program language=cc source objects=()

	own_options "$@"
	[[ ! $report ]] || die 2 "'--activities-report' runs nothing: use 'weft cc --activities-report'"
	read_run_arguments "${arguments[@]}"
	((${#sources[@]})) || die 2 "nothing to run: weft run [--policy P] FILE.c… [-- ARGS]"
	! is_library "${sources[@]}" ||
		die 2 "'${sources[0]}' has no main(): it is a library, and 'weft run' needs the program that uses it, too"
	make_scratch
	doing=compiling
	for source in "${sources[@]}"; do
		! is_cxx "$source" || language=c++
	done
	# A C++ compiler takes .c files for C++.
	for source in "${sources[@]}"; do
		if [[ $language == c++ && $source == *.c ]]; then
			compile cc -O2 -g "${flags[@]}" -c "$source" -o "$scratch/${#objects[@]}.o" || exit 1
			objects+=("$scratch/${#objects[@]}.o")
		else
			objects+=("$source")
		fi
	done
	program=${sources[0]##*/}
	program=${program%.*}
	program=$scratch/${program:-program}
	# Programs whose tasks do no I/O of their own contain no code that could meet libweft-posix.so.
	[[ ! $posix ]] || flags+=('-Wl,-u,weft__posix_begin')
	compile "$language" -O2 -g "${objects[@]}" -o "$program" "${flags[@]}" || exit 1
	[[ -f $program && -x $program ]] ||
		die 1 "no program came of ${sources[*]}, or it may not be executed in ${TMPDIR:-/tmp} (then set TMPDIR)"
	# Reports name functions and lines while the program's file exists.
	[[ ${WEFT_ADDR2LINE+set} ]] || ! WEFT_ADDR2LINE=$(type -P addr2line) || export WEFT_ADDR2LINE
	remove_later $$ "$scratch"
	[[ ! $posix ]] || put_before_libc
	[[ ! ${simulates-} ]] || prepare_simulation
	exec "$program" "${rest[@]}"
}
