# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# weft cc, weft c++: the compiler, with what Weft needs added. Design:
#  1. The arguments are handed on untouched; ours go before and after them. They are read only to learn what will
#     happen: is anything linked, is it a program.
#  2. Headers come by -isystem: the user's own directories win, and our macros raise no warnings in strict builds.
#  3. A program gets the static library. A shared library gets none, because two copies of the runtime in a process do
#     not know of each other's coroutines: it finds the program's. A program that exports everything (-rdynamic), as
#     hosts of plugins do, therefore carries the whole library. Whoever says -lweft gets the shared library instead.
#  4. The hot path runs bash builtins only, then exec.
#  5. Other code probes the pages of large frames, so that none steps over a guard. Frames below a page cost nothing.
#     clang complains of the flag where there is nothing to compile.
#  6. Code that can run on stacks of linked chunks is made by weft-launch, which stands between this and the compiler
#     whenever something is compiled for such a policy (tools/driver/launch/launch.h).

# The policies by name, from the header that defines them: the word in quotes that opens a comment of the enumeration.
policy_names()
{
	local line

	while read -r line; do
		[[ $line != *'weft_policy_t;'* ]] || break
		[[ ! $line =~ '/**< "'([a-z]+)'":' ]] || policies+=("${BASH_REMATCH[1]}")
	done <"$include/weft/stack.h"
}

check_policy()
{
	local policies=()

	policy_names
	[[ " ${policies[*]} " == *" ${1%%:*} "* ]] || die 2 "unknown policy '${1%%:*}': there are ${policies[*]}"
	[[ $1 != *:* || ${1#*:} =~ ^[1-9][0-9]*[KMG]?$ ]] || die 2 "bad stack size '${1#*:}': say bytes, or 64K, 1M, 1G"
}

# The instrumentation that a policy's programs need, if any. Sets `needed`.
instrumentation_of()
{
	case ${1%%:*} in
	segmented | heap) needed=segmented ;;
	mmu) needed=mmu ;;
	lookahead) needed=lookahead ;;
	*) needed='' ;;
	esac
}

# After the options are read: the two must fit together. Any instrumented code runs on contiguous stacks.
check_instrumentation()
{
	local needed=''

	[[ ! $policy ]] || check_policy "$policy"
	[[ $instrument =~ ^(segmented|mmu|lookahead)?$ ]] ||
		die 2 "unknown instrumentation '$instrument': there are segmented (also for heap), mmu, lookahead"
	[[ ! $policy ]] || instrumentation_of "$policy"
	[[ ! $needed || ! $instrument || $needed == "$instrument" ]] ||
		die 2 "--policy ${policy%%:*} runs code made by --instrument $needed, not $instrument"
	instrument=${instrument:-$needed}
}

# Options before the first argument that is not ours. Sets `policy`, `instrument` and `taken`.
own_options()
{
	taken=0
	while (($#)); do
		case $1 in
		--policy)
			(($# >= 2)) || die 2 "--policy needs a name"
			policy=$2
			((taken++))
			shift
			;;
		--policy=*) policy=${1#*=} ;;
		--instrument)
			(($# >= 2)) || die 2 "--instrument needs a kind: segmented, mmu or lookahead"
			instrument=$2
			((taken++))
			shift
			;;
		--instrument=*) instrument=${1#*=} ;;
		--no-install) may_install=no ;;
		*) break ;;
		esac
		((taken++))
		shift
	done
	check_instrumentation
}

# Split a response file as compilers do: white space separates, quotes and backslashes protect. Sets `words`.
split_response_file()
{
	local rest word='' inside=''

	words=()
	rest=$(<"$1")
	if [[ $rest != *[\\\"\']* ]]; then
		read -r -d '' -a words <<<"$rest"
		return
	fi
	rest+=$'\n'
	while [[ $rest =~ ^([^[:space:]\"\'\\]*)([[:space:]]|\"([^\"\\]|\\.)*\"|\'([^\'\\]|\\.)*\'|\\.) ]]; do
		word+=${BASH_REMATCH[1]}
		inside=${BASH_REMATCH[2]}
		rest=${rest:${#BASH_REMATCH[0]}}
		case $inside in
		[[:space:]])
			[[ ! $word ]] || words+=("$word")
			word=''
			;;
		[\"\']*) word+=${inside:1:${#inside}-2} ;;
		*) word+=${inside:1} ;;
		esac
	done
}

# Learn from a link's or compilation's arguments. Sets inputs, sources, headers, links, shared, library, language, exports.
read_arguments()
{
	local words

	while (($#)); do
		case $1 in
		-c | -S | -E | -M | -MM | -fsyntax-only | -emit-ast | -r | --compile | --assemble | --preprocess | \
			--dependencies | --user-dependencies | --analyze | --precompile | --relocatable)
			links=''
			;;
		-shared | --shared) shared=yes ;;
		-rdynamic | -Wl,-E | -Wl,--export-dynamic) exports=yes ;;
		-lweft) library=weft_shared ;;
		-x)
			language=${2-}
			shift
			;;
		-x*) language=${1#-x} ;;
		-o | -I | -D | -U | -L | -l | -A | -B | -F | -G | -T | -u | -z | -e | -arch | -target | -include | -imacros | \
			-isystem | -iquote | -idirafter | -iprefix | -iwithprefix | -iwithprefixbefore | -isysroot | \
			-imultilib | -imultiarch | -MF | -MT | -MQ | -MJ | -Xlinker | -Xpreprocessor | -Xassembler | -Xclang | \
			-Xcompiler | -mllvm | -aux-info | -dumpbase | -dumpbase-ext | -dumpdir | -wrapper | -specs | --param | \
			--sysroot | --specs | --include | --define-macro | --undefine-macro | --include-directory | \
			--library-directory | --output | --entry | --serialize-diagnostics)
			(($# == 1)) || shift
			;;
		@*)
			if [[ -r ${1#@} ]]; then
				split_response_file "${1#@}"
				read_arguments "${words[@]}"
			else
				inputs=yes
			fi
			;;
		-?*) ;;
		*.h | *.hh | *.hpp | *.hxx | *.h++ | *.H | *.tcc) headers=yes ;;
		*.o | *.lo | *.a | *.so | *.so.* | *.s) inputs=yes ;;
		*) inputs=yes sources=yes ;;
		esac
		(($# == 0)) || shift
	done
}

# The compiler: words, so that "ccache gcc" works, unless a file has exactly that name. Sets `compiler`.
find_compiler()
{
	local wanted=$1 candidate

	shift
	if [[ $wanted ]]; then
		if [[ -x $wanted && ! -d $wanted ]]; then compiler=("$wanted"); else read -ra compiler <<<"$wanted"; fi
		have "${compiler[0]}" || die 69 "there is no compiler '${compiler[0]}'"
		[[ ! ${compiler[0]##*/} =~ ^weft(-cc|-c\+\+)?$ ]] || die 2 "WEFT_CC and WEFT_CXX cannot be weft itself"
		return
	fi
	for candidate; do
		compiler=("$candidate")
		! have "$candidate" || return 0
	done
	# shellcheck source=tools/driver/packages.bash
	. "$driver/packages.bash" || exit 70
	need_packages "compiling" core
	compiler=("$1")
}

# Where the library is; in the source tree, up to date. A sanitized program takes the same one: its headers tell the
# sanitizer all it needs. Sets `library_dir`.
find_library()
{
	if [[ $root ]]; then
		# shellcheck source=tools/driver/build.bash
		. "$driver/build.bash" || exit 70
		build_library "$library" release
		return
	fi
	library_dir=$share/$layout_lib
	[[ -e $library_dir/libweft.a ]] || die 69 "this installation has no $library_dir/libweft.a"
}

# What stands before the compiler: nothing, or weft-launch. Sets `launch`.
find_launcher()
{
	local library_dir

	launch=()
	[[ $instrument ]] || return 0
	if [[ $root ]]; then
		# shellcheck source=tools/driver/build.bash
		. "$driver/build.bash" || exit 70
		build_library weft_instrumentation release
		launch=("$library_dir/libexec/weft/weft-launch" --instrument "$instrument")
	else
		launch=("$share/$layout_libexec/weft-launch" --instrument "$instrument")
		[[ -x ${launch[0]} ]] || die 69 "this installation has no ${launch[0]}"
	fi
}

# An object that says which policy the program starts with; the library looks for it. Made once, kept. Sets `object`.
policy_object()
{
	local kept=${root:+$root/build} name=${policy/:/-}

	kept=${kept:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/weft}/policy
	object=$kept/$name.o
	[[ ! -e $object ]] || return 0
	mkdir -p "$kept" 2>/dev/null || die 1 "cannot write to $kept, where the object for --policy goes"
	# Written aside and moved, because other compilations may want it now.
	if ! "${compiler[@]}" -x c -fPIC -c -o "$object.$$" - <<<"const char *weft_program_stack = \"$policy\";"; then
		die 1 "cannot make the object for --policy"
	fi
	mv -f -- "$object.$$" "$object"
}

# Sets `before` and `after`, what goes around the arguments, and `launch`, what goes before the compiler.
surround()
{
	local inputs='' sources='' headers='' links=yes shared='' library=weft language='' exports='' object library_dir

	before=() after=() launch=()
	read_arguments "$@"
	# Nothing to compile: a question about the compiler.
	[[ $inputs || $headers ]] || return 0
	find_launcher
	[[ $include == /usr/include || $include == /usr/local/include ]] || before=(-isystem "$include")
	before+=(-isystem "$compat" -pthread)
	[[ $instrument || ! $sources ]] || before+=(-fstack-clash-protection)
	[[ $links && $inputs && $language != *-header ]] || return 0

	find_library
	[[ $language == '' || $language == none ]] || after=(-x none)
	after+=("-L$library_dir")
	[[ ! $shared ]] || return 0
	[[ $library == weft ]] || exports=''
	before+=('-Wl,--export-dynamic-symbol=weft.effect.*')
	if [[ $policy ]]; then
		policy_object
		after+=("$object")
	fi
	if [[ $exports ]]; then
		after+=("-Wl,--whole-archive" "$library_dir/libweft.a" "-Wl,--no-whole-archive")
	else
		after+=("$library_dir/libweft.a")
	fi
}

# Sets `compiler` for a subcommand's name.
choose_compiler()
{
	if [[ $1 == c++ ]]; then
		find_compiler "${WEFT_CXX-}" c++ g++ clang++ clang++-16
	else
		find_compiler "${WEFT_CC-}" cc gcc clang clang-16
	fi
}

weft_cc()
{
	local policy='' instrument='' taken compiler before after launch

	quiet=yes
	own_options "$@"
	shift "$taken"
	choose_compiler "$command"
	surround "$@"
	exec "${launch[@]}" "${compiler[@]}" "${before[@]}" "$@" "${after[@]}"
}
